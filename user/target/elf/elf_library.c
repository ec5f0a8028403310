// SPDX-License-Identifier: MIT
#include <elfutils/libdwfl.h>

#include "target/elf/elf_image.h"

const char *elf_image__library_version(void)
{
	return dwfl_version(NULL);
}
