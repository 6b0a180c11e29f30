#include "doctor/image.h"

#include <fcntl.h>
#include <gelf.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "model/memory.h"

struct image {
	Elf *elf;
	int fd;
	GElf_Ehdr header;
	char loader[256];
};

static void read_loader(struct image *image)
{
	size_t n = 0, bytes = 0;
	const char *file = elf_rawfile(image->elf, &bytes);

	if (elf_getphdrnum(image->elf, &n) || !file)
		return;
	for (size_t i = 0; i < n; i++) {
		GElf_Phdr segment;

		if (!gelf_getphdr(image->elf, (int)i, &segment) || segment.p_type != PT_INTERP)
			continue;
		if (segment.p_offset < bytes && segment.p_filesz <= bytes - segment.p_offset &&
			segment.p_filesz < sizeof(image->loader))
			memcpy(image->loader, file + segment.p_offset, segment.p_filesz);
	}
}

struct image *image_open(const char *path)
{
	struct image *image = memory_new(1, sizeof(*image));
	struct stat status;

	image->fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (image->fd >= 0 && !fstat(image->fd, &status) && S_ISREG(status.st_mode) &&
		elf_version(EV_CURRENT) != EV_NONE)
		image->elf = elf_begin(image->fd, ELF_C_READ_MMAP, NULL);
	if (!image->elf || elf_kind(image->elf) != ELF_K_ELF ||
		!gelf_getehdr(image->elf, &image->header)) {
		image_close(image);
		return NULL;
	}
	read_loader(image);
	return image;
}

void image_close(struct image *image)
{
	if (!image)
		return;
	elf_end(image->elf);
	if (image->fd >= 0)
		close(image->fd);
	free(image);
}

bool image_is_like(const struct image *image, const struct image *other)
{
	return image->header.e_machine == other->header.e_machine &&
	       image->header.e_ident[EI_CLASS] == other->header.e_ident[EI_CLASS];
}

const char *image_processor(const struct image *image)
{
	switch (image->header.e_machine) {
	case EM_X86_64:
		return "x86-64";
	case EM_386:
		return "32-bit x86";
	case EM_AARCH64:
		return "aarch64";
	case EM_PPC64:
		return "ppc64";
	default:
		return "another processor";
	}
}

const char *image_loader(const struct image *image)
{
	return image->loader;
}

/* The first section of a type, with its data; NULL none. */
static Elf_Data *find_section(const struct image *image, GElf_Word type, GElf_Shdr *header)
{
	for (Elf_Scn *section = NULL; (section = elf_nextscn(image->elf, section));)
		if (gelf_getshdr(section, header) && header->sh_type == type && header->sh_entsize)
			return elf_getdata(section, NULL);
	return NULL;
}

bool image_needs(const struct image *image, const char *start)
{
	GElf_Shdr header;
	Elf_Data *data = find_section(image, SHT_DYNAMIC, &header);

	for (size_t i = 0; data && i < header.sh_size / header.sh_entsize; i++) {
		GElf_Dyn dynamic;
		const char *name;

		if (!gelf_getdyn(data, (int)i, &dynamic) || dynamic.d_tag != DT_NEEDED)
			continue;
		name = elf_strptr(image->elf, header.sh_link, dynamic.d_un.d_val);
		if (name && !strncmp(name, start, strlen(start)))
			return true;
	}
	return false;
}

void image_each_export(
	const struct image *image, void (*found)(const char *name, void *data), void *data)
{
	GElf_Shdr header;
	Elf_Data *symbols = find_section(image, SHT_DYNSYM, &header);

	for (size_t i = 0; symbols && i < header.sh_size / header.sh_entsize; i++) {
		GElf_Sym symbol;
		const char *name;

		if (!gelf_getsym(symbols, (int)i, &symbol) || symbol.st_shndx == SHN_UNDEF ||
			GELF_ST_BIND(symbol.st_info) == STB_LOCAL)
			continue;
		name = elf_strptr(image->elf, header.sh_link, symbol.st_name);
		if (name && *name)
			found(name, data);
	}
}

struct wanted {
	const char *name;
	bool found;
};

static void compare(const char *name, void *data)
{
	struct wanted *wanted = data;

	if (!strcmp(name, wanted->name))
		wanted->found = true;
}

bool image_exports(const struct image *image, const char *name)
{
	struct wanted wanted = {name, false};

	image_each_export(image, compare, &wanted);
	return wanted.found;
}

bool image_has_text(const struct image *image, const char *text)
{
	for (Elf_Scn *section = NULL; (section = elf_nextscn(image->elf, section));) {
		GElf_Shdr header;
		Elf_Data *data;
		const char *name;
		size_t names;

		/* Only constants: libraries of CUDA carry hundreds of megabytes of other data. */
		if (elf_getshdrstrndx(image->elf, &names) || !gelf_getshdr(section, &header))
			continue;
		name = elf_strptr(image->elf, names, header.sh_name);
		if (!name || strncmp(name, ".rodata", 7))
			continue;
		data = elf_rawdata(section, NULL);
		if (data && data->d_buf &&
			memmem(data->d_buf, data->d_size, text, strlen(text) + 1))
			return true;
	}
	return false;
}
