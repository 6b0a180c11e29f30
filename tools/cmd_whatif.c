#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "analysis/whatif_report.h"
#include "input.h"
#include "model/progress.h"
#include "output/whatif_text.h"

#define MAX_SNAPSHOT_BYTES (512ll << 20)

static struct whatif_request request_from(const struct options *options)
{
	return (struct whatif_request){
		.device = options->filter.one_device ? options->filter.device : -1,
		.capacity_bytes = options->capacity_bytes,
		.settings = options->settings,
		.n_settings = options->n_settings,
		.sweep = options->sweep,
	};
}

static int put(const struct options *options, const struct stack_source *source,
	const struct whatif_report *report)
{
	FILE *out = output_open(options);
	struct style style;

	if (!out)
		return STATUS_USAGE;
	style_init(&style, out, options->ascii);
	if (options->json)
		whatif_json(out, source, report);
	else
		whatif_text(&style, source, report);
	return output_close(out, options);
}

static int from_trace(const struct options *options)
{
	const struct whatif_request request = request_from(options);
	struct whatif_report report;
	struct stack_source source;
	struct input input;
	int status = input_open(&input, options), error;

	if (status)
		return status;
	if (input.n_traces > 1) {
		fputs("vramtrace: whatif: takes one trace; the folder holds several\n", stderr);
		input_close(&input);
		return STATUS_USAGE;
	}
	error = whatif_report_make(&report, input.traces[0].replay, &request);
	if (error) {
		input_complain(input.traces[0].replay->path, error);
		status = STATUS_UNREADABLE;
	} else {
		source = (struct stack_source){
			input.traces[0].replay->model, input.traces[0].symbols, options->show};
		status = put(options, &source, &report);
	}
	whatif_report_release(&report);
	input_close(&input);
	return status ? status : input.status;
}

static int from_snapshot(
	const struct options *options, const char *path, const uint8_t *data, size_t bytes)
{
	const struct whatif_request request = request_from(options);
	struct stack_source source = {.show = options->show};
	struct whatif_report report;
	struct pickle pickle;
	char why[160];
	int status;

	progress_show(!options->quiet);
	pickle_read(&pickle, data, bytes);
	if (pickle.root) {
		whatif_report_snapshot(&report, pickle.root, path, &request);
		status = put(options, &source, &report);
		whatif_report_release(&report);
	} else {
		snprintf(why, sizeof(why), "is no snapshot of PyTorch's memory: %s (byte %zu)",
			pickle.problem, pickle.at);
		input_complain_text(path, why);
		status = STATUS_UNREADABLE;
	}
	pickle_release(&pickle);
	return status;
}

/* Whether the file is a pickle; then *status is that of the command. */
static bool is_snapshot(const struct options *options, int *status)
{
	const char *path = options->n_arguments == 1 ? options->arguments[0] : "";
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	uint8_t first[2];
	struct stat st;
	void *data;
	bool is = fd >= 0 && pread(fd, first, sizeof(first), 0) == sizeof(first) &&
		  pickle_look(first, sizeof(first)) && !fstat(fd, &st);

	if (is && st.st_size <= MAX_SNAPSHOT_BYTES) {
		data = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
		if (data == MAP_FAILED) {
			input_complain_text(path, strerror(errno));
			*status = STATUS_UNREADABLE;
		} else {
			*status = from_snapshot(options, path, data, (size_t)st.st_size);
			munmap(data, (size_t)st.st_size);
		}
	} else if (is) {
		input_complain_text(path, "is larger than 512 MiB");
		*status = STATUS_UNREADABLE;
	}
	if (fd >= 0)
		close(fd);
	return is;
}

int cmd_whatif(const struct options *options)
{
	int status;

	return is_snapshot(options, &status) ? status : from_trace(options);
}
