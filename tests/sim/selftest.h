/* selftest.h: the simulator's own tests run each in a process of its own, with settings of its own.
 */
#ifndef SELFTEST_H
#define SELFTEST_H

#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#define CHECK(condition)                                                                           \
	do {                                                                                       \
		if (!(condition)) {                                                                \
			fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);            \
			_exit(1);                                                                  \
		}                                                                                  \
	} while (0)

#define CHECK_EQUAL(a, b)                                                                          \
	do {                                                                                       \
		unsigned long long a_ = (unsigned long long)(a), b_ = (unsigned long long)(b);     \
		if (a_ != b_) {                                                                    \
			fprintf(stderr, "%s:%d: %s is %llu, not %s = %llu\n", __FILE__, __LINE__,  \
				#a, a_, #b, b_);                                                   \
			_exit(1);                                                                  \
		}                                                                                  \
	} while (0)

/* Runs a test body in a child. The settings are NULL-terminated pairs of names and values. */
static inline int run_in_child(void (*body)(void), const char *const *settings)
{
	int status;
	pid_t pid;

	fflush(NULL);
	pid = fork();
	if (pid == 0) {
		for (; *settings; settings += 2)
			setenv(settings[0], settings[1], 1);
		body();
		_exit(0);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		return -1;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* TEST(name, "CUSIM_X", "1", ...) { body } defines a CMocka test. */
#define TEST(name, ...)                                                                            \
	static void name##_body(void);                                                             \
	static void name(void **state)                                                             \
	{                                                                                          \
		static const char *const settings[] = {__VA_ARGS__ __VA_OPT__(, ) NULL};           \
                                                                                                   \
		(void)state;                                                                       \
		assert_int_equal(run_in_child(name##_body, settings), 0);                          \
	}                                                                                          \
	static void name##_body(void)

#endif
