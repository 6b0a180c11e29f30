#include "output/show.h"

#include <stdlib.h>
#include <string.h>

#include "model/memory.h"
#include "output/format.h"

static struct vt_text last_part(struct vt_text path)
{
	const char *slash = path.bytes ? memrchr(path.data, '/', path.bytes) : NULL;
	size_t start = slash ? (size_t)(slash - path.data) + 1 : 0;

	return (struct vt_text){path.data + start, path.bytes - start};
}

static const char *last_part_of(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

const char *show_frame_path(const struct show *show, const char *path)
{
	return path && show->paths != SHOW_WHOLE_PATHS ? last_part_of(path) : path;
}

const char *show_path(const struct show *show, const char *path)
{
	return path && show->paths == SHOW_NO_PATHS ? last_part_of(path) : path;
}

struct vt_text show_path_text(const struct show *show, struct vt_text text)
{
	return show->paths == SHOW_NO_PATHS ? last_part(text) : text;
}

char *show_sentence(const struct show *show, struct vt_text text)
{
	char *sentence = memory_new(text.bytes + 1, 1), *to = sentence;
	bool begins = true; /* a word */

	for (size_t i = 0; i < text.bytes; i++) {
		char c = text.data[i];

		if (begins && c == '/' && show->paths == SHOW_NO_PATHS) {
			size_t end = i;

			while (end < text.bytes && text.data[end] != ' ')
				end++;
			while (end > i + 1 && text.data[end - 1] != '/')
				end--;
			i = end - 1;
			continue;
		}
		begins = c && strchr(" '\"(=:", c);
		*to++ = c ? c : ' ';
	}
	return sentence;
}

void show_put_sentence(FILE *out, const struct show *show, struct vt_text text)
{
	char *sentence = show_sentence(show, text);

	format_put_text(out, (struct vt_text){sentence, strlen(sentence)});
	free(sentence);
}

bool show_is_open(const struct show *show)
{
	return show->paths != SHOW_NO_PATHS;
}

static bool is_script(struct vt_text argument)
{
	return argument.bytes > 3 && !memcmp(argument.data + argument.bytes - 3, ".py", 3);
}

size_t show_arguments(const struct show *show, struct vt_text arguments,
	void (*put)(void *user, struct vt_text argument), void *user)
{
	size_t n_left_out = 0;
	bool script = false;

	for (size_t at = 0; at < arguments.bytes;) {
		const char *start = arguments.data + at;
		struct vt_text argument = {start, strnlen(start, arguments.bytes - at)};

		if (show_is_open(show)) {
			put(user, argument);
		} else if (!at || (is_script(argument) && !script)) {
			put(user, last_part(argument));
			script = at != 0;
		} else {
			n_left_out++;
		}
		at += argument.bytes + 1;
	}
	return n_left_out;
}
