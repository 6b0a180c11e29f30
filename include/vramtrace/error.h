/* Error codes shared by the recorder, the format library and the CLI. Functions return 0 or one of
 * these. */
#ifndef VRAMTRACE_ERROR_H
#define VRAMTRACE_ERROR_H

enum vt_error {
#define ERROR(name, number, text) VT_E_##name = -(number),
#include "vramtrace/error.def"
};

/* Text for code (a VT_E_* value, 0 is "no error"), without a full stop. A constant; never NULL. */
const char *vt_error_text(int code);

#endif
