/* Sources of tests/cases/symbols.sh: with LIBRARY a library that allocates through a callback, else
 * the program, which calls it; "generated" as the first argument has the call go through code that
 * no file holds. */
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

#ifdef __x86_64__
/* push %rbp; mov %rsp,%rbp; call *%rdi; pop %rbp; ret */
static const unsigned char code[] = {0x55, 0x48, 0x89, 0xe5, 0xff, 0xd7, 0x5d, 0xc3};
#else
/* stp x29, x30, [sp, #-16]!; mov x29, sp; blr x0; ldp x29, x30, [sp], #16; ret */
static const unsigned int code[] = {0xa9bf7bfd, 0x910003fd, 0xd63f0000, 0xa8c17bfd, 0xd65f03c0};
#endif

static int (*generated)(ask *call);

static int through_generated(void)
{
	int result = generated(allocate);

	n_returns++;
	return result;
}

int main(int argc, char **argv)
{
	void *context, *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			       -1, 0);
	int result;

	memcpy(page, code, sizeof(code));
	mprotect(page, 4096, PROT_READ | PROT_EXEC);
	__builtin___clear_cache((char *)page, (char *)page + sizeof(code));
	memcpy(&generated, &page, sizeof(page));
	if (cuInit(0) || cuDevicePrimaryCtxRetain(&context, 0) || cuCtxSetCurrent(context))
		return 1;
	result = library_call(
		argc > 1 && !strcmp(argv[1], "generated") ? through_generated : allocate);
	puts(result ? "failed" : "done");
	return result;
}
#endif
