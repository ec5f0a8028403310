/* SPDX-License-Identifier: MIT */
/*
 * Does what arguments.h does, by BTF: for C programs that have BTF and no DWARF (gcc -gbtf, pahole
 * -J).
 */
#ifndef MTBPF_TARGET_ELF_ARGUMENTS_BTF_H
#define MTBPF_TARGET_ELF_ARGUMENTS_BTF_H

#include "target/elf/arguments.h"

/* Like function__find_value(); -ENODATA if the file lacks BTF, or its BTF lacks the function. */
int function__find_value_by_btf(const struct function *function, const struct value_path *path,
				struct mt_value *value, enum value_type *type,
				char why[static VALUE_WHY_SIZE]);

#endif
