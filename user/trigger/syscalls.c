// SPDX-License-Identifier: MIT
#include "trigger/syscalls.h"

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "trigger.skel.h"
#include "util/log.h"
#include "util/vec.h"

/* A program that runs at one place. */
struct attached {
	int program; /* -1: it is the skeleton's */
	int link;
	bool is_end;
};

struct trigger_syscalls {
	VEC(struct attached) all;
};

#define ENDS (MT_SYSCALL_RETURNS | MT_SYSCALL_STOPS)

/* The kernel's functions where their names are others. */
static const char *const other_names[][2] = {
	{"sendfile", "sendfile64"}, {"fstat", "newfstat"}, {"stat", "newstat"},
	{"lstat", "newlstat"},	    {"uname", "newuname"},
};

static void name_function(const char *name, char function[static 64])
{
	for (size_t i = 0; i < sizeof(other_names) / sizeof(other_names[0]); i++)
		if (!strcmp(name, other_names[i][0]))
			name = other_names[i][1];
	snprintf(function, 64, "__x64_sys_%s", name);
}

/* It takes a tenth of a second to read, and stays as it is. */
static const struct btf *kernel_btf(void)
{
	static struct btf *btf;

	if (!btf)
		btf = btf__load_vmlinux_btf();
	return btf;
}

/* The number of the function that does it; or -errno. */
static int find_function(const char *name)
{
	const struct btf *btf = kernel_btf();
	char function[64];

	name_function(name, function);
	return btf ? btf__find_by_name_kind(btf, function, BTF_KIND_FUNC) : -EOPNOTSUPP;
}

/* Of a member, also of a struct without a name in it. False: there is none. */
static bool find_in(const struct btf *btf, const struct btf_type *type, const char *member,
		    uint32_t *offset)
{
	const struct btf_member *m = btf_members(type);

	for (uint32_t i = 0; i < btf_vlen(type); i++) {
		uint32_t at = btf_member_bit_offset(type, i) / 8, inner = 0;
		const char *name = btf__name_by_offset(btf, m[i].name_off);
		const struct btf_type *of;

		if (!strcmp(name, member)) {
			*offset = at;
			return true;
		}
		of = btf__type_by_id(btf, (uint32_t)btf__resolve_type(btf, m[i].type));
		if (*name || !of || !btf_is_composite(of) || !find_in(btf, of, member, &inner))
			continue;
		*offset = at + inner;
		return true;
	}
	return false;
}

static bool find_offset(const char *of, const char *member, uint32_t *offset)
{
	const struct btf *btf = kernel_btf();
	int id = btf ? btf__find_by_name_kind(btf, of, BTF_KIND_STRUCT) : -1;
	const struct btf_type *type = id < 0 ? NULL : btf__type_by_id(btf, (uint32_t)id);

	return type && find_in(btf, type, member, offset);
}

static int find_offsets(struct mt_file_offsets *o)
{
	uint32_t path = 0, dentry = 0, name = 0, text = 0;
	bool are_found =
		find_offset("task_struct", "files", &o->task_files) &&
		find_offset("files_struct", "fdt", &o->files_fdt) &&
		find_offset("fdtable", "fd", &o->fdt_fd) &&
		find_offset("fdtable", "max_fds", &o->fdt_max) &&
		find_offset("file", "f_inode", &o->file_inode) &&
		find_offset("file", "f_path", &path) && find_offset("path", "dentry", &dentry) &&
		find_offset("dentry", "d_name", &name) && find_offset("qstr", "name", &text) &&
		find_offset("inode", "i_mode", &o->inode_mode) &&
		find_offset("inode", "i_rdev", &o->inode_rdev) &&
		find_offset("inode", "i_sb", &o->inode_sb) &&
		find_offset("super_block", "s_magic", &o->sb_magic);

	o->file_dentry = path + dentry;
	o->dentry_name = name + text;
	return are_found ? 0 : -EOPNOTSUPP;
}

static int refuse_kinds(void)
{
	log__error("this kernel tells no types (BTF), by which a descriptor's kind is found");
	log__hint("leave the kind out, as in syscall:read; it needs CONFIG_DEBUG_INFO_BTF, and "
		  "/sys/kernel/btf/vmlinux to be readable");
	return -EOPNOTSUPP;
}

int trigger_syscalls__select(struct trigger_bpf *skel, const struct trigger_config *config,
			     enum trigger_latch latch)
{
	struct mt_file_offsets offsets = {0};

	bpf_program__set_autoload(skel->progs.on_syscall, config->syscalls);
	bpf_program__set_autoload(skel->progs.on_syscall_return, config->syscalls);
	bpf_map__set_autocreate(skel->maps.probed_syscalls, config->syscalls);
	if (config->file_kinds && find_offsets(&offsets))
		return refuse_kinds();
	skel->rodata->file_offsets = offsets;
	skel->rodata->syscalls_use_lru = latch == TRIGGER_LATCH_LRU_HASH;
	return 0;
}

static bool is_at_return(const struct trigger_syscall *syscall)
{
	return syscall->what.roles & (MT_SYSCALL_RETURNS | MT_SYSCALL_STARTS);
}

static const struct bpf_program *program_at(const struct trigger_bpf *skel, bool at_return)
{
	return at_return ? skel->progs.on_syscall_return : skel->progs.on_syscall;
}

/* A copy of the loaded program, for this system call's function. Its descriptor or -errno. */
static int load_copy(const struct bpf_program *program, const char *name, enum bpf_attach_type type)
{
	LIBBPF_OPTS(bpf_prog_load_opts, opts, .expected_attach_type = type);
	int id = find_function(name), fd;

	if (id < 0)
		return id;
	opts.attach_btf_id = (uint32_t)id;
	fd = bpf_prog_load(BPF_PROG_TYPE_TRACING, bpf_program__name(program), "Dual MIT/GPL",
			   bpf_program__insns(program), bpf_program__insn_cnt(program), &opts);
	return fd < 0 ? -errno : fd;
}

/* On its function alone: others cost nothing then. */
static int attach_function(struct trigger_syscalls *syscalls, const struct trigger_bpf *skel,
			   const struct trigger_syscall *syscall)
{
	bool at_return = is_at_return(syscall);
	enum bpf_attach_type type = at_return ? BPF_TRACE_FEXIT : BPF_TRACE_FENTRY;
	int program = load_copy(program_at(skel, at_return), syscall->name, type);
	struct attached *attached;

	if (program < 0)
		return program;
	attached = VEC_PUSH(&syscalls->all);
	if (!attached) {
		close(program);
		return -ENOMEM;
	}
	*attached = (struct attached){.program = program, .is_end = syscall->what.roles & ENDS};
	attached->link = bpf_link_create(program, 0, type, NULL);
	return attached->link < 0 ? -errno : 0;
}

static int attach_tracepoint(struct trigger_syscalls *syscalls, const struct trigger_bpf *skel,
			     bool at_return)
{
	struct attached *attached = VEC_PUSH(&syscalls->all);

	if (!attached)
		return -ENOMEM;
	*attached = (struct attached){.program = -1, .is_end = at_return};
	attached->link = bpf_raw_tracepoint_open(at_return ? "sys_exit" : "sys_enter",
						 bpf_program__fd(program_at(skel, at_return)));
	return attached->link < 0 ? -errno : 0;
}

static void explain(int err)
{
	log__error("cannot set a probe on system calls: %s", strerror(-err));
	if (err == -EPERM || err == -EACCES)
		log__hint("needs CAP_BPF and CAP_PERFMON, or root");
	else
		log__hint("the kernel needs CONFIG_FTRACE_SYSCALLS");
}

static void close_those(struct trigger_syscalls *syscalls, bool ends)
{
	for (size_t i = 0; i < syscalls->all.n; i++) {
		struct attached *attached = &syscalls->all.v[i];

		if (attached->is_end != ends)
			continue;
		if (attached->link >= 0)
			close(attached->link);
		if (attached->program >= 0)
			close(attached->program);
		attached->link = attached->program = -1;
	}
}

static void close_all(struct trigger_syscalls *syscalls)
{
	close_those(syscalls, false);
	close_those(syscalls, true);
	syscalls->all.n = 0;
}

static int attach_functions(struct trigger_syscalls *syscalls, const struct trigger_bpf *skel,
			    const struct trigger_syscall *all, size_t n)
{
	int err = 0;

	for (int ends = 1; ends >= 0 && !err; ends--)
		for (size_t i = 0; i < n && !err; i++)
			if (!(all[i].what.roles & ENDS) == !ends)
				err = attach_function(syscalls, skel, &all[i]);
	if (err)
		close_all(syscalls);
	return err;
}

static bool is_any_at(const struct trigger_syscall *all, size_t n, bool at_return)
{
	for (size_t i = 0; i < n; i++)
		if (is_at_return(&all[i]) == at_return)
			return true;
	return false;
}

/* Where the kernel has no fentry: on all system calls of the machine. */
static int attach_tracepoints(struct trigger_syscalls *syscalls, const struct trigger_bpf *skel,
			      const struct trigger_syscall *all, size_t n)
{
	int err = is_any_at(all, n, true) ? attach_tracepoint(syscalls, skel, true) : 0;

	if (!err && is_any_at(all, n, false))
		err = attach_tracepoint(syscalls, skel, false);
	return err;
}

/* One system call may have several roles. */
static int fill_map(int map, const struct trigger_syscall *all, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		struct mt_syscall what = all[i].what, before;
		uint32_t key = (uint32_t)all[i].number;

		if (!bpf_map_lookup_elem(map, &key, &before))
			what.roles |= before.roles;
		if (bpf_map_update_elem(map, &key, &what, BPF_ANY))
			return -errno;
	}
	return 0;
}

static int attach(struct trigger_syscalls *syscalls, const struct trigger_bpf *skel,
		  const struct trigger_syscall *all, size_t n)
{
	int err = fill_map(bpf_map__fd(skel->maps.probed_syscalls), all, n);

	if (err)
		return err;
	err = attach_functions(syscalls, skel, all, n);
	if (!err)
		return 0;
	log__info("system calls: this kernel takes no probes on its functions (%s), so that each "
		  "system call of every process costs a little while they are set",
		  strerror(-err));
	return attach_tracepoints(syscalls, skel, all, n);
}

struct trigger_syscalls *trigger_syscalls__attach(const struct trigger_bpf *skel,
						  const struct trigger_syscall *all, size_t n)
{
	struct trigger_syscalls *syscalls = calloc(1, sizeof(*syscalls));
	int err = syscalls ? attach(syscalls, skel, all, n) : -ENOMEM;

	if (!err)
		return syscalls;
	explain(err);
	trigger_syscalls__free(syscalls);
	errno = -err;
	return NULL;
}

void trigger_syscalls__free(struct trigger_syscalls *syscalls)
{
	if (!syscalls)
		return;
	close_all(syscalls);
	VEC_FINI(&syscalls->all);
	free(syscalls);
}

/* Of the skeleton's programs the trigger asks itself. */
uint64_t trigger_syscalls__missed(const struct trigger_syscalls *syscalls)
{
	uint64_t missed = 0;

	for (size_t i = 0; syscalls && i < syscalls->all.n; i++) {
		struct bpf_prog_info info = {0};
		uint32_t size = sizeof(info);

		if (syscalls->all.v[i].program >= 0 &&
		    !bpf_obj_get_info_by_fd(syscalls->all.v[i].program, &info, &size))
			missed += info.recursion_misses;
	}
	return missed;
}
