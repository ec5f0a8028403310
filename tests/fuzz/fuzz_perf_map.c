// SPDX-License-Identifier: MIT
/* libFuzzer: a perf map, and the names that JIT code gets by it. */
#include "fuzz.h"

#include "target/symbols/live_image.h"

static void check_entries(const char *text)
{
	struct perf_map_entry *entries = NULL;
	uint64_t end = 0;
	size_t n = 0;

	CHECK(!perf_map__parse(text, &entries, &n));
	for (size_t i = 0; i < n; i++) {
		CHECK(entries[i].size && entries[i].start >= end);
		end = entries[i].start + entries[i].size - 1;
		CHECK(end >= entries[i].start);
		CHECK(entries[i].name >= text && entries[i].name_len <= strlen(entries[i].name));
	}
	free(entries);
}

static void check_image(const char *text)
{
	static const uint8_t code[64];
	struct jit_piece pieces[] = {{0x1000, code, sizeof(code)}, {0x7000, code, 16}};
	struct elf_image *image = jit_image__new(pieces, 2, text);

	CHECK(image);
	for (uint64_t vaddr = 0x1000; vaddr < 0x1000 + sizeof(code); vaddr += 4) {
		char *name = strdup(elf_image__function_at(image, vaddr)->name);

		CHECK(name && !strchr(name, '\n'));
		fuzz__check_lines(name);
		free(name);
	}
	elf_image__free(image);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = fuzz__text(data, size);

	check_entries(text);
	check_image(text);
	free(text);
	return 0;
}
