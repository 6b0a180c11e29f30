#include "analysis/limits.h"

void limit_sums_get(struct limit_sums *sums, const struct overview *overview)
{
	*sums = (struct limit_sums){0};
	for (size_t i = 0; i < overview->leaks.n_items; i++) {
		const struct leak *leak = &overview->leaks.items[i];

		if (leak->suppressed_by)
			continue;
		if (!leak->row.teardown && leak->row.level != SITE_IDLE &&
			leak->row.kind != VT_KIND_SHARED)
			sums->live_bytes += leak->row.bytes;
		if (leak->grows) {
			sums->growth_bytes_per_s += leak->rate_bytes_per_s;
			if (!sums->fastest ||
				leak->rate_bytes_per_s > sums->fastest->rate_bytes_per_s)
				sums->fastest = leak;
		}
		if (!leak_is_leak(leak))
			continue;
		sums->leak_bytes += leak->row.bytes;
		if (leak->verdict == LEAK_NONE)
			sums->unknown_bytes += leak->row.bytes;
		if (!sums->largest || leak->row.bytes > sums->largest->row.bytes)
			sums->largest = leak;
	}
	for (size_t i = 0; i < overview->untracked.n_items; i++)
		sums->growth_bytes_per_s += overview->untracked.items[i].rate_bytes_per_s;
	for (size_t i = 0; i < overview->ooms.n_items; i++)
		sums->n_refused += !overview->ooms.items[i].episode.recovered;
}
