/* SPDX-License-Identifier: MIT */
/* The test program itself, to be unwound: its code, and a thread's registers and stack. */
#ifndef MTBPF_TESTS_UNWIND_FIXTURE_H
#define MTBPF_TESTS_UNWIND_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>
#include <unwind.h>

#include "target/maps.h"
#include "target/unwind/unwind.h"

#define TAKEN_MAX (1u << 20)

/* Enough for all that a test program maps. */
struct program_code {
	struct code_map *map;
	struct elf_image *images[64];
	size_t n;
};

/* A thread of the test program, as it was. */
struct taken {
	struct unwind_start start;
	uint8_t *stack;
};

static inline struct elf_image *open_mapping(const struct mapping *m)
{
	struct elf_image *image;
	int fd;

	if (!strcmp(m->path, "[vdso]"))
		return elf_image__from_bytes((void *)getauxval(AT_SYSINFO_EHDR), m->end - m->start,
					     m->path);
	fd = open(m->path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return NULL;
	image = elf_image__open(fd, m->path);
	close(fd);
	return image;
}

static inline void program_code__open(struct program_code *code)
{
	struct mappings maps;

	*code = (struct program_code){.map = code_map__new()};
	assert_non_null(code->map);
	assert_int_equal(mappings__read(&maps, getpid()), 0);
	for (size_t i = 0; i < maps.n && code->n < 64; i++) {
		const struct mapping *m = &maps.v[i];
		struct elf_image *image = m->prot & PROT_EXEC ? open_mapping(m) : NULL;

		if (!image)
			continue;
		code->images[code->n++] = image;
		assert_int_equal(
			code_map__add(code->map, m->start, m->end - m->start, m->pgoff, image), 0);
	}
	mappings__fini(&maps);
}

static inline void program_code__close(struct program_code *code)
{
	code_map__free(code->map);
	for (size_t i = 0; i < code->n; i++)
		elf_image__free(code->images[i]);
}

static inline uint64_t stack_end(uint64_t sp)
{
	struct mappings maps;
	uint64_t end;

	assert_int_equal(mappings__read(&maps, getpid()), 0);
	end = mappings__find(&maps, sp)->end;
	mappings__fini(&maps);
	return end;
}

/* Word by word: the sanitizer would find its own fences on the stack. */
__attribute__((no_sanitize("address"))) static inline void copy_words(void *out, uint64_t from,
								      size_t size)
{
	for (size_t i = 0; i < size / 8; i++)
		((volatile uint64_t *)out)[i] = ((const volatile uint64_t *)from)[i];
}

/* The stack above may be in use: what is taken must be looked at while that function runs. */
static inline void take_context(struct taken *taken, const ucontext_t *context)
{
	const greg_t *regs = context->uc_mcontext.gregs;
	uint64_t sp = (uint64_t)regs[REG_RSP];
	size_t size = stack_end(sp) - sp;

	size = size < TAKEN_MAX ? size : TAKEN_MAX;
	taken->stack = malloc(size);
	assert_non_null(taken->stack);
	copy_words(taken->stack, sp, size);
	taken->start = (struct unwind_start){
		.ip = (uint64_t)regs[REG_RIP],
		.sp = sp,
		.bp = (uint64_t)regs[REG_RBP],
		.bx = (uint64_t)regs[REG_RBX],
		.r12 = (uint64_t)regs[REG_R12],
		.r13 = (uint64_t)regs[REG_R13],
		.r14 = (uint64_t)regs[REG_R14],
		.r15 = (uint64_t)regs[REG_R15],
		.stack = taken->stack,
		.size = size,
	};
}

/* What libgcc's unwinder finds: the judge. */
struct libgcc_callers {
	void *v[256];
	int n;
};

static inline _Unwind_Reason_Code libgcc_caller(struct _Unwind_Context *context, void *ctx)
{
	struct libgcc_callers *callers = ctx;
	uint64_t ip = _Unwind_GetIP(context);

	if (ip && callers->n < 256)
		callers->v[callers->n++] = (void *)ip;
	return _URC_NO_REASON;
}

/* Into the function itself: the first is where that runs. */
#define LIBGCC_CALLERS(callers) ((callers)->n = 0, _Unwind_Backtrace(libgcc_caller, (callers)))

static inline void taken__fini(struct taken *taken)
{
	free(taken->stack);
}

#endif
