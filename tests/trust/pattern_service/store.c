// SPDX-License-Identifier: MIT
#include "service.h"

#include <poll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

static void lock_page(struct service *s)
{
	pthread_mutex_lock(&s->lock);
	s->sum++;
	pthread_mutex_unlock(&s->lock);
}

void update_index(struct service *s)
{
	lock_page(s);
	s->sum ^= 1;
}

static char read_block(struct service *s)
{
	char c = 0;

	if (read(s->to_us[0], &c, 1) != 1)
		s->sum++;
	return c;
}

static void fill_buffer(struct service *s)
{
	s->sum += (uint64_t)read_block(s);
}

void fetch_row(struct service *s)
{
	fill_buffer(s);
	s->sum ^= 2;
}

static char receive_frame(struct service *s)
{
	char c = 0;

	if (recv(s->tcp[0], &c, 1, 0) != 1)
		s->sum++;
	return c;
}

void ask_peer(struct service *s)
{
	s->sum += (uint64_t)receive_frame(s);
	s->sum ^= 4;
}

static uint64_t mix(uint64_t x)
{
	x ^= x >> 33;
	x *= 0xff51afd7ed558ccd;
	return x ^ x >> 33;
}

static uint64_t score_one(uint64_t seed)
{
	for (int i = 0; i < 2000; i++)
		seed = mix(seed + (uint64_t)i);
	return seed;
}

void score_all(struct service *s, uint64_t ns)
{
	uint64_t end = clock_ns(CLOCK_THREAD_CPUTIME_ID) + ns;

	do
		for (int i = 0; i < 20; i++)
			s->sum = score_one(s->sum);
	while (clock_ns(CLOCK_THREAD_CPUTIME_ID) < end);
}

void await_quorum(struct service *s)
{
	struct pollfd nobody = {.fd = s->to_us[0], .events = POLLIN};

	s->sum += (uint64_t)poll(&nobody, 1, 50);
}
