#include "output/account_text.h"

#include "output/report.h"

#define LABEL_COLUMNS 42

/* " (contexts 0.5 GiB, code 0.3 GiB)" */
static void put_causes(const struct style *style, const struct account_row *rows, size_t n)
{
	const char *before = " (";

	for (size_t i = 0; i < n; i++) {
		bool rest = !rows[i].measured;

		if (rows[i].part != ACCOUNT_UNTRACKED || !rows[i].bytes)
			continue;
		fprintf(style->out, "%s%s %s", before, rest ? "unexplained" : rows[i].label,
			format_signed_bytes(rows[i].bytes).text);
		before = ", ";
	}
	if (before[0] == ',')
		fputc(')', style->out);
}

void account_put_line(const struct style *style, const struct model_account *account)
{
	struct account_row rows[ACCOUNT_MAX_ROWS];
	size_t n = account_rows(account, rows);
	int64_t untracked = 0;

	for (size_t i = 0; i < n; i++)
		if (rows[i].part == ACCOUNT_UNTRACKED)
			untracked = (int64_t)((uint64_t)untracked + (uint64_t)rows[i].bytes);
	fprintf(style->out, "%s = %s tracked + ", format_bytes(account->total_bytes).text,
		format_bytes(account->tracked_bytes).text);
	fprintf(style->out, "%s untracked", format_signed_bytes(untracked).text);
	put_causes(style, rows, n);
	fprintf(style->out, " + %s other processes%s%s + %s free, at %s",
		format_signed_bytes(account->others_bytes).text,
		account->context_known ? "" : " and contexts",
		account->others_measured ? "" : " (inferred)",
		format_bytes(account->free_bytes).text, format_moment(account->time_ns).text);
}

static void put_row(const struct style *style, const char *label, int64_t bytes, const char *source)
{
	fprintf(style->out, "%12s  ", format_signed_bytes(bytes).text);
	style_put_cut(style, label, LABEL_COLUMNS, true);
	fprintf(style->out, "  %s\n", source);
}

void account_put_table(const struct style *style, const struct model_device *device)
{
	const struct model_account *account = &device->account;
	const struct model_totals *managed = &device->kinds[VT_KIND_MANAGED];
	struct account_row rows[ACCOUNT_MAX_ROWS];
	size_t n;

	if (!account->seen)
		return;
	n = account_rows(account, rows);
	style_put(style, STYLE_HEADING, "ACCOUNT");
	fprintf(style->out, " of %s at %s, when the driver was last asked\n\n",
		report_device_name(device->ordinal).text, format_moment(account->time_ns).text);
	for (size_t i = 0; i < n; i++)
		put_row(style, rows[i].label, rows[i].bytes,
			rows[i].measured ? "measured" : "inferred");
	fprintf(style->out, "%12s\n", "----------");
	put_row(style, "in all", (int64_t)account->total_bytes, "measured");
	if (account->unexplained_bytes > 0 && managed->n_live)
		fprintf(style->out,
			"\nManaged memory moves by itself: what of its %s is on the device is not "
			"explained.\n",
			format_bytes(managed->live_bytes).text);
	fputc('\n', style->out);
}
