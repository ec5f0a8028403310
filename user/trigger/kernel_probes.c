// SPDX-License-Identifier: MIT
#include "trigger/kernel_probes.h"

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "trigger.skel.h"
#include "util/cleanup.h"
#include "util/fs.h"
#include "util/log.h"
#include "util/vec.h"

/* A program that runs at one place. */
struct attached {
	int program; /* -1: the skeleton's program */
	int link;    /* -1: none, or: */
	struct bpf_link *kprobe;
	bool is_end;
};

static const struct attached none_attached = {.program = -1, .link = -1};

struct kernel_probes {
	VEC(struct attached) all;
	int fentry_err; /* why functions are not probed by fentry; 0: they are */
};

struct kernel_probe_list {
	const struct kernel_probe *v;
	size_t n;
};

static struct attached *add_attached(struct kernel_probes *set, bool is_end)
{
	struct attached *attached = VEC_PUSH(&set->all);

	if (!attached)
		return NULL;
	*attached = none_attached;
	attached->is_end = is_end;
	return attached;
}

/* System calls whose function in the kernel has another name. */
static const char *const other_names[][2] = {
	{"sendfile", "sendfile64"}, {"fstat", "newfstat"}, {"stat", "newstat"},
	{"lstat", "newlstat"},	    {"uname", "newuname"},
};

static void name_function(const char *name, char function[static 160])
{
	for (size_t i = 0; i < sizeof(other_names) / sizeof(other_names[0]); i++)
		if (!strcmp(name, other_names[i][0]))
			name = other_names[i][1];
	snprintf(function, 160, "__x64_sys_%s", name);
}

/* Reading it takes a tenth of a second, so it is kept. */
static const struct btf *kernel_btf(void)
{
	static struct btf *btf;

	if (!btf)
		btf = btf__load_vmlinux_btf();
	return btf;
}

/* Finds a member, also in an unnamed struct inside it. False if it is missing. */
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
		find_offset("inode", "i_ino", &o->inode_ino) &&
		find_offset("inode", "i_sb", &o->inode_sb) &&
		find_offset("super_block", "s_magic", &o->sb_magic);

	o->file_dentry = path + dentry;
	o->dentry_name = name + text;
	return are_found ? 0 : -EOPNOTSUPP;
}

static int refuse_kinds(void)
{
	log__error("the kind of a descriptor cannot be found without the kernel's type information "
		   "(BTF)");
	log__hint("leave the kind out, as in syscall:read; it needs CONFIG_DEBUG_INFO_BTF, and "
		  "/sys/kernel/btf/vmlinux to be readable");
	return -EOPNOTSUPP;
}

static int select_syscall(struct trigger_bpf *skel, const struct kernel_probe *probe,
			  const struct trigger_config *config)
{

	struct mt_file_offsets offsets = {0};
	uint32_t info, status;

	if (find_offset("task_struct", "thread_info", &info) &&
	    find_offset("thread_info", "status", &status))
		skel->rodata->task_status_at = info + status;
	bpf_program__set_autoload(skel->progs.on_syscall, true);
	bpf_program__set_autoload(skel->progs.on_syscall_return, true);
	bpf_map__set_autocreate(skel->maps.probed_syscalls, true);
	if (probe->what.file_kind == MT_FILE_ANY)
		return 0;
	if (find_offsets(&offsets))
		return refuse_kinds();
	skel->rodata->file_offsets = offsets;
	return 0;
}

/* Without it, regions neither begin nor end in page faults: see is_called_by_thread(). */
static uint64_t page_fault_entry(void)
{
	static uint64_t entry;
	_cleanup_free_ char *text = NULL;
	size_t len;

	if (!entry && !fs__read("/proc/kallsyms", &text, &len))
		kallsyms__find(text, "asm_exc_page_fault", &entry);
	return entry;
}

static int select_function(struct trigger_bpf *skel, const struct kernel_probe *probe,
			   const struct trigger_config *config)
{
	if (probe->what.roles & (MT_ROLE_STARTS | MT_ROLE_STOPS))
		skel->rodata->page_fault_entry = page_fault_entry();
	switch (probe->what.roles) {
	case MT_ROLE_STARTS:
		bpf_program__set_autoload(skel->progs.on_function_start, true);
		bpf_program__set_autoload(skel->progs.on_function_start_fentry, true);
		break;
	case MT_ROLE_STOPS:
		bpf_program__set_autoload(skel->progs.on_function_stop, true);
		bpf_program__set_autoload(skel->progs.on_function_stop_fentry, true);
		skel->rodata->stop_function_probe = probe->what.probe;
		break;
	default:
		bpf_program__set_autoload(skel->progs.on_function, true);
		bpf_program__set_autoload(skel->progs.on_function_return, true);
		bpf_program__set_autoload(skel->progs.on_function_fentry, true);
		bpf_program__set_autoload(skel->progs.on_function_fexit, true);
		skel->rodata->function_probe = probe->what.probe;
	}
	return 0;
}

/*
 * Tracepoints that no interrupt comes to, although the thread may be there without a system call:
 * it is preempted, or a signal ends it.
 */
static bool is_of_thread(const char *tracepoint)
{
	return !strcmp(tracepoint, "sched_switch") || !strcmp(tracepoint, "signal_deliver") ||
	       !strcmp(tracepoint, "sched_process_exit");
}

static struct bpf_program *tracepoint_program(const struct trigger_bpf *skel, uint32_t roles)
{
	return roles == MT_ROLE_STARTS	? skel->progs.on_tracepoint_start
	       : roles == MT_ROLE_STOPS ? skel->progs.on_tracepoint_stop
					: skel->progs.on_tracepoint;
}

static struct bpf_program *signal_program(const struct trigger_bpf *skel, uint32_t roles)
{
	return roles == MT_ROLE_STARTS	? skel->progs.on_signal_start
	       : roles == MT_ROLE_STOPS ? skel->progs.on_signal_stop
					: skel->progs.on_signal;
}

static int select_tracepoint(struct trigger_bpf *skel, const struct kernel_probe *probe,
			     const struct trigger_config *config)
{
	struct bpf_program *program = tracepoint_program(skel, probe->what.roles);

	bpf_program__set_autoload(program, true);
	if (program == skel->progs.on_tracepoint) {
		skel->rodata->tracepoint_probe = probe->what.probe;
		return 0;
	}
	skel->rodata->page_fault_entry = page_fault_entry();
	if (program == skel->progs.on_tracepoint_start) {
		skel->rodata->start_tracepoint_is_own = is_of_thread(probe->name);
		return 0;
	}
	skel->rodata->stop_tracepoint_is_own = is_of_thread(probe->name);
	skel->rodata->stop_tracepoint_probe = probe->what.probe;
	return 0;
}

static int select_signal(struct trigger_bpf *skel, const struct kernel_probe *probe,
			 const struct trigger_config *config)
{
	struct bpf_program *program = signal_program(skel, probe->what.roles);

	bpf_program__set_autoload(program, true);
	if (program == skel->progs.on_signal_start) {
		skel->rodata->start_signals |= probe->signals;
	} else if (program == skel->progs.on_signal_stop) {
		skel->rodata->stop_signals |= probe->signals;
		skel->rodata->stop_signal_probe = probe->what.probe;
	} else {
		skel->rodata->signals |= probe->signals;
		skel->rodata->signal_probe = probe->what.probe;
	}
	return 0;
}

static int select_oom(struct trigger_bpf *skel, const struct kernel_probe *probe,
		      const struct trigger_config *config)
{

	uint64_t dev, ino;
	struct stat st;

	if (pid_namespace__is_own(&dev, &ino)) {
		log__error("%s: the OOM killer's victims are not known by the pids of this "
			   "container",
			   probe->name);
		log__hint("run mtbpf on the host");
		return -EOPNOTSUPP;
	}
	bpf_program__set_autoload(skel->progs.on_oom_victim, true);
	if (!config->of_cgroup)
		return 0;
	if (fstat(config->cgroup_fd, &st))
		return -errno;
	skel->rodata->oom_cgroup_id = st.st_ino;
	skel->rodata->oom_cgroup_level = (uint32_t)cgroup__level(config->cgroup_fd);
	return 0;
}

const struct bpf_program *kernel_probes__breakpoint(const struct trigger_bpf *skel, uint32_t roles)
{
	switch (roles) {
	case MT_ROLE_RETURNS:
		return skel->progs.on_breakpoint_return;
	case MT_ROLE_STARTS:
		return skel->progs.on_breakpoint_start;
	case MT_ROLE_STOPS:
		return skel->progs.on_breakpoint_stop;
	default:
		return skel->progs.on_breakpoint;
	}
}

static int select_breakpoint(struct trigger_bpf *skel, const struct kernel_probe *probe,
			     const struct trigger_config *config)
{
	bpf_program__set_autoload(
		(struct bpf_program *)kernel_probes__breakpoint(skel, probe->what.roles), true);
	return 0;
}

/* Regions begin at the return of a system call, and at the entry of a function. */
static bool is_at_return(const struct kernel_probe *probe)
{
	return probe->what.roles &
	       (probe->kind == KERNEL_PROBE_SYSCALL ? MT_ROLE_RETURNS | MT_ROLE_STARTS
						    : MT_ROLE_RETURNS);
}

static const struct bpf_program *program_at(const struct trigger_bpf *skel, bool at_return)
{
	return at_return ? skel->progs.on_syscall_return : skel->progs.on_syscall;
}

/*
 * Sets a copy of the loaded program on one function, by fentry or fexit, so that nothing else costs
 * more. 0 or -errno.
 */
static int attach_copy(struct kernel_probes *set, const struct bpf_program *program,
		       const char *function, const struct kernel_probe *probe)
{
	enum bpf_attach_type type = is_at_return(probe) ? BPF_TRACE_FEXIT : BPF_TRACE_FENTRY;
	LIBBPF_OPTS(bpf_prog_load_opts, opts, .expected_attach_type = type);
	const struct btf *btf = kernel_btf();
	int id = btf ? btf__find_by_name_kind(btf, function, BTF_KIND_FUNC) : -EOPNOTSUPP;
	struct attached *attached;

	if (id < 0)
		return id;
	attached = add_attached(set, kernel_probe__is_end(probe));
	if (!attached)
		return -ENOMEM;
	opts.attach_btf_id = (uint32_t)id;
	attached->program =
		bpf_prog_load(BPF_PROG_TYPE_TRACING, bpf_program__name(program), "Dual MIT/GPL",
			      bpf_program__insns(program), bpf_program__insn_cnt(program), &opts);
	if (attached->program < 0)
		return -errno;
	attached->link = bpf_link_create(attached->program, 0, type, NULL);
	return attached->link < 0 ? -errno : 0;
}

static int attach_raw(struct kernel_probes *set, const char *tracepoint,
		      const struct bpf_program *program, bool is_end)
{
	struct attached *attached = add_attached(set, is_end);

	if (!attached)
		return -ENOMEM;
	attached->link = bpf_raw_tracepoint_open(tracepoint, bpf_program__fd(program));
	return attached->link < 0 ? -errno : 0;
}

static void close_those(struct kernel_probes *set, size_t from, bool ends)
{
	for (size_t i = from; i < set->all.n; i++) {
		struct attached *attached = &set->all.v[i];

		if (attached->is_end != ends)
			continue;
		if (attached->link >= 0)
			close(attached->link);
		if (attached->program >= 0)
			close(attached->program);
		bpf_link__destroy(attached->kprobe);
		*attached = none_attached;
	}
}

/* Closes number `from` and those after it; the begins first, so that calls do not stay open. */
static void close_from(struct kernel_probes *set, size_t from)
{
	close_those(set, from, false);
	close_those(set, from, true);
	set->all.n = from;
}

/*
 * True if an earlier probe of the list, in the order of attach_each(), has set the program at the
 * same end of the same system call: the program does what all of them want.
 */
static bool is_repeated(const struct kernel_probe_list *list, size_t at)
{
	const struct kernel_probe *probe = &list->v[at];

	for (size_t i = 0; i < list->n; i++) {
		const struct kernel_probe *other = &list->v[i];

		if (i == at || other->kind != probe->kind || other->number != probe->number ||
		    is_at_return(other) != is_at_return(probe))
			continue;
		if (kernel_probe__is_end(other) == kernel_probe__is_end(probe)
			    ? i < at
			    : kernel_probe__is_end(other))
			return true;
	}
	return false;
}

/* Calls `attach` for each probe of the kind, ends first. If one fails, none of them is set. */
static int attach_each(struct kernel_probes *set, const struct trigger_bpf *skel,
		       const struct kernel_probe_list *list, enum kernel_probe_kind kind,
		       int (*attach)(struct kernel_probes *set, const struct trigger_bpf *skel,
				     const struct kernel_probe *probe))
{
	size_t before = set->all.n;
	int err = 0;

	for (int ends = 1; ends >= 0 && !err; ends--)
		for (size_t i = 0; i < list->n && !err; i++)
			if (list->v[i].kind == kind && kernel_probe__is_end(&list->v[i]) == ends &&
			    !(kind == KERNEL_PROBE_SYSCALL && is_repeated(list, i)))
				err = attach(set, skel, &list->v[i]);
	if (err)
		close_from(set, before);
	return err;
}

static int attach_syscall(struct kernel_probes *set, const struct trigger_bpf *skel,
			  const struct kernel_probe *probe)
{
	char function[160];

	name_function(probe->name, function);
	return attach_copy(set, program_at(skel, is_at_return(probe)), function, probe);
}

static bool is_any_at(const struct kernel_probe_list *list, bool at_return)
{
	for (size_t i = 0; i < list->n; i++)
		if (list->v[i].kind == KERNEL_PROBE_SYSCALL &&
		    is_at_return(&list->v[i]) == at_return)
			return true;
	return false;
}

/* Without fentry: at the tracepoints of all system calls of the machine. */
static int attach_to_all(struct kernel_probes *set, const struct trigger_bpf *skel,
			 const struct kernel_probe_list *list)
{
	int err = is_any_at(list, true) ? attach_raw(set, "sys_exit", program_at(skel, true), true)
					: 0;

	if (!err && is_any_at(list, false))
		err = attach_raw(set, "sys_enter", program_at(skel, false), false);
	return err;
}

/* A system call may have several roles, but the program compares one set of conditions. */
static int check_conditions(const struct kernel_probe_list *list)
{
	for (size_t i = 0; i < list->n; i++)
		for (size_t k = 0; k < i; k++) {
			const struct kernel_probe *a = &list->v[i], *b = &list->v[k];

			if (a->kind != KERNEL_PROBE_SYSCALL || b->kind != KERNEL_PROBE_SYSCALL ||
			    a->number != b->number ||
			    (a->what.file_kind == b->what.file_kind &&
			     a->what.nonzero == b->what.nonzero))
				continue;
			log__error("syscall:%s is named twice, with different conditions", a->name);
			log__hint("name it once; without a condition all of its calls count");
			return -EINVAL;
		}
	return 0;
}

/* One system call may have several roles. */
static int fill_map(int map, const struct kernel_probe_list *list)
{
	for (size_t i = 0; i < list->n; i++) {
		struct mt_syscall what = list->v[i].what, before;
		uint32_t key = (uint32_t)list->v[i].number;

		if (list->v[i].kind != KERNEL_PROBE_SYSCALL)
			continue;
		if (!bpf_map_lookup_elem(map, &key, &before))
			what.roles |= before.roles;
		if (bpf_map_update_elem(map, &key, &what, BPF_ANY))
			return -errno;
	}
	return 0;
}

static void hint_rights(int err, const char *otherwise)
{
	log__hint("%s", err == -EPERM || err == -EACCES ? "needs CAP_BPF and CAP_PERFMON, or root"
							: otherwise);
}

static int attach_syscalls(struct kernel_probes *set, const struct trigger_bpf *skel,
			   const struct kernel_probe_list *list)
{
	int err = check_conditions(list);

	if (err)
		return err;
	err = fill_map(bpf_map__fd(skel->maps.probed_syscalls), list);
	if (!err) {
		err = attach_each(set, skel, list, KERNEL_PROBE_SYSCALL, attach_syscall);
		if (!err)
			return 0;
		log__info(
			"system calls: this kernel takes no probes on its functions (%s), so "
			"that each system call of every process costs a little while they are set",
			strerror(-err));
		err = attach_to_all(set, skel, list);
	}
	if (err) {
		log__error("cannot set a probe on system calls: %s", strerror(-err));
		hint_rights(err, "the kernel needs CONFIG_FTRACE_SYSCALLS");
	}
	return err;
}

static int attach_fentry(struct kernel_probes *set, const struct trigger_bpf *skel,
			 const struct kernel_probe *probe)
{
	const struct bpf_program *program = skel->progs.on_function_fentry;

	if (probe->what.roles == MT_ROLE_RETURNS)
		program = skel->progs.on_function_fexit;
	else if (probe->what.roles == MT_ROLE_STARTS)
		program = skel->progs.on_function_start_fentry;
	else if (probe->what.roles == MT_ROLE_STOPS)
		program = skel->progs.on_function_stop_fentry;
	return attach_copy(set, program, probe->name, probe);
}

#define KPROBE_PMU "/sys/bus/event_source/devices/kprobe/type"

static int refuse_function(const struct kernel_probes *set, const struct kernel_probe *probe,
			   int err)
{
	if (access(KPROBE_PMU, F_OK)) {
		log__error("cannot set a probe on the kernel's function %s: no kprobes here "
			   "(CONFIG_KPROBES), and fentry fails: %s",
			   probe->name, strerror(-set->fentry_err));
		log__hint("name a tracepoint instead, as in " TRACEPOINT_PREFIX
			  "block:block_rq_issue, or a system call");
		return -EOPNOTSUPP;
	}
	log__error("cannot set a probe on the kernel's function %s: %s", probe->name,
		   strerror(-err));
	hint_rights(err, "code that kprobes use themselves takes no probe: name a function that "
			 "calls it");
	return err;
}

static const struct bpf_program *kprobe_program(const struct trigger_bpf *skel, uint32_t roles)
{
	switch (roles) {
	case MT_ROLE_RETURNS:
		return skel->progs.on_function_return;
	case MT_ROLE_STARTS:
		return skel->progs.on_function_start;
	case MT_ROLE_STOPS:
		return skel->progs.on_function_stop;
	default:
		return skel->progs.on_function;
	}
}

static int attach_kprobe(struct kernel_probes *set, const struct trigger_bpf *skel,
			 const struct kernel_probe *probe)
{
	LIBBPF_OPTS(bpf_kprobe_opts, opts, .retprobe = is_at_return(probe),
		    .bpf_cookie = probe->what.probe);
	struct attached *attached = add_attached(set, kernel_probe__is_end(probe));

	if (!attached)
		return -ENOMEM;
	attached->kprobe = bpf_program__attach_kprobe_opts(kprobe_program(skel, probe->what.roles),
							   probe->name, &opts);
	return attached->kprobe ? 0 : refuse_function(set, probe, -errno);
}

/*
 * Attaches all by the same method: fentry and kprobes identify a call's place on the stack in
 * different ways.
 */
static int attach_functions(struct kernel_probes *set, const struct trigger_bpf *skel,
			    const struct kernel_probe_list *list)
{
	set->fentry_err = attach_each(set, skel, list, KERNEL_PROBE_FUNCTION, attach_fentry);
	if (!set->fentry_err) {
		log__debug("kernel functions are probed by fentry and fexit");
		return 0;
	}
	log__debug("kernel functions are probed by kprobes and kretprobes, since fentry failed: %s",
		   strerror(-set->fentry_err));
	return attach_each(set, skel, list, KERNEL_PROBE_FUNCTION, attach_kprobe);
}

static int refuse_tracepoint(const char *name, int err)
{
	log__error("cannot set a probe on the tracepoint %s: %s", name, strerror(-err));
	hint_rights(err, "mtbpf list 'tracepoint:block:*' shows those of a category");
	return err;
}

static int attach_tracepoint(struct kernel_probes *set, const struct trigger_bpf *skel,
			     const struct kernel_probe *probe)
{
	int err = attach_raw(set, probe->name, tracepoint_program(skel, probe->what.roles),
			     kernel_probe__is_end(probe));

	return err ? refuse_tracepoint(probe->name, err) : 0;
}

static int attach_tracepoints(struct kernel_probes *set, const struct trigger_bpf *skel,
			      const struct kernel_probe_list *list)
{
	return attach_each(set, skel, list, KERNEL_PROBE_TRACEPOINT, attach_tracepoint);
}

/* True if an earlier probe of the list is a signal with this role. */
static bool has_signal_before(const struct kernel_probe_list *list, size_t at)
{
	for (size_t i = 0; i < at; i++)
		if (list->v[i].kind == KERNEL_PROBE_SIGNAL &&
		    list->v[i].what.roles == list->v[at].what.roles)
			return true;
	return false;
}

/* One program per role handles all signals. Ends are set first. */
static int attach_signals(struct kernel_probes *set, const struct trigger_bpf *skel,
			  const struct kernel_probe_list *list)
{
	int err = 0;

	for (int ends = 1; ends >= 0 && !err; ends--)
		for (size_t i = 0; i < list->n && !err; i++)
			if (list->v[i].kind == KERNEL_PROBE_SIGNAL &&
			    kernel_probe__is_end(&list->v[i]) == ends &&
			    !has_signal_before(list, i))
				err = attach_raw(set, "signal_deliver",
						 signal_program(skel, list->v[i].what.roles), ends);
	return err ? refuse_tracepoint("signal_deliver", err) : 0;
}

static int attach_oom(struct kernel_probes *set, const struct trigger_bpf *skel,
		      const struct kernel_probe_list *list)
{
	int err = attach_raw(set, "mark_victim", skel->progs.on_oom_victim, false);

	(void)list;
	return err ? refuse_tracepoint("mark_victim", err) : 0;
}

static const struct kind {
	/* Called before the programs are loaded, for each probe. 0, or -errno after a message. */
	int (*select)(struct trigger_bpf *skel, const struct kernel_probe *probe,
		      const struct trigger_config *config);
	/* Called once if there is a probe of the kind. 0, or -errno after a message and a hint. */
	int (*attach)(struct kernel_probes *set, const struct trigger_bpf *skel,
		      const struct kernel_probe_list *list);
} kinds[KERNEL_PROBE_KINDS] = {
	[KERNEL_PROBE_SYSCALL] = {select_syscall, attach_syscalls},
	[KERNEL_PROBE_FUNCTION] = {select_function, attach_functions},
	[KERNEL_PROBE_TRACEPOINT] = {select_tracepoint, attach_tracepoints},
	[KERNEL_PROBE_SIGNAL] = {select_signal, attach_signals},
	[KERNEL_PROBE_OOM] = {select_oom, attach_oom},
	/* The caller opens and attaches its events: trigger__attach_breakpoint(). */
	[KERNEL_PROBE_BREAKPOINT] = {select_breakpoint},
};

static void select_none(struct trigger_bpf *skel)
{
	bpf_program__set_autoload(skel->progs.on_syscall, false);
	bpf_program__set_autoload(skel->progs.on_syscall_return, false);
	bpf_map__set_autocreate(skel->maps.probed_syscalls, false);
	bpf_program__set_autoload(skel->progs.on_function, false);
	bpf_program__set_autoload(skel->progs.on_function_return, false);
	bpf_program__set_autoload(skel->progs.on_function_fentry, false);
	bpf_program__set_autoload(skel->progs.on_function_fexit, false);
	bpf_program__set_autoload(skel->progs.on_function_start, false);
	bpf_program__set_autoload(skel->progs.on_function_start_fentry, false);
	bpf_program__set_autoload(skel->progs.on_function_stop, false);
	bpf_program__set_autoload(skel->progs.on_function_stop_fentry, false);
	bpf_program__set_autoload(skel->progs.on_tracepoint, false);
	bpf_program__set_autoload(skel->progs.on_tracepoint_start, false);
	bpf_program__set_autoload(skel->progs.on_tracepoint_stop, false);
	bpf_program__set_autoload(skel->progs.on_signal, false);
	bpf_program__set_autoload(skel->progs.on_signal_start, false);
	bpf_program__set_autoload(skel->progs.on_signal_stop, false);
	bpf_program__set_autoload(skel->progs.on_oom_victim, false);
	bpf_program__set_autoload(skel->progs.on_breakpoint, false);
	bpf_program__set_autoload(skel->progs.on_breakpoint_return, false);
	bpf_program__set_autoload(skel->progs.on_breakpoint_start, false);
	bpf_program__set_autoload(skel->progs.on_breakpoint_stop, false);
}

int kernel_probes__select(struct trigger_bpf *skel, const struct trigger_config *config,
			  enum trigger_latch latch)
{
	int err = 0;

	select_none(skel);
	skel->rodata->syscalls_use_lru = latch == TRIGGER_LATCH_LRU_HASH;
	if (config->function_events) {
		bpf_program__set_autoload(skel->progs.on_function, true);
		bpf_program__set_autoload(skel->progs.on_function_return, true);
		bpf_program__set_autoload(skel->progs.on_function_stop, config->regions);
	}
	for (size_t i = 0; i < config->n_kernel_probes && !err; i++)
		err = kinds[config->kernel_probes[i].kind].select(skel, &config->kernel_probes[i],
								  config);
	return err;
}

bool kernel_probes__need_tasks(const struct trigger_config *config)
{
	for (size_t i = 0; i < config->n_kernel_probes; i++)
		if (config->kernel_probes[i].kind == KERNEL_PROBE_OOM)
			return true;
	return false;
}

static bool has_kind(const struct kernel_probe_list *list, int kind)
{
	for (size_t i = 0; i < list->n; i++)
		if ((int)list->v[i].kind == kind)
			return true;
	return false;
}

struct kernel_probes *kernel_probes__attach(const struct trigger_bpf *skel,
					    const struct kernel_probe *all, size_t n)
{
	const struct kernel_probe_list list = {all, n};
	struct kernel_probes *set = calloc(1, sizeof(*set));
	int err = set ? 0 : -ENOMEM;

	for (int kind = KERNEL_PROBE_NONE + 1; kind < KERNEL_PROBE_KINDS && !err; kind++)
		if (kinds[kind].attach && has_kind(&list, kind))
			err = kinds[kind].attach(set, skel, &list);
	if (!err)
		return set;
	kernel_probes__free(set);
	errno = -err;
	return NULL;
}

void kernel_probes__free(struct kernel_probes *set)
{
	if (!set)
		return;
	close_from(set, 0);
	VEC_FINI(&set->all);
	free(set);
}

uint64_t kernel_probes__missed(const struct kernel_probes *set)
{
	uint64_t missed = 0;

	for (size_t i = 0; set && i < set->all.n; i++) {
		struct bpf_prog_info info = {0};
		uint32_t size = sizeof(info);

		if (set->all.v[i].program >= 0 &&
		    !bpf_obj_get_info_by_fd(set->all.v[i].program, &info, &size))
			missed += info.recursion_misses;
	}
	return missed;
}
