#include "record/unwind/cfi.h"

#include "record/unwind/bytes.h"
#include "record/unwind/program.h"
#include "record/unwind/row.h"

enum {
	DW_EH_PE_ABSPTR = 0x00,
	DW_EH_PE_UDATA2 = 0x02,
	DW_EH_PE_UDATA4 = 0x03,
	DW_EH_PE_UDATA8 = 0x04,
	DW_EH_PE_SDATA2 = 0x0a,
	DW_EH_PE_SDATA4 = 0x0b,
	DW_EH_PE_SDATA8 = 0x0c,
	DW_EH_PE_PCREL = 0x10,
	DW_EH_PE_DATAREL = 0x30,
	DW_EH_PE_ALIGNED = 0x50,
};

struct cie {
	struct program_common common;
	uint8_t encoding; /* of addresses in its FDEs */
	bool has_augmentation;
};

/* Value of an encoded address, apart from what it is relative to. */
static uint64_t take_encoded(struct bytes *bytes, uint8_t encoding)
{
	switch (encoding & 0x0f) {
	case DW_EH_PE_ABSPTR:
	case DW_EH_PE_UDATA8:
	case DW_EH_PE_SDATA8:
		return bytes_number(bytes, 8);
	case DW_EH_PE_UDATA4:
		return bytes_number(bytes, 4);
	case DW_EH_PE_SDATA4:
		return (uint64_t)(int64_t)(int32_t)bytes_number(bytes, 4);
	case DW_EH_PE_UDATA2:
		return bytes_number(bytes, 2);
	case DW_EH_PE_SDATA2:
		return (uint64_t)(int64_t)(int16_t)bytes_number(bytes, 2);
	default:
		bytes->bad = true;
		return 0;
	}
}

/* What a record's letters say, after the 'z'. */
static bool read_augmentation(struct bytes *in, const char *letters, struct cie *cie)
{
	struct bytes data = bytes_block(in);
	uint8_t encoding;

	cie->has_augmentation = true;
	for (; *letters; letters++) {
		switch (*letters) {
		case 'R':
			cie->encoding = bytes_one(&data);
			break;
		case 'P':
			encoding = bytes_one(&data);
			if ((encoding & 0x70) == DW_EH_PE_ALIGNED)
				return false;
			take_encoded(&data, encoding);
			break;
		case 'L':
			bytes_one(&data);
			break;
		case 'S':
			cie->common.is_signal = true;
			break;
		default:
			return false;
		}
	}
	return !data.bad;
}

/* A record's length word, and the bytes after it. */
static struct bytes take_record(struct bytes *in)
{
	uint64_t n = bytes_number(in, 4);
	const uint8_t *at;

	if (!n || n >= 0xfffffff0)
		in->bad = true;
	at = bytes_take(in, (size_t)n);
	return (struct bytes){.at = at, .end = at ? at + n : NULL, .bad = in->bad};
}

static bool read_cie(struct bytes in, struct cie *cie)
{
	struct bytes record = take_record(&in);
	const char *letters;
	uint8_t version;

	*cie = (struct cie){.encoding = DW_EH_PE_ABSPTR};
	if (bytes_number(&record, 4) != 0)
		return false;
	version = bytes_one(&record);
	letters = (const char *)record.at;
	while (bytes_one(&record))
		;
	if (record.bad || (version != 1 && version != 3))
		return false;
	cie->common.code_align = bytes_uleb(&record);
	cie->common.data_align = bytes_sleb(&record);
	if ((version == 1 ? bytes_one(&record) : bytes_uleb(&record)) != PROGRAM_RETURN_ADDRESS)
		return false;
	if (*letters && (*letters != 'z' || !read_augmentation(&record, letters + 1, cie)))
		return false;
	cie->common.instructions = record;
	return !record.bad;
}

static uint32_t fde_row(const struct cie *cie, struct bytes fde, uint64_t pc)
{
	uint64_t base = (uint64_t)(uintptr_t)fde.at, begin;
	uint8_t relative_to = cie->encoding & 0xf0;

	begin = take_encoded(&fde, cie->encoding);
	if (relative_to == DW_EH_PE_PCREL)
		begin += base;
	else if (relative_to)
		return ROW_BAD;
	/* A range is never negative and relative to nothing. */
	if (pc - begin >= take_encoded(&fde, cie->encoding & 0x07))
		return fde.bad ? ROW_BAD : ROW_NONE;
	if (cie->has_augmentation)
		bytes_block(&fde);
	return fde.bad ? (uint32_t)ROW_BAD : program_row(&cie->common, fde, begin, pc);
}

struct index_entry {
	int32_t code, fde; /* from the index */
};

/* The last FDE that begins at or before pc. NULL: there is none. */
static const uint8_t *search(const uint8_t *index, uint64_t n, uint64_t pc)
{
	int64_t wanted = (int64_t)(pc - (uint64_t)(uintptr_t)index);
	const uint8_t *table = index + 12;
	uint64_t low = 0, high = n;
	struct index_entry entry;

	while (low < high) {
		uint64_t middle = (low + high) / 2;

		memcpy(&entry, table + middle * sizeof(entry), sizeof(entry));
		if (wanted < entry.code)
			high = middle;
		else
			low = middle + 1;
	}
	if (!low)
		return NULL;
	memcpy(&entry, table + (low - 1) * sizeof(entry), sizeof(entry));
	return index + entry.fde;
}

static bool is_inside(const struct cfi_object *object, const uint8_t *at)
{
	return (uint64_t)(uintptr_t)at >= object->start && (uint64_t)(uintptr_t)at < object->end;
}

static struct bytes rest_of(const struct cfi_object *object, const uint8_t *at)
{
	return (struct bytes){.at = at, .end = (const uint8_t *)(uintptr_t)object->end};
}

uint32_t cfi_row(const struct cfi_object *object, uint64_t pc)
{
	static const uint8_t usual[] = {1, DW_EH_PE_PCREL | DW_EH_PE_SDATA4, DW_EH_PE_UDATA4,
		DW_EH_PE_DATAREL | DW_EH_PE_SDATA4};
	struct bytes header, record;
	const uint8_t *fde, *cie_at;
	struct cie cie;
	uint64_t n;

	if (!object->index)
		return ROW_GUESSED;
	if (!is_inside(object, object->index))
		return ROW_BAD;
	header = rest_of(object, object->index);
	if ((size_t)(header.end - header.at) < 12 || memcmp(header.at, usual, sizeof(usual)))
		return ROW_BAD;
	bytes_take(&header, 8);
	n = bytes_number(&header, 4);
	if (n > (size_t)(header.end - header.at) / sizeof(struct index_entry))
		return ROW_BAD;
	fde = search(object->index, n, pc);
	if (!fde)
		return ROW_NONE;
	if (!is_inside(object, fde))
		return ROW_BAD;
	header = rest_of(object, fde);
	record = take_record(&header);
	cie_at = record.at;
	if (record.bad)
		return ROW_BAD;
	cie_at -= bytes_number(&record, 4);
	if (record.bad || !is_inside(object, cie_at) || !read_cie(rest_of(object, cie_at), &cie))
		return ROW_BAD;
	return fde_row(&cie, record, pc);
}
