// SPDX-License-Identifier: MIT
/*
 * libFuzzer: what users and programs write of places and amounts: selectors, USDT arguments,
 * thresholds, sizes, pids.
 */
#include "elf_pieces.h"

#include <fcntl.h>

#include "session/probe/probes.h"
#include "target/process.h"
#include "target/symbols/symbols.h"
#include "target/usdt.h"
#include "util/units.h"

/* Three functions, two of one name. */
static struct elf_image *make_program(void)
{
	static const char names[] = "\0f\0_ZN2ns1gEii";
	static const Elf64_Sym symbols[] = {
		{0},
		{1, ELF64_ST_INFO(STB_LOCAL, STT_FUNC), 0, 1, 0x1000, 0x100},
		{1, ELF64_ST_INFO(STB_LOCAL, STT_FUNC), 0, 1, 0x1100, 0x100},
		{3, ELF64_ST_INFO(STB_GLOBAL, STT_FUNC), 0, 1, 0x1200, 0x100},
	};
	uint8_t pieces[256] = {1, sizeof(symbols), 0}, *at = pieces + 3;

	memcpy(at, symbols, sizeof(symbols));
	at += sizeof(symbols);
	memcpy(at, (uint8_t[]){PIECE_STRTAB, sizeof(names), 0}, 3);
	memcpy(at + 3, names, sizeof(names));
	return elf_pieces__open(pieces, (size_t)(at + 3 - pieces) + sizeof(names));
}

static int count(void *ctx, const struct symbol_match *match)
{
	CHECK(match->function->name);
	(*(size_t *)ctx)++;
	return 0;
}

static void find(const char *name)
{
	static struct module module = {.is_executable = true, .mapping.path = "/bin/program"};
	struct symbols symbols = {
		.modules = &module, .n = 1, .label = "program", .path = "/bin/program"};
	struct symbol_match match;
	usdt_match_vec found = {0};
	size_t n = 0;

	if (!module.image)
		module.image = make_program();
	CHECK(module.image);
	if (!symbols__find(&symbols, name, &match))
		CHECK(match.function && match.offset < match.function->size);
	symbols__each(&symbols, name, count, &n);
	if (line__is_selector(name))
		symbols__each_of_line(&symbols, name, count, &n);
	if (usdt__is_selector(name) && !symbols__find_usdt(&symbols, name, &found))
		VEC_FINI(&found);
}

static void split(const char *text)
{
	const struct option_list texts = {.v = {text}, .n = 1};
	struct selectors selectors = {0};

	selectors__split(&selectors, &texts, "-symbol");
	for (size_t i = 0; i < selectors.names.n; i++)
		find(selectors.names.v[i]);
	selectors__fini(&selectors);
}

static void parse_amounts(const char *text)
{
	struct threshold threshold;
	struct pid_set pids = {0};
	struct mt_args args;
	uint64_t value;

	usdt_args__parse(text, &args);
	threshold__parse(text, &threshold);
	units__parse_duration(text, &value);
	units__parse_size(text, &value);
	units__parse_percent(text, &value);
	pid_set__parse(&pids, text);
	pid_set__fini(&pids);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = fuzz__text(data, size);

	split(text);
	parse_amounts(text);
	free(text);
	return 0;
}
