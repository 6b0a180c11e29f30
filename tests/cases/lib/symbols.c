/* Sources of tests/cases/symbols.sh: with LIBRARY a library that allocates through a callback, else
 * the program, which calls it; "generated" as the first argument has the call go through code that
 * no file holds, "unframed" and "lost" through such code that makes no frame, or spoils rbp. */
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

typedef int ask(void);

int library_call(ask *call);

#ifdef LIBRARY
/* Something to do after a call, so that it is none from the last line. */
static volatile int n_returns;

static inline __attribute__((always_inline)) int library_inlined(ask *call)
{
	int result = call();

	n_returns += LIBRARY;
	return result;
}

__attribute__((noinline)) static int library_static(ask *call)
{
	return library_inlined(call);
}

int library_call(ask *call)
{
	int result = library_static(call);

	n_returns++;
	return result;
}
#else
int cuInit(unsigned int flags);
int cuDevicePrimaryCtxRetain(void **context, int device);
int cuCtxSetCurrent(void *context);
int cuMemAlloc_v2(uint64_t *address, size_t bytes);

static volatile int n_returns;

static int allocate(void)
{
	uint64_t address;
	int result = cuMemAlloc_v2(&address, 1 << 20);

	n_returns++;
	return result;
}

static const struct {
	const char *name;
#ifdef __x86_64__
	unsigned char code[16];
#else
	unsigned int code[8];
#endif
} kinds[] = {
#ifdef __x86_64__
	/* push %rbp; mov %rsp,%rbp; call *%rdi; pop %rbp; ret */
	{"generated", {0x55, 0x48, 0x89, 0xe5, 0xff, 0xd7, 0x5d, 0xc3}},
	/* sub $8,%rsp; call *%rdi; add $8,%rsp; ret */
	{"unframed", {0x48, 0x83, 0xec, 8, 0xff, 0xd7, 0x48, 0x83, 0xc4, 8, 0xc3}},
	/* push %rbp; mov $1,%ebp; call *%rdi; pop %rbp; ret */
	{"lost", {0x55, 0xbd, 1, 0, 0, 0, 0xff, 0xd7, 0x5d, 0xc3}},
#else
	/* stp x29, x30, [sp, #-16]!; mov x29, sp; blr x0; ldp x29, x30, [sp], #16; ret */
	{"generated", {0xa9bf7bfd, 0x910003fd, 0xd63f0000, 0xa8c17bfd, 0xd65f03c0}},
#endif
};

static int (*generated)(ask *call);

static int through_generated(void)
{
	int result = generated(allocate);

	n_returns++;
	return result;
}

static void generate(const char *name)
{
	void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	for (unsigned int i = 0; i < sizeof(kinds) / sizeof(*kinds); i++)
		if (!strcmp(kinds[i].name, name))
			memcpy(page, kinds[i].code, sizeof(kinds[i].code));
	mprotect(page, 4096, PROT_READ | PROT_EXEC);
	__builtin___clear_cache((char *)page, (char *)page + sizeof(kinds->code));
	memcpy(&generated, &page, sizeof(page));
}

int main(int argc, char **argv)
{
	void *context;
	int result;

	if (argc > 1)
		generate(argv[1]);
	if (cuInit(0) || cuDevicePrimaryCtxRetain(&context, 0) || cuCtxSetCurrent(context))
		return 1;
	result = library_call(argc > 1 ? through_generated : allocate);
	puts(result ? "failed" : "done");
	return result;
}
#endif
