#include <elfutils/libdwelf.h>
#include <fcntl.h>
#include <gelf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "symbol/debug_file.h"
#include "symbol/elf_file.h"
#include "symbol/source.h"
#include "symbol/span.h"

/* What the kernel puts behind the path of a mapped file that is gone. */
#define DELETED " (deleted)"

struct elf_file {
	Elf *elf;
	Elf *debug; /* separate debug file; NULL none */
	struct span_list functions;
	struct source *source;
	bool debug_tried;
	bool functions_read;
	bool source_tried;
	size_t build_id_bytes;
	const unsigned char *build_id;
	char path[];
};

/* Same build id; two objects without one count as the same, nothing better is known of them. */
static bool has_build_id(Elf *elf, const void *build_id, size_t build_id_bytes)
{
	const void *found = NULL;
	ssize_t found_bytes = dwelf_elf_gnu_build_id(elf, &found);

	if (found_bytes < 0)
		found_bytes = 0;
	return (size_t)found_bytes == build_id_bytes &&
	       (!build_id_bytes || !memcmp(found, build_id, build_id_bytes));
}

/* Takes fd. NULL unless it is an ELF object with this build id. */
static Elf *open_elf(int fd, const void *build_id, size_t build_id_bytes)
{
	Elf *elf = NULL;

	if (elf_version(EV_CURRENT) != EV_NONE)
		elf = elf_begin(fd, ELF_C_READ_MMAP, NULL);
	if (elf && (elf_kind(elf) != ELF_K_ELF || !has_build_id(elf, build_id, build_id_bytes) ||
			   elf_cntl(elf, ELF_C_FDREAD) < 0)) {
		elf_end(elf);
		elf = NULL;
	}
	if (elf)
		elf_cntl(elf, ELF_C_FDDONE);
	close(fd);
	return elf;
}

/* A trace can name any path: a FIFO must not block. -1 when it names no file that can be read. */
static int open_regular(const char *path)
{
	struct stat status;
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);

	if (fd >= 0 && (fstat(fd, &status) || !S_ISREG(status.st_mode))) {
		close(fd);
		return -1;
	}
	return fd;
}

static bool ends_with(const char *text, const char *end)
{
	size_t bytes = strlen(text), end_bytes = strlen(end);

	return bytes >= end_bytes && !strcmp(text + bytes - end_bytes, end);
}

struct elf_file *elf_file_open(
	const char *path, const void *build_id, size_t build_id_bytes, enum symbol_file *state)
{
	struct elf_file *file;
	Elf *elf;
	int fd;

	*state = SYMBOL_FILE_NONE;
	if (path[0] != '/')
		return NULL;
	*state = ends_with(path, DELETED) ? SYMBOL_FILE_CHANGED : SYMBOL_FILE_MISSING;
	fd = open_regular(path);
	if (fd < 0)
		return NULL;
	*state = SYMBOL_FILE_CHANGED;
	elf = open_elf(fd, build_id, build_id_bytes);
	if (!elf)
		return NULL;
	file = calloc(1, sizeof(*file) + strlen(path) + 1);
	if (!file) {
		*state = SYMBOL_FILE_MISSING;
		elf_end(elf);
		return NULL;
	}
	*state = SYMBOL_FILE_USED;
	file->elf = elf;
	file->build_id = build_id;
	file->build_id_bytes = build_id_bytes;
	strcpy(file->path, path);
	return file;
}

/* The separate debug file, looked for when it is first needed. Without a build id nothing would
 * prove that it belongs to the file. */
static Elf *debug_of(struct elf_file *file)
{
	if (!file->debug_tried && file->build_id_bytes) {
		int fd = debug_file_open(file->path);

		if (fd >= 0)
			file->debug = open_elf(fd, file->build_id, file->build_id_bytes);
	}
	file->debug_tried = true;
	return file->debug;
}

void elf_file_close(struct elf_file *file)
{
	if (!file)
		return;
	source_close(file->source);
	span_list_release(&file->functions);
	elf_end(file->debug);
	elf_end(file->elf);
	free(file);
}

static Elf_Scn *find_table(Elf *elf, unsigned int type, GElf_Shdr *header)
{
	Elf_Scn *section = NULL;

	if (!elf)
		return NULL;
	while ((section = elf_nextscn(elf, section)))
		if (gelf_getshdr(section, header) && header->sh_type == type && header->sh_entsize)
			return section;
	return NULL;
}

/* The end of the executable section that symbol lies in; 0 when it lies in none. */
static uint64_t end_of_code(Elf *elf, const GElf_Sym *symbol)
{
	GElf_Shdr header;
	Elf_Scn *section = elf_getscn(elf, symbol->st_shndx);

	if (!section || !gelf_getshdr(section, &header) || !(header.sh_flags & SHF_EXECINSTR))
		return 0;
	return header.sh_addr + header.sh_size;
}

/* Whether symbol names code, and which. */
static bool read_symbol(Elf *elf, const GElf_Sym *symbol, size_t strings, struct span *span)
{
	unsigned int type = GELF_ST_TYPE(symbol->st_info);
	const char *name;

	if (symbol->st_shndx == SHN_UNDEF || !symbol->st_value ||
		(type != STT_FUNC && type != STT_GNU_IFUNC && type != STT_NOTYPE))
		return false;
	span->start = symbol->st_value;
	span->end = span->start + symbol->st_size;
	span->guessed = !symbol->st_size;
	if (span->guessed || type == STT_NOTYPE) {
		uint64_t end = end_of_code(elf, symbol);

		if (end <= span->start)
			return false;
		if (span->guessed)
			span->end = end;
	}
	if (span->end < span->start)
		return false;
	/* "$x" and the like tell code from data on ARM; they are no functions. */
	name = elf_strptr(elf, strings, symbol->st_name);
	if (!name || !*name || *name == '$')
		return false;
	span->what = name;
	return true;
}

static size_t leading_underscores(const char *name)
{
	return strncmp(name, "_Z", 2) && strncmp(name, "_R", 2) ? strspn(name, "_") : 0;
}

/* Of several names of one address the plainest comes first: malloc before __libc_malloc. */
static int compare_names(const struct span *a, const struct span *b)
{
	size_t x, y;

	if (a->guessed != b->guessed)
		return a->guessed ? 1 : -1;
	x = leading_underscores(a->what);
	y = leading_underscores(b->what);
	if (x == y) {
		x = strlen(a->what);
		y = strlen(b->what);
	}
	return x != y ? (x < y ? -1 : 1) : strcmp(a->what, b->what);
}

/* One span an address, the plainest; those without a size end where the next one starts. */
static void drop_aliases(struct span_list *list)
{
	size_t kept = 0;

	for (size_t i = 0; i < list->n_items; i++) {
		if (kept && list->items[kept - 1].start == list->items[i].start)
			continue;
		if (kept && list->items[kept - 1].guessed &&
			list->items[kept - 1].end > list->items[i].start)
			list->items[kept - 1].end = list->items[i].start;
		list->items[kept++] = list->items[i];
	}
	list->n_items = kept;
}

/* The full symbol table, of the file or of its debug file, else what it exports. */
static void read_functions(struct elf_file *file)
{
	GElf_Shdr header;
	Elf *elf = file->elf;
	Elf_Scn *section = find_table(elf, SHT_SYMTAB, &header);
	Elf_Data *data;
	size_t n_symbols;

	file->functions_read = true;
	if (!section) {
		elf = debug_of(file);
		section = find_table(elf, SHT_SYMTAB, &header);
	}
	if (!section) {
		elf = file->elf;
		section = find_table(elf, SHT_DYNSYM, &header);
	}
	data = section ? elf_getdata(section, NULL) : NULL;
	if (!data)
		return;
	n_symbols = header.sh_size / header.sh_entsize;
	for (size_t i = 1; i < n_symbols && i <= INT32_MAX; i++) {
		GElf_Sym symbol;
		struct span span = {0};

		if (!gelf_getsym(data, (int)i, &symbol))
			break;
		/* Out of memory: the functions so far are still true. */
		if (read_symbol(elf, &symbol, header.sh_link, &span) &&
			!span_list_add(&file->functions, &span))
			break;
	}
	span_list_sort(&file->functions, compare_names);
	drop_aliases(&file->functions);
	span_list_index(&file->functions);
}

const char *elf_file_function(struct elf_file *file, uint64_t address)
{
	const struct span *span, *guessed = NULL;
	size_t position;

	if (!file->functions_read)
		read_functions(file);
	position = file->functions.n_items;
	while ((span = span_list_next(&file->functions, address, &position))) {
		if (!span->guessed)
			return span->what;
		if (!guessed)
			guessed = span;
	}
	return guessed ? guessed->what : NULL;
}

struct source *elf_file_source(struct elf_file *file)
{
	if (!file->source_tried) {
		file->source_tried = true;
		file->source = source_open(file->elf);
		if (!file->source && !source_is_in(file->elf) && debug_of(file))
			file->source = source_open(file->debug);
	}
	return file->source;
}
