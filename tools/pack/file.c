#include "pack/file.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "model/memory.h"

bool fd_write(int fd, const void *data, size_t bytes)
{
	const char *p = data;

	while (bytes) {
		ssize_t n = write(fd, p, bytes);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return false;
		p += n;
		bytes -= (size_t)n;
	}
	return true;
}

ssize_t fd_read(int fd, void *data, size_t bytes)
{
	ssize_t n;

	do {
		n = read(fd, data, bytes);
	} while (n < 0 && errno == EINTR);
	return n;
}

ssize_t fd_read_at(int fd, void *data, size_t bytes, uint64_t offset)
{
	size_t done = 0;

	while (done < bytes) {
		ssize_t n = pread(fd, (char *)data + done, bytes - done, (off_t)(offset + done));

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -1;
		if (!n)
			break;
		done += (size_t)n;
	}
	return (ssize_t)done;
}

int file_unnamed(const char **folder)
{
	const char *set = getenv("TMPDIR");
	char *path;
	int fd;

	*folder = set && *set ? set : "/tmp";
	fd = open(*folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	if (fd >= 0 || (errno != EOPNOTSUPP && errno != EISDIR && errno != EINVAL))
		return fd;
	/* A file system that knows no files without a name. */
	path = memory_new(strlen(*folder) + sizeof("/vramtrace.XXXXXX"), 1);
	sprintf(path, "%s/vramtrace.XXXXXX", *folder);
	fd = mkostemp(path, O_CLOEXEC);
	if (fd >= 0)
		unlink(path);
	free(path);
	return fd;
}

/* For the handler, which may not look further. */
static const char *volatile unfinished;

static const int ending[] = {SIGINT, SIGTERM, SIGHUP};
#define N_ENDING (sizeof(ending) / sizeof(*ending))

static struct sigaction before[N_ENDING];

static void remove_unfinished(int number)
{
	const char *path = unfinished;

	if (path)
		unlink(path);
	signal(number, SIG_DFL);
	raise(number);
}

static void watch(const char *temporary)
{
	struct sigaction action = {.sa_handler = remove_unfinished};

	unfinished = temporary;
	for (size_t i = 0; i < N_ENDING; i++) {
		sigaction(ending[i], NULL, &before[i]);
		if (before[i].sa_handler == SIG_DFL)
			sigaction(ending[i], &action, NULL);
	}
}

/* It has no temporary name any more. */
static void let_go(struct new_file *file)
{
	unfinished = NULL;
	for (size_t i = 0; i < N_ENDING; i++)
		sigaction(ending[i], &before[i], NULL);
	free(file->temporary);
	*file = (struct new_file){.fd = -1};
}

bool new_file_begin(struct new_file *file, const char *path)
{
	const char *slash = strrchr(path, '/');
	int folder_bytes = slash ? (int)(slash + 1 - path) : 0;
	size_t bytes = (size_t)folder_bytes + sizeof(".vramtrace.XXXXXX");

	*file = (struct new_file){.path = path, .temporary = memory_new(bytes, 1)};
	snprintf(file->temporary, bytes, "%.*s.vramtrace.XXXXXX", folder_bytes, path);
	file->fd = mkostemp(file->temporary, O_CLOEXEC);
	if (file->fd < 0) {
		free(file->temporary);
		return false;
	}
	watch(file->temporary);
	return true;
}

void new_file_drop(struct new_file *file)
{
	int saved = errno;

	if (file->fd >= 0)
		close(file->fd);
	unlink(file->temporary);
	let_go(file);
	errno = saved;
}

/* The name must be on disk, too, before anybody relies on it. What cannot be synced is not. */
static void sync_folder(const char *path)
{
	const char *slash = strrchr(path, '/');
	char *folder = slash ? memory_text(path) : memory_text(".");
	int fd;

	if (slash)
		folder[slash + 1 - path] = '\0';
	fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd >= 0) {
		fsync(fd);
		close(fd);
	}
	free(folder);
}

static bool rename_new(const char *from, const char *to)
{
	int fd;

	if (!renameat2(AT_FDCWD, from, AT_FDCWD, to, RENAME_NOREPLACE))
		return true;
	if (errno != EINVAL && errno != ENOSYS)
		return false;
	/* A file system that cannot do that: the name is taken first. */
	fd = open(to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0)
		return false;
	close(fd);
	return !rename(from, to);
}

bool new_file_end(struct new_file *file, bool replace)
{
	bool written = !fsync(file->fd);
	int fd = file->fd;

	file->fd = -1;
	if (close(fd) || !written ||
		!(replace ? !rename(file->temporary, file->path)
			  : rename_new(file->temporary, file->path))) {
		new_file_drop(file);
		return false;
	}
	sync_folder(file->path);
	let_go(file);
	return true;
}
