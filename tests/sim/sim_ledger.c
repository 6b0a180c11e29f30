/* What the program did: counted where it happens, read by tests, written as JSON at exit. */
#include "sim.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct cusim_kind_ledger *kind_of(const struct sim_device *dev, int kind)
{
	return &sim.ledger.devices[dev->ordinal].kinds[kind];
}

void sim_ledger_alloc(const struct sim_device *dev, int kind, u64 bytes)
{
	struct cusim_kind_ledger *ledger = kind_of(dev, kind);

	ledger->allocations++;
	ledger->live_count++;
	ledger->live_bytes += bytes;
	if (ledger->live_bytes > ledger->peak_live_bytes)
		ledger->peak_live_bytes = ledger->live_bytes;
}

void sim_ledger_free(const struct sim_device *dev, int kind, u64 bytes, bool implicit)
{
	struct cusim_kind_ledger *ledger = kind_of(dev, kind);

	if (implicit)
		ledger->implicit_frees++;
	else
		ledger->frees++;
	ledger->live_count--;
	ledger->live_bytes -= bytes;
}

void sim_ledger_failed(CUcontext ctx, int kind)
{
	if (ctx)
		kind_of(ctx->dev, kind)->failed++;
	else
		sim.ledger.failed_elsewhere++;
}

void sim_ledger_traffic(struct cusim_traffic *traffic, u64 bytes)
{
	traffic->calls++;
	traffic->bytes += bytes;
}

static unsigned int size_class(u64 bytes)
{
	return bytes ? 64u - (unsigned int)__builtin_clzll(bytes) : 0;
}

void sim_ledger_copy(const struct sim_device *dev, enum cusim_direction direction,
	enum cusim_host host, u64 bytes)
{
	sim_ledger_traffic(&sim.ledger.devices[dev->ordinal].copies[direction], bytes);
	sim_ledger_traffic(&sim.ledger.copies[direction][host][size_class(bytes)], bytes);
}

/* What is not counted as it happens. */
static void complete(struct cusim_device_ledger *ledger, const struct sim_device *dev)
{
	const u64 *owned = ledger->owned_bytes;

	ledger->footprint_bytes = owned[CUSIM_BY_CONTEXT] + owned[CUSIM_BY_LOCAL_MEMORY];
	ledger->pool_reserved_bytes = owned[CUSIM_BY_POOLS];
	ledger->graph_reserved_bytes = dev->graph_pool->reserved_bytes;
	ledger->graph_used_bytes = dev->graph_pool->used_bytes;
	ledger->total_bytes = dev->total_bytes;
	ledger->other_bytes = sim_others_use(dev);
	ledger->free_bytes = ledger->total_bytes - ledger->other_bytes - ledger->page_bytes;
}

void cusim_ledger_get(struct cusim_ledger *out)
{
	pthread_mutex_lock(&sim.lock);
	*out = sim.ledger;
	for (u64 i = 0; i < out->n_devices; i++)
		complete(&out->devices[i], &sim.devices[i]);
	pthread_mutex_unlock(&sim.lock);
}

static const char *const kind_names[CUSIM_N_KINDS] = {
	"linear", "managed", "pool", "vmm", "array", "pinned", "registered", "graph", "shared"};
static const char *const owner_names[CUSIM_N_OWNERS] = {"linear", "array", "vmm", "pool", "graph",
	"context", "local_memory", "device_heap", "modules", "graph_exec", "green"};
static const char *const migration_names[CUSIM_N_MIGRATIONS] = {"prefetch", "advise", "discard"};
static const char *const direction_names[CUSIM_N_DIRECTIONS] = {"h2d", "d2h", "d2d", "p2p", "h2h"};
static const char *const host_names[CUSIM_N_HOSTS] = {
	"\"pageable\"", "\"registered\"", "\"pinned\"", "\"managed\"", "null"};

static void write_number(FILE *file, const char *key, u64 value, const char *end)
{
	fprintf(file, "\"%s\": %llu%s", key, (unsigned long long)value, end);
}

static void write_traffic(FILE *file, const char *key, const struct cusim_traffic *traffic)
{
	fprintf(file, "\"%s\": {", key);
	write_number(file, "calls", traffic->calls, ", ");
	write_number(file, "bytes", traffic->bytes, "}");
}

static void write_copies(
	FILE *file, const struct cusim_traffic *copies, const struct cusim_traffic *sets)
{
	fprintf(file, "\"copies\": {");
	for (int i = 0; i < CUSIM_N_DIRECTIONS; i++) {
		write_traffic(file, direction_names[i], &copies[i]);
		fputs(i + 1 < CUSIM_N_DIRECTIONS ? ", " : "}, ", file);
	}
	write_traffic(file, "sets", sets);
}

static void write_copies_by(FILE *file, const struct cusim_ledger *ledger)
{
	bool first = true;

	fputs("\"copies_by\": [", file);
	for (int i = 0; i < CUSIM_N_DIRECTIONS * CUSIM_N_HOSTS * CUSIM_N_SIZES; i++) {
		const struct cusim_traffic *traffic = &ledger->copies[0][0][0] + i;

		if (!traffic->calls)
			continue;
		fprintf(file, "%s{\"direction\": \"%s\", \"host_kind\": %s, ", first ? "" : ",\n",
			direction_names[i / CUSIM_N_SIZES / CUSIM_N_HOSTS],
			host_names[i / CUSIM_N_SIZES % CUSIM_N_HOSTS]);
		write_number(file, "size_class", (u64)(i % CUSIM_N_SIZES), ", ");
		write_number(file, "calls", traffic->calls, ", ");
		write_number(file, "bytes", traffic->bytes, "}");
		first = false;
	}
	fputs("],\n", file);
}

static void write_owners(FILE *file, const char *key, const u64 *owned, int first, int end)
{
	fprintf(file, "\"%s\": {", key);
	for (int i = first; i < end; i++)
		write_number(file, owner_names[i], owned[i], i + 1 < end ? ", " : "},\n  ");
}

static void write_kind(FILE *file, const char *key, const struct cusim_kind_ledger *kind)
{
	fprintf(file, "\"%s\": {", key);
	write_number(file, "live_bytes", kind->live_bytes, ", ");
	write_number(file, "live_count", kind->live_count, ", ");
	write_number(file, "peak_live_bytes", kind->peak_live_bytes, ", ");
	write_number(file, "allocations", kind->allocations, ", ");
	write_number(file, "frees", kind->frees, ", ");
	write_number(file, "implicit_frees", kind->implicit_frees, ", ");
	write_number(file, "failed", kind->failed, "},\n  ");
}

static void write_device(
	FILE *file, const struct cusim_device_ledger *device, unsigned char machine_number)
{
	fputs("{", file);
	write_number(file, "machine_number", machine_number, ", ");
	for (int i = 0; i < CUSIM_N_KINDS; i++)
		write_kind(file, kind_names[i], &device->kinds[i]);
	write_number(file, "page_bytes", device->page_bytes, ", ");
	write_number(file, "peak_page_bytes", device->peak_page_bytes, ", ");
	write_number(file, "footprint_bytes", device->footprint_bytes, ", ");
	write_number(file, "pool_reserved_bytes", device->pool_reserved_bytes, ",\n  ");
	write_number(file, "total_bytes", device->total_bytes, ", ");
	write_number(file, "other_bytes", device->other_bytes, ", ");
	write_number(file, "free_bytes", device->free_bytes, ",\n  ");
	write_owners(file, "pages", device->owned_bytes, 0, CUSIM_BY_CONTEXT);
	write_owners(file, "untracked", device->owned_bytes, CUSIM_BY_CONTEXT, CUSIM_N_OWNERS);
	write_number(file, "graph_reserved_bytes", device->graph_reserved_bytes, ", ");
	write_number(file, "graph_used_bytes", device->graph_used_bytes, ", ");
	write_number(file, "graph_launches", device->graph_launches, ",\n  ");
	write_number(file, "shared_told_bytes", device->shared_told_bytes, ", ");
	write_copies(file, device->copies, &device->sets);
	fputs("}", file);
}

static void write_ledger(FILE *file, const struct cusim_ledger *ledger)
{
	struct cusim_device_ledger all = {0};

	fputs("{", file);
	write_number(file, "pid", (u64)getpid(), ",\n\"devices\": [");
	for (u64 i = 0; i < ledger->n_devices; i++) {
		const struct cusim_device_ledger *device = &ledger->devices[i];

		fputs(i ? ",\n" : "\n", file);
		write_device(file, device, sim.machine_number[i]);
		for (int d = 0; d < CUSIM_N_DIRECTIONS; d++) {
			all.copies[d].calls += device->copies[d].calls;
			all.copies[d].bytes += device->copies[d].bytes;
		}
		all.sets.calls += device->sets.calls;
		all.sets.bytes += device->sets.bytes;
	}
	fputs("\n],\n", file);
	write_copies(file, all.copies, &all.sets);
	fputs(",\n", file);
	write_copies_by(file, ledger);
	write_traffic(file, "batches", &ledger->batches);
	fputs(", \"migrations\": {", file);
	for (int i = 0; i < CUSIM_N_MIGRATIONS; i++) {
		write_traffic(file, migration_names[i], &ledger->migrations[i]);
		fputs(i + 1 < CUSIM_N_MIGRATIONS ? ", " : "},\n", file);
	}
	write_number(file, "failed_frees", ledger->failed_frees, ", ");
	write_number(file, "failed_migrations", ledger->failed_migrations, ", ");
	write_number(file, "failed_launches", ledger->failed_launches, ", ");
	write_number(file, "failed_copies", ledger->failed_copies, ", ");
	write_number(file, "failed_sets", ledger->failed_sets, ", ");
	write_number(file, "failed_elsewhere", ledger->failed_elsewhere, "}\n");
}

/* Expands %p in the pattern to the process id. */
static void expand_path(char *path, size_t size, const char *pattern)
{
	size_t used = 0;

	for (; *pattern && used + 1 < size; pattern++) {
		if (pattern[0] == '%' && pattern[1] == 'p') {
			int n = snprintf(path + used, size - used, "%d", (int)getpid());

			used = used + (size_t)n < size ? used + (size_t)n : size - 1;
			pattern++;
		} else {
			path[used++] = *pattern;
		}
	}
	path[used] = '\0';
}

/* What an exit releases, others have from then on. */
static void leave_machine(void)
{
	for (u32 i = 0; i < sim.n_devices && sim.machine_bytes; i++)
		__atomic_fetch_sub(&sim.machine_bytes[sim.machine_number[i]],
			sim.ledger.devices[i].page_bytes, __ATOMIC_RELAXED);
}

static void write_at_exit(void)
{
	const char *pattern = getenv("CUSIM_LEDGER");
	struct cusim_ledger *ledger;
	char path[4096];
	FILE *file;

	if (!pattern || !*pattern || !sim.initialised)
		return;
	ledger = malloc(sizeof(*ledger));
	if (!ledger)
		return;
	cusim_ledger_get(ledger);
	expand_path(path, sizeof(path), pattern);
	file = fopen(path, "w");
	if (file)
		write_ledger(file, ledger);
	if (!file || fclose(file))
		fprintf(stderr, "simulated CUDA: cannot write %s\n", path);
	free(ledger);
}

__attribute__((destructor)) static void at_exit(void)
{
	write_at_exit();
	leave_machine();
}
