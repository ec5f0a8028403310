/* SPDX-License-Identifier: MIT */
/* A service with five causes of slowness, in two files: -flto makes one of them. */
#ifndef MTBPF_PATTERN_SERVICE_H
#define MTBPF_PATTERN_SERVICE_H

#include <pthread.h>
#include <stdint.h>

struct service {
	pthread_mutex_t lock;
	int to_helper[2], to_us[2]; /* pipes */
	int tcp[2];		    /* our end, and the helper's */
	uint64_t sum;
};

uint64_t clock_ns(int clock);
void tell_helper(struct service *s, char what);
/* store.c: each takes as long as the helper, or the work, does. */
void update_index(struct service *s);
void fetch_row(struct service *s);
void ask_peer(struct service *s);
void score_all(struct service *s, uint64_t ns);
void await_quorum(struct service *s);

#endif
