// SPDX-License-Identifier: MIT
#include "selftest/trial.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "mtbpf.h"
#include "capture/probe/uprobe_event.h"
#include "selftest/judge.h"
#include "util/cleanup.h"
#include "util/fs.h"
#include "util/signals.h"

static void name_file(const struct trial *trial, const char *suffix, char path[static PATH_MAX])
{
	snprintf(path, PATH_MAX, "%s/%s.%s", trial->dir, trial->name, suffix);
}

/* ---- the child that runs the programs */

static pid_t start_programs(const struct trial *trial)
{
	pid_t pid = child_process__fork();

	if (pid)
		return pid;
	/* The selftest's signal handlers are not for its children. */
	signal(SIGINT, SIG_DFL);
	signal(SIGTERM, SIG_DFL);
	signal(SIGHUP, SIG_DFL);
	if (trial->cpu) {
		cpu_set_t set;

		CPU_ZERO(&set);
		CPU_SET(trial->cpu - 1, &set);
		if (sched_setaffinity(0, sizeof(set), &set))
			_exit(1);
	}
	/* yama allows only ancestors to single-step a process; `mtbpf record` is a sibling. */
	prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
	programs__run(trial->log, trial->programs);
}

/* True if the programs end `more` further iterations within ten seconds. */
static bool goes_on(const struct trial *trial, unsigned long more)
{
	unsigned long end = trial->log->n_iterations + more;

	for (int i = 0; i < 500 && trial->log->n_iterations < end; i++) {
		siginfo_t info = {0};

		if (waitid(P_PID, (id_t)trial->child, &info, WEXITED | WNOHANG | WNOWAIT) ||
		    info.si_pid)
			break;
		usleep(20000);
	}
	return trial->log->n_iterations >= end;
}

/* ---- a cgroup for the programs, below the root of the file system of cgroups (v2) */

#define CGROUPS "/sys/fs/cgroup"

static void name_cgroup(char name[static 64])
{
	snprintf(name, 64, "mtbpf-selftest.%d", getpid());
}

/*
 * The process that removes the cgroup once the selftest has closed the pipe, or has ended in any
 * way: by then the selftest's programs have ended, too.
 */
static _Noreturn void remove_cgroup_later(const char *path, int from_selftest)
{
	char byte;

	setsid();
	signal(SIGINT, SIG_IGN);
	signal(SIGTERM, SIG_IGN);
	signal(SIGHUP, SIG_IGN);
	while (read(from_selftest, &byte, 1) < 0 && errno == EINTR)
		;
	for (int i = 0; i < 500 && rmdir(path) && errno == EBUSY; i++)
		usleep(10000);
	_exit(0);
}

static bool make_cgroup(struct trial *trial, char why[static TRIAL_TEXT_SIZE])
{
	char name[64], path[PATH_MAX], procs[PATH_MAX + 16], pid[16];
	int ends[2];

	name_cgroup(name);
	snprintf(path, sizeof(path), CGROUPS "/%s", name);
	snprintf(procs, sizeof(procs), "%s/cgroup.procs", path);
	snprintf(pid, sizeof(pid), "%d", trial->child);
	snprintf(why, TRIAL_TEXT_SIZE, "cannot make the cgroup " CGROUPS "/%s", name);
	if (mkdir(path, 0755) || pipe2(ends, O_CLOEXEC))
		return false;
	trial->remover = fork();
	if (!trial->remover) {
		close(ends[1]);
		remove_cgroup_later(path, ends[0]);
	}
	close(ends[0]);
	trial->remover_end = ends[1];
	return trial->remover > 0 && !fs__write(procs, pid, strlen(pid));
}

/* ---- the recording */

#define MAX_WORDS 32

/*
 * Runs `mtbpf record` as a user would; its messages go to a file. Returns the exit code, or -errno.
 */
static int run_record(const struct trial *trial, const char *recording, const char *messages)
{
	char of[64];
	/* The first hit may end an iteration that had begun before the recording: -skip. */
	const char *words[MAX_WORDS] = {"mtbpf",
					"record",
					"-q",
					"-source",
					trial->source,
					"-o",
					recording,
					trial->is_of_cgroup ? "-cgroup" : "-pid",
					of,
					"-skip",
					"1",
					"-timeout",
					"180s"};
	int n = 13, status;
	pid_t pid;

	if (trial->is_of_cgroup)
		name_cgroup(of);
	else
		snprintf(of, sizeof(of), "%d", trial->child);
	if (trial->is_portable)
		words[n++] = "-portable";
	for (const char *const *word = trial->options; *word && n < MAX_WORDS - 1; word++)
		words[n++] = *word;
	pid = fork();
	if (pid < 0)
		return -errno;
	if (!pid) {
		int fd = open(messages, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

		prctl(PR_SET_PDEATHSIG, SIGTERM);
		if (fd < 0 || dup2(fd, 1) < 0 || dup2(fd, 2) < 0)
			_exit(127);
		execv("/proc/self/exe", (char *const *)words);
		_exit(127);
	}
	if (waitpid(pid, &status, 0) != pid)
		return -errno;
	return WIFEXITED(status) ? WEXITSTATUS(status) : -EINTR;
}

static void explain_code(int code, const char *messages, char why[static TRIAL_TEXT_SIZE])
{
	_cleanup_free_ char *text = NULL;
	size_t len;

	if (fs__read(messages, &text, &len))
		text = NULL;
	if (code == 3 && text && !text[0]) /* EXIT_NO_TRIGGER, which -q does not explain */
		snprintf(why, TRIAL_TEXT_SIZE,
			 "'mtbpf record' has seen no hit within three minutes");
	else
		snprintf(why, TRIAL_TEXT_SIZE, "'mtbpf record' ended with %d: %.*s", code,
			 text ? (int)strcspn(text, "\n") : 0, text ?: "");
}

/* ---- `perf trace` of getppid() and nanosleep(), meanwhile */

/* `perf trace` prints each call to stderr, unbuffered, when the call returns. */
static _Noreturn void become_trace(pid_t target, const char *path)
{
	char pid[16];
	const char *const words[] = {"perf", "trace", "-e", "getppid,nanosleep,clock_nanosleep",
				     "-p",   pid,     NULL};
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	signal(SIGINT, SIG_DFL);
	snprintf(pid, sizeof(pid), "%d", target);
	if (fd < 0 || dup2(fd, STDOUT_FILENO) < 0 || dup2(fd, STDERR_FILENO) < 0)
		_exit(126);
	execvp("perf", (char *const *)words);
	_exit(127);
}

/*
 * Starts `perf trace`, and waits, at most ten seconds, until it has seen getppid(). If it has not,
 * sets trial->perf_error. The output is kept in a file that end_trace() removes. Returns the pid,
 * or 0 if no process is left.
 */
static pid_t begin_trace(struct trial *trial)
{
	char path[PATH_MAX];
	pid_t pid;
	int status;

	name_file(trial, "perf-trace", path);
	pid = fork();
	if (!pid)
		become_trace(trial->child, path);
	if (pid < 0) {
		trial->perf_error = -errno;
		return 0;
	}
	for (int i = 0; i < 500; i++) {
		_cleanup_free_ char *text = NULL;
		size_t len;

		if (!fs__read(path, &text, &len) && strstr(text, "getppid("))
			return pid;
		if (waitpid(pid, &status, WNOHANG) == pid) {
			trial->perf_error =
				WIFEXITED(status) && WEXITSTATUS(status) == 127 ? -ENOENT : -EIO;
			return 0;
		}
		usleep(20000);
	}
	trial->perf_error = -EIO;
	return pid;
}

/*
 * Ends `perf trace` (pid 0: it does not run), and counts the calls that it has printed between the
 * first and the last nanosleep().
 */
static void end_trace(struct trial *trial, pid_t pid)
{
	struct perf_syscalls *syscalls = &trial->perf_syscalls;
	_cleanup_free_ char *line = NULL;
	_cleanup_fclose_ FILE *f = NULL;
	bool has_begun = false, has_ended = false;
	char path[PATH_MAX];
	unsigned int n = 0;
	size_t size = 0;

	if (pid) {
		kill(pid, SIGINT);
		for (int i = 0; i < 500 && !(has_ended = waitpid(pid, NULL, WNOHANG)); i++)
			usleep(20000);
		/* Its pid may belong to another process once it has been waited for. */
		if (!has_ended) {
			kill(pid, SIGKILL);
			waitpid(pid, NULL, 0);
		}
	}
	name_file(trial, "perf-trace", path);
	f = fopen(path, "re");
	while (f && getline(&line, &size, f) > 0) {
		syscalls->lost += strstr(line, "LOST") != NULL;
		n += strstr(line, "getppid(") != NULL;
		if (!strstr(line, "nanosleep("))
			continue;
		if (has_begun) {
			syscalls->iterations++;
			syscalls->calls += n;
		}
		has_begun = true;
		n = 0;
	}
	if (f)
		unlink(path);
}

/*
 * ---- what the programs noted, as text: "iteration K"; "of PID BUSY_NS PLAIN_BUSY_NS SYSCALLS";
 * then one line per call: "TIME_NS TID DEPTH FUNCTION EVENT VECTOR VALUE". Bundles of older
 * versions have the first four only
 */

static int write_truth(const struct trial *trial, uint64_t k)
{
	_cleanup_free_ char *text = NULL;
	char path[PATH_MAX];
	size_t len;
	FILE *f = open_memstream(&text, &len);

	if (!f)
		return -ENOMEM;
	fprintf(f, "iteration %" PRIu64 "\nof %d %" PRIu64 " %" PRIu64 " %u\n", k, trial->child,
		trial->iteration->busy_ns, trial->log->plain_busy_ns,
		trial->iteration->kernels_syscalls);
	for (unsigned int i = 0; i < trial->iteration->n; i++) {
		const struct noted_call *call = &trial->iteration->calls[i];

		fprintf(f, "%" PRIu64 " %d %" PRIu16 " %s %u %u %#" PRIx64 "\n", call->time_ns,
			call->tid, call->depth, program_functions[call->function].name, call->event,
			call->vector, call->value);
	}
	if (fclose(f))
		return -ENOMEM;
	name_file(trial, "truth", path);
	return fs__write(path, text, len);
}

/*
 * Reads the notes into the log, as if that iteration had just ended. Functions that this version
 * does not know are left out. 0 or -errno.
 */
static int read_truth(struct trial *trial)
{
	_cleanup_fclose_ FILE *f = NULL;
	_cleanup_free_ char *line = NULL;
	struct iteration *iteration;
	char path[PATH_MAX], name[64];
	unsigned int i;
	uint64_t k;
	size_t size = 0;

	name_file(trial, "truth", path);
	f = fopen(path, "re");
	if (!f)
		return -errno;
	if (fscanf(f, "iteration %" SCNu64 "\n", &k) != 1)
		return -EBADMSG;
	trial->log->n_iterations = k;
	iteration = &trial->log->iterations[k % KEPT_ITERATIONS];
	iteration->n = 0;
	if (fscanf(f, "of %d %" SCNu64 " %" SCNu64 " %u\n", &trial->first, &iteration->busy_ns,
		   &trial->log->plain_busy_ns, &iteration->kernels_syscalls) != 4)
		return -EBADMSG;
	while (getline(&line, &size, f) > 0) {
		struct noted_call call = {0};

		if (sscanf(line, "%" SCNu64 " %d %" SCNu16 " %63s %" SCNu8 " %" SCNu8 " %" SCNx64,
			   &call.time_ns, &call.tid, &call.depth, name, &call.event, &call.vector,
			   &call.value) < 4)
			return -EBADMSG;
		for (i = 0; i < n_program_functions && strcmp(program_functions[i].name, name);)
			i++;
		call.function = (uint16_t)i;
		if (i < n_program_functions && iteration->n < MAX_NOTED)
			iteration->calls[iteration->n++] = call;
	}
	return 0;
}

/* ---- the trace of it */

/* The number of the iteration of the hit that ended the trace, or 0 after `why` is set. */
static uint64_t decode(struct trial *trial, char why[static TRIAL_TEXT_SIZE])
{
	uint64_t k, n = trial->log->n_iterations;
	char recording[PATH_MAX];

	name_file(trial, "mtbpf", recording);
	if (recording__read(&trial->rec, recording) ||
	    decoded__make(&trial->decoded, &trial->rec, &(struct tree_options){0})) {
		snprintf(why, TRIAL_TEXT_SIZE, "the recording cannot be decoded");
		return 0;
	}
	trial->hit = judge__find_hit(&trial->decoded, &k);
	/*
	 * The hit may be of iteration n + 1, which has not been counted yet. Later numbers are
	 * wrong, and iterations that ended KEPT_ITERATIONS or more ago are no longer kept.
	 */
	if (trial->hit && k && k <= n + 1 && n < k + KEPT_ITERATIONS) {
		trial->iteration = &trial->log->iterations[k % KEPT_ITERATIONS];
		if (trial->iteration->n <= MAX_NOTED)
			return k;
	}
	snprintf(why, TRIAL_TEXT_SIZE, "the hit that ends the recording is not in it");
	return 0;
}

static void begin(struct trial *trial)
{
	trial->decoded = (struct decoded){0};
	recording__init(&trial->rec);
	memset(trial->log, 0, sizeof(*trial->log));
}

bool trial__make(struct trial *trial, char why[static TRIAL_TEXT_SIZE])
{
	char recording[PATH_MAX], messages[PATH_MAX];
	pid_t perf_trace = 0;
	uint64_t k;
	int code, err;

	begin(trial);
	trial->child = trial->first = start_programs(trial);
	if (trial->child < 0 || !goes_on(trial, 1)) {
		snprintf(why, TRIAL_TEXT_SIZE, "the programs of this test did not run");
		return false;
	}
	if (trial->is_of_cgroup && !make_cgroup(trial, why))
		return false;
	name_file(trial, "mtbpf", recording);
	name_file(trial, "log", messages);
	if (trial->has_perf_trace)
		perf_trace = begin_trace(trial);
	code = run_record(trial, recording, messages);
	if (trial->has_perf_trace)
		end_trace(trial, perf_trace);
	/* Stops the programs, so that no later iteration overwrites the recorded one. */
	kill(trial->child, SIGSTOP);
	if (code) {
		explain_code(code, messages, why);
		return false;
	}
	k = decode(trial, why);
	/*
	 * Uses the shortest loop of the last recorded iterations, since other programs share the
	 * CPU.
	 */
	for (uint64_t i = k > 2 ? k - 2 : 1; i < k; i++) {
		struct iteration *own = &trial->log->iterations[k % KEPT_ITERATIONS];
		uint64_t ns = trial->log->iterations[i % KEPT_ITERATIONS].busy_ns;

		if (ns && ns < own->busy_ns)
			own->busy_ns = ns;
	}
	err = k ? write_truth(trial, k) : 0;
	if (err)
		snprintf(why, TRIAL_TEXT_SIZE, "cannot write %s.truth: %s", trial->name,
			 strerror(-err));
	return k && !err;
}

bool trial__load(struct trial *trial, char why[static TRIAL_TEXT_SIZE])
{
	int err;

	begin(trial);
	trial->child = 0;
	err = read_truth(trial);
	if (err)
		snprintf(why, TRIAL_TEXT_SIZE, "cannot read %s.truth: %s", trial->name,
			 strerror(-err));
	return !err && decode(trial, why);
}

bool trial__is_there(const char *dir, const char *name)
{
	const struct trial trial = {.dir = dir, .name = name};
	char path[PATH_MAX];

	name_file(&trial, "truth", path);
	return !access(path, F_OK);
}

void trial__end(struct trial *trial)
{
	if (trial->child > 0) {
		kill(trial->child, SIGKILL);
		waitpid(trial->child, NULL, 0);
	}
	/* A cgroup can be removed only after its processes have ended. */
	if (trial->remover > 0) {
		close(trial->remover_end);
		waitpid(trial->remover, NULL, 0);
	}
	decoded__fini(&trial->decoded);
	recording__fini(&trial->rec);
}

/* ---- what is left of it in the process */

/*
 * True if a probe is left in the process, or if that cannot be found out. The child is a copy of
 * this process, so the probed function is at the same address in both. Its code is compared with
 * the file, since a probe of the file may be in this process, too.
 */
static bool is_probed(pid_t pid)
{
	unsigned char on_disk[16], there[16];
	_cleanup_close_ int fd = -1, file = -1;
	struct uprobe_spec spec;
	char path[64];

	if (own_probe__spec_of(&spec, (uintptr_t)mtbpf_hit))
		return true;
	snprintf(path, sizeof(path), "/proc/%d/mem", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	file = open(spec.path, O_RDONLY | O_CLOEXEC);
	return fd < 0 || file < 0 ||
	       pread(file, on_disk, sizeof(on_disk), (off_t)spec.offset) != sizeof(on_disk) ||
	       pread(fd, there, sizeof(there), (off_t)(uintptr_t)mtbpf_hit) != sizeof(there) ||
	       memcmp(on_disk, there, sizeof(there)) != 0;
}

const char *trial__find_harm(const struct trial *trial)
{
	_cleanup_free_ char *text = NULL;
	size_t len;

	kill(trial->child, SIGCONT);
	if (!goes_on(trial, 2))
		return "the target does not run on";
	if (fs__read_proc(trial->child, "status", &text, &len) ||
	    !strstr(text, "TracerPid:\t0\n") || strstr(text, "State:\tT") ||
	    strstr(text, "State:\tt"))
		return "the target is stopped, or still traced";
	if (is_probed(trial->child))
		return "a probe is left in the target";
	return NULL;
}
