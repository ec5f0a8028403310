// SPDX-License-Identifier: MIT
/*
 * In `make coverage`: what a process ran that ends with _exit(2) counts as well. mtbpf itself is
 * not confined, as on a kernel without Landlock: it could not write its counts.
 */
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

void __gcov_dump(void);
void __real__exit(int status) __attribute__((noreturn));
void __wrap__exit(int status) __attribute__((noreturn));
int __real_landlock__confine(const char *written, bool with_folders, const int *roots,
			     size_t n_roots);
int __wrap_landlock__confine(const char *written, bool with_folders, const int *roots,
			     size_t n_roots);

void __wrap__exit(int status)
{
	__gcov_dump();
	__real__exit(status);
}

int __wrap_landlock__confine(const char *written, bool with_folders, const int *roots,
			     size_t n_roots)
{
	if (!strcmp(program_invocation_short_name, "mtbpf"))
		return -ENOSYS;
	return __real_landlock__confine(written, with_folders, roots, n_roots);
}
