// SPDX-License-Identifier: MIT
#include "target/process.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "util/cleanup.h"
#include "util/fs.h"
#include "util/log.h"
#include "util/names.h"
#include "util/vec.h"

/* Copies a task's name from /proc's text, up to a newline, with control characters replaced. */
static void copy_comm(char comm[static PROCESS_COMM_SIZE], const char *text)
{
	snprintf(comm, PROCESS_COMM_SIZE, "%.*s", (int)strcspn(text, "\n"), text);
	label__clean_in_place(comm);
}

/* The text after "\nField:\t", or NULL. */
static const char *field(const char *text, const char *name)
{
	const char *at = strstr(text, name);

	return at ? at + strlen(name) : NULL;
}

int task_status__parse(struct task_status *status, const char *text)
{
	/* The kernel escapes newlines in the name, so a field cannot be forged by it. */
	const char *name = !strncmp(text, "Name:\t", 6) ? text + 6 : NULL;
	const char *state = field(text, "\nState:\t");
	const char *tgid = field(text, "\nTgid:\t");
	const char *tracer = field(text, "\nTracerPid:\t");
	const char *threads = field(text, "\nThreads:\t");
	const char *inside = field(text, "\nNSpid:\t"), *tab;

	if (!name || !state || !tgid || !tracer || !threads)
		return -ESRCH;
	/* "NSpid:\t4711\t17\t1": one for each namespace, its own last. */
	tab = inside ? memrchr(inside, '\t', strcspn(inside, "\n")) : NULL;
	if (tab)
		inside = tab + 1;
	*status = (struct task_status){
		.state = *state,
		.tgid = atoi(tgid),
		.tracer = atoi(tracer),
		.threads = (unsigned int)strtoul(threads, NULL, 10),
		.has_memory = field(text, "\nVmSize:\t") != NULL,
		.pid_inside = inside ? atoi(inside) : 0,
	};
	copy_comm(status->comm, name);
	return 0;
}

int task_status__read(struct task_status *status, pid_t pid)
{
	_cleanup_free_ char *text = NULL;
	size_t len;
	int err = pid > 0 ? fs__read_proc(pid, "status", &text, &len) : -ESRCH;

	return err ? err : task_status__parse(status, text);
}

static bool is_dead(const struct task_status *status)
{
	return status->state == 'Z' || status->state == 'X';
}

static int refuse_missing(pid_t pid)
{
	log__error("no process with pid %d", (int)pid);
	log__hint("'pgrep -a NAME' lists pids");
	return -ESRCH;
}

static int refuse_access(pid_t pid, const char *comm, int err)
{
	log__error("cannot inspect process %d (%s): %s", (int)pid, comm, strerror(-err));
	if (err == -EACCES || err == -EPERM)
		log__hint("run as the process's user or as root, or with CAP_SYS_PTRACE");
	return err == -EPERM ? -EACCES : err;
}

/* Refuses anything that cannot be traced. */
static int open_process(struct process *process, pid_t pid, bool may_be_kernel)
{
	struct task_status status;
	char exe[PATH_MAX] = "";
	int err = task_status__read(&status, pid);

	*process = (struct process){.pid = pid};
	if (err)
		return err == -ESRCH ? refuse_missing(pid) : refuse_access(pid, "?", err);
	if (status.tgid != pid) {
		log__error("%d is the tid of a thread of process %d", (int)pid, (int)status.tgid);
		log__hint("use -pid %d", (int)status.tgid);
		return -EINVAL;
	}
	if (is_dead(&status) && status.threads > 1) {
		log__error("the main thread of process %d (%s) has exited", (int)pid, status.comm);
		log__hint("mtbpf can only look at a process while its main thread runs");
		return -ESRCH;
	}
	if (is_dead(&status)) {
		log__error("process %d has exited (zombie)", (int)pid);
		log__hint("the process has ended, and its parent has not collected the exit status "
			  "yet; start the program again");
		return -ESRCH;
	}
	memcpy(process->comm, status.comm, sizeof(process->comm));
	if (!status.has_memory && !may_be_kernel) {
		log__error("%d (%s) is a kernel thread", (int)pid, status.comm);
		log__hint(
			"'mtbpf attach' records kernel threads, with -trace-kernel-only (Intel PT) "
			"or -source sample -trace-include-kernel; 'pgrep -a NAME' lists other "
			"processes");
		return -ENOEXEC;
	}
	process->is_kernel_thread = !status.has_memory;
	if (status.has_memory)
		err = fs__read_proc_link(pid, "exe", exe);
	process->exe = err ? NULL : strdup(exe);
	if (!err && !process->exe)
		err = -ENOMEM;
	if (!err && status.has_memory)
		err = mappings__read(&process->maps, pid);
	/* An empty map is what an exiting process shows. */
	if (!err && status.has_memory && !process->maps.n)
		err = -ESRCH;
	if (err) {
		process__close(process);
		return err == -ESRCH ? refuse_missing(pid) : refuse_access(pid, status.comm, err);
	}
	return 0;
}

int process__open(struct process *process, pid_t pid)
{
	return open_process(process, pid, false);
}

int process__open_any(struct process *process, pid_t pid)
{
	return open_process(process, pid, true);
}

void process__close(struct process *process)
{
	mappings__fini(&process->maps);
	free(process->exe);
	process->exe = NULL;
}

static void cleanup__closedir(DIR **dir)
{
	if (*dir)
		closedir(*dir);
}

ORDER(compare_pids, pid_t, COMPARE(*x, *y))

int process__threads(pid_t pid, pid_t **tids, size_t *n)
{
	__attribute__((cleanup(cleanup__closedir))) DIR *dir = NULL;
	VEC(pid_t) vec = {0};
	struct dirent *entry;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	dir = opendir(path);
	if (!dir)
		return errno == ENOENT ? -ESRCH : -errno;
	while ((entry = readdir(dir))) {
		pid_t tid = atoi(entry->d_name);

		if (tid > 0 && VEC_ADD(&vec, tid)) {
			VEC_FINI(&vec);
			return -ENOMEM;
		}
	}
	if (!vec.n)
		return -ESRCH;
	VEC_SORT(&vec, compare_pids);
	*tids = vec.v;
	*n = vec.n;
	return 0;
}

void process__thread_name(pid_t pid, pid_t tid, char name[static PROCESS_COMM_SIZE])
{
	_cleanup_free_ char *text = NULL;
	char path[64];
	size_t len;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/comm", (int)pid, (int)tid);
	copy_comm(name, fs__read(path, &text, &len) ? "?" : text);
}

pid_t process__tracer(pid_t pid)
{
	struct task_status status;

	return task_status__read(&status, pid) ? 0 : status.tracer;
}

bool process__stopped(pid_t pid)
{
	struct task_status status;

	return !task_status__read(&status, pid) && status.state == 'T';
}

/* When the process began, in clock ticks since boot (proc(5)); 0: not known. */
static unsigned long long start_ticks(pid_t pid)
{
	_cleanup_free_ char *text = NULL;
	unsigned long long ticks = 0;
	const char *at;
	size_t len;

	if (fs__read_proc(pid, "stat", &text, &len))
		return 0;
	/* The name in brackets may contain brackets and blanks; the 22nd field is the 20th after
	 * it. */
	at = strrchr(text, ')');
	for (int i = 0; at && i < 20; i++)
		at = strchr(at + 1, ' ');
	return at && sscanf(at, "%llu", &ticks) == 1 ? ticks : 0;
}

/* Kinds of children that has_child() looks for. */
struct sought {
	const struct stat *exe;	     /* those that run this file; NULL: any */
	const struct pid_set *known; /* those that are not among these; NULL: any */
	unsigned long long before;   /* those that began before it; 0: any */
};

static bool is_sought(pid_t child, const struct sought *sought)
{
	const struct stat *exe = sought->exe;
	char path[64];
	struct stat st;

	snprintf(path, sizeof(path), "/proc/%d/exe", (int)child);
	if (exe && (stat(path, &st) || st.st_dev != exe->st_dev || st.st_ino != exe->st_ino))
		return false;
	if (sought->known && pid_set__has(sought->known, child))
		return false;
	return !sought->before || start_ticks(child) < sought->before;
}

/* True if a thread of the process has such a child. */
static bool has_child(pid_t pid, const struct sought *sought)
{
	_cleanup_free_ pid_t *tids = NULL;
	size_t n = 0;

	if (process__threads(pid, &tids, &n))
		return false;
	for (size_t i = 0; i < n; i++) {
		_cleanup_fclose_ FILE *f = NULL;
		char path[64];
		int child;

		snprintf(path, sizeof(path), "/proc/%d/task/%d/children", (int)pid, (int)tids[i]);
		f = fopen(path, "re");
		while (f && fscanf(f, "%d", &child) == 1)
			if (is_sought(child, sought))
				return true;
	}
	return false;
}

bool process__has_workers(pid_t pid)
{
	struct stat exe;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/exe", (int)pid);
	return !stat(path, &exe) && has_child(pid, &(struct sought){.exe = &exe});
}

bool process__has_unknown_child(pid_t pid, const struct pid_set *known, bool only_older)
{
	struct sought sought = {.known = known};

	if (only_older)
		sought.before = start_ticks(getpid());
	return has_child(pid, &sought);
}

/* A main thread that has exited is a zombie as well; its process lives on in the other threads. */
static bool is_alive(const struct task_status *status)
{
	return !is_dead(status) || status->threads > 1;
}

bool process__alive(pid_t pid)
{
	struct task_status status;

	return !task_status__read(&status, pid) && is_alive(&status);
}

/* The place where the mapping's file can be opened: by its name in the process's root, or by its
 * addresses.
 */
static int file_path(pid_t pid, const struct mapping *m, bool by_name, char *path, size_t size)
{
	int n = by_name ? snprintf(path, size, "/proc/%d/root%s", (int)pid, m->path)
			: snprintf(path, size, "/proc/%d/map_files/%" PRIx64 "-%" PRIx64, (int)pid,
				   m->start, m->end);

	return n < 0 || (size_t)n >= size ? -ENAMETOOLONG : 0;
}

static bool has_file(const struct mapping *m)
{
	return m->ino && m->path[0] == '/';
}

/*
 * A package update puts another file under the same name. The device is not compared: on overlayfs
 * stat(2) shows the overlay's, and /proc/PID/maps the lower file system's.
 */
static bool is_same_file(const struct stat *st, const struct mapping *m)
{
	return S_ISREG(st->st_mode) && st->st_ino == m->ino;
}

int process__open_mapping(pid_t pid, const struct mapping *mapping)
{
	char path[PATH_MAX];
	struct stat st;
	int fd, err;

	if (!has_file(mapping))
		return -ENOENT;
	err = file_path(pid, mapping, false, path, sizeof(path));
	if (err)
		return err;
	/* map_files needs CAP_CHECKPOINT_RESTORE, and the mapping as it is this moment. */
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0)
		return fd;
	err = file_path(pid, mapping, true, path, sizeof(path));
	if (err)
		return err;
	/* O_NONBLOCK: opening waits for a writer if the name is a fifo's by now. */
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0)
		return -errno;
	err = fstat(fd, &st) ? -errno : is_same_file(&st, mapping) ? 0 : -ESTALE;
	if (!err)
		return fd;
	close(fd);
	return err;
}

int process__mapping_path(pid_t pid, const struct mapping *mapping, char *path, size_t size)
{
	struct stat st, ours;
	int err;

	if (!has_file(mapping))
		return -ENOENT;
	/* Prefers the name, which stays valid when the mapping is split. */
	err = file_path(pid, mapping, true, path, size);
	if (!err && !stat(path, &st) && is_same_file(&st, mapping)) {
		/* If we see the same file under this name, the name outlives the process. */
		if (!stat(mapping->path, &ours) && ours.st_dev == st.st_dev &&
		    ours.st_ino == st.st_ino)
			strcpy(path, mapping->path);
		return 0;
	}
	err = file_path(pid, mapping, false, path, size);
	if (err)
		return err;
	return stat(path, &st) ? -errno : 0;
}

ssize_t process__read_memory(pid_t pid, uint64_t addr, void *buf, size_t len)
{
	_cleanup_close_ int fd = -1;
	char path[64];
	size_t done = 0;

	snprintf(path, sizeof(path), "/proc/%d/mem", (int)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return errno == ENOENT ? -ESRCH : -errno;
	while (done < len) {
		ssize_t n = pread(fd, (char *)buf + done, len - done, (off_t)(addr + done));

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			break;
		done += (size_t)n;
	}
	return (ssize_t)done;
}

static void fini_entry(struct process_entry *entry)
{
	free(entry->program);
	free(entry->command);
}

void process_list__fini(struct process_list *list)
{
	VEC_FINI_EACH(list, e, fini_entry(e));
}

/*
 * The base name of /proc/PID/exe. A file that was deleted or replaced is still known by its name,
 * without " (deleted)". NULL: out of memory.
 */
static char *base_name(char *path)
{
	char *slash;

	path[mapping_path__length(path)] = '\0';
	slash = strrchr(path, '/');
	return strdup(slash ? slash + 1 : path);
}

/*
 * 0 or -errno. -ESRCH: the process has ended, is a kernel thread, or /proc hides it from this user.
 * After other errors, such as too many open files, nothing is known about the process.
 */
static int read_entry(pid_t pid, struct process_entry *entry)
{
	struct task_status status;
	char exe[PATH_MAX];
	size_t len = 0;
	int err;

	*entry = (struct process_entry){.pid = pid};
	if (pid == getpid())
		return -ESRCH;
	err = task_status__read(&status, pid);
	if (!err && !is_alive(&status))
		return -ESRCH;
	if (!err) {
		process__thread_name(pid, pid, entry->comm);
		/* A title that the kernel has cut to 15 bytes may end in a blank: nobody types
		 * that. */
		for (len = strlen(entry->comm); len && entry->comm[len - 1] == ' '; len--)
			entry->comm[len - 1] = '\0';
		/* Another user's link reads as "": the process is there, and its comm is known. */
		if (fs__read_proc_link(pid, "exe", exe) == -ESRCH)
			return -ESRCH;
		entry->program = base_name(exe);
		if (!entry->program)
			return -ENOMEM;
		err = fs__read_proc(pid, "cmdline", &entry->command, &len);
	}
	if (err)
		return err == -EACCES || err == -EPERM ? -ESRCH : err;
	/* The arguments as ps shows them. */
	for (size_t i = 0; i < len; i++)
		if ((unsigned char)entry->command[i] < ' ')
			entry->command[i] = ' ';
	while (len && entry->command[len - 1] == ' ')
		entry->command[--len] = '\0';
	return 0;
}

ORDER(compare_entries, struct process_entry, COMPARE(x->pid, y->pid))

static int read_list(struct process_list *list)
{
	__attribute__((cleanup(cleanup__closedir))) DIR *proc = opendir("/proc");
	int err = 0;

	*list = (struct process_list){0};
	if (!proc)
		return -errno;
	while (!err) {
		struct process_entry entry;
		struct dirent *found;
		pid_t pid;

		errno = 0;
		found = readdir(proc);
		if (!found) {
			err = -errno;
			break;
		}
		pid = atoi(found->d_name);
		if (pid <= 0)
			continue;
		err = read_entry(pid, &entry);
		if (!err)
			err = VEC_ADD(list, entry);
		if (err)
			fini_entry(&entry);
		if (err == -ESRCH)
			err = 0;
	}
	VEC_SORT(list, compare_entries);
	return err;
}

int process_list__read(struct process_list *list)
{
	int err = read_list(list);

	if (err) {
		log__error("cannot read the list of processes: %s", strerror(-err));
		if (err == -ENOMEM || err == -EMFILE || err == -ENFILE)
			log__hint("raise the limits of memory and open files: ulimit -v, ulimit "
				  "-n");
		else
			log__hint("mount /proc, and let mtbpf read it");
	}
	return err;
}

bool process_entry__matches(const struct process_entry *entry, const char *glob)
{
	return !fnmatch(glob, entry->comm, 0) || !fnmatch(glob, entry->program, 0);
}

int64_t time_namespace__parse(const char *text)
{
	const char *line = strstr(text, "monotonic");
	long long seconds, ns;

	if (!line || sscanf(line, "monotonic %lld %lld", &seconds, &ns) != 2)
		return 0;
	return (int64_t)((uint64_t)seconds * 1000000000u + (uint64_t)ns);
}

int64_t time_namespace__offset_ns(pid_t pid)
{
	_cleanup_free_ char *text = NULL;
	size_t len;

	return fs__read_proc(pid, "timens_offsets", &text, &len) ? 0 : time_namespace__parse(text);
}

void pid_set__fini(struct pid_set *set)
{
	VEC_FINI(set);
}

/* The index of pid, or where to insert it. */
static size_t place_of(const struct pid_set *set, pid_t pid)
{
	return VEC_PARTITION_POINT(set, e, *e < pid);
}

bool pid_set__has(const struct pid_set *set, pid_t pid)
{
	size_t at = place_of(set, pid);

	return at < set->n && set->v[at] == pid;
}

int pid_set__add(struct pid_set *set, pid_t pid)
{
	size_t at = place_of(set, pid);

	return at < set->n && set->v[at] == pid ? 0 : VEC_INSERT(set, at, pid);
}

void pid_set__remove(struct pid_set *set, pid_t pid)
{
	size_t at = place_of(set, pid);

	if (at < set->n && set->v[at] == pid)
		VEC_REMOVE(set, at);
}

int pid_set__add_all(struct pid_set *to, const struct pid_set *from)
{
	int err = 0;

	for (size_t i = 0; i < from->n && !err; i++)
		err = pid_set__add(to, from->v[i]);
	return err;
}

int pid_set__parse(struct pid_set *set, const char *text)
{
	for (;;) {
		char *end;
		long pid;
		int err = 0;

		if (!isdigit((unsigned char)*text))
			return -EINVAL;
		errno = 0;
		pid = strtol(text, &end, 10);
		if (*end && *end != ',')
			return -EINVAL;
		if (errno || pid > INT_MAX)
			return -ERANGE;
		if (pid)
			err = pid_set__add(set, (pid_t)pid);
		if (err || !*end)
			return err;
		text = end + 1;
	}
}
