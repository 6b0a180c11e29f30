/*
 * Writes a trace as a PyTorch training leaves it, of a given length, with the recorder's own
 * writer: every step takes and gives back the same blocks on two threads, of which the second one
 * runs backwards, with a few copies, some memory of the driver and gaps as a real host makes them.
 * Stacks lie in the libraries of this program, so that they have symbols.
 *
 *   make_trace FILE [EVENTS [LIVE]]    LIVE blocks stay from the first step to the last
 */
#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "trace/near.h"
#include "trace/writer.h"

#define N_OPS	    240u /* of a step forward, and as many backward */
#define N_STACKS    (3 * N_OPS)
#define N_FRAMES    42u
#define N_PYTHON    6u
#define N_CODES	    200u
#define N_SIZES	    48u
#define GRAIN	    512u
#define SEGMENT	    (20u << 20)
#define FIRST_PLACE 0x7f4000000000u

static struct vt_lane *lanes[2];
static uint64_t now_ns = 1000000;
static uint64_t state = 88172645463325252u;
static uint64_t n_written;

static uint64_t next_random(void)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state;
}

/* Some microseconds, now and then many: a host that submits work, and waits once a step. */
static void pass_time(void)
{
	uint64_t x = next_random();

	now_ns += 900 + x % 4096 + (x >> 16) % 4096 + ((x >> 40) % 16 ? 0 : 20000);
}

/* Free places of one size, the last one given back taken first; all from segments of the driver. */
struct size_class {
	uint64_t bytes;
	uint64_t *free;
	size_t n_free;
	size_t room;
};

static struct size_class classes[N_SIZES];
static uint64_t next_place = FIRST_PLACE, segment_left;

static void take_segment(uint64_t bytes)
{
	struct vt_rec_alloc record = {
		.time_ns = now_ns,
		.api_id = 1,
		.kind = VT_KIND_LINEAR,
		.context_id = 1,
		.stack_id = 1 + next_random() % N_STACKS,
		.duration_ns = 40000 + next_random() % 100000,
	};

	next_place = (next_place + (2u << 20) - 1) & ~(uint64_t)((2u << 20) - 1);
	record.address = next_place;
	record.bytes = segment_left = bytes > SEGMENT ? bytes : SEGMENT;
	vt_put_alloc(lanes[0], &record);
	n_written++;
	pass_time();
}

static uint64_t take_place(struct size_class *class)
{
	uint64_t place;

	if (class->n_free)
		return class->free[--class->n_free];
	if (segment_left < class->bytes)
		take_segment(class->bytes);
	place = next_place;
	next_place += class->bytes;
	segment_left -= class->bytes;
	return place;
}

static void give_place(struct size_class *class, uint64_t place)
{
	if (class->n_free == class->room) {
		class->room = class->room ? 2 * class->room : 16;
		class->free = realloc(class->free, class->room * sizeof(*class->free));
	}
	class->free[class->n_free++] = place;
}

static uint64_t take(unsigned int thread, unsigned int op, unsigned int stack)
{
	struct size_class *class = &classes[op * 7 % N_SIZES];
	struct vt_rec_block_alloc record = {
		.allocator_id = 1,
		.address = take_place(class),
		.bytes = class->bytes,
		.stack_id = 1 + stack,
	};

	pass_time();
	record.time_ns = now_ns;
	vt_near_put_alloc(lanes[thread], &record);
	n_written++;
	return record.address;
}

static void give(unsigned int thread, unsigned int op, uint64_t address)
{
	struct size_class *class = &classes[op * 7 % N_SIZES];
	struct vt_rec_block_free record = {
		.allocator_id = 1,
		.address = address,
		.bytes = class->bytes,
	};

	pass_time();
	record.time_ns = now_ns;
	vt_near_put_free(lanes[thread], &record);
	n_written++;
	give_place(class, address);
}

static void copy(uint64_t destination, unsigned int stack)
{
	struct vt_rec_copy record = {
		.api_id = 2,
		.direction = VT_DIR_H2D,
		.flags = VT_COPY_ASYNC,
		.dst = destination,
		.src = 0x7e0000000000u,
		.bytes = 65536,
		.stack_id = 1 + stack,
		.duration_ns = 5000 + next_random() % 3000,
	};

	pass_time();
	record.time_ns = now_ns;
	vt_put_copy(lanes[0], &record);
	n_written++;
}

/* Activations live from the forward to the backward run; everything else is short-lived. */
static void step(uint64_t number)
{
	static uint64_t kept[N_OPS];
	uint64_t batch = take(0, 0, 0);

	copy(batch, 0);
	for (unsigned int op = 0; op < N_OPS; op++) {
		uint64_t scratch = op % 3 ? 0 : take(0, op + 11, op);

		kept[op] = take(0, op, op + (number % 64 == 0 && op % 5 == 0 ? N_OPS : 0));
		if (scratch)
			give(0, op + 11, scratch);
	}
	for (unsigned int op = N_OPS; op--;) {
		uint64_t gradient = take(1, op + 3, N_OPS + op);
		uint64_t scratch = op % 2 ? 0 : take(1, op + 5, 2 * N_OPS + op);

		give(1, op, kept[op]);
		if (scratch)
			give(1, op + 5, scratch);
		give(1, op + 3, gradient);
	}
	give(0, 0, batch);
	now_ns += 1500000;
}

static int put_module(struct dl_phdr_info *info, size_t size, void *user)
{
	struct vt_rec_module record = {
		.time_ns = 1000, .bias = info->dlpi_addr, .start = UINT64_MAX};
	const char *path = *info->dlpi_name ? info->dlpi_name : "/proc/self/exe";
	char file[4096];

	(void)size;
	(void)user;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *segment = &info->dlpi_phdr[i];

		if (segment->p_type != PT_LOAD)
			continue;
		if (info->dlpi_addr + segment->p_vaddr < record.start)
			record.start = info->dlpi_addr + segment->p_vaddr;
		if (info->dlpi_addr + segment->p_vaddr + segment->p_memsz > record.end)
			record.end = info->dlpi_addr + segment->p_vaddr + segment->p_memsz;
	}
	if (!realpath(path, file))
		return 0;
	record.path = (struct vt_text){file, strlen(file)};
	vt_put_module(lanes[0], &record);
	return 0;
}

static void put_stacks(void)
{
	static const char *const names[] = {"qsort", "printf", "getaddrinfo", "regexec", "glob",
		"strtod", "malloc", "vfprintf", "fopen", "realpath"};
	void *self = dlopen(NULL, RTLD_NOW);

	for (uint64_t code = 1; code <= N_CODES; code++) {
		char function[32];
		int n = snprintf(function, sizeof(function), "Layer%u.forward", (unsigned int)code);
		struct vt_rec_python_code record = {
			.code_id = code,
			.first_line = 10 * code,
			.line_table = VT_LINES_LOCATIONS,
			.file = {"/home/user/model.py", 19},
			.function = {function, (size_t)n},
		};

		vt_put_python_code(lanes[0], &record);
	}
	for (uint64_t stack = 1; stack <= N_STACKS; stack++) {
		uint64_t frames[N_FRAMES], python[N_PYTHON];
		struct vt_rec_stack record = {
			stack, 1000, {frames, N_FRAMES}, {python, N_PYTHON}, 0};

		for (size_t i = 0; i < N_FRAMES; i++)
			frames[i] = (uint64_t)dlsym(self, names[(stack + i) % 10]) + 8 +
				    (i < 8 ? stack % 64 : 0);
		for (size_t i = 0; i < N_PYTHON; i++)
			python[i] = (1 + (stack * 7 + i) % N_CODES) << 32 | VT_PYTHON_ENTRY | 20;
		vt_put_stack(lanes[0], &record);
	}
}

static void put_start(void)
{
	struct vt_rec_process process = {.pid = 1,
		.exe = {"/usr/bin/python3", 16},
		.cmdline = {"python3\0train.py", 17},
		.recorder_version = {VT_VERSION, 5}};
	struct vt_rec_driver driver = {13000, {"libcuda.so.1", 12}};
	struct vt_rec_device device = {0, UINT64_C(140) << 30, 2u << 20, {"GPU", 3}, {"", 0}};
	struct vt_rec_api alloc = {1, {"cuMemAlloc_v2", 13}},
			  copies = {2, {"cuMemcpyHtoDAsync_v2", 20}};
	struct vt_rec_allocator torch = {.time_ns = 1000,
		.allocator_id = 1,
		.layer = VT_LAYER_TORCH,
		.name = {"torch", 5},
		.version = {"2.11.0", 6}};

	vt_put_process(lanes[0], &process);
	vt_put_driver(lanes[0], &driver);
	vt_put_device(lanes[0], &device);
	vt_put_api(lanes[0], &alloc);
	vt_put_api(lanes[0], &copies);
	dl_iterate_phdr(put_module, NULL);
	put_stacks();
	vt_put_allocator(lanes[0], &torch);
}

int main(int argc, char **argv)
{
	static struct vt_writer writer;
	uint64_t n_events = argc > 2 ? strtoull(argv[2], NULL, 10) : 1000000;
	uint64_t n_live = argc > 3 ? strtoull(argv[3], NULL, 10) : 1000;
	struct vt_writer_options options = {0};

	if (argc < 2 || vt_writer_open(&writer, argv[1], &options))
		return 1;
	lanes[0] = vt_writer_lane(&writer, 100, 0);
	lanes[1] = vt_writer_lane(&writer, 101, 0);
	if (!lanes[0] || !lanes[1])
		return 1;
	for (unsigned int i = 0; i < N_SIZES; i++)
		classes[i].bytes = GRAIN * (1 + (UINT64_C(3) << (i % 12)) + 7 * i);
	put_start();
	for (uint64_t i = 0; i < n_live; i++)
		take(0, (unsigned int)(i % N_SIZES), (unsigned int)(i % N_STACKS));
	for (uint64_t number = 0; n_written < n_events; number++)
		step(number);
	vt_put_end(lanes[0], &(struct vt_rec_end){now_ns, VT_END_EXIT, 0});
	return vt_writer_close(&writer) != 0;
}
