#include "analysis/coverage.h"

#include <string.h>

static bool contains(struct vt_text text, const char *word)
{
	return text.data && memmem(text.data, text.bytes, word, strlen(word));
}

/* The first of the two is the one that counts where both are set. */
static struct vt_text settings_of(const struct model *model)
{
	struct vt_text text = model_environment_get(model, "PYTORCH_CUDA_ALLOC_CONF");

	return text.data ? text : model_environment_get(model, "PYTORCH_ALLOC_CONF");
}

static void limit(struct torch_coverage *coverage, const char *text)
{
	coverage->limits[coverage->n_limits++] = text;
}

static const char *why_no_blocks(const struct model *model)
{
	struct vt_text layers = model_environment_get(model, "VRAMTRACE_LAYERS");
	struct vt_text uncached = model_environment_get(model, "PYTORCH_NO_CUDA_MEMORY_CACHING");

	if (layers.data && !contains(layers, "torch"))
		return "PyTorch's blocks were not recorded: VRAMTRACE_LAYERS=driver";
	if (uncached.bytes)
		return "PyTorch's cache was off: each of its blocks is an allocation of the driver";
	if (contains(settings_of(model), "backend:cudaMallocAsync"))
		return "PyTorch's blocks come from the driver's pool (backend:cudaMallocAsync), "
		       "and "
		       "are seen there";
	return "PyTorch reported no block: it used none, or another allocator was plugged into it";
}

void torch_coverage_get(struct torch_coverage *coverage, const struct model *model)
{
	*coverage = (struct torch_coverage){.loaded = model->torch_mapped};
	for (const struct model_allocator *allocator = model->allocators; allocator;
		allocator = allocator->hh.next)
		if (allocator->layer == VT_LAYER_TORCH)
			coverage->loaded = coverage->blocks = true;
	if (!coverage->loaded)
		return;
	if (!coverage->blocks)
		limit(coverage, why_no_blocks(model));
	if (model->host.kinds[VT_KIND_PINNED].n_allocs)
		limit(coverage,
			"of the page-locked memory that PyTorch caches only what it has from the "
			"driver is seen");
}

struct vt_text torch_version(const struct model *model)
{
	for (const struct model_allocator *allocator = model->allocators; allocator;
		allocator = allocator->hh.next)
		if (allocator->layer == VT_LAYER_TORCH && allocator->version.bytes)
			return allocator->version;
	return (struct vt_text){NULL, 0};
}
