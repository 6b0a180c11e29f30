#include <pthread.h>

#include "hooks/api.h"
#include "hooks/contexts.h"
#include "hooks/copy_timing.h"
#include "hooks/nvtx.h"
#include "hooks/sample.h"
#include "record/session.h"

static void forget_in_child(void)
{
	contexts_forget();
	sample_forget();
	api_forget();
	nvtx_forget();
	timing_forget();
}

/* All that happens in a process that never uses CUDA. */
__attribute__((constructor)) static void loaded(int argc, char **argv, char **environ_list)
{
	(void)argc;
	(void)argv;
	session_prepare(environ_list, sample_describe);
	timing_prepare();
	pthread_atfork(NULL, NULL, forget_in_child);
}
