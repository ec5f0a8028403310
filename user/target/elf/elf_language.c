// SPDX-License-Identifier: MIT
/* Of what language code without symbols is: compilers leave traces of themselves that strip keeps.
 */
#include "target/elf/elf_internal.h"

#include <string.h>

static bool holds(const struct elf_image *image, const char *section, const char *text)
{
	GElf_Shdr shdr;
	Elf_Scn *scn = elf_image__section(image, section, &shdr);
	const Elf_Data *data = scn ? elf_section__data(scn, 1) : NULL;

	return data && memmem(data->d_buf, data->d_size, text, strlen(text));
}

/*
 * rustc names itself in newer versions; in all of them, what may panic in the standard library has
 * its place in the source.
 */
static bool look_for_rust(const struct elf_image *image)
{
	return holds(image, ".comment", "rustc version") ||
	       holds(image, ".rodata", "library/std/src/");
}

bool elf_image__holds_rust(struct elf_image *image)
{
	bool found;

	if (!image->elf)
		return false;
	pthread_mutex_lock(&image->lock);
	if (image->rust == RUST_NOT_ASKED)
		image->rust = look_for_rust(image) ? RUST_FOUND : RUST_NONE;
	found = image->rust == RUST_FOUND;
	pthread_mutex_unlock(&image->lock);
	return found;
}
