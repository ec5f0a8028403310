// SPDX-License-Identifier: MIT
#include "capture/probe/uprobe_event.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <linux/bpf.h>
#include <linux/hw_breakpoint.h>
#include <linux/perf_event.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include "capture/perf/event_place.h"
#include "mtbpf_shared.h"
#include "util/cleanup.h"
#include "util/fs.h"
#include "util/log.h"

#define PMUS "/sys/bus/event_source/devices/"

/* ENOTSUPP: the kernel's own, which uapi headers and strerror() don't have. */
#define KERNEL_ENOTSUPP 524

/* Reads one number from a file of the PMU "uprobe" or "kprobe" by its format. 0 or -errno. */
static int read_number(const char *pmu, const char *name, const char *format, unsigned int *number)
{
	_cleanup_fclose_ FILE *file = NULL;
	char path[96];

	snprintf(path, sizeof(path), PMUS "%s/%s", pmu, name);
	file = fopen(path, "re");
	if (!file)
		return -errno;
	return fscanf(file, format, number) == 1 ? 0 : -EINVAL;
}

/*
 * Puts the semaphore's offset into attr.config, which has 32 bits for it. 0 or -errno after a line
 * and a hint.
 */
static int add_semaphore(const struct uprobe_spec *spec, struct perf_event_attr *attr)
{
	unsigned int shift;
	int err;

	if (!spec->semaphore)
		return 0;
	err = read_number("uprobe", "format/ref_ctr_offset", "config:%u", &shift);
	if (!err && spec->semaphore <= UINT32_MAX && shift <= 32) {
		attr->config |= spec->semaphore << shift;
		return 0;
	}
	if (err || spec->semaphore <= UINT32_MAX)
		log__error("the USDT probe's semaphore cannot be used: cannot read " PMUS
			   "uprobe/format/ref_ctr_offset: %s",
			   strerror(err ? -err : EINVAL));
	else
		log__error("the USDT probe's semaphore cannot be used: its offset %#llx in %s is "
			   "more than 4 GiB",
			   (unsigned long long)spec->semaphore, spec->path);
	log__hint("name the function that contains the probe instead: -symbol NAME");
	return -EOPNOTSUPP;
}

static int fill_attr(const struct uprobe_spec *spec, struct perf_event_attr *attr)
{
	const char *pmu = spec->function ? "kprobe" : "uprobe";
	unsigned int type, retprobe_bit;
	int err = read_number(pmu, "type", "%u", &type);

	if (!err)
		err = read_number(pmu, "format/retprobe", "config:%u", &retprobe_bit);
	if (err) {
		log__error("the kernel lacks %s events (" PMUS "%s): %s", pmu, pmu, strerror(-err));
		log__hint("needs Linux 4.17 or later with CONFIG_%s_EVENTS",
			  spec->function ? "KPROBE" : "UPROBE");
		return err;
	}
	*attr = (struct perf_event_attr){
		.type = type,
		.size = sizeof(*attr),
		.config = spec->on_return ? 1ull << retprobe_bit : 0,
		.sample_period = 1,
		.sample_type =
			PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CPU,
		/* With exclude_kernel, a kprobe's hits would be dropped (perf_tp_event_match()). */
		.exclude_kernel = !spec->function,
		.wakeup_events = 1,
		/* A union: for a kprobe, the same member is kprobe_func. */
		.uprobe_path = (uintptr_t)(spec->function ?: spec->path),
		.probe_offset = spec->function ? 0 : spec->offset,
	};
	return add_semaphore(spec, attr);
}

static void explain(const struct uprobe_spec *spec, int err)
{
	const char *reason =
		err == -KERNEL_ENOTSUPP ? "the kernel refuses this instruction" : strerror(-err);

	if (spec->function)
		log__error("cannot set a probe on the kernel's function %s: %s", spec->function,
			   reason);
	else
		log__error("cannot set a uprobe at %s+0x%llx: %s", spec->path,
			   (unsigned long long)spec->offset, reason);
	if (err == -EPERM || err == -EACCES)
		log__hint("needs CAP_SYS_ADMIN, or root");
	else if (err == -ESRCH)
		log__hint("the process has exited");
	else if (err == -EIO)
		log__hint(
			"this file system does not support probes; use a copy on a disk or tmpfs");
	else if (err == -EINVAL)
		log__hint("the address must be in the code of a regular file");
	else if (err == -KERNEL_ENOTSUPP || err == -EILSEQ)
		log__hint("choose an address where another instruction starts");
}

/* The attributes of an event that overflows each time the address is executed in user code. */
static struct perf_event_attr breakpoint_attr(uint64_t address)
{
	return (struct perf_event_attr){
		.type = PERF_TYPE_BREAKPOINT,
		.sample_period = 1,
		.exclude_kernel = 1,
		.exclude_hv = 1,
		.bp_type = HW_BREAKPOINT_X,
		.bp_addr = address,
		.bp_len = sizeof(long), /* the one length that the kernel takes for code */
	};
}

int uprobe_event__open_in_group(const struct uprobe_spec *spec, const struct uprobe_group *group)
{
	struct perf_event_attr attr = breakpoint_attr(spec->breakpoint);
	int err = spec->breakpoint ? 0 : fill_attr(spec, &attr);

	if (err)
		return err;
	if (group->tracepoint) {
		attr.type = PERF_TYPE_TRACEPOINT;
		attr.config = group->tracepoint;
		attr.uprobe_path = 0;
		attr.probe_offset = 0;
	}
	attr.disabled = group->disabled;
	attr.enable_on_exec = group->enable_on_exec;
	if (group->action)
		aux_action__set(&attr, group->action);
	return event_place__open(&group->place, &attr, group->leader);
}

int uprobe_event__open(const struct uprobe_spec *spec)
{
	/*
	 * An event for all processes must name one CPU. The BPF program still runs on every CPU: it
	 * belongs to the probe; the event only gets what the program lets pass
	 * (__uprobe_perf_func).
	 */
	struct event_place place = {.pid = spec->pid, .cpu = spec->pid < 0 ? sched_getcpu() : -1};
	struct perf_event_attr attr;
	int fd, err = fill_attr(spec, &attr);

	if (err)
		return err;
	fd = event_place__open(&place, &attr, -1);
	if (fd < 0)
		explain(spec, fd);
	return fd;
}

/* BPF_LINK_CREATE's part of union bpf_attr, which Debian 12's header does not have yet. */
struct uprobe_multi_attr {
	uint32_t program, target;
	uint32_t attach_type, flags;
	uint64_t path, offsets, semaphores, cookies;
	uint32_t n, multi_flags;
	uint32_t pid, zero; /* the kernel refuses non-zero bytes after pid */
};

_Static_assert(offsetof(struct uprobe_multi_attr, path) == 16, "as include/uapi/linux/bpf.h");

#define UPROBE_MULTI_RETURN 1 /* BPF_F_UPROBE_MULTI_RETURN */

bool uprobe_link__is_supported(void)
{
	unsigned int major, minor;
	struct utsname uts;

	return !uname(&uts) && sscanf(uts.release, "%u.%u", &major, &minor) == 2 &&
	       (major > 6 || (major == 6 && minor >= 11));
}

int uprobe_link__open(const struct uprobe_spec *spec, int program, uint64_t cookie)
{
	struct uprobe_multi_attr attr = {
		.program = (uint32_t)program,
		.attach_type = MT_UPROBE_LINK,
		.path = (uintptr_t)spec->path,
		.offsets = (uintptr_t)&spec->offset,
		.semaphores = spec->semaphore ? (uintptr_t)&spec->semaphore : 0,
		.cookies = (uintptr_t)&cookie,
		.n = 1,
		.multi_flags = spec->on_return ? UPROBE_MULTI_RETURN : 0,
		.pid = spec->pid < 0 ? 0 : (uint32_t)spec->pid,
	};
	int err, fd = (int)syscall(SYS_bpf, BPF_LINK_CREATE, &attr, sizeof(attr));

	if (fd >= 0)
		return fd;
	err = -errno;
	explain(spec, err);
	return err;
}

bool kprobe_event__try(const char *function)
{
	const struct uprobe_spec spec = {.function = function};
	struct event_place place = event_place__of_thread(0);
	struct perf_event_attr attr;
	_cleanup_close_ int fd = -1;

	if (access(PMUS "kprobe", F_OK) || fill_attr(&spec, &attr))
		return false;
	attr.disabled = 1;
	fd = event_place__open(&place, &attr, -1);
	return fd >= 0;
}

int uprobe_event__settle(const struct uprobe_spec *spec)
{
	/*
	 * An event for this process only, which never executes the probed code: no process's
	 * breakpoints change.
	 */
	struct uprobe_spec same = *spec;
	_cleanup_close_ int fd = -1;

	same.pid = getpid();
	fd = uprobe_event__open(&same);
	return fd < 0 ? fd : 0;
}

/* The instruction is one that the kernel emulates: nothing is stepped out of line. */
__attribute__((noinline, noipa)) void own_probe__hit(void)
{
	__asm__ volatile("nop");
}

struct search {
	uintptr_t address;
	uint64_t offset;
	int err;
};

static int visit(struct dl_phdr_info *info, size_t size, void *data)
{
	struct search *search = data;

	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *phdr = &info->dlpi_phdr[i];
		uintptr_t start = info->dlpi_addr + phdr->p_vaddr;

		if (phdr->p_type != PT_LOAD || search->address < start ||
		    search->address - start >= phdr->p_filesz)
			continue;
		search->offset = phdr->p_offset + (search->address - start);
		search->err = 0;
	}
	return 1; /* stops: the first object is the program itself */
}

int own_probe__spec_of(struct uprobe_spec *spec, uintptr_t address)
{
	struct search search = {.address = address, .err = -ENOENT};

	dl_iterate_phdr(visit, &search);
	*spec = (struct uprobe_spec){
		.path = "/proc/self/exe", .offset = search.offset, .pid = getpid()};
	return search.err;
}

int own_probe__try(void)
{
	struct uprobe_group group = {.place = event_place__of_thread(gettid()), .leader = -1};
	_cleanup_close_ int fd = -1;
	struct uprobe_spec spec;
	uint64_t count;
	int err = own_probe__spec_of(&spec, (uintptr_t)own_probe__hit);

	if (err)
		return err;
	fd = uprobe_event__open_in_group(&spec, &group);
	if (fd < 0)
		return fd;
	own_probe__hit();
	if (read(fd, &count, sizeof(count)) != sizeof(count))
		return -EIO;
	return count == 1 ? 0 : -ENODATA;
}

/* Probes that several events share. */

#define GROUP		"mtbpf"
#define REMOVE_TRIES	200
#define REMOVE_PAUSE_US 10000

struct tracefs_probe {
	int dir;	  /* tracefs */
	const char *list; /* uprobe_events or kprobe_events in tracefs */
	char name[64];
	pid_t janitor;
	int janitor_pipe; /* the write end: when it is closed, the janitor removes the probe */
};

/* place: the mount point; NULL: a private mount, which ends with its descriptor. */
static int open_tracefs(const char **place)
{
	static const char *const places[] = {"/sys/kernel/tracing", "/sys/kernel/debug/tracing"};
	_cleanup_close_ int fs = -1;
	struct stat st;
	int dir;

	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		/* O_DIRECTORY would make debugfs mount tracefs, for good and for everybody. */
		dir = open(places[i], O_PATH | O_CLOEXEC);
		*place = places[i];
		if (dir >= 0 && !fstatat(dir, "uprobe_events", &st, 0))
			return dir;
		if (dir >= 0)
			close(dir);
	}
	*place = NULL;
	fs = fsopen("tracefs", FSOPEN_CLOEXEC);
	if (fs < 0 || fsconfig(fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0))
		return -errno;
	dir = fsmount(fs, FSMOUNT_CLOEXEC, 0);
	return dir < 0 ? -errno : dir;
}

/* O_APPEND: O_TRUNC would remove every probe on the machine. */
static int write_command(const struct tracefs_probe *p, const char *text)
{
	_cleanup_close_ int fd = openat(p->dir, p->list, O_WRONLY | O_APPEND | O_CLOEXEC);

	if (fd < 0)
		return -errno;
	return write(fd, text, strlen(text)) < 0 ? -errno : 0;
}

static int start_janitor(struct tracefs_probe *p)
{
	char byte, text[96];
	int err = -EBUSY, fds[2];
	sigset_t all;

	if (pipe2(fds, O_CLOEXEC))
		return -errno;
	fflush(NULL);
	p->janitor = fork();
	if (p->janitor < 0) {
		close(fds[0]);
		close(fds[1]);
		return -errno;
	}
	if (p->janitor) {
		close(fds[0]);
		p->janitor_pipe = fds[1];
		return 0;
	}
	setsid();
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, NULL);
	prctl(PR_SET_NAME, "probe-janitor");
	/* Closes everything else, so that the probe is released. */
	fs__close_all_but(0, p->dir, fds[0]);
	while (read(fds[0], &byte, 1) < 0 && errno == EINTR)
		;
	/* Closed events release the probe a little later (RCU). */
	snprintf(text, sizeof(text), "-:" GROUP "/%s", p->name);
	for (int i = 0; i < REMOVE_TRIES && err && err != -ENOENT; i++) {
		if (i)
			usleep(REMOVE_PAUSE_US);
		err = write_command(p, text);
	}
	_exit(0);
}

/* Creates the probe, and reads its id. 0 or -errno. */
static int create_entry(const struct tracefs_probe *p, const struct uprobe_spec *spec, uint32_t *id)
{
	char text[PATH_MAX + 128], kind = spec->on_return ? 'r' : 'p', path[128], digits[32] = "";
	_cleanup_close_ int fd = -1;
	int len, err;

	if (spec->function)
		len = snprintf(text, sizeof(text), "%c:" GROUP "/%s %s", kind, p->name,
			       spec->function);
	else
		len = snprintf(text, sizeof(text), "%c:" GROUP "/%s %s:0x%llx", kind, p->name,
			       spec->path, (unsigned long long)spec->offset);
	if (!spec->function && spec->semaphore)
		snprintf(text + len, sizeof(text) - (size_t)len, "(0x%llx)",
			 (unsigned long long)spec->semaphore);
	err = write_command(p, text);
	if (err)
		return err;
	snprintf(path, sizeof(path), "events/" GROUP "/%s/id", p->name);
	fd = openat(p->dir, path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || read(fd, digits, sizeof(digits) - 1) < 0)
		return -errno;
	*id = (uint32_t)strtoul(digits, NULL, 10);
	return *id ? 0 : -EINVAL;
}

int tracefs_probe__create(struct tracefs_probe **out, const struct uprobe_spec *spec, size_t number,
			  uint32_t *id)
{
	struct tracefs_probe *p = calloc(1, sizeof(*p));
	const char *place;
	int err;

	*out = NULL;
	if (!p)
		return -ENOMEM;
	p->janitor_pipe = -1;
	p->list = spec->function ? "kprobe_events" : "uprobe_events";
	/* Set before the fork: with an empty name, the janitor would remove all probes of GROUP. */
	snprintf(p->name, sizeof(p->name), "probe_%d_%zu", getpid(), number);
	p->dir = open_tracefs(&place);
	err = p->dir < 0 ? p->dir : start_janitor(p);
	if (!err)
		err = create_entry(p, spec, id);
	if (!err) {
		*out = p;
		return 0;
	}
	log__error("cannot set a probe at %s+0x%llx through tracefs: %s",
		   spec->function ?: spec->path,
		   (unsigned long long)(spec->function ? 0 : spec->offset), strerror(-err));
	if (err == -EPERM || err == -EACCES)
		log__hint("run as root, without kernel lockdown");
	else if (!spec->function && strchr(spec->path, ' '))
		log__hint("probes of several threads or processes need tracefs, which does not "
			  "accept paths with spaces: record one thread (-pid, without "
			  "-multi-thread), or move the program");
	else
		log__hint("mount tracefs: mount -t tracefs tracefs /sys/kernel/tracing");
	tracefs_probe__remove(p);
	return err;
}

void tracefs_probe__remove(struct tracefs_probe *p)
{
	if (!p)
		return;
	if (p->janitor_pipe >= 0) {
		close(p->janitor_pipe);
		waitpid(p->janitor, NULL, 0);
	}
	if (p->dir >= 0)
		close(p->dir);
	free(p);
}

int tracefs_probe__try(const char **place)
{
	_cleanup_close_ int dir = open_tracefs(place);
	_cleanup_close_ int fd = -1;

	if (dir < 0)
		return dir;
	fd = openat(dir, "uprobe_events", O_WRONLY | O_APPEND | O_CLOEXEC);
	return fd < 0 ? -errno : 0;
}

int breakpoint_event__open(int cpu, uint64_t address)
{
	struct perf_event_attr attr = breakpoint_attr(address);
	const struct event_place place = {.pid = -1, .cpu = cpu};

	return event_place__open(&place, &attr, -1);
}
