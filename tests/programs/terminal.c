// SPDX-License-Identifier: MIT
/*
 * terminal COMMAND...: runs it in a session of its own, at a terminal that is closed when this
 * ends, and prints what it writes there; before that "pid N", which is the command's.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

/* The session's first terminal that it opens is its own. */
static int open_slave(int master)
{
	int number, unlock = 0;
	char path[32];

	if (ioctl(master, TIOCSPTLCK, &unlock) || ioctl(master, TIOCGPTN, &number))
		return -1;
	snprintf(path, sizeof(path), "/dev/pts/%d", number);
	return open(path, O_RDWR);
}

static void become(int master, char **command)
{
	int slave;

	setsid();
	slave = open_slave(master);
	if (slave < 0) {
		perror("terminal");
		_exit(2);
	}
	for (int fd = 0; fd <= 2; fd++)
		dup2(slave, fd);
	if (slave > 2)
		close(slave);
	close(master);
	execvp(command[0], command);
	_exit(127);
}

int main(int argc, char **argv)
{
	int master = open("/dev/ptmx", O_RDWR | O_NOCTTY);
	char text[4096];
	ssize_t n;
	pid_t pid;

	if (argc < 2 || master < 0) {
		fprintf(stderr, "usage: terminal COMMAND..., where there are terminals\n");
		return 2;
	}
	pid = fork();
	if (pid < 0)
		return 2;
	if (!pid)
		become(master, argv + 1);
	printf("pid %d\n", (int)pid);
	fflush(stdout);
	while ((n = read(master, text, sizeof(text))) > 0) {
		fwrite(text, 1, (size_t)n, stdout);
		fflush(stdout);
	}
	return 0;
}
