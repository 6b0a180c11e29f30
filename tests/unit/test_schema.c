/* Traces of other versions: newer ones with more records and fields, older ones with fewer. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "unit/records.h"

#define PATH "other.vt"

/* A trace as another version would write it: any schema text, records by hand. */
struct forged {
	_Alignas(64) uint8_t data[VT_HEADER_BYTES + VT_CHUNK_BYTES];
	struct vt_chunk_header *chunk;
	uint8_t *at;
};

static void forge_begin(struct forged *forged, const char *schema)
{
	struct vt_file_header *header = (struct vt_file_header *)forged->data;

	memset(forged, 0, sizeof(*forged));
	memcpy(header->magic, VT_MAGIC, sizeof(header->magic));
	header->format = VT_FORMAT;
	header->byte_order = VT_BYTE_ORDER;
	header->header_bytes = VT_HEADER_BYTES;
	header->chunk_bytes = VT_CHUNK_BYTES;
	header->schema_bytes = (uint32_t)strlen(schema);
	atomic_store(&header->n_chunks, 1);
	memcpy(header + 1, schema, strlen(schema));
	forged->chunk = (struct vt_chunk_header *)(forged->data + VT_HEADER_BYTES);
	forged->chunk->magic = VT_CHUNK_MAGIC;
	forged->chunk->base_time_ns = 1000;
	forged->at = (uint8_t *)(forged->chunk + 1);
}

static void forge_numbers(struct forged *forged, size_t n, const uint64_t *numbers)
{
	for (size_t i = 0; i < n; i++)
		forged->at = vt_encode_number(forged->at, numbers[i]);
}

#define NUMBERS(forged, ...)                                                                       \
	forge_numbers(forged, sizeof((uint64_t[]){__VA_ARGS__}) / sizeof(uint64_t),                \
		(uint64_t[]){__VA_ARGS__})

static struct vt_reader *forge_end(struct forged *forged)
{
	atomic_store(&forged->chunk->used, (uint32_t)(forged->at - (uint8_t *)(forged->chunk + 1)));
	file_write(PATH, forged->data, sizeof(forged->data));
	return reader_open(PATH);
}

/* Kinds that this version does not know are stepped over and counted, whatever their fields; times
 * go on. */
static void newer_records_are_skipped(void **state)
{
	static struct forged forged;
	struct vt_record record;
	struct vt_reader *reader;

	(void)state;
	forge_begin(&forged, "17 free T:time_ns N:api_id N:kind A:address\n"
			     "127 future T:time_ns N:number S:signed A:place X:text L:list\n");
	NUMBERS(&forged, 17, vt_zigzag(5), 1, 1, vt_zigzag(4096));
	NUMBERS(&forged, 127, vt_zigzag(10), UINT64_MAX, 3, vt_zigzag(-4000), 3, 'a', 'b', 'c', 2,
		1, 2);
	NUMBERS(&forged, 17, vt_zigzag(1), 2, 1, vt_zigzag(8));
	reader = forge_end(&forged);
	assert_int_equal(vt_reader_next(reader, &record), 1);
	assert_int_equal(record.free.time_ns, 1005);
	assert_int_equal(record.free.address, 4096);
	assert_int_equal(vt_reader_next(reader, &record), 1);
	assert_int_equal(record.free.time_ns, 1016);
	assert_int_equal(record.free.api_id, 2);
	assert_int_equal(record.free.address, 104);
	assert_int_equal(vt_reader_next(reader, &record), 0);
	assert_int_equal(vt_reader_damage(reader)->n_unknown, 1);
	assert_int_equal(vt_reader_damage(reader)->n_chunks_cut, 0);
	vt_reader_close(reader);
}

/* Fields added at the end of a known record are stepped over. */
static void newer_fields_are_skipped(void **state)
{
	static struct forged forged;
	static char schema[VT_HEADER_BYTES];
	struct vt_record record;
	struct vt_reader *reader;
	const char *line, *end;

	(void)state;
	/* This version's own schema, with three more fields in `uncovered`. */
	line = strstr(vt_schema_text, "60 uncovered");
	assert_non_null(line);
	end = strchr(line, '\n');
	snprintf(schema, sizeof(schema), "%.*s N:times X:why L:who%s", (int)(end - vt_schema_text),
		vt_schema_text, end);
	forge_begin(&forged, schema);
	NUMBERS(&forged, 60, 2, 'c', 'u', 99, 1, 'w', 1, 50);
	NUMBERS(&forged, 61, 1, 'n');
	reader = forge_end(&forged);
	assert_int_equal(vt_reader_next(reader, &record), 1);
	assert_int_equal(record.kind, VT_REC_uncovered);
	assert_int_equal(record.uncovered.name.bytes, 2);
	assert_memory_equal(record.uncovered.name.data, "cu", 2);
	assert_int_equal(vt_reader_next(reader, &record), 1);
	assert_int_equal(record.kind, VT_REC_note);
	assert_int_equal(vt_reader_next(reader, &record), 0);
	assert_true(damage_is_none(vt_reader_damage(reader)));
	vt_reader_close(reader);
}

/* Fields that the writer did not have yet read as 0, texts and lists as empty. */
static void older_records_lack_fields(void **state)
{
	static struct forged forged;
	struct vt_rec_free nothing = {.time_ns = 1003, .api_id = 9};
	struct vt_record record;
	struct vt_reader *reader;

	(void)state;
	forge_begin(&forged,
		"8 stack N:stack_id\n17 free T:time_ns N:api_id\n7 module T:time_ns N:bias\n"
		"30 access T:time_ns N:api_id A:address N:bytes S:device N:flags N:result\n");
	/* Something to be left over from the record before. */
	NUMBERS(&forged, 30, vt_zigzag(0), 1, vt_zigzag(2), 3, vt_zigzag(4), 5, 6);
	NUMBERS(&forged, 17, vt_zigzag(3), 9);
	NUMBERS(&forged, 8, 4);
	NUMBERS(&forged, 7, vt_zigzag(0), 77);
	reader = forge_end(&forged);
	assert_int_equal(vt_reader_next(reader, &record), 1);
	assert_int_equal(record.access.result, 6);
	assert_int_equal(vt_reader_next(reader, &record), 1);
	assert_memory_equal(&record.free, &nothing, sizeof(nothing));
	assert_int_equal(vt_reader_next(reader, &record), 1);
	assert_int_equal(record.stack.stack_id, 4);
	assert_int_equal(record.stack.frames.n_items, 0);
	assert_int_equal(vt_reader_next(reader, &record), 1);
	assert_int_equal(record.module.bias, 77);
	assert_int_equal(record.module.path.bytes, 0);
	assert_int_equal(vt_reader_next(reader, &record), 0);
	assert_true(damage_is_none(vt_reader_damage(reader)));
	vt_reader_close(reader);
}

/* A text or a list that claims more than its chunk holds ends the chunk. */
static void lengths_stay_inside_the_chunk(void **state)
{
	static const uint64_t lengths[] = {3, 200, VT_CHUNK_BYTES, 1ull << 32, UINT64_MAX};
	static struct forged forged;
	struct vt_record record;
	struct vt_reader *reader;

	(void)state;
	for (size_t i = 0; i < sizeof(lengths) / sizeof(*lengths); i++) {
		for (int list = 0; list < 2; list++) {
			forge_begin(
				&forged, "8 stack N:stack_id T:time_ns L:frames\n61 note X:text\n");
			NUMBERS(&forged, 61, 1, 'n');
			if (list)
				NUMBERS(&forged, 8, 1, 0, lengths[i], 1, 2);
			else
				NUMBERS(&forged, 61, lengths[i], 'a', 'b');
			reader = forge_end(&forged);
			assert_int_equal(vt_reader_next(reader, &record), 1);
			assert_int_equal(vt_reader_next(reader, &record), 0);
			assert_int_equal(vt_reader_damage(reader)->n_chunks_cut, 1);
			vt_reader_close(reader);
		}
	}
}

/* A record that the trace's own schema lacks ends the chunk: its length cannot be known. */
static void records_outside_the_schema_end_a_chunk(void **state)
{
	static struct forged forged;
	struct vt_record record;
	struct vt_reader *reader;

	(void)state;
	forge_begin(&forged, "61 note X:text\n");
	NUMBERS(&forged, 61, 1, 'n');
	NUMBERS(&forged, 17, 1, 1, 1, 1);
	NUMBERS(&forged, 61, 1, 'm');
	reader = forge_end(&forged);
	assert_int_equal(vt_reader_next(reader, &record), 1);
	assert_int_equal(record.note.text.data[0], 'n');
	assert_int_equal(vt_reader_next(reader, &record), 0);
	assert_int_equal(vt_reader_damage(reader)->n_chunks_cut, 1);
	vt_reader_close(reader);
}

static void wrong_schemas_are_refused(void **state)
{
	static const char *const schemas[] = {
		"17 free T:time_ns N:api_id", /* the line does not end */
		"free T:time_ns N:api_id\n",  /* no number */
		"128 far T:time_ns\n",	      /* a number out of range */
		"99999999999999999999 far T:time_ns\n",
		"17 free Z:time_ns\n", /* no such type */
		"17 free N:time_ns\n", /* another type than this version's */
		"17 free\n",	       /* no fields */
		"\n",
		"40 context N:a N:b N:c N:d N:e N:f N:g N:h N:i N:j N:k N:l N:m N:n N:o N:p N:q "
		"N:r N:s "
		"N:t N:u N:v N:w N:x N:y N:z N:a N:b N:c N:d N:e N:f N:g N:h N:i\n",
	};
	static struct forged forged;
	struct vt_reader *reader;

	(void)state;
	for (size_t i = 0; i < sizeof(schemas) / sizeof(*schemas); i++) {
		forge_begin(&forged, schemas[i]);
		file_write(PATH, forged.data, sizeof(forged.data));
		if (vt_reader_open(&reader, PATH) != VT_E_DAMAGED)
			fail_msg("accepted: %s", schemas[i]);
	}
}

/* The text in the header and the tables in the program come from the same rows. */
static void schema_text_matches_the_tables(void **state)
{
	const char *line = vt_schema_text;
	unsigned int n_lines = 0;

	(void)state;
	assert_int_equal(strlen(vt_schema_text), vt_schema_text_bytes);
	for (; *line; line = strchr(line, '\n') + 1, n_lines++) {
		const struct vt_schema *schema = vt_schema_get((unsigned int)atoi(line));
		char expected[2048];
		size_t used;

		assert_non_null(schema);
		used = (size_t)snprintf(
			expected, sizeof(expected), "%d %s", atoi(line), schema->name);
		for (size_t i = 0; i < schema->n_fields; i++)
			used += (size_t)snprintf(expected + used, sizeof(expected) - used, " %c:%s",
				schema->fields[i].type, schema->fields[i].name);
		assert_memory_equal(line, expected, used);
		assert_int_equal(line[used], '\n');
	}
	for (unsigned int kind = 0; kind < 300; kind++)
		n_lines -= vt_schema_get(kind) != NULL;
	assert_int_equal(n_lines, 0);
}

static void every_error_has_a_text(void **state)
{
	(void)state;
#define ERROR(name, number, text) assert_string_equal(vt_error_text(VT_E_##name), text);
#include "vramtrace/error.def"
	assert_string_equal(vt_error_text(0), "no error");
	assert_non_null(vt_error_text(-1000));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(newer_records_are_skipped),
		cmocka_unit_test(newer_fields_are_skipped),
		cmocka_unit_test(older_records_lack_fields),
		cmocka_unit_test(lengths_stay_inside_the_chunk),
		cmocka_unit_test(records_outside_the_schema_end_a_chunk),
		cmocka_unit_test(wrong_schemas_are_refused),
		cmocka_unit_test(schema_text_matches_the_tables),
		cmocka_unit_test(every_error_has_a_text),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
