#include "trace/schema.h"

/* One function a record, because only inside a function can FIELD name the record's struct. */
#define RECORD(number, rec, doc)                                                                   \
	static const struct vt_schema *schema_##rec(void)                                          \
	{                                                                                          \
		typedef struct vt_rec_##rec self;                                                  \
		static const struct vt_field fields[] = {
#define FIELD(type, name, doc) {VT_FIELD_##type, offsetof(self, name), #name},
#define END_RECORD(rec)                                                                            \
	}                                                                                          \
	;                                                                                          \
	static const struct vt_schema schema = {#rec, fields, sizeof(fields) / sizeof(*fields)};   \
	return &schema;                                                                            \
	}
#include "vramtrace/records.def"

const struct vt_schema *vt_schema_get(unsigned int kind)
{
	switch (kind) {
#define RECORD(number, rec, doc)                                                                   \
	case number:                                                                               \
		return schema_##rec();
#define FIELD(type, name, doc)
#define END_RECORD(rec)
#include "vramtrace/records.def"
	default:
		return NULL;
	}
}

#define VT_LETTER_TIME	 "T:"
#define VT_LETTER_NUMBER "N:"
#define VT_LETTER_SIGNED "S:"
#define VT_LETTER_ADDR	 "A:"
#define VT_LETTER_TEXT	 "X:"
#define VT_LETTER_LIST	 "L:"

const char vt_schema_text[] =
#define RECORD(number, rec, doc) #number " " #rec
#define FIELD(type, name, doc)	 " " VT_LETTER_##type #name
#define END_RECORD(rec)		 "\n"
#include "vramtrace/records.def"
	;

const size_t vt_schema_text_bytes = sizeof(vt_schema_text) - 1;

_Static_assert(sizeof(vt_schema_text) + sizeof(struct vt_file_header) <= VT_HEADER_BYTES,
	"the schema text must fit into the header");
