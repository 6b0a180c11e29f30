/* Records as they are, one a line, from the schema tables: no record and no field needs code of its
 * own. */
#ifndef VRAMTRACE_OUTPUT_DUMP_H
#define VRAMTRACE_OUTPUT_DUMP_H

#include <stdio.h>

#include "model/model.h"

/* Prints record. Names of entry points come from model (borrowed). */
void dump_text(FILE *out, const struct model *model, const struct vt_record *record);
void dump_json(FILE *out, const struct model *model, const struct vt_record *record);

#endif
