/* rebound IN OUT BYTES: writes the records of the trace IN into a bounded trace OUT, as the
 * recorder would have with VRAMTRACE_MAX_SIZE. What both say can then be compared to the byte. */
#include <stdio.h>
#include <stdlib.h>

#include "record/keep/keep.h"
#include "trace/reader.h"

#define MAX_THREADS 256

static struct vt_writer writer;
static struct {
	uint32_t tid;
	struct vt_lane *lane;
} threads[MAX_THREADS];
static uint64_t last_ns;

/* The clock is that of the records. */
static void checkpoint(struct vt_lane *lane, uint64_t number, uint64_t now_ns)
{
	(void)now_ns;
	keep_keeper.checkpoint(lane, number, last_ns);
}

static struct vt_lane *lane_of(const struct vt_record *record)
{
	size_t i = 0;

	while (i < MAX_THREADS && threads[i].lane && threads[i].tid != record->tid)
		i++;
	if (i == MAX_THREADS)
		exit(1);
	if (!threads[i].lane) {
		threads[i].tid = record->tid;
		threads[i].lane = vt_writer_lane(&writer, record->tid, record->time_ns);
	}
	return threads[i].lane;
}

static int put(struct vt_lane *lane, const struct vt_record *record)
{
	switch (record->kind) {
#define RECORD(number, rec, doc)                                                                   \
	case number:                                                                               \
		return vt_put_##rec(lane, &record->rec);
#define FIELD(type, name, doc)
#define END_RECORD(rec)
#include "vramtrace/records.def"
	default:
		return 0;
	}
}

int main(int argc, char **argv)
{
	const struct vt_keeper keeper = {keep_keeper.observe, checkpoint};
	struct vt_writer_options options = {
		.max_bytes = argc == 4 ? strtoull(argv[3], NULL, 10) : 0, .keeper = &keeper};
	struct vt_reader *reader;
	struct vt_record record;

	if (argc != 4 || vt_reader_open(&reader, argv[1]))
		return 2;
	if (vt_writer_open(&writer, argv[2], &options))
		return 1;
	while (vt_reader_next(reader, &record) == 1) {
		last_ns = record.time_ns;
		if (put(lane_of(&record), &record))
			return 1;
	}
	vt_writer_close(&writer);
	vt_reader_close(reader);
	printf("%llu parts, the oldest is %llu\n", (unsigned long long)writer.parts.number,
		(unsigned long long)writer.parts.first);
	return 0;
}
