#include "output/metrics_text.h"

#include <inttypes.h>
#include <string.h>

#include "model/blocks.h"
#include "output/show.h"

/* One metric of one trace: prints its samples. */
typedef void put_samples(FILE *out, const char *name, const struct report_trace *trace);

static void put_escaped(FILE *out, struct vt_text text)
{
	for (size_t i = 0; i < text.bytes;) {
		size_t n = format_utf8_length(text.data + i, text.bytes - i);
		char c = text.data[i];

		if (c == '\\' || c == '"')
			fprintf(out, "\\%c", c);
		else if (!n || (unsigned char)c < ' ' || c == 127)
			fputc('?', out);
		else
			fwrite(text.data + i, 1, n, out);
		i += n ? n : 1;
	}
}

static void put_label(FILE *out, const char *name, const char *value)
{
	fprintf(out, ",%s=\"", name);
	put_escaped(out, (struct vt_text){value, strlen(value)});
	fputc('"', out);
}

/* name{pid=...,exe=...,rank=... */
static void begin(FILE *out, const char *name, const struct report_trace *trace)
{
	const struct trace_facts *facts = &trace->overview->facts;
	const char *slash =
		facts->exe.bytes ? memrchr(facts->exe.data, '/', facts->exe.bytes) : NULL;
	struct vt_text exe = facts->exe;

	if (slash) {
		exe.bytes -= (size_t)(slash + 1 - exe.data);
		exe.data = slash + 1;
	}
	fprintf(out, "%s{pid=\"%" PRIu64 "\",exe=\"", name, facts->pid);
	put_escaped(out, exe);
	fputc('"', out);
	if (facts->rank >= 0)
		fprintf(out, ",rank=\"%" PRId64 "\"", facts->rank);
}

static void put_uuid(FILE *out, struct vt_text uuid)
{
	if (uuid.bytes != 16)
		return;
	fputs(",uuid=\"GPU-", out);
	for (size_t i = 0; i < uuid.bytes; i++)
		fprintf(out, "%s%02x", i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "",
			(unsigned char)uuid.data[i]);
	fputc('"', out);
}

static void begin_device(FILE *out, const char *name, const struct report_trace *trace,
	const struct model_device *device)
{
	begin(out, name, trace);
	fprintf(out, ",device=\"%d\"", device->ordinal);
	put_uuid(out, device->uuid);
}

static void end(FILE *out, uint64_t value)
{
	fprintf(out, "} %" PRIu64 "\n", value);
}

static const struct model *model_of(const struct report_trace *trace)
{
	return trace->overview->replay->model;
}

static void put_running(FILE *out, const char *name, const struct report_trace *trace)
{
	begin(out, name, trace);
	end(out, trace->overview->facts.end == TRACE_END_RUNNING);
}

static void put_events(FILE *out, const char *name, const struct report_trace *trace)
{
	begin(out, name, trace);
	end(out, trace->overview->facts.n_events);
}

static void put_lost(FILE *out, const char *name, const struct report_trace *trace)
{
	begin(out, name, trace);
	end(out, trace->overview->facts.n_lost);
}

static void put_refused(FILE *out, const char *name, const struct report_trace *trace)
{
	const struct model_failure *failure = model_of(trace)->failures;
	uint64_t n = 0;

	for (; failure; failure = failure->hh.next)
		if (failure->key.result == VT_RESULT_OUT_OF_MEMORY &&
			failure->key.refusal != MODEL_REFUSED_BLOCK)
			n += failure->n_calls;
	begin(out, name, trace);
	end(out, n);
}

/* One sample for each device, of a member of its struct; where `if_` holds. */
#define DEVICE_SAMPLES(function, value, if_)                                                       \
	static void function(FILE *out, const char *name, const struct report_trace *trace)        \
	{                                                                                          \
		const struct model *model = model_of(trace);                                       \
                                                                                                   \
		for (size_t i = 0; i < model->n_devices; i++) {                                    \
			const struct model_device *device = model->devices[i];                     \
                                                                                                   \
			if (!(if_))                                                                \
				continue;                                                          \
			begin_device(out, name, trace, device);                                    \
			end(out, value);                                                           \
		}                                                                                  \
	}
DEVICE_SAMPLES(put_tracked, device->tracked_bytes, true)
DEVICE_SAMPLES(put_peak, device->peak_tracked_bytes, true)
DEVICE_SAMPLES(put_total, device->total_bytes, device->total_bytes)
DEVICE_SAMPLES(put_used, device->last_sample.used_bytes, device->last_sample.seen)
DEVICE_SAMPLES(put_free, device->last_sample.free_bytes, device->last_sample.seen)

/* One sample for each device and kind that was ever used. */
#define KIND_SAMPLES(function, member)                                                             \
	static void function(FILE *out, const char *name, const struct report_trace *trace)        \
	{                                                                                          \
		const struct model *model = model_of(trace);                                       \
                                                                                                   \
		for (size_t i = 0; i < model->n_devices; i++)                                      \
			for (uint32_t kind = 0; kind < VT_N_KINDS; kind++) {                       \
				const struct model_totals *totals =                                \
					&model->devices[i]->kinds[kind];                           \
                                                                                                   \
				if (!totals->n_allocs)                                             \
					continue;                                                  \
				begin_device(out, name, trace, model->devices[i]);                 \
				put_label(out, "kind", model_kind_name(kind));                     \
				end(out, totals->member);                                          \
			}                                                                          \
	}
KIND_SAMPLES(put_live, live_bytes)
KIND_SAMPLES(put_n_live, n_live)
KIND_SAMPLES(put_allocs, n_allocs)
KIND_SAMPLES(put_frees, n_frees)
KIND_SAMPLES(put_alloc_bytes, alloc_bytes)

static void put_owners(FILE *out, const char *name, const struct report_trace *trace)
{
	const struct owner_list *owners = &trace->overview->owners;

	for (size_t i = 0; i < owners->n_rows; i++) {
		const struct owner_row *row = owners->rows[i];
		const struct model_device *device = model_device_find(model_of(trace), row->device);

		if (!device || row->device < 0)
			continue;
		begin_device(out, name, trace, device);
		put_label(out, "owner", row->owner ? row->owner : "unknown");
		end(out, row->totals.live_bytes);
	}
}

static void put_host(FILE *out, const char *name, const struct report_trace *trace)
{
	for (uint32_t kind = VT_KIND_PINNED; kind <= VT_KIND_REGISTERED; kind++) {
		begin(out, name, trace);
		put_label(out, "kind", model_kind_name(kind));
		end(out, model_of(trace)->host.kinds[kind].live_bytes);
	}
}

static void put_allocator(FILE *out, const char *name, const struct report_trace *trace,
	const struct model_allocator *allocator, uint64_t bytes)
{
	begin(out, name, trace);
	if (allocator->device >= 0)
		fprintf(out, ",device=\"%d\"", allocator->device);
	fputs(",allocator=\"", out);
	put_escaped(out, allocator->name);
	fprintf(out, "\",allocator_id=\"%" PRIu64 "\"", allocator->allocator_id);
	end(out, bytes);
}

static void put_blocks(FILE *out, const char *name, const struct report_trace *trace)
{
	const struct model_allocator *allocator = model_of(trace)->allocators;

	for (; allocator; allocator = allocator->hh.next)
		put_allocator(out, name, trace, allocator, allocator->live_bytes);
}

static void put_reserved(FILE *out, const char *name, const struct report_trace *trace)
{
	const struct model_allocator *allocator = model_of(trace)->allocators;

	for (; allocator; allocator = allocator->hh.next)
		put_allocator(out, name, trace, allocator, allocator->reserved_bytes);
}

static const struct metric {
	const char *name;
	const char *help;
	put_samples *put;
	bool is_counter;
} metrics[] = {
	{"vramtrace_running", "Whether the process still runs.", put_running, false},
	{"vramtrace_tracked_bytes", "Device memory that the process has from the driver.",
		put_tracked, false},
	{"vramtrace_peak_tracked_bytes", "The most it had.", put_peak, false},
	{"vramtrace_device_bytes", "Memory of the device.", put_total, false},
	{"vramtrace_device_used_bytes", "In use on the device by all processes, when last asked.",
		put_used, false},
	{"vramtrace_device_free_bytes", "Free on the device, when last asked.", put_free, false},
	{"vramtrace_live_bytes", "Bytes asked for and not freed, by kind of memory.", put_live,
		false},
	{"vramtrace_live_allocations", "Allocations not freed, by kind of memory.", put_n_live,
		false},
	{"vramtrace_owner_live_bytes", "Bytes asked for and not freed, by the owner of the code.",
		put_owners, false},
	{"vramtrace_host_bytes", "Page-locked host memory.", put_host, false},
	{"vramtrace_blocks_live_bytes", "In blocks that an allocator handed out.", put_blocks,
		false},
	{"vramtrace_blocks_reserved_bytes", "Memory of the driver that an allocator holds.",
		put_reserved, false},
	{"vramtrace_allocations_total", "Allocations so far, by kind of memory.", put_allocs, true},
	{"vramtrace_frees_total", "Frees so far, by kind of memory.", put_frees, true},
	{"vramtrace_allocated_bytes_total", "Bytes allocated so far, by kind of memory.",
		put_alloc_bytes, true},
	{"vramtrace_out_of_memory_total", "Calls refused for lack of memory so far.", put_refused,
		true},
	{"vramtrace_events_total", "Events recorded so far.", put_events, true},
	{"vramtrace_lost_events_total", "Events that could not be recorded.", put_lost, true},
};

void metrics_text(FILE *out, const struct report_trace *traces, size_t n)
{
	for (size_t i = 0; i < sizeof(metrics) / sizeof(*metrics); i++) {
		const struct metric *metric = &metrics[i];

		if (!metric->is_counter)
			fprintf(out, "# TYPE %s gauge\n", metric->name);
		fprintf(out, "# HELP %s %s\n", metric->name, metric->help);
		for (size_t k = 0; k < n; k++)
			metric->put(out, metric->name, &traces[k]);
	}
	fputs("# EOF\n", out);
}
