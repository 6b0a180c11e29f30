/* src/record/unwind: real stacks of this program, always as libunwind's unw_backtrace gives them.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <dlfcn.h>
#include <stdbool.h>
#include <sys/wait.h>
#include <unistd.h>

#define UNW_LOCAL_ONLY
#include <libunwind.h>

#include "record/unwind/code.h"
#include "record/unwind/unwind.h"

#ifdef __x86_64__
#include "unwind_program.h"

#define MAX_FRAMES 128
#define N_HOW	   (UNWIND_DELEGATED + 1)

/* AddressSanitizer does not follow fibers and jumps. */
#ifdef __SANITIZE_ADDRESS__
#define ALL_SHAPES N_FOLLOWED_SHAPES
#else
#define ALL_SHAPES N_SHAPES
#endif

typedef int backtrace_function(void **buffer, int size);
typedef int set_caching_function(unw_addr_space_t space, unw_caching_policy_t policy);

#define TEXT_OF(name)	    #name
#define SYMBOL_OF(function) TEXT_OF(function)

static backtrace_function *backtrace_of;
static uint64_t hook_address; /* where the hook's only capture returns to */

struct counts {
	unsigned long how[N_HOW];
	unsigned long n, n_wrong, n_gaps, n_unlikely;
};

static __thread struct counts counts;

static size_t fallback(uint64_t *frames, size_t max)
{
	void *buffer[MAX_FRAMES + 16];
	int n = backtrace_of(buffer, (int)max + 16), i = 0;
	size_t n_frames = 0;

	while (i < n && (uint64_t)(uintptr_t)buffer[i] != hook_address)
		i++;
	while (i < n && n_frames < max)
		frames[n_frames++] = (uint64_t)(uintptr_t)buffer[i++];
	return n_frames;
}

/* Both start in this function. */
__attribute__((noinline)) static void hook(struct unwind_stack *stack, void **truth, int *n_truth)
{
	unwind_capture(stack);
	*n_truth = backtrace_of(truth, MAX_FRAMES);
}

/* A number stands for one stack. */
static bool is_another(const struct unwind_stack *stack)
{
	static uint64_t hashes[1 << 17];
	uint64_t hash = stack->n_frames;

	if (!stack->memo_id || stack->memo_id >= sizeof(hashes) / sizeof(*hashes))
		return false;
	for (size_t i = 0; i < stack->n_frames; i++)
		hash = (hash ^ stack->frames[i]) * 0x9e3779b97f4a7c15u;
	if (!hashes[stack->memo_id])
		hashes[stack->memo_id] = hash;
	return hashes[stack->memo_id] != hash;
}

static void visit(void)
{
	struct unwind_stack stack;
	void *truth[MAX_FRAMES];
	int n;

	hook(&stack, truth, &n);
	counts.n++;
	counts.how[stack.how]++;
	counts.n_gaps += stack.has_gap;
	counts.n_unlikely += stack.n_likely < stack.n_frames;
	if (!hook_address)
		hook_address = stack.frames[0];
	if (is_another(&stack) || stack.n_frames != (size_t)n || stack.frames[0] != hook_address ||
		memcmp(stack.frames + 1, truth + 1, ((size_t)n - 1) * sizeof(*truth)))
		counts.n_wrong++;
}

static void begin(void)
{
	memset(&counts, 0, sizeof(counts));
}

static void end(const char *name)
{
	print_message("%s: %lu captures, %lu guessed, %lu found, %lu walked, %lu delegated\n", name,
		counts.n, counts.how[UNWIND_GUESSED], counts.how[UNWIND_FOUND],
		counts.how[UNWIND_WALKED], counts.how[UNWIND_DELEGATED]);
	assert_true(counts.n > 100);
	assert_int_equal(counts.n_wrong, 0);
}

static int set_up(void **state)
{
	void *library = dlopen("libunwind.so.8", RTLD_NOW | RTLD_LOCAL);
	static const struct unwind_setup setup = {fallback, MAX_FRAMES, 0, 0};
	set_caching_function *set_caching;
	unw_addr_space_t *space;

	(void)state;
	assert_non_null(library);
	backtrace_of = (backtrace_function *)dlsym(library, "unw_backtrace");
	set_caching = (set_caching_function *)dlsym(library, SYMBOL_OF(unw_set_caching_policy));
	space = dlsym(library, SYMBOL_OF(unw_local_addr_space));
	assert_true(backtrace_of && set_caching && space);
	set_caching(*space, UNW_CACHE_NONE);
	unwind_init(&setup);
	handle_signals();
	alternate_stack();
	visit();
	return 0;
}

static void same_paths_again(unsigned int kinds, int depth, int n_seeds, int n_times)
{
	for (int i = 0; i < n_times; i++)
		for (int seed = 0; seed < n_seeds; seed++)
			run_path((uint64_t)seed, kinds, depth);
}

/* Ordinary frames never need libunwind, and what comes again is remembered. */
static void ordinary(void **state)
{
	(void)state;
	begin();
	same_paths_again(N_PLAIN_SHAPES, 30, 8, 60);
	end("ordinary");
	assert_int_equal(counts.how[UNWIND_DELEGATED], 0);
	assert_int_equal(counts.n_gaps, 0);
	assert_true(counts.how[UNWIND_GUESSED] > counts.n * 8 / 10);
}

static void all_shapes(void **state)
{
	(void)state;
	begin();
	same_paths_again(ALL_SHAPES, 30, 100, 5);
	for (int seed = 1000; seed < 2500; seed++)
		run_path((uint64_t)seed, ALL_SHAPES, 30);
	end("all shapes");
	/* All that libunwind makes of code without unwind information are frames. */
	assert_true(counts.n_gaps > 100 && counts.n_gaps < counts.n);
	assert_int_equal(counts.n_unlikely, 0);
}

/* What lies where rbp points is no frame here. */
void bare_with_wrong_frame(void);
__asm__(".text\n"
	".type bare_with_wrong_frame, @function\n"
	"bare_with_wrong_frame:\n"
	"	push %rbp\n"
	"	sub $32, %rsp\n"
	"	lea 8(%rsp), %rax\n"
	"	movq %rsp, 16(%rsp)\n"
	"	movq %rax, 8(%rsp)\n"
	"	mov %rax, %rbp\n"
	"	call visit_many\n"
	"	add $32, %rsp\n"
	"	pop %rbp\n"
	"	ret\n"
	".size bare_with_wrong_frame, . - bare_with_wrong_frame\n");

static void wrong_frame(void **state)
{
	(void)state;
	begin();
	bare_with_wrong_frame();
	end("wrong frame");
	assert_int_equal(counts.n_gaps, counts.n);
	assert_int_equal(counts.n_unlikely, counts.n);
}

/* Return addresses have a call before them; little else has. */
static void after_calls(void **state)
{
	static const uint8_t others[] = {0x90, 0x48, 0xb8, 1, 2, 3, 4, 5, 0x90, 0x90, 0xff, 0x25, 1,
		2, 3, 4, 0x90, 0x90, 0x90, 0x90, 0x90, 0xff, 0x74, 0x24};
	struct unwind_stack stack;
	void *truth[MAX_FRAMES];
	int n;

	(void)state;
	hook(&stack, truth, &n);
	assert_true(n > 4);
	for (int i = 0; i + 1 < n; i++)
		assert_true(code_is_after_call((uint64_t)(uintptr_t)truth[i]));
	/* After mov, jmp and push. */
	assert_false(code_is_after_call((uint64_t)(uintptr_t)others + 8));
	assert_false(code_is_after_call((uint64_t)(uintptr_t)others + 16));
	assert_false(code_is_after_call((uint64_t)(uintptr_t)others + 24));
	assert_false(code_is_after_call(4096));
	assert_false(code_is_after_call(0));
}

/* Far beyond what is kept of a stack, and of what is remembered. */
static void deep(void **state)
{
	(void)state;
	begin();
	same_paths_again(N_PLAIN_SHAPES - 1, 1500, 2, 2);
	end("deep");
	assert_int_equal(counts.how[UNWIND_DELEGATED], 0);
}

static __attribute__((noinline)) void visit_from_bottom(void)
{
	visit();
	HERE();
}

/* Not known to any unwinder; rbp is what the thread or fiber began with. */
void bare_bottom(void);
__asm__(".text\n"
	".type bare_bottom, @function\n"
	"bare_bottom:\n"
	"	sub $8, %rsp\n"
	"	call visit_many\n"
	"	add $8, %rsp\n"
	"	ret\n"
	".size bare_bottom, . - bare_bottom\n");

__attribute__((used)) void visit_many(void)
{
	for (int i = 0; i < 1000; i++)
		visit_from_bottom();
}

static void *run_thread(void *seed)
{
	void *stack = alternate_stack();

	begin();
	visit_many();
	assert_int_equal(counts.how[UNWIND_DELEGATED], 0);
	assert_true(counts.how[UNWIND_GUESSED] > 990);
	for (int i = 0; i < 3; i++)
		for (uint64_t n = 0; n < 25; n++)
			run_path((uint64_t)(uintptr_t)seed + n, ALL_SHAPES, 25);
	(void)stack;
	unwind_thread_ended();
	return (void *)(uintptr_t)counts.n_wrong;
}

/* Together and one after another, on what ended threads have left; stacks end at the thread's
 * start, which is no reason to ask libunwind. */
static void threads(void **state)
{
	pthread_t ids[4];
	void *n_wrong;

	(void)state;
	for (unsigned int round = 0; round < 4; round++) {
		for (uintptr_t i = 0; i < 4; i++)
			assert_int_equal(pthread_create(&ids[i], NULL, run_thread,
						 (void *)(100 * i + 50 * round)),
				0);
		for (unsigned int i = 0; i < 4; i++) {
			pthread_join(ids[i], &n_wrong);
			assert_null(n_wrong);
		}
	}
}

/* A stack may end in code that no unwinder knows: neither is that one. */
static void unknown_bottom(void **state)
{
	static char room[128 << 10];
	ucontext_t here, back;

	(void)state;
	begin();
	getcontext(&here);
	here.uc_stack.ss_sp = room;
	here.uc_stack.ss_size = sizeof(room);
	here.uc_link = &back;
	here.uc_mcontext.gregs[REG_RBP] = 0;
	makecontext(&here, bare_bottom, 0);
	swapcontext(&back, &here);
	end("unknown bottom");
	assert_int_equal(counts.n, 1000);
	assert_int_equal(counts.how[UNWIND_DELEGATED], 0);
	assert_true(counts.how[UNWIND_GUESSED] > 990);
}

static void in_a_child(void **state)
{
	int status;
	pid_t child;

	(void)state;
	begin();
	same_paths_again(ALL_SHAPES, 20, 10, 3);
	child = fork();
	if (!child) {
		unwind_forget();
		begin();
		same_paths_again(ALL_SHAPES, 20, 10, 3);
		_exit(counts.n_wrong || counts.n < 100);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	same_paths_again(ALL_SHAPES, 20, 10, 3);
	end("parent");
}

/* While code may be going, libunwind decides; when none went, all that was learnt still counts. */
static void while_unloading(void **state)
{
	struct unwind_unload unload;

	(void)state;
	for (int round = 0; round < 3; round++) {
		bool unloading = round == 1;

		if (unloading)
			unwind_unload_begin(&unload);
		assert_int_equal(unwind_is_unloaded(), unloading);
		begin();
		visit_many();
		end(unloading ? "unloading" : "not unloading");
		assert_int_equal(counts.how[UNWIND_DELEGATED], unloading ? counts.n : 0);
		assert_true(unloading || counts.how[UNWIND_GUESSED] > 990);
		if (unloading)
			unwind_unload_end(&unload);
	}
	assert_int_equal(counts.how[UNWIND_WALKED], 0);
}

static size_t capture_inside(uint64_t *frames, size_t max)
{
	struct unwind_stack stack;

	unwind_capture(&stack);
	assert_int_equal(stack.how, UNWIND_NOTHING);
	assert_int_equal(stack.n_frames, 0);
	return fallback(frames, max);
}

static void not_inside_itself(void **state)
{
	static const struct unwind_setup setup = {capture_inside, MAX_FRAMES, 0, 0};
	static const struct unwind_setup usual = {fallback, MAX_FRAMES, 0, 0};
	struct unwind_unload unload;

	(void)state;
	unwind_init(&setup);
	begin();
	unwind_unload_begin(&unload);
	visit_many();
	unwind_unload_end(&unload);
	unwind_init(&usual);
	end("inside");
	assert_int_equal(counts.how[UNWIND_DELEGATED], counts.n);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ordinary),
		cmocka_unit_test(all_shapes),
		cmocka_unit_test(wrong_frame),
		cmocka_unit_test(after_calls),
		cmocka_unit_test(deep),
		cmocka_unit_test(threads),
		cmocka_unit_test(unknown_bottom),
		cmocka_unit_test(in_a_child),
		cmocka_unit_test(while_unloading),
		cmocka_unit_test(not_inside_itself),
	};

	return cmocka_run_group_tests(tests, set_up, NULL);
}
#else
int main(void)
{
	return 0; /* stacks come from libunwind alone */
}
#endif
