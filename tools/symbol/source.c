#include <dwarf.h>
#include <elfutils/libdw.h>
#include <gelf.h>
#include <stdlib.h>
#include <string.h>

#include "model/hash.h"
#include "symbol/source.h"
#include "symbol/span.h"

/* Units are gone through one by one up to this size, which takes a second. */
#define MAX_INFO_BYTES (1024u << 20)
/* libdw unpacks in whole what is compressed when it opens a file: that, too, takes a second. */
#define MAX_COMPRESSED_BYTES (64u << 20)

/* No compiler nests scopes as deep, or puts so many DIEs into one unit. */
#define MAX_DEPTH 200u
#define MAX_DIES  (32u << 20)

/* More functions than this inlined into one another are not ordered rightly. */
#define MAX_SCOPES 64u

/* One compilation unit that an address was in. */
struct unit {
	Dwarf_Off offset; /* of its DIE */
	Dwarf_Die die;
	struct span_list functions; /* number: offset of the DIE of a function, inlined or not */
	UT_hash_handle hh;
};

struct source {
	Dwarf *dwarf;
	Dwarf_Aranges *index;	/* the file's own, which need not be whole; NULL: it has none */
	struct span_list spans; /* ours; number: offset of the unit's DIE */
	bool may_index;		/* it is small enough, and was not done yet */
	struct unit *units;
};

/* The debug section called name after ".debug_" or ".zdebug_", or NULL. */
static Elf_Scn *find_section(Elf *elf, const char *name, GElf_Shdr *header)
{
	size_t names;
	Elf_Scn *section = NULL;

	if (elf_getshdrstrndx(elf, &names))
		return NULL;
	while ((section = elf_nextscn(elf, section))) {
		const char *found;

		if (!gelf_getshdr(section, header) || header->sh_type == SHT_NOBITS)
			continue;
		found = elf_strptr(elf, names, header->sh_name);
		if (found && !strncmp(found, ".z", 2))
			found++;
		if (found && !strcmp(found + (*found == '.'), name))
			return section;
	}
	return NULL;
}

bool source_is_in(Elf *elf)
{
	GElf_Shdr header;

	return find_section(elf, "debug_info", &header) != NULL;
}

/* Bytes of debug information when unpacked; 0: there is none that could be read in a moment. */
static uint64_t info_bytes(Elf *elf)
{
	GElf_Shdr header;
	GElf_Chdr compressed;
	Elf_Scn *section = find_section(elf, "debug_info", &header);

	if (!section)
		return 0;
	if (!(header.sh_flags & SHF_COMPRESSED))
		return header.sh_size;
	return gelf_getchdr(section, &compressed) && compressed.ch_size <= MAX_COMPRESSED_BYTES
		       ? compressed.ch_size
		       : 0;
}

/* All ranges of a DIE, each with its offset. What the linker dropped starts at 0. */
static bool add_ranges(struct span_list *list, Dwarf_Die *die)
{
	Dwarf_Addr base, start, end;
	ptrdiff_t at = 0;

	while ((at = dwarf_ranges(die, at, &base, &start, &end)) > 0) {
		struct span span = {.start = start, .end = end, .number = dwarf_dieoffset(die)};

		if (start && start < end && !span_list_add(list, &span))
			return false;
	}
	return true;
}

/* Own index of the units: not every compiler writes .debug_aranges. Out of memory: what is in it is
 * still true. */
static void index_units(struct source *source)
{
	Dwarf_CU *unit = NULL;
	Dwarf_Die die;

	source->may_index = false;
	while (!dwarf_get_units(source->dwarf, unit, &unit, NULL, NULL, &die, NULL))
		if (dwarf_tag(&die) == DW_TAG_compile_unit && !add_ranges(&source->spans, &die))
			break;
	span_list_sort(&source->spans, NULL);
	span_list_index(&source->spans);
}

struct source *source_open(Elf *elf)
{
	uint64_t bytes = info_bytes(elf);
	struct source *source = bytes ? calloc(1, sizeof(*source)) : NULL;

	if (!source)
		return NULL;
	source->dwarf = dwarf_begin_elf(elf, DWARF_C_READ, NULL);
	if (!source->dwarf) {
		free(source);
		return NULL;
	}
	source->may_index = bytes <= MAX_INFO_BYTES;
	if (dwarf_getaranges(source->dwarf, &source->index, NULL))
		source->index = NULL;
	return source;
}

void source_close(struct source *source)
{
	struct unit *unit, *next;

	if (!source)
		return;
	HASH_ITER(hh, source->units, unit, next)
	{
		HASH_DEL(source->units, unit);
		span_list_release(&unit->functions);
		free(unit);
	}
	span_list_release(&source->spans);
	dwarf_end(source->dwarf);
	free(source);
}

static bool may_hold_functions(int tag)
{
	switch (tag) {
	case DW_TAG_subprogram:
	case DW_TAG_inlined_subroutine:
	case DW_TAG_lexical_block:
	case DW_TAG_try_block:
	case DW_TAG_catch_block:
	case DW_TAG_namespace:
	case DW_TAG_module:
		return true; /* methods stand outside of their class */
	default:
		return false;
	}
}

/* Adds the functions below parent. Out of memory or beyond the limits: those so far. */
static void add_functions(
	struct span_list *list, Dwarf_Die *parent, unsigned int depth, uint64_t *n_dies)
{
	Dwarf_Die die;

	if (depth == MAX_DEPTH || dwarf_child(parent, &die))
		return;
	do {
		int tag = dwarf_tag(&die);

		if (++*n_dies > MAX_DIES)
			return;
		if ((tag == DW_TAG_subprogram || tag == DW_TAG_inlined_subroutine) &&
			!add_ranges(list, &die))
			return;
		if (may_hold_functions(tag))
			add_functions(list, &die, depth + 1, n_dies);
	} while (!dwarf_siblingof(&die, &die));
}

/* The unit whose DIE is at offset, gone through once; NULL when out of memory. */
static struct unit *unit_get(struct source *source, Dwarf_Off offset)
{
	struct unit *unit;
	uint64_t n_dies = 0;

	HASH_FIND(hh, source->units, &offset, sizeof(offset), unit);
	if (unit)
		return unit;
	unit = calloc(1, sizeof(*unit));
	if (!unit || !dwarf_offdie(source->dwarf, offset, &unit->die)) {
		free(unit);
		return NULL;
	}
	unit->offset = offset;
	add_functions(&unit->functions, &unit->die, 0, &n_dies);
	span_list_sort(&unit->functions, NULL);
	span_list_index(&unit->functions);
	HASH_ADD(hh, source->units, offset, sizeof(unit->offset), unit);
	return unit;
}

static struct unit *unit_at(struct source *source, uint64_t address)
{
	size_t position;
	const struct span *span;
	Dwarf_Arange *range = source->index ? dwarf_getarange_addr(source->index, address) : NULL;
	Dwarf_Off offset;

	if (range && !dwarf_getarangeinfo(range, NULL, NULL, &offset))
		return unit_get(source, offset);
	if (source->may_index)
		index_units(source);
	position = source->spans.n_items;
	span = span_list_next(&source->spans, address, &position);
	return span ? unit_get(source, span->number) : NULL;
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

/* The DIEs of the functions around address, the innermost, which comes last in the file, first. */
static size_t find_scopes(const struct unit *unit, uint64_t address, Dwarf_Off scopes[MAX_SCOPES])
{
	size_t position = unit->functions.n_items, n = 0;
	const struct span *span;

	while (n < MAX_SCOPES && (span = span_list_next(&unit->functions, address, &position))) {
		size_t at = n++;

		for (; at && scopes[at - 1] < span->number; at--)
			scopes[at] = scopes[at - 1];
		scopes[at] = span->number;
	}
	return n;
}

/* Fills in functions from the scopes around address; frames[0] has its line already. Returns the
 * number of frames. */
static size_t read_scopes(struct source *source, struct unit *unit, uint64_t address,
	struct source_frame *frames, size_t n_room)
{
	Dwarf_Off scopes[MAX_SCOPES];
	size_t n_scopes = find_scopes(unit, address, scopes), n = 0;

	for (size_t i = 0; i < n_scopes && n < n_room; i++) {
		Dwarf_Die scope;

		if (!dwarf_offdie(source->dwarf, scopes[i], &scope))
			continue;
		frames[n++].function = name_of(&scope);
		if (dwarf_tag(&scope) == DW_TAG_subprogram)
			break;
		if (n < n_room) {
			frames[n] = (struct source_frame){0};
			read_call(&unit->die, &scope, &frames[n]);
		}
	}
	return n;
}

size_t source_find(
	struct source *source, uint64_t address, struct source_frame *frames, size_t n_room)
{
	struct unit *unit = n_room ? unit_at(source, address) : NULL;
	Dwarf_Line *line;
	int number = 0;
	size_t n;

	if (!unit)
		return 0;
	frames[0] = (struct source_frame){0};
	line = dwarf_getsrc_die(&unit->die, address);
	if (line) {
		frames[0].file = dwarf_linesrc(line, NULL, NULL);
		if (!dwarf_lineno(line, &number) && number > 0)
			frames[0].line = (unsigned int)number;
	}
	n = read_scopes(source, unit, address, frames, n_room);
	return n ? n : line != NULL;
}
