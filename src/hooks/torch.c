#include "hooks/torch.h"

#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "hooks/contexts.h"
#include "record/modules.h"
#include "elf/object.h"
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

enum torch_row {
#define ROW(export) ROW_##export,
#include "hooks/torch.def"
	N_ROWS
};

static const char *const names[] = {
#define ROW(export) #export,
#include "hooks/torch.def"
};

struct torch_code torch_code;

/* The library of the allocator; what is read from it is written once, before `known`. */
static struct {
	_Atomic int state; /* 0: not looked at, 1: being read, 2: known */
	current_stream_function *current_stream;
	char path[4096];
	char version[64];
} library;

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

bool torch_has_row(const char *name)
{
	for (size_t i = 0; i < N_ROWS; i++)
		if (!strcmp(names[i], name))
			return true;
	return false;
}

/* --- Where functions are ---------------------------------------------------------------------- */

static bool contains(const struct dl_phdr_info *info, uintptr_t address, uintptr_t *end)
{
	bool inside = false;

	*end = 0;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *header = &info->dlpi_phdr[i];
		uintptr_t start = info->dlpi_addr + header->p_vaddr;

		if (header->p_type != PT_LOAD)
			continue;
		inside = inside || address - start < header->p_memsz;
		if (start + header->p_memsz > *end)
			*end = start + header->p_memsz;
	}
	return inside;
}

static bool read_symbols(const struct dl_phdr_info *info, struct object *object)
{
	struct link_map map = {.l_addr = info->dlpi_addr};

	for (int i = 0; i < info->dlpi_phnum; i++)
		if (info->dlpi_phdr[i].p_type == PT_DYNAMIC)
			map.l_ld = (ElfW(Dyn) *)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr);
	return map.l_ld && object_read(&map, object);
}

static size_t folder_bytes(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? (size_t)(slash - path) + 1 : 0;
}

/* Looks for the definition of name beside the caller's file, else for the first. */
struct search {
	const char *name;
	const void *caller;
	const void *own;
	const char *caller_path; /* NULL: not met yet */
	const char *found_path;
	void *found;
};

static bool is_beside(const struct search *search, const char *path)
{
	size_t bytes = folder_bytes(path);

	return search->caller_path && bytes == folder_bytes(search->caller_path) &&
	       !memcmp(path, search->caller_path, bytes);
}

static int look_for_caller(struct dl_phdr_info *info, size_t size, void *data)
{
	struct search *search = data;
	uintptr_t end;

	(void)size;
	if (!contains(info, (uintptr_t)search->caller, &end))
		return 0;
	search->caller_path = info->dlpi_name;
	return 1;
}

static int look_for_definition(struct dl_phdr_info *info, size_t size, void *data)
{
	struct search *search = data;
	struct object object;
	void *found = NULL;

	(void)size;
	if (read_symbols(info, &object))
		found = object_find(&object, search->name, STT_FUNC, NULL);
	if (!found || found == search->own)
		return 0;
	if (!search->found || is_beside(search, info->dlpi_name))
		search->found = found;
	return is_beside(search, info->dlpi_name);
}

/* What was found for the pages of a few callers; see runtime.c. A key is 0 while it is written. */
#define N_WAYS 4u

static struct kept {
	_Atomic uint64_t key;
	_Atomic uintptr_t original;
} kept[N_ROWS][N_WAYS];

static uint64_t key_of(const void *caller)
{
	return ((uint64_t)(uintptr_t)caller >> 12 << 24) | (atomic_load_explicit(&modules_n_opened, memory_order_acquire) & 0xffffff);
}

static void keep(enum torch_row row, uint64_t key, void *original)
{
	struct kept *way = &kept[row][(key >> 24) % N_WAYS];
	uint64_t old = atomic_load_explicit(&way->key, memory_order_relaxed);

	if (!old && atomic_load_explicit(&way->original, memory_order_relaxed))
		return; /* somebody else is at it */
	if (!atomic_compare_exchange_strong(&way->key, &old, 0))
		return;
	atomic_store_explicit(&way->original, (uintptr_t)original, memory_order_release);
	atomic_store_explicit(&way->key, key, memory_order_release);
}

/* The function that the code around caller would have called, NULL: there is none. The list of
 * objects is walked with a lock of the loader's that is never held over anything else; dlsym and
 * dlopen would wait for constructors. */
static void *original_of(enum torch_row row, const void *own, const void *caller)
{
	struct search search = {.name = names[row], .caller = caller, .own = own};
	uint64_t key = key_of(caller);
	struct kept *way = &kept[row][(key >> 24) % N_WAYS];
	uintptr_t original;

	if (atomic_load_explicit(&way->key, memory_order_acquire) == key) {
		original = atomic_load_explicit(&way->original, memory_order_acquire);
		if (atomic_load_explicit(&way->key, memory_order_relaxed) == key)
			return original == (uintptr_t)own ? NULL : (void *)original;
	}
	dl_iterate_phdr(look_for_caller, &search);
	dl_iterate_phdr(look_for_definition, &search);
	keep(row, key, search.found ? search.found : (void *)(uintptr_t)own);
	return search.found;
}

/* --- Who reports ------------------------------------------------------------------------------ */

static int look_at_library(struct dl_phdr_info *info, size_t size, void *data)
{
	static const char name[] = "_ZN3c104cuda20getCurrentCUDAStreamEa";
	const uintptr_t *address = data;
	struct object object;
	uintptr_t end;

	(void)size;
	if (!contains(info, *address, &end))
		return 0;
	strncpy(library.path, info->dlpi_name, sizeof(library.path) - 1);
	if (read_symbols(info, &object))
		library.current_stream = (current_stream_function *)object_find(
			&object, name, STT_FUNC, NULL);
	atomic_store_explicit(&torch_code.end, end, memory_order_relaxed);
	atomic_store_explicit(&torch_code.start, info->dlpi_addr, memory_order_relaxed);
	return 1;
}

/* The text between quotes behind the first `=` of a line that begins with __version__; a file with
 * nothing but the version is one, too. */
static void take_version(const char *text)
{
	const char *at = strstr(text, "__version__ = '");
	size_t bytes;

	at = at ? at + strlen("__version__ = '") : text;
	bytes = strcspn(at, "'\n");
	if (bytes < sizeof(library.version))
		memcpy(library.version, at, bytes);
}

/* Beside the folder of PyTorch's libraries: version.py of the Python package, build-version of the
 * C++ one. */
static void read_version(void)
{
	static const char *const files[] = {"../version.py", "../build-version"};
	char path[sizeof(library.path) + 32], text[1024];

	for (size_t i = 0; i < sizeof(files) / sizeof(*files) && !*library.version; i++) {
		ssize_t n;
		int fd;

		snprintf(path, sizeof(path), "%.*s%s", (int)folder_bytes(library.path),
			library.path, files[i]);
		fd = open(path, O_RDONLY | O_CLOEXEC);
		if (fd < 0)
			continue;
		n = read(fd, text, sizeof(text) - 1);
		close(fd);
		text[n > 0 ? n : 0] = '\0';
		take_version(text);
	}
}

/* At the first report for a CUDA device. */
static void learn(const void *caller)
{
	uintptr_t address = (uintptr_t)caller;
	int untouched = 0;

	if (atomic_load_explicit(&library.state, memory_order_acquire) ||
		!atomic_compare_exchange_strong(&library.state, &untouched, 1))
		return;
	dl_iterate_phdr(look_at_library, &address);
	read_version();
	/* Before 1.13 the number of a stream was shorter. */
	if (library.version[0] < '2' || library.version[0] > '9' || library.version[1] != '.')
		library.current_stream = NULL;
	atomic_store_explicit(&library.state, 2, memory_order_release);
}

static bool is_known(void)
{
	return atomic_load_explicit(&library.state, memory_order_acquire) == 2;
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
		uintptr_t distance =
			(uintptr_t)frame - (uintptr_t)record->frame + MAX_DISTANCE;
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
	event_block_stream(allocator, address, library.current_stream((int8_t)allocator->device).id,
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
		original = (function_##export *)original_of(                                       \
			ROW_##export, (const void *)(export), caller);                             \
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
		original = (function_##export *)original_of(                                       \
			ROW_##export, (const void *)(export), caller);                             \
		if (original)                                                                      \
			original(bytes, allocated, reserved, device);                              \
	}
#define ROW_PASS(export, action)                                                                   \
	EXPORTED pass_function export;                                                             \
	registers export(long object, long b, long c, long d, long e, long f)                      \
	{                                                                                          \
		pass_function *original = (pass_function *)original_of(                            \
			ROW_##export, (const void *)(export), __builtin_return_address(0));        \
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

			pool.stream = device < 0 ? 0 : library.current_stream((int8_t)device).id;
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
