#include "record/unwind/code.h"

#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <pthread.h>
#include <string.h>

#include "record/unwind/area.h"
#include "record/unwind/cfi.h"
#include "record/unwind/row.h"
#include "record/unwind/unwind.h"

#define MAX_OBJECTS    1024u
#define ONE_GENERATION ((uint64_t)1 << CODE_CLOSERS_BITS)

/* glibc's struct dl_find_object, which older headers lack. */
struct found_object {
	unsigned long long flags;
	void *map_start, *map_end;
	struct link_map *link_map;
	void *eh_frame_hdr;
	unsigned long long reserved[7];
};

typedef int find_object_function(void *address, struct found_object *found);

_Atomic uint64_t code_word = ONE_GENERATION;

static find_object_function *find_object; /* glibc 2.35 and later */
static _Atomic bool any_unloaded;
static __thread unsigned int n_closing __attribute__((tls_model("initial-exec")));

/* Objects that rows came from. The lock is a leaf, taken also under the loader's. */
static struct {
	pthread_mutex_t lock;
	struct {
		struct cfi_object object;
		uint64_t scan;	/* the last that saw it */
	} objects[MAX_OBJECTS]; /* lock */
	unsigned int n_objects; /* lock */
	uint64_t n_scans;	/* lock */
	bool too_many;		/* lock: some are not noted */
} known = {.lock = PTHREAD_MUTEX_INITIALIZER};

void code_init(void)
{
	find_object = (find_object_function *)dlsym(RTLD_DEFAULT, "_dl_find_object");
	if (!find_object)
		dlerror(); /* the program is not to hear of it */
}

static bool is_same(const struct cfi_object *a, const struct cfi_object *b)
{
	return a->start == b->start && a->end == b->end && a->index == b->index;
}

/* What dl_iterate_phdr says of one object. True when pc is in a segment of it. */
static bool read_object(const struct dl_phdr_info *info, uint64_t pc, struct cfi_object *object)
{
	bool found = false;

	*object = (struct cfi_object){.start = UINT64_MAX};
	for (unsigned int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
		uint64_t start = info->dlpi_addr + segment->p_vaddr;

		if (segment->p_type == PT_GNU_EH_FRAME)
			object->index = (const uint8_t *)(uintptr_t)start;
		if (segment->p_type != PT_LOAD)
			continue;
		found |= pc - start < segment->p_memsz;
		if (start < object->start)
			object->start = start;
		if (start + segment->p_memsz > object->end)
			object->end = start + segment->p_memsz;
	}
	return found;
}

struct lookup {
	uint64_t pc;
	struct cfi_object object;
};

static int look_at_object(struct dl_phdr_info *info, size_t size, void *data)
{
	struct lookup *lookup = data;

	(void)size;
	return read_object(info, lookup->pc, &lookup->object);
}

/* Notes the object that is loaded now. One noted before in its place is gone, though no dlclose was
 * seen: then nothing that was found out counts any more. */
static void note_object(const struct cfi_object *object)
{
	bool stale = false, noted = false;

	pthread_mutex_lock(&known.lock);
	for (unsigned int i = 0; i < known.n_objects;) {
		const struct cfi_object *other = &known.objects[i].object;

		if (is_same(other, object)) {
			noted = true;
		} else if (other->start < object->end && object->start < other->end) {
			stale = true;
			known.objects[i] = known.objects[--known.n_objects];
			continue;
		}
		i++;
	}
	if (!noted && known.n_objects < MAX_OBJECTS)
		known.objects[known.n_objects++].object = *object;
	else if (!noted)
		known.too_many = true;
	pthread_mutex_unlock(&known.lock);
	if (stale)
		atomic_fetch_add(&code_word, ONE_GENERATION);
}

/* The object that was noted around pc, if the loader still has it. */
static bool recall_object(uint64_t pc, const struct found_object *found, struct cfi_object *object)
{
	bool good = false;

	pthread_mutex_lock(&known.lock);
	for (unsigned int i = 0; i < known.n_objects; i++) {
		*object = known.objects[i].object;
		if (pc < object->start || pc >= object->end)
			continue;
		good = object->index == found->eh_frame_hdr &&
		       object->start >= (uintptr_t)found->map_start &&
		       object->end <= (uintptr_t)found->map_end;
		break;
	}
	pthread_mutex_unlock(&known.lock);
	return good;
}

/* libunwind also looks at the code itself: signal trampolines and PLT entries. */
static uint32_t row_without_information(uint64_t pc)
{
	static const uint8_t trampoline[] = {0x48, 0xc7, 0xc0, 0x0f, 0x00, 0x00, 0x00, 0x0f, 0x05};
	uint8_t code[17];

	if (!area_copy(code, pc, sizeof(code)))
		return ROW_BAD;
	for (unsigned int i = 0; i < 2; i++) {
		const uint8_t *at = code + i;

		if (!memcmp(at, trampoline, sizeof(trampoline)) ||
			(at[0] == 0xff && at[1] == 0x25 && at[6] == 0x68 && at[11] == 0xe9))
			return ROW_BAD;
	}
	return row_make(ROW_NONE, 0, 0);
}

uint32_t code_row(uint64_t pc)
{
	struct lookup lookup = {.pc = pc};
	struct found_object found;
	uint32_t row;

	if (find_object && find_object((void *)(uintptr_t)pc, &found))
		return row_without_information(pc);
	if (!find_object || !recall_object(pc, &found, &lookup.object)) {
		/* libunwind sees what dl_iterate_phdr shows: not the namespaces of dlmopen. */
		if (!dl_iterate_phdr(look_at_object, &lookup))
			return find_object ? ROW_BAD : row_without_information(pc);
		note_object(&lookup.object);
	}
	row = cfi_row(&lookup.object, pc);
	return row_kind(row) == ROW_NONE ? row_without_information(pc) : row;
}

bool code_is_after_call(uint64_t pc)
{
	static const uint8_t lengths[] = {2, 3, 4, 6, 7}; /* of call *operand */
	uint8_t code[7];

	if (!area_copy(code, pc - sizeof(code), sizeof(code)))
		return false;
	if (code[2] == 0xe8)
		return true;
	for (unsigned int i = 0; i < sizeof(lengths); i++) {
		const uint8_t *at = code + sizeof(code) - lengths[i];

		if (at[0] == 0xff && (at[1] >> 3 & 7) == 2)
			return true;
	}
	return false;
}

static int read_counters(struct dl_phdr_info *info, size_t size, void *data)
{
	struct unwind_unload *unload = data;

	(void)size;
	unload->n_loaded = info->dlpi_adds;
	unload->n_unloaded = info->dlpi_subs;
	return 1;
}

void unwind_unload_begin(struct unwind_unload *unload)
{
	n_closing++;
	atomic_fetch_add(&code_word, 1);
	*unload = (struct unwind_unload){0};
	dl_iterate_phdr(read_counters, unload);
}

static int mark_object(struct dl_phdr_info *info, size_t size, void *data)
{
	const uint64_t *scan = data;
	struct cfi_object object;

	(void)size;
	read_object(info, 0, &object);
	pthread_mutex_lock(&known.lock);
	for (unsigned int i = 0; i < known.n_objects; i++)
		if (is_same(&known.objects[i].object, &object))
			known.objects[i].scan = *scan;
	pthread_mutex_unlock(&known.lock);
	return 0;
}

/* True when an object is gone that rows came from. */
static bool drop_unloaded(void)
{
	bool gone;
	uint64_t scan;

	pthread_mutex_lock(&known.lock);
	scan = ++known.n_scans;
	pthread_mutex_unlock(&known.lock);
	dl_iterate_phdr(mark_object, &scan);
	pthread_mutex_lock(&known.lock);
	gone = known.too_many;
	for (unsigned int i = 0; i < known.n_objects;) {
		if (known.objects[i].scan < scan) {
			gone = true;
			known.objects[i] = known.objects[--known.n_objects];
		} else {
			i++;
		}
	}
	pthread_mutex_unlock(&known.lock);
	return gone;
}

void unwind_unload_end(const struct unwind_unload *unload)
{
	struct unwind_unload now = {0};
	bool stale = false;
	int saved = errno;

	dl_iterate_phdr(read_counters, &now);
	if (now.n_unloaded != unload->n_unloaded) {
		atomic_store_explicit(&any_unloaded, true, memory_order_relaxed);
		/* What was loaded meanwhile may be in the place of what was unloaded. */
		stale = drop_unloaded() || now.n_loaded != unload->n_loaded;
	}
	atomic_fetch_add(&code_word, stale ? ONE_GENERATION - 1 : UINT64_MAX);
	n_closing--;
	errno = saved;
}

bool unwind_is_unloaded(void)
{
	return atomic_load_explicit(&any_unloaded, memory_order_relaxed) ||
	       atomic_load_explicit(&code_word, memory_order_relaxed) & CODE_CLOSERS;
}

void code_forget(void)
{
	uint64_t generation = atomic_load(&code_word) >> CODE_CLOSERS_BITS;

	pthread_mutex_init(&known.lock, NULL);
	known.n_objects = 0;
	known.too_many = false;
	atomic_store(&code_word, (generation + 1) << CODE_CLOSERS_BITS | n_closing);
}
