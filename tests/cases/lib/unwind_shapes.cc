/*
 * Stacks as C++ programs have them, by random recursion, each with a call of the driver at the end:
 * virtual and template functions, lambdas, comparators called by the library, vectors that need
 * aligned frames, exceptions with calls in destructors and handlers, threads, deep recursion, and
 * signals at any moment.
 *
 *   unwind_shapes SEED N_ROUNDS
 */
#include <algorithm>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <memory>
#include <stdexcept>
#include <sys/mman.h>
#include <sys/time.h>
#include <thread>
#include <vector>

#include <cuda.h>

#define NOINLINE __attribute__((noinline))

static CUcontext context;
static CUdeviceptr buffer;

static thread_local uint64_t state;
static thread_local int budget;		     /* calls of the driver left in this path */
static thread_local volatile bool is_inside; /* the driver, which is not to be called from itself */

static unsigned choose(unsigned n)
{
	state = state * 6364136223846793005u + 1442695040888963407u;
	return unsigned(state >> 33) % n;
}

NOINLINE static void visit()
{
	budget--;
	is_inside = true;
	if (cuMemsetD8_v2(buffer, 0, 1))
		abort();
	is_inside = false;
}

static void descend(int depth);

struct Visitor {
	~Visitor()
	{
		if (!choose(3))
			visit();
	}
};

struct Shape {
	virtual ~Shape() = default;
	virtual void go(int depth) = 0;
};

template <int N> struct Sized : Shape {
	NOINLINE void go(int depth) override
	{
		volatile char room[N];

		room[choose(N)] = 1;
		descend(depth);
		room[0] = 2;
	}
};

template <int N> NOINLINE static uint64_t count_down(int depth, uint64_t a, uint64_t b)
{
	if constexpr (N > 0) {
		return count_down<N - 1>(depth, b, a + N) ^ a;
	} else {
		descend(depth);
		return a ^ b;
	}
}

typedef float Vector __attribute__((vector_size(32)));

NOINLINE static void with_vectors(
	int depth, Vector a, Vector b, int c, int d, int e, int f, int g, int h)
{
	volatile Vector kept = a + b;
	volatile char *more =
		static_cast<char *>(alloca(16 * size_t(1 + (c + d + e + f + g + h) % 5)));

	more[0] = 1;
	descend(depth);
	(void)kept;
}

static void shape_vectors(int depth)
{
	Vector v = {1, 2, 3, 4, 5, 6, 7, 8};

	with_vectors(depth, v, v, 1, 2, 3, 4, 5, int(choose(6)));
}
NOINLINE static void throw_from(int depth)
{
	Visitor on_the_way;

	if (depth <= 0 || !choose(4))
		throw std::runtime_error("on purpose");
	if (choose(2))
		descend(depth - 1);
	throw_from(depth - 1);
}

NOINLINE static void shape_catch(int depth)
{
	try {
		Visitor on_the_way;

		throw_from(int(choose(5)) < depth ? int(choose(5)) : depth);
	} catch (const std::runtime_error &) {
		visit();
		descend(depth);
	}
}

NOINLINE static void shape_rethrow(int depth)
{
	try {
		try {
			throw_from(2);
		} catch (const std::exception &) {
			visit();
			throw;
		}
	} catch (...) {
		descend(depth);
	}
}

static void shape_library(int depth)
{
	std::vector<int> numbers = {5, 3, 1, 4, 2};
	int calls = 0;

	std::sort(numbers.begin(), numbers.end(), [&](int a, int b) {
		if (!calls++)
			descend(depth);
		return a < b;
	});
	struct Compare {
		bool operator()(int a, int b) const
		{
			if (!choose(6))
				visit();
			return a < b;
		}
	};
	std::map<int, int, Compare> map;
	for (int i = 0; i < 4; i++)
		map[int(choose(10))] = i;
	std::function<void(int)> function = [&](int n) {
		if (n)
			function(n - 1);
		else
			descend(depth);
	};
	function(int(choose(3)));
	std::unique_ptr<Visitor> visitor(new Visitor);
}

NOINLINE static void descend(int depth)
{
	static Sized<8> small;
	static Sized<200> middle;
	static Sized<5000> big;
	Shape *const shapes[] = {&small, &middle, &big};

	if (budget > 0 && !choose(3))
		visit();
	if (depth <= 0 || budget <= 0)
		return;
	depth--;
	switch (choose(9)) {
	case 0:
	case 1:
	case 2:
		shapes[choose(3)]->go(depth);
		break;
	case 3:
		count_down<3>(depth, choose(10), 2);
		break;
	case 4:
		shape_vectors(depth);
		break;
	case 5:
		shape_catch(depth);
		break;
	case 6:
		shape_rethrow(depth);
		break;
	case 7:
		shape_library(depth);
		break;
	default:
		descend(depth);
		break;
	}
	if (budget > 0 && !choose(3))
		visit();
}

/* The same paths come again, as in a program that runs its steps; some only once. */
static void run(unsigned seed, int n_rounds)
{
	if (cuCtxSetCurrent(context))
		abort();
	for (int round = 0; round < n_rounds; round++) {
		for (unsigned path = 0; path < 6; path++) {
			state = seed + (path < 5 ? path : 1000 + unsigned(round));
			budget = 60;
			descend(path == 4 ? 300 : 20);
		}
	}
}

static std::sig_atomic_t n_signals;

static void on_signal(int)
{
	uint64_t kept_state = state;
	int kept_budget = budget;

	if (is_inside)
		return;
	visit();
	state = kept_state;
	budget = kept_budget;
	n_signals = n_signals + 1;
}

static void signals_from_now_on()
{
	struct itimerval every = {{0, 1000}, {0, 1000}};
	struct sigaction action = {};
	stack_t stack = {};

	stack.ss_size = 256 << 10;
	stack.ss_sp = mmap(
		nullptr, stack.ss_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	sigaltstack(&stack, nullptr);
	action.sa_handler = on_signal;
	action.sa_flags = SA_ONSTACK | SA_RESTART;
	sigaction(SIGPROF, &action, nullptr);
	setitimer(ITIMER_PROF, &every, nullptr);
}

int main(int argc, char **argv)
{
	unsigned seed = argc > 1 ? unsigned(atoi(argv[1])) : 1;
	int n_rounds = argc > 2 ? atoi(argv[2]) : 10;
	std::vector<std::thread> threads;

	if (cuInit(0) || cuDevicePrimaryCtxRetain(&context, 0) || cuCtxSetCurrent(context) ||
		cuMemAlloc_v2(&buffer, 4096))
		return 1;
	for (unsigned i = 0; i < 2; i++)
		threads.emplace_back(run, seed + 10 * i, n_rounds);
	run(seed + 100, n_rounds);
	for (std::thread &thread : threads)
		thread.join();
	signals_from_now_on();
	while (n_signals < 25)
		run(seed, 1);
	return 0;
}
