// SPDX-License-Identifier: MIT
/*
 * A program whose speed can be seen from outside: a call of one_iter() takes some nanoseconds, so
 * whatever is left in it makes it many times slower. The number of rounds, and the CPU time of the
 * latest, stand in a file. SIGUSR1: it executes itself; SIGUSR2: it crashes; SIGWINCH: it only
 * calls on_signal().
 */
#include "sample.h"
#include <fcntl.h>
#include <sys/mman.h>

#define ROUND 20000

struct speed {
	volatile uint64_t rounds, round_ns;
};

static volatile sig_atomic_t wanted;

TRACED void on_signal(int signo)
{
	wanted = signo;
}

TRACED uint64_t one_iter(uint64_t value)
{
	return value * 6364136223846793005u + 1442695040888963407u;
}

static uint64_t cpu_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static struct speed *map_file(const char *path)
{
	int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	void *p = MAP_FAILED;

	if (fd >= 0 && !ftruncate(fd, sizeof(struct speed)))
		p = mmap(NULL, sizeof(struct speed), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (p == MAP_FAILED) {
		perror(path);
		exit(2);
	}
	return p;
}

/* False where a signal has ended it early. */
static bool go_round(uint64_t *value)
{
	for (int i = 0; i < ROUND && !wanted && !sample_stop; i++)
		*value = one_iter(*value);
	return !wanted && !sample_stop;
}

static void crash(void)
{
	signal(SIGSEGV, SIG_DFL);
	raise(SIGSEGV);
}

static void obey(int signo, const char *path)
{
	if (signo == SIGUSR2)
		crash();
	if (signo == SIGUSR1)
		execl("/proc/self/exe", "again", path, NULL);
}

int main(int argc, char **argv)
{
	struct speed *speed;
	uint64_t value = 1;

	if (argc != 2) {
		fprintf(stderr, "usage: spin FILE\n");
		return 2;
	}
	speed = map_file(argv[1]);
	signal(SIGUSR1, on_signal);
	signal(SIGUSR2, on_signal);
	signal(SIGWINCH, on_signal);
	signal(SIGTERM, sample__on_stop);
	sample__announce();
	while (!sample_stop) {
		uint64_t began_ns = cpu_ns();

		if (go_round(&value)) {
			speed->round_ns = cpu_ns() - began_ns;
			speed->rounds++;
		}
		obey(wanted, argv[1]);
		wanted = 0;
	}
	return value == 0;
}
