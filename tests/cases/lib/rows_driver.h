/* The driver that answers row by row: its part that no row decides. */
#include "rows.h"

struct rows_call rows_log = {.row = -1, .free_bytes = ROWS_TOTAL_BYTES / 2};

#define ROWS_ARG(param) rows_append(rows_log.args, &rows_log.args_bytes, &(param), sizeof(param))
#define ROWS_OUT(at, value)                                                                        \
	do {                                                                                       \
		if (at)                                                                            \
			*(at) = (__typeof__(*(at)))(uintptr_t)(value);                             \
	} while (0)

/* Whether this is the program's call. It is noted, and so are all others; each of those leaves
 * errno changed. */
static bool rows_enter(int row, const char *name)
{
	int seen = errno;

	if (rows_log.row >= 0 && row == rows_log.row) {
		rows_log.errno_seen = seen;
		rows_log.n_own_before = rows_log.n_own;
		rows_log.memory_kept =
			!memcmp(rows_log.memory, rows_log.pristine, rows_log.memory_bytes);
		rows_log.args_bytes = 0;
		return ++rows_log.n_seen == 1;
	}
	if (rows_log.n_own < ROWS_MAX_OWN)
		rows_log.own[rows_log.n_own++] = name;
	errno = ROWS_OWN_ERRNO;
	return false;
}

static CUresult rows_leave(void)
{
	if (!rows_log.result)
		rows_log.free_bytes -= rows_log.taken_bytes;
	errno = rows_log.errno_left;
	return (CUresult)rows_log.result;
}

/* One name, version and per-thread form. */
struct rows_export {
	const char *export, *name;
	int version;
	bool per_thread;
	void *function;
};

static void *rows_newest(
	const struct rows_export *exports, const char *name, int version, bool per_thread)
{
	const struct rows_export *best = NULL;

	for (const struct rows_export *at = exports; at->export; at++)
		if (at->per_thread == per_thread && at->version <= version &&
			!strcmp(at->name, name) && (!best || at->version > best->version))
			best = at;
	return best ? best->function : NULL;
}

/* Calls without a form for the per-thread default stream have one form for all. */
static void *rows_find(
	const struct rows_export *exports, const char *name, int version, cuuint64_t flags)
{
	void *found = NULL;

	if (flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM)
		found = rows_newest(exports, name, version, true);
	return found ? found : rows_newest(exports, name, version, false);
}

static CUresult rows_answer(const char *name, void **pfn, int version, cuuint64_t flags)
{
	*pfn = rows_look_up(name, version, flags);
	return *pfn ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}
