/* SPDX-License-Identifier: MIT */
/* The processes there are: to find one by its name, or to pick one. */
#ifndef MTBPF_TARGET_PROCESS_LIST_H
#define MTBPF_TARGET_PROCESS_LIST_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "target/process.h"

struct process_entry {
	pid_t pid;
	char comm[PROCESS_COMM_SIZE];
	char *program; /* the base name of its file; "" where that may not be seen */
	char *command; /* its arguments, with blanks between; "" where it has none */
};

struct process_list {
	struct process_entry *v; /* ascending by pid */
	size_t n, cap;
};

/*
 * Every process that may be traced: kernel threads, zombies and this process itself are left out.
 * 0 or -errno; process_list__fini() in any case.
 */
int process_list__read(struct process_list *list);
void process_list__fini(struct process_list *list);

/* Whether its comm, or its program's base name, matches (fnmatch(3)). */
bool process_entry__matches(const struct process_entry *entry, const char *glob);

#endif
