/* SPDX-License-Identifier: MIT */
/* Functions as OCaml's compiler makes them, written instruction by instruction, with labels. */
#ifndef MTBPF_TESTS_OCAML_CODE_H
#define MTBPF_TESTS_OCAML_CODE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "target/symbols/live_image.h"

#define CODE_BASE 0x10000
#define LABELS	  32

/* The offset of Caml_state's slot, with which the versions' code differs. */
#define SLOT_4_13 0x10
#define SLOT_5	  0x30

struct ocaml_code {
	uint8_t bytes[0x2000];
	size_t n;
	uint64_t labels[LABELS]; /* vaddrs */
	struct {
		size_t at; /* of the 32 bits */
		int label;
		uint64_t base; /* what they count from; 0: the next instruction */
	} uses[64];
	size_t n_uses;
	char names[1024]; /* as a perf map has them */
	uint64_t function;
	uint8_t slot;
};

static inline uint64_t here(const struct ocaml_code *c)
{
	return CODE_BASE + c->n;
}

static inline void put(struct ocaml_code *c, const void *bytes, size_t n)
{
	assert_true(c->n + n <= sizeof(c->bytes));
	memcpy(c->bytes + c->n, bytes, n);
	c->n += n;
}
#define PUT(c, text) put(c, text, sizeof(text) - 1)

static inline void put_byte(struct ocaml_code *c, uint8_t byte)
{
	put(c, &byte, 1);
}

/* 32 bits to a label, which may come later. */
static inline void put_use(struct ocaml_code *c, int label, uint64_t base)
{
	c->uses[c->n_uses].at = c->n;
	c->uses[c->n_uses].base = base;
	c->uses[c->n_uses++].label = label;
	PUT(c, "\0\0\0\0");
}

static inline void put_label(struct ocaml_code *c, int n)
{
	c->labels[n] = here(c);
}

/* What lies between this and the last begin_function() is named. */
static inline void end_function(struct ocaml_code *c, const char *name)
{
	size_t len = strlen(c->names);

	snprintf(c->names + len, sizeof(c->names) - len, "%llx %llx %s\n",
		 (unsigned long long)c->function, (unsigned long long)(here(c) - c->function),
		 name);
	while (c->n % 16)
		put_byte(c, 0x90);
	c->function = here(c);
}

static inline void start_code(struct ocaml_code *c, uint8_t slot)
{
	*c = (struct ocaml_code){.slot = slot, .function = CODE_BASE};
}

/* The vaddr of the instruction that each of these adds. */
static inline uint64_t put_call(struct ocaml_code *c, int to)
{
	put_byte(c, 0xe8);
	put_use(c, to, 0);
	return here(c) - 5;
}

static inline uint64_t put_call_closure(struct ocaml_code *c)
{
	PUT(c, "\xff\xd7"); /* call *%rdi */
	return here(c) - 2;
}

static inline void put_jump(struct ocaml_code *c, int to)
{
	put_byte(c, 0xe9);
	put_use(c, to, 0);
}

static inline void put_jump_if_equal(struct ocaml_code *c, int to)
{
	PUT(c, "\x0f\x84");
	put_use(c, to, 0);
}

static inline void put_ret(struct ocaml_code *c)
{
	PUT(c, "\xc3");
}

/* op disp8(%r14) */
static inline void put_slot(struct ocaml_code *c, const char *op)
{
	put(c, op, 3);
	put_byte(c, c->slot);
}

static inline void put_push_trap(struct ocaml_code *c, int handler)
{
	PUT(c, "\x4c\x8d\x1d"); /* lea handler,%r11 */
	put_use(c, handler, 0);
	PUT(c, "\x41\x53");	     /* push %r11 */
	put_slot(c, "\x41\xff\x76"); /* push slot(%r14) */
	put_slot(c, "\x49\x89\x66"); /* mov %rsp,slot(%r14) */
}

static inline void put_pop_trap(struct ocaml_code *c)
{
	put_slot(c, "\x41\x8f\x46"); /* pop slot(%r14) */
	PUT(c, "\x48\x83\xc4\x08");  /* add $8,%rsp */
}

/* raise_notrace: the vaddr of its jump. */
static inline uint64_t put_raise(struct ocaml_code *c)
{
	put_slot(c, "\x49\x8b\x66");	/* mov slot(%r14),%rsp */
	put_slot(c, "\x41\x8f\x46");	/* pop slot(%r14) */
	PUT(c, "\x41\x5b\x41\xff\xe3"); /* pop %r11; jmp *%r11 */
	return here(c) - 3;
}

/* A switch by a table at that label. */
static inline void put_table_jump(struct ocaml_code *c, int table)
{
	PUT(c, "\x48\x8d\x15"); /* lea table,%rdx */
	put_use(c, table, 0);
	PUT(c, "\x48\x63\x04\x82\x48\x01\xc2\xff\xe2"); /* movslq (%rdx,%rax,4),%rax; add; jmp */
}

static inline void put_entry(struct ocaml_code *c, int table, int to)
{
	put_use(c, to, c->labels[table]);
}

/* All of it as an image, whose vaddrs are those of the labels. */
static inline struct elf_image *make_image(struct ocaml_code *c)
{
	struct jit_piece piece = {CODE_BASE, c->bytes, c->n};
	struct elf_image *image;

	for (size_t i = 0; i < c->n_uses; i++) {
		uint64_t base = c->uses[i].base;
		int32_t value;

		base = base ? base : CODE_BASE + c->uses[i].at + 4;
		value = (int32_t)(c->labels[c->uses[i].label] - base);
		memcpy(c->bytes + c->uses[i].at, &value, sizeof(value));
	}
	image = jit_image__new(&piece, 1, c->names);
	assert_non_null(image);
	return image;
}

#endif
