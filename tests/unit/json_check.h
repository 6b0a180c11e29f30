/* A strict JSON parser that only says yes or no, so that the writer is not judged by itself. */
#ifndef TESTS_UNIT_JSON_CHECK_H
#define TESTS_UNIT_JSON_CHECK_H

#include <ctype.h>
#include <stdbool.h>
#include <string.h>

static inline void json_skip(const char **p)
{
	while (**p == ' ' || **p == '\n' || **p == '\t' || **p == '\r')
		(*p)++;
}

static inline bool json_check_string(const char **p)
{
	if (*(*p)++ != '"')
		return false;
	for (; **p != '"'; (*p)++) {
		if ((unsigned char)**p < 0x20)
			return false;
		if (**p != '\\')
			continue;
		(*p)++;
		if (**p == 'u') {
			for (int i = 0; i < 4; i++)
				if (!isxdigit((unsigned char)*++(*p)))
					return false;
		} else if (!**p || !strchr("\"\\/bfnrt", **p)) {
			return false;
		}
	}
	(*p)++;
	return true;
}

static inline bool json_check_number(const char **p)
{
	const char *start = *p;

	if (**p == '-')
		(*p)++;
	while (isdigit((unsigned char)**p))
		(*p)++;
	return *p > start && isdigit((unsigned char)(*p)[-1]);
}

static inline bool json_check_value(const char **p)
{
	static const char *const words[] = {"null", "true", "false"};
	char close = **p == '{' ? '}' : ']';

	for (size_t i = 0; i < 3; i++) {
		if (!strncmp(*p, words[i], strlen(words[i]))) {
			*p += strlen(words[i]);
			return true;
		}
	}
	if (**p == '"')
		return json_check_string(p);
	if (**p != '{' && **p != '[')
		return json_check_number(p);
	(*p)++;
	json_skip(p);
	if (**p == close) {
		(*p)++;
		return true;
	}
	for (;;) {
		json_skip(p);
		if (close == '}') {
			if (!json_check_string(p))
				return false;
			json_skip(p);
			if (*(*p)++ != ':')
				return false;
			json_skip(p);
		}
		if (!json_check_value(p))
			return false;
		json_skip(p);
		if (**p == close) {
			(*p)++;
			return true;
		}
		if (*(*p)++ != ',')
			return false;
	}
}

/* True when text is one JSON value, a newline, and nothing more. */
static inline bool json_check(const char *text)
{
	json_skip(&text);
	return json_check_value(&text) && !strcmp(text, "\n");
}

#endif
