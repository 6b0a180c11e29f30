/* What takes memory that nobody asked for: modules, libraries, green contexts. */
#include "sim.h"

#include <unistd.h>

/*
 * A module, or a library: its memory is that of the context it is loaded in. It takes some when it
 * is loaded, and some more when the first function is asked for, as lazy loading does.
 */
struct CUmod_st {
	CUcontext ctx; /* NULL: a library that no context has loaded yet */
	bool is_library;
	u32 *pages, n_pages;
	char kernel, function; /* their addresses are handles */
};

static void pages_end(CUmodule module)
{
	if (module->pages)
		sim_pages_free(module->ctx->dev, CUSIM_BY_MODULES, module->pages, module->n_pages);
	module->pages = NULL;
	module->n_pages = 0;
}

/* Takes as much as is still missing up to so many bytes. */
static CUresult need(CUmodule module, u64 bytes)
{
	u32 n = sim_n_pages(bytes);
	u32 *pages;

	if (n <= module->n_pages)
		return CUDA_SUCCESS;
	pages = realloc(module->pages, n * sizeof(*pages));
	if (!pages)
		return CUDA_ERROR_OUT_OF_MEMORY;
	module->pages = pages;
	if (!sim_pages_take(module->ctx->dev, CUSIM_BY_MODULES, n - module->n_pages,
		    pages + module->n_pages))
		return CUDA_ERROR_OUT_OF_MEMORY;
	module->n_pages = n;
	return CUDA_SUCCESS;
}

static CUresult load(CUcontext ctx, bool is_library, CUmodule *out)
{
	CUmodule module = calloc(1, sizeof(*module));
	CUresult result = CUDA_SUCCESS;

	if (!module)
		return CUDA_ERROR_OUT_OF_MEMORY;
	module->ctx = ctx;
	module->is_library = is_library;
	if (ctx)
		result = need(module, SIM_MODULE_BYTES);
	if (result == CUDA_SUCCESS && !sim_handle_insert(&sim.modules, module))
		result = CUDA_ERROR_OUT_OF_MEMORY;
	if (result != CUDA_SUCCESS) {
		pages_end(module);
		free(module);
		return result;
	}
	*out = module;
	return CUDA_SUCCESS;
}

static CUresult function_get(CUfunction *out, CUmodule module, const char *name)
{
	CUresult result;

	if (!sim_handle_known(&sim.modules, module) || !module->ctx)
		return CUDA_ERROR_INVALID_HANDLE;
	if (!out || !name || !*name)
		return CUDA_ERROR_INVALID_VALUE;
	result = need(module, SIM_MODULE_BYTES + SIM_CODE_BYTES);
	if (result == CUDA_SUCCESS)
		*out = (CUfunction)&module->function;
	return result;
}

static CUresult unload(CUmodule module, bool is_library)
{
	if (!sim_handle_known(&sim.modules, module) || module->is_library != is_library)
		return CUDA_ERROR_INVALID_HANDLE;
	sim_handle_remove(&sim.modules, module);
	pages_end(module);
	free(module);
	return CUDA_SUCCESS;
}

static CUresult load_image(CUcontext ctx, CUmodule *out, const void *image)
{
	if (!out || !image)
		return CUDA_ERROR_INVALID_VALUE;
	if (!sim_capture_allows_unsafe())
		return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
	return load(ctx, false, out);
}

static CUresult load_file(CUcontext ctx, CUmodule *out, const char *path)
{
	if (path && access(path, R_OK) != 0)
		return CUDA_ERROR_FILE_NOT_FOUND;
	return load_image(ctx, out, path);
}

#if CUDA_VERSION >= 12000
/* A library needs no context, and without one takes no memory. */
static CUresult load_library(CUcontext ctx, CUlibrary *out, const void *image)
{
	CUmodule module;
	CUresult result;

	if (!out || !image)
		return CUDA_ERROR_INVALID_VALUE;
	result = load(ctx && ctx->live ? ctx : NULL, true, &module);
	if (result == CUDA_SUCCESS)
		*out = (CUlibrary)module;
	return result;
}

/* The library as the current context has it, which is not to be unloaded by itself. */
static CUresult library_module(CUcontext ctx, CUmodule *out, CUlibrary library)
{
	CUmodule module = (CUmodule)library;
	CUresult result;

	if (!sim_handle_known(&sim.modules, module) || !module->is_library)
		return CUDA_ERROR_INVALID_HANDLE;
	if (!out)
		return CUDA_ERROR_INVALID_VALUE;
	if (!module->ctx)
		module->ctx = ctx;
	result = need(module, SIM_MODULE_BYTES);
	if (result == CUDA_SUCCESS)
		*out = module;
	return result;
}

static CUresult kernel_get(CUkernel *out, CUlibrary library, const char *name)
{
	CUmodule module = (CUmodule)library;

	if (!sim_handle_known(&sim.modules, module) || !module->is_library)
		return CUDA_ERROR_INVALID_HANDLE;
	if (!out || !name || !*name)
		return CUDA_ERROR_INVALID_VALUE;
	*out = (CUkernel)&module->kernel;
	return CUDA_SUCCESS;
}

static CUresult kernel_function(CUcontext ctx, CUfunction *out, CUkernel kernel)
{
	CUmodule module = (CUmodule)(void *)((char *)kernel - offsetof(struct CUmod_st, kernel));
	CUresult result = kernel ? library_module(ctx, &module, (CUlibrary)module)
				 : CUDA_ERROR_INVALID_HANDLE;

	return result == CUDA_SUCCESS ? function_get(out, module, "kernel") : result;
}

static CUresult load_library_file(CUcontext ctx, CUlibrary *out, const char *path)
{
	if (path && access(path, R_OK) != 0)
		return CUDA_ERROR_FILE_NOT_FOUND;
	return load_library(ctx, out, path);
}
#endif

#if CUDA_VERSION >= 12040
struct CUgreenCtx_st {
	struct sim_device *dev;
	u32 *pages;
};

/* A description is of the one resource a device has; its address says of which device. */
static CUresult describe(CUdevResourceDesc *out, const CUdevResource *resources, unsigned int n)
{
	if (!out || !resources || n != 1 || resources->type != CU_DEV_RESOURCE_TYPE_SM)
		return CUDA_ERROR_INVALID_VALUE;
	*out = (CUdevResourceDesc)&sim.devices[0];
	return CUDA_SUCCESS;
}

static CUresult resource_get(CUdevice ordinal, CUdevResource *out, CUdevResourceType type)
{
	if (!sim_device_get(ordinal))
		return CUDA_ERROR_INVALID_DEVICE;
	if (!out || type != CU_DEV_RESOURCE_TYPE_SM)
		return CUDA_ERROR_INVALID_VALUE;
	*out = (CUdevResource){.type = type};
	out->sm.smCount = SIM_N_SM;
	return CUDA_SUCCESS;
}

static void green_end(CUgreenCtx green)
{
	sim_handle_remove(&sim.greens, green);
	sim_pages_free(
		green->dev, CUSIM_BY_GREEN_CONTEXTS, green->pages, sim_n_pages(SIM_GREEN_BYTES));
	free(green);
}

/* Holds the device's primary context as long as it lives. */
static CUresult green_create(
	CUgreenCtx *out, CUdevResourceDesc description, CUdevice ordinal, unsigned int flags)
{
	CUcontext primary;
	CUgreenCtx green;
	CUresult result;

	if (!out || !description || flags != CU_GREEN_CTX_DEFAULT_STREAM)
		return CUDA_ERROR_INVALID_VALUE;
	result = sim_primary_retain(&primary, ordinal);
	if (result != CUDA_SUCCESS)
		return result;
	green = calloc(1, sizeof(*green));
	if (green) {
		green->dev = primary->dev;
		green->pages = sim_pages_new(
			primary->dev, CUSIM_BY_GREEN_CONTEXTS, sim_n_pages(SIM_GREEN_BYTES));
	}
	if (!green || !green->pages || !sim_handle_insert(&sim.greens, green)) {
		if (green)
			sim_pages_free(primary->dev, CUSIM_BY_GREEN_CONTEXTS, green->pages,
				sim_n_pages(SIM_GREEN_BYTES));
		free(green);
		sim_primary_release(ordinal);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	*out = green;
	return CUDA_SUCCESS;
}

static CUresult green_destroy(CUgreenCtx green)
{
	CUdevice ordinal;

	if (!sim_handle_known(&sim.greens, green))
		return CUDA_ERROR_INVALID_CONTEXT;
	ordinal = green->dev->ordinal;
	green_end(green);
	return sim_primary_release(ordinal);
}

/* Of the device, whose primary context was reset. */
static void greens_end_with(const struct sim_device *dev)
{
	for (size_t i = sim.greens.n_entries; i > 0; i--) {
		CUgreenCtx green = sim.greens.entries[i - 1].value;

		if (green->dev == dev)
			green_end(green);
	}
}
#else
static void greens_end_with(const struct sim_device *dev)
{
	(void)dev;
}
#endif

/* Libraries outlive it, without memory. */
void sim_code_end_with(CUcontext ctx)
{
	for (size_t i = sim.modules.n_entries; i > 0; i--) {
		CUmodule module = sim.modules.entries[i - 1].value;

		if (module->ctx != ctx)
			continue;
		pages_end(module);
		module->ctx = NULL;
		if (!module->is_library)
			unload(module, false);
	}
	if (ctx->primary)
		greens_end_with(ctx->dev);
}

CUresult cuModuleLoad(CUmodule *module, const char *fname)
{
	return SIM_CALL(NEED_CONTEXT, load_file(ctx, module, fname));
}

CUresult cuModuleLoadData(CUmodule *module, const void *image)
{
	return SIM_CALL(NEED_CONTEXT, load_image(ctx, module, image));
}

CUresult cuModuleLoadDataEx(CUmodule *module, const void *image, unsigned int numOptions,
	CUjit_option *options, void **optionValues)
{
	(void)numOptions, (void)options, (void)optionValues;
	return SIM_CALL(NEED_CONTEXT, load_image(ctx, module, image));
}

CUresult cuModuleLoadFatBinary(CUmodule *module, const void *fatCubin)
{
	return SIM_CALL(NEED_CONTEXT, load_image(ctx, module, fatCubin));
}

CUresult cuModuleGetFunction(CUfunction *hfunc, CUmodule hmod, const char *name)
{
	return SIM_CALL(NEED_CONTEXT, function_get(hfunc, hmod, name));
}

CUresult cuModuleUnload(CUmodule hmod)
{
	return SIM_CALL(NEED_CONTEXT, unload(hmod, false));
}

#if CUDA_VERSION >= 12000
CUresult cuLibraryLoadData(CUlibrary *library, const void *code, CUjit_option *jitOptions,
	void **jitOptionsValues, unsigned int numJitOptions, CUlibraryOption *libraryOptions,
	void **libraryOptionValues, unsigned int numLibraryOptions)
{
	(void)jitOptions, (void)jitOptionsValues, (void)numJitOptions;
	(void)libraryOptions, (void)libraryOptionValues, (void)numLibraryOptions;
	return SIM_CALL(NEED_INIT, load_library(ctx, library, code));
}

CUresult cuLibraryLoadFromFile(CUlibrary *library, const char *fileName, CUjit_option *jitOptions,
	void **jitOptionsValues, unsigned int numJitOptions, CUlibraryOption *libraryOptions,
	void **libraryOptionValues, unsigned int numLibraryOptions)
{
	(void)jitOptions, (void)jitOptionsValues, (void)numJitOptions;
	(void)libraryOptions, (void)libraryOptionValues, (void)numLibraryOptions;
	return SIM_CALL(NEED_INIT, load_library_file(ctx, library, fileName));
}

CUresult cuLibraryGetModule(CUmodule *pMod, CUlibrary library)
{
	return SIM_CALL(NEED_CONTEXT, library_module(ctx, pMod, library));
}

CUresult cuLibraryGetKernel(CUkernel *pKernel, CUlibrary library, const char *name)
{
	return SIM_CALL(NEED_INIT, kernel_get(pKernel, library, name));
}

CUresult cuKernelGetFunction(CUfunction *pFunc, CUkernel kernel)
{
	return SIM_CALL(NEED_CONTEXT, kernel_function(ctx, pFunc, kernel));
}

CUresult cuLibraryUnload(CUlibrary library)
{
	return SIM_CALL(NEED_INIT, unload((CUmodule)library, true));
}
#endif

#if CUDA_VERSION >= 12040
CUresult cuDeviceGetDevResource(CUdevice device, CUdevResource *resource, CUdevResourceType type)
{
	return SIM_CALL(NEED_INIT, resource_get(device, resource, type));
}

CUresult cuDevResourceGenerateDesc(
	CUdevResourceDesc *phDesc, CUdevResource *resources, unsigned int nbResources)
{
	return SIM_CALL(NEED_INIT, describe(phDesc, resources, nbResources));
}

CUresult cuGreenCtxCreate(
	CUgreenCtx *phCtx, CUdevResourceDesc desc, CUdevice dev, unsigned int flags)
{
	return SIM_CALL(NEED_INIT, green_create(phCtx, desc, dev, flags));
}

CUresult cuGreenCtxDestroy(CUgreenCtx hCtx)
{
	return SIM_CALL(NEED_INIT, green_destroy(hCtx));
}
#endif
