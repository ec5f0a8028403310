// SPDX-License-Identifier: MIT
/*
 * Where main() of a stripped program is: glibc's _start passes its address to __libc_start_main()
 * in %rdi (sysdeps/x86_64/start.S). And where that calls it, by its address: no code names main().
 */
#include "target/elf/elf_main.h"

#include "target/elf/elf_internal.h"

#include <string.h>

#include "util/insn.h"

/* Of _start up to the call. */
#define MAX_INSNS 20

/* What "lea REL32(%rip),%rdi" or "mov $IMM32,%rdi" sets %rdi to; else what it was. */
static uint64_t follow_rdi(const uint8_t *code, uint64_t next, uint64_t rdi)
{
	static const uint8_t lea[] = {0x48, 0x8d, 0x3d}, mov[] = {0x48, 0xc7, 0xc7};
	int32_t value;

	memcpy(&value, code + sizeof(lea), sizeof(value));
	if (!memcmp(code, lea, sizeof(lea)))
		return next + (uint64_t)(int64_t)value;
	return memcmp(code, mov, sizeof(mov)) ? rdi : (uint64_t)(int64_t)value;
}

/* Whose else it is, it does not keep what the dynamic linker has passed: "xor %ebp,%ebp; mov
 * %rdx,%r9". */
static bool is_glibc_start(const uint8_t *code, size_t len)
{
	static const uint8_t first[] = {0x31, 0xed, 0x49, 0x89, 0xd1};

	return len >= sizeof(first) && !memcmp(code, first, sizeof(first));
}

uint64_t elf_image__find_main(const struct elf_image *image)
{
	size_t len, at = 0;
	const uint8_t *code =
		image->entry ? elf_image__loaded_bytes(image, image->entry, &len) : NULL;
	uint64_t rdi = 0;
	struct insn insn;

	if (code && !insn__decode(code, len, image->entry, &insn) && insn.is_endbr)
		at = insn.len;
	if (!code || !is_glibc_start(code + at, len - at))
		return 0;
	for (int i = 0; i < MAX_INSNS; i++, at += insn.len) {
		if (insn__decode(code + at, len - at, image->entry + at, &insn))
			return 0;
		if (insn.cls == INSN_CALL || insn.cls == INSN_CALL_INDIRECT)
			return rdi;
		if (insn.cls != INSN_OTHER)
			return 0;
		if (insn.len == 7)
			rdi = follow_rdi(code + at, image->entry + at + insn.len, rdi);
	}
	return 0;
}

/* Of code that goes on to a return. */
#define MAX_STRAIGHT 512

/*
 * Behind "call *%rax" of "exit(main(...))" (csu/libc-start.c, sysdeps/nptl/libc_start_call_main.h):
 * "mov %eax,%edi; call exit" stand there.
 */
static uint64_t find_indirect(const struct elf_image *image, uint64_t vaddr, size_t max)
{
	static const uint8_t then[] = {0x89, 0xc7, 0xe8};
	size_t len, at = 0;
	const uint8_t *code = elf_image__loaded_bytes(image, vaddr, &len);
	struct insn insn;

	if (!code)
		return 0;
	for (; at < max && !insn__decode(code + at, len - at, vaddr + at, &insn); at += insn.len) {
		const uint8_t *next = code + at + insn.len;

		if (insn.cls == INSN_RET || insn.cls == INSN_JUMP_INDIRECT)
			return 0;
		if (insn.cls == INSN_CALL_INDIRECT && len - at - insn.len >= sizeof(then) &&
		    !memcmp(next, then, sizeof(then)))
			return vaddr + at + insn.len;
	}
	return 0;
}

uint64_t elf_main__behind_call(const struct function *start_main)
{
	const struct elf_image *image = start_main->image;
	size_t len, at = 0;
	const uint8_t *code = elf_image__loaded_bytes(image, start_main->vaddr, &len);
	uint64_t behind = find_indirect(image, start_main->vaddr, start_main->size);
	struct insn insn;

	if (len > start_main->size)
		len = start_main->size;
	while (code && !behind && at < len &&
	       !insn__decode(code + at, len - at, start_main->vaddr + at, &insn)) {
		if (insn.cls == INSN_CALL)
			behind = find_indirect(image, insn.target, MAX_STRAIGHT);
		at += insn.len;
	}
	return behind;
}
