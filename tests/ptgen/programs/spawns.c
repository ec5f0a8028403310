// SPDX-License-Identifier: MIT
/*
 * Child processes by vfork(), posix_spawn() and fork(), which go on in the parent behind the child,
 * and first calls of library functions, which the dynamic linker binds meanwhile.
 */
#include <math.h>
#include <search.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

#define APART __attribute__((noipa))

APART void back(void)
{
	__asm__ volatile("");
}

static char *const arguments[] = {"true", NULL};

APART void by_vfork(void)
{
	pid_t pid = vfork();

	if (!pid) {
		execv("/bin/true", arguments);
		_exit(1);
	}
	back();
	waitpid(pid, NULL, 0);
}

APART void by_spawn(void)
{
	pid_t pid;

	if (!posix_spawn(&pid, "/bin/true", NULL, NULL, arguments, environ))
		waitpid(pid, NULL, 0);
	back();
}

APART void by_fork(void)
{
	pid_t pid = fork();

	if (!pid)
		_exit(0);
	back();
	waitpid(pid, NULL, 0);
}

static int compare(const void *a, const void *b)
{
	back();
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Each function for the first time: a tail call of one, and one that calls back. */
APART char *first_calls(char *text)
{
	char *words[] = {strdup("b"), strdup("a"), "c"};

	qsort(words, 3, sizeof(*words), compare);
	back();
	if (getenv("NO_SUCH_THING") || strchr(text, 'z'))
		return NULL;
	back();
	printf("%s %ld\n", words[0], strtol(text, NULL, 10));
	return strpbrk(text, "1");
}

int main(int argc, char **argv)
{
	char text[] = "x1";

	for (int i = 0; i < 3; i++) {
		by_vfork();
		by_spawn();
		by_fork();
		first_calls(text);
		back();
	}
	return 0;
}
