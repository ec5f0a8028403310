// SPDX-License-Identifier: MIT
#include "target/process.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "said.h"
#include "stderr_capture.h"

#define NO_PID (1 << 23) /* PID_MAX_LIMIT is 2^22 */

/* process__open() of what it should refuse: the code, and what the user reads. */
static int open_refused(pid_t pid, struct stderr_capture *capture)
{
	struct process process;
	int err;

	stderr_capture__begin(capture);
	err = process__open(&process, pid);
	stderr_capture__end(capture);
	if (!err)
		process__close(&process);
	return err;
}

static void test_opens_ourselves(void **state)
{
	char exe[PATH_MAX], comm[PROCESS_COMM_SIZE];
	struct process process;
	ssize_t n = readlink("/proc/self/exe", exe, sizeof(exe) - 1);

	assert_true(n > 0);
	exe[n] = '\0';
	prctl(PR_GET_NAME, comm);
	assert_int_equal(process__open(&process, getpid()), 0);
	assert_int_equal(process.pid, getpid());
	assert_string_equal(process.comm, comm);
	assert_string_equal(process.exe, exe);
	assert_non_null(mappings__find(&process.maps, (uint64_t)(uintptr_t)&open_refused));
	process__close(&process);
}

static void test_status(void **state)
{
	static const char text[] =
		"Name:\ta\033b\\n\nUmask:\t0022\nState:\tT (stopped)\nTgid:\t17\n"
		"TracerPid:\t4\nNSpid:\t17\t3\t1\nVmSize:\t 4 kB\nThreads:\t3\n";
	struct task_status status;
	char *cut;

	assert_int_equal(task_status__parse(&status, text), 0);
	assert_string_equal(status.comm, "a?b\\n");
	assert_int_equal(status.state, 'T');
	assert_int_equal(status.tgid, 17);
	assert_int_equal(status.tracer, 4);
	assert_int_equal(status.pid_inside, 1);
	assert_int_equal(status.threads, 3);
	assert_true(status.has_memory);
	cut = strndup(text, (size_t)(strstr(text, "Threads") - text));
	assert_int_equal(task_status__parse(&status, cut), -ESRCH);
	free(cut);
	assert_int_equal(task_status__parse(&status, ""), -ESRCH);
}

static void test_refuses_a_missing_process(void **state)
{
	struct stderr_capture capture;

	assert_int_equal(open_refused(NO_PID, &capture), -ESRCH);
	ASSERT_ERROR(capture.text, TEXT_no_pid, NO_PID);
	ASSERT_HINT(capture.text, TEXT_pids_listed);
	assert_int_equal(open_refused(0, &capture), -ESRCH);
	assert_int_equal(open_refused(-1, &capture), -ESRCH);
	assert_false(process__alive(NO_PID));
}

/* A child that has exited, and waits to be collected. */
static pid_t make_zombie(void)
{
	siginfo_t info;
	pid_t pid = fork();

	if (!pid)
		_exit(0);
	assert_true(pid > 0);
	assert_int_equal(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
	return pid;
}

static void test_refuses_a_zombie(void **state)
{
	struct stderr_capture capture;
	pid_t pid = make_zombie();

	assert_int_equal(open_refused(pid, &capture), -ESRCH);
	ASSERT_ERROR(capture.text, TEXT_is_a_zombie, pid);
	assert_false(process__alive(pid));
	waitpid(pid, NULL, 0);
}

struct parked {
	pthread_t thread;
	pid_t tid;
	pthread_barrier_t begun, end;
};

static void *park(void *arg)
{
	struct parked *parked = arg;

	prctl(PR_SET_NAME, "parked one");
	parked->tid = (pid_t)syscall(SYS_gettid);
	pthread_barrier_wait(&parked->begun);
	pthread_barrier_wait(&parked->end);
	return NULL;
}

static void parked__start(struct parked *parked)
{
	pthread_barrier_init(&parked->begun, NULL, 2);
	pthread_barrier_init(&parked->end, NULL, 2);
	assert_int_equal(pthread_create(&parked->thread, NULL, park, parked), 0);
	pthread_barrier_wait(&parked->begun);
}

static void parked__stop(struct parked *parked)
{
	pthread_barrier_wait(&parked->end);
	pthread_join(parked->thread, NULL);
	pthread_barrier_destroy(&parked->begun);
	pthread_barrier_destroy(&parked->end);
}

static void test_refuses_a_thread_and_names_its_process(void **state)
{
	struct stderr_capture capture;
	struct parked parked;

	parked__start(&parked);
	assert_int_equal(open_refused(parked.tid, &capture), -EINVAL);
	ASSERT_COMPLAINT(capture.text);
	ASSERT_ERROR(capture.text, TEXT_is_a_thread, parked.tid, getpid());
	ASSERT_HINT(capture.text, TEXT_use_pid, getpid());
	parked__stop(&parked);
}

static void test_lists_threads(void **state)
{
	char name[PROCESS_COMM_SIZE];
	struct parked parked;
	bool found = false;
	pid_t *tids;
	size_t n;

	parked__start(&parked);
	assert_int_equal(process__threads(getpid(), &tids, &n), 0);
	assert_true(n >= 2);
	for (size_t i = 0; i < n; i++) {
		found |= tids[i] == parked.tid;
		assert_true(!i || tids[i - 1] < tids[i]);
	}
	assert_true(found);
	free(tids);
	process__thread_name(getpid(), parked.tid, name);
	assert_string_equal(name, "parked one");
	parked__stop(&parked);
	process__thread_name(getpid(), NO_PID, name);
	assert_string_equal(name, "?");
	assert_int_equal(process__threads(NO_PID, &tids, &n), -ESRCH);
}

static void test_refuses_a_kernel_thread(void **state)
{
	struct stderr_capture capture;

	/* kthreadd is pid 2, but not where we see a pid namespace of our own. */
	if (getpgid(2) != 0) {
		print_message("# skip: no kernel thread in this pid namespace\n");
		skip();
	}
	assert_int_equal(open_refused(2, &capture), -ENOEXEC);
	ASSERT_ERROR(capture.text, TEXT_is_a_kernel_thread, 2, "kthreadd");
}

static void test_takes_a_kernel_thread_where_it_may_be_one(void **state)
{
	struct process process;

	if (getpgid(2) != 0) {
		print_message("# skip: no kernel thread in this pid namespace\n");
		skip();
	}
	assert_int_equal(process__open_any(&process, 2), 0);
	assert_true(process.is_kernel_thread);
	assert_string_equal(process.comm, "kthreadd");
	assert_string_equal(process.exe, "");
	assert_int_equal(process.maps.n, 0);
	process__close(&process);
	assert_int_equal(process__open_any(&process, getpid()), 0);
	assert_false(process.is_kernel_thread);
	assert_true(process.maps.n);
	process__close(&process);
}

static void test_a_dead_main_thread_is_no_dead_process(void **state)
{
	struct stderr_capture capture;
	siginfo_t info = {0};
	pid_t pid = fork();
	char comm[PROCESS_COMM_SIZE];
	bool alive;

	if (!pid) {
		struct parked parked;

		parked__start(&parked);
		syscall(SYS_exit, 0);
	}
	/* On its way out it is refused for other reasons first. */
	for (int i = 0; i < 1000; i++) {
		if (open_refused(pid, &capture) == -ESRCH &&
		    strstr(capture.text, "the main thread of process"))
			break;
		usleep(1000);
	}
	alive = process__alive(pid);
	process__thread_name(pid, pid, comm);
	/* Before any assertion: the child would live on where one fails. */
	kill(pid, SIGKILL);
	ASSERT_ERROR(capture.text, TEXT_main_thread_exited, (int)pid, comm);
	assert_true(alive);
	assert_int_equal(waitid(P_PID, (id_t)pid, &info, WEXITED), 0);
	assert_false(process__alive(pid));
}

/* What is forked and runs on, but not what is executed, works for the process. */
static void test_knows_its_workers(void **state)
{
	char *const sleeps[] = {"sleep", "60", NULL};
	pid_t child;

	(void)state;
	assert_false(process__has_workers(getpid()));
	child = vfork();
	if (!child) {
		execvp(sleeps[0], sleeps);
		_exit(1);
	}
	assert_true(child > 0);
	/* With sanitizers vfork() is fork(), and returns before the child's execve. */
	for (int i = 0; i < 500 && process__has_workers(getpid()); i++)
		usleep(10000);
	assert_false(process__has_workers(getpid()));
	kill(child, SIGKILL);
	assert_int_equal(waitpid(child, NULL, 0), child);
	child = fork();
	if (!child) {
		pause();
		_exit(0);
	}
	assert_true(child > 0);
	assert_true(process__has_workers(getpid()));
	kill(child, SIGKILL);
	assert_int_equal(waitpid(child, NULL, 0), child);
	assert_false(process__has_workers(getpid()));
}

static pid_t fork_named(const char *name)
{
	pid_t child = fork();

	if (!child) {
		prctl(PR_SET_NAME, name);
		pause();
		_exit(0);
	}
	assert_true(child > 0);
	return child;
}

static void end_child(pid_t child)
{
	kill(child, SIGKILL);
	assert_int_equal(waitpid(child, NULL, 0), child);
}

/* True if the list has the process, and the name matches it. */
static bool is_found(pid_t pid, const char *name)
{
	struct process_list list;
	bool found = false;

	assert_int_equal(process_list__read(&list), 0);
	for (size_t i = 0; i < list.n; i++)
		found |= list.v[i].pid == pid && process_entry__matches(&list.v[i], name);
	process_list__fini(&list);
	return found;
}

/* The kernel cuts the title of a worker to 15 bytes: "starman worker --workers 3". */
static void test_finds_a_name_that_was_cut_at_a_blank(void **state)
{
	pid_t child = fork_named("mtbpf's worker --workers 3");
	bool found = false;

	(void)state;
	/* The child renames itself. */
	for (int i = 0; i < 500 && !found; i++) {
		found = is_found(child, "mtbpf's worker");
		usleep(10000);
	}
	assert_false(is_found(child, "mtbpf's"));
	end_child(child);
	assert_true(found);
}

static void test_knows_children_that_are_not_of_the_target(void **state)
{
	pid_t child = fork_named("child"), other = fork_named("other");
	struct pid_set known = {0};
	pid_t younger;
	int status;

	(void)state;
	assert_true(process__has_unknown_child(getpid(), &known, false));
	/* They are younger than we are. */
	assert_false(process__has_unknown_child(getpid(), &known, true));
	assert_int_equal(pid_set__add(&known, child), 0);
	assert_true(process__has_unknown_child(getpid(), &known, false));
	assert_int_equal(pid_set__add(&known, other), 0);
	assert_false(process__has_unknown_child(getpid(), &known, false));
	pid_set__fini(&known);
	/* A sibling sees them as older: process times have steps of a hundredth of a second. */
	usleep(30000);
	younger = fork();
	if (!younger)
		_exit(!process__has_unknown_child(getppid(), &(struct pid_set){0}, true));
	assert_int_equal(waitpid(younger, &status, 0), younger);
	end_child(child);
	end_child(other);
	assert_int_equal(status, 0);
}

static void test_says_who_may_look(void **state)
{
	pid_t pid;
	int status;

	if (geteuid()) {
		print_message("# skip: only root can become another user\n");
		skip();
	}
	pid = fork();
	if (!pid) {
		struct stderr_capture capture;

		if (setgid(65534) || setuid(65534))
			_exit(2);
		_exit(open_refused(getppid(), &capture) == -EACCES &&
				      strstr(capture.text, "CAP_SYS_PTRACE")
			      ? 0
			      : 1);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

/* Maps one page of a new file that holds "old". */
static void *map_file(const char *path)
{
	int fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
	void *page;

	assert_true(fd >= 0);
	assert_int_equal(write(fd, "old", 4), 4);
	page = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, fd, 0);
	assert_ptr_not_equal(page, MAP_FAILED);
	close(fd);
	return page;
}

static void write_file(const char *path, const char *text)
{
	FILE *f = fopen(path, "w");

	assert_non_null(f);
	fputs(text, f);
	fclose(f);
}

/* What the descriptor reads, or "" for an error. */
static const char *content(int fd)
{
	static char text[8];

	memset(text, 0, sizeof(text));
	if (fd >= 0) {
		assert_true(read(fd, text, sizeof(text) - 1) >= 0);
		close(fd);
	}
	return text;
}

/* What is at a path now is not what the process has mapped: after an update, or a deletion. */
static void check_mapping_survives(const char *path, void *page, bool has_map_files)
{
	const struct mapping *mapping;
	struct mappings maps;
	char found[PATH_MAX];

	assert_int_equal(mappings__read(&maps, getpid()), 0);
	mapping = mappings__find(&maps, (uint64_t)(uintptr_t)page);
	assert_non_null(mapping);
	assert_int_equal(strncmp(mapping->path, path, strlen(path)), 0);
	if (has_map_files) {
		assert_string_equal(content(process__open_mapping(getpid(), mapping)), "old");
		assert_int_equal(process__mapping_path(getpid(), mapping, found, sizeof(found)), 0);
		assert_string_equal(content(open(found, O_RDONLY)), "old");
	} else {
		assert_true(process__open_mapping(getpid(), mapping) < 0);
	}
	mappings__fini(&maps);
}

static void test_opens_the_mapped_file_and_no_other(void **state)
{
	char path[] = "/tmp/mtbpf-test-XXXXXX", other[64];
	bool has_map_files = !geteuid();
	void *page;

	close(mkstemp(path));
	page = map_file(path);
	check_mapping_survives(path, page, true);
	snprintf(other, sizeof(other), "%s.new", path);
	write_file(other, "new");
	assert_int_equal(rename(other, path), 0);
	check_mapping_survives(path, page, has_map_files);
	unlink(path);
	check_mapping_survives(path, page, has_map_files);
	/* A file may really be called what the kernel shows of a deleted one. */
	snprintf(other, sizeof(other), "%s (deleted)", path);
	write_file(other, "bad");
	check_mapping_survives(path, page, has_map_files);
	unlink(other);
	munmap(page, 4096);
}

static void test_a_mapping_without_a_file_has_none(void **state)
{
	struct mapping vdso = {.start = 0x1000, .end = 0x2000, .path = (char *)"[vdso]"};
	struct mapping anonymous = {.start = 0x1000, .end = 0x2000, .path = (char *)""};
	char path[PATH_MAX];

	assert_int_equal(process__open_mapping(getpid(), &vdso), -ENOENT);
	assert_int_equal(process__open_mapping(getpid(), &anonymous), -ENOENT);
	assert_int_equal(process__mapping_path(getpid(), &vdso, path, sizeof(path)), -ENOENT);
}

static void test_reads_memory_up_to_a_hole(void **state)
{
	char *pages = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char buf[64];

	assert_ptr_not_equal(pages, MAP_FAILED);
	assert_int_equal(munmap(pages + 4096, 4096), 0);
	memset(pages, 'x', 4096);
	assert_int_equal(process__read_memory(getpid(), (uint64_t)(uintptr_t)pages, buf, 64), 64);
	assert_memory_equal(buf, pages, 64);
	assert_int_equal(process__read_memory(getpid(), (uint64_t)(uintptr_t)pages + 4090, buf, 64),
			 6);
	assert_int_equal(process__read_memory(getpid(), (uint64_t)(uintptr_t)pages + 4096, buf, 64),
			 0);
	assert_int_equal(process__read_memory(getpid(), UINT64_MAX - 8, buf, 64), 0);
	assert_int_equal(process__read_memory(NO_PID, 0x1000, buf, 64), -ESRCH);
	munmap(pages, 4096);
}

/* A list that lacks processes would let a caller say that there is none of a name. */
static void test_the_list_of_processes_is_complete_or_refused(void **state)
{
	struct stderr_capture said;
	struct rlimit all, few;
	struct process_list list;
	int next;

	stderr_capture__begin(&said);
	next = dup(STDERR_FILENO);
	assert_int_equal(process_list__read(&list), 0);
	process_list__fini(&list);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &all), 0);
	close(next);
	/* Enough to open /proc, and nothing in it. */
	few = (struct rlimit){.rlim_cur = (rlim_t)next + 1, .rlim_max = all.rlim_max};
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
	assert_int_equal(process_list__read(&list), -EMFILE);
	process_list__fini(&list);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &all), 0);
	stderr_capture__end(&said);
	ASSERT_ERROR(said.text, TEXT_cannot_list_processes, strerror(EMFILE));
	ASSERT_COMPLAINT(said.text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_status),
		cmocka_unit_test(test_opens_ourselves),
		cmocka_unit_test(test_refuses_a_missing_process),
		cmocka_unit_test(test_refuses_a_zombie),
		cmocka_unit_test(test_refuses_a_thread_and_names_its_process),
		cmocka_unit_test(test_lists_threads),
		cmocka_unit_test(test_refuses_a_kernel_thread),
		cmocka_unit_test(test_takes_a_kernel_thread_where_it_may_be_one),
		cmocka_unit_test(test_a_dead_main_thread_is_no_dead_process),
		cmocka_unit_test(test_knows_its_workers),
		cmocka_unit_test(test_finds_a_name_that_was_cut_at_a_blank),
		cmocka_unit_test(test_knows_children_that_are_not_of_the_target),
		cmocka_unit_test(test_says_who_may_look),
		cmocka_unit_test(test_opens_the_mapped_file_and_no_other),
		cmocka_unit_test(test_a_mapping_without_a_file_has_none),
		cmocka_unit_test(test_reads_memory_up_to_a_hole),
		cmocka_unit_test(test_the_list_of_processes_is_complete_or_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
