#include <string.h>

#include "symbol/table.h"

struct label {
	const char *text;
	const char *name; /* NULL: nobody's own call, the next frame out decides */
};

/* Begins of file names. */
static const struct label stems[] = {
	{"libtorch", "torch"}, {"libc10", "torch"}, {"libnccl", "nccl"}, {"libcublas", "cublas"},
	{"libcudnn", "cudnn"}, {"libcufft", "cufft"}, {"libcusolver", "cusolver"},
	{"libcusparse", "cusparse"}, {"libtriton", "triton"}, {"__triton_launcher", "triton"},
	{"xla_", "jax"}, {"libjax", "jax"}, {"libpjrt", "jax"}, {"[", NULL}, /* [vdso] */
};

/* File names up to their suffix or version. */
static const struct label libraries[] = {
	{"libcuda", NULL},
	{"libcudart", NULL},
	{"libvramtrace", NULL},
	{"libc", NULL},
	{"libpthread", NULL},
	{"libdl", NULL},
	{"ld-linux", NULL},
	{"linux-vdso", NULL},
	{"libstdc++", NULL},
	{"libgcc_s", NULL},
	{"libffi", NULL},
	{"_ctypes", NULL},
};

/* Folders: Python extension modules are known by their package. */
static const struct label folders[] = {
	{"/.triton/", "triton"},
	{"/jaxlib/", "jax"},
	{"/jax_plugins/", "jax"},
	{"/jax_cuda", "jax"},
	{"/cupy/", "cupy"},
	{"/cupy_backends/", "cupy"},
};

#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))

/* The label for calls made by code of module; NULL when its caller decides. */
static const char *owner_of(const struct symbol_module *module)
{
	for (size_t i = 0; i < LENGTH(stems); i++)
		if (!strncmp(module->name, stems[i].text, strlen(stems[i].text)))
			return stems[i].name;
	for (size_t i = 0; i < LENGTH(libraries); i++) {
		size_t bytes = strlen(libraries[i].text);

		if (!strncmp(module->name, libraries[i].text, bytes) &&
			strchr(".-", module->name[bytes]))
			return libraries[i].name;
	}
	for (size_t i = 0; i < LENGTH(folders); i++)
		if (strstr(module->path, folders[i].text))
			return folders[i].name;
	return module->name;
}

const char *symbol_owner(
	struct symbol_table *table, const uint64_t *addresses, size_t n, uint64_t time_ns)
{
	for (size_t i = 0; i < n; i++) {
		const struct symbol_module *module =
			symbol_table_find_module(table, addresses[i] - 1, time_ns);
		const char *owner = module ? owner_of(module) : NULL;

		if (owner && *owner)
			return owner;
	}
	return "cuda";
}
