/*
 * Wrappers of the runtime's calls, all of them expanded from runtime.def: name the call to the
 * driver's wrappers that fire inside, make it, and return what it returned.
 */
#include "hooks/runtime_api.h"

#include "hooks/contexts.h"
#include "hooks/runtime.h"
#include "hooks/torch.h"
#include "record/events.h"
#include "record/notes.h"

/* A call inside another one, made by the runtime itself, does not take the name of that. */
static inline bool label_enter(enum runtime_row row)
{
	bool outermost = !session_thread.caller.api;

	if (outermost)
		session_thread.caller =
			(struct session_caller){RUNTIME_FIRST_API + row, runtime_name(row)};
	return outermost;
}

static inline void label_leave(bool outermost)
{
	if (outermost)
		session_thread.caller = (struct session_caller){0, NULL};
}

/* The call itself. Without a runtime there is nothing to call: so says the result. */
#define FORWARD(export, args)                                                                      \
	__typeof__(&(export)) original = (__typeof__(&(export)))runtime_original(                  \
		RUNTIME_##export, __builtin_return_address(0));                                    \
	cudaError_t result;                                                                        \
	bool outermost;                                                                            \
	if (!original)                                                                             \
		return cudaErrorSharedObjectInitFailed;                                            \
	outermost = label_enter(RUNTIME_##export);                                                 \
	result = original args;                                                                    \
	label_leave(outermost)

/* What to record by itself takes, read before the call. */
struct watch {
	unsigned int n_calls; /* of the driver, by this thread */
	uint64_t start_ns;
};

static inline struct watch watch_begin(void)
{
	return (struct watch){
		session_thread.n_calls, session_is_possible() ? session_clock_ns() : 0};
}

/* Whether a call that worked made none that the driver's wrappers saw. */
static inline bool is_bypass(const struct watch *watch, cudaError_t result)
{
	return __builtin_expect(session_thread.n_calls == watch->n_calls, 0) && !result &&
	       watch->start_ns && !session_thread.depth && !session_thread.caller.api;
}

static struct call call_of(const struct watch *watch, enum runtime_row row)
{
	int saved = errno;
	struct context_info current = contexts_current();

	return (struct call){
		.api = RUNTIME_FIRST_API + row,
		.name = runtime_name(row),
		.recorded = true,
		.saved_errno = saved,
		.device = current.device,
		.context_id = current.id,
		.start_ns = watch->start_ns,
		.end_ns = session_clock_ns(),
	};
}

/* Nothing was asked for, or nothing given back, where the address is none. */
static void note_alloc(const struct watch *watch, enum runtime_row row, enum vt_kind kind,
	const void *pointer, uint64_t bytes, const void *stream)
{
	struct call call = call_of(watch, row);

	if (pointer) {
		event_alloc(&call, kind, (uintptr_t)pointer, bytes, (uintptr_t)stream, 0);
		notes_count_bypassed();
	}
	errno = call.saved_errno;
}

static void note_free(const struct watch *watch, enum runtime_row row, enum vt_kind kind,
	const void *pointer, const void *stream)
{
	struct call call = call_of(watch, row);

	if (pointer) {
		event_free(&call, kind, (uintptr_t)pointer, (uintptr_t)stream);
		notes_count_bypassed();
	}
	errno = call.saved_errno;
}

#define ROW(export, params, args)                                                                  \
	cudaError_t CUDARTAPI export params                                                        \
	{                                                                                          \
		FORWARD(export, args);                                                             \
		return result;                                                                     \
	}

#define ROW_ALLOC(export, params, args, kind, pointer, bytes, stream)                              \
	cudaError_t CUDARTAPI export params                                                        \
	{                                                                                          \
		struct watch watch = watch_begin();                                                \
		FORWARD(export, args);                                                             \
		if (is_bypass(&watch, result))                                                     \
			note_alloc(                                                                \
				&watch, RUNTIME_##export, VT_KIND_##kind, pointer, bytes, stream); \
		return result;                                                                     \
	}

#define ROW_FREE(export, params, args, kind, pointer, stream)                                      \
	cudaError_t CUDARTAPI export params                                                        \
	{                                                                                          \
		struct watch watch = watch_begin();                                                \
		FORWARD(export, args);                                                             \
		if (is_bypass(&watch, result))                                                     \
			note_free(&watch, RUNTIME_##export, VT_KIND_##kind, pointer, stream);      \
		return result;                                                                     \
	}

/* Only calls of PyTorch's allocator are told of; everybody else's cost a comparison. */
#define IS_TORCH(result) (torch_contains(__builtin_return_address(0)) && !(result))

#define ROW_RECORD(export, params, args, event, stream)                                            \
	cudaError_t CUDARTAPI export params                                                        \
	{                                                                                          \
		FORWARD(export, args);                                                             \
		if (IS_TORCH(result))                                                              \
			torch_note_record(event, stream, __builtin_return_address(0),              \
				__builtin_frame_address(0));                                       \
		return result;                                                                     \
	}

#define ROW_DONE(export, params, args, action, event)                                              \
	cudaError_t CUDARTAPI export params                                                        \
	{                                                                                          \
		FORWARD(export, args);                                                             \
		if (IS_TORCH(result))                                                              \
			torch_note_done(VT_EVENT_##action, event);                                 \
		return result;                                                                     \
	}

#define ROW_MODE(export, params, args, mode)                                                       \
	cudaError_t CUDARTAPI export params                                                        \
	{                                                                                          \
		bool relaxed = (mode) && *(mode) == cudaStreamCaptureModeRelaxed;                  \
		FORWARD(export, args);                                                             \
		if (IS_TORCH(result))                                                              \
			torch_note_mode(relaxed);                                                  \
		return result;                                                                     \
	}

#define ROW_MEMORY(export, params, args, free, total)                                              \
	cudaError_t CUDARTAPI export params                                                        \
	{                                                                                          \
		FORWARD(export, args);                                                             \
		if (IS_TORCH(result))                                                              \
			torch_note_memory(*(free), *(total));                                      \
		return result;                                                                     \
	}

/* What the vendor advises against is wrapped all the same. */
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
#include "hooks/runtime.def"
