/*
 * The settings of PyTorch's caching allocator, from the text of PYTORCH_CUDA_ALLOC_CONF, and how
 * its rules differ between versions. Bounds and defaults are those of the public sources.
 */
#ifndef VRAMTRACE_ANALYSIS_SETTINGS_H
#define VRAMTRACE_ANALYSIS_SETTINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SETTINGS_N_DIVISIONS 16u
#define SETTINGS_MIB	     ((uint64_t)1 << 20)

enum settings_backend { SETTINGS_NATIVE, SETTINGS_ASYNC };

struct settings {
	uint64_t max_split_bytes;	       /* UINT64_MAX: blocks of any size are split */
	uint64_t max_non_split_rounding_bytes; /* spare bytes an oversize block may have */
	uint64_t large_segment_bytes;
	/* For requests from 1 MiB, 2 MiB ... 32 GiB; 0 and 1: no rounding. */
	uint32_t divisions[SETTINGS_N_DIVISIONS];
	double collection_threshold; /* garbage_collection_threshold, 0: never */
	double memory_fraction;	     /* per_process_memory_fraction, 1: no limit */
	bool expandable;
	enum settings_backend backend;
	bool has_rounding; /* max_non_split_rounding_mb was given: else it follows the segment */
};

/* Major * 100 + minor: 211 is PyTorch 2.11; 0 unknown. */
typedef unsigned int torch_release;

/* "2.11.0+cu130" to 211; 0 when it is no version. */
torch_release settings_version(const char *text);

/* What PyTorch does without any setting. */
void settings_default(struct settings *settings);

bool settings_equal(const struct settings *a, const struct settings *b);

/*
 * Applies text, "key:value,key:value" or with '=' for ':', to settings as that version of PyTorch
 * would. False when PyTorch would refuse it: problem then says which key and what it may be, and
 * settings is as it was. Settings without effect are accepted: problem is a remark then, else "".
 */
bool settings_apply(struct settings *settings, const char *text, torch_release version,
	char *problem, size_t problem_bytes);

#endif
