// SPDX-License-Identifier: MIT
/* What /proc says of the processes that are recorded; the sideband tells of what comes later. */
#include "capture/pt/pt_source.h"

#include <errno.h>
#include <stdlib.h>

#include "capture/recording/process_note.h"
#include "target/process.h"

int pt_source__note_initial(struct source *s)
{
	int err = 0;

	for (size_t i = 0; i < s->rings.n && !err && !s->config.cgroup; i++)
		err = process_note__thread(&s->followed.pending, s->rings.v[i].pid,
					   s->rings.v[i].place.pid, s->first.perf_ns);
	return err ? err : followed__note(&s->followed, &s->config, s->first.perf_ns);
}

int pt_source__note_joined(struct source *s)
{
	int err = 0;

	for (size_t i = 0; i < s->followed.sideband.joined.n && !err; i++) {
		const struct rec_thread *t = &s->followed.sideband.joined.v[i];

		if (!followed__knows(&s->followed, t->pid))
			err = followed__note_process(&s->followed, t->pid, t->start_ns);
		else if (!recording__find_thread(&s->followed.pending, t->pid, t->tid))
			err = process_note__thread(&s->followed.pending, t->pid, t->tid,
						   t->start_ns);
	}
	s->followed.sideband.joined.n = 0;
	return err;
}
