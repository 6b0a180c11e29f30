/* A program that annotates itself with NVTX. Without WITH_NVTX it has no headers of NVTX but does
 * what those do: it opens the library that the variable names and lets it fill in the functions. */
#include <cuda.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>

#ifdef WITH_NVTX
#include <nvtx3/nvToolsExt.h>
#else
#include <dlfcn.h>

typedef void *nvtxDomainHandle_t;
typedef void *nvtxStringHandle_t;
typedef uint64_t nvtxRangeId_t;
typedef struct {
	uint16_t version;
	uint16_t size;
	uint32_t category;
	int32_t colorType;
	uint32_t color;
	int32_t payloadType;
	int32_t reserved0;
	union {
		uint64_t ullValue;
	} payload;
	int32_t messageType;
	union {
		const char *ascii;
		const wchar_t *unicode;
		nvtxStringHandle_t registered;
	} message;
} nvtxEventAttributes_t;

enum {
	NVTX_MESSAGE_TYPE_ASCII = 1,
	NVTX_MESSAGE_TYPE_UNICODE = 2,
	NVTX_MESSAGE_TYPE_REGISTERED = 3
};
#define NVTX_VERSION 3

/* Each function is a pointer, NULL as long as no tool has set it; as in the headers the tool is
 * given the places. */
#define CORE(X)                                                                                    \
	X(1, void, nvtxMarkEx, (const nvtxEventAttributes_t *a), (a))                              \
	X(2, void, nvtxMarkA, (const char *a), (a))                                                \
	X(3, void, nvtxMarkW, (const wchar_t *a), (a))                                             \
	X(4, nvtxRangeId_t, nvtxRangeStartEx, (const nvtxEventAttributes_t *a), (a))               \
	X(5, nvtxRangeId_t, nvtxRangeStartA, (const char *a), (a))                                 \
	X(7, void, nvtxRangeEnd, (nvtxRangeId_t a), (a))                                           \
	X(8, int, nvtxRangePushEx, (const nvtxEventAttributes_t *a), (a))                          \
	X(9, int, nvtxRangePushA, (const char *a), (a))                                            \
	X(10, int, nvtxRangePushW, (const wchar_t *a), (a))                                        \
	X(11, int, nvtxRangePop, (void), ())                                                       \
	X(14, void, nvtxNameOsThreadA, (uint32_t a, const char *b), (a, b))

#define DOMAINS(X)                                                                                 \
	X(1, void, nvtxDomainMarkEx, (nvtxDomainHandle_t a, const nvtxEventAttributes_t *b),       \
		(a, b))                                                                            \
	X(2, nvtxRangeId_t, nvtxDomainRangeStartEx,                                                \
		(nvtxDomainHandle_t a, const nvtxEventAttributes_t *b), (a, b))                    \
	X(3, void, nvtxDomainRangeEnd, (nvtxDomainHandle_t a, nvtxRangeId_t b), (a, b))            \
	X(4, int, nvtxDomainRangePushEx, (nvtxDomainHandle_t a, const nvtxEventAttributes_t *b),   \
		(a, b))                                                                            \
	X(5, int, nvtxDomainRangePop, (nvtxDomainHandle_t a), (a))                                 \
	X(10, nvtxStringHandle_t, nvtxDomainRegisterStringA,                                       \
		(nvtxDomainHandle_t a, const char *b), (a, b))                                     \
	X(12, nvtxDomainHandle_t, nvtxDomainCreateA, (const char *a), (a))

#define DECLARE(number, type, name, parameters, arguments) static type(*name##_tool) parameters;
CORE(DECLARE)
DOMAINS(DECLARE)

typedef void function(void);

#define N_PLACES 16u
static function **core[N_PLACES], **domains[N_PLACES];

static int get_module(int module, function ***places[], unsigned int *n_places)
{
	*places = module == 1 ? core : module == 5 ? domains : NULL;
	*n_places = N_PLACES;
	return *places != NULL;
}

static const struct {
	size_t struct_size;
	int (*get_module)(int module, function ***places[], unsigned int *n_places);
} callbacks = {sizeof(callbacks), get_module};

static const void *get_table(uint32_t table)
{
	return table == 1 ? &callbacks : NULL;
}

static void start_nvtx(void)
{
	const char *path = getenv("NVTX_INJECTION64_PATH");
	void *library = path ? dlopen(path, RTLD_LAZY) : NULL;
	int (*start)(const void *(*get_table)(uint32_t table)) = NULL;

#define PLACE_CORE(number, type, name, parameters, arguments)                                      \
	core[number] = (function **)(void *)&name##_tool;
#define PLACE_DOMAINS(number, type, name, parameters, arguments)                                   \
	domains[number] = (function **)(void *)&name##_tool;
	CORE(PLACE_CORE)
	DOMAINS(PLACE_DOMAINS)
	if (library)
		*(void **)&start = dlsym(library, "InitializeInjectionNvtx2");
	if (start && !start(get_table))
		exit(2);
	if (start && (start(NULL) || nvtxNameOsThreadA_tool))
		exit(3); /* takes what it cannot use */
}

#define CALL(number, type, name, parameters, arguments)                                            \
	static type name parameters                                                                \
	{                                                                                          \
		if (name##_tool)                                                                   \
			return name##_tool arguments;                                              \
		return (type)0;                                                                    \
	}
CORE(CALL)
DOMAINS(CALL)
#endif

static char host[4096];
static CUdeviceptr device;

static void check(int failed, const char *what)
{
	if (!failed)
		return;
	fprintf(stderr, "%s failed\n", what);
	exit(1);
}

static void copy(void)
{
	check(cuMemcpyHtoD_v2(device, host, sizeof(host)), "cuMemcpyHtoD");
}

static nvtxEventAttributes_t attributes(const char *text)
{
	nvtxEventAttributes_t made;

	memset(&made, 0, sizeof(made));
	made.version = NVTX_VERSION;
	made.size = sizeof(made);
	made.messageType = NVTX_MESSAGE_TYPE_ASCII;
	made.message.ascii = text;
	return made;
}

static void use_library_domain(void)
{
	nvtxDomainHandle_t domain = nvtxDomainCreateA("lib"), again = nvtxDomainCreateA("lib");
	nvtxEventAttributes_t event = attributes("mark of the library");
	nvtxRangeId_t range;

	nvtxDomainMarkEx(domain, &event);
	event.messageType = NVTX_MESSAGE_TYPE_REGISTERED;
	event.message.registered = nvtxDomainRegisterStringA(domain, "registered");
	nvtxDomainRangePushEx(domain, &event);
	copy();
	nvtxDomainRangePop(again);
	event = attributes("attributes");
	range = nvtxDomainRangeStartEx(domain, &event);
	nvtxDomainRangeEnd(domain, range);
}

int main(void)
{
	nvtxEventAttributes_t event = attributes("mark 2"), nothing = attributes(NULL);
	nvtxRangeId_t early, range;
	CUdeviceptr more;
	CUcontext context;

#ifndef WITH_NVTX
	start_nvtx();
#endif
	early = nvtxRangeStartA("early");
	check(cuInit(0), "cuInit");
	check(cuDevicePrimaryCtxRetain(&context, 0), "cuDevicePrimaryCtxRetain");
	check(cuCtxSetCurrent(context), "cuCtxSetCurrent");
	check(cuMemAlloc_v2(&device, 1 << 20), "cuMemAlloc");
	copy();
	nvtxRangeEnd(early);
	nvtxMarkA("mark 1");
	nvtxMarkEx(&event);
	nvtxMarkW(L"mark 3");
	nvtxNameOsThreadA(1, "main");
	nvtxRangePushA("outer");
	copy();
	for (int i = 1; i <= 2; i++) {
		char name[20];

		snprintf(name, sizeof(name), "inner %d", i);
		event = attributes(name);
		nvtxRangePushEx(&event);
		memset(name, '?', sizeof(name) - 1); /* the caller's, and gone after the call */
		check(cuMemAlloc_v2(&more, 4 << 20), "cuMemAlloc");
		copy();
		nvtxRangePop();
	}
	nvtxRangePop();
	nvtxRangePop(); /* one too many */
	nvtxRangePushW(L"wide \u00e9\u4e16\U0001f600");
	nvtxRangePop();
	use_library_domain();
	event = attributes("range");
	range = nvtxRangeStartEx(&event);
	copy();
	nvtxRangeEnd(range);
	nvtxRangeEnd(12345);
	nvtxRangePushEx(&nothing);
	nvtxRangePop();
	nvtxRangePushA("left");
	return 0;
}
