// SPDX-License-Identifier: MIT
/* libFuzzer: a whole ELF file, in the places of program, debug file, dwz's file and kcore. */
#include "elf_use.h"

#include "target/elf/debug_file.h"
#include "target/symbols/live_image.h"

static void take_debug_file(const uint8_t *data, size_t size)
{
	struct elf_image *image = elf_image__from_bytes(data, size, "program");
	int fd = fuzz__file(data, size);

	elf_debug_file__has_build_id(fd, "0123");
	if (image && !elf_image__set_debug_file(image, fd))
		use_image(image);
	elf_image__free(image);
	image = elf_image__from_bytes(data, size, "program");
	if (image && !elf_image__set_alt_file(image, fd))
		use_image(image);
	elf_image__free(image);
	close(fd);
}

static void take_kcore(const uint8_t *data, size_t size)
{
	static const char kallsyms[] = "0000000000001000 T _stext\n0000000000001100 t f\t[m]\n";
	int fd = fuzz__file(data, size);
	struct elf_image *image = kernel_image__open(fd, kallsyms);

	if (image) {
		elf_image__function_at(image, 0x1010);
		elf_image__function_at(image, 0x1110);
	}
	elf_image__free(image);
	close(fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct elf_image *image = elf_image__from_bytes(data, size, "program");

	if (image)
		use_image(image);
	elf_image__free(image);
	take_debug_file(data, size);
	take_kcore(data, size);
	return 0;
}
