#include "hooks/nvtx.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <wchar.h>

#include "record/arena.h"
#include "record/phases.h"

/* Modules of functions, and the functions taken, by their numbers in NVTX. */
enum { MODULE_CORE = 1, MODULE_DOMAINS = 5 };

enum {
	CORE_MARK_EX = 1,
	CORE_MARK_A = 2,
	CORE_MARK_W = 3,
	CORE_START_EX = 4,
	CORE_START_A = 5,
	CORE_START_W = 6,
	CORE_END = 7,
	CORE_PUSH_EX = 8,
	CORE_PUSH_A = 9,
	CORE_PUSH_W = 10,
	CORE_POP = 11,
};

enum {
	DOMAIN_MARK_EX = 1,
	DOMAIN_START_EX = 2,
	DOMAIN_END = 3,
	DOMAIN_PUSH_EX = 4,
	DOMAIN_POP = 5,
	DOMAIN_REGISTER_A = 10,
	DOMAIN_REGISTER_W = 11,
	DOMAIN_CREATE_A = 12,
	DOMAIN_CREATE_W = 13,
};

/* What push and pop return where nobody counts the depth. */
#define NO_DEPTH (-2)

enum { MESSAGE_ASCII = 1, MESSAGE_WIDE = 2, MESSAGE_REGISTERED = 3 };

/* How NVTX describes an event. */
struct attributes {
	uint16_t version;
	uint16_t struct_bytes;
	uint32_t category;
	int32_t color_type;
	uint32_t color;
	int32_t payload_type;
	int32_t reserved;
	uint64_t payload;
	int32_t message_type;
	union {
		const char *ascii;
		const wchar_t *wide;
		const char *registered; /* as register_text returned it */
	} message;
};

/* --- Texts that the program has a handle of --- */

#define N_TEXTS 4096u /* a power of two */

/* A handle, of a domain or of a registered string, is the text itself, kept for ever and only once.
 */
static struct {
	pthread_mutex_t lock;	    /* a leaf: nothing is called under it but the arena */
	struct arena arena;	    /* lock */
	unsigned int n;		    /* lock */
	const char *items[N_TEXTS]; /* lock; by hash, the next free place on collision */
} texts = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* Of as much of the text as is kept, whose length goes to *bytes. */
static uint32_t hash_of(const char *text, size_t *bytes)
{
	uint32_t hash = 2166136261u;
	size_t n = 0;

	for (; n < PHASES_MAX_NAME && text[n]; n++)
		hash = (hash ^ (unsigned char)text[n]) * 16777619u;
	*bytes = n;
	return hash;
}

static const char *keep(const char *text, size_t bytes)
{
	char *kept = arena_alloc_forever(&texts.arena, bytes + 1);

	if (kept) {
		memcpy(kept, text, bytes);
		kept[bytes] = '\0';
		texts.n++;
	}
	return kept;
}

/* NULL when there are too many: NVTX takes it for the default domain, or for no text. */
static const char *intern(const char *text)
{
	size_t bytes;
	uint32_t at = hash_of(text, &bytes);
	const char *found;

	pthread_mutex_lock(&texts.lock);
	for (;; at++) {
		found = texts.items[at % N_TEXTS];
		if (!found || (strlen(found) == bytes && !memcmp(found, text, bytes)))
			break;
	}
	if (!found && texts.n < N_TEXTS / 2)
		found = texts.items[at % N_TEXTS] = keep(text, bytes);
	pthread_mutex_unlock(&texts.lock);
	return found;
}

/* --- From NVTX's texts to ours --- */

#define NAME_BYTES (PHASES_MAX_NAME + 1)

static char *put_utf8(char *to, uint32_t c)
{
	if (c < 0x80) {
		*to++ = (char)c;
		return to;
	}
	if (c < 0x800) {
		*to++ = (char)(0xc0 | c >> 6);
	} else {
		if (c < 0x10000) {
			*to++ = (char)(0xe0 | c >> 12);
		} else {
			*to++ = (char)(0xf0 | (c >> 18 & 7));
			*to++ = (char)(0x80 | (c >> 12 & 0x3f));
		}
		*to++ = (char)(0x80 | (c >> 6 & 0x3f));
	}
	*to++ = (char)(0x80 | (c & 0x3f));
	return to;
}

static const char *narrow(char name[NAME_BYTES], const wchar_t *wide)
{
	char *to = name;

	while (wide && *wide && to + 4 <= name + PHASES_MAX_NAME)
		to = put_utf8(to, (uint32_t)*wide++);
	*to = '\0';
	return name;
}

static const char *message_of(char name[NAME_BYTES], const struct attributes *attributes)
{
	const char *text = NULL;

	if (!attributes || attributes->struct_bytes < sizeof(*attributes))
		return "";
	if (attributes->message_type == MESSAGE_WIDE)
		return narrow(name, attributes->message.wide);
	if (attributes->message_type == MESSAGE_ASCII)
		text = attributes->message.ascii;
	else if (attributes->message_type == MESSAGE_REGISTERED)
		text = attributes->message.registered;
	return text ? text : "";
}

/* --- What the program calls --- */

static struct phase_event event_of(enum vt_told told, const char *domain, const char *name)
{
	return (struct phase_event){
		.told = told,
		.name = name ? name : "",
		.domain = domain ? domain : "",
	};
}

static void mark(const char *domain, const char *name)
{
	struct phase_event event = event_of(VT_TOLD_NVTX, domain, name);

	phases_mark(&event);
}

static int push(const char *domain, const char *name)
{
	struct phase_event event = event_of(VT_TOLD_NVTX, domain, name);

	phases_begin(&event);
	return NO_DEPTH;
}

static int domain_pop(const char *domain)
{
	struct phase_event event = event_of(VT_TOLD_NVTX, domain, NULL);

	phases_end(&event);
	return NO_DEPTH;
}

/* Returns the range's number, by which it is ended. */
static uint64_t start(const char *domain, const char *name)
{
	static _Atomic uint64_t last;
	struct phase_event event = event_of(VT_TOLD_NVTX_RANGE, domain, name);

	event.range_id = atomic_fetch_add_explicit(&last, 1, memory_order_relaxed) + 1;
	phases_begin(&event);
	return event.range_id;
}

static void end(uint64_t range_id)
{
	struct phase_event event = event_of(VT_TOLD_NVTX_RANGE, NULL, NULL);

	event.range_id = range_id;
	phases_end(&event);
}

static void domain_end(const char *domain, uint64_t range_id)
{
	(void)domain;
	end(range_id);
}

static int pop(void)
{
	return domain_pop(NULL);
}

static void domain_mark_ex(const char *domain, const struct attributes *attributes)
{
	char name[NAME_BYTES];

	mark(domain, message_of(name, attributes));
}

static uint64_t domain_start_ex(const char *domain, const struct attributes *attributes)
{
	char name[NAME_BYTES];

	return start(domain, message_of(name, attributes));
}

static int domain_push_ex(const char *domain, const struct attributes *attributes)
{
	char name[NAME_BYTES];

	return push(domain, message_of(name, attributes));
}

static void mark_ex(const struct attributes *attributes)
{
	domain_mark_ex(NULL, attributes);
}

static uint64_t start_ex(const struct attributes *attributes)
{
	return domain_start_ex(NULL, attributes);
}

static int push_ex(const struct attributes *attributes)
{
	return domain_push_ex(NULL, attributes);
}

static void mark_a(const char *text)
{
	mark(NULL, text);
}

static uint64_t start_a(const char *text)
{
	return start(NULL, text);
}

static int push_a(const char *text)
{
	return push(NULL, text);
}

static void mark_w(const wchar_t *text)
{
	char name[NAME_BYTES];

	mark(NULL, narrow(name, text));
}

static uint64_t start_w(const wchar_t *text)
{
	char name[NAME_BYTES];

	return start(NULL, narrow(name, text));
}

static int push_w(const wchar_t *text)
{
	char name[NAME_BYTES];

	return push(NULL, narrow(name, text));
}

static const char *create_a(const char *text)
{
	return text ? intern(text) : NULL;
}

static const char *create_w(const wchar_t *text)
{
	char name[NAME_BYTES];

	return text ? intern(narrow(name, text)) : NULL;
}

static const char *register_a(const char *domain, const char *text)
{
	(void)domain;
	return create_a(text);
}

static const char *register_w(const char *domain, const wchar_t *text)
{
	(void)domain;
	return create_w(text);
}

/* --- How it is told to NVTX --- */

#define AS_FUNCTION(function) ((nvtx_function *)(uintptr_t)(function))

struct row {
	unsigned int place;
	nvtx_function *function;
};

static void fill(
	const struct nvtx_callbacks *callbacks, int module, const struct row *rows, size_t n_rows)
{
	nvtx_function ***places = NULL;
	unsigned int n_places = 0;

	if (!callbacks->get_module(module, &places, &n_places) || !places)
		return;
	for (size_t i = 0; i < n_rows; i++)
		if (rows[i].place < n_places && places[rows[i].place])
			*places[rows[i].place] = rows[i].function;
}

#define FILL(callbacks, module, ...)                                                               \
	fill(callbacks, module, (const struct row[]){__VA_ARGS__},                                 \
		sizeof((const struct row[]){__VA_ARGS__}) / sizeof(struct row))

__attribute__((visibility("default"))) int InitializeInjectionNvtx2(nvtx_get_table *get_table)
{
	const struct nvtx_callbacks *callbacks = get_table ? get_table(NVTX_TABLE_CALLBACKS) : NULL;

	if (!callbacks || callbacks->struct_bytes < sizeof(*callbacks) || !callbacks->get_module)
		return 0;
	FILL(callbacks, MODULE_CORE, {CORE_MARK_EX, AS_FUNCTION(mark_ex)},
		{CORE_MARK_A, AS_FUNCTION(mark_a)}, {CORE_MARK_W, AS_FUNCTION(mark_w)},
		{CORE_START_EX, AS_FUNCTION(start_ex)}, {CORE_START_A, AS_FUNCTION(start_a)},
		{CORE_START_W, AS_FUNCTION(start_w)}, {CORE_END, AS_FUNCTION(end)},
		{CORE_PUSH_EX, AS_FUNCTION(push_ex)}, {CORE_PUSH_A, AS_FUNCTION(push_a)},
		{CORE_PUSH_W, AS_FUNCTION(push_w)}, {CORE_POP, AS_FUNCTION(pop)});
	FILL(callbacks, MODULE_DOMAINS, {DOMAIN_MARK_EX, AS_FUNCTION(domain_mark_ex)},
		{DOMAIN_START_EX, AS_FUNCTION(domain_start_ex)},
		{DOMAIN_END, AS_FUNCTION(domain_end)},
		{DOMAIN_PUSH_EX, AS_FUNCTION(domain_push_ex)},
		{DOMAIN_POP, AS_FUNCTION(domain_pop)}, {DOMAIN_REGISTER_A, AS_FUNCTION(register_a)},
		{DOMAIN_REGISTER_W, AS_FUNCTION(register_w)},
		{DOMAIN_CREATE_A, AS_FUNCTION(create_a)}, {DOMAIN_CREATE_W, AS_FUNCTION(create_w)});
	return 1;
}

void nvtx_forget(void)
{
	pthread_mutex_init(&texts.lock, NULL);
}
