/*
 * Stacks of many shapes for the tests of the unwinder: a random recursion that calls `visit` at
 * many places.
 */
#ifndef VRAMTRACE_TESTS_UNIT_UNWIND_PROGRAM_H
#define VRAMTRACE_TESTS_UNIT_UNWIND_PROGRAM_H

#include <alloca.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>

/* What a program does at one place. */
static void visit(void);

/* One thread's way through the recursion. */
struct path {
	uint64_t random;
	unsigned int kinds; /* how many of the shapes are used */
	int depth;
	jmp_buf back;
	int can_jump;
	int n_signals; /* handlers that run */
};

static __thread struct path path;

static unsigned int choose(unsigned int n)
{
	path.random = path.random * 6364136223846793005u + 1442695040888963407u;
	return (unsigned int)(path.random >> 33) % n;
}

static void descend(void);

/* Neither merged into its caller nor made over for it. */
#ifdef __clang__
#define SHAPE __attribute__((noinline)) static void
#else
#define SHAPE __attribute__((noinline, noclone)) static void
#endif

/* Keeps a call from being the last thing, and so from being a jump. */
#define HERE() __asm__ volatile("" ::: "memory")

SHAPE shape_small(void)
{
	descend();
	HERE();
}

SHAPE shape_big(void)
{
	volatile char room[3000];

	room[choose(sizeof(room))] = 1;
	descend();
	HERE();
}

SHAPE shape_alloca(void)
{
	volatile char *room = alloca(16 + choose(4) * 256);

	room[0] = 1;
	descend();
	HERE();
}

SHAPE shape_realigned(void)
{
	volatile char room[128] __attribute__((aligned(64)));

	room[choose(sizeof(room))] = 1;
	descend();
	HERE();
}

/* With arguments on the stack, and its own size not known: the CFA is a word of the frame. */
SHAPE shape_realigned_more(int a, int b, int c, int d, int e, int f, int g, int h)
{
	volatile char room[64] __attribute__((aligned(64)));
	volatile char *more = alloca((size_t)(16 * (1 + h % 4)));

	room[(a + b + c + d + e + f + g) % 64] = 1;
	more[0] = room[0];
	descend();
	HERE();
}

SHAPE shape_saves(uint64_t a)
{
	uint64_t kept[5] = {a, a ^ 1, a ^ 2, a ^ 3, a ^ 4};

	__asm__ volatile(
		""
		: "+r"(kept[0]), "+r"(kept[1]), "+r"(kept[2]), "+r"(kept[3]), "+r"(kept[4]));
	descend();
	__asm__ volatile("" ::"r"(kept[0]), "r"(kept[1]), "r"(kept[2]), "r"(kept[3]), "r"(kept[4]));
}

static int compare(const void *a, const void *b)
{
	if (!choose(8))
		descend();
	return *(const int *)a - *(const int *)b;
}

SHAPE shape_sort(void)
{
	int numbers[6] = {3, 1, 5, 2, 4, 0};

	qsort(numbers, 6, sizeof(*numbers), compare);
}

SHAPE shape_jump(void)
{
	if (path.can_jump && !choose(3))
		longjmp(path.back, 1);
	descend();
	HERE();
}

static void on_signal(int number)
{
	(void)number;
	path.n_signals++;
	if (choose(2))
		descend();
	else
		visit();
	path.n_signals--;
}

SHAPE shape_signal(void)
{
	if (path.depth > 3)
		raise(choose(2) ? SIGUSR1 : SIGUSR2);
	else
		descend();
	HERE();
}

/* No unwind information: with a frame pointer, and with something else in rbp. */
void shape_bare_with_rbp(void (*function)(void));
void shape_bare_with_data(void (*function)(void));
__asm__(".text\n"
	".type shape_bare_with_rbp, @function\n"
	"shape_bare_with_rbp:\n"
	"	push %rbp\n"
	"	mov %rsp, %rbp\n"
	"	call *%rdi\n"
	"	nop\n"
	"	pop %rbp\n"
	"	ret\n"
	".size shape_bare_with_rbp, . - shape_bare_with_rbp\n"
	".type shape_bare_with_data, @function\n"
	"shape_bare_with_data:\n"
	"	push %rbp\n"
	"	mov $12345, %ebp\n"
	"	call *%rdi\n"
	"	nop\n"
	"	pop %rbp\n"
	"	ret\n"
	".size shape_bare_with_data, . - shape_bare_with_data\n");

SHAPE shape_bare(void)
{
	if (choose(2))
		shape_bare_with_rbp(descend);
	else
		shape_bare_with_data(descend);
	HERE();
}

/* A stack of its own, from the heap or from the kernel, given back at the end. */
static __thread ucontext_t fiber_back[4];
static __thread unsigned int n_fibers;

static void fiber_main(void)
{
	descend();
}

SHAPE shape_fiber(void)
{
	size_t bytes = 256u << 10;
	int mapped = choose(2) == 0;
	ucontext_t here;
	void *stack;

	/* A handler's stack left that way would be used again from its top. */
	if (n_fibers == 4 || path.n_signals) {
		descend();
		HERE();
		return;
	}
	stack = mapped ? mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
				 0)
		       : malloc(bytes);
	getcontext(&here);
	here.uc_stack.ss_sp = stack;
	here.uc_stack.ss_size = bytes;
	here.uc_link = &fiber_back[n_fibers];
	makecontext(&here, fiber_main, 0);
	n_fibers++;
	swapcontext(&fiber_back[n_fibers - 1], &here);
	n_fibers--;
	if (mapped)
		munmap(stack, bytes);
	else
		free(stack);
}

/* The first so many of the shapes. */
enum { N_PLAIN_SHAPES = 7, N_FOLLOWED_SHAPES = 8, N_SHAPES = 11 };

__attribute__((noinline)) static void descend(void)
{
	if (!choose(4))
		visit();
	if (path.depth <= 0)
		return;
	path.depth--;
	switch (choose(path.kinds)) {
	case 0:
		shape_small();
		break;
	case 1:
		shape_big();
		break;
	case 2:
		shape_alloca();
		break;
	case 3:
		shape_realigned();
		break;
	case 4:
		shape_realigned_more(1, 2, 3, 4, 5, 6, 7, (int)choose(8));
		break;
	case 5:
		shape_saves(choose(3));
		break;
	case 6:
		shape_sort();
		break;
	case 7:
		shape_bare();
		break;
	case 8:
		shape_signal();
		break;
	case 9:
		shape_jump();
		break;
	default:
		shape_fiber();
		break;
	}
	path.depth++;
	if (!choose(4))
		visit();
}

/* One recursion: the same seed gives the same stacks again. */
static void run_path(uint64_t seed, unsigned int kinds, int depth)
{
	unsigned int fibers = n_fibers;

	path.random = seed * 0x9e3779b97f4a7c15u;
	path.kinds = kinds;
	path.depth = depth;
	path.can_jump = 1;
	path.n_signals = 0;
	if (setjmp(path.back))
		n_fibers = fibers;
	else
		descend();
}

static void *alternate_stack(void)
{
	size_t bytes = 512u << 10;
	void *stack = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	stack_t alternate = {.ss_sp = stack, .ss_size = bytes};

	sigaltstack(&alternate, NULL);
	return stack;
}

static void handle_signals(void)
{
	struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_NODEFER};

	sigaction(SIGUSR1, &action, NULL);
	action.sa_flags |= SA_ONSTACK;
	sigaction(SIGUSR2, &action, NULL);
}

#endif
