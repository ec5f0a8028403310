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
#include "trigger/trigger_internal.h"
#include "util/cleanup.h"
#include "util/log.h"
#include "util/vec.h"

const struct btf *kernel_btf(void)
{
	static struct btf *btf;

	if (!btf)
		btf = btf__load_vmlinux_btf();
	return btf;
}

static bool find_in(const struct btf *btf, const struct btf_type *type, const char *member,
		    uint32_t *offset)
{
	const struct btf_member *m = btf_members(type);

	for (uint32_t i = 0; i < btf_vlen(type); i++) {
		uint32_t at = btf_member_bit_offset(type, i) / 8, inner = 0;
		const char *name = btf__name_by_offset(btf, m[i].name_off);
		const struct btf_type *of;

		if (name && !strcmp(name, member)) {
			*offset = at;
			return true;
		}
		of = btf__type_by_id(btf, (uint32_t)btf__resolve_type(btf, m[i].type));
		if ((name && *name) || !of || !btf_is_composite(of) ||
		    !find_in(btf, of, member, &inner))
			continue;
		*offset = at + inner;
		return true;
	}
	return false;
}

bool kernel_btf__find(const char *of, const char *member, uint32_t *offset)
{
	const struct btf *btf = kernel_btf();
	int id = btf ? btf__find_by_name_kind(btf, of, BTF_KIND_STRUCT) : -1;
	const struct btf_type *type = id < 0 ? NULL : btf__type_by_id(btf, (uint32_t)id);

	return type && find_in(btf, type, member, offset);
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

	if (!kernel_btf())
		return -ENOTSUP;
	for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++)
		if (!kernel_btf__find(wanted[i].type, wanted[i].name, wanted[i].to) &&
		    !wanted[i].may_lack)
			return -ENOTSUP;
	return 0;
}

int task_offsets__find_fsbase(uint32_t *offset)
{
	uint32_t thread, fsbase;

	if (!kernel_btf__find("task_struct", "thread", &thread) ||
	    !kernel_btf__find("thread_struct", "fsbase", &fsbase))
		return -ENOTSUP;
	*offset = thread + fsbase;
	return 0;
}

struct thread_reader {
	struct threads_bpf *skel;
	int link;
};

struct thread_reader *thread_reader__new(pid_t tgid)
{
	struct thread_reader *reader = calloc(1, sizeof(*reader));
	uint64_t dev, ino;
	int err;

	if (!reader)
		return NULL;
	reader->link = -1;
	libbpf_set_print(trigger__print_libbpf);
	reader->skel = threads_bpf__open();
	if (!reader->skel) {
		err = -errno;
		goto fail;
	}
	reader->skel->rodata->wanted_tgid = (uint32_t)tgid;
	if (pid_namespace__is_own(&dev, &ino))
		reader->skel->rodata->own_ns_ino = (uint32_t)ino;
	err = threads_bpf__load(reader->skel);
	if (err)
		goto fail;
	reader->link = bpf_link_create(bpf_program__fd(reader->skel->progs.list_threads), 0,
				       BPF_TRACE_ITER, NULL);
	if (reader->link >= 0)
		return reader;
	err = -errno;
fail:
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

/*
 * Threads to read at once. The kernel's iterator cuts what it returns at the buffer's end, so this
 * buffer holds whole entries.
 */
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
