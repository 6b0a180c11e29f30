#include "vramtrace/error.h"

const char *vt_error_text(int code)
{
	switch (code) {
	case 0:
		return "no error";
#define ERROR(name, number, text)                                                                  \
	case VT_E_##name:                                                                          \
		return text;
#include "vramtrace/error.def"
	default:
		return "unknown error";
	}
}
