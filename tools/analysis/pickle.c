#include "analysis/pickle.h"

#include <stdlib.h>
#include <string.h>

#include "model/memory.h"

/* Opcodes of Python's pickletools that make or arrange plain values. */
enum opcode {
	MARK = '(',
	EMPTY_TUPLE = ')',
	STOP = '.',
	BINFLOAT = 'G',
	BININT = 'J',
	BININT1 = 'K',
	BININT2 = 'M',
	NONE = 'N',
	BINUNICODE = 'X',
	EMPTY_LIST = ']',
	APPEND = 'a',
	DICT = 'd',
	APPENDS = 'e',
	BINGET = 'h',
	LONG_BINGET = 'j',
	LIST = 'l',
	BINPUT = 'q',
	LONG_BINPUT = 'r',
	SETITEM = 's',
	TUPLE = 't',
	SETITEMS = 'u',
	EMPTY_DICT = '}',
	PROTO = 0x80,
	TUPLE1 = 0x85,
	TUPLE2 = 0x86,
	TUPLE3 = 0x87,
	NEWTRUE = 0x88,
	NEWFALSE = 0x89,
	LONG1 = 0x8a,
	LONG4 = 0x8b,
	SHORT_BINUNICODE = 0x8c,
	BINUNICODE8 = 0x8d,
	MEMOIZE = 0x94,
	FRAME = 0x95,
};

#define SLAB_VALUES 1000u

struct pickle_slab {
	struct pickle_slab *before;
	size_t n;
	struct pickle_value values[SLAB_VALUES];
};

struct reader {
	struct pickle *pickle;
	const uint8_t *data;
	size_t bytes, at;
	struct pickle_value **stack; /* NULL: a mark */
	size_t n_stack, stack_room;
	struct pickle_value **memo; /* NULL: not set */
	size_t n_memo, memo_room;
	bool done;
};

static bool fail(struct reader *reader, const char *problem)
{
	reader->pickle->problem = problem;
	return false;
}

/* A number of n bytes, least one first. */
static bool take_number(struct reader *reader, size_t n, uint64_t *number)
{
	if (reader->bytes - reader->at < n)
		return fail(reader, "it ends in the middle");
	*number = 0;
	for (size_t i = 0; i < n; i++)
		*number |= (uint64_t)reader->data[reader->at++] << 8 * i;
	return true;
}

static void push(struct reader *reader, struct pickle_value *value)
{
	reader->stack = memory_grow(
		reader->stack, reader->n_stack, &reader->stack_room, sizeof(*reader->stack));
	reader->stack[reader->n_stack++] = value;
}

static struct pickle_value *push_new(struct reader *reader, enum pickle_kind kind)
{
	struct pickle_slab *slab = reader->pickle->slabs;
	struct pickle_value *value;

	if (!slab || slab->n == SLAB_VALUES) {
		slab = memory_new(1, sizeof(*slab));
		slab->before = reader->pickle->slabs;
		reader->pickle->slabs = slab;
	}
	value = &slab->values[slab->n++];
	value->kind = kind;
	push(reader, value);
	return value;
}

/* The value on top, n below it; NULL when there is none, or a mark. */
static struct pickle_value *peek(const struct reader *reader, size_t n)
{
	return n < reader->n_stack ? reader->stack[reader->n_stack - 1 - n] : NULL;
}

/* Where the last mark is; SIZE_MAX: nowhere. */
static size_t last_mark(const struct reader *reader)
{
	for (size_t i = reader->n_stack; i--;)
		if (!reader->stack[i])
			return i;
	return SIZE_MAX;
}

/* Moves what is on the stack from `first` on to the end of the value's items. */
static bool give_items(struct reader *reader, struct pickle_value *value, size_t first)
{
	for (size_t i = first; i < reader->n_stack; i++) {
		if (!reader->stack[i])
			return fail(reader, "a mark is left over");
		value->items = memory_grow(
			value->items, value->n_items, &value->room, sizeof(struct pickle_value *));
		value->items[value->n_items++] = reader->stack[i];
	}
	reader->n_stack = first;
	return true;
}

/* APPEND, SETITEM: n values go into the one below. APPENDS, SETITEMS: all from the mark on. */
static bool add_items(struct reader *reader, enum pickle_kind kind, size_t n)
{
	size_t mark = n ? 0 : last_mark(reader);
	size_t first = n ? reader->n_stack - n : mark + 1;
	struct pickle_value *value;

	if (mark == SIZE_MAX || (n && reader->n_stack <= n))
		return fail(reader, "values are missing");
	if (!n && !mark)
		return fail(reader, "values are missing");
	value = reader->stack[n ? first - 1 : mark - 1];
	if (!value || value->kind != kind)
		return fail(reader, "items are added to what cannot hold them");
	if (kind == PICKLE_DICT && (reader->n_stack - first) % 2)
		return fail(reader, "a key has no value");
	if (!give_items(reader, value, first))
		return false;
	reader->n_stack -= !n;
	return true;
}

/* A list, tuple or dictionary of the n values on top; SIZE_MAX: of all from the mark on. */
static bool gather(struct reader *reader, enum pickle_kind kind, size_t n)
{
	size_t mark = n == SIZE_MAX ? last_mark(reader) : 0;
	size_t first = n == SIZE_MAX ? mark + 1 : reader->n_stack - n;
	struct pickle_value *value;

	if (mark == SIZE_MAX || (n != SIZE_MAX && reader->n_stack < n))
		return fail(reader, "values are missing");
	if (kind == PICKLE_DICT && (reader->n_stack - first) % 2)
		return fail(reader, "a key has no value");
	value = push_new(reader, kind);
	reader->n_stack--;
	if (!give_items(reader, value, first))
		return false;
	reader->n_stack -= n == SIZE_MAX;
	push(reader, value);
	return true;
}

static bool read_text(struct reader *reader, size_t n_length)
{
	struct pickle_value *value;
	uint64_t bytes;

	if (!take_number(reader, n_length, &bytes))
		return false;
	if (bytes > reader->bytes - reader->at)
		return fail(reader, "it ends in the middle");
	value = push_new(reader, PICKLE_TEXT);
	value->text = (const char *)reader->data + reader->at;
	value->text_bytes = (size_t)bytes;
	reader->at += (size_t)bytes;
	return true;
}

/* Two's complement of any length; here up to 64 bits, and a ninth byte of zeros for addresses. */
static bool read_long(struct reader *reader, size_t n_length)
{
	uint64_t length, number = 0, top = 0;

	if (!take_number(reader, n_length, &length))
		return false;
	if (length > 9)
		return fail(reader, "a number has more than 64 bits");
	if (!take_number(reader, length < 8 ? (size_t)length : 8, &number) ||
		(length == 9 && !take_number(reader, 1, &top)))
		return false;
	if (top)
		return fail(reader, "a number has more than 64 bits");
	if (length && length < 8 && number >> (8 * length - 1))
		number |= UINT64_MAX << 8 * length;
	push_new(reader, PICKLE_INTEGER)->integer = (int64_t)number;
	return true;
}

static bool read_integer(struct reader *reader, size_t n)
{
	uint64_t number;

	if (!take_number(reader, n, &number))
		return false;
	push_new(reader, PICKLE_INTEGER)->integer = n == 4 ? (int32_t)number : (int64_t)number;
	return true;
}

static bool read_real(struct reader *reader)
{
	uint64_t number;
	double real;

	if (!take_number(reader, 8, &number))
		return false;
	number = __builtin_bswap64(number);
	memcpy(&real, &number, sizeof(real));
	push_new(reader, PICKLE_REAL)->real = real;
	return true;
}

static bool put_memo(struct reader *reader, uint64_t i)
{
	struct pickle_value *value = peek(reader, 0);

	/* Numbers are given one after the other, each with an opcode of its own. */
	if (!value || i > reader->at)
		return fail(reader, "a value cannot be remembered");
	while (reader->n_memo <= i) {
		reader->memo = memory_grow(
			reader->memo, reader->n_memo, &reader->memo_room, sizeof(*reader->memo));
		reader->memo[reader->n_memo++] = NULL;
	}
	reader->memo[i] = value;
	return true;
}

static bool get_memo(struct reader *reader, size_t n_index)
{
	uint64_t i;

	if (!take_number(reader, n_index, &i))
		return false;
	if (i >= reader->n_memo || !reader->memo[i])
		return fail(reader, "a remembered value is missing");
	push(reader, reader->memo[i]);
	return true;
}

static bool put_memo_at(struct reader *reader, size_t n_index)
{
	uint64_t i;

	return take_number(reader, n_index, &i) && put_memo(reader, i);
}

static bool check_protocol(struct reader *reader)
{
	uint64_t protocol;

	if (!take_number(reader, 1, &protocol))
		return false;
	return (protocol >= 2 && protocol <= 5) || fail(reader, "its protocol is none of 2 to 5");
}

static bool skip_frame(struct reader *reader)
{
	uint64_t bytes;

	return take_number(reader, 8, &bytes);
}

static bool stop(struct reader *reader)
{
	reader->done = true;
	if (reader->n_stack != 1 || !reader->stack[0])
		return fail(reader, "it is not one value");
	reader->pickle->root = reader->stack[0];
	return true;
}

static bool push_bool(struct reader *reader, bool value)
{
	push_new(reader, PICKLE_BOOL)->integer = value;
	return true;
}

static bool push_empty(struct reader *reader, enum pickle_kind kind)
{
	push_new(reader, kind);
	return true;
}

static bool push_mark(struct reader *reader)
{
	push(reader, NULL);
	return true;
}

static bool arrange(struct reader *reader, uint8_t opcode)
{
	switch (opcode) {
	case PROTO:
		return check_protocol(reader);
	case FRAME:
		return skip_frame(reader);
	case MARK:
		return push_mark(reader);
	case STOP:
		return stop(reader);
	case EMPTY_LIST:
	case EMPTY_TUPLE:
		return push_empty(reader, PICKLE_LIST);
	case EMPTY_DICT:
		return push_empty(reader, PICKLE_DICT);
	case APPEND:
		return add_items(reader, PICKLE_LIST, 1);
	case APPENDS:
		return add_items(reader, PICKLE_LIST, 0);
	case SETITEM:
		return add_items(reader, PICKLE_DICT, 2);
	case SETITEMS:
		return add_items(reader, PICKLE_DICT, 0);
	case LIST:
	case TUPLE:
		return gather(reader, PICKLE_LIST, SIZE_MAX);
	case DICT:
		return gather(reader, PICKLE_DICT, SIZE_MAX);
	case TUPLE1:
	case TUPLE2:
	case TUPLE3:
		return gather(reader, PICKLE_LIST, opcode - TUPLE1 + 1u);
	default:
		return fail(reader, "it holds more than plain values");
	}
}

static bool apply(struct reader *reader, uint8_t opcode)
{
	switch (opcode) {
	case NONE:
		return push_empty(reader, PICKLE_NONE);
	case NEWTRUE:
	case NEWFALSE:
		return push_bool(reader, opcode == NEWTRUE);
	case BININT1:
		return read_integer(reader, 1);
	case BININT2:
		return read_integer(reader, 2);
	case BININT:
		return read_integer(reader, 4);
	case LONG1:
		return read_long(reader, 1);
	case LONG4:
		return read_long(reader, 4);
	case BINFLOAT:
		return read_real(reader);
	case SHORT_BINUNICODE:
		return read_text(reader, 1);
	case BINUNICODE:
		return read_text(reader, 4);
	case BINUNICODE8:
		return read_text(reader, 8);
	case MEMOIZE:
		return put_memo(reader, reader->n_memo);
	case BINPUT:
		return put_memo_at(reader, 1);
	case LONG_BINPUT:
		return put_memo_at(reader, 4);
	case BINGET:
		return get_memo(reader, 1);
	case LONG_BINGET:
		return get_memo(reader, 4);
	default:
		return arrange(reader, opcode);
	}
}

bool pickle_look(const uint8_t *data, size_t bytes)
{
	return bytes >= 2 && data[0] == PROTO && data[1] >= 2 && data[1] <= 5;
}

void pickle_read(struct pickle *pickle, const uint8_t *data, size_t bytes)
{
	struct reader reader = {.pickle = pickle, .data = data, .bytes = bytes};
	bool good = true;

	*pickle = (struct pickle){0};
	if (!pickle_look(data, bytes))
		good = fail(&reader, "it does not begin like a pickle of protocol 2 to 5");
	while (good && !reader.done) {
		good = reader.at < bytes || fail(&reader, "it ends in the middle");
		good = good && apply(&reader, data[reader.at++]);
	}
	pickle->at = reader.at;
	free(reader.stack);
	free(reader.memo);
}

void pickle_release(struct pickle *pickle)
{
	struct pickle_slab *slab, *before;

	for (slab = pickle->slabs; slab; slab = before) {
		before = slab->before;
		for (size_t i = 0; i < slab->n; i++)
			if (slab->values[i].kind == PICKLE_LIST ||
				slab->values[i].kind == PICKLE_DICT)
				free(slab->values[i].items);
		free(slab);
	}
	*pickle = (struct pickle){0};
}

bool pickle_is_text(const struct pickle_value *value, const char *text)
{
	return value && value->kind == PICKLE_TEXT && value->text_bytes == strlen(text) &&
	       !memcmp(value->text, text, value->text_bytes);
}

const struct pickle_value *pickle_get(const struct pickle_value *value, const char *key)
{
	if (!value || value->kind != PICKLE_DICT)
		return NULL;
	for (size_t i = 0; i + 1 < value->n_items; i += 2)
		if (pickle_is_text(value->items[i], key))
			return value->items[i + 1];
	return NULL;
}

const struct pickle_value *pickle_item(const struct pickle_value *value, size_t i)
{
	return value && value->kind == PICKLE_LIST && i < value->n_items ? value->items[i] : NULL;
}

int64_t pickle_integer(const struct pickle_value *value, int64_t otherwise)
{
	return value && (value->kind == PICKLE_INTEGER || value->kind == PICKLE_BOOL)
		       ? value->integer
		       : otherwise;
}
