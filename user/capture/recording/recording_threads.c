// SPDX-License-Identifier: MIT
/* The threads of a recording, and what they begin with. */
#include "capture/recording/recording.h"

#include <errno.h>
#include <string.h>

#include "util/label.h"

const struct rec_thread *recording__find_thread(const struct recording *rec, pid_t pid, pid_t tid)
{
	for (size_t i = 0; i < rec->threads.n; i++)
		if (rec->threads.v[i].pid == pid && rec->threads.v[i].tid == tid)
			return &rec->threads.v[i];
	return NULL;
}

int recording__add_thread(struct recording *rec, const struct rec_thread *thread)
{
	struct rec_thread *out =
		(struct rec_thread *)recording__find_thread(rec, thread->pid, thread->tid);

	if (out) {
		memcpy(out->comm, thread->comm, sizeof(out->comm));
	} else {
		out = VEC_PUSH(&rec->threads);
		if (!out)
			return -ENOMEM;
		*out = *thread;
	}
	label__clean_in_place(out->comm);
	return 0;
}

int recording__add_fork(struct recording *rec, const struct rec_thread *child, pid_t parent_pid,
			pid_t parent_tid)
{
	const struct rec_thread *parent = recording__find_thread(rec, parent_pid, parent_tid);
	struct rec_thread named = *child;
	size_t n = child->pid == parent_pid ? 0 : rec->maps.n;
	int err;

	if (parent)
		memcpy(named.comm, parent->comm, sizeof(named.comm));
	err = recording__add_thread(rec, &named);
	/* What is added comes behind all that are copied. */
	for (size_t i = 0; i < n && !err && rec->maps.v[i].time_ns <= child->start_ns; i++) {
		struct rec_map map = rec->maps.v[i];

		if (map.pid != parent_pid)
			continue;
		map.pid = map.tid = child->pid;
		map.time_ns = child->start_ns;
		err = recording__add_map(rec, &map);
	}
	return err;
}
