/* SPDX-License-Identifier: MIT */
/* Inputs for the fuzzers to begin with, made as the unit tests make theirs. */
#ifndef MTBPF_TESTS_FUZZ_SEEDS_H
#define MTBPF_TESTS_FUZZ_SEEDS_H

#include <stddef.h>

/* The file NAME of the seeds for this fuzzer. Ends the program where it cannot be written. */
void seed__write(const char *fuzzer, const char *name, const void *bytes, size_t size);

/* Of each fuzzer. */
void seeds__decode(void);
void seeds__recordings(void);
void seeds__elf(void);
void seeds__texts(void);

#endif
