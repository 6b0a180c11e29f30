/* What the report does not say of its entries: which row they are, and what their stacks are called
 * in one line. */
#include "output/blocks_text.h"
#include "output/html_parts.h"

/* The row of what a leak is about; ROSTER_NONE: it has none of its own. */
static uint32_t row_of_leak(const struct roster *roster, const struct site_row *leak)
{
	for (size_t i = 0; i < roster->n_rows; i++) {
		const struct roster_row *row = &roster->rows[i];

		if (!row->is_rest && row->key.stack_id == leak->stack_id &&
			row->key.device == leak->device && row->key.kind == leak->kind &&
			row->key.allocator_id == leak->allocator_id && row->level == leak->level)
			return (uint32_t)i;
	}
	return ROSTER_NONE;
}

static void put_label(struct html_data *data, const struct stack_source *source, uint64_t stack_id)
{
	char label[1100];

	stack_label(source, stack_id, label, sizeof(label));
	html_put_number(data, (int64_t)html_text(data, export_name_set(&data->name, label)));
}

static void put_holder(
	struct html_data *data, const struct stack_source *source, const struct site_row *row)
{
	char name[100], label[130];

	if (row->level != SITE_IDLE) {
		put_label(data, source, row->stack_id);
		return;
	}
	blocks_name(source->model, row->allocator_id, name, sizeof(name));
	snprintf(label, sizeof(label), "kept by %s, in no block", name);
	html_put_number(data, (int64_t)html_text(data, export_name_set(&data->name, label)));
}

void html_put_labels(struct html_data *data, const struct html_trace *trace)
{
	const struct overview *overview = trace->shown->overview;
	struct stack_source source = report_stacks(trace->shown);
	struct json *json = &data->json;

	json_open(json, "leaks", '[');
	for (size_t i = 0; i < overview->leaks.n_items; i++) {
		uint32_t row = row_of_leak(trace->roster, &overview->leaks.items[i].row);

		html_put_number(data, row == ROSTER_NONE ? -1 : (int64_t)row);
	}
	json_close(json, ']');
	json_open(json, "labels", '{');
	json_open(json, "leaks", '[');
	for (size_t i = 0; i < overview->leaks.n_items; i++)
		put_holder(data, &source, &overview->leaks.items[i].row);
	json_close(json, ']');
	json_open(json, "transfers", '[');
	for (size_t i = 0; i < overview->transfers.n_rows; i++)
		put_label(data, &source, overview->transfers.rows[i].key.stack_id);
	json_close(json, ']');
	json_open(json, "transfer_findings", '[');
	for (size_t i = 0; i < overview->transfers.n_findings; i++)
		put_label(data, &source, overview->transfers.findings[i].stack_id);
	json_close(json, ']');
	json_open(json, "holders", '[');
	for (size_t i = 0; i < overview->ooms.n_items; i++) {
		json_open(json, NULL, '[');
		for (size_t k = 0; k < overview->ooms.items[i].holders.n_rows; k++)
			put_holder(data, &source, &overview->ooms.items[i].holders.rows[k]);
		json_close(json, ']');
	}
	json_close(json, ']');
	json_close(json, '}');
}
