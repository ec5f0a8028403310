/* SPDX-License-Identifier: MIT */
/*
 * The same as arguments.h, by BTF: for C programs without DWARF that have it (gcc -gbtf, pahole
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
