// SPDX-License-Identifier: MIT
/*
 * Preloaded into mtbpf: before a process ends, what it was not started for is tried in it, as code
 * would that has broken into it. INTRUDER_LOG gets a line for each try: "main" or "child", what,
 * and "done" or the error's name. INTRUDER_FILE is a file that it has no business with,
 * INTRUDER_PID another process. With INTRUDER_NO_LANDLOCK the kernel has none.
 */
#include <arpa/inet.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define LOG_FD	       200
#define CREATE_RULESET 444
#define RESTRICT_SELF  446
#define DISCARD	       9 /* a port where nobody listens */

static pid_t main_pid;

__attribute__((constructor)) static void begin(void)
{
	const char *log = getenv("INTRUDER_LOG");
	char path[4096] = "";
	int fd;

	/* Not timeout(1), nor whatever else is between. */
	if (!log || readlink("/proc/self/exe", path, sizeof(path) - 1) < 6 ||
	    strcmp(path + strlen(path) - 6, "/mtbpf"))
		return;
	fd = open(log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	if (fd < 0 || dup3(fd, LOG_FD, O_CLOEXEC) < 0)
		return;
	close(fd);
	main_pid = getpid();
}

static void tell(const char *what, int result)
{
	char line[128];
	int len =
		snprintf(line, sizeof(line), "%s %s %s\n", getpid() == main_pid ? "main" : "child",
			 what, result ? strerrorname_np(result) : "done");

	if (write(LOG_FD, line, (size_t)len) != len)
		abort();
}

static int try_open(const char *path, int flags)
{
	int fd = open(path, flags | O_CLOEXEC, 0600);

	if (fd < 0)
		return errno;
	close(fd);
	return 0;
}

static int try_of_process(const char *what, int flags)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%s/%s", getenv("INTRUDER_PID"), what);
	return try_open(path, flags);
}

static int try_to_create(const char *beside)
{
	char path[4096];

	snprintf(path, sizeof(path), "%s.new", beside);
	return try_open(path, O_WRONLY | O_CREAT);
}

static int try_to_execute(void)
{
	int status = 0;
	pid_t pid = fork();

	if (!pid) {
		unsetenv("LD_PRELOAD");
		execl("/bin/true", "true", NULL);
		syscall(SYS_exit_group, errno);
	}
	return waitpid(pid, &status, 0) == pid ? WEXITSTATUS(status) : ECHILD;
}

static int try_to_connect(void)
{
	struct sockaddr_in to = {.sin_family = AF_INET,
				 .sin_port = htons(DISCARD),
				 .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int err = connect(fd, (const struct sockaddr *)&to, sizeof(to)) ? errno : 0;

	close(fd);
	return err;
}

__attribute__((destructor)) static void intrude(void)
{
	const char *file = getenv("INTRUDER_FILE"), *pid = getenv("INTRUDER_PID");

	if (!main_pid || !file || !pid)
		return;
	tell("write", try_open(file, O_WRONLY | O_APPEND));
	tell("create", try_to_create(file));
	tell("memory", try_of_process("mem", O_RDWR));
	tell("root", try_of_process("root/", O_RDONLY | O_DIRECTORY));
	tell("execute", try_to_execute());
	tell("connect", try_to_connect());
	tell("signal", kill((pid_t)atoi(pid), 0) ? errno : 0);
	main_pid = getpid() == main_pid ? 0 : main_pid;
}

/* It runs no destructors. */
void _exit(int status)
{
	intrude();
	syscall(SYS_exit_group, status);
	__builtin_unreachable();
}

long syscall(long number, ...)
{
	static long (*next)(long, ...);
	long args[6];
	va_list ap;

	if (number >= CREATE_RULESET && number <= RESTRICT_SELF && getenv("INTRUDER_NO_LANDLOCK")) {
		errno = ENOSYS;
		return -1;
	}
	va_start(ap, number);
	for (int i = 0; i < 6; i++)
		args[i] = va_arg(ap, long);
	va_end(ap);
	if (!next)
		next = (long (*)(long, ...))dlsym(RTLD_NEXT, "syscall");
	return next(number, args[0], args[1], args[2], args[3], args[4], args[5]);
}
