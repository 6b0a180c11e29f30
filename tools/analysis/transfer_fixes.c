/* What findings are called, and what to do about them. */
#include "analysis/transfers.h"

const char *transfer_finding_name(enum transfer_finding_kind kind)
{
	static const char *const names[TRANSFER_N_FINDINGS] = {
		[TRANSFER_PAGEABLE] = "pageable",
		[TRANSFER_BLOCKED] = "async_blocked",
		[TRANSFER_SMALL] = "small_copies",
		[TRANSFER_READ_BACK] = "read_back",
		[TRANSFER_REPEATED] = "repeated_upload",
		[TRANSFER_ROUND_TRIP] = "round_trip",
		[TRANSFER_PIN_CHURN] = "pin_churn",
		[TRANSFER_ROUNDED] = "pinned_rounding",
		[TRANSFER_NOT_REUSED] = "pinned_not_reused",
		[TRANSFER_KEPT] = "registered_kept",
		[TRANSFER_CLASH] = "registered_twice",
		[TRANSFER_STAGED] = "peer_staged",
		[TRANSFER_ALLOC_CHURN] = "alloc_churn",
		[TRANSFER_SERIAL] = "default_stream",
	};

	return names[kind];
}

static const char *fix_pageable(const struct transfer_finding *finding)
{
	return finding->direction == VT_DIR_H2D
		       ? "pin the source (pin_memory=True, cudaHostAlloc, cudaHostRegister), once, "
			 "and keep it"
		       : "copy into pinned memory (cudaHostAlloc, torch.empty(pin_memory=True)), "
			 "allocated once";
}

static const char *fix_alloc_churn(const struct transfer_finding *finding)
{
	return finding->memory_kind == VT_KIND_POOL
		       ? "raise the pool's release threshold "
			 "(cudaMemPoolAttrReleaseThreshold), or keep the buffer"
		       : "allocate once and keep the buffer, or allocate from a pool "
			 "(cudaMallocAsync with a release threshold)";
}

const char *transfer_finding_fix(const struct transfer_finding *finding)
{
	static const char *const fixes[TRANSFER_N_FINDINGS] = {
		[TRANSFER_BLOCKED] =
			"the stream's queue was full, or the memory was managed: submit less "
			"ahead, or prefetch managed memory",
		[TRANSFER_SMALL] = "put them together: one buffer and one copy, or a batch call "
				   "(cudaMemcpyBatchAsync)",
		[TRANSFER_READ_BACK] =
			"read results later and less often: keep them on the device, or copy them "
			"to pinned memory and look at an earlier round's",
		[TRANSFER_REPEATED] = "if the data does not change, upload it once and keep it on "
				      "the device",
		[TRANSFER_ROUND_TRIP] =
			"if the device does not change the data, keep the host's copy and drop "
			"the way down; if there is room, leave it on the device",
		[TRANSFER_PIN_CHURN] = "lock a buffer once and use it again",
		[TRANSFER_ROUNDED] =
			"ask for sizes just below a power of two, or limit the allocator's "
			"rounding "
			"(newer PyTorch: PYTORCH_ALLOC_CONF=pinned_max_round_threshold_mb:N)",
		[TRANSFER_NOT_REUSED] =
			"wait for the oldest copy before dropping more buffers, or take turns "
			"with a few buffers of your own",
		[TRANSFER_KEPT] = "unregister (cudaHostUnregister) what is no longer copied",
		[TRANSFER_CLASH] = "unregister the memory before it is unmapped or freed",
		[TRANSFER_STAGED] = "enable peer access (cudaDeviceEnablePeerAccess) where the "
				    "devices can (cudaDeviceCanAccessPeer)",
		[TRANSFER_SERIAL] =
			"use streams made with cudaStreamNonBlocking, or per-thread default "
			"streams",
	};

	if (finding->kind == TRANSFER_PAGEABLE)
		return fix_pageable(finding);
	if (finding->kind == TRANSFER_ALLOC_CHURN)
		return fix_alloc_churn(finding);
	return fixes[finding->kind];
}
