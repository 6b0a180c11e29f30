#include "output/doctor_text.h"

#include <string.h>

#include "output/format.h"
#include "output/json.h"

static const char *const levels[] = {
	[FINDING_OK] = "ok",
	[FINDING_WARNING] = "warning",
	[FINDING_PROBLEM] = "problem",
};

void doctor_text(const struct style *style, const struct findings *findings)
{
	for (size_t i = 0; i < findings->n_items; i++) {
		const struct finding *finding = &findings->items[i];
		const char *level = levels[finding->level];

		style_put(style, finding->level == FINDING_OK ? STYLE_DIM : STYLE_WARNING, level);
		fprintf(style->out, "%*s", 9 - (int)strlen(level), "");
		format_put_text(style->out, (struct vt_text){finding->text, strlen(finding->text)});
		fprintf(style->out, "%s%s\n", finding->advice ? "; " : "",
			finding->advice ? finding->advice : "");
	}
}

void doctor_json(FILE *out, const struct findings *findings)
{
	struct json json;

	json_init(&json, out, false);
	json_open(&json, NULL, '{');
	json_string(&json, "schema", "vramtrace.doctor");
	json_number(&json, "version", 1);
	json_number(&json, "problems", findings_count(findings, FINDING_PROBLEM));
	json_number(&json, "warnings", findings_count(findings, FINDING_WARNING));
	json_open(&json, "findings", '[');
	for (size_t i = 0; i < findings->n_items; i++) {
		const struct finding *finding = &findings->items[i];

		json_open(&json, NULL, '{');
		json_string(&json, "level", levels[finding->level]);
		json_string(&json, "check", finding->check);
		json_string(&json, "text", finding->text);
		json_string(&json, "advice", finding->advice);
		json_close(&json, '}');
	}
	json_close(&json, ']');
	json_close(&json, '}');
	json_end(&json);
}
