/* Memory that is set, and managed memory that is told where to be. */
#include "model/internal.h"

void copy_apply_set(struct model *model, const struct vt_record *record)
{
	const struct vt_rec_set *set = &record->set;
	struct model_device *device = model_device_of(model, set->device);

	if (set->result) {
		model_note_failure(model,
			&(struct model_failure_key){.result = set->result,
				.stack_id = set->stack_id,
				.api_id = set->api_id,
				.caller_api = set->caller_api,
				.device = device->ordinal,
				.refusal = MODEL_REFUSED_SET},
			set->bytes, set->time_ns);
		return;
	}
	if (set->flags & VT_COPY_CAPTURED) {
		model->captured.n_sets++;
		model->captured.set_bytes = add_capped(model->captured.set_bytes, set->bytes);
		return;
	}
	device->n_sets++;
	device->set_bytes = add_capped(device->set_bytes, set->bytes);
}

/* The ranges of one call share its thread and its moment. */
static bool is_same_migration(const struct model *model, const struct vt_record *record)
{
	return model->last_migration.time_ns == record->migrate.time_ns &&
	       model->last_migration.api_id == record->migrate.api_id &&
	       model->last_migration.tid == record->tid;
}

void copy_apply_migrate(struct model *model, const struct vt_record *record)
{
	const struct vt_rec_migrate *given = &record->migrate;
	struct model_migration *migration;

	if (given->result) {
		model_note_failure(model,
			&(struct model_failure_key){.result = given->result,
				.stack_id = given->stack_id,
				.api_id = given->api_id,
				.device = given->device < 0
						  ? MODEL_DEVICE_HOST
						  : model_device_of(model, given->device)->ordinal,
				.refusal = MODEL_REFUSED_MIGRATE,
				.kind = VT_KIND_MANAGED},
			given->bytes, given->time_ns);
		return;
	}
	if (!given->action || given->action >= MODEL_N_MIGRATIONS)
		return;
	migration = &model->migrations[given->action];
	migration->bytes = add_capped(migration->bytes, given->bytes);
	if (migration->n_calls && is_same_migration(model, record))
		return;
	migration->n_calls++;
	migration->host_time_ns = add_capped(migration->host_time_ns, given->duration_ns);
	model->last_migration.time_ns = given->time_ns;
	model->last_migration.api_id = given->api_id;
	model->last_migration.tid = record->tid;
}
