#include <stdlib.h>

#include "doctor/doctor.h"
#include "input.h"
#include "launch.h"
#include "output/doctor_text.h"

int cmd_doctor(const struct options *options)
{
	const char *pattern = getenv("VRAMTRACE_OUTPUT");
	char *recorder = launch_find_library();
	struct doctor_question question = {
		.command = options->n_arguments ? options->arguments[0] : NULL,
		.recorder = recorder,
		.output = pattern && *pattern ? pattern : "vramtrace.vt",
	};
	struct findings findings = {NULL, 0, 0};
	struct style style;
	FILE *out;
	int status;

	doctor_examine(&findings, &question);
	out = output_open(options);
	status = out ? STATUS_OK : STATUS_USAGE;
	if (out) {
		style_init(&style, out, options->ascii);
		if (options->json)
			doctor_json(out, &findings);
		else
			doctor_text(&style, &findings);
		status = output_close(out, options);
	}
	if (!status && findings_count(&findings, FINDING_PROBLEM))
		status = STATUS_OVER_LIMIT;
	findings_release(&findings);
	free(recorder);
	return status;
}
