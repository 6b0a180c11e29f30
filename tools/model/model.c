#include "model/model.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "model/internal.h"
#include "model/memory.h"

#define MIN_PAGE_BYTES 4096u
#define MAX_PAGE_BYTES (1u << 30)

struct model *model_new(void)
{
	struct model *model = memory_new(1, sizeof(*model));

	model->unknown.ordinal = MODEL_DEVICE_UNKNOWN;
	model->unknown.page_bytes = MODEL_PAGE_BYTES;
	model->host.ordinal = MODEL_DEVICE_HOST;
	model->host.page_bytes = MODEL_PAGE_BYTES;
	return model;
}

void model_group_sites(struct model *model, model_grouper *grouper, void *user)
{
	model->grouper = grouper;
	model->grouper_user = user;
}

void model_listen(struct model *model, model_listener *listener, void *user)
{
	model->listener = listener;
	model->listener_user = user;
}

/* Frees a uthash table of plain items. */
#define FREE_TABLE(type, head, also)                                                               \
	do {                                                                                       \
		type *item, *next;                                                                 \
		HASH_ITER(hh, head, item, next)                                                    \
		{                                                                                  \
			HASH_DEL(head, item);                                                      \
			also;                                                                      \
			free(item);                                                                \
		}                                                                                  \
	} while (0)

/* Groups may outlive the model, with what it held. */
static void leave_groups(struct model *model)
{
	for (struct model_site *site = model->sites; site; site = site->hh.next)
		site->group = NULL;
}

void model_free(struct model *model)
{
	if (!model)
		return;
	/* What is released now is still live for who listens. */
	model->listener = NULL;
	leave_groups(model);
	vmm_release(model);
	blocks_release(model);
	ledger_release(model);
	graph_release(model);
	stack_release(model);
	host_ranges_release(model);
	phases_release(model);
	while (model->pools) {
		struct model_pool *pool = model->pools;

		HASH_DEL(model->pools, pool);
		pool_release(pool);
	}
	FREE_TABLE(struct model_site, model->sites, free(item->tids));
	FREE_TABLE(struct model_failure, model->failures, );
	FREE_TABLE(struct model_copy, model->copies, );
	FREE_TABLE(struct model_timed, model->timed, );
	FREE_TABLE(struct model_thread, model->threads, );
	FREE_TABLE(struct model_pinning, model->pinnings, );
	FREE_TABLE(struct model_api, model->apis, free(item->name));
	FREE_TABLE(struct model_context, model->contexts, );
	for (size_t i = 0; i < model->n_devices; i++)
		free(model->devices[i]);
	free(model->devices);
	free(model->changes);
	free(model->peers);
	free(model->stretches);
	free(model->past_idle);
	free(model->environment.items);
	free(model->uncovered.items);
	free(model->notes.items);
	free(model->runtimes.items);
	free(model);
}

static struct model_device *device_make(struct model *model, int ordinal)
{
	struct model_device *device = memory_new(1, sizeof(*device));
	size_t at = 0;

	device->ordinal = ordinal;
	device->page_bytes = MODEL_PAGE_BYTES;
	model->devices = memory_grow(
		model->devices, model->n_devices, &model->devices_room, sizeof(*model->devices));
	while (at < model->n_devices && model->devices[at]->ordinal < ordinal)
		at++;
	memmove(&model->devices[at + 1], &model->devices[at],
		(model->n_devices - at) * sizeof(*model->devices));
	model->devices[at] = device;
	model->n_devices++;
	return device;
}

static struct model_device *device_find(const struct model *model, int64_t ordinal)
{
	for (size_t i = 0; i < model->n_devices; i++)
		if (model->devices[i]->ordinal == ordinal)
			return model->devices[i];
	return NULL;
}

struct model_device *model_device_of(struct model *model, int64_t ordinal)
{
	struct model_device *device = device_find(model, ordinal);

	if (device)
		return device;
	if (ordinal >= 0 && ordinal <= MODEL_MAX_ORDINAL)
		return device_make(model, (int)ordinal);
	return model->n_devices == 1 && model->n_described == 1 ? model->devices[0]
								: &model->unknown;
}

const struct model_device *model_device_find(const struct model *model, int ordinal)
{
	if (ordinal == MODEL_DEVICE_HOST)
		return &model->host;
	if (ordinal == MODEL_DEVICE_UNKNOWN)
		return &model->unknown;
	return device_find(model, ordinal);
}

static inline bool is_site(const struct model_site *site, const struct model_site_key *key)
{
	return site->key.stack_id == key->stack_id && site->key.device == key->device &&
	       site->key.kind == key->kind && site->key.allocator_id == key->allocator_id;
}

static struct model_site *site_of(struct model *model, struct model_site_key key)
{
	struct model_site **near = &HASH_NEAR_STACK(model->near_sites, key.stack_id,
				  key.allocator_id + key.kind + 8u * (uint32_t)key.device),
			  *site = *near;
	unsigned int hash;

	if (site && is_site(site, &key))
		return site;
	hash = hash_of(&key, sizeof(key));
	HASH_FIND_BYHASHVALUE(hh, model->sites, &key, sizeof(key), hash, site);
	if (!site) {
		site = memory_new(1, sizeof(*site));
		site->key = key;
		site->index = HASH_COUNT(model->sites);
		if (model->grouper && !key.allocator_id)
			site->group = model->grouper(model->grouper_user, model, &key);
		HASH_ADD_BYHASHVALUE(hh, model->sites, key, sizeof(site->key), hash, site);
	}
	*near = site;
	return site;
}

struct model_site *model_site_of(
	struct model *model, uint64_t stack_id, const struct model_device *device, uint32_t kind)
{
	return site_of(model, (struct model_site_key){stack_id, device->ordinal, kind, 0});
}

struct model_site *model_block_site_of(struct model *model, uint64_t stack_id,
	const struct model_device *device, uint32_t kind, uint64_t allocator_id)
{
	return site_of(
		model, (struct model_site_key){stack_id, device->ordinal, kind, allocator_id});
}

static struct model_failure *failure_of(
	struct model *model, const struct model_failure_key *key, uint64_t first_ns)
{
	struct model_failure *failure;

	HASH_FIND(hh, model->failures, key, sizeof(*key), failure);
	if (failure)
		return failure;
	failure = memory_new(1, sizeof(*failure));
	failure->key = *key;
	failure->first_ns = first_ns;
	HASH_ADD(hh, model->failures, key, sizeof(failure->key), failure);
	return failure;
}

void model_note_failure(
	struct model *model, const struct model_failure_key *key, uint64_t bytes, uint64_t time_ns)
{
	struct model_failure *failure = failure_of(model, key, time_ns);

	failure->n_calls++;
	failure->bytes = add_capped(failure->bytes, bytes);
	if (bytes > failure->largest_bytes)
		failure->largest_bytes = bytes;
	/* Those that a checkpoint repeats come after what it sums up. */
	if (time_ns > failure->last_ns)
		failure->last_ns = time_ns;
}

void model_note_failures(
	struct model *model, const struct model_failure_key *key, const struct vt_rec_past *given)
{
	struct model_failure *failure = failure_of(model, key, given->first_ns);

	failure->n_calls += given->count;
	failure->bytes = add_capped(failure->bytes, given->bytes);
	if (given->largest_bytes > failure->largest_bytes)
		failure->largest_bytes = given->largest_bytes;
	if (given->last_ns > failure->last_ns)
		failure->last_ns = given->last_ns;
}

static void text_add(struct model_texts *texts, struct vt_text text)
{
	texts->items =
		memory_grow(texts->items, texts->n_items, &texts->room, sizeof(*texts->items));
	texts->items[texts->n_items++] = text;
}

bool model_texts_has(const struct model_texts *texts, struct vt_text text)
{
	for (size_t i = 0; i < texts->n_items; i++)
		if (texts->items[i].bytes == text.bytes &&
			(!text.bytes || !memcmp(texts->items[i].data, text.data, text.bytes)))
			return true;
	return false;
}

static void apply_device(struct model *model, const struct vt_rec_device *given)
{
	struct model_device *device;

	if (given->ordinal > MODEL_MAX_ORDINAL)
		return;
	device = device_find(model, (int64_t)given->ordinal);
	if (!device)
		device = device_make(model, (int)given->ordinal);
	if (device->described)
		return;
	device->described = true;
	model->n_described++;
	device->name = given->name;
	device->uuid = given->uuid;
	device->total_bytes = given->total_bytes;
	/* Pages of blocks that are booked already were counted in the assumed size. */
	if (given->page_bytes >= MIN_PAGE_BYTES && given->page_bytes <= MAX_PAGE_BYTES &&
		!device->kinds[VT_KIND_LINEAR].n_allocs)
		device->page_bytes = given->page_bytes;
}

static void apply_api(struct model *model, const struct vt_rec_api *given)
{
	struct model_api *api;

	HASH_FIND(hh, model->apis, &given->api_id, sizeof(given->api_id), api);
	if (api)
		return;
	api = memory_new(1, sizeof(*api));
	api->api_id = given->api_id;
	api->name = memory_new(given->name.bytes + 1, 1);
	if (given->name.bytes)
		memcpy(api->name, given->name.data, given->name.bytes);
	HASH_ADD(hh, model->apis, api_id, sizeof(api->api_id), api);
	/* The runtime's names begin with "cuda": where only those were called, the driver's calls
	 * went by. */
	if (!strncmp(api->name, "cu", 2) && isupper((unsigned char)api->name[2]))
		model->hooks_active = true;
}

static void apply_failure(struct model *model, const struct vt_rec_failure *given)
{
	uint32_t kind = kind_from(given->kind);
	struct model_failure_key key = {
		.stack_id = given->stack_id,
		.api_id = given->api_id,
		.caller_api = given->caller_api,
		.result = given->result,
		.device = kind == VT_KIND_PINNED || kind == VT_KIND_REGISTERED
				  ? MODEL_DEVICE_HOST
				  : model_device_of(model, given->device)->ordinal,
		.refusal = MODEL_REFUSED_ALLOC,
		.kind = (uint16_t)kind,
	};

	model_note_failure(model, &key, given->bytes, given->time_ns);
	host_use_note_refused(model, given);
}

static bool is_file(struct vt_text path, const char *name)
{
	const char *slash = path.bytes ? memrchr(path.data, '/', path.bytes) : NULL;
	size_t start = slash ? (size_t)(slash - path.data) + 1 : 0;

	return path.bytes - start >= strlen(name) && !memcmp(path.data + start, name, strlen(name));
}

/* The CUDA runtime in a file of its own; one that is linked into a program or library has no file.
 */
static void apply_module(struct model *model, struct vt_text path)
{
	model->modules_seen = true;
	if (is_file(path, "libcudart.so") && !model_texts_has(&model->runtimes, path))
		text_add(&model->runtimes, path);
	if (is_file(path, "libc10_cuda.so") || is_file(path, "libtorch_cuda.so"))
		model->torch_mapped = true;
}

/* Records that say what the process and its surroundings are. */
static void apply_description(struct model *model, const struct vt_record *record)
{
	switch (record->kind) {
	case VT_REC_process:
		if (!model->process_seen)
			model->process = record->process;
		model->process_seen = true;
		break;
	case VT_REC_environment:
		text_add(&model->environment, record->environment.name);
		text_add(&model->environment, record->environment.value);
		break;
	case VT_REC_driver:
		model->driver = record->driver;
		model->driver_seen = true;
		model->hooks_active = true;
		break;
	case VT_REC_module:
		apply_module(model, record->module.path);
		break;
	case VT_REC_device:
		apply_device(model, &record->device);
		break;
	case VT_REC_api:
		apply_api(model, &record->api);
		break;
	case VT_REC_uncovered:
		if (!model_texts_has(&model->uncovered, record->uncovered.name))
			text_add(&model->uncovered, record->uncovered.name);
		break;
	case VT_REC_note:
		if (!model_texts_has(&model->notes, record->note.text))
			text_add(&model->notes, record->note.text);
		break;
	case VT_REC_unwind_check:
		model->unwind_check = record->unwind_check;
		model->unwind_check_seen = true;
		break;
	case VT_REC_end:
		model->end = record->end;
		model->end_seen = true;
		break;
	default:
		break;
	}
}

static void note_time(struct model *model, const struct vt_record *record)
{
	bool event = model_is_event(record);
	bool told = record->kind >= VT_REC_mark && record->kind <= VT_REC_pause;

	if (event && !model->n_events++ && !model->part)
		model->first_ns = record->time_ns;
	if ((event || told || record->kind == VT_REC_end) && record->time_ns > model->last_ns)
		model->last_ns = record->time_ns;
	if (record->kind < VT_N_RECORDS)
		model->n_by_record[record->kind]++;
}

bool model_may_raise(const struct vt_record *record)
{
	switch (record->kind) {
	case VT_REC_alloc:
	case VT_REC_handle_create:
	case VT_REC_pool_memory:
	case VT_REC_graph:
	case VT_REC_graph_memory:
	case VT_REC_block_alloc:
		return true;
	default:
		return false;
	}
}

static void apply(struct model *model, const struct vt_record *record)
{
	switch (record->kind) {
	case VT_REC_checkpoint:
	case VT_REC_figure:
	case VT_REC_past:
	case VT_REC_stretch:
		checkpoint_apply(model, record);
		break;
	case VT_REC_alloc:
		ledger_apply_alloc(model, record);
		break;
	case VT_REC_free:
		ledger_apply_free(model, record);
		break;
	case VT_REC_failure:
		apply_failure(model, &record->failure);
		break;
	case VT_REC_stack:
	case VT_REC_python:
	case VT_REC_python_code:
	case VT_REC_python_lines:
	case VT_REC_eval_range:
	case VT_REC_python_stacks:
		stack_apply(model, record);
		break;
	case VT_REC_copy:
		copy_apply(model, record);
		break;
	case VT_REC_copy_time:
		traffic_apply_copy_time(model, record);
		break;
	case VT_REC_peer_access:
		traffic_apply_peer_access(model, &record->peer_access);
		break;
	case VT_REC_set:
		copy_apply_set(model, record);
		break;
	case VT_REC_migrate:
		copy_apply_migrate(model, record);
		break;
	case VT_REC_context:
		context_apply(model, record);
		break;
	case VT_REC_pool:
	case VT_REC_pool_memory:
		pool_apply(model, record);
		break;
	case VT_REC_graph_alloc:
	case VT_REC_graph_free:
	case VT_REC_graph:
	case VT_REC_graph_memory:
		graph_apply(model, record);
		break;
	case VT_REC_untracked:
	case VT_REC_memory:
	case VT_REC_others:
		account_apply(model, record);
		break;
	case VT_REC_allocator:
	case VT_REC_block_alloc:
	case VT_REC_block_free:
	case VT_REC_block_totals:
	case VT_REC_block_failure:
	case VT_REC_block_stream:
	case VT_REC_stream_event:
	case VT_REC_graph_pool:
		blocks_apply(model, record);
		break;
	case VT_REC_reserve:
	case VT_REC_unreserve:
	case VT_REC_handle_create:
	case VT_REC_handle_release:
	case VT_REC_handle_retain:
	case VT_REC_map:
	case VT_REC_unmap:
	case VT_REC_access:
		vmm_apply(model, record);
		break;
	case VT_REC_mark:
	case VT_REC_phase:
		phases_apply(model, record);
		break;
	case VT_REC_host_memory:
	case VT_REC_pause:
		host_apply(model, record);
		break;
	default:
		apply_description(model, record);
		break;
	}
}

void model_apply(struct model *model, const struct vt_record *record)
{
	model->n_changes = 0;
	model->record = record;
	note_time(model, record);
	apply(model, record);
	phases_note(model, record);
}

const char *model_api_name(const struct model *model, uint64_t api_id)
{
	struct model_api *api;

	HASH_FIND(hh, model->apis, &api_id, sizeof(api_id), api);
	return api ? api->name : NULL;
}

const char *model_call_name(const struct model *model, uint64_t api_id, uint64_t caller_api)
{
	const char *name = caller_api ? model_api_name(model, caller_api) : NULL;

	return name ? name : model_api_name(model, api_id);
}

struct vt_text model_environment_get(const struct model *model, const char *name)
{
	const struct model_texts *texts = &model->environment;
	size_t bytes = strlen(name);

	for (size_t i = 0; i + 1 < texts->n_items; i += 2)
		if (texts->items[i].bytes == bytes && !memcmp(texts->items[i].data, name, bytes))
			return texts->items[i + 1];
	return (struct vt_text){NULL, 0};
}
