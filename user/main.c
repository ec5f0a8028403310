// SPDX-License-Identifier: MIT
/* mtbpf: runs the command named by the first word. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cmd.h"

/* Opens missing standard descriptors: otherwise a file that is opened next would get messages. */
static void open_standard(void)
{
	int fd;

	do {
		fd = open("/dev/null", O_RDWR);
	} while (fd >= 0 && fd <= STDERR_FILENO);
	if (fd > STDERR_FILENO)
		close(fd);
}

int main(int argc, char **argv)
{
	const struct command *command;
	const char *name;

	open_standard();
	if (argc < 2) {
		print_usage(stderr);
		return EXIT_USAGE;
	}
	name = argv[1];
	if (!strcmp(name, "-help") || !strcmp(name, "--help") || !strcmp(name, "-h"))
		name = "help";
	if (!strcmp(name, "-version") || !strcmp(name, "--version")) {
		print_version();
		return EXIT_OK;
	}
	command = command__find(name);
	return command ? command->run(argc - 1, argv + 1) : refuse_command(name);
}
