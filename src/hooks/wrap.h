/*
 * The shape of every wrapper: FORWARD the call unchanged, hand its outcome to one event_* function,
 * return LEAVE().
 *
 * Rules: arguments and results pass untouched; out-parameters are read through OUT(), which looks
 * at them only after success; nothing is done before the real call but reading the clock, for the
 * few measured calls the device's free memory, and where it was asked for recording an event before
 * a copy.
 */
#ifndef VRAMTRACE_HOOKS_WRAP_H
#define VRAMTRACE_HOOKS_WRAP_H

#include "hooks/contexts.h"
#include "hooks/copy_timing.h"
#include "hooks/driver.h"
#include "hooks/measure.h"
#include "hooks/sample.h"
#include "record/events.h"
#include "record/host_memory.h"
#include "record/objects.h"

/* Whether the name ends in _ptsz or _ptds; known when it is compiled. */
#define PER_THREAD(name)                                                                           \
	((name)[sizeof(name) - 6] == '_' && (name)[sizeof(name) - 5] == 'p' &&                     \
		(name)[sizeof(name) - 4] == 't')

/* Declares `call` and makes the real call. Without a driver there is nothing to call: so says the
 * result. */
#define FORWARD(export, ...)                                                                       \
	struct call call = {.api = API_##export,                                                   \
		.name = #export,                                                                   \
		.per_thread = PER_THREAD(#export),                                                 \
		.device = -1};                                                                     \
	__typeof__(&(export)) original_of_##export = DRIVER_ORIGINAL(export);                      \
	if (!original_of_##export)                                                                 \
		return CUDA_ERROR_NOT_INITIALIZED;                                                 \
	call_enter(&call);                                                                         \
	call_return(&call, (int)original_of_##export(__VA_ARGS__));                                \
	wrap_locate(&call)

/* What *pointer holds, 0 unless the call succeeded. */
#define OUT(pointer) (call.result || !(pointer) ? 0 : (uint64_t) * (pointer))

#define ADDRESS(pointer) ((uint64_t)(uintptr_t)(pointer))

/* Ends the call and gives its result, untouched. */
#define LEAVE() wrap_leave(&call)

/* The same for calls that change how much memory is free. */
#define LEAVE_SAMPLED() (sample_memory(&call), wrap_leave(&call))

/* For calls that may take device memory without allocating: free memory is read before and after.
 */
#define FORWARD_MEASURED(export, ...)                                                              \
	struct measurement before = measure_begin();                                               \
	FORWARD(export, __VA_ARGS__)

#define LEAVE_MEASURED(cause) (measure_end(&call, &before, cause), wrap_leave(&call))

/* For asynchronous copies, which may be timed on the device. */
#define FORWARD_TIMED(export, stream, ...)                                                         \
	struct timing_pair *pair = timing_begin(PER_THREAD(#export), stream);                      \
	FORWARD(export, __VA_ARGS__);                                                              \
	timing_end(&call, pair, stream)

/* Flags of an asynchronous copy or set. */
static inline unsigned int wrap_flags_on(const struct call *call, CUstream stream)
{
	return VT_COPY_ASYNC | (sample_is_capturing(call, stream, NULL) ? VT_COPY_CAPTURED : 0);
}

/* The same of a copy, with how its stream and the legacy default stream get on. */
static inline unsigned int wrap_flags_of_copy(const struct call *call, CUstream stream)
{
	unsigned int flags = wrap_flags_on(call, stream);

	if (stream == CU_STREAM_LEGACY || (!stream && !call->per_thread))
		return flags | VT_COPY_LEGACY;
	if (!stream || stream == CU_STREAM_PER_THREAD || sample_is_blocking(call, stream))
		flags |= VT_COPY_BLOCKING;
	return flags;
}

/* Host and NUMA locations are of no device, whatever their id says. */
static inline int wrap_device_of(const CUmemLocation *location)
{
	return location->type == CU_MEM_LOCATION_TYPE_DEVICE ? location->id : -1;
}

/* Fills in the device of the context current to this thread. */
static inline void wrap_locate(struct call *call)
{
	if (call->recorded) {
		struct context_info current = contexts_current();

		call->device = current.device;
		call->context_id = current.id;
	}
}

static inline CUresult wrap_leave(const struct call *call)
{
	if (__builtin_expect(options.copy_timing, 0))
		timing_read(call);
	if (__builtin_expect(call->result == CUDA_ERROR_OUT_OF_MEMORY, 0))
		sample_refusal(call);
	if (__builtin_expect(call->recorded && host_memory_is_due(call->end_ns), 0))
		host_memory_sample(call->end_ns);
	call_leave(call);
	return (CUresult)call->result;
}

#endif
