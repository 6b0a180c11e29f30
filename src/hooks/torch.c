#include "hooks/torch.h"

#include <errno.h>
#include <string.h>

#include "hooks/contexts.h"
#include "hooks/torch_find.h"
#include "record/events.h"
#include "record/events_block.h"
#include "record/notes.h"
#include "record/options.h"

#define EXPORTED __attribute__((visibility("default")))

/* c10::Device: in one register. */
struct torch_device {
	int8_t type;
	int8_t index;
};
#define DEVICE_CUDA 1

/* c10::Stream, as it has been since 1.13: in two registers. */
struct torch_stream {
	struct torch_device device;
	int64_t id;
};
typedef struct torch_stream current_stream_function(int8_t device);

struct torch_code torch_code;

/* The library of the allocator; written once, before it is known. */
static struct torch_library library;
static _Atomic int library_state; /* 0: not looked at, 1: being read, 2: known */

/* What one thread keeps between the allocator's calls. */
#define MAX_RECORDS 16u

struct record {
	const void *event, *stream, *caller;
	const char *frame;
};

static __thread struct {
	struct record records[MAX_RECORDS]; /* events recorded since the last report */
	unsigned int n_records;
	unsigned int n_calls; /* of the driver, when the last of them was recorded */
	uint64_t n_changes;   /* when the capture mode was relaxed */
	bool relaxed;
	bool captured; /* memory came while it was */
} self __attribute__((tls_model("initial-exec")));

/* events_n_changes() at the last report of each device. */
static _Atomic uint64_t n_changes_at[INT8_MAX + 1];

/* At the first report for a CUDA device. */
static void learn(const void *caller)
{
	int untouched = 0;

	if (atomic_load_explicit(&library_state, memory_order_acquire) ||
		!atomic_compare_exchange_strong(&library_state, &untouched, 1))
		return;
	torch_library_read(&library, caller);
	atomic_store_explicit(&torch_code.start, library.start, memory_order_relaxed);
	atomic_store_explicit(&torch_code.bytes, library.end - library.start, memory_order_release);
	atomic_store_explicit(&library_state, 2, memory_order_release);
}

static bool is_known(void)
{
	return atomic_load_explicit(&library_state, memory_order_acquire) == 2;
}

static int64_t current_stream(int device)
{
	return ((current_stream_function *)library.current_stream)((int8_t)device).id;
}

static bool is_wanted(struct torch_device device)
{
	return device.type == DEVICE_CUDA && device.index >= 0 && options.torch && session_is_on();
}

static struct event_allocator allocator_of(struct torch_device device)
{
	bool known = is_known();

	return (struct event_allocator){
		.id = 1 + (unsigned int)device.index,
		.layer = VT_LAYER_TORCH,
		.device = device.index,
		.name = "torch",
		.version = known ? library.version : "",
		.path = known ? library.path : "",
	};
}

/* --- Reports ---------------------------------------------------------------------------------- */

/* The two are closer than this in the stack, on either side. */
#define MAX_DISTANCE 4096u

/* The allocator records events for a block right before it reports that the block is free: from the
 * same function or one that it called, and with no call of the driver between. Whether a place does
 * so always, the reader finds out. */
static void note_waits(uint64_t address, const char *frame)
{
	for (unsigned int i = 0; i < self.n_records && self.n_calls == session_thread.n_calls;
		i++) {
		const struct record *record = &self.records[i];
		uintptr_t distance = (uintptr_t)frame - (uintptr_t)record->frame + MAX_DISTANCE;
		struct event_wait wait = {
			.event = (uintptr_t)record->event,
			.stream = (uintptr_t)record->stream,
			.address = address,
			.caller = (uintptr_t)record->caller,
			.distance = distance,
		};

		if (distance < 2 * MAX_DISTANCE)
			event_block_wait(&wait);
	}
}

/* If memory of the driver came since the last report of this device, the block may lie in it. */
static void note_stream(const struct event_allocator *allocator, uint64_t address)
{
	uint64_t n_changes = events_n_changes();
	_Atomic uint64_t *last = &n_changes_at[allocator->device];

	if (atomic_load_explicit(last, memory_order_relaxed) == n_changes)
		return;
	atomic_store_explicit(last, n_changes, memory_order_relaxed);
	if (!is_known() || !library.current_stream)
		return;
	event_block_stream(allocator, address, current_stream(allocator->device),
		self.captured ? VT_STREAM_CAPTURED : 0);
	self.captured = false;
}

static void note_report(const void *pointer, int64_t bytes, const struct event_totals *totals,
	struct torch_device device, const void *caller, const char *frame)
{
	uint64_t address = (uintptr_t)pointer;
	struct event_allocator allocator;
	int saved = errno;

	learn(caller);
	allocator = allocator_of(device);
	if (bytes > 0) {
		event_block_alloc(&allocator, address, (uint64_t)bytes, totals);
		note_stream(&allocator, address);
	} else {
		note_waits(address, frame);
		event_block_free(&allocator, address, (uint64_t)-bytes, totals);
	}
	self.n_records = 0;
	errno = saved;
}

#define ROW(export)
#define ROW_REPORT(export, type)                                                                   \
	typedef void function_##export(void *, int64_t, type, type, struct torch_device);          \
	EXPORTED function_##export export;                                                         \
	void export(void *pointer, int64_t bytes, type allocated, type reserved,                   \
		struct torch_device device)                                                        \
	{                                                                                          \
		const void *caller = __builtin_return_address(0);                                  \
		struct event_totals totals = {(uint64_t)allocated, (uint64_t)reserved};            \
		function_##export *original;                                                       \
		if (is_wanted(device))                                                             \
			note_report(pointer, bytes, &totals, device, caller,                       \
				__builtin_frame_address(0));                                       \
		original = (function_##export *)torch_original(                                    \
			TORCH_##export, (const void *)(export), caller);                           \
		if (original)                                                                      \
			original(pointer, bytes, allocated, reserved, device);                     \
	}
#define ROW_FAILURE(export, size, type)                                                            \
	typedef void function_##export(size, type, type, struct torch_device);                     \
	EXPORTED function_##export export;                                                         \
	void export(size bytes, type allocated, type reserved, struct torch_device device)         \
	{                                                                                          \
		const void *caller = __builtin_return_address(0);                                  \
		struct event_totals totals = {(uint64_t)allocated, (uint64_t)reserved};            \
		function_##export *original;                                                       \
		if (is_wanted(device))                                                             \
			note_failure((uint64_t)bytes, &totals, device, caller);                    \
		original = (function_##export *)torch_original(                                    \
			TORCH_##export, (const void *)(export), caller);                           \
		if (original)                                                                      \
			original(bytes, allocated, reserved, device);                              \
	}
#define ROW_PASS(export, action)                                                                   \
	EXPORTED pass_function export;                                                             \
	registers export(long object, long b, long c, long d, long e, long f)                      \
	{                                                                                          \
		pass_function *original = (pass_function *)torch_original(                         \
			TORCH_##export, (const void *)(export), __builtin_return_address(0));      \
		registers result = 0;                                                              \
		if (VT_GRAPH_POOL_##action != VT_GRAPH_POOL_NAMED)                                 \
			note_pool(VT_GRAPH_POOL_##action, object, b, c);                           \
		if (original)                                                                      \
			result = original(object, b, c, d, e, f);                                  \
		if (VT_GRAPH_POOL_##action == VT_GRAPH_POOL_NAMED)                                 \
			note_pool(                                                                 \
				VT_GRAPH_POOL_NAMED, object, (long)result, (long)(result >> 64));  \
		return result;                                                                     \
	}

/* Two registers for arguments of any type, and for results. */
typedef unsigned __int128 registers;
typedef registers pass_function(long, long, long, long, long, long);

static void note_failure(uint64_t bytes, const struct event_totals *totals,
	struct torch_device device, const void *caller)
{
	struct event_allocator allocator;
	int saved = errno;

	learn(caller);
	allocator = allocator_of(device);
	event_block_failure(&allocator, bytes, totals);
	self.n_records = 0;
	errno = saved;
}

static void note_pool(enum vt_graph_pool_action action, long object, long first, long second)
{
	bool named = action == VT_GRAPH_POOL_BEGIN || action == VT_GRAPH_POOL_NAMED;
	struct event_graph_pool pool = {
		.action = action,
		.object = (uint64_t)object,
		.first = named ? (uint64_t)first : 0,
		.second = named ? (uint64_t)second : 0,
	};
	int saved = errno;

	if (options.torch && session_is_on()) {
		if (action == VT_GRAPH_POOL_BEGIN && is_known() && library.current_stream) {
			int device = contexts_current().device;

			pool.stream = device < 0 ? 0 : current_stream(device);
		}
		event_graph_pool(&pool);
		if (action == VT_GRAPH_POOL_USER_MADE || action == VT_GRAPH_POOL_USER_GONE)
			notes_say(NOTE_TORCH_POOL);
	}
	errno = saved;
}

#include "hooks/torch.def"

/* --- Calls of the runtime --------------------------------------------------------------------- */

void torch_note_record(const void *event, const void *stream, const void *caller, const char *frame)
{
	/* More than a block waits for: those are the allocator's own, the last ones. */
	if (self.n_records == MAX_RECORDS) {
		memmove(self.records, self.records + 1, (MAX_RECORDS - 1) * sizeof(*self.records));
		self.n_records--;
	}
	self.records[self.n_records++] = (struct record){event, stream, caller, frame};
	self.n_calls = session_thread.n_calls;
}

void torch_note_done(enum vt_event_action action, const void *event)
{
	int saved = errno;

	event_stream_done(action, (uintptr_t)event);
	errno = saved;
}

/* The allocator obtains memory for a graph between two exchanges of the mode. */
void torch_note_mode(bool relaxed)
{
	if (relaxed)
		self.n_changes = events_n_changes();
	else if (self.relaxed && self.n_changes != events_n_changes())
		self.captured = true;
	self.relaxed = relaxed;
}

void torch_note_memory(uint64_t free_bytes, uint64_t total_bytes)
{
	int saved = errno, device = contexts_current().device;

	if (device >= 0 && session_is_on())
		event_memory(device, free_bytes, total_bytes);
	errno = saved;
}
