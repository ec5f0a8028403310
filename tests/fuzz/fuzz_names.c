// SPDX-License-Identifier: MIT
/* libFuzzer: names that a target chose, made readable. What is shown is fit for a terminal. */
#include "fuzz.h"

#include "target/elf/elf_image.h"

static void check_clean(const char *text)
{
	char buf[LABEL_SIZE], again[LABEL_SIZE];
	size_t len, len_again;
	const char *clean = label__clean(buf, text, &len);

	CHECK(strlen(clean) == len && len <= LABEL_MAX);
	CHECK(label__clean(again, clean, &len_again) == clean && len == len_again);
	for (size_t i = 0; i < len; i++)
		CHECK((unsigned char)clean[i] >= ' ' && clean[i] != 0x7f);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = fuzz__text(data, size), *name = elf_image__short_name(text);

	check_clean(text);
	if (name)
		check_clean(name);
	free(name);
	free(text);
	return 0;
}
