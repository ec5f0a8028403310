// SPDX-License-Identifier: MIT
/*
 * In `make coverage`: what a process ran that ends with _exit(2) counts as well; but for those that
 * are confined, which may not write it.
 */
#include <sys/prctl.h>
#include <unistd.h>

void __gcov_dump(void);
void __real__exit(int status) __attribute__((noreturn));
void __wrap__exit(int status) __attribute__((noreturn));

void __wrap__exit(int status)
{
	if (!prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0))
		__gcov_dump();
	__real__exit(status);
}
