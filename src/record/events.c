#include "record/events.h"

#include <string.h>

#include "record/eval.h"
#include "record/events_internal.h"
#include "record/live.h"
#include "record/modules.h"
#include "record/options.h"
#include "record/pause.h"
#include "record/stack.h"
#include "record/stackset.h"
#include "trace/writer.h"

#define MAX_APIS 2048u

static _Atomic unsigned char named[MAX_APIS]; /* 1: the row's name is in the trace */
static _Atomic unsigned char problem_noted;

static _Atomic uint64_t n_changes;
static _Atomic uint64_t last_timed_id;

static void count_change(void)
{
	atomic_fetch_add_explicit(&n_changes, 1, memory_order_relaxed);
}

uint64_t events_n_changes(void)
{
	return atomic_load_explicit(&n_changes, memory_order_relaxed);
}

static uint64_t since_start(uint64_t monotonic_ns)
{
	return vt_writer_time(&session.writer, monotonic_ns);
}

static uint64_t duration_of(const struct call *call)
{
	return call->end_ns - call->start_ns;
}

static void name_api(struct vt_lane *lane, unsigned int api, const char *name)
{
	struct vt_rec_api record = {.api_id = api};

	if (api >= MAX_APIS || atomic_load_explicit(&named[api], memory_order_relaxed) ||
		atomic_exchange_explicit(&named[api], 1, memory_order_relaxed))
		return;
	record.name = (struct vt_text){name, strlen(name)};
	vt_put_api(lane, &record);
}

static void name_apis(struct vt_lane *lane, const struct call *call)
{
	const struct session_caller *caller = &session_thread.caller;

	name_api(lane, call->api, call->name);
	if (caller->api)
		name_api(lane, caller->api, caller->name);
}

static void note_problem(struct vt_lane *lane)
{
	const char *problem = stack_problem();
	struct vt_rec_note record;

	if (!problem || atomic_exchange_explicit(&problem_noted, 1, memory_order_relaxed))
		return;
	record.text = (struct vt_text){problem, strlen(problem)};
	vt_put_note(lane, &record);
}

/* The lane to write to, or NULL when this call is not recorded. */
static struct vt_lane *begin(const struct call *call)
{
	struct vt_lane *lane;

	if (!call->recorded)
		return NULL;
	if (!session_is_on()) {
		/* A call that the driver refuses says nothing yet, unless the device is full from
		 * the start. */
		if (!call->result || call->result == VT_RESULT_OUT_OF_MEMORY)
			session_start(call->start_ns);
		if (!session_is_on())
			return NULL;
	}
	lane = session_lane(call->start_ns);
	if (lane) {
		pause_check(lane, call->start_ns);
		name_apis(lane, call);
	}
	return lane;
}

/* The same for what no memory comes or goes by. */
static struct vt_lane *begin_copy(const struct call *call)
{
	struct vt_lane *lane = options.copies ? begin(call) : NULL;

	return lane && !pause_is_on() ? lane : NULL;
}

static void put_stack(
	struct stack *stack, uint64_t stack_id, struct vt_lane *lane, uint64_t time_ns)
{
	struct vt_rec_stack record = {
		.stack_id = stack_id,
		.time_ns = time_ns,
		.frames = {stack->native.frames, stack->native.n_frames},
		.python = {stack_python(stack), stack->n_python},
		.flags = stack->flags,
	};

	modules_update(lane, time_ns);
	eval_check(stack, lane, time_ns);
	vt_put_stack(lane, &record);
}

uint64_t stack_of_refusal(struct vt_lane *lane, uint64_t time_ns)
{
	struct stackset_key key;
	struct stack stack;
	uint64_t stack_id;
	bool is_new;

	stack_capture(&stack, lane, time_ns);
	key = stack_key(&stack);
	stack_id = stackset_intern(&key, &is_new);
	if (is_new)
		put_stack(&stack, stack_id, lane, time_ns);
	if (!stack.native.n_frames)
		note_problem(lane);
	return stack_id;
}

uint64_t current_stack(struct vt_lane *lane, uint64_t time_ns)
{
	return pause_is_on() ? 0 : stack_of_refusal(lane, time_ns);
}

/* wanted says what was asked for. */
static void put_failure(
	const struct call *call, struct vt_lane *lane, const struct vt_rec_failure *wanted)
{
	struct vt_rec_failure record = *wanted;

	record.time_ns = since_start(call->end_ns);
	record.api_id = call->api;
	record.stack_id = stack_of_refusal(lane, record.time_ns);
	record.duration_ns = duration_of(call);
	record.result = (uint64_t)call->result;
	record.caller_api = session_thread.caller.api;
	vt_put_failure(lane, &record);
}

void event_alloc(const struct call *call, enum vt_kind kind, uint64_t address, uint64_t bytes,
	uint64_t stream, uint64_t pool)
{
	bool on_host = kind == VT_KIND_PINNED || kind == VT_KIND_REGISTERED;
	struct vt_lane *lane = begin(call);
	struct vt_rec_alloc record;

	if (!lane)
		return;
	if (call->result) {
		put_failure(call, lane,
			&(struct vt_rec_failure){.kind = kind,
				.device = on_host ? -1 : call->device,
				.bytes = bytes,
				.address = kind == VT_KIND_REGISTERED ? address : 0,
				.stream = stream,
				.pool = pool});
		return;
	}
	record = (struct vt_rec_alloc){
		.time_ns = since_start(call->end_ns),
		.api_id = call->api,
		.kind = kind,
		.device = on_host ? -1 : call->device,
		.context_id = call->context_id,
		.address = address,
		.bytes = bytes,
		.stack_id = current_stack(lane, since_start(call->end_ns)),
		.duration_ns = duration_of(call),
		.stream = stream,
		.pool = pool,
		.caller_api = session_thread.caller.api,
	};
	vt_put_alloc(lane, &record);
	count_change();
	live_add(kind == VT_KIND_ARRAY ? LIVE_HANDLES : LIVE_MEMORY, address, bytes, kind,
		record.stack_id, record.time_ns);
}

void event_free(const struct call *call, enum vt_kind kind, uint64_t address, uint64_t stream)
{
	bool nothing = !address && !call->result;
	struct vt_lane *lane = nothing ? NULL : begin(call);
	struct vt_rec_free record;

	if (!lane)
		return;
	record = (struct vt_rec_free){
		.time_ns = since_start(call->start_ns),
		.api_id = call->api,
		.kind = kind,
		.address = address,
		.stack_id = current_stack(lane, since_start(call->start_ns)),
		.duration_ns = duration_of(call),
		.stream = stream,
		.result = (uint64_t)call->result,
		.caller_api = session_thread.caller.api,
	};
	vt_put_free(lane, &record);
	count_change();
	if (!call->result)
		live_remove(kind == VT_KIND_ARRAY ? LIVE_HANDLES : LIVE_MEMORY, address,
			record.time_ns);
}

uint64_t event_timed_id(void)
{
	return atomic_fetch_add_explicit(&last_timed_id, 1, memory_order_relaxed) + 1;
}

/* The copy's number, if there may be more to say about it: it is being timed, or the thread may
 * wait for it. */
static uint64_t timed_id_of(const struct call *call, const struct event_copy *copy)
{
	bool to_host = copy->direction == VT_DIR_D2H || copy->direction == VT_DIR_UNIFIED;
	struct session_readback *readback = &session_thread.readback;

	if (call->result || copy->flags & (VT_COPY_CAPTURED | VT_COPY_SAME_CALL))
		return 0;
	if (!to_host || !(copy->flags & VT_COPY_ASYNC))
		return call->timed_id;
	readback->timed_id = call->timed_id ? call->timed_id : event_timed_id();
	readback->stream = copy->stream;
	return readback->timed_id;
}

void event_copy(const struct call *call, const struct event_copy *copy)
{
	struct vt_lane *lane = begin_copy(call);
	struct vt_rec_copy record;

	if (!lane)
		return;
	record = (struct vt_rec_copy){
		.time_ns = since_start(call->start_ns),
		.api_id = call->api,
		.direction = copy->direction,
		.flags = copy->flags,
		.device = call->device,
		.dst = copy->dst,
		.src = copy->src,
		.bytes = copy->bytes,
		.stack_id = current_stack(lane, since_start(call->start_ns)),
		.duration_ns = copy->flags & VT_COPY_SAME_CALL ? 0 : duration_of(call),
		.stream = copy->stream,
		.result = (uint64_t)call->result,
		.caller_api = session_thread.caller.api,
		.rows = copy->rows,
		.pitch = copy->pitch,
		.timed_id = timed_id_of(call, copy),
	};
	vt_put_copy(lane, &record);
}

void event_wait(const struct call *call, uint64_t stream, bool any_stream)
{
	struct session_readback *readback = &session_thread.readback;
	struct vt_rec_copy_time record;
	struct vt_lane *lane;

	if (!readback->timed_id || call->result || (!any_stream && stream != readback->stream))
		return;
	lane = begin(call);
	if (!lane)
		return;
	record = (struct vt_rec_copy_time){
		.time_ns = since_start(call->start_ns),
		.api_id = call->api,
		.timed_id = readback->timed_id,
		.wait_ns = duration_of(call),
	};
	readback->timed_id = 0;
	vt_put_copy_time(lane, &record);
}

void event_copy_time(unsigned int api, const char *name, uint64_t timed_id, uint64_t gpu_time_ns)
{
	struct vt_lane *lane = session_lane(session_clock_ns());
	struct vt_rec_copy_time record = {
		.time_ns = since_start(session_clock_ns()),
		.api_id = api,
		.timed_id = timed_id,
		.gpu_time_ns = gpu_time_ns,
	};

	if (!lane)
		return;
	name_api(lane, api, name);
	vt_put_copy_time(lane, &record);
}

void event_peer_access(const struct call *call, int peer, bool on)
{
	struct vt_lane *lane = begin(call);
	struct vt_rec_peer_access record;

	if (!lane)
		return;
	record = (struct vt_rec_peer_access){
		.time_ns = since_start(call->end_ns),
		.api_id = call->api,
		.device = call->device,
		.peer = peer,
		.on = on,
		.result = (uint64_t)call->result,
	};
	vt_put_peer_access(lane, &record);
}

void event_set(
	const struct call *call, unsigned int flags, uint64_t dst, uint64_t bytes, uint64_t stream)
{
	struct vt_lane *lane = begin_copy(call);
	struct vt_rec_set record;

	if (!lane)
		return;
	record = (struct vt_rec_set){
		.time_ns = since_start(call->start_ns),
		.api_id = call->api,
		.flags = flags,
		.device = call->device,
		.dst = dst,
		.bytes = bytes,
		.stack_id = current_stack(lane, since_start(call->start_ns)),
		.duration_ns = duration_of(call),
		.stream = stream,
		.result = (uint64_t)call->result,
		.caller_api = session_thread.caller.api,
	};
	vt_put_set(lane, &record);
}

void event_reserve(const struct call *call, uint64_t address, uint64_t bytes)
{
	struct vt_lane *lane = begin(call);
	struct vt_rec_reserve record;

	if (!lane)
		return;
	record = (struct vt_rec_reserve){
		.time_ns = since_start(call->end_ns),
		.api_id = call->api,
		.address = address,
		.bytes = bytes,
		.stack_id = current_stack(lane, since_start(call->end_ns)),
		.result = (uint64_t)call->result,
	};
	vt_put_reserve(lane, &record);
}

void event_unreserve(const struct call *call, uint64_t address, uint64_t bytes)
{
	struct vt_lane *lane = begin(call);
	struct vt_rec_unreserve record;

	if (!lane)
		return;
	record = (struct vt_rec_unreserve){
		.time_ns = since_start(call->start_ns),
		.api_id = call->api,
		.address = address,
		.bytes = bytes,
		.result = (uint64_t)call->result,
	};
	vt_put_unreserve(lane, &record);
}

void event_handle_create(const struct call *call, uint64_t handle, uint64_t bytes, int device,
	unsigned int location, enum vt_sharing sharing)
{
	struct vt_lane *lane = begin(call);
	struct vt_rec_handle_create record;

	if (!lane)
		return;
	if (call->result) {
		put_failure(call, lane,
			&(struct vt_rec_failure){
				.kind = sharing == VT_SHARING_OWN ? VT_KIND_VMM : VT_KIND_SHARED,
				.device = device,
				.bytes = bytes});
		return;
	}
	record = (struct vt_rec_handle_create){
		.time_ns = since_start(call->end_ns),
		.api_id = call->api,
		.handle = handle,
		.bytes = bytes,
		.device = device,
		.location = location,
		.stack_id = current_stack(lane, since_start(call->end_ns)),
		.duration_ns = duration_of(call),
		.sharing = sharing,
	};
	vt_put_handle_create(lane, &record);
	count_change();
	if (device >= 0 && sharing == VT_SHARING_OWN)
		live_add(LIVE_HANDLES, handle, bytes, VT_KIND_VMM, record.stack_id, record.time_ns);
}

void event_handle_retain(const struct call *call, uint64_t handle, uint64_t address)
{
	struct vt_lane *lane = begin(call);
	struct vt_rec_handle_retain record;

	if (!lane)
		return;
	record = (struct vt_rec_handle_retain){
		.time_ns = since_start(call->end_ns),
		.api_id = call->api,
		.handle = handle,
		.address = address,
		.result = (uint64_t)call->result,
	};
	vt_put_handle_retain(lane, &record);
}

void event_handle_release(const struct call *call, uint64_t handle)
{
	struct vt_lane *lane = begin(call);
	struct vt_rec_handle_release record;

	if (!lane)
		return;
	record = (struct vt_rec_handle_release){
		.time_ns = since_start(call->start_ns),
		.api_id = call->api,
		.handle = handle,
		.stack_id = current_stack(lane, since_start(call->start_ns)),
		.result = (uint64_t)call->result,
	};
	vt_put_handle_release(lane, &record);
	count_change();
	if (!call->result)
		live_remove(LIVE_HANDLES, handle, record.time_ns);
}

void event_map(
	const struct call *call, uint64_t address, uint64_t bytes, uint64_t offset, uint64_t handle)
{
	struct vt_lane *lane = begin(call);
	struct vt_rec_map record;

	if (!lane)
		return;
	record = (struct vt_rec_map){
		.time_ns = since_start(call->end_ns),
		.api_id = call->api,
		.address = address,
		.bytes = bytes,
		.offset = offset,
		.handle = handle,
		.stack_id = current_stack(lane, since_start(call->end_ns)),
		.result = (uint64_t)call->result,
	};
	vt_put_map(lane, &record);
}

void event_unmap(const struct call *call, uint64_t address, uint64_t bytes)
{
	struct vt_lane *lane = begin(call);
	struct vt_rec_unmap record;

	if (!lane)
		return;
	record = (struct vt_rec_unmap){
		.time_ns = since_start(call->start_ns),
		.api_id = call->api,
		.address = address,
		.bytes = bytes,
		.stack_id = current_stack(lane, since_start(call->start_ns)),
		.result = (uint64_t)call->result,
	};
	vt_put_unmap(lane, &record);
}

void event_access(
	const struct call *call, uint64_t address, uint64_t bytes, int device, unsigned int flags)
{
	struct vt_lane *lane = begin(call);
	struct vt_rec_access record;

	if (!lane)
		return;
	record = (struct vt_rec_access){
		.time_ns = since_start(call->start_ns),
		.api_id = call->api,
		.address = address,
		.bytes = bytes,
		.device = device,
		.flags = flags,
		.result = (uint64_t)call->result,
	};
	vt_put_access(lane, &record);
}

void event_pool(const struct call *call, enum vt_pool_action action, uint64_t pool, int device,
	uint64_t value)
{
	bool begins = action == VT_POOL_CREATE || action == VT_POOL_IMPORT;
	struct vt_lane *lane = begin(call);
	struct vt_rec_pool record;

	if (!lane)
		return;
	record = (struct vt_rec_pool){
		.time_ns = since_start(begins ? call->end_ns : call->start_ns),
		.api_id = call->api,
		.action = action,
		.pool = pool,
		.device = device,
		.value = value,
		.stack_id =
			current_stack(lane, since_start(begins ? call->end_ns : call->start_ns)),
		.result = (uint64_t)call->result,
	};
	vt_put_pool(lane, &record);
	count_change();
}

void event_graph_alloc(
	const struct call *call, uint64_t graph, int device, uint64_t address, uint64_t bytes)
{
	struct vt_lane *lane = begin(call);
	struct vt_rec_graph_alloc record;

	if (!lane)
		return;
	record = (struct vt_rec_graph_alloc){
		.time_ns = since_start(call->end_ns),
		.api_id = call->api,
		.graph = graph,
		.device = device,
		.address = address,
		.bytes = bytes,
		.stack_id = current_stack(lane, since_start(call->end_ns)),
		.result = (uint64_t)call->result,
	};
	vt_put_graph_alloc(lane, &record);
}

void event_graph_free(const struct call *call, uint64_t graph, uint64_t address)
{
	struct vt_lane *lane = begin(call);
	struct vt_rec_graph_free record;

	if (!lane)
		return;
	record = (struct vt_rec_graph_free){
		.time_ns = since_start(call->end_ns),
		.api_id = call->api,
		.graph = graph,
		.address = address,
		.stack_id = current_stack(lane, since_start(call->end_ns)),
		.result = (uint64_t)call->result,
	};
	vt_put_graph_free(lane, &record);
}

void event_graph(const struct call *call, enum vt_graph_action action, uint64_t graph,
	uint64_t exec, int device, uint64_t stream)
{
	struct vt_lane *lane = begin(call);
	struct vt_rec_graph record;
	uint64_t time_ns;

	if (!lane)
		return;
	time_ns = since_start(action == VT_GRAPH_INSTANTIATE ? call->end_ns : call->start_ns);
	record = (struct vt_rec_graph){
		.time_ns = time_ns,
		.api_id = call->api,
		.action = action,
		.graph = graph,
		.exec = exec,
		.device = device,
		.stream = stream,
		.stack_id = current_stack(lane, time_ns),
		.duration_ns = duration_of(call),
		.result = (uint64_t)call->result,
	};
	vt_put_graph(lane, &record);
	count_change();
}

void event_migrate(const struct call *call, enum vt_migrate_action action, uint64_t address,
	uint64_t bytes, int device, uint64_t stream)
{
	struct vt_lane *lane = begin_copy(call);
	struct vt_rec_migrate record;

	if (!lane)
		return;
	record = (struct vt_rec_migrate){
		.time_ns = since_start(call->start_ns),
		.api_id = call->api,
		.action = action,
		.address = address,
		.bytes = bytes,
		.device = device,
		.stack_id = current_stack(lane, since_start(call->start_ns)),
		.duration_ns = duration_of(call),
		.stream = stream,
		.result = (uint64_t)call->result,
	};
	vt_put_migrate(lane, &record);
}

void event_untracked(const struct call *call, enum vt_cause cause, int device, int64_t taken_bytes)
{
	struct vt_lane *lane = begin(call);
	struct vt_rec_untracked record;
	uint64_t time_ns;

	if (!lane)
		return;
	time_ns = since_start(session_clock_ns()); /* other records may be younger than the call */
	record = (struct vt_rec_untracked){
		.time_ns = time_ns,
		.api_id = call->api,
		.cause = cause,
		.device = device,
		.taken_bytes = taken_bytes,
		.stack_id = current_stack(lane, time_ns),
	};
	vt_put_untracked(lane, &record);
}

void event_context(
	const struct call *call, enum vt_context_action action, unsigned int context_id, int device)
{
	bool begins = action == VT_CONTEXT_CREATE || action == VT_CONTEXT_RETAIN;
	struct vt_lane *lane = begin(call);
	struct vt_rec_context record;

	if (!lane)
		return;
	record = (struct vt_rec_context){
		.time_ns = since_start(begins ? call->end_ns : call->start_ns),
		.api_id = call->api,
		.action = action,
		.context_id = context_id,
		.device = device,
		.result = (uint64_t)call->result,
	};
	vt_put_context(lane, &record);
}

void event_capture(const struct call *call, bool begin_capture, uint64_t stream)
{
	struct vt_lane *lane = begin(call);
	struct vt_rec_capture record;

	if (!lane)
		return;
	record = (struct vt_rec_capture){
		.time_ns = since_start(begin_capture ? call->end_ns : call->start_ns),
		.api_id = call->api,
		.begin = begin_capture,
		.stream = stream,
		.result = (uint64_t)call->result,
	};
	vt_put_capture(lane, &record);
}

void event_memory(int device, uint64_t free_bytes, uint64_t total_bytes)
{
	struct vt_lane *lane = session_lane(session_clock_ns());
	struct vt_rec_memory record = {
		.time_ns = since_start(session_clock_ns()),
		.device = device,
		.free_bytes = free_bytes,
		.total_bytes = total_bytes,
	};

	if (lane)
		vt_put_memory(lane, &record);
}

void event_pool_memory(int device, uint64_t pool, uint64_t reserved_bytes, uint64_t used_bytes)
{
	struct vt_lane *lane = session_lane(session_clock_ns());
	struct vt_rec_pool_memory record = {
		.time_ns = since_start(session_clock_ns()),
		.device = device,
		.pool = pool,
		.reserved_bytes = reserved_bytes,
		.used_bytes = used_bytes,
	};

	if (lane)
		vt_put_pool_memory(lane, &record);
}

void event_graph_memory(int device, uint64_t reserved_bytes, uint64_t used_bytes)
{
	struct vt_lane *lane = session_lane(session_clock_ns());
	struct vt_rec_graph_memory record = {
		.time_ns = since_start(session_clock_ns()),
		.device = device,
		.reserved_bytes = reserved_bytes,
		.used_bytes = used_bytes,
	};

	if (lane)
		vt_put_graph_memory(lane, &record);
}

void event_others(int device, const struct event_others *others)
{
	struct vt_lane *lane = session_lane(session_clock_ns());
	struct vt_rec_others record = {
		.time_ns = since_start(session_clock_ns()),
		.device = device,
		.used_bytes = others->used_bytes,
		.at_refusal = others->at_refusal,
		.n_processes = others->n_processes,
		.largest_pid = others->largest_pid,
		.largest_bytes = others->largest_bytes,
	};

	if (lane)
		vt_put_others(lane, &record);
}

void event_driver(unsigned int version, const char *path)
{
	struct vt_lane *lane = session_lane(session_clock_ns());
	struct vt_rec_driver record = {.version = version, .path = {path, strlen(path)}};

	if (lane)
		vt_put_driver(lane, &record);
}

void event_device(unsigned int ordinal, const char *name, const void *uuid, uint64_t total_bytes,
	uint64_t page_bytes)
{
	struct vt_lane *lane = session_lane(session_clock_ns());
	struct vt_rec_device record = {
		.ordinal = ordinal,
		.total_bytes = total_bytes,
		.page_bytes = page_bytes,
		.name = {name, strlen(name)},
		.uuid = {uuid, 16},
	};

	if (lane)
		vt_put_device(lane, &record);
}

void events_forget(void)
{
	for (unsigned int i = 0; i < MAX_APIS; i++)
		atomic_store_explicit(&named[i], 0, memory_order_relaxed);
	atomic_store_explicit(&problem_noted, 0, memory_order_relaxed);
}
