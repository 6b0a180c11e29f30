#include "output/transfer_words.h"

#include <inttypes.h>

#include "output/format.h"
#include "output/line.h"
#include "output/report.h"

const char *transfer_where(uint32_t direction)
{
	static const char *const where[VT_N_DIRECTIONS] = {
		[VT_DIR_UNIFIED] = "",
		[VT_DIR_H2D] = "to the device",
		[VT_DIR_D2H] = "back to the host",
		[VT_DIR_D2D] = "on the device",
		[VT_DIR_P2P] = "between devices",
		[VT_DIR_H2H] = "between host buffers",
	};

	return where[direction];
}

const char *transfer_source_words(enum transfer_source source)
{
	static const char *const words[] = {
		[TRANSFER_TYPICAL] = "typical, not measured",
		[TRANSFER_SYNCHRONOUS] = "measured, synchronous copies of this trace",
		[TRANSFER_TIMED] = "measured on the device, in this trace",
	};

	return words[source];
}

static void put_n_bytes(
	FILE *out, const struct transfer_finding *finding, const char *one, const char *many)
{
	fprintf(out, "%s %s, %s", format_count(finding->n).text, line_plural(finding->n, one, many),
		format_bytes(finding->bytes).text);
}

static void put_pageable(
	FILE *out, const struct transfers *transfers, const struct transfer_finding *finding)
{
	const struct transfer_rate *rate = &transfers->rates[finding->direction];

	put_n_bytes(out, finding, "copy", "copies");
	fprintf(out, ", %s pageable memory; pinned: %s%s",
		finding->direction == VT_DIR_H2D ? "from" : "to",
		format_rate(rate->bytes_per_s).text,
		rate->source == TRANSFER_TYPICAL ? " (typical)" : "");
}

static void put_again(FILE *out, const struct transfer_finding *finding)
{
	fprintf(out, ", %s %s of host memory%s", format_count(finding->n_ranges).text,
		line_plural(finding->n_ranges, "range", "ranges"),
		finding->is_possible ? "; whether it had changed is not known" : "");
}

static void put_rounded(FILE *out, const struct transfer_finding *finding)
{
	put_n_bytes(out, finding, "pinned block", "pinned blocks");
	if (finding->used_bytes)
		fprintf(out, " locked, %s used by copies", format_bytes(finding->used_bytes).text);
	else
		fputs(" locked, all powers of two and never copied: up to half may not have been "
		      "asked for",
			out);
}

static void put_not_reused(FILE *out, const struct transfer_finding *finding)
{
	put_n_bytes(out, finding, "pinned block", "pinned blocks");
	fprintf(out,
		", each copied and then kept while more were locked; the oldest since %s, on "
		"stream 0x%" PRIx64,
		format_moment(finding->time_ns).text, finding->stream);
}

static void put_kept(FILE *out, const struct transfer_finding *finding)
{
	put_n_bytes(out, finding, "registered range", "registered ranges");
	if (finding->time_ns)
		fprintf(out, ", unregistered %s after the last copy",
			format_duration(finding->time_ns).text);
	else
		fputs(", more and more, and never unregistered", out);
}

static void put_alloc_churn(FILE *out, const struct transfer_finding *finding)
{
	put_n_bytes(out, finding, "allocation", "allocations");
	fprintf(out, " of %s memory, of as much as had been freed within 1 ms",
		model_kind_name(finding->memory_kind));
	if (finding->memory_kind == VT_KIND_POOL)
		fprintf(out, "; release threshold %s%s",
			format_bytes(finding->threshold_bytes).text,
			finding->is_threshold_known ? "" : " (not set)");
}

void transfer_put_finding(const struct style *style, const struct transfers *transfers,
	const struct transfer_finding *finding)
{
	FILE *out = style->out;

	if (finding->is_lost) {
		style_switch(style, STYLE_HEADING);
		fputs(format_duration(finding->lost_ns).text, out);
		style_switch(style, STYLE_PLAIN);
		fputs(finding->kind == TRANSFER_READ_BACK ? " waited in " : " lost in ", out);
	}
	switch (finding->kind) {
	case TRANSFER_PAGEABLE:
		put_pageable(out, transfers, finding);
		break;
	case TRANSFER_BLOCKED:
		put_n_bytes(out, finding, "asynchronous call", "asynchronous calls");
		fprintf(out, " %s, that did not return at once",
			transfer_where(finding->direction));
		break;
	case TRANSFER_SMALL:
		put_n_bytes(out, finding, "small copy", "small copies");
		fprintf(out, " %s, right behind one another", transfer_where(finding->direction));
		break;
	case TRANSFER_READ_BACK:
		put_n_bytes(out, finding, "copy", "copies");
		fputs(", of a few bytes back to the host", out);
		break;
	case TRANSFER_REPEATED:
		put_n_bytes(out, finding, "repeated upload", "repeated uploads");
		put_again(out, finding);
		break;
	case TRANSFER_ROUND_TRIP:
		put_n_bytes(out, finding, "copy", "copies");
		fputs(" to the host that came back up, unchanged in size", out);
		put_again(out, finding);
		break;
	case TRANSFER_PIN_CHURN:
		fputs("locking and unlocking host memory for ", out);
		put_n_bytes(out, finding, "buffer", "buffers");
		break;
	case TRANSFER_ROUNDED:
		put_rounded(out, finding);
		break;
	case TRANSFER_NOT_REUSED:
		put_not_reused(out, finding);
		break;
	case TRANSFER_KEPT:
		put_kept(out, finding);
		break;
	case TRANSFER_CLASH:
		fprintf(out,
			"%s at 0x%" PRIx64 " could not be registered (%s %s): they are already",
			format_bytes(finding->bytes).text, finding->address,
			format_count(finding->n).text, line_plural(finding->n, "time", "times"));
		break;
	case TRANSFER_STAGED:
		put_n_bytes(out, finding, "copy", "copies");
		fprintf(out, ", from %s to %s through the host: peer access is off",
			report_device_name(finding->src_device).text,
			report_device_name(finding->dst_device).text);
		break;
	case TRANSFER_ALLOC_CHURN:
		put_alloc_churn(out, finding);
		break;
	case TRANSFER_SERIAL:
		put_n_bytes(out, finding, "copy", "copies");
		fputs(" on the legacy default stream, among copies on streams that it waits for",
			out);
		break;
	case TRANSFER_N_FINDINGS:
		break;
	}
	if (finding->is_typical && finding->kind != TRANSFER_PAGEABLE)
		fputs(", estimated with a typical rate", out);
}

const char *transfer_other_words(const struct transfer_finding *finding)
{
	if (!finding->other_stack_id)
		return NULL;
	switch (finding->kind) {
	case TRANSFER_ROUND_TRIP:
		return "brought up again by";
	case TRANSFER_NOT_REUSED:
		return "the oldest was copied by";
	case TRANSFER_CLASH:
		return "registered before by";
	default:
		return NULL;
	}
}
