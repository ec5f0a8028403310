// SPDX-License-Identifier: MIT
/* tracer PID: holds a process by ptrace(2) as a debugger does, lets it run, until it is ended. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	if (argc != 2 || ptrace(PTRACE_SEIZE, atoi(argv[1]), 0, 0)) {
		perror("tracer");
		return 1;
	}
	printf("pid %d\n", (int)getpid());
	fflush(stdout);
	pause();
	return 0;
}
