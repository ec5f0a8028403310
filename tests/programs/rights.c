// SPDX-License-Identifier: MIT
/*
 * Runs a program as root with some capabilities only, and little memory to lock, as a container's
 * runtime does:
 *
 *   rights 19,21 PROGRAM ARGS      numbers of linux/capability.h
 */
#include <errno.h>
#include <linux/capability.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

static bool is_in(const char *list, int number)
{
	char *end;

	for (; *list; list = *end ? end + 1 : end)
		if (strtol(list, &end, 10) == number)
			return true;
		else if (end == list)
			break;
	return false;
}

int main(int argc, char **argv)
{
	const struct rlimit memlock = {65536, 65536};

	if (argc < 3) {
		fputs("usage: rights NUMBERS PROGRAM ARGS\n", stderr);
		return 2;
	}
	/* What is in the bounding set is what root gets at execve(2). */
	for (int cap = 0; cap <= CAP_LAST_CAP; cap++)
		if (!is_in(argv[1], cap))
			prctl(PR_CAPBSET_DROP, cap);
	if (setrlimit(RLIMIT_MEMLOCK, &memlock) || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)) {
		perror("rights");
		return 1;
	}
	execv(argv[2], argv + 2);
	fprintf(stderr, "rights: %s: %s\n", argv[2], strerror(errno));
	return 127;
}
