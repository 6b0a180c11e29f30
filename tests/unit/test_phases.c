/* tools/model/phases.h: which end belongs to which begin, what counts for which phase, and what the
 * kernel's samples and pauses add up to. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "analysis/phases.h"
#include "unit/story.h"

static struct vt_text text(const char *string)
{
	return (struct vt_text){string, strlen(string)};
}

struct given {
	uint32_t tid;
	uint64_t told;
	const char *name;
	const char *domain;
	uint64_t range_id;
	uint64_t thread_id;
};

static void tell(struct story *story, uint64_t action, struct given given)
{
	apply(story, (struct vt_record){.kind = VT_REC_phase,
			     .tid = given.tid,
			     .phase = {.action = action,
				     .told = given.told,
				     .thread_id = given.thread_id,
				     .range_id = given.range_id,
				     .name = text(given.name ? given.name : ""),
				     .domain = text(given.domain ? given.domain : "")}});
}

/* BEGIN(thread, how, name, .domain = ..., ...) */
#define GIVEN(thread, how, called, ...)                                                            \
	(struct given)                                                                             \
	{                                                                                          \
		.tid = (thread), .told = (how), .name = (called), ##__VA_ARGS__                    \
	}
#define BEGIN(...) tell(&story, VT_PHASE_BEGIN, GIVEN(__VA_ARGS__))
#define END(...)   tell(&story, VT_PHASE_END, GIVEN(__VA_ARGS__))

static void mark(struct story *story, const char *name)
{
	apply(story, (struct vt_record){.kind = VT_REC_mark,
			     .mark = {.told = VT_TOLD_API, .name = text(name)}});
}

static void copy(struct story *story, uint32_t tid, uint64_t bytes, uint64_t duration_ns)
{
	apply(story, (struct vt_record){.kind = VT_REC_copy,
			     .tid = tid,
			     .copy = {.direction = VT_DIR_H2D,
				     .dst = 0x1000000,
				     .src = 0x7000,
				     .bytes = bytes,
				     .duration_ns = duration_ns}});
}

static const struct model_phase *phase(const struct story *story, const char *name)
{
	struct model_phase *found;

	HASH_FIND_STR(story->model->phases.by_name, name, found);
	if (!found)
		fail_msg("no phase %s", name);
	return found;
}

static void assert_place(const struct story *story, uint64_t tid, const char *name, bool is_mark)
{
	struct model_place_name place = model_place_at(story->model, tid);
	char at[100];

	assert_string_equal(model_place_text(&place, at, sizeof(at)), name);
	assert_int_equal(place.is_mark, is_mark);
}

static void test_names(void **state)
{
	static const struct {
		const char *name;
		const char *united;
	} names[] = {{"step 1", "step *"}, {"step 234", "step *"}, {"conv2d", "conv2d"},
		{"layer.12.weight", "layer.*.weight"}, {"12", "*"}, {"epoch 1.5", "epoch *.*"},
		{"a_7_8", "a_*_*"}, {"5 x", "* x"}, {"7*7", "**"},
		{"\xc3\xa9"
		 "5",
			"\xc3\xa9"
			"5"}};
	struct story story = begin(1);

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		uint64_t n;

		BEGIN(1, VT_TOLD_API, names[i].name);
		n = phase(&story, names[i].united)->n;
		assert_true(n > 0);
		assert_place(&story, 1, names[i].name, false);
	}
	assert_int_equal(phase(&story, "step *")->n, 2);
	assert_int_equal(phase(&story, "step *")->n_open, 2);
	BEGIN(1, VT_TOLD_NVTX, "ncclAllReduce", .domain = "NCCL");
	assert_int_equal(phase(&story, "NCCL:ncclAllReduce")->n, 1);
	model_free(story.model);
}

/* By name: the newest of the thread, else of any. */
static void test_ends_by_name(void **state)
{
	struct story story = begin(1);

	(void)state;
	BEGIN(1, VT_TOLD_API, "outer"); /* 100 */
	BEGIN(1, VT_TOLD_API, "inner");
	BEGIN(2, VT_TOLD_API, "inner");
	END(1, VT_TOLD_API, "inner"); /* 103: that of 101 */
	assert_int_equal(phase(&story, "inner")->n_open, 1);
	assert_int_equal(phase(&story, "inner")->total_ns, 2);
	END(1, VT_TOLD_API, "inner"); /* 104: that of the other thread, of 102 */
	assert_int_equal(phase(&story, "inner")->n_open, 0);
	assert_int_equal(phase(&story, "inner")->total_ns, 4);
	assert_int_equal(phase(&story, "inner")->longest_ns, 2);
	END(1, VT_TOLD_API, "inner");
	assert_int_equal(story.model->phases.n_unmatched, 1);
	END(3, VT_TOLD_API, "outer"); /* 106 */
	assert_int_equal(phase(&story, "outer")->total_ns, 6);
	assert_int_equal(story.model->phases.n_open, 0);
	model_free(story.model);
}

/* Push and pop nest in thread and domain; ranges go by number. */
static void test_ends_of_nvtx(void **state)
{
	struct story story = begin(1);

	(void)state;
	BEGIN(1, VT_TOLD_NVTX, "a");
	BEGIN(1, VT_TOLD_NVTX, "b");
	BEGIN(1, VT_TOLD_NVTX, "c", .domain = "library");
	BEGIN(2, VT_TOLD_NVTX, "d");
	BEGIN(1, VT_TOLD_API, "e");
	BEGIN(1, VT_TOLD_NVTX_RANGE, "r", .range_id = 7);
	BEGIN(1, VT_TOLD_NVTX_RANGE, "s", .range_id = 8);
	END(1, VT_TOLD_NVTX, NULL);
	assert_int_equal(phase(&story, "b")->n_open, 0);
	assert_int_equal(phase(&story, "a")->n_open, 1);
	END(1, VT_TOLD_NVTX, NULL, .domain = "library");
	assert_int_equal(phase(&story, "library:c")->n_open, 0);
	END(1, VT_TOLD_NVTX, NULL, .domain = "library");
	assert_int_equal(story.model->phases.n_unmatched, 1);
	END(9, VT_TOLD_NVTX_RANGE, NULL, .range_id = 7);
	assert_int_equal(phase(&story, "r")->n_open, 0);
	assert_int_equal(phase(&story, "s")->n_open, 1);
	END(1, VT_TOLD_NVTX, NULL);
	assert_int_equal(phase(&story, "a")->n_open, 0);
	assert_int_equal(phase(&story, "d")->n_open, 1);
	assert_int_equal(phase(&story, "e")->n_open, 1);
	model_free(story.model);
}

/* Copies count for what their thread has open, once a name; without anything, for what the newest
 * phase's thread has. */
static void test_copies(void **state)
{
	struct story story = begin(1);

	(void)state;
	copy(&story, 1, 1, 1);
	BEGIN(1, VT_TOLD_API, "outer");
	copy(&story, 1, 10, 100);
	BEGIN(1, VT_TOLD_API, "step 1");
	BEGIN(1, VT_TOLD_API, "step 2");
	copy(&story, 1, 20, 200);
	BEGIN(2, VT_TOLD_API, "other");
	copy(&story, 1, 40, 400);
	copy(&story, 2, 80, 800);
	copy(&story, 3, 160, 1600);
	apply(&story, (struct vt_record){.kind = VT_REC_copy_time,
			      .tid = 2,
			      .copy_time = {.timed_id = 1, .wait_ns = 30}});
	apply(&story, (struct vt_record){.kind = VT_REC_copy,
			      .tid = 2,
			      .copy = {.bytes = 5, .duration_ns = 5, .result = 1}});
	apply(&story, (struct vt_record){.kind = VT_REC_copy,
			      .tid = 2,
			      .copy = {.bytes = 5, .duration_ns = 5, .flags = VT_COPY_CAPTURED}});
	assert_int_equal(phase(&story, "outer")->copies.n, 3);
	assert_int_equal(phase(&story, "outer")->copies.ns, 700);
	assert_int_equal(phase(&story, "step *")->copies.n, 2);
	assert_int_equal(phase(&story, "step *")->copies.ns, 600);
	assert_int_equal(phase(&story, "step *")->copies.bytes, 60);
	assert_int_equal(phase(&story, "other")->copies.n, 2);
	assert_int_equal(phase(&story, "other")->copies.ns, 2400);
	assert_int_equal(phase(&story, "other")->waits.n, 1);
	assert_int_equal(phase(&story, "other")->waits.ns, 30);
	model_free(story.model);
}

/* The most while any phase of the name was open; and where the program was at the device's peak. */
static void test_peaks(void **state)
{
	struct story story = begin(2);
	const struct model_device *device = story.model->devices[0];

	(void)state;
	alloc(&story, VT_KIND_LINEAR, 0, 0x1000000, 2 * PAGE, 1);
	assert_null(device->peak_place.name.data);
	BEGIN(1, VT_TOLD_API, "load");
	assert_int_equal(phase(&story, "load")->peaks[0].tracked_bytes, 2 * PAGE);
	alloc(&story, VT_KIND_LINEAR, 0, 0x2000000, 3 * PAGE, 1);
	alloc(&story, VT_KIND_LINEAR, 1, 0x5000000, 1 * PAGE, 1);
	give_back(&story, 0x2000000, 0);
	END(1, VT_TOLD_API, "load");
	assert_memory_equal(device->peak_place.name.data, "load", 4);
	assert_int_equal(phase(&story, "load")->n_peaks, 2);
	assert_int_equal(phase(&story, "load")->peaks[0].tracked_bytes, 5 * PAGE);
	assert_int_equal(phase(&story, "load")->peaks[1].tracked_bytes, 1 * PAGE);
	BEGIN(1, VT_TOLD_API, "small");
	alloc(&story, VT_KIND_LINEAR, 0, 0x2000000, 1 * PAGE, 1);
	assert_int_equal(phase(&story, "small")->peaks[0].tracked_bytes, 3 * PAGE);
	assert_memory_equal(device->peak_place.name.data, "load", 4);
	END(1, VT_TOLD_API, "small");
	/* A new peak outside any phase is in none of them; after a mark it is after that. */
	alloc(&story, VT_KIND_LINEAR, 0, 0x3000000, 8 * PAGE, 1);
	assert_null(device->peak_place.name.data);
	assert_int_equal(phase(&story, "load")->peaks[0].tracked_bytes, 5 * PAGE);
	mark(&story, "step 5");
	alloc(&story, VT_KIND_LINEAR, 0, 0x6000000, 8 * PAGE, 1);
	assert_memory_equal(device->peak_place.name.data, "step 5", 6);
	assert_true(device->peak_place.is_mark);
	assert_place(&story, 1, "step 5", true);
	model_free(story.model);
}

/* A begin that was written for another thread. */
static void test_of_other_thread(void **state)
{
	struct story story = begin(1);

	(void)state;
	BEGIN(1, VT_TOLD_NVTX, "early", .thread_id = 2);
	END(1, VT_TOLD_NVTX, NULL);
	assert_int_equal(phase(&story, "early")->n_open, 1);
	END(2, VT_TOLD_NVTX, NULL);
	assert_int_equal(phase(&story, "early")->n_open, 0);
	model_free(story.model);
}

static void test_limits(void **state)
{
	struct story story = begin(1);
	char name[40];

	(void)state;
	for (unsigned int i = 0; i < MODEL_MAX_OPEN_PHASES + 5; i++)
		BEGIN(1, VT_TOLD_API, "forever");
	assert_int_equal(story.model->phases.n_open, MODEL_MAX_OPEN_PHASES);
	assert_int_equal(story.model->phases.n_left_out, 5);
	for (unsigned int i = 0; i < MODEL_MAX_OPEN_PHASES; i++)
		END(1, VT_TOLD_API, "forever");
	assert_int_equal(story.model->phases.n_open, 0);
	for (unsigned int i = 0; i < MODEL_MAX_PHASES + 5; i++) {
		snprintf(name, sizeof(name), "name%u", i);
		BEGIN(1, VT_TOLD_API, name);
		END(1, VT_TOLD_API, name);
	}
	assert_int_equal(HASH_COUNT(story.model->phases.by_name), MODEL_MAX_PHASES);
	assert_int_equal(story.model->phases.n_left_out, 5 + 6);
	model_free(story.model);
}

static void test_list(void **state)
{
	struct story story = begin(1);
	struct phase_list list;

	(void)state;
	mark(&story, "b"); /* 100 */
	mark(&story, "a");
	mark(&story, "b");
	BEGIN(1, VT_TOLD_API, "short"); /* 103 */
	copy(&story, 1, 1, 50);
	END(1, VT_TOLD_API, "short");
	BEGIN(1, VT_TOLD_API, "open"); /* 106 */
	story.now = 200;
	mark(&story, "a");
	phase_list_make(&list, story.model);
	assert_int_equal(list.n_phases, 2);
	assert_string_equal(list.phases[0].phase->name, "open");
	assert_int_equal(list.phases[0].time_ns, 94);
	assert_int_equal(list.phases[1].time_ns, 2);
	phase_list_sort_by_copies(&list);
	assert_string_equal(list.phases[0].phase->name, "short");
	assert_int_equal(list.n_marks, 2);
	assert_string_equal(list.marks[0].phase->name, "b");
	assert_int_equal(list.marks[0].phase->n, 2);
	assert_int_equal(list.marks[1].phase->first_ns, 101);
	assert_int_equal(list.marks[1].phase->last_ns, 200);
	phase_list_release(&list);
	model_free(story.model);
}

static void sample(struct story *story, struct vt_rec_host_memory given)
{
	apply(story, (struct vt_record){.kind = VT_REC_host_memory, .host_memory = given});
}

static void test_host(void **state)
{
	struct story story = begin(1);
	const struct model_host_samples *samples = &story.model->host_samples;

	(void)state;
	sample(&story, (struct vt_rec_host_memory){.known = VT_HOST_RESIDENT, .resident_bytes = 5});
	assert_false(samples->least_available.seen);
	assert_false(samples->most_locked.seen);
	sample(&story, (struct vt_rec_host_memory){.known = 31,
			       .resident_bytes = 9,
			       .available_bytes = 50,
			       .swap_total_bytes = 20,
			       .swap_free_bytes = 5});
	sample(&story, (struct vt_rec_host_memory){.known = 31,
			       .resident_bytes = 7,
			       .locked_bytes = 3,
			       .available_bytes = 40,
			       .swap_total_bytes = 20,
			       .swap_free_bytes = 6});
	assert_int_equal(samples->n, 3);
	assert_int_equal(samples->most_resident.bytes, 9);
	assert_int_equal(samples->most_resident.time_ns, 101);
	assert_int_equal(samples->most_locked.bytes, 3);
	assert_true(samples->most_swapped.seen);
	assert_int_equal(samples->least_available.bytes, 40);
	assert_int_equal(samples->least_available.time_ns, 102);
	assert_int_equal(samples->most_swap_used.bytes, 15);
	assert_int_equal(samples->last.resident_bytes, 7);
	model_free(story.model);
}

static void pause_or_resume(struct story *story, uint64_t paused)
{
	apply(story, (struct vt_record){.kind = VT_REC_pause, .pause = {.paused = paused}});
}

static void test_pauses(void **state)
{
	struct story story = begin(1);

	(void)state;
	pause_or_resume(&story, 0);
	assert_int_equal(story.model->pauses.n, 0);
	pause_or_resume(&story, 1); /* 101 */
	pause_or_resume(&story, 1);
	story.now = 151;
	pause_or_resume(&story, 0);
	assert_int_equal(story.model->pauses.n, 1);
	assert_int_equal(model_paused_ns(story.model), 50);
	pause_or_resume(&story, 1); /* 152 */
	story.now = 162;
	alloc(&story, VT_KIND_LINEAR, 0, 0x1000000, PAGE, 0);
	assert_int_equal(story.model->pauses.n, 2);
	assert_true(story.model->pauses.now);
	assert_int_equal(model_paused_ns(story.model), 60);
	model_free(story.model);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_ends_by_name),
		cmocka_unit_test(test_ends_of_nvtx),
		cmocka_unit_test(test_copies),
		cmocka_unit_test(test_peaks),
		cmocka_unit_test(test_of_other_thread),
		cmocka_unit_test(test_limits),
		cmocka_unit_test(test_list),
		cmocka_unit_test(test_host),
		cmocka_unit_test(test_pauses),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
