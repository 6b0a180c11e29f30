#include "packing.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "analysis/facts.h"
#include "input.h"
#include "model/memory.h"
#include "output/format.h"
#include "output/line.h"
#include "pack/file.h"
#include "pack/join.h"
#include "pack/pack.h"
#include "pack/unpack.h"

/* One trace on its way. */
struct packing {
	const char *path;
	const char *output;
	int own_fd; /* of the file at path */
	int fd;	    /* what is read: the same, or all its parts in one */
	struct snapshot snapshot;
	struct replay *replay;
	struct symbol_table *symbols;
	struct trace_facts facts;
	uint64_t last_ns; /* of any record */
	struct symbol_chunks chunks;
	struct pack pack;
};

static void observe(void *user, const struct model *model, const struct vt_record *record)
{
	struct packing *packing = user;

	(void)model;
	if (record->time_ns > packing->last_ns)
		packing->last_ns = record->time_ns;
	if (record->kind == VT_REC_module &&
		symbol_table_add_module(packing->symbols, &record->module))
		memory_exhausted();
}

static void packing_close(struct packing *packing)
{
	symbol_chunks_release(&packing->chunks);
	replay_close(packing->replay);
	symbol_table_free(packing->symbols);
	snapshot_release(&packing->snapshot);
	if (packing->fd >= 0 && packing->fd != packing->own_fd)
		close(packing->fd);
	if (packing->own_fd >= 0)
		close(packing->own_fd);
}

static int packing_read(struct packing *packing)
{
	int error;

	packing->symbols = symbol_table_new();
	if (!packing->symbols)
		return VT_E_NO_MEMORY;
	/* The snapshot first: all its stacks are then among those that the replay sees. */
	error = snapshot_take(&packing->snapshot, packing->fd);
	if (error)
		return error;
	error = replay_open_fd(
		&packing->replay, packing->fd, packing->path, VT_PARTS_ALL, observe, packing);
	if (error)
		return error;
	trace_facts_get(&packing->facts, packing->replay);
	return 0;
}

/* Opens and reads the trace. Returns STATUS_OK, or the exit status after one line on stderr; to be
 * ended with packing_close either way. */
static int packing_open(struct packing *packing, const char *path)
{
	int error;

	*packing = (struct packing){.path = path, .snapshot.fd = -1};
	errno = 0;
	packing->fd = packing->own_fd =
		open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a FIFO would be waited for */
	if (packing->fd >= 0 && unpack_look(packing->fd) == PACK_PACKED_TRACE) {
		input_complain_text(path, "is packed already");
		return STATUS_USAGE;
	}
	error = packing->fd < 0 ? VT_E_OPEN : join_parts(packing->own_fd, path, &packing->fd);
	if (!error)
		error = packing_read(packing);
	if (!error)
		return STATUS_OK;
	input_complain(path, error);
	return STATUS_UNREADABLE;
}

static int cannot_write(const char *output)
{
	char why[128];

	snprintf(why, sizeof(why), "cannot be written: %s", strerror(errno));
	input_complain_text(output, why);
	return STATUS_USAGE;
}

/* Whether output may become the packed trace; better found out before the work than after it. */
static int check_output(const struct packing *packing, const struct packing_options *options)
{
	int fd = open(packing->output, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	const char *why = NULL;
	struct stat st, own;

	if (fd < 0 && errno == ENOENT)
		return STATUS_OK;
	if (fd < 0 || fstat(fd, &st) || fstat(packing->own_fd, &own)) {
		if (fd >= 0)
			close(fd);
		return cannot_write(packing->output);
	}
	if (S_ISDIR(st.st_mode))
		why = "is a folder";
	else if (st.st_dev == own.st_dev && st.st_ino == own.st_ino)
		why = "is the trace itself: give another name to -o";
	else if (!S_ISREG(st.st_mode))
		why = "is no plain file: not replaced";
	else if (unpack_look(fd) == PACK_PLAIN_TRACE)
		why = "is a trace: not overwritten, give another name to -o";
	else if (!options->replace)
		why = "is there already: not overwritten without --force";
	close(fd);
	if (why)
		input_complain_text(packing->output, why);
	return why ? STATUS_USAGE : STATUS_OK;
}

static uint32_t end_to_note(const struct trace_facts *facts)
{
	switch (facts->end) {
	case TRACE_END_RUNNING:
		return VT_END_RUNNING;
	case TRACE_END_EXEC:
		return VT_END_EXEC;
	default:
		return VT_END_UNKNOWN;
	}
}

/* Looks up the names, unless the trace was packed once and brings them along. */
static void find_symbols(struct packing *packing)
{
	const struct snapshot *snapshot = &packing->snapshot;
	uint64_t after_ns = packing->last_ns + (packing->last_ns < UINT64_MAX);

	if (packing->replay->model->n_by_record[VT_REC_symbol])
		return;
	symbol_chunks_make(&packing->chunks, packing->replay->model, packing->symbols,
		snapshot->header.chunk_bytes, snapshot->next_lane, after_ns);
	packing->pack.symbols = &packing->chunks;
}

static void say_what_was_done(const struct packing *packing)
{
	const struct pack *pack = &packing->pack;
	size_t n = packing->chunks.n_addresses;

	if (packing->facts.damaged)
		input_complain_text(packing->path, "is damaged: packed as it is");
	if (packing->facts.end == TRACE_END_RUNNING)
		input_complain_text(packing->path, "its process still runs: packed as of now");
	fputs("vramtrace: ", stderr);
	format_put_text(stderr, (struct vt_text){packing->path, strlen(packing->path)});
	fprintf(stderr, ": %s packed to", format_bytes(pack->plain_bytes).text);
	fprintf(stderr, " %s with ", format_bytes(pack->packed_bytes).text);
	if (pack->symbols)
		fprintf(stderr, "the names of %s %s: ", format_count(n).text,
			line_plural(n, "address", "addresses"));
	else
		fputs("the names it had: ", stderr);
	format_put_text(stderr, (struct vt_text){packing->output, strlen(packing->output)});
	fputc('\n', stderr);
}

/* Writes the packed trace. Returns STATUS_OK, or the exit status after one line on stderr. */
static int packing_write(
	struct packing *packing, const char *output, const struct packing_options *options)
{
	struct new_file file;
	int error, status;

	packing->output = output;
	status = check_output(packing, options);
	if (status)
		return status;
	/* A file that may grow no more is an error to report, not a reason to be killed. */
	signal(SIGXFSZ, SIG_IGN);
	packing->pack.trace = &packing->snapshot;
	packing->pack.path = packing->path;
	packing->pack.end = end_to_note(&packing->facts);
	if (!new_file_begin(&file, output))
		return cannot_write(output);
	find_symbols(packing);
	error = pack_write(&packing->pack, file.fd);
	if (error) {
		new_file_drop(&file);
		if (error == VT_E_IO && !packing->pack.unreadable)
			return cannot_write(output);
		input_complain(packing->path, error);
		return STATUS_UNREADABLE;
	}
	if (!new_file_end(&file, options->replace))
		return cannot_write(output);
	if (!options->quiet)
		say_what_was_done(packing);
	return STATUS_OK;
}

int packing_pack(const char *path, const char *output, const struct packing_options *options)
{
	struct packing packing;
	int status = packing_open(&packing, path);

	if (!status)
		status = packing_write(&packing, output, options);
	packing_close(&packing);
	return status;
}

/* The process, or one that it left the file to, may be where this one cannot see it. */
static bool is_being_written(const struct packing *packing)
{
	if (packing->facts.end == TRACE_END_RUNNING)
		return true;
	/* Granted only if nobody has it open for writing. */
	signal(SIGIO, SIG_IGN);
	if (fcntl(packing->own_fd, F_SETLEASE, F_RDLCK))
		return errno == EAGAIN;
	fcntl(packing->own_fd, F_SETLEASE, F_UNLCK);
	return false;
}

static bool same_damage(const struct vt_damage *a, const struct vt_damage *b)
{
	return a->n_chunks_skipped == b->n_chunks_skipped && a->n_chunks_cut == b->n_chunks_cut &&
	       a->missing_bytes == b->missing_bytes && a->n_unknown == b->n_unknown;
}

/* Whether every record that was read from the trace is read from the packed one, too. */
static bool reads_the_same(const struct packing *packing)
{
	const struct model *plain = packing->replay->model;
	struct replay *replay = NULL;
	struct unpacked file;
	bool same = false;

	if (!unpack_open(&file, packing->output) && !file.damaged &&
		!replay_open_fd(&replay, file.fd, packing->output, VT_PARTS_ALL, NULL, NULL))
		same = same_damage(&replay->damage, &packing->replay->damage);
	for (unsigned int kind = 0; same && kind < VT_N_RECORDS; kind++)
		same = kind == VT_REC_symbol ||
		       replay->model->n_by_record[kind] == plain->n_by_record[kind];
	replay_close(replay);
	if (file.fd >= 0)
		close(file.fd);
	return same;
}

/* A name that is not taken, as the recorder finds one. To be freed. */
static char *free_name(const char *path)
{
	size_t bytes = strlen(path), ending = strlen(PACK_PLAIN_ENDING), room = bytes + 32;
	char *name = memory_new(room, 1);
	struct stat st;

	if (bytes <= ending || strcmp(path + bytes - ending, PACK_PLAIN_ENDING))
		ending = 0;
	sprintf(name, "%s" PACK_ENDING, path);
	for (unsigned int i = 1; !lstat(name, &st) && i; i++)
		snprintf(name, room, "%.*s.%u%s" PACK_ENDING, (int)(bytes - ending), path, i,
			path + bytes - ending);
	return name;
}

char *packing_exchange(const char *path, bool quiet)
{
	struct packing_options options = {.quiet = true};
	struct packing packing;
	char *output = free_name(path);
	bool done = false;
	int status = packing_open(&packing, path);

	if (!status && is_being_written(&packing)) {
		input_complain_text(path, "is still being written: not packed");
	} else if (!status && !packing_write(&packing, output, &options)) {
		done = reads_the_same(&packing) && vt_parts_remove(path) && !unlink(path);
		if (!done)
			input_complain_text(path, "is kept: what was packed could not be verified");
		else if (!quiet)
			say_what_was_done(&packing);
	}
	packing_close(&packing);
	if (done)
		return output;
	free(output);
	return NULL;
}
