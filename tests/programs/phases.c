// SPDX-License-Identifier: MIT
/*
 * Ten quick calls of handle_request(), and then a long one: `first` ms in phase_a(), then `second`
 * ms in phase_b(), over and over; handle_request() itself does nothing. Times are of the clock.
 *
 *   phases FIRST SECOND
 */
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define TRACED __attribute__((noipa))

static volatile sig_atomic_t stop;

static void on_stop(int signo)
{
	(void)signo;
	stop = 1;
}

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static volatile uint64_t sum;

static inline void spin_us(uint64_t us)
{
	uint64_t until = now_ns() + 1000 * us;

	while (now_ns() < until && !stop)
		for (int i = 0; i < 1000; i++)
			sum = sum * 6364136223846793005u + 1;
}

TRACED void phase_a(uint64_t us)
{
	spin_us(us);
	sum++;
}

TRACED void phase_b(uint64_t us)
{
	spin_us(us);
	sum += 2;
}

TRACED void handle_request(uint64_t a_us, uint64_t b_us)
{
	phase_a(a_us);
	phase_b(b_us);
	sum++;
}

int main(int argc, char **argv)
{
	uint64_t first, second;

	if (argc != 3)
		return 2;
	first = strtoull(argv[1], NULL, 10);
	second = strtoull(argv[2], NULL, 10);
	signal(SIGTERM, on_stop);
	printf("pid %d\n", getpid());
	fflush(stdout);
	while (!stop) {
		for (int i = 0; i < 10 && !stop; i++) {
			handle_request(5000, 5000);
			usleep(1000);
		}
		handle_request(1000 * first, 1000 * second);
	}
	return 0;
}
