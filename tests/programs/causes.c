// SPDX-License-Identifier: MIT
/*
 * causes CAUSE: a loop whose iterations are quick, except one in a hundred, for one planted reason:
 *
 *   branch  a loop over much more than usual      lock   another thread has the lock
 *   read    an answer that comes late             faults fresh memory, page by page
 *   hog     others want the same CPU              alarm  an answer that never comes: the kernel's
 *                                                        timer wheel, a softirq, ends the wait
 *
 * causes ask [CAUSE [FILE]]: an iteration for each line of stdin, which names its cause, or
 * "quick"; the answer is its figures by the program's own clocks. FILE is for the causes
 *
 *   cold    a file is read                        map    a file is mapped and touched
 *   tcp     an answer over TCP comes late
 *   loop    (no cause) the same work each time, about 20 ms of it
 *   sync    4 MB are written, and fsync waits     dirty  (no cause) 48 MB are written, and stay in
 * memory few     24 MB of fresh memory, page by page  long   a loop of four seconds
 */
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "loopback.h"

#define TRACED __attribute__((noipa))

#define SLOW_EVERY 100
#define SLOW_MS	   40
#define HOGS	   3

struct service {
	pthread_mutex_t lock;
	int to_helper[2], to_us[2]; /* pipes */
	int tcp[2];		    /* our end, and the helper's */
	const char *path;
	uint64_t sum;
	uint64_t rounds; /* that take 20 ms */
};

static volatile sig_atomic_t stop;

static void on_stop(int signo)
{
	(void)signo;
	stop = 1;
}

static uint64_t clock_ns(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static uint64_t cpu_ns(void)
{
	return clock_ns(CLOCK_THREAD_CPUTIME_ID);
}

static void sleep_ms(int ms)
{
	struct timespec pause = {ms / 1000, ms % 1000 * 1000000};

	while (nanosleep(&pause, &pause) && !stop)
		;
}

/* So much time on a CPU, whatever else there is. */
TRACED void work_us(struct service *s, unsigned us)
{
	uint64_t until = cpu_ns() + 1000ull * us;

	while (cpu_ns() < until)
		for (int i = 0; i < 1000; i++)
			s->sum = s->sum * 6364136223846793005u + 1;
}

TRACED void loop(struct service *s, uint64_t rounds)
{
	for (uint64_t i = 0; i < rounds; i++)
		s->sum = s->sum * 6364136223846793005u + (i ^ s->sum >> 7);
}

/* The quickest of a few is the one that nothing interrupts. */
static void time_loop(struct service *s)
{
	const uint64_t rounds = 1000000;
	uint64_t least_ns = UINT64_MAX;

	for (int i = 0; i < 20; i++) {
		uint64_t start = clock_ns(CLOCK_MONOTONIC), ns;

		loop(s, rounds);
		ns = clock_ns(CLOCK_MONOTONIC) - start;
		if (ns < least_ns)
			least_ns = ns;
	}
	s->rounds = rounds * 20000000 / (least_ns + 1);
}

TRACED void slow_branch(struct service *s)
{
	work_us(s, SLOW_MS * 1000);
}

TRACED void long_branch(struct service *s)
{
	work_us(s, 4000000);
}

/* A round trip over pipes, so that the helper is known to have begun. */
static void tell_helper(struct service *s, char what)
{
	if (write(s->to_helper[1], &what, 1) != 1)
		stop = 1;
}

TRACED char read_answer(struct service *s)
{
	char byte = 0;

	if (read(s->to_us[0], &byte, 1) != 1)
		stop = 1;
	return byte;
}

TRACED char receive_answer(struct service *s)
{
	char byte = 0;

	if (recv(s->tcp[0], &byte, 1, 0) != 1)
		stop = 1;
	return byte;
}

TRACED void await_nobody(void)
{
	struct timeval limit = {.tv_usec = SLOW_MS * 1000};
	int pair[2];
	char byte;

	if (socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, pair))
		return;
	setsockopt(pair[0], SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	if (recv(pair[0], &byte, 1, 0) >= 0)
		stop = 1;
	close(pair[0]);
	close(pair[1]);
}

TRACED void take_lock(struct service *s)
{
	pthread_mutex_lock(&s->lock);
	s->sum++;
	pthread_mutex_unlock(&s->lock);
}

TRACED void touch_pages(struct service *s, size_t size)
{
	volatile char *pages =
		mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (pages == MAP_FAILED)
		return;
	madvise((void *)pages, size, MADV_NOHUGEPAGE);
	for (size_t i = 0; i < size; i += 4096)
		pages[i] = 1;
	munmap((void *)pages, size);
}

TRACED void read_file(struct service *s)
{
	static char buffer[1 << 20];
	int fd = open(s->path, O_RDONLY | O_CLOEXEC);

	while (read(fd, buffer, sizeof(buffer)) > 0)
		s->sum += (uint64_t)buffer[0];
	close(fd);
}

TRACED void touch_file(struct service *s)
{
	int fd = open(s->path, O_RDONLY | O_CLOEXEC);
	off_t size = lseek(fd, 0, SEEK_END);
	volatile char *bytes = mmap(NULL, (size_t)size, PROT_READ, MAP_PRIVATE, fd, 0);

	close(fd);
	if (bytes == MAP_FAILED)
		return;
	for (off_t i = 0; i < size; i += 4096)
		s->sum += (uint64_t)bytes[i];
	munmap((void *)bytes, (size_t)size);
}

TRACED void write_file(struct service *s, int megabytes, bool sync)
{
	static char buffer[1 << 20];
	int fd = open(s->path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

	for (int i = 0; i < megabytes; i++)
		if (write(fd, buffer, sizeof(buffer)) < 0)
			break;
	if (sync)
		fsync(fd);
	close(fd);
}

TRACED void steady_work(struct service *s)
{
	work_us(s, SLOW_MS * 1000 / 4);
}

static void *help(void *arg)
{
	struct service *s = arg;
	char what;

	prctl(PR_SET_NAME, "helper");
	while (read(s->to_helper[0], &what, 1) == 1) {
		if (what == 'l')
			pthread_mutex_lock(&s->lock);
		if (what == 'l' && write(s->to_us[1], &what, 1) != 1)
			return NULL;
		sleep_ms(SLOW_MS);
		if (what == 'l')
			pthread_mutex_unlock(&s->lock);
		else if (write(what == 't' ? s->tcp[1] : s->to_us[1], &what, 1) != 1)
			return NULL;
	}
	return NULL;
}

/* Spins for a while each time that it is told to; for SIGTERM's sake it dies with its parent. */
static void hog(const int *pipe)
{
	char what;

	prctl(PR_SET_NAME, "hog");
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	close(pipe[1]);
	while (read(pipe[0], &what, 1) == 1) {
		uint64_t until = cpu_ns() + SLOW_MS * 1000000ull;

		while (cpu_ns() < until)
			;
	}
	_exit(0);
}

static void start_hogs(struct service *s)
{
	cpu_set_t one;

	CPU_ZERO(&one);
	CPU_SET(sched_getcpu(), &one);
	sched_setaffinity(0, sizeof(one), &one);
	for (int i = 0; i < HOGS; i++)
		if (!fork())
			hog(s->to_helper);
}

TRACED void one_iter(struct service *s, const char *cause)
{
	work_us(s, 50);
	if (!strcmp(cause, "branch")) {
		slow_branch(s);
	} else if (!strcmp(cause, "long")) {
		long_branch(s);
	} else if (!strcmp(cause, "lock")) {
		tell_helper(s, 'l');
		read_answer(s);
		take_lock(s);
	} else if (!strcmp(cause, "read")) {
		tell_helper(s, 'r');
		read_answer(s);
	} else if (!strcmp(cause, "tcp")) {
		tell_helper(s, 't');
		receive_answer(s);
	} else if (!strcmp(cause, "alarm")) {
		await_nobody();
	} else if (!strcmp(cause, "faults")) {
		touch_pages(s, 128u << 20);
	} else if (!strcmp(cause, "few")) {
		touch_pages(s, 24u << 20);
	} else if (!strcmp(cause, "cold")) {
		read_file(s);
	} else if (!strcmp(cause, "map")) {
		touch_file(s);
	} else if (!strcmp(cause, "sync")) {
		write_file(s, 4, true);
	} else if (!strcmp(cause, "loop")) {
		loop(s, s->rounds);
	} else if (!strcmp(cause, "hog")) {
		for (int i = 0; i < HOGS; i++)
			tell_helper(s, 'h');
		steady_work(s);
	}
}

static void serve(struct service *s, const char *cause)
{
	for (uint64_t i = 1; !stop; i++) {
		one_iter(s, i % SLOW_EVERY ? "" : cause);
		sleep_ms(1);
	}
}

static void serve_asked(struct service *s)
{
	char line[64];

	printf("ready\n");
	fflush(stdout);
	while (!stop && fgets(line, sizeof(line), stdin)) {
		uint64_t start = clock_ns(CLOCK_MONOTONIC);

		line[strcspn(line, "\n")] = '\0';
		if (!strcmp(line, "dirty"))
			write_file(s, 48, false);
		else
			one_iter(s, line);
		printf("total=%llu\n", (unsigned long long)(clock_ns(CLOCK_MONOTONIC) - start));
		fflush(stdout);
	}
}

int main(int argc, char **argv)
{
	struct service s = {.lock = PTHREAD_MUTEX_INITIALIZER};
	struct sigaction action = {.sa_handler = on_stop};
	bool asked = argc > 1 && !strcmp(argv[1], "ask");
	const char *cause = argc > 1 + asked ? argv[1 + asked] : "";
	pthread_t helper;

	if (!asked && (argc != 2 || !strstr(" branch lock read faults hog alarm ", cause))) {
		fprintf(stderr,
			"usage: %s branch|lock|read|faults|hog|alarm\n"
			"       %s ask [CAUSE [FILE]]\n",
			argv[0], argv[0]);
		return 2;
	}
	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGINT, &action, NULL);
	if (pipe2(s.to_helper, O_CLOEXEC) || pipe2(s.to_us, O_CLOEXEC))
		return 1;
	if (asked && connect_tcp(s.tcp) < 0)
		return 1;
	s.path = argc > 3 ? argv[3] : "";
	if (!strcmp(cause, "hog"))
		start_hogs(&s);
	else if (pthread_create(&helper, NULL, help, &s))
		return 1;
	if (asked) {
		time_loop(&s);
		serve_asked(&s);
		return 0;
	}
	printf("pid %d\n", (int)getpid());
	fflush(stdout);
	serve(&s, cause);
	return 0;
}
