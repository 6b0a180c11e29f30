/* Each trace is a packet sequence of its own. What is interned is put into a packet of its own
 * before the first packet that names it. */
#include "output/perfetto.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "model/memory.h"
#include "output/perfetto_parts.h"
#include "output/report.h"

enum clock { CLOCK_OF_WALL = 1, CLOCK_MONOTONIC_NS = 3, CLOCK_COARSE = 4, CLOCK_BOOT = 6 };
enum event_type { EVENT_INSTANT = 3, EVENT_COUNTER = 4 };

#define UNIT_SIZE_BYTES	 3
#define SEQUENCE_CLEARED 1u
#define SEQUENCE_NEEDED	 2u
#define PIDS_APART	 10000000u

static void append(ProtobufCBuffer *buffer, size_t bytes, const uint8_t *data)
{
	fwrite(data, 1, bytes, ((struct perfetto *)(void *)buffer)->out);
}

void perfetto_put_packet(struct perfetto *perfetto, Perfetto__TracePacket *packet)
{
	Perfetto__Trace trace = PERFETTO__TRACE__INIT;

	SET(*packet, trusted_packet_sequence_id, (uint32_t)perfetto->n_traces);
	SET(*packet, sequence_flags,
		SEQUENCE_NEEDED | (perfetto->sequence_begun ? 0 : SEQUENCE_CLEARED));
	perfetto->sequence_begun = true;
	trace.n_packet = 1;
	trace.packet = &packet;
	protobuf_c_message_pack_to_buffer(&trace.base, &perfetto->base);
}

uint64_t perfetto_time(const struct perfetto *perfetto, uint64_t time_ns)
{
	return perfetto->trace->facts->start_realtime_ns + time_ns;
}

uint64_t perfetto_uuid(const struct perfetto *perfetto, uint64_t number)
{
	return perfetto->n_traces * PERFETTO_UUIDS + number;
}

struct perfetto *perfetto_new(FILE *out)
{
	struct perfetto *perfetto = memory_new(1, sizeof(*perfetto));

	perfetto->base.append = append;
	perfetto->out = out;
	return perfetto;
}

void perfetto_free(struct perfetto *perfetto)
{
	perfetto_forget(perfetto);
	export_labels_release(&perfetto->labels);
	export_stack_release(&perfetto->stack);
	export_name_release(&perfetto->name);
	export_name_release(&perfetto->file);
	intern_release(&perfetto->pids);
	free(perfetto->frame_ids);
	free(perfetto);
}

/* All clocks show the wall's time: processes of several hosts have no other one in common. */
static void put_clocks(struct perfetto *perfetto)
{
	static const uint32_t ids[] = {CLOCK_BOOT, CLOCK_MONOTONIC_NS, CLOCK_COARSE, CLOCK_OF_WALL};
	Perfetto__TracePacket packet = PERFETTO__TRACE_PACKET__INIT;
	Perfetto__ClockSnapshot snapshot = PERFETTO__CLOCK_SNAPSHOT__INIT;
	Perfetto__Clock clocks[4], *list[4];

	for (size_t i = 0; i < 4; i++) {
		perfetto__clock__init(&clocks[i]);
		SET(clocks[i], clock_id, ids[i]);
		SET(clocks[i], timestamp, perfetto_time(perfetto, 0));
		list[i] = &clocks[i];
	}
	snapshot.n_clocks = 4;
	snapshot.clocks = list;
	packet.clock_snapshot = &snapshot;
	perfetto_put_packet(perfetto, &packet);
}

void perfetto_put_track(struct perfetto *perfetto, uint64_t number, const char *name, bool counts)
{
	Perfetto__TracePacket packet = PERFETTO__TRACE_PACKET__INIT;
	Perfetto__TrackDescriptor track = PERFETTO__TRACK_DESCRIPTOR__INIT;
	Perfetto__CounterDescriptor counter = PERFETTO__COUNTER_DESCRIPTOR__INIT;

	SET(track, uuid, perfetto_uuid(perfetto, number));
	SET(track, parent_uuid, perfetto_uuid(perfetto, 0));
	track.name = (char *)(uintptr_t)name;
	SET(counter, unit, UNIT_SIZE_BYTES);
	if (counts)
		track.counter = &counter;
	packet.track_descriptor = &track;
	perfetto_put_packet(perfetto, &packet);
}

static void put_process(struct perfetto *perfetto)
{
	struct export_text name = export_process_name(perfetto->trace->facts);
	Perfetto__TracePacket packet = PERFETTO__TRACE_PACKET__INIT;
	Perfetto__TrackDescriptor track = PERFETTO__TRACK_DESCRIPTOR__INIT;
	Perfetto__ProcessDescriptor process = PERFETTO__PROCESS_DESCRIPTOR__INIT;

	SET(process, pid, (int32_t)perfetto->pid);
	process.process_name = name.text;
	SET(track, uuid, perfetto_uuid(perfetto, 0));
	track.process = &process;
	packet.track_descriptor = &track;
	perfetto_put_packet(perfetto, &packet);
}

void perfetto_set_trace(struct perfetto *perfetto, const struct export_trace *trace)
{
	bool is_new;
	uint64_t pid = trace->facts->pid % PIDS_APART;

	perfetto->trace = trace;
	perfetto->n_traces++;
	perfetto->sequence_begun = false;
	perfetto->oom_begun = false;
	perfetto->n_profile_packets = 0;
	perfetto_forget(perfetto);
	/* Processes of several hosts may have the same number. */
	intern_number(&perfetto->pids, pid, &is_new);
	for (uint64_t i = 0; !is_new && i < 200; i++) {
		pid += PIDS_APART;
		intern_number(&perfetto->pids, pid, &is_new);
	}
	perfetto->pid = pid;
	put_clocks(perfetto);
	put_process(perfetto);
}

static void name_curve(
	struct perfetto *perfetto, const struct counter_point *point, char *name, size_t bytes)
{
	static const char *const words[] = {
		[COUNTER_TRACKED] = "tracked",
		[COUNTER_USED] = "in use on the device, by all",
		[COUNTER_UNTRACKED] = "untracked",
		[COUNTER_RESERVED] = "reserved by allocators",
		[COUNTER_BLOCKS] = "in blocks of allocators",
		[COUNTER_PINNED] = "page-locked",
	};
	struct format_text device = report_device_name(point->device);

	if (point->what == COUNTER_OWNER)
		snprintf(name, bytes, "%s, by owner: %.100s", device.text,
			point->owner ? point->owner : "unknown");
	else
		snprintf(name, bytes, "%s %s", device.text, words[point->what]);
	snprintf(name, bytes, "%.200s", export_name_set(&perfetto->name, name));
}

/* Curves begin in no certain order, and some never: their tracks are made when they do. */
static uint64_t track_of(struct perfetto *perfetto, const struct counter_point *point)
{
	uint64_t number = PERFETTO_UUID_OF_CURVE + point->curve;
	char name[256];
	bool is_new;

	intern_number(&perfetto->curves, point->curve, &is_new);
	if (is_new) {
		name_curve(perfetto, point, name, sizeof(name));
		perfetto_put_track(perfetto, number, name, true);
	}
	return perfetto_uuid(perfetto, number);
}

void perfetto_put_point(struct perfetto *perfetto, const struct counter_point *point)
{
	Perfetto__TracePacket packet = PERFETTO__TRACE_PACKET__INIT;
	Perfetto__TrackEvent event = PERFETTO__TRACK_EVENT__INIT;

	SET(event, type, EVENT_COUNTER);
	SET(event, track_uuid, track_of(perfetto, point));
	SET(event, counter_value, point->bytes);
	SET(packet, timestamp, perfetto_time(perfetto, point->time_ns));
	packet.track_event = &event;
	perfetto_put_packet(perfetto, &packet);
}

static void note_number(Perfetto__TrackEvent *event, const char *name, uint64_t value)
{
	Perfetto__DebugAnnotation *note = event->debug_annotations[event->n_debug_annotations++];

	perfetto__debug_annotation__init(note);
	note->name = (char *)(uintptr_t)name;
	SET(*note, uint_value, value);
}

void perfetto_put_episode(struct perfetto *perfetto, const struct episode *episode)
{
	uint64_t bytes = episode->reported ? episode->report_bytes : episode->bytes;
	uint64_t stack_id = episode->reported ? episode->report_stack_id : episode->stack_id;
	Perfetto__TracePacket packet = PERFETTO__TRACE_PACKET__INIT;
	Perfetto__TrackEvent event = PERFETTO__TRACK_EVENT__INIT;
	Perfetto__DebugAnnotation notes[2], *list[2] = {&notes[0], &notes[1]};
	char name[96];

	if (!perfetto->oom_begun)
		perfetto_put_track(perfetto, PERFETTO_UUID_OF_OOM, "out of memory", false);
	perfetto->oom_begun = true;
	snprintf(name, sizeof(name), "%s: %s refused%s", report_device_name(episode->device).text,
		bytes ? format_bytes(bytes).text : "a request",
		episode->recovered ? ", then served" : "");
	event.debug_annotations = list;
	if (bytes)
		note_number(&event, "requested_bytes", bytes);
	if (episode->sampled)
		note_number(&event, "free_bytes", episode->free_bytes);
	SET(event, callstack_iid,
		perfetto_callstack(perfetto, &(struct export_site){.stack_id = stack_id}));
	SET(event, type, EVENT_INSTANT);
	SET(event, track_uuid, perfetto_uuid(perfetto, PERFETTO_UUID_OF_OOM));
	event.name = name;
	SET(packet, timestamp, perfetto_time(perfetto, episode->moment.time_ns));
	packet.track_event = &event;
	perfetto_put_packet(perfetto, &packet);
}
