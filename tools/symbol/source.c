#include <dwarf.h>
#include <elfutils/libdw.h>
#include <gelf.h>
#include <stdlib.h>
#include <string.h>

#include "symbol/source.h"
#include "symbol/span.h"

/* Own builds have a few MiB; a debug build of a framework has gigabytes. */
#define MAX_INFO_BYTES (128u << 20)

struct source {
	Dwarf *dwarf;
	struct span_list units; /* number: offset of the unit's DIE */
};

static bool is_cheap(Elf *elf)
{
	size_t names;
	Elf_Scn *section = NULL;

	if (elf_getshdrstrndx(elf, &names))
		return false;
	while ((section = elf_nextscn(elf, section))) {
		GElf_Shdr header;
		const char *name;

		if (!gelf_getshdr(section, &header) || header.sh_type == SHT_NOBITS)
			continue;
		name = elf_strptr(elf, names, header.sh_name);
		if (name && (!strcmp(name, ".debug_info") || !strcmp(name, ".zdebug_info")))
			return header.sh_size <= MAX_INFO_BYTES;
	}
	return false;
}

/* Own index of the units: the .debug_aranges section is not written by every compiler. */
static bool add_unit(struct source *source, Dwarf_Die *unit)
{
	Dwarf_Addr base, start, end;
	ptrdiff_t at = 0;

	if (dwarf_tag(unit) != DW_TAG_compile_unit)
		return true;
	while ((at = dwarf_ranges(unit, at, &base, &start, &end)) > 0) {
		struct span span = {.start = start, .end = end, .number = dwarf_dieoffset(unit)};

		/* Functions that the linker dropped have their start at 0. */
		if (start && start < end && !span_list_add(&source->units, &span))
			return false;
	}
	return true;
}

struct source *source_open(Elf *elf)
{
	struct source *source;
	Dwarf_CU *unit = NULL;
	Dwarf_Die die;

	if (!is_cheap(elf))
		return NULL;
	source = calloc(1, sizeof(*source));
	if (!source)
		return NULL;
	source->dwarf = dwarf_begin_elf(elf, DWARF_C_READ, NULL);
	if (!source->dwarf) {
		source_close(source);
		return NULL;
	}
	while (!dwarf_get_units(source->dwarf, unit, &unit, NULL, NULL, &die, NULL)) {
		if (!add_unit(source, &die)) {
			source_close(source);
			return NULL;
		}
	}
	span_list_sort(&source->units, NULL);
	span_list_index(&source->units);
	return source;
}

void source_close(struct source *source)
{
	if (!source)
		return;
	span_list_release(&source->units);
	dwarf_end(source->dwarf);
	free(source);
}

static const char *name_of(Dwarf_Die *die)
{
	static const unsigned int attributes[] = {
		DW_AT_linkage_name, DW_AT_MIPS_linkage_name, DW_AT_name};
	Dwarf_Attribute memory;

	for (size_t i = 0; i < sizeof(attributes) / sizeof(*attributes); i++) {
		const char *name =
			dwarf_formstring(dwarf_attr_integrate(die, attributes[i], &memory));

		if (name)
			return name;
	}
	return NULL;
}

/* Where an inlined function was called from. */
static void read_call(Dwarf_Die *unit, Dwarf_Die *inlined, struct source_frame *caller)
{
	Dwarf_Attribute memory;
	Dwarf_Files *files;
	Dwarf_Word number;
	size_t n_files;

	if (!dwarf_formudata(dwarf_attr(inlined, DW_AT_call_line, &memory), &number) &&
		number <= UINT32_MAX)
		caller->line = (unsigned int)number;
	if (!dwarf_formudata(dwarf_attr(inlined, DW_AT_call_file, &memory), &number) &&
		!dwarf_getsrcfiles(unit, &files, &n_files) && number < n_files)
		caller->file = dwarf_filesrc(files, number, NULL, NULL);
}

/* Fills in functions from the scopes around address; frames[0] has its line already. Returns the
 * number of frames. */
static size_t read_scopes(
	Dwarf_Die *unit, uint64_t address, struct source_frame *frames, size_t n_room)
{
	Dwarf_Die *inner = NULL, *scopes = NULL;
	int n_scopes = 0;
	size_t n = 0;

	/* The first look-up leads into the abstract function, the second one out along where it was
	 * inlined. */
	if (dwarf_getscopes(unit, address, &inner) > 0)
		n_scopes = dwarf_getscopes_die(&inner[0], &scopes);
	for (int i = 0; i < n_scopes && n < n_room; i++) {
		int tag = dwarf_tag(&scopes[i]);

		if (tag != DW_TAG_inlined_subroutine && tag != DW_TAG_subprogram)
			continue;
		frames[n++].function = name_of(&scopes[i]);
		if (tag == DW_TAG_subprogram)
			break;
		if (n < n_room) {
			frames[n] = (struct source_frame){0};
			read_call(unit, &scopes[i], &frames[n]);
		}
	}
	free(inner);
	free(scopes);
	return n;
}

size_t source_find(
	struct source *source, uint64_t address, struct source_frame *frames, size_t n_room)
{
	size_t n, position = source->units.n_items;
	const struct span *span = span_list_next(&source->units, address, &position);
	Dwarf_Die unit;
	Dwarf_Line *line;
	int number = 0;

	if (!span || !n_room || !dwarf_offdie(source->dwarf, span->number, &unit))
		return 0;
	frames[0] = (struct source_frame){0};
	line = dwarf_getsrc_die(&unit, address);
	if (line) {
		frames[0].file = dwarf_linesrc(line, NULL, NULL);
		if (!dwarf_lineno(line, &number) && number > 0)
			frames[0].line = (unsigned int)number;
	}
	n = read_scopes(&unit, address, frames, n_room);
	return n ? n : line != NULL;
}
