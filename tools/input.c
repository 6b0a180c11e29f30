#include "input.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "model/memory.h"
#include "model/progress.h"
#include "pack/symbols.h"
#include "pack/unpack.h"
#include "suppress.h"

void input_complain_text(const char *file, const char *why)
{
	fprintf(stderr, "vramtrace: ");
	format_put_text(stderr, (struct vt_text){file, strlen(file)});
	fprintf(stderr, ": %s\n", why);
}

void input_complain(const char *file, int error)
{
	bool system = (error == VT_E_OPEN || error == VT_E_IO) && errno;
	char why[256];

	snprintf(why, sizeof(why), "%s%s%s", vt_error_text(error), system ? ": " : "",
		system ? strerror(errno) : "");
	input_complain_text(file, why);
}

void input_complain_damage(const struct input *input, const struct options *options)
{
	for (size_t i = 0; i < input->n_traces && !options->quiet; i++) {
		const struct replay *replay = input->traces[i].replay;
		const struct vt_damage *damage = &replay->damage;

		if (!damage->n_chunks_skipped && !damage->n_chunks_cut && !damage->missing_bytes &&
			!replay->pack_damaged)
			continue;
		fprintf(stderr,
			"vramtrace: %s: is damaged: good up to where it is (vramtrace info ",
			replay->path);
		format_put_file(stderr, replay->path);
		fputs(")\n", stderr);
	}
}

/* The first pass. */
struct first_pass {
	struct symbol_reader symbols;
	struct watch *watch;
};

static void observe(void *user, const struct model *model, const struct vt_record *record)
{
	struct first_pass *pass = user;

	if (record->kind == VT_REC_module &&
		symbol_table_add_module(pass->symbols.table, &record->module))
		memory_exhausted();
	if (record->kind == VT_REC_symbol)
		symbol_reader_add(&pass->symbols, &record->symbol);
	watch_observe(pass->watch, model, record);
}

static void release_trace(struct input_trace *trace)
{
	overview_release(&trace->overview);
	symbol_table_free(trace->symbols);
	if (trace->watch)
		watch_release(trace->watch);
	free(trace->watch);
	replay_close(trace->replay);
}

static int open_trace(struct input_trace *trace, const char *path, const struct unpacked *file)
{
	struct first_pass pass = {.symbols = {.table = symbol_table_new()},
		.watch = memory_new(1, sizeof(*pass.watch))};
	int error;

	trace->symbols = pass.symbols.table;
	trace->watch = pass.watch;
	if (!trace->symbols)
		memory_exhausted();
	error = replay_open_fd(&trace->replay, file->fd, path, VT_PARTS_ALL, observe, &pass);
	symbol_reader_end(&pass.symbols);
	watch_finish(trace->watch);
	if (error)
		return error;
	trace->replay->packed_bytes = file->packed_bytes;
	trace->replay->pack_damaged = file->damaged;
	return 0;
}

void input_add(struct input *input, const char *path)
{
	struct input_trace trace = {0};
	struct unpacked file;
	int error;

	errno = 0;
	error = unpack_open(&file, path);
	if (!error)
		error = open_trace(&trace, path, &file);
	if (file.fd >= 0)
		close(file.fd);
	if (error) {
		if (*file.why)
			input_complain_text(path, file.why);
		else
			input_complain(path, error);
		release_trace(&trace);
		input->status = STATUS_UNREADABLE;
		return;
	}
	input->traces =
		memory_grow(input->traces, input->n_traces, &input->room, sizeof(*input->traces));
	input->traces[input->n_traces++] = trace;
}

static bool ends_with(const char *text, const char *ending)
{
	size_t bytes = strlen(text), ending_bytes = strlen(ending);

	return bytes > ending_bytes && !strcmp(text + bytes - ending_bytes, ending);
}

static int is_trace_name(const struct dirent *entry)
{
	return ends_with(entry->d_name, PACK_PLAIN_ENDING) ||
	       ends_with(entry->d_name, PACK_PLAIN_ENDING PACK_ENDING);
}

/* Both are of one recording, which is not to count twice; only the plain one may have grown. */
static bool has_plain(const char *path)
{
	char *plain = memory_text(path);
	struct stat st;
	bool has;

	plain[strlen(path) - strlen(PACK_ENDING)] = '\0';
	has = ends_with(path, PACK_ENDING) && !stat(plain, &st);
	free(plain);
	return has;
}

static int each_in_folder(
	const char *path, void (*each)(void *user, const char *path, bool in_folder), void *user)
{
	struct dirent **entries;
	int n = scandir(path, &entries, is_trace_name, alphasort);

	if (n < 0) {
		input_complain(path, VT_E_OPEN);
		return STATUS_UNREADABLE;
	}
	if (!n)
		input_complain_text(path, "no traces (*.vt, *.vt.zst) in this folder");
	for (int i = 0; i < n; i++) {
		char *file = memory_new(strlen(path) + strlen(entries[i]->d_name) + 2, 1);

		sprintf(file, "%s/%s", path, entries[i]->d_name);
		if (!has_plain(file))
			each(user, file, true);
		free(file);
		free(entries[i]);
	}
	free(entries);
	return n ? STATUS_OK : STATUS_UNREADABLE;
}

int input_each(const struct options *options,
	void (*each)(void *user, const char *path, bool in_folder), void *user)
{
	int status = STATUS_OK;

	for (size_t i = 0; i < options->n_arguments; i++) {
		const char *path = options->arguments[i];
		struct stat st;

		if (stat(path, &st) || !S_ISDIR(st.st_mode))
			each(user, path, false);
		else if (each_in_folder(path, each, user))
			status = STATUS_UNREADABLE;
	}
	return status;
}

static void add_each(void *user, const char *path, bool in_folder)
{
	(void)in_folder;
	input_add(user, path);
}

static bool has_device(const struct input *input, int ordinal)
{
	for (size_t i = 0; i < input->n_traces; i++)
		if (model_device_find(input->traces[i].replay->model, ordinal))
			return true;
	return false;
}

int input_open(struct input *input, const struct options *options)
{
	*input = (struct input){.show = options->show};
	progress_show(!options->quiet);
	if (input_each(options, add_each, input))
		input->status = STATUS_UNREADABLE;
	if (!input->n_traces)
		return STATUS_UNREADABLE;
	if (options->filter.one_device && !has_device(input, options->filter.device)) {
		fprintf(stderr,
			"vramtrace: there is no GPU %d in what was recorded (vramtrace info "
			"TRACE)\n",
			options->filter.device);
		input_close(input);
		return STATUS_USAGE;
	}
	return STATUS_OK;
}

static const char *owner_label(void *user, const struct model *model, uint64_t stack_id)
{
	struct stack_source source = {.model = model, .symbols = user};

	return stack_owner(&source, stack_id);
}

struct owner_source input_owners(const struct input_trace *trace)
{
	return (struct owner_source){owner_label, trace->symbols};
}

size_t input_ooms(const struct input_trace *trace, size_t number, struct replay_moment *moments)
{
	struct oom_list list;
	size_t n = 0;

	oom_list_make(&list, &trace->watch->episodes);
	for (size_t i = 0; i < list.n_items; i++)
		if (!number || list.items[i].number == number)
			moments[n++] = list.items[i].episode.moment;
	oom_list_release(&list);
	return n;
}

static int make_overview(const struct input *input, struct input_trace *trace,
	const struct input_wants *wants, const struct owner_source *owners)
{
	struct suppress suppress = {
		.suppressions = &input->suppressions, .symbols = trace->symbols};
	struct leak_suppressor suppressor = suppress_leaks(&suppress);
	struct replay_moment ooms[EPISODES_MAX];
	struct overview_request request = {
		.moments = wants->moments,
		.n = wants->n,
		.owners = wants->owners ? owners : NULL,
		.watch = wants->findings || wants->at_oom ? trace->watch : NULL,
		.history = wants->leaks ? &trace->watch->history : NULL,
		.suppressor = wants->leaks && input->suppressions.n_items ? &suppressor : NULL,
		.leak_owners = wants->leaks ? owners : NULL,
	};

	if (wants->at_oom) {
		request.moments = ooms;
		request.n = input_ooms(trace, wants->oom_number, ooms);
	}
	return overview_make(&trace->overview, trace->replay, &request);
}

int input_overview(struct input *input, const struct input_wants *wants)
{
	struct trace_facts **facts = memory_new(input->n_traces, sizeof(*facts));
	int error = 0;

	input->shown = memory_new(input->n_traces, sizeof(*input->shown));
	for (size_t i = 0; i < input->n_traces && !error; i++) {
		struct input_trace *trace = &input->traces[i];
		struct owner_source owners = input_owners(trace);

		error = make_overview(input, trace, wants, &owners);
		facts[i] = &trace->overview.facts;
		input->shown[i] =
			(struct report_trace){&trace->overview, trace->symbols, input->show};
		if (error)
			input_complain(trace->replay->path, error);
	}
	if (!error)
		trace_facts_settle(facts, input->n_traces);
	free(facts);
	return error ? STATUS_UNREADABLE : STATUS_OK;
}

int input_suppress(struct input *input, const struct options *options)
{
	return suppress_read(&input->suppressions, options->suppressions) ? STATUS_OK
									  : STATUS_USAGE;
}

bool input_has_ooms(const struct input *input, size_t number)
{
	size_t most = 0;

	for (size_t i = 0; i < input->n_traces; i++)
		if (input->traces[i].watch->episodes.n_items > most)
			most = input->traces[i].watch->episodes.n_items;
	if (most && number <= most)
		return true;
	if (most)
		fprintf(stderr, "vramtrace: --at oom:%zu: there are %zu (vramtrace oom TRACE)\n",
			number, most);
	else
		fputs("vramtrace: --at oom: nothing was refused for lack of memory\n", stderr);
	return false;
}

int input_overview_at(struct input *input, const struct options *options, enum replay_at at,
	const struct input_wants *also)
{
	struct replay_moment moment = {.at = options->at_given ? options->at : at,
		.device = options->filter.device,
		.time_ns = options->at_ns};
	struct input_wants wants = *also;
	int status;

	wants.at_oom = moment.at == REPLAY_AT_RECORD;
	wants.oom_number = options->oom_number;
	if (wants.at_oom && !input_has_ooms(input, wants.oom_number))
		return STATUS_USAGE;
	if (moment.at != REPLAY_AT_PEAK || options->filter.one_device) {
		wants.moments = &moment;
		wants.n = 1;
	}
	status = input_overview(input, &wants);
	for (size_t i = 0; i < input->n_traces && !status; i++) {
		struct overview *overview = &input->traces[i].overview;

		site_list_filter(&overview->end, &options->filter);
		leak_list_filter(&overview->leaks, &options->filter);
		for (size_t k = 0; k < overview->n_views; k++)
			site_list_filter(&overview->views[k].sites, &options->filter);
	}
	return status;
}

int input_findings(struct input *input, const struct options *options)
{
	bool at_oom = options->at_given && options->at == REPLAY_AT_RECORD;
	struct input_wants wants = {.findings = true};
	int status;

	if (at_oom && !input_has_ooms(input, options->oom_number))
		return STATUS_USAGE;
	status = options->at_given && !at_oom
			 ? input_overview_at(input, options, REPLAY_AT_END, &wants)
			 : input_overview(input, &wants);
	for (size_t i = 0; i < input->n_traces && !status; i++) {
		struct overview *overview = &input->traces[i].overview;
		struct site_filter all = options->filter;

		if (at_oom)
			fragmentation_release(&overview->fragmentation);
		if (options->at_given && !at_oom)
			oom_list_release(&overview->ooms);
		fragmentation_filter(&overview->fragmentation, &all);
		oom_list_filter(&overview->ooms, &all, options->oom_number);
	}
	return status;
}

void input_close(struct input *input)
{
	for (size_t i = 0; i < input->n_traces; i++)
		release_trace(&input->traces[i]);
	free(input->traces);
	free(input->shown);
	suppressions_release(&input->suppressions);
	*input = (struct input){.status = input->status};
}

/* A recording is not to be lost to a mistyped -o. */
static bool is_trace(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	bool is = fd >= 0 && unpack_look(fd) != PACK_NO_TRACE;

	if (fd >= 0)
		close(fd);
	return is;
}

FILE *output_open(const struct options *options)
{
	FILE *out;

	if (!options->output)
		return stdout;
	if (is_trace(options->output)) {
		fprintf(stderr,
			"vramtrace: %s: is a trace: not overwritten, give another name to -o\n",
			options->output);
		return NULL;
	}
	out = fopen(options->output, "we");
	if (!out)
		fprintf(stderr, "vramtrace: %s: cannot be written: %s\n", options->output,
			strerror(errno));
	return out;
}

int output_close(FILE *out, const struct options *options)
{
	bool failed = ferror(out);
	int saved;

	errno = 0;
	if (out == stdout)
		failed = fflush(out) || failed;
	else
		failed = fclose(out) || failed;
	if (!failed)
		return STATUS_OK;
	saved = errno;
	fprintf(stderr, "vramtrace: %s: not everything could be written%s%s\n",
		options->output && out != stdout ? options->output : "standard output",
		saved ? ": " : "", saved ? strerror(saved) : "");
	return STATUS_USAGE;
}
