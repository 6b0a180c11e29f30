#include <stdlib.h>

#include "model/memory.h"
#include "output/html_parts.h"

static void put_report(
	FILE *out, const struct html_trace *traces, size_t n, const struct together *together)
{
	struct report_trace *shown = memory_new(n, sizeof(*shown));

	for (size_t i = 0; i < n; i++)
		shown[i] = *traces[i].shown;
	report_json_in_html(out, shown, n, together);
	free(shown);
}

void html_put(FILE *out, const struct html_trace *traces, size_t n, const struct together *together)
{
	fputs("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n", out);
	fprintf(out,
		"<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
		"script-src 'sha256-%s'; style-src 'sha256-%s'; base-uri 'none'; form-action "
		"'none'\">\n",
		html_script_hash, html_style_hash);
	fputs("<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
	      "<meta name=\"color-scheme\" content=\"light dark\">\n"
	      "<title>vramtrace</title>\n<style>",
		out);
	fwrite(html_style, 1, html_style_bytes, out);
	fputs("</style>\n</head>\n", out);
	fwrite(html_body, 1, html_body_bytes, out);
	fputs("<script type=\"application/json\" id=\"report-data\">\n", out);
	put_report(out, traces, n, together);
	fputs("</script>\n<script type=\"application/json\" id=\"page-data\">\n", out);
	html_data_put(out, traces, n);
	fputs("</script>\n<script>", out);
	fwrite(html_script, 1, html_script_bytes, out);
	fputs("</script>\n</body>\n</html>\n", out);
}
