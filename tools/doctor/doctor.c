#include "doctor/doctor.h"

#include <stdlib.h>

#include "doctor/image.h"

#define SOUGHT "libcuda.so.1 libunwind.so.8"

/* This command's own loader, asked with these two in LD_PRELOAD, says where it would find them. */
static void check_machine(struct findings *findings, const struct doctor_question *question,
	const struct image *recorder)
{
	char *own = realpath("/proc/self/exe", NULL);
	struct image *image = own ? image_open(own) : NULL;
	struct loaded_list found = {NULL, 0, 0};

	if (image)
		found = loader_list(image_loader(image), own, SOUGHT);
	doctor_check_unwinder(findings, question->recorder, &found);
	doctor_check_driver(findings, recorder, &found);
	loader_release(&found);
	image_close(image);
	free(own);
}

void doctor_examine(struct findings *findings, const struct doctor_question *question)
{
	struct image *recorder = question->recorder ? image_open(question->recorder) : NULL,
		     *image = NULL;
	char *program = NULL;

	if (recorder)
		findings_add(findings, FINDING_OK, "recorder", NULL, "recorder: %s, for %s",
			question->recorder, image_processor(recorder));
	else
		findings_add(findings, FINDING_PROBLEM, "recorder",
			"build or install it beside the command",
			"recorder: no libvramtrace.so that can be preloaded");
	if (question->command)
		program = doctor_find_program(findings, question->command, recorder, &image);
	if (program) {
		struct loaded_list libraries = loader_list(image_loader(image), program, NULL);

		doctor_check_libraries(findings, program, image, &libraries);
		loader_release(&libraries);
	}
	doctor_check_environment(findings);
	doctor_check_output(findings, question->output);
	check_machine(findings, question, recorder);
	image_close(image);
	image_close(recorder);
	free(program);
}
