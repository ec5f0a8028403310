// SPDX-License-Identifier: MIT
/*
 * service LOG: an iteration for each line of stdin, which names its cause, or "quick". LOG gets a
 * line for each: the cause, and the iteration's nanoseconds by this program's own clock.
 */
#include "service.h"

#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include "../../programs/loopback.h"

uint64_t clock_ns(int clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

void tell_helper(struct service *s, char what)
{
	if (write(s->to_helper[1], &what, 1) != 1)
		_exit(1);
}

static void sleep_ms(int ms)
{
	struct timespec t = {.tv_nsec = ms * 1000000l};

	nanosleep(&t, NULL);
}

static void *help(void *arg)
{
	struct service *s = arg;
	char what;

	prctl(PR_SET_NAME, "helper");
	while (read(s->to_helper[0], &what, 1) == 1) {
		if (what == 'l') {
			pthread_mutex_lock(&s->lock);
			/* The lock is taken: the service may go on to wait for it. */
			if (write(s->to_us[1], "", 1) != 1)
				return NULL;
			sleep_ms(30);
			pthread_mutex_unlock(&s->lock);
		} else if (what == 'r') {
			sleep_ms(40);
			if (write(s->to_us[1], "", 1) != 1)
				return NULL;
		} else {
			sleep_ms(60);
			if (write(s->tcp[1], "", 1) != 1)
				return NULL;
		}
	}
	return NULL;
}

static void choose(struct service *s, const char *cause)
{
	if (!strcmp(cause, "lock"))
		update_index(s);
	else if (!strcmp(cause, "read"))
		fetch_row(s);
	else if (!strcmp(cause, "tcp"))
		ask_peer(s);
	else if (!strcmp(cause, "poll"))
		await_quorum(s);
	else
		score_all(s, strcmp(cause, "work") ? 200000 : 90000000);
}

/* The request: mtbpf measures its calls. */
__attribute__((noipa)) void serve_request(struct service *s, const char *cause)
{
	choose(s, cause);
	s->sum++;
}

int main(int argc, char **argv)
{
	struct service s = {.lock = PTHREAD_MUTEX_INITIALIZER};
	FILE *log = argc > 1 ? fopen(argv[1], "w") : NULL;
	char line[64], c;
	pthread_t helper;

	if (!log || pipe(s.to_helper) || pipe(s.to_us) || connect_tcp(s.tcp) < 0 ||
	    pthread_create(&helper, NULL, help, &s))
		return 1;
	puts("ready");
	fflush(stdout);
	while (fgets(line, sizeof(line), stdin)) {
		uint64_t begin;

		line[strcspn(line, "\n")] = '\0';
		if (strchr("lrt", line[0]))
			tell_helper(&s, line[0]);
		if (line[0] == 'l' && read(s.to_us[0], &c, 1) != 1)
			return 1;
		begin = clock_ns(CLOCK_MONOTONIC);
		serve_request(&s, line);
		fprintf(log, "%s %llu\n", line,
			(unsigned long long)(clock_ns(CLOCK_MONOTONIC) - begin));
		fflush(log);
	}
	return 0;
}
