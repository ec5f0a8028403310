// SPDX-License-Identifier: MIT
/*
 * libFuzzer: a thread's registers and stack, unwound by what the input says of the code.
 *
 *   input: eight registers, two bytes of the stack's length, the stack, sections (elf_pieces.h)
 */
#include "elf_pieces.h"

#include "target/unwind/unwind.h"

#define BIAS  0x400000ull
#define STACK 0x7ffd00000000ull

static uint64_t take_register(const uint8_t **data, size_t *size)
{
	uint64_t value;

	memcpy(&value, fuzz__take(data, size, sizeof(value)), sizeof(value));
	return value;
}

static void unwind(const struct unwind_start *start, struct elf_image *image)
{
	struct code_map *map = code_map__new();
	struct unwound out = {0};

	CHECK(map && !code_map__add(map, BIAS, PIECES_NAMES, 0, image));
	CHECK(!unwind__stack(map, start, &out));
	CHECK(out.ips.n <= UNWIND_MAX && (!out.ips.n || out.ips.v[0] == start->ip));
	for (size_t i = 1; i < out.ips.n; i++)
		CHECK(out.ips.v[i]);
	unwound__fini(&out);
	code_map__free(map);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct unwind_start start = {0};
	uint64_t *const registers[] = {&start.ip,  &start.bp,  &start.bx,  &start.r12,
				       &start.r13, &start.r14, &start.r15, &start.returns_to};
	struct elf_image *image;
	uint8_t *stack;
	size_t n;

	if (size < 8 * sizeof(uint64_t) + 2)
		return 0;
	for (size_t i = 0; i < 8; i++)
		*registers[i] = take_register(&data, &size);
	start.sp = STACK;
	start.trampoline = start.returns_to ? BIAS + 0x10 : 0;
	n = data[0] | (size_t)data[1] << 8;
	fuzz__take(&data, &size, 2);
	n = n < size ? n : size;
	start.stack = stack = fuzz__copy(fuzz__take(&data, &size, n), n);
	start.size = n;
	image = elf_pieces__open(data, size);
	if (image)
		unwind(&start, image);
	elf_image__free(image);
	free(stack);
	return 0;
}
