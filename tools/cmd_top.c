#include <errno.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "analysis/facts.h"
#include "analysis/top.h"
#include "input.h"
#include "model/memory.h"
#include "output/top_screen.h"
#include "pack/unpack.h"

/* How far back growth and rates are looked at. */
#define WINDOW_NS 60000000000u

/* Between two looks at the trace, at least; and no more than a quarter of the time is spent on
 * reading it. */
#define INTERVAL_MS 2000u
#define LIMIT_ONCE  20u

/* The trace that is looked at, again and again. */
struct watched {
	const char *path;
	struct symbol_table *symbols;
	size_t n_modules; /* that symbols has */
	size_t n_seen;	  /* in this look */
	struct replay *replay;
	struct trace_facts facts;
	struct top top;
	unsigned int took_ms; /* the last look */
};

/* Modules come in the same order each time; the table keeps those it has. */
static void observe(void *user, const struct model *model, const struct vt_record *record)
{
	struct watched *watched = user;

	(void)model;
	if (record->kind != VT_REC_module || watched->n_seen++ < watched->n_modules)
		return;
	watched->n_modules++;
	if (symbol_table_add_module(watched->symbols, &record->module))
		memory_exhausted();
}

static void forget(struct watched *watched)
{
	top_release(&watched->top);
	replay_close(watched->replay);
	watched->replay = NULL;
}

static unsigned int now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (unsigned int)now.tv_sec * 1000 + (unsigned int)(now.tv_nsec / 1000000);
}

/* Of a bounded trace the newest part is enough: it opens with all that lives. */
static int look(struct watched *watched)
{
	unsigned int begin = now_ms();
	struct unpacked file;
	int error;

	errno = 0;
	watched->n_seen = 0;
	error = unpack_open(&file, watched->path);
	if (!error)
		error = replay_open_fd(&watched->replay, file.fd, watched->path, VT_PARTS_NEWEST,
			observe, watched);
	if (file.fd >= 0)
		close(file.fd);
	if (!error)
		error = top_make(&watched->top, watched->replay, WINDOW_NS);
	if (error)
		return error;
	trace_facts_get(&watched->facts, watched->replay);
	watched->took_ms = now_ms() - begin;
	return 0;
}

static struct top_view view_of(
	const struct watched *watched, const struct options *options, enum top_order order)
{
	return (struct top_view){&watched->top, &watched->facts,
		{watched->replay->model, watched->symbols, options->show}, order, NULL};
}

static int print_once(struct watched *watched, const struct options *options)
{
	FILE *out = output_open(options);
	struct top_view view = view_of(watched, options, TOP_BY_LIVE);
	struct style style;

	if (!out)
		return STATUS_USAGE;
	style_init(&style, out, options->ascii);
	top_text(&style, &view, options->filter.limit ? options->filter.limit : LIMIT_ONCE);
	fputc('\n', out);
	top_sort(&watched->top, TOP_BY_GROWTH);
	view.order = TOP_BY_GROWTH;
	fputs("by growth\n", out);
	for (size_t i = 0; i < watched->top.n_rows && i < LIMIT_ONCE / 2; i++)
		if (watched->top.rows[i].growth_bytes > 0)
			top_put_row(&style, &view, &watched->top.rows[i]);
	return output_close(out, options);
}

/* Looks again. What cannot be read just now is shown as it was. */
static void look_again(struct watched *watched, struct top_screen *screen, enum top_order order)
{
	struct watched newer = *watched;

	newer.replay = NULL;
	newer.top = (struct top){0};
	if (look(&newer)) {
		forget(&newer);
		screen->note = "the trace cannot be read just now";
		return;
	}
	screen->note = NULL;
	forget(watched);
	*watched = newer;
	top_sort(&watched->top, order);
}

static void run_screen(struct watched *watched, const struct options *options)
{
	struct top_screen screen = {0};
	enum top_order order = TOP_BY_LIVE;
	unsigned int next_ms = now_ms() + INTERVAL_MS;
	enum top_key key = TOP_KEY_DRAW;

	while (key != TOP_KEY_QUIT) {
		struct top_view view = view_of(watched, options, order);
		unsigned int now = now_ms();

		view.filter = screen.filter[0] ? screen.filter : NULL;
		top_screen_draw(&screen, &view);
		key = top_screen_wait(&screen, next_ms > now ? next_ms - now : 0);
		if (key == TOP_KEY_ORDER) {
			order = (order + 1) % TOP_N_ORDERS;
			top_sort(&watched->top, order);
		} else if (key == TOP_KEY_FREEZE) {
			screen.frozen = !screen.frozen;
		}
		if (now_ms() < next_ms)
			continue;
		if (!screen.frozen)
			look_again(watched, &screen, order);
		next_ms = now_ms() +
			  (3 * watched->took_ms > INTERVAL_MS ? 3 * watched->took_ms : INTERVAL_MS);
	}
}

static int watch_trace(struct watched *watched, const struct options *options)
{
	int error = look(watched), status = STATUS_OK;

	if (error) {
		input_complain(watched->path, error);
		return STATUS_UNREADABLE;
	}
	if (options->once || options->output || !top_screen_begin())
		return print_once(watched, options);
	run_screen(watched, options);
	top_screen_end();
	return status;
}

int cmd_top(const struct options *options)
{
	struct watched watched = {.symbols = symbol_table_new()};
	struct options resolved = *options;
	char **paths;
	int status = input_resolve(&resolved, &paths);

	if (!watched.symbols)
		memory_exhausted();
	/* Of several, the newest: the process has become another program since. */
	if (!status) {
		watched.path = resolved.arguments[resolved.n_arguments - 1];
		status = watch_trace(&watched, &resolved);
	}
	forget(&watched);
	symbol_table_free(watched.symbols);
	input_resolved_release(&resolved, paths);
	return status;
}
