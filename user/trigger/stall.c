// SPDX-License-Identifier: MIT
#include "trigger/stall.h"

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "kernel/kernel.h"
#include "threads.skel.h"
#include "trigger.skel.h"
#include "trigger/trigger.h"
#include "trigger/trigger_internal.h"
#include "util/cleanup.h"
#include "util/log.h"
#include "util/vec.h"

/* Returns the member's offset in bytes, also in an unnamed struct; -1 if it is missing. */
static int64_t offset_in(const struct btf *btf, uint32_t type, const char *name)
{
	const struct btf_type *t = btf__type_by_id(btf, type);
	const struct btf_member *m;

	while (t && (btf_is_mod(t) || btf_is_typedef(t)))
		t = btf__type_by_id(btf, t->type);
	if (!t || !btf_is_composite(t))
		return -1;
	m = btf_members(t);
	for (uint32_t i = 0; i < btf_vlen(t); i++) {
		const char *own = btf__name_by_offset(btf, m[i].name_off);
		int64_t at = btf_member_bit_offset(t, i) / 8, inner;

		if (own && *own && !strcmp(own, name))
			return at;
		inner = own && *own ? -1 : offset_in(btf, m[i].type, name);
		if (inner >= 0)
			return at + inner;
	}
	return -1;
}

int task_offsets__find(struct mt_task_offsets *offsets)
{
	const struct {
		const char *type, *name;
		uint32_t *to;
		bool may_lack;
	} wanted[] = {
		{"task_struct", "pid", &offsets->pid, false},
		{"task_struct", "flags", &offsets->flags, false},
		{"task_struct", "__state", &offsets->state, false},
		{"task_struct", "ptrace", &offsets->ptrace, false},
		{"task_struct", "jobctl", &offsets->jobctl, false},
		{"task_struct", "signal", &offsets->signal, false},
		{"signal_struct", "flags", &offsets->signal_flags, false},
		{"task_struct", "tgid", &offsets->tgid, false},
		{"task_struct", "stack", &offsets->stack, false},
		/*
		 * These are missing in a kernel without cgroups, whose target cannot be a cgroup.
		 */
		{"task_struct", "cgroups", &offsets->cgroups, true},
		{"css_set", "dfl_cgrp", &offsets->css_cgroup, true},
		{"cgroup", "level", &offsets->cgroup_level, true},
		{"cgroup", "ancestors", &offsets->cgroup_ancestors, true},
		{"cgroup", "kn", &offsets->cgroup_node, true},
		{"kernfs_node", "id", &offsets->node_id, true},
	};
	struct btf *btf = btf__load_vmlinux_btf();
	int err = libbpf_get_error(btf) ? -ENOTSUP : 0;

	for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]) && !err; i++) {
		int32_t type = btf__find_by_name_kind(btf, wanted[i].type, BTF_KIND_STRUCT);
		int64_t at = type > 0 ? offset_in(btf, (uint32_t)type, wanted[i].name) : -1;

		if (at >= 0)
			*wanted[i].to = (uint32_t)at;
		else if (!wanted[i].may_lack)
			err = -ENOTSUP;
	}
	if (!libbpf_get_error(btf))
		btf__free(btf);
	return err;
}

int task_offsets__find_fsbase(uint32_t *offset)
{
	struct btf *btf = btf__load_vmlinux_btf();
	int64_t thread, fsbase;
	int32_t task, type;

	if (libbpf_get_error(btf))
		return -ENOTSUP;
	task = btf__find_by_name_kind(btf, "task_struct", BTF_KIND_STRUCT);
	type = btf__find_by_name_kind(btf, "thread_struct", BTF_KIND_STRUCT);
	thread = task > 0 ? offset_in(btf, (uint32_t)task, "thread") : -1;
	fsbase = type > 0 ? offset_in(btf, (uint32_t)type, "fsbase") : -1;
	btf__free(btf);
	if (thread < 0 || fsbase < 0)
		return -ENOTSUP;
	*offset = (uint32_t)(thread + fsbase);
	return 0;
}

struct thread_reader {
	struct threads_bpf *skel;
	int link;
};

static int load(struct thread_reader *reader, pid_t tgid)
{
	uint64_t dev, ino;
	int err;

	reader->skel = threads_bpf__open();
	if (!reader->skel)
		return -errno;
	reader->skel->rodata->wanted_tgid = (uint32_t)tgid;
	if (pid_namespace__is_own(&dev, &ino))
		reader->skel->rodata->own_ns_ino = (uint32_t)ino;
	err = threads_bpf__load(reader->skel);
	if (err)
		return err;
	reader->link = bpf_link_create(bpf_program__fd(reader->skel->progs.list_threads), 0,
				       BPF_TRACE_ITER, NULL);
	return reader->link < 0 ? -errno : 0;
}

struct thread_reader *thread_reader__new(pid_t tgid)
{
	struct thread_reader *reader = calloc(1, sizeof(*reader));
	int err;

	if (!reader)
		return NULL;
	reader->link = -1;
	libbpf_set_print(trigger__print_libbpf);
	err = load(reader, tgid);
	if (!err)
		return reader;
	thread_reader__free(reader);
	errno = -err;
	return NULL;
}

void thread_reader__free(struct thread_reader *reader)
{
	if (!reader)
		return;
	if (reader->link >= 0)
		close(reader->link);
	threads_bpf__destroy(reader->skel);
	free(reader);
}

/* The kernel gives whole entries, as many as fit. */
#define AT_ONCE 64

int thread_reader__read(struct thread_reader *reader, struct mt_thread **threads, size_t *n)
{
	_cleanup_close_ int fd = bpf_iter_create(reader->link);
	VEC(struct mt_thread) all = {0};
	struct mt_thread some[AT_ONCE];
	ssize_t got = fd < 0 ? -1 : 1;
	int err = fd < 0 ? -errno : 0;

	while (!err && got > 0) {
		got = read(fd, some, sizeof(some));
		if (got < 0 && errno != EAGAIN)
			err = -errno;
		else if (got < 0)
			got = 1;
		else
			for (size_t i = 0; i < (size_t)got / sizeof(some[0]) && !err; i++)
				err = VEC_ADD(&all, some[i]);
	}
	if (err)
		VEC_FINI(&all);
	*threads = all.v;
	*n = all.n;
	return err;
}

/* As struct open_stall of bpf/stall.bpf.h begins. */
static bool is_of(const struct bpf_map *map, const struct mt_hit *question)
{
	uint64_t value[32];

	return bpf_map__value_size(map) <= sizeof(value) &&
	       !bpf_map_lookup_elem(bpf_map__fd(map), &question->tid, value) &&
	       value[0] == question->time_ns;
}

void trigger__answer(struct trigger *trigger, const struct mt_hit *question, bool is_open)
{
	const struct bpf_map *map = trigger->skel->maps.open_stalls;

	if (is_open && question->sequence - 1 < MT_ANSWERS)
		trigger->skel->bss->stall_answers[question->sequence - 1] = question->time_ns;
	else if (!is_open && is_of(map, question))
		bpf_map_delete_elem(bpf_map__fd(map), &question->tid);
}
