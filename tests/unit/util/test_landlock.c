// SPDX-License-Identifier: MIT
/* What a confined process may still do, and what it may not, whoever it runs as. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kernel/rights.h"

#define VERSION_OF_TCP	   4
#define VERSION_OF_SIGNALS 6

static char folder[] = "/tmp/mtbpf-landlock.XXXXXX";

static long version(void)
{
	return syscall(444, NULL, 0, 1);
}

static bool cannot_be_tried(void)
{
	if (version() > 0)
		return false;
	print_message("# skip: this kernel has no Landlock\n");
	return true;
}

static const char *in_folder(const char *name)
{
	static char path[2][PATH_MAX];
	static int turn;

	turn = !turn;
	snprintf(path[turn], sizeof(path[turn]), "%s/%s", folder, name);
	return path[turn];
}

static int try_open(const char *path, int flags)
{
	int fd = open(path, flags | O_CLOEXEC, 0600);

	if (fd < 0)
		return -errno;
	close(fd);
	return 0;
}

static int of_parent(const char *what, int flags)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/%s", (int)getppid(), what);
	return try_open(path, flags);
}

static int try_tcp(void)
{
	struct sockaddr_in to = {.sin_family = AF_INET,
				 .sin_port = htons(9),
				 .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), err;

	if (fd < 0)
		return -EACCES;
	err = connect(fd, (const struct sockaddr *)&to, sizeof(to)) ? -errno : 0;
	close(fd);
	return err;
}

/* The number of what is not as it should be. */
static int be_confined(void)
{
	if (landlock__confine(in_folder("out"), false, NULL, 0))
		return 1;
	if (try_open(in_folder("file"), O_RDONLY))
		return 2;
	if (try_open(in_folder("file"), O_WRONLY) != -EACCES)
		return 3;
	if (try_open(in_folder("new"), O_WRONLY | O_CREAT) != -EACCES)
		return 4;
	if (!rename(in_folder("out/first"), in_folder("file")) || !unlink(in_folder("file")))
		return 5;
	if (try_open(in_folder("out/second"), O_WRONLY | O_CREAT | O_EXCL) ||
	    rename(in_folder("out/first"), in_folder("out/first.old")) ||
	    rename(in_folder("out/second"), in_folder("out/first")))
		return 6;
	if (!mkdir(in_folder("out/folder"), 0700) || !rmdir(in_folder("out/inner")))
		return 12;
	if (of_parent("mem", O_RDWR) != -EACCES)
		return 7;
	if (of_parent("root/etc", O_RDONLY | O_DIRECTORY) != -EACCES)
		return 8;
	if (version() >= VERSION_OF_TCP && try_tcp() != -EACCES)
		return 9;
	if (version() >= VERSION_OF_SIGNALS && !kill(getppid(), 0))
		return 10;
	execl("/bin/true", "true", NULL);
	return errno == EACCES ? 0 : 11;
}

static int write_folders(void)
{
	if (landlock__confine(in_folder("out"), true, NULL, 0))
		return 1;
	if (mkdir(in_folder("out/new"), 0700) ||
	    try_open(in_folder("out/new/file"), O_WRONLY | O_CREAT) ||
	    rename(in_folder("out/new"), in_folder("out/renamed")) ||
	    unlink(in_folder("out/renamed/file")) || rmdir(in_folder("out/renamed")))
		return 2;
	return mkdir(in_folder("new"), 0700) && errno == EACCES ? 0 : 3;
}

static int write_nowhere(void)
{
	if (landlock__confine(NULL, false, NULL, 0))
		return 1;
	if (try_open(in_folder("file"), O_RDONLY))
		return 2;
	return try_open(in_folder("out/new"), O_WRONLY | O_CREAT) == -EACCES ? 0 : 3;
}

/* A file system that is mounted nowhere; -1: this user may have none. */
static int mount_nowhere(void)
{
	int mount, fs = fsopen("tmpfs", FSOPEN_CLOEXEC);

	if (fs < 0 || fsconfig(fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0))
		return -1;
	mount = fsmount(fs, FSMOUNT_CLOEXEC, 0);
	close(fs);
	return mount;
}

/* A tree that it was given is open to it, wherever it is; and no other. */
static int read_root(void)
{
	char path[2][64];
	int root[2];

	for (int i = 0; i < 2; i++) {
		root[i] = mount_nowhere();
		snprintf(path[i], sizeof(path[i]), "/proc/self/fd/%d/file", root[i]);
		if (try_open(path[i], O_WRONLY | O_CREAT))
			return 1;
	}
	if (landlock__confine(in_folder("out"), false, &root[1], 1))
		return 2;
	if (try_open(path[1], O_RDONLY) || try_open(path[1], O_WRONLY) != -EACCES)
		return 3;
	return try_open(path[0], O_RDONLY) != -EACCES ? 4 : 0;
}

static int in_child(int (*what)(void))
{
	pid_t pid = fork();
	int status;

	if (!pid)
		_exit(what());
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		return -errno;
	return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

static void test_it_writes_in_one_folder_alone(void **state)
{
	if (cannot_be_tried())
		skip();
	assert_int_equal(in_child(be_confined), 0);
	assert_int_equal(try_open(in_folder("file"), O_RDWR), 0);
}

static void test_it_makes_folders_where_it_may(void **state)
{
	if (cannot_be_tried())
		skip();
	assert_int_equal(in_child(write_folders), 0);
}

static void test_it_writes_nowhere(void **state)
{
	if (cannot_be_tried())
		skip();
	assert_int_equal(in_child(write_nowhere), 0);
}

static void test_a_tree_that_it_was_given_is_read(void **state)
{
	int mount = mount_nowhere();

	if (mount < 0)
		print_message("# skip: needs root, to mount\n");
	if (mount < 0 || cannot_be_tried())
		skip();
	close(mount);
	assert_int_equal(in_child(read_root), 0);
}

static int confine_nowhere(void)
{
	return -landlock__confine(in_folder("none"), false, NULL, 0);
}

static void test_a_folder_that_is_not_there(void **state)
{
	if (cannot_be_tried())
		skip();
	assert_int_equal(in_child(confine_nowhere), ENOENT);
}

static int make_folder(void **state)
{
	return !mkdtemp(folder) || mkdir(in_folder("out"), 0700) ||
	       mkdir(in_folder("out/inner"), 0700) ||
	       try_open(in_folder("file"), O_WRONLY | O_CREAT) ||
	       try_open(in_folder("out/first"), O_WRONLY | O_CREAT);
}

static int remove_folder(void **state)
{
	static const char *const files[] = {"out/first.old", "out/first", "file"};

	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++)
		unlink(in_folder(files[i]));
	rmdir(in_folder("out/inner"));
	rmdir(in_folder("out"));
	rmdir(folder);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_it_writes_in_one_folder_alone),
		cmocka_unit_test(test_it_makes_folders_where_it_may),
		cmocka_unit_test(test_it_writes_nowhere),
		cmocka_unit_test(test_a_tree_that_it_was_given_is_read),
		cmocka_unit_test(test_a_folder_that_is_not_there),
	};

	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
