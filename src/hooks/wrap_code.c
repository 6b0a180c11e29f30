#include "hooks/wrap.h"

/* Code and static variables take device memory when they are loaded, or, with lazy loading, when
 * first used. */

CUresult CUDAAPI cuModuleLoad(CUmodule *module, const char *fname)
{
	FORWARD_MEASURED(cuModuleLoad, module, fname);
	objects_created(&call, VT_OBJECT_MODULE);
	return LEAVE_MEASURED(VT_CAUSE_MODULES);
}

CUresult CUDAAPI cuModuleLoadData(CUmodule *module, const void *image)
{
	FORWARD_MEASURED(cuModuleLoadData, module, image);
	objects_created(&call, VT_OBJECT_MODULE);
	return LEAVE_MEASURED(VT_CAUSE_MODULES);
}

CUresult CUDAAPI cuModuleLoadDataEx(CUmodule *module, const void *image, unsigned int numOptions,
	CUjit_option *options_, void **optionValues)
{
	FORWARD_MEASURED(cuModuleLoadDataEx, module, image, numOptions, options_, optionValues);
	objects_created(&call, VT_OBJECT_MODULE);
	return LEAVE_MEASURED(VT_CAUSE_MODULES);
}

CUresult CUDAAPI cuModuleLoadFatBinary(CUmodule *module, const void *fatCubin)
{
	FORWARD_MEASURED(cuModuleLoadFatBinary, module, fatCubin);
	objects_created(&call, VT_OBJECT_MODULE);
	return LEAVE_MEASURED(VT_CAUSE_MODULES);
}

CUresult CUDAAPI cuModuleUnload(CUmodule hmod)
{
	FORWARD_MEASURED(cuModuleUnload, hmod);
	objects_destroyed(&call, VT_OBJECT_MODULE);
	return LEAVE_MEASURED(VT_CAUSE_MODULES);
}

CUresult CUDAAPI cuModuleGetFunction(CUfunction *hfunc, CUmodule hmod, const char *name)
{
	FORWARD_MEASURED(cuModuleGetFunction, hfunc, hmod, name);
	return LEAVE_MEASURED(VT_CAUSE_MODULES);
}

#if CUDA_VERSION >= 12000
CUresult CUDAAPI cuLibraryLoadData(CUlibrary *library, const void *code, CUjit_option *jitOptions,
	void **jitOptionsValues, unsigned int numJitOptions, CUlibraryOption *libraryOptions,
	void **libraryOptionValues, unsigned int numLibraryOptions)
{
	FORWARD_MEASURED(cuLibraryLoadData, library, code, jitOptions, jitOptionsValues,
		numJitOptions, libraryOptions, libraryOptionValues, numLibraryOptions);
	objects_created(&call, VT_OBJECT_MODULE);
	return LEAVE_MEASURED(VT_CAUSE_MODULES);
}

CUresult CUDAAPI cuLibraryLoadFromFile(CUlibrary *library, const char *fileName,
	CUjit_option *jitOptions, void **jitOptionsValues, unsigned int numJitOptions,
	CUlibraryOption *libraryOptions, void **libraryOptionValues, unsigned int numLibraryOptions)
{
	FORWARD_MEASURED(cuLibraryLoadFromFile, library, fileName, jitOptions, jitOptionsValues,
		numJitOptions, libraryOptions, libraryOptionValues, numLibraryOptions);
	objects_created(&call, VT_OBJECT_MODULE);
	return LEAVE_MEASURED(VT_CAUSE_MODULES);
}

CUresult CUDAAPI cuLibraryUnload(CUlibrary library)
{
	FORWARD_MEASURED(cuLibraryUnload, library);
	objects_destroyed(&call, VT_OBJECT_MODULE);
	return LEAVE_MEASURED(VT_CAUSE_MODULES);
}

CUresult CUDAAPI cuLibraryGetModule(CUmodule *pMod, CUlibrary library)
{
	FORWARD_MEASURED(cuLibraryGetModule, pMod, library);
	return LEAVE_MEASURED(VT_CAUSE_MODULES);
}

CUresult CUDAAPI cuKernelGetFunction(CUfunction *pFunc, CUkernel kernel)
{
	FORWARD_MEASURED(cuKernelGetFunction, pFunc, kernel);
	return LEAVE_MEASURED(VT_CAUSE_MODULES);
}
#endif
