// SPDX-License-Identifier: MIT
/* libFuzzer: what an ELF file's sections say: symbols, DWARF, .eh_frame, LSDA, notes, code. */
#include "elf_pieces.h"
#include "elf_use.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct elf_image *image = elf_pieces__open(data, size);

	if (image)
		use_image(image);
	elf_image__free(image);
	return 0;
}
