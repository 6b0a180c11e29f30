#include "analysis/account.h"

const char *account_cause_label(uint32_t cause)
{
	static const char *const labels[VT_N_CAUSES] = {
		[VT_CAUSE_CONTEXT] = "contexts",
		[VT_CAUSE_MODULES] = "code",
		[VT_CAUSE_LOCAL_MEMORY] = "local memory",
		[VT_CAUSE_DEVICE_HEAP] = "device heap",
		[VT_CAUSE_LIMITS] = "other limits",
		[VT_CAUSE_GRAPH_EXEC] = "executable graphs",
		[VT_CAUSE_GREEN_CONTEXT] = "green contexts",
	};

	return labels[cause];
}

/* Tracked memory by ledger. Pages follow from the driver's known rules. */
static size_t tracked_rows(const struct model_account *account, struct account_row *rows)
{
	const struct model_held *held = &account->held;
	const struct {
		const char *key, *label;
		uint64_t bytes;
		bool measured;
	} parts[] = {
		{"linear", "linear memory, in whole pages", held->linear_bytes, false},
		{"array", "arrays, in whole pages", held->array_bytes, false},
		{"pool", account->pools_known ? "reserved by pools" : "allocated from pools",
			held->pool_bytes, account->pools_known},
		{"vmm", "physical memory of the virtual memory API", held->vmm_bytes, true},
		{"graph", account->graphs_known ? "reserved for graphs" : "allocated by graphs",
			held->graph_bytes, account->graphs_known},
	};
	size_t n = 0;

	for (size_t i = 0; i < sizeof(parts) / sizeof(*parts); i++)
		if (parts[i].bytes)
			rows[n++] = (struct account_row){ACCOUNT_TRACKED, parts[i].key,
				parts[i].label, (int64_t)parts[i].bytes, parts[i].measured};
	return n;
}

size_t account_rows(const struct model_account *account, struct account_row rows[ACCOUNT_MAX_ROWS])
{
	size_t n = tracked_rows(account, rows);

	for (uint32_t cause = 0; cause < VT_N_CAUSES; cause++)
		if (account->untracked_bytes[cause])
			rows[n++] = (struct account_row){ACCOUNT_UNTRACKED, model_cause_name(cause),
				account_cause_label(cause), account->untracked_bytes[cause], true};
	rows[n++] = (struct account_row){ACCOUNT_UNTRACKED, "unexplained",
		"not explained by anything", account->unexplained_bytes, false};
	rows[n++] = (struct account_row){ACCOUNT_OTHERS, "other_processes",
		account->context_known ? "other processes"
				       : "other processes, and contexts of this one",
		account->others_bytes, account->others_measured};
	rows[n++] = (struct account_row){
		ACCOUNT_FREE, "free", "free", (int64_t)account->free_bytes, true};
	return n;
}
