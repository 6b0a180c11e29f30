/* A profile's lists may be written item by item: messages that follow one another are one message,
 * so none of them is held in whole. */
#include "output/export.h"
#include "output/export_stack.h"
#include "output/gzip.h"
#include "output/intern.h"
#include "output/pprof.pb-c.h"
#include "output/report.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define N_VALUES   4u
#define MAX_LABELS 6u

struct pprof {
	ProtobufCBuffer base;
	struct gzip gzip;
	struct intern_table texts, frames, functions, mappings;
	struct export_labels labels;
	struct export_stack stack;
	struct export_name name, file;
	uint64_t *location_ids; /* of one sample */
	size_t room;
};

static void append(ProtobufCBuffer *buffer, size_t bytes, const uint8_t *data)
{
	gzip_write(&((struct pprof *)(void *)buffer)->gzip, data, bytes);
}

static void put(struct pprof *pprof, const Pprof__Profile *part)
{
	protobuf_c_message_pack_to_buffer(&part->base, &pprof->base);
}

/* Index of text, which is written when it is new. The first index is 0. */
static int64_t text_of(struct pprof *pprof, const char *text)
{
	Pprof__Profile part = PPROF__PROFILE__INIT;
	bool is_new;
	int64_t index = (int64_t)intern_text(&pprof->texts, text, &is_new) - 1;
	char *texts[] = {(char *)(uintptr_t)text};

	if (!is_new)
		return index;
	part.n_string_table = 1;
	part.string_table = texts;
	put(pprof, &part);
	return index;
}

/* Sets an optional field of a message. */
#define SET(message, field, value) ((message).has_##field = true, (message).field = (value))

static uint64_t mapping_of(struct pprof *pprof, const struct show *show, const char *module)
{
	const char *path = module ? export_name_set(&pprof->file, show_path(show, module)) : NULL;
	Pprof__Profile part = PPROF__PROFILE__INIT;
	Pprof__Mapping mapping = PPROF__MAPPING__INIT, *mappings[] = {&mapping};
	bool is_new;
	uint64_t id;

	if (!path)
		return 0;
	id = intern_text(&pprof->mappings, path, &is_new);
	if (!is_new)
		return id;
	SET(mapping, id, id);
	SET(mapping, filename, text_of(pprof, path));
	/* Whoever reads this need not look for the file: all that is known is here. */
	SET(mapping, has_functions, true);
	SET(mapping, has_filenames, true);
	SET(mapping, has_line_numbers, true);
	SET(mapping, has_inline_frames, true);
	part.n_mapping = 1;
	part.mapping = mappings;
	put(pprof, &part);
	return id;
}

static uint64_t function_of(
	struct pprof *pprof, const struct show *show, const struct symbol_frame *frame)
{
	const char *file = export_frame_file(&pprof->file, show, frame);
	const char *name = export_frame_name(&pprof->name, show, frame);
	Pprof__Profile part = PPROF__PROFILE__INIT;
	Pprof__Function function = PPROF__FUNCTION__INIT, *functions[] = {&function};
	int64_t key[2] = {text_of(pprof, name), text_of(pprof, file ? file : "")};
	bool is_new;
	uint64_t id = intern(&pprof->functions, key, sizeof(key), &is_new);

	if (!is_new)
		return id;
	/* Without a system_name, pprof does not take "<module>" for a template to be shortened. */
	SET(function, id, id);
	SET(function, name, key[0]);
	SET(function, filename, key[1]);
	part.n_function = 1;
	part.function = functions;
	put(pprof, &part);
	return id;
}

/* One line a location, also where functions were inlined: some viewers show only one. */
static uint64_t location_of(
	struct pprof *pprof, const struct show *show, const struct symbol_frame *frame)
{
	Pprof__Profile part = PPROF__PROFILE__INIT;
	Pprof__Location location = PPROF__LOCATION__INIT, *locations[] = {&location};
	Pprof__Line line = PPROF__LINE__INIT, *lines[] = {&line};
	bool is_new;
	uint64_t id = intern_number(&pprof->frames, (uintptr_t)frame, &is_new), mapping_id;

	if (!is_new)
		return id;
	SET(location, id, id);
	mapping_id = mapping_of(pprof, show, frame->module);
	if (mapping_id)
		SET(location, mapping_id, mapping_id);
	if (frame->address)
		SET(location, address, frame->address);
	SET(line, function_id, function_of(pprof, show, frame));
	if (frame->line)
		SET(line, line, frame->line);
	location.n_line = 1;
	location.line = lines;
	part.n_location = 1;
	part.location = locations;
	put(pprof, &part);
	return id;
}

static void put_label(
	struct pprof *pprof, Pprof__Sample *sample, const char *key, const char *value)
{
	Pprof__Label *label = sample->label[sample->n_label++];

	pprof__label__init(label);
	SET(*label, key, text_of(pprof, key));
	SET(*label, str, text_of(pprof, value));
}

static void put_labels(struct pprof *pprof, const struct export_trace *trace,
	const struct export_site *site, Pprof__Sample *sample)
{
	char rank[32];

	put_label(pprof, sample, "device", report_device_name(site->device).text);
	put_label(pprof, sample, "kind", model_kind_name(site->kind));
	put_label(pprof, sample, "owner",
		export_name_set(&pprof->name, export_site_owner(&trace->source, site)));
	put_label(pprof, sample, "layer", export_site_layer(&pprof->name, &trace->source, site));
	put_label(pprof, sample, "process", export_process_name(trace->facts).text);
	if (trace->facts->rank < 0)
		return;
	snprintf(rank, sizeof(rank), "%" PRId64, trace->facts->rank);
	put_label(pprof, sample, "rank", rank);
}

static void put_sample(
	struct pprof *pprof, const struct export_trace *trace, const struct export_site *site)
{
	Pprof__Profile part = PPROF__PROFILE__INIT;
	Pprof__Sample sample = PPROF__SAMPLE__INIT, *samples[] = {&sample};
	Pprof__Label labels[MAX_LABELS], *label_list[MAX_LABELS];
	int64_t values[N_VALUES] = {(int64_t)site->n_allocs, (int64_t)site->alloc_bytes,
		(int64_t)site->n_live, (int64_t)site->live_bytes};

	export_stack_of_site(&pprof->stack, &pprof->labels, &trace->source, site);
	if (pprof->room < pprof->stack.n_frames) {
		free(pprof->location_ids);
		pprof->room = pprof->stack.n_frames;
		pprof->location_ids = memory_new(pprof->room, sizeof(*pprof->location_ids));
	}
	for (size_t i = 0; i < pprof->stack.n_frames; i++)
		pprof->location_ids[i] =
			location_of(pprof, &trace->source.show, pprof->stack.frames[i]);
	for (size_t i = 0; i < MAX_LABELS; i++)
		label_list[i] = &labels[i];
	sample.n_location_id = pprof->stack.n_frames;
	sample.location_id = pprof->location_ids;
	sample.n_value = N_VALUES;
	sample.value = values;
	sample.label = label_list;
	put_labels(pprof, trace, site, &sample);
	part.n_sample = 1;
	part.sample = samples;
	put(pprof, &part);
}

static void put_types(struct pprof *pprof)
{
	static const char *const names[N_VALUES][2] = {{"alloc_objects", "count"},
		{"alloc_space", "bytes"}, {"inuse_objects", "count"}, {"inuse_space", "bytes"}};
	Pprof__Profile part = PPROF__PROFILE__INIT;
	Pprof__ValueType types[N_VALUES], *list[N_VALUES], period = PPROF__VALUE_TYPE__INIT;

	for (size_t i = 0; i < N_VALUES; i++) {
		pprof__value_type__init(&types[i]);
		SET(types[i], type, text_of(pprof, names[i][0]));
		SET(types[i], unit, text_of(pprof, names[i][1]));
		list[i] = &types[i];
	}
	SET(period, type, text_of(pprof, "space"));
	SET(period, unit, text_of(pprof, "bytes"));
	part.n_sample_type = N_VALUES;
	part.sample_type = list;
	part.period_type = &period;
	SET(part, period, 1);
	SET(part, default_sample_type, types[N_VALUES - 1].type);
	put(pprof, &part);
}

/* The first mapping is taken for the program. */
static void put_program(struct pprof *pprof, const struct export_trace *trace)
{
	struct vt_text exe = trace->facts->exe;
	char *path = memory_new(exe.bytes + 1, 1);

	if (exe.bytes)
		memcpy(path, exe.data, exe.bytes);
	mapping_of(pprof, &trace->source.show, *path ? path : NULL);
	free(path);
}

/* What the figures are of, for `pprof -comments`; and the time of the first moment. */
static void put_moments(struct pprof *pprof, const struct export_trace *traces, size_t n)
{
	bool timed = false;

	for (size_t i = 0; i < n; i++) {
		for (size_t k = 0; k < traces[i].n_moments; k++) {
			const struct export_moment *moment = &traces[i].moments[k];
			Pprof__Profile part = PPROF__PROFILE__INIT;
			char text[256];
			int64_t comment;

			snprintf(text, sizeof(text), "%s: %s",
				export_process_name(traces[i].facts).text,
				export_moment_name(moment).text);
			comment = text_of(pprof, text);
			part.n_comment = 1;
			part.comment = &comment;
			if (!timed) {
				SET(part, time_nanos,
					(int64_t)(traces[i].facts->start_realtime_ns +
						  moment->time_ns));
				SET(part, duration_nanos, (int64_t)moment->time_ns);
			}
			timed = true;
			put(pprof, &part);
		}
	}
}

void export_pprof(FILE *out, const struct export_trace *traces, size_t n)
{
	struct pprof pprof = {.base.append = append};

	gzip_begin(&pprof.gzip, out);
	text_of(&pprof, "");
	put_types(&pprof);
	put_program(&pprof, traces);
	put_moments(&pprof, traces, n);
	for (size_t i = 0; i < n; i++)
		for (size_t k = 0; k < traces[i].n_moments; k++)
			for (size_t s = 0; s < traces[i].moments[k].n_sites; s++)
				put_sample(&pprof, &traces[i], &traces[i].moments[k].sites[s]);
	gzip_end(&pprof.gzip);
	intern_release(&pprof.texts);
	intern_release(&pprof.frames);
	intern_release(&pprof.functions);
	intern_release(&pprof.mappings);
	export_labels_release(&pprof.labels);
	export_stack_release(&pprof.stack);
	export_name_release(&pprof.name);
	export_name_release(&pprof.file);
	free(pprof.location_ids);
}
