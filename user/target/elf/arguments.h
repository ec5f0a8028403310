/* SPDX-License-Identifier: MIT */
/*
 * Finds the function's arguments at its entry, and what they point to, by an image's DWARF and the
 * System V ABI for x86-64, 3.2.3 "Parameter Passing".
 */
#ifndef MTBPF_TARGET_ELF_ARGUMENTS_H
#define MTBPF_TARGET_ELF_ARGUMENTS_H

#include "mtbpf_shared.h"
#include "target/elf/elf_image.h"

enum value_step_kind {
	STEP_ARROW,  /* ->name */
	STEP_DOT,    /* .name */
	STEP_INDEX,  /* [number] */
	STEP_OFFSET, /* ->number: an offset in bytes; works without DWARF */
};

struct value_step {
	enum value_step_kind kind;
	char name[64];
	int32_t number;
};

#define VALUE_STEPS 8

/* "arg1->a.b[2]" */
struct value_path {
	uint32_t arg; /* from 0 */
	bool of_return;
	size_t n;
	struct value_step steps[VALUE_STEPS];
};

enum value_type {
	VALUE_INTEGER,	  /* also bool, char and enum */
	VALUE_POINTER,	  /* to something else than characters */
	VALUE_TEXT,	  /* char *, or void * */
	VALUE_CHARACTERS, /* an array of char: `value` has its address */
	VALUE_NONE,	  /* a structure, a floating-point number, ... */
};

/* The six registers of integer arguments, as offsets into the kernel's struct pt_regs. */
#define VALUE_REGISTERS 6
extern const uint16_t value_registers[VALUE_REGISTERS];
/* Like the register of an argument, for the value that a function returns. */
#define VALUE_RETURN_REGISTER 80

/* Room for the reason why a value is not known. */
#define VALUE_WHY_SIZE 160

/*
 * Finds the value at the function's entry, or, with of_return, after its return. 0; -ENODATA if the
 * debug info lacks the function; -EINVAL with the reason in `why` if the value cannot be read, or
 * its place is not known.
 */
int function__find_value(const struct function *function, const struct value_path *path,
			 struct mt_value *value, enum value_type *type,
			 char why[static VALUE_WHY_SIZE]);

/* True for a clone that GCC has made, whose arguments may be in other registers: "f.isra.0". */
bool function__is_clone(const struct function *function);
/* True for compiled OCaml code, whose arguments are in other registers than those of C. */
bool function__is_ocaml(const struct function *function);

#endif
