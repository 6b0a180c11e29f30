/* What the files that write Perfetto's format share. */
#ifndef VRAMTRACE_OUTPUT_PERFETTO_PARTS_H
#define VRAMTRACE_OUTPUT_PERFETTO_PARTS_H

#include "output/export_stack.h"
#include "output/intern.h"
#include "output/perfetto.h"
#include "output/perfetto.pb-c.h"

/* Sets an optional field of a message. */
#define SET(message, field, value) ((message).has_##field = true, (message).field = (value))

struct perfetto {
	ProtobufCBuffer base;
	FILE *out;
	const struct export_trace *trace;
	uint64_t n_traces; /* the number of the trace, from 1 */
	uint64_t pid;
	struct intern_table pids;
	bool sequence_begun, oom_begun;
	uint64_t n_profile_packets;
	/* Of the trace: */
	struct intern_table curves, functions, frames, stacks, paths, files, mappings, heap_names;
	struct perfetto_heap *heaps;
	struct perfetto_heap_name {
		struct export_text name;
		int device;
	} * heap_list; /* in the order of their numbers */
	size_t n_heaps, heaps_room;
	struct export_labels labels;
	struct export_stack stack;
	struct export_name name, file;
	uint64_t *frame_ids;
	size_t frame_ids_room;
};

/* Writes a packet of the trace, whose sequence fields this sets. */
void perfetto_put_packet(struct perfetto *perfetto, Perfetto__TracePacket *packet);

/* Numbers of a trace's tracks; 0 is the process. */
enum {
	PERFETTO_UUID_OF_OOM = 1,
	PERFETTO_UUID_OF_MARKS = 2,
	PERFETTO_UUID_OF_CURVE = 3,
	PERFETTO_UUID_OF_LANE = 32768,
	PERFETTO_UUIDS = 65536,
};

/* The document's number of a track of the trace; and its definition. */
uint64_t perfetto_uuid(const struct perfetto *perfetto, uint64_t number);
void perfetto_put_track(struct perfetto *perfetto, uint64_t number, const char *name, bool counts);

/* A time of the trace on the document's scale. */
uint64_t perfetto_time(const struct perfetto *perfetto, uint64_t time_ns);

/* The interned stack of a site, written when it is new. */
uint64_t perfetto_callstack(struct perfetto *perfetto, const struct export_site *site);

/* Forgets what was interned: another sequence begins. */
void perfetto_forget(struct perfetto *perfetto);

#endif
