/* What the numbers of the format are called, and what follows from a kind. */
#include "model/model.h"

bool model_kind_tracked(uint32_t kind)
{
	return kind == VT_KIND_LINEAR || kind == VT_KIND_ARRAY || kind == VT_KIND_POOL ||
	       kind == VT_KIND_VMM || kind == VT_KIND_GRAPH;
}

const char *model_kind_name(uint64_t kind)
{
	static const char *const names[VT_N_KINDS] = {
		[VT_KIND_LINEAR] = "linear",
		[VT_KIND_ARRAY] = "array",
		[VT_KIND_POOL] = "pool",
		[VT_KIND_VMM] = "vmm",
		[VT_KIND_MANAGED] = "managed",
		[VT_KIND_GRAPH] = "graph",
		[VT_KIND_SHARED] = "shared",
		[VT_KIND_PINNED] = "pinned",
		[VT_KIND_REGISTERED] = "registered",
	};

	return kind < VT_N_KINDS && names[kind] ? names[kind] : "unknown";
}

const char *model_direction_name(uint64_t direction)
{
	static const char *const names[VT_N_DIRECTIONS] = {
		[VT_DIR_UNIFIED] = "unified",
		[VT_DIR_H2D] = "h2d",
		[VT_DIR_D2H] = "d2h",
		[VT_DIR_D2D] = "d2d",
		[VT_DIR_P2P] = "p2p",
		[VT_DIR_H2H] = "h2h",
	};

	return direction < VT_N_DIRECTIONS ? names[direction] : "unknown";
}

const char *model_host_kind_name(uint32_t host_kind)
{
	static const char *const names[MODEL_N_HOST_KINDS] = {
		[MODEL_HOST_PAGEABLE] = "pageable",
		[MODEL_HOST_PINNED] = "pinned",
		[MODEL_HOST_REGISTERED] = "registered",
		[MODEL_HOST_MANAGED] = "managed",
	};

	return host_kind < MODEL_N_HOST_KINDS ? names[host_kind] : NULL;
}

const char *model_cause_name(uint64_t cause)
{
	static const char *const names[VT_N_CAUSES] = {
		[VT_CAUSE_CONTEXT] = "context",
		[VT_CAUSE_MODULES] = "modules",
		[VT_CAUSE_LOCAL_MEMORY] = "local_memory",
		[VT_CAUSE_DEVICE_HEAP] = "device_heap",
		[VT_CAUSE_LIMITS] = "limits",
		[VT_CAUSE_GRAPH_EXEC] = "graph_exec",
		[VT_CAUSE_GREEN_CONTEXT] = "green_context",
	};

	return cause < VT_N_CAUSES && names[cause] ? names[cause] : "unknown";
}

const char *model_object_name(uint64_t object)
{
	static const char *const names[VT_N_OBJECTS] = {
		[VT_OBJECT_STREAM] = "stream",
		[VT_OBJECT_EVENT] = "event",
		[VT_OBJECT_MODULE] = "module",
		[VT_OBJECT_GRAPH_EXEC] = "graph_exec",
	};

	return object < VT_N_OBJECTS ? names[object] : "unknown";
}

const char *model_migration_name(uint64_t action)
{
	static const char *const names[MODEL_N_MIGRATIONS] = {
		[VT_MIGRATE_PREFETCH] = "prefetch",
		[VT_MIGRATE_ADVISE] = "advise",
		[VT_MIGRATE_DISCARD] = "discard",
		[VT_MIGRATE_DISCARD_PREFETCH] = "discard_and_prefetch",
	};

	return action < MODEL_N_MIGRATIONS && names[action] ? names[action] : "unknown";
}

const char *model_python_outcome_name(uint64_t outcome)
{
	static const char *const names[VT_N_PYTHON_OUTCOMES] = {
		[VT_PYTHON_CAPTURED] = "captured",
		[VT_PYTHON_NO_THREAD] = "no_thread",
		[VT_PYTHON_EMPTY] = "empty",
		[VT_PYTHON_FINALIZING] = "finalizing",
		[VT_PYTHON_INVALID] = "invalid",
		[VT_PYTHON_MISMATCH] = "mismatch",
	};

	return outcome < VT_N_PYTHON_OUTCOMES ? names[outcome] : "unknown";
}
