#include "output/export.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "output/export_stack.h"
#include "output/format.h"
#include "output/report.h"

struct export_text export_moment_name(const struct export_moment *moment)
{
	struct format_text device = report_device_name(moment->moment.device);
	struct format_text at = format_moment(moment->time_ns);
	struct export_text out;

	switch (moment->moment.at) {
	case REPLAY_AT_PEAK:
		snprintf(out.text, sizeof(out.text), "peak of %s, at %s", device.text, at.text);
		break;
	case REPLAY_AT_RECORD:
		snprintf(out.text, sizeof(out.text), "out of memory %zu, at %s", moment->oom_number,
			at.text);
		break;
	case REPLAY_AT_TIME:
		snprintf(out.text, sizeof(out.text), "at %s", at.text);
		break;
	default:
		snprintf(out.text, sizeof(out.text), "end");
		break;
	}
	return out;
}

struct export_text export_process_name(const struct trace_facts *facts)
{
	struct vt_text exe = facts->exe;
	const char *slash = exe.bytes ? memrchr(exe.data, '/', exe.bytes) : NULL;
	struct export_name name = {0};
	struct export_text out;
	char raw[48];

	if (slash) {
		exe.bytes -= (size_t)(slash + 1 - exe.data);
		exe.data = slash + 1;
	}
	snprintf(raw, sizeof(raw), "%.*s", (int)(exe.bytes < 40 ? exe.bytes : 40),
		exe.bytes ? exe.data : "");
	export_name_set(&name, raw);
	/* What is cut from a name may have been half a character, which has grown. */
	if (name.bytes > 60)
		export_name_set(&name, "process");
	if (facts->rank >= 0)
		snprintf(out.text, sizeof(out.text), "%s %" PRIu64 ", rank %" PRId64, name.text,
			facts->pid, facts->rank);
	else
		snprintf(out.text, sizeof(out.text), "%s %" PRIu64, name.text, facts->pid);
	export_name_release(&name);
	return out;
}
