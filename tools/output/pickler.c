#include "output/pickler.h"

#include <stdlib.h>
#include <string.h>

#include "model/memory.h"

#define PROTOCOL 2
/* As Python's own pickler; more than about 120,000 items at once are too many for the viewer. */
#define BATCH 1000u

enum opcode {
	OP_MARK = '(',
	OP_STOP = '.',
	OP_BINFLOAT = 'G',
	OP_BININT = 'J',
	OP_BININT1 = 'K',
	OP_BININT2 = 'M',
	OP_BINUNICODE = 'X',
	OP_EMPTY_LIST = ']',
	OP_APPENDS = 'e',
	OP_BINGET = 'h',
	OP_LONG_BINGET = 'j',
	OP_BINPUT = 'q',
	OP_LONG_BINPUT = 'r',
	OP_SETITEMS = 'u',
	OP_EMPTY_DICT = '}',
	OP_PROTO = 0x80,
	OP_TUPLE2 = 0x86,
	OP_NEWTRUE = 0x88,
	OP_NEWFALSE = 0x89,
	OP_LONG1 = 0x8a,
};

static void put(struct pickler *pickler, enum opcode opcode)
{
	fputc((int)opcode, pickler->out);
}

/* The lowest bytes of value, lowest first. */
static void put_number(struct pickler *pickler, uint64_t value, size_t bytes)
{
	for (size_t i = 0; i < bytes; i++)
		fputc((int)(value >> (8 * i) & 0xff), pickler->out);
}

void pickler_begin(struct pickler *pickler, FILE *out)
{
	*pickler = (struct pickler){.out = out};
	put(pickler, OP_PROTO);
	fputc(PROTOCOL, out);
}

void pickler_end(struct pickler *pickler)
{
	put(pickler, OP_STOP);
	intern_release(&pickler->texts);
	free(pickler->text_memos);
}

void pickler_bool(struct pickler *pickler, bool value)
{
	put(pickler, value ? OP_NEWTRUE : OP_NEWFALSE);
}

/* In two's complement, without bytes that only repeat the sign. */
static void put_long(struct pickler *pickler, int64_t value)
{
	uint64_t size = value < 0 ? ~(uint64_t)value : (uint64_t)value;
	size_t bytes = 1;

	while (bytes < 8 && size >> (8 * bytes - 1))
		bytes++;
	put(pickler, OP_LONG1);
	fputc((int)bytes, pickler->out);
	put_number(pickler, (uint64_t)value, bytes);
}

void pickler_integer(struct pickler *pickler, int64_t value)
{
	if (value >= 0 && value <= UINT8_MAX) {
		put(pickler, OP_BININT1);
		put_number(pickler, (uint64_t)value, 1);
	} else if (value >= 0 && value <= UINT16_MAX) {
		put(pickler, OP_BININT2);
		put_number(pickler, (uint64_t)value, 2);
	} else if (value >= INT32_MIN && value <= INT32_MAX) {
		put(pickler, OP_BININT);
		put_number(pickler, (uint64_t)value, 4);
	} else {
		put_long(pickler, value);
	}
}

void pickler_real(struct pickler *pickler, double value)
{
	uint64_t bits;

	memcpy(&bits, &value, sizeof(bits));
	put(pickler, OP_BINFLOAT);
	for (unsigned int i = 8; i--;)
		fputc((int)(bits >> (8 * i) & 0xff), pickler->out);
}

uint32_t pickler_keep(struct pickler *pickler)
{
	uint32_t memo = pickler->n_memos++;

	put(pickler, memo <= UINT8_MAX ? OP_BINPUT : OP_LONG_BINPUT);
	put_number(pickler, memo, memo <= UINT8_MAX ? 1 : 4);
	return memo;
}

void pickler_again(struct pickler *pickler, uint32_t memo)
{
	put(pickler, memo <= UINT8_MAX ? OP_BINGET : OP_LONG_BINGET);
	put_number(pickler, memo, memo <= UINT8_MAX ? 1 : 4);
}

void pickler_text(struct pickler *pickler, const char *text)
{
	size_t bytes = strlen(text);
	bool is_new;
	uint64_t number = intern(&pickler->texts, text, bytes, &is_new);

	if (!is_new) {
		pickler_again(pickler, pickler->text_memos[number - 1]);
		return;
	}
	put(pickler, OP_BINUNICODE);
	put_number(pickler, bytes, 4);
	fwrite(text, 1, bytes, pickler->out);
	pickler->text_memos = memory_grow(pickler->text_memos, number - 1, &pickler->texts_room,
		sizeof(*pickler->text_memos));
	pickler->text_memos[number - 1] = pickler_keep(pickler);
}

void pickler_pair(struct pickler *pickler, int64_t first, int64_t second)
{
	pickler_integer(pickler, first);
	pickler_integer(pickler, second);
	put(pickler, OP_TUPLE2);
}

void pickler_open_dict(struct pickler *pickler)
{
	put(pickler, OP_EMPTY_DICT);
	put(pickler, OP_MARK);
}

void pickler_close_dict(struct pickler *pickler)
{
	put(pickler, OP_SETITEMS);
}

void pickler_open_list(struct pickler *pickler, struct pickler_list *list)
{
	list->n_batch = 0;
	put(pickler, OP_EMPTY_LIST);
	put(pickler, OP_MARK);
}

void pickler_item(struct pickler *pickler, struct pickler_list *list)
{
	if (list->n_batch++ < BATCH)
		return;
	put(pickler, OP_APPENDS);
	put(pickler, OP_MARK);
	list->n_batch = 1;
}

void pickler_close_list(struct pickler *pickler, struct pickler_list *list)
{
	(void)list;
	put(pickler, OP_APPENDS);
}

void pickler_key_text(struct pickler *pickler, const char *key, const char *value)
{
	pickler_text(pickler, key);
	pickler_text(pickler, value);
}

void pickler_key_integer(struct pickler *pickler, const char *key, int64_t value)
{
	pickler_text(pickler, key);
	pickler_integer(pickler, value);
}

void pickler_key_bool(struct pickler *pickler, const char *key, bool value)
{
	pickler_text(pickler, key);
	pickler_bool(pickler, value);
}
