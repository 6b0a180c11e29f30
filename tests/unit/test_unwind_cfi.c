/* src/record/unwind/cfi.c: rows out of .eh_frame sections put together here. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "record/unwind/cfi.h"
#include "record/unwind/row.h"

#define CODE   0x1000 /* offset of the first function; its bytes are never looked at */
#define LENGTH 0x40   /* of each function */
#define SIZE   0x2000

/* An object: index, then records. */
static struct {
	uint8_t *at;
	size_t used;
	size_t cie;
	unsigned int n_functions;
} image;

static void put(const void *bytes, size_t n)
{
	memcpy(image.at + image.used, bytes, n);
	image.used += n;
}

static void put_number(uint64_t value, size_t n)
{
	put(&value, n);
}

#define PUT(...) put((const uint8_t[]){__VA_ARGS__}, sizeof((const uint8_t[]){__VA_ARGS__}))

static void write_at(size_t place, uint64_t value, size_t n)
{
	memcpy(image.at + place, &value, n);
}

static size_t begin_record(void)
{
	size_t start = image.used;

	put_number(0, 4);
	return start;
}

static void end_record(size_t start)
{
	while ((image.used - start) % 8 != 4)
		PUT(0);
	write_at(start, image.used - start - 4, 4);
}

/* Room for 8 functions in the index. */
static void begin_image(void)
{
	free(image.at);
	memset(&image, 0, sizeof(image));
	image.at = calloc(1, SIZE);
	assert_non_null(image.at);
	PUT(1, 0x1b, 0x03, 0x3b);
	image.used = 12 + 8 * 8;
}

static void add_cie(const char *letters, unsigned int version)
{
	image.cie = begin_record();
	put_number(0, 4);
	put_number(version, 1);
	put(letters, strlen(letters) + 1);
	PUT(1, 0x78, 16); /* factors 1 and -8; the return address is column 16 */
	if (!strcmp(letters, "zR") || !strcmp(letters, "zRS"))
		PUT(1, 0x1b);
	if (!strcmp(letters, "zPLR"))
		PUT(7, 0x9b, 1, 2, 3, 4, 0x1b, 0x1b);
	PUT(0x0c, 7, 8, 0x90, 1); /* CFA = rsp + 8, the return address just below */
	end_record(image.cie);
}

static size_t begin_fde(void)
{
	size_t start = begin_record(), code = CODE + image.n_functions * LENGTH;
	size_t entry = 12 + 8 * image.n_functions++;

	write_at(entry, code, 4);
	write_at(entry + 4, start, 4);
	write_at(8, image.n_functions, 4);
	put_number(image.used - image.cie, 4);
	put_number(code - image.used, 4);
	put_number(LENGTH, 4);
	PUT(0);
	return start;
}

#define FUNCTION(...)                                                                              \
	do {                                                                                       \
		size_t fde_ = begin_fde();                                                         \
		PUT(__VA_ARGS__);                                                                  \
		end_record(fde_);                                                                  \
	} while (0)

static struct cfi_object whole(void)
{
	uint64_t start = (uint64_t)(uintptr_t)image.at;

	return (struct cfi_object){start, start + SIZE, image.at};
}

static uint32_t row_at(unsigned int function, unsigned int offset)
{
	struct cfi_object object = whole();

	return cfi_row(&object, object.start + CODE + function * LENGTH + offset);
}

static void simple(const char *letters)
{
	begin_image();
	add_cie(letters, 1);
	FUNCTION(0x41, 0x0e, 16, 0x86, 2, 0x43, 0x0d, 6);
	FUNCTION(0x02, 8, 0x0e, 0x80, 1);
}

/* push rbp; mov rsp, rbp: each instruction changes the row of those behind it. */
static void usual_functions(void **state)
{
	static const char *const letters[] = {"zR", "zPLR"};

	(void)state;
	for (unsigned int i = 0; i < 2; i++) {
		simple(letters[i]);
		assert_int_equal(row_at(0, 0), row_make(ROW_RSP, 8, 0));
		assert_int_equal(row_at(0, 1), row_make(ROW_RSP, 16, -16));
		assert_int_equal(row_at(0, 3), row_make(ROW_RSP, 16, -16));
		assert_int_equal(row_at(0, 4), row_make(ROW_RBP, 16, -16));
		assert_int_equal(row_at(0, LENGTH - 1), row_make(ROW_RBP, 16, -16));
		assert_int_equal(row_at(1, 7), row_make(ROW_RSP, 8, 0));
		assert_int_equal(row_at(1, 8), row_make(ROW_RSP, 128, 0));
	}
}

static void saved_and_restored(void **state)
{
	(void)state;
	begin_image();
	add_cie("zR", 1);
	/* Remember, change, recall; then rbp as it was in the beginning. */
	FUNCTION(0x0e, 24, 0x86, 3, 0x0a, 0x41, 0x0c, 6, 32, 0x86, 4, 0x41, 0x0b, 0x41, 0xc6);
	assert_int_equal(row_at(0, 0), row_make(ROW_RSP, 24, -24));
	assert_int_equal(row_at(0, 1), row_make(ROW_RBP, 32, -32));
	assert_int_equal(row_at(0, 2), row_make(ROW_RSP, 24, -24));
	assert_int_equal(row_at(0, 3), row_make(ROW_RSP, 24, 0));
}

static void kinds(void **state)
{
	(void)state;
	begin_image();
	add_cie("zR", 1);
	FUNCTION(0x07, 16);
	FUNCTION(0x07, 6);
	/* CFA = *(rbp - 8), rbp = *rbp. */
	FUNCTION(0x0f, 3, 0x76, 0x78, 0x06, 0x10, 6, 2, 0x76, 0);
	add_cie("zRS", 1);
	/* The kernel's, in short: registers that are not followed are left out. */
	FUNCTION(0x0f, 4, 0x77, 0xa0, 1, 0x06, 0x10, 6, 3, 0x77, 0xf8, 0, 0x10, 7, 3, 0x77, 0xa0, 1,
		0x10, 16, 3, 0x77, 0xa8, 1);
	/* One of its registers elsewhere. */
	FUNCTION(0x0f, 4, 0x77, 0xa0, 1, 0x06, 0x10, 6, 3, 0x77, 0xf0, 0, 0x10, 7, 3, 0x77, 0xa0, 1,
		0x10, 16, 3, 0x77, 0xa8, 1);
	assert_int_equal(row_at(0, 0), row_make(ROW_LAST, 0, 0));
	assert_int_equal(row_at(1, 0), row_make(ROW_LAST, 0, 0));
	assert_int_equal(row_at(2, 0), row_make(ROW_REALIGNED, -8, 0));
	assert_int_equal(row_at(3, 0), row_make(ROW_SIGNAL, 0, 0));
	assert_int_equal(row_at(4, 0), ROW_BAD);
}

static void nothing_there(void **state)
{
	struct cfi_object object;

	(void)state;
	simple("zR");
	object = whole();
	assert_int_equal(row_kind(cfi_row(&object, object.start + CODE - 1)), ROW_NONE);
	assert_int_equal(row_kind(row_at(1, LENGTH)), ROW_NONE);
	object.index = NULL;
	assert_int_equal(cfi_row(&object, object.start + CODE), ROW_GUESSED);
}

#define ASSERT_BAD(...)                                                                            \
	do {                                                                                       \
		begin_image();                                                                     \
		add_cie("zR", 1);                                                                  \
		FUNCTION(__VA_ARGS__);                                                             \
		assert_int_equal(row_at(0, 8), ROW_BAD);                                           \
	} while (0)

static void out_of_the_ordinary(void **state)
{
	(void)state;
	ASSERT_BAD(0x0c, 10, 8);		  /* CFA from r10 */
	ASSERT_BAD(0x0e, 12);			  /* no multiple of 8 */
	ASSERT_BAD(0x0c, 7, 0x80, 0x80, 0x80, 1); /* too far */
	ASSERT_BAD(0x90, 2);			  /* return address elsewhere */
	ASSERT_BAD(0x08, 16);			  /* or in no memory */
	ASSERT_BAD(0x87, 2);			  /* rsp saved */
	ASSERT_BAD(0x09, 6, 3);			  /* rbp in rbx */
	ASSERT_BAD(0x14, 6, 2);			  /* rbp is CFA + n */
	ASSERT_BAD(0x16, 6, 2, 0x77, 8);	  /* or computed */
	ASSERT_BAD(0x86, 0);			  /* rbp at the CFA itself */
	ASSERT_BAD(0x91, 2);			  /* a register that libunwind lacks */
	ASSERT_BAD(0x05, 17, 2);		  /* the same */
	ASSERT_BAD(0x0b);			  /* nothing was remembered */
	ASSERT_BAD(0x0a, 0x0a, 0x0a, 0x0a, 0x0a, 0x0a, 0x0a, 0x0a, 0x0a);
	ASSERT_BAD(0x01, 0, 0, 0, 0);	       /* set_loc */
	ASSERT_BAD(0x2f, 6, 2);		       /* obsolete */
	ASSERT_BAD(0x3c);		       /* none at all */
	ASSERT_BAD(0x0f, 4, 0x77, 8, 0x80, 0); /* a PLT's kind of expression */
	ASSERT_BAD(0x0f, 3, 0x76, 0x78, 0x06); /* realigned, rbp not at rbp */
	ASSERT_BAD(0x0f, 127, 0x76);	       /* longer than the record */
}

/* Cut anywhere, or with any byte changed: a row, and no read outside. */
static void damaged(void **state)
{
	uint64_t random = 1;

	(void)state;
	simple("zPLR");
	for (size_t end = 0; end < image.used; end++) {
		/* Of exact size, so that a sanitizer sees what is read beyond. */
		uint8_t *cut = malloc(end + 1);
		uint64_t start = (uint64_t)(uintptr_t)cut;
		struct cfi_object object = {start, start + end, cut};

		assert_non_null(cut);
		memcpy(cut, image.at, end);
		assert_int_equal(cfi_row(&object, start + CODE + LENGTH), ROW_BAD);
		free(cut);
	}
	for (int i = 0; i < 200000; i++) {
		size_t place;
		uint8_t kept;

		random = random * 6364136223846793005u + 1442695040888963407u;
		place = (random >> 33) % image.used;
		kept = image.at[place];
		image.at[place] = (uint8_t)(random >> 24);
		row_at(0, 4);
		row_at(1, 9);
		if (random >> 60)
			image.at[place] = kept;
		else
			simple("zPLR");
	}
	free(image.at);
	image.at = NULL;
}

static void rows_keep_their_numbers(void **state)
{
	(void)state;
	for (int64_t cfa = -4096; cfa <= 4096; cfa += 8) {
		for (int64_t slot = -4096; slot < 4096; slot += 504) {
			uint32_t row = row_make(ROW_REALIGNED, cfa, slot);

			assert_int_equal(row_kind(row), ROW_REALIGNED);
			assert_int_equal(row_cfa_bytes(row), cfa);
			assert_int_equal(row_slot_bytes(row), slot);
		}
	}
	assert_int_equal(row_make(ROW_RSP, 1 << 21, 0), ROW_BAD);
	assert_int_equal(row_make(ROW_RSP, 8, 4096), ROW_BAD);
	assert_int_equal(row_make(ROW_RSP, 8, -4104), ROW_BAD);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(usual_functions),
		cmocka_unit_test(saved_and_restored),
		cmocka_unit_test(kinds),
		cmocka_unit_test(nothing_there),
		cmocka_unit_test(out_of_the_ordinary),
		cmocka_unit_test(damaged),
		cmocka_unit_test(rows_keep_their_numbers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
