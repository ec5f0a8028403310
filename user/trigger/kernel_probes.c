// SPDX-License-Identifier: MIT
/*
 * The trigger's probes in the kernel: on system calls, functions, tracepoints, signals and the OOM
 * killer. System calls and functions are probed by fentry and fexit if the kernel allows it.
 * Otherwise system calls are probed by the tracepoints that all of them share, and functions by
 * kprobes.
 */
#include "trigger/trigger_internal.h"

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "trigger.skel.h"
#include "trigger/stall.h"
#include "util/cleanup.h"
#include "util/fs.h"
#include "util/log.h"
#include "util/vec.h"

/* A program that runs at one place. */
struct attached {
	const struct bpf_program *of; /* the skeleton's program, which itself or as a copy runs */
	const char *place;	      /* a function of the kernel, or a tracepoint */
	int program;		      /* the copy; -1: none */
	int link;		      /* -1: none, or see kprobe */
	struct bpf_link *kprobe;
	bool is_end;
};

struct kernel_probes {
	const struct trigger_bpf *skel;
	const struct kernel_probe *v; /* the caller's; read only while they are attached */
	size_t n;
	VEC(struct attached) all;
	int fentry_err; /* why functions are not probed by fentry; 0: they are */
};

/* The ways to attach a program. Each has programs for the roles that it supports: programs[]. */
enum means {
	MEANS_SYSCALL, /* a function's fentry and fexit, or tracepoints of all system calls */
	MEANS_FENTRY,
	MEANS_KPROBE,
	MEANS_TRACEPOINT,
	MEANS_SIGNAL,
	MEANS_OOM,
	MEANS_BREAKPOINT,
	MEANS,
};

#define ROLES	    4
#define AT(program) offsetof(struct trigger_bpf, progs.program)

/* Offsets of the programs in the skeleton: for hits, returns, starts and stops; 0: none. */
static const size_t programs[MEANS][ROLES] = {
	[MEANS_SYSCALL] = {AT(on_syscall), AT(on_syscall_return), AT(on_syscall_return),
			   AT(on_syscall)},
	[MEANS_FENTRY] = {AT(on_function_fentry), AT(on_function_fexit),
			  AT(on_function_start_fentry), AT(on_function_stop_fentry)},
	[MEANS_KPROBE] = {AT(on_function), AT(on_function_return), AT(on_function_start),
			  AT(on_function_stop)},
	[MEANS_TRACEPOINT] = {AT(on_tracepoint), 0, AT(on_tracepoint_start),
			      AT(on_tracepoint_stop)},
	[MEANS_SIGNAL] = {AT(on_signal), 0, AT(on_signal_start), AT(on_signal_stop)},
	[MEANS_OOM] = {AT(on_oom_victim)},
	[MEANS_BREAKPOINT] = {AT(on_breakpoint), AT(on_breakpoint_return), AT(on_breakpoint_start),
			      AT(on_breakpoint_stop)},
};

static struct bpf_program *program_at(const struct trigger_bpf *skel, size_t at)
{
	return *(struct bpf_program *const *)(const void *)((const char *)skel + at);
}

static struct bpf_program *program_of(const struct trigger_bpf *skel, enum means means,
				      uint32_t roles)
{
	return program_at(skel, programs[means][roles == MT_ROLE_RETURNS  ? 1
						: roles == MT_ROLE_STARTS ? 2
						: roles == MT_ROLE_STOPS  ? 3
									  : 0]);
}

static void select_program(struct trigger_bpf *skel, enum means means, uint32_t roles)
{
	bpf_program__set_autoload(program_of(skel, means, roles), true);
}

/* System calls whose function in the kernel has another name. */
static const char *const other_names[][2] = {
	{"sendfile", "sendfile64"}, {"fstat", "newfstat"}, {"stat", "newstat"},
	{"lstat", "newlstat"},	    {"uname", "newuname"},
};

static int find_offsets(struct mt_file_offsets *o)
{
	uint32_t path = 0, dentry = 0, name = 0, text = 0;
	bool are_found = kernel_btf__find("task_struct", "files", &o->task_files) &&
			 kernel_btf__find("files_struct", "fdt", &o->files_fdt) &&
			 kernel_btf__find("fdtable", "fd", &o->fdt_fd) &&
			 kernel_btf__find("fdtable", "max_fds", &o->fdt_max) &&
			 kernel_btf__find("file", "f_inode", &o->file_inode) &&
			 kernel_btf__find("file", "f_path", &path) &&
			 kernel_btf__find("path", "dentry", &dentry) &&
			 kernel_btf__find("dentry", "d_name", &name) &&
			 kernel_btf__find("qstr", "name", &text) &&
			 kernel_btf__find("inode", "i_mode", &o->inode_mode) &&
			 kernel_btf__find("inode", "i_rdev", &o->inode_rdev) &&
			 kernel_btf__find("inode", "i_ino", &o->inode_ino) &&
			 kernel_btf__find("inode", "i_sb", &o->inode_sb) &&
			 kernel_btf__find("super_block", "s_magic", &o->sb_magic);

	o->file_dentry = path + dentry;
	o->dentry_name = name + text;
	return are_found ? 0 : -EOPNOTSUPP;
}

static int select_syscall(struct trigger_bpf *skel, const struct kernel_probe *probe,
			  const struct trigger_config *config)
{
	struct mt_file_offsets offsets = {0};
	uint32_t info, status;

	if (kernel_btf__find("task_struct", "thread_info", &info) &&
	    kernel_btf__find("thread_info", "status", &status))
		skel->rodata->task_status_at = info + status;
	select_program(skel, MEANS_SYSCALL, MT_ROLE_HITS);
	select_program(skel, MEANS_SYSCALL, MT_ROLE_RETURNS);
	bpf_map__set_autocreate(skel->maps.probed_syscalls, true);
	if (probe->what.file_kind == MT_FILE_ANY)
		return 0;
	if (find_offsets(&offsets)) {
		log__error("the kind of a descriptor cannot be found without the kernel's type "
			   "information "
			   "(BTF)");
		log__hint("leave out the kind: syscall:read instead of syscall:read(socket); kinds "
			  "need a kernel with CONFIG_DEBUG_INFO_BTF, and a readable "
			  "/sys/kernel/btf/vmlinux");
		return -ECANCELED;
	}
	skel->rodata->file_offsets = offsets;
	return 0;
}

/*
 * The address of the kernel's entry for page faults; 0: not known. Without it, regions neither
 * begin nor end in page faults: see is_called_by_thread().
 */
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
	uint32_t roles = probe->what.roles;

	select_program(skel, MEANS_FENTRY, roles);
	select_program(skel, MEANS_KPROBE, roles);
	if (roles & (MT_ROLE_STARTS | MT_ROLE_STOPS))
		skel->rodata->page_fault_entry = page_fault_entry();
	if (roles == MT_ROLE_STOPS)
		skel->rodata->stop_function_probe = probe->what.probe;
	else if (roles != MT_ROLE_STARTS)
		skel->rodata->function_probe = probe->what.probe;
	return 0;
}

/*
 * True for tracepoints that interrupts do not reach, but that the thread may reach without a system
 * call: it is preempted, or a signal ends it.
 */
static bool is_of_thread(const char *tracepoint)
{
	return !strcmp(tracepoint, "sched_switch") || !strcmp(tracepoint, "signal_deliver") ||
	       !strcmp(tracepoint, "sched_process_exit");
}

static int select_tracepoint(struct trigger_bpf *skel, const struct kernel_probe *probe,
			     const struct trigger_config *config)
{
	uint32_t roles = probe->what.roles;

	select_program(skel, MEANS_TRACEPOINT, roles);
	if (roles & (MT_ROLE_STARTS | MT_ROLE_STOPS))
		skel->rodata->page_fault_entry = page_fault_entry();
	if (roles == MT_ROLE_STARTS) {
		skel->rodata->start_tracepoint_is_own = is_of_thread(probe->name);
	} else if (roles == MT_ROLE_STOPS) {
		skel->rodata->stop_tracepoint_is_own = is_of_thread(probe->name);
		skel->rodata->stop_tracepoint_probe = probe->what.probe;
	} else {
		skel->rodata->tracepoint_probe = probe->what.probe;
	}
	return 0;
}

static int select_signal(struct trigger_bpf *skel, const struct kernel_probe *probe,
			 const struct trigger_config *config)
{
	uint32_t roles = probe->what.roles;

	select_program(skel, MEANS_SIGNAL, roles);
	if (roles == MT_ROLE_STARTS) {
		skel->rodata->start_signals |= probe->signals;
	} else if (roles == MT_ROLE_STOPS) {
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
		return -ECANCELED;
	}
	select_program(skel, MEANS_OOM, MT_ROLE_HITS);
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
	return program_of(skel, MEANS_BREAKPOINT, roles);
}

static int select_breakpoint(struct trigger_bpf *skel, const struct kernel_probe *probe,
			     const struct trigger_config *config)
{
	select_program(skel, MEANS_BREAKPOINT, probe->what.roles);
	return 0;
}

/* Regions begin at the return of a system call, and at the entry of a function. */
static bool is_at_return(const struct kernel_probe *probe)
{
	return probe->what.roles &
	       (probe->kind == KERNEL_PROBE_SYSCALL ? MT_ROLE_RETURNS | MT_ROLE_STARTS
						    : MT_ROLE_RETURNS);
}

/* True if the program already runs at the place: there it does what all probes want. */
static bool is_attached(const struct kernel_probes *set, const struct bpf_program *program,
			const char *place)
{
	return VEC_FIND(&set->all, e, e->of == program && !strcmp(e->place, place));
}

/* The place must live as long as the set. */
static struct attached *add_attached(struct kernel_probes *set, const struct bpf_program *program,
				     const char *place, bool is_end)
{
	const struct attached attached = {
		.of = program, .place = place, .program = -1, .link = -1, .is_end = is_end};

	return VEC_ADD(&set->all, attached) ? NULL : &set->all.v[set->all.n - 1];
}

/*
 * Attaches a copy of the loaded program to one function, by fentry or fexit, so that only calls of
 * this function cost more. 0 or -errno.
 */
static int attach_copy(struct kernel_probes *set, const struct kernel_probe *probe)
{
	bool is_syscall = probe->kind == KERNEL_PROBE_SYSCALL;
	const struct bpf_program *program =
		program_of(set->skel, is_syscall ? MEANS_SYSCALL : MEANS_FENTRY, probe->what.roles);
	enum bpf_attach_type type = is_at_return(probe) ? BPF_TRACE_FEXIT : BPF_TRACE_FENTRY;
	LIBBPF_OPTS(bpf_prog_load_opts, opts, .expected_attach_type = type);
	const struct btf *btf = kernel_btf();
	const char *name = probe->name;
	struct attached *attached;
	char function[160];
	int id;

	for (size_t i = 0; is_syscall && i < sizeof(other_names) / sizeof(other_names[0]); i++)
		if (!strcmp(name, other_names[i][0]))
			name = other_names[i][1];
	snprintf(function, sizeof(function), "%s%s", is_syscall ? "__x64_sys_" : "", name);
	id = btf ? btf__find_by_name_kind(btf, function, BTF_KIND_FUNC) : -EOPNOTSUPP;
	if (id < 0)
		return id;
	if (is_attached(set, program, probe->name))
		return 0;
	attached = add_attached(set, program, probe->name, kernel_probe__is_end(probe));
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
	struct attached *attached;

	if (is_attached(set, program, tracepoint))
		return 0;
	attached = add_attached(set, program, tracepoint, is_end);
	if (!attached)
		return -ENOMEM;
	attached->link = bpf_raw_tracepoint_open(tracepoint, bpf_program__fd(program));
	return attached->link < 0 ? -errno : 0;
}

/*
 * Detaches the programs from number `from` on. Those at begins come first, so that calls do not
 * stay open.
 */
static void close_from(struct kernel_probes *set, size_t from)
{
	for (int ends = 0; ends <= 1; ends++)
		for (size_t i = from; i < set->all.n; i++) {
			struct attached *attached = &set->all.v[i];

			if (attached->is_end != ends)
				continue;
			if (attached->link >= 0)
				close(attached->link);
			if (attached->program >= 0)
				close(attached->program);
			bpf_link__destroy(attached->kprobe);
		}
	set->all.n = from;
}

/* Calls `attach` for each probe of the kind, ends first. If one fails, none of them is set. */
static int attach_each(struct kernel_probes *set, enum kernel_probe_kind kind,
		       int (*attach)(struct kernel_probes *set, const struct kernel_probe *probe))
{
	size_t before = set->all.n;
	int err = 0;

	for (int ends = 1; ends >= 0 && !err; ends--)
		for (size_t i = 0; i < set->n && !err; i++)
			if (set->v[i].kind == kind && kernel_probe__is_end(&set->v[i]) == ends)
				err = attach(set, &set->v[i]);
	if (err)
		close_from(set, before);
	return err;
}

/* Without fentry: at the tracepoints of all system calls of the machine. */
static int attach_to_all(struct kernel_probes *set, const struct kernel_probe *probe)
{
	bool at_return = is_at_return(probe);

	return attach_raw(set, at_return ? "sys_exit" : "sys_enter",
			  program_of(set->skel, MEANS_SYSCALL, probe->what.roles), at_return);
}

static void hint_rights(int err, const char *otherwise)
{
	log__hint("%s", err == -EPERM || err == -EACCES ? "needs CAP_BPF and CAP_PERFMON, or root"
							: otherwise);
}

static int attach_syscalls(struct kernel_probes *set)
{
	int err = 0, map = bpf_map__fd(set->skel->maps.probed_syscalls);

	for (size_t i = 0; i < set->n && !err; i++) {
		const struct kernel_probe *probe = &set->v[i];
		struct mt_syscall what = probe->what, before;
		uint32_t key = (uint32_t)probe->number;

		if (probe->kind != KERNEL_PROBE_SYSCALL)
			continue;
		/*
		 * A system call may have several roles, but the program compares one set of
		 * conditions.
		 */
		if (bpf_map_lookup_elem(map, &key, &before))
			before = (struct mt_syscall){0};
		if (before.roles &&
		    (before.file_kind != what.file_kind || before.nonzero != what.nonzero)) {
			log__error("syscall:%s is named twice, with different conditions",
				   probe->name);
			log__hint("name the system call once; without a condition all of its calls "
				  "count");
			return -EINVAL;
		}
		what.roles |= before.roles;
		if (bpf_map_update_elem(map, &key, &what, BPF_ANY))
			err = -errno;
	}
	if (!err) {
		err = attach_each(set, KERNEL_PROBE_SYSCALL, attach_copy);
		if (!err)
			return 0;
		log__info("system calls: this kernel takes no probes on its functions (%s): until "
			  "mtbpf ends, every system call of every process costs a little more",
			  strerror(-err));
		err = attach_each(set, KERNEL_PROBE_SYSCALL, attach_to_all);
	}
	if (err) {
		log__error("cannot set a probe on system calls: %s", strerror(-err));
		hint_rights(err, "the kernel needs CONFIG_FTRACE_SYSCALLS");
	}
	return err;
}

#define KPROBE_PMU "/sys/bus/event_source/devices/kprobe/type"

static int attach_kprobe(struct kernel_probes *set, const struct kernel_probe *probe)
{
	const struct bpf_program *program = program_of(set->skel, MEANS_KPROBE, probe->what.roles);
	LIBBPF_OPTS(bpf_kprobe_opts, opts, .retprobe = is_at_return(probe),
		    .bpf_cookie = probe->what.probe);
	struct attached *attached =
		add_attached(set, program, probe->name, kernel_probe__is_end(probe));
	int err;

	if (!attached)
		return -ENOMEM;
	attached->kprobe = bpf_program__attach_kprobe_opts(program, probe->name, &opts);
	if (attached->kprobe)
		return 0;
	err = -errno;
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
	hint_rights(err, "the kernel allows no probe in code that kprobes use: name a function "
			 "that calls it");
	return err;
}

/*
 * Attaches all by the same method: fentry and kprobes identify a call's place on the stack in
 * different ways.
 */
static int attach_functions(struct kernel_probes *set)
{
	set->fentry_err = attach_each(set, KERNEL_PROBE_FUNCTION, attach_copy);
	if (!set->fentry_err) {
		log__debug("kernel functions are probed by fentry and fexit");
		return 0;
	}
	log__debug("kernel functions are probed by kprobes and kretprobes, since fentry failed: %s",
		   strerror(-set->fentry_err));
	return attach_each(set, KERNEL_PROBE_FUNCTION, attach_kprobe);
}

static int attach_tracepoint(struct kernel_probes *set, const struct kernel_probe *probe)
{
	bool is_signal = probe->kind == KERNEL_PROBE_SIGNAL;
	bool is_oom = probe->kind == KERNEL_PROBE_OOM;
	/* One program per role handles all signals. */
	const char *name = is_signal ? "signal_deliver" : is_oom ? "mark_victim" : probe->name;
	enum means means = is_signal ? MEANS_SIGNAL : is_oom ? MEANS_OOM : MEANS_TRACEPOINT;
	int err = attach_raw(set, name, program_of(set->skel, means, probe->what.roles),
			     kernel_probe__is_end(probe));

	if (err) {
		log__error("cannot set a probe on the tracepoint %s: %s", name, strerror(-err));
		hint_rights(err, "mtbpf list 'tracepoint:block:*' lists the tracepoints of a "
				 "category");
	}
	return err;
}

static const struct kind {
	/* Called before the programs are loaded, for each probe. 0, or -errno after a message. */
	int (*select)(struct trigger_bpf *skel, const struct kernel_probe *probe,
		      const struct trigger_config *config);
	/* Called once, or for each probe. 0, or -errno after a message and a hint. */
	int (*attach)(struct kernel_probes *set);
	int (*attach_one)(struct kernel_probes *set, const struct kernel_probe *probe);
} kinds[KERNEL_PROBE_KINDS] = {
	[KERNEL_PROBE_SYSCALL] = {select_syscall, attach_syscalls},
	[KERNEL_PROBE_FUNCTION] = {select_function, attach_functions},
	[KERNEL_PROBE_TRACEPOINT] = {select_tracepoint, .attach_one = attach_tracepoint},
	[KERNEL_PROBE_SIGNAL] = {select_signal, .attach_one = attach_tracepoint},
	[KERNEL_PROBE_OOM] = {select_oom, .attach_one = attach_tracepoint},
	/* The caller opens and attaches breakpoint events: trigger__attach_breakpoint(). */
	[KERNEL_PROBE_BREAKPOINT] = {select_breakpoint},
};

int kernel_probes__select(struct trigger_bpf *skel, const struct trigger_config *config,
			  enum trigger_latch latch)
{
	int err = 0;

	bpf_map__set_autocreate(skel->maps.probed_syscalls, false);
	for (int means = 0; means < MEANS; means++)
		for (int role = 0; role < ROLES; role++)
			if (programs[means][role])
				bpf_program__set_autoload(program_at(skel, programs[means][role]),
							  false);
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

struct kernel_probes *kernel_probes__attach(const struct trigger_bpf *skel,
					    const struct kernel_probe *all, size_t n)
{
	struct kernel_probes *set = calloc(1, sizeof(*set));
	bool has[KERNEL_PROBE_KINDS] = {false};
	int err = set ? 0 : -ENOMEM;

	for (size_t i = 0; i < n; i++)
		has[all[i].kind] = true;
	if (set)
		*set = (struct kernel_probes){.skel = skel, .v = all, .n = n};
	for (int kind = KERNEL_PROBE_NONE + 1; kind < KERNEL_PROBE_KINDS && !err; kind++)
		if (kinds[kind].attach_one)
			err = attach_each(set, kind, kinds[kind].attach_one);
		else if (kinds[kind].attach && has[kind])
			err = kinds[kind].attach(set);
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
