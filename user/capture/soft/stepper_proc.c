// SPDX-License-Identifier: MIT
/* What the stepper asks /proc about its target. */
#include "capture/soft/stepper_internal.h"

#include <inttypes.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "capture/soft/stepped.h"
#include "target/process.h"
#include "util/clock.h"

/* include/linux/errno.h: the kernel's own, never seen by a program. */
#define ERESTARTSYS	      512
#define ERESTART_RESTARTBLOCK 516

static bool same(const struct mapping *a, const struct mapping *b)
{
	return a->start == b->start && a->end == b->end && a->pgoff == b->pgoff &&
	       a->ino == b->ino && a->prot == b->prot && !strcmp(a->path, b->path);
}

static bool seen(const struct mappings *maps, const struct mapping *m)
{
	const struct mapping *old = mappings__find(maps, m->start);

	return old && same(old, m);
}

static void append(struct soft_shared *shared, const struct mapping *m, uint64_t now)
{
	struct soft_map *out;

	if (shared->n_maps == SOFT_MAX_MAPS) {
		shared->lost_maps++;
		return;
	}
	/* The kernel maps this page on the way to it, with no syscall to be seen: it was always
	 * there. */
	if (!strcmp(m->path, "[uprobes]") && shared->n_maps)
		now = shared->maps[0].time_ns;
	out = &shared->maps[shared->n_maps];
	*out = (struct soft_map){.time_ns = now,
				 .start = m->start,
				 .len = m->end - m->start,
				 .pgoff = m->pgoff,
				 .ino = m->ino,
				 .maj = m->maj,
				 .min = m->min};
	snprintf(out->path, sizeof(out->path), "%s", m->path);
	shared->n_maps++;
}

void stepper__scan_maps(struct stepper *s)
{
	uint64_t now = clock__now_ns();
	struct mappings maps;

	if (mappings__read(&maps, s->config->pid))
		return;
	for (size_t i = 0; i < maps.n; i++)
		if (maps.v[i].prot & PROT_EXEC && !seen(&s->maps, &maps.v[i]))
			append(s->shared, &maps.v[i], now);
	mappings__fini(&s->maps);
	s->maps = maps;
}

bool stepper__find_uprobes(struct stepper *s, uint64_t ip)
{
	const struct mapping *m = mappings__find(&s->maps, ip);

	if (!s->shared->uprobes_len || s->shared->uprobes_start)
		return false;
	if (!m) {
		stepper__scan_maps(s);
		m = mappings__find(&s->maps, ip);
	}
	if (!m || strcmp(m->path, "[uprobes]"))
		return false;
	s->shared->uprobes_start = m->start;
	return true;
}

void stepper__syscall_done(struct stepper *s, struct stepped *t)
{
	switch (t->syscall_nr) {
	case SYS_mmap:
	case SYS_mprotect:
	case SYS_munmap:
	case SYS_mremap:
	case SYS_pkey_mprotect:
		stepper__scan_maps(s);
		break;
	case SYS_prctl:
		/* PR_SET_NAME; once the thread has exited nobody can tell its name. */
		process__thread_name(s->config->pid, t->tid, t->out->comm);
	}
}

bool stepper__trap_pending(pid_t tid)
{
	char path[64], line[128];
	uint64_t pending = 0;
	FILE *status;

	snprintf(path, sizeof(path), "/proc/%d/status", tid);
	status = fopen(path, "re");
	if (!status)
		return false;
	while (fgets(line, sizeof(line), status))
		if (sscanf(line, "SigPnd: %" SCNx64, &pending) == 1)
			break;
	fclose(status);
	return pending & 1ull << (5 - 1); /* SIGTRAP */
}

bool stepper__rewind_syscall(struct user_regs_struct *regs)
{
	long result = (long)regs->rax;

	if ((long)regs->orig_rax < 0)
		return false;
	if (result > -ERESTARTSYS || result < -ERESTART_RESTARTBLOCK)
		return false;
	regs->rip -= 2;
	return true;
}
