/* SPDX-License-Identifier: MIT */
/* Some processes, by pid. */
#ifndef MTBPF_TARGET_PID_SET_H
#define MTBPF_TARGET_PID_SET_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct pid_set {
	pid_t *v; /* ascending, each once */
	size_t n, cap;
};

void pid_set__fini(struct pid_set *set);

/* 0, also where it is in it already, or -ENOMEM. */
int pid_set__add(struct pid_set *set, pid_t pid);
/* Nothing where it is not in it. */
void pid_set__remove(struct pid_set *set, pid_t pid);
bool pid_set__has(const struct pid_set *set, pid_t pid);
/* 0 or -ENOMEM: `to` then has some of them. */
int pid_set__add_all(struct pid_set *to, const struct pid_set *from);

/*
 * Adds those of a text like "17,4,19". 0; -EINVAL: something in it is no whole number; -ERANGE: one
 * is too large; -ENOMEM. Zeroes are left out.
 */
int pid_set__parse(struct pid_set *set, const char *text);

#endif
