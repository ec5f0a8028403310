// SPDX-License-Identifier: MIT
/* File trees of containers that a recording keeps open. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "capture/recording/recording.h"
#include "sanitizers.h"

/* More than a vector has room for at first: it is moved while they are added. */
#define N_INSIDE 20

/*
 * Vectors that move_blocks has moved, with other bytes in their old place. They stay allocated, so
 * that whoever still reads the old place gets these bytes.
 */
static void *old_blocks[64];
static size_t n_old_blocks;
static bool move_blocks;

/*
 * In place of the C library's, which would mostly enlarge the block where it is. Sanitizers have a
 * realloc() of their own, and report reads of the old place.
 */
#ifndef HAS_OWN_ALLOCATOR
void *realloc(void *old, size_t size)
{
	size_t old_size = old ? malloc_usable_size(old) : 0;
	void *moved = malloc(size);

	if (!moved || !old)
		return moved;
	memcpy(moved, old, old_size < size ? old_size : size);
	if (!move_blocks || n_old_blocks == sizeof(old_blocks) / sizeof(old_blocks[0])) {
		free(old);
		return moved;
	}
	memset(old, 0x5a, old_size);
	old_blocks[n_old_blocks++] = old;
	return moved;
}
#endif

struct fixture {
	char folder[32];
	pid_t inside[N_INSIDE], gone;
	struct recording rec;
};

/* A process that sees the folder as /; 0: this user may not have one. */
static pid_t begin_inside(const char *folder)
{
	int ends[2], n;
	char ready;
	pid_t pid;

	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	pid = fork();
	if (!pid) {
		if (!chroot(folder) && write(ends[1], "", 1) == 1)
			pause();
		_exit(1);
	}
	close(ends[1]);
	n = (int)read(ends[0], &ready, 1);
	close(ends[0]);
	if (n == 1)
		return pid;
	waitpid(pid, NULL, 0);
	return 0;
}

static void end_inside(pid_t pid)
{
	if (!pid)
		return;
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

static int set_up(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	char file[64];

	strcpy(f->folder, "/tmp/mtbpf-roots.XXXXXX");
	assert_non_null(mkdtemp(f->folder));
	snprintf(file, sizeof(file), "%s/file", f->folder);
	close(open(file, O_WRONLY | O_CREAT, 0600));
	for (int i = 0; i < N_INSIDE; i++)
		f->inside[i] = begin_inside(f->folder);
	f->gone = fork();
	if (!f->gone)
		_exit(0);
	waitpid(f->gone, NULL, 0);
	recording__init(&f->rec);
	*state = f;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *f = *state;
	char file[64];

	for (int i = 0; i < N_INSIDE; i++)
		end_inside(f->inside[i]);
	recording__fini(&f->rec);
	snprintf(file, sizeof(file), "%s/file", f->folder);
	unlink(file);
	rmdir(f->folder);
	free(f);
	return 0;
}

static void add_map(struct fixture *f, pid_t pid)
{
	struct rec_map map = {.pid = pid, .tid = pid, .start = 4096, .len = 4096};

	map.path = (char *)"/file";
	assert_int_equal(recording__add_map(&f->rec, &map), 0);
}

static void assert_root(const struct fixture *f, pid_t pid, bool is_held)
{
	char path[REC_ROOT_SIZE], expected[REC_ROOT_SIZE];

	recording__root_path(&f->rec, pid, path);
	snprintf(expected, sizeof(expected), "/proc/%d/root", (int)pid);
	if (is_held)
		assert_int_equal(strncmp(path, "/proc/self/fd/", 14), 0);
	else
		assert_string_equal(path, expected);
}

/* Also when its process has gone. */
static void test_a_tree_of_its_own_stays_open(void **state)
{
	struct fixture *f = *state;
	char root[REC_ROOT_SIZE], file[64];
	int fd;

	if (!f->inside[0]) {
		print_message("# skip: needs root, to chroot\n");
		skip();
	}
	for (int i = 0; i < N_INSIDE; i++)
		add_map(f, f->inside[i]);
	add_map(f, f->inside[0]);
	move_blocks = true;
	assert_int_equal(recording__hold_roots(&f->rec), 0);
	move_blocks = false;
#ifndef HAS_OWN_ALLOCATOR
	assert_true(n_old_blocks > 0);
#endif
	while (n_old_blocks)
		free(old_blocks[--n_old_blocks]);
	assert_int_equal(f->rec.roots.n, N_INSIDE);
	assert_true(f->rec.roots.v[0].is_owner);
	for (int i = 1; i < N_INSIDE; i++) {
		assert_false(f->rec.roots.v[i].is_owner);
		assert_int_equal(f->rec.roots.v[i].fd, f->rec.roots.v[0].fd);
	}
	assert_root(f, f->inside[1], true);
	for (int i = 0; i < N_INSIDE; i++) {
		end_inside(f->inside[i]);
		f->inside[i] = 0;
	}
	recording__root_path(&f->rec, f->rec.roots.v[1].pid, root);
	snprintf(file, sizeof(file), "%s/file", root);
	assert_int_equal(access(file, F_OK), 0);
	fd = f->rec.roots.v[0].fd;
	recording__fini(&f->rec);
	assert_int_equal(fcntl(fd, F_GETFD), -1);
}

static void test_ours_and_none_are_not_held(void **state)
{
	struct fixture *f = *state;

	add_map(f, getpid());
	add_map(f, f->gone);
	assert_int_equal(recording__hold_roots(&f->rec), 0);
	assert_int_equal(f->rec.roots.n, 0);
	assert_root(f, getpid(), false);
	assert_root(f, f->gone, false);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_a_tree_of_its_own_stays_open, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(test_ours_and_none_are_not_held, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
