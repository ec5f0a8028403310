// SPDX-License-Identifier: MIT
#include "capture/recording/process_note.h"

#include <sys/mman.h>

#include "target/process.h"

int process_note__thread(struct recording *rec, pid_t pid, pid_t tid, uint64_t time_ns)
{
	struct rec_thread thread = {.pid = pid, .tid = tid, .start_ns = time_ns};

	process__thread_name(pid, tid, thread.comm);
	return recording__add_thread(rec, &thread);
}

struct rec_map process_note__map(pid_t pid, const struct mapping *m, uint64_t time_ns)
{
	return (struct rec_map){.time_ns = time_ns,
				.start = m->start,
				.len = m->end - m->start,
				.pgoff = m->pgoff,
				.ino = m->ino,
				.maj = m->maj,
				.min = m->min,
				.pid = pid,
				.tid = pid,
				.path = m->path};
}

int process_note__maps(struct recording *rec, pid_t pid, uint64_t time_ns)
{
	struct mappings maps;
	int err = mappings__read(&maps, pid);

	if (err)
		return err;
	for (size_t i = 0; i < maps.n && !err; i++) {
		const struct mapping *m = &maps.v[i];
		struct rec_map map = process_note__map(pid, m, time_ns);

		if (m->prot & PROT_EXEC)
			err = recording__add_map(rec, &map);
	}
	mappings__fini(&maps);
	return err;
}
