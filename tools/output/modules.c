#include "output/modules.h"

#include <string.h>

#define N_NAMED	 3u   /* in text */
#define N_LISTED 256u /* in JSON */

static void put_names(
	const struct style *style, const struct show *show, const char *const *paths, size_t n)
{
	for (size_t i = 0; i < n && i < N_NAMED; i++) {
		const char *path = show_frame_path(show, paths[i]);

		if (i)
			fputs(i + 1 == n ? " and " : ", ", style->out);
		format_put_text(style->out, (struct vt_text){path, strlen(path)});
	}
	if (n > N_NAMED)
		fprintf(style->out, " and %s more", format_count(n - N_NAMED).text);
}

void modules_put(const struct style *style, const struct report_trace *trace,
	void (*begin)(void *user, const struct style *style), void *user)
{
	const char *paths[N_NAMED];
	size_t n = symbol_table_files(trace->symbols, SYMBOL_FILE_CHANGED, paths, N_NAMED);

	if (n) {
		begin(user, style);
		put_names(style, &trace->show, paths, n);
		fputs(n == 1 ? " has changed since it was recorded: its functions are not named\n"
			     : " have changed since they were recorded: their functions are not "
			       "named\n",
			style->out);
	}
	n = symbol_table_files(trace->symbols, SYMBOL_FILE_MISSING, paths, N_NAMED);
	if (n) {
		begin(user, style);
		put_names(style, &trace->show, paths, n);
		fputs(n == 1 ? " is not on this machine: its functions are not named\n"
			     : " are not on this machine: their functions are not named\n",
			style->out);
	}
}

static void put_files(struct json *json, const char *key, enum symbol_file state,
	const struct report_trace *traces, size_t n)
{
	const char *paths[N_LISTED];
	size_t n_paths = 0;

	json_open(json, key, '[');
	for (size_t i = 0; i < n; i++) {
		size_t before = n_paths, found = symbol_table_files(traces[i].symbols, state,
						 paths + before, N_LISTED - before);

		n_paths += found < N_LISTED - before ? found : N_LISTED - before;
		for (size_t k = before; k < n_paths; k++) {
			size_t known = 0;

			while (known < before && strcmp(paths[known], paths[k]))
				known++;
			if (known == before)
				json_string(json, NULL, show_path(&traces[i].show, paths[k]));
		}
	}
	json_close(json, ']');
}

void modules_json(struct json *json, const struct report_trace *traces, size_t n)
{
	json_open(json, "symbols", '{');
	put_files(json, "changed", SYMBOL_FILE_CHANGED, traces, n);
	put_files(json, "missing", SYMBOL_FILE_MISSING, traces, n);
	json_close(json, '}');
}
