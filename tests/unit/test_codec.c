/* src/trace/codec.h: numbers, signs, the checksum; and what is cut short. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "trace/codec.h"

static uint64_t round_trip(uint64_t value, size_t *bytes)
{
	uint8_t buffer[VT_NUMBER_MAX + 1];
	const uint8_t *p = buffer;
	uint64_t decoded = ~value;
	uint8_t *end;

	memset(buffer, 0xee, sizeof(buffer));
	end = vt_encode_number(buffer, value);
	*bytes = (size_t)(end - buffer);
	assert_true(*bytes <= VT_NUMBER_MAX);
	assert_int_equal(*end, 0xee);
	assert_true(vt_decode_number(&p, end, &decoded));
	assert_ptr_equal(p, end);
	return decoded;
}

static void numbers_come_back(void **state)
{
	size_t bytes;

	(void)state;
	for (unsigned int shift = 0; shift < 64; shift++) {
		for (int64_t near = -2; near <= 2; near++) {
			uint64_t value = ((uint64_t)1 << shift) + (uint64_t)near;

			assert_true(round_trip(value, &bytes) == value);
		}
	}
	assert_true(round_trip(0, &bytes) == 0);
	assert_int_equal(bytes, 1);
	assert_true(round_trip(127, &bytes) == 127);
	assert_int_equal(bytes, 1);
	assert_true(round_trip(128, &bytes) == 128);
	assert_int_equal(bytes, 2);
	assert_true(round_trip(UINT64_MAX, &bytes) == UINT64_MAX);
	assert_int_equal(bytes, VT_NUMBER_MAX);
}

static void signs_come_back(void **state)
{
	static const int64_t values[] = {
		0, -1, 1, -2, 63, -64, 64, INT32_MIN, INT32_MAX, INT64_MIN, INT64_MAX};

	(void)state;
	for (size_t i = 0; i < sizeof(values) / sizeof(*values); i++)
		assert_true(vt_unzigzag(vt_zigzag(values[i])) == values[i]);
	/* Small magnitudes stay small: that is what it is for. */
	assert_true(vt_zigzag(-1) == 1);
	assert_true(vt_zigzag(1) == 2);
	assert_true(vt_zigzag(INT64_MIN) == UINT64_MAX);
}

/* A number that ends too early is refused, wherever the end is. */
static void cut_numbers_are_refused(void **state)
{
	uint8_t buffer[VT_NUMBER_MAX];
	uint64_t value;

	(void)state;
	for (unsigned int shift = 0; shift < 64; shift++) {
		uint8_t *end = vt_encode_number(buffer, (uint64_t)1 << shift);

		for (const uint8_t *cut = buffer; cut < end; cut++) {
			const uint8_t *p = buffer;

			assert_false(vt_decode_number(&p, cut, &value));
			assert_true(p <= cut);
		}
	}
}

static void too_long_numbers_are_refused(void **state)
{
	uint8_t buffer[VT_NUMBER_MAX + 4];
	const uint8_t *p = buffer;
	uint64_t value;

	(void)state;
	memset(buffer, 0xff, sizeof(buffer));
	assert_false(vt_decode_number(&p, buffer + sizeof(buffer), &value));
	assert_true(p <= buffer + VT_NUMBER_MAX);
	/* Ten bytes, but the last one does not fit into 64 bits. */
	buffer[9] = 2;
	p = buffer;
	assert_false(vt_decode_number(&p, buffer + sizeof(buffer), &value));
	buffer[9] = 1;
	p = buffer;
	assert_true(vt_decode_number(&p, buffer + sizeof(buffer), &value));
	assert_true(value == UINT64_MAX);
}

/* Every single flipped bit changes the sum, and so does a length. */
static void checksum_sees_damage(void **state)
{
	uint8_t data[77];
	uint64_t whole;

	(void)state;
	for (size_t i = 0; i < sizeof(data); i++)
		data[i] = (uint8_t)(i * 37);
	whole = vt_checksum(data, sizeof(data));
	assert_true(vt_checksum(data, sizeof(data)) == whole);
	for (size_t bit = 0; bit < 8 * sizeof(data); bit++) {
		data[bit / 8] ^= (uint8_t)(1u << bit % 8);
		assert_true(vt_checksum(data, sizeof(data)) != whole);
		data[bit / 8] ^= (uint8_t)(1u << bit % 8);
	}
	for (size_t bytes = 0; bytes < sizeof(data); bytes++)
		assert_true(vt_checksum(data, bytes) != whole);
	memset(data, 0, sizeof(data));
	assert_true(vt_checksum(data, 8) != vt_checksum(data, 16));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(numbers_come_back),
		cmocka_unit_test(signs_come_back),
		cmocka_unit_test(cut_numbers_are_refused),
		cmocka_unit_test(too_long_numbers_are_refused),
		cmocka_unit_test(checksum_sees_damage),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
