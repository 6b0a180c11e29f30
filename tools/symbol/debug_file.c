#include "symbol/debug_file.h"

#include <elfutils/libdwfl.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

/* libdw's own search, whose find is kept from being opened: what it would do with it takes as long
 * as the file is large. */
static int find(Dwfl_Module *module, void **user, const char *name, Dwarf_Addr base,
	const char *file, const char *link, GElf_Word crc, char **found)
{
	int *fd = *user;

	*fd = dwfl_standard_find_debuginfo(module, user, name, base, file, link, crc, found);
	free(*found);
	*found = NULL;
	return -1;
}

int debug_file_open(const char *path)
{
	static const Dwfl_Callbacks callbacks = {
		.find_debuginfo = find, .section_address = dwfl_offline_section_address};
	Dwfl *dwfl = dwfl_begin(&callbacks);
	Dwfl_Module *module;
	int debug_fd = -1, fd = dwfl ? open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK) : -1;

	module = fd >= 0 ? dwfl_report_offline(dwfl, "", path, fd) : NULL;
	if (fd >= 0 && !module)
		close(fd);
	if (module) {
		void **user;
		Dwarf_Addr bias;

		dwfl_module_info(module, &user, NULL, NULL, NULL, NULL, NULL, NULL);
		*user = &debug_fd;
		dwfl_module_getdwarf(module, &bias);
	}
	dwfl_end(dwfl);
	return debug_fd;
}
