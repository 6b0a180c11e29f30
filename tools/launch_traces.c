/* The traces of one `run`: found by their name, known by the mark in the environment they recorded.
 */
#include <fcntl.h>
#include <glob.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "launch.h"
#include "model/memory.h"
#include "model/model.h"
#include "trace/reader.h"

/* A glob for all that pattern can become: values for %x, a number before the ending. To be freed.
 */
static char *glob_of(const char *pattern)
{
	size_t bytes = strlen(pattern);
	char *glob = memory_new(2 * bytes + 2, 1), *to = glob;

	if (bytes > 3 && !strcmp(pattern + bytes - 3, ".vt"))
		bytes -= 3;
	for (size_t i = 0; i < bytes; i++) {
		if (pattern[i] == '%' && i + 1 < bytes && strchr("ephrt%", pattern[i + 1])) {
			*to++ = pattern[++i] == '%' ? '%' : '*';
			continue;
		}
		if (strchr("*?[]\\", pattern[i]))
			*to++ = '\\';
		*to++ = pattern[i];
	}
	*to = '*';
	return glob;
}

struct found {
	char *path;
	uint64_t start_realtime_ns;
};

/* True when path is a trace with this mark. The environment is among its first records. */
static bool has_mark(const char *path, const char *mark, uint64_t *start_realtime_ns)
{
	struct vt_reader *reader;
	struct vt_record record;
	bool is = false;

	if (vt_reader_open(&reader, path))
		return false;
	*start_realtime_ns = vt_reader_header(reader)->start_realtime_ns;
	/* A part is found by the name of its trace. */
	while (!is && !vt_reader_header(reader)->part && vt_reader_next(reader, &record) == 1 &&
		!model_is_event(&record))
		is = record.kind == VT_REC_environment &&
		     record.environment.name.bytes == strlen(LAUNCH_MARK) &&
		     !memcmp(record.environment.name.data, LAUNCH_MARK, strlen(LAUNCH_MARK)) &&
		     record.environment.value.bytes == strlen(mark) &&
		     !memcmp(record.environment.value.data, mark, strlen(mark));
	vt_reader_close(reader);
	return is;
}

static int compare_found(const void *a, const void *b)
{
	const struct found *x = a, *y = b;

	return (x->start_realtime_ns > y->start_realtime_ns) -
	       (x->start_realtime_ns < y->start_realtime_ns);
}

size_t launch_find_traces(const char *pattern, const char *mark, char ***paths)
{
	char *pattern_glob = glob_of(pattern);
	struct found *found;
	size_t n = 0;
	glob_t names;

	*paths = NULL;
	if (glob(pattern_glob, 0, NULL, &names)) {
		free(pattern_glob);
		return 0;
	}
	free(pattern_glob);
	found = memory_new(names.gl_pathc, sizeof(*found));
	for (size_t i = 0; i < names.gl_pathc; i++) {
		uint64_t start_ns;

		if (has_mark(names.gl_pathv[i], mark, &start_ns))
			found[n++] = (struct found){memory_text(names.gl_pathv[i]), start_ns};
	}
	globfree(&names);
	qsort(found, n, sizeof(*found), compare_found);
	*paths = memory_new(n, sizeof(**paths));
	for (size_t i = 0; i < n; i++)
		(*paths)[i] = found[i].path;
	free(found);
	return n;
}

void launch_note_end(char *const *paths, size_t n, const struct launch_end *end)
{
	struct vt_file_header header;
	uint32_t how = end->signalled ? VT_END_SIGNAL : VT_END_EXIT;
	int32_t status = end->status;

	/* A process that executed another program may have left several: the last one saw the end.
	 */
	while (n--) {
		int fd = open(paths[n], O_RDWR | O_CLOEXEC | O_NOFOLLOW);
		bool own;

		if (fd < 0)
			continue;
		own = pread(fd, &header, sizeof(header), 0) == sizeof(header) &&
		      header.pid == (uint32_t)end->pid;
		/* The status first: whoever sees the end sees it too. What cannot be written is
		 * only not known later. */
		if (own &&
			pwrite(fd, &status, sizeof(status),
				offsetof(struct vt_file_header, launcher_status)) ==
				sizeof(status) &&
			pwrite(fd, &how, sizeof(how),
				offsetof(struct vt_file_header, launcher_end)) < 0)
			own = false;
		close(fd);
		if (own)
			return;
	}
}
