/* Out-of-memory episodes in words: why, what would have sufficed, and the full post-mortem. */
#ifndef VRAMTRACE_OUTPUT_OOM_TEXT_H
#define VRAMTRACE_OUTPUT_OOM_TEXT_H

#include "output/groups.h"
#include "output/report.h"

/* Why the request was not served, in a line without its end. */
void oom_put_reason(FILE *out, const struct stack_source *source, const struct oom *oom);

/* What would have sufficed, in a line without its end. */
void oom_put_remedy(FILE *out, const struct stack_source *source, const struct oom *oom,
	const struct oom_remedy *remedy);

/* What came before the refusal, one event a line. */
void oom_put_events(
	const struct style *style, const struct stack_source *source, const struct oom *oom);

/* The call that was refused, as the program knows it; "PyTorch's allocator" for a report alone. */
const char *oom_call_name(const struct model *model, const struct oom *oom);

/* Those who held memory then, or address space, by label; release with site_groups_release. */
void oom_groups_make(
	struct site_groups *groups, const struct stack_source *source, const struct oom *oom);

/* "release_cache", "trim_pool", ... as in the JSON. */
const char *oom_action_name(enum oom_action action);

/* The section of the one-screen report; nothing when there was no episode. */
void oom_put_section(const struct style *style, const struct report_trace *trace);

/* The full view of a trace. */
void oom_text(const struct style *style, const struct report_trace *trace);

#endif
