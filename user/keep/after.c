// SPDX-License-Identifier: MIT
#include "keep/after.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "util/clock.h"
#include "util/fs.h"
#include "util/log.h"
#include "util/signals.h"
#include "util/units.h"

#define LOOK_MS 20
/* The lowest priority. */
#define NICE 19

/* The exit codes of the process; those of the command are its own. */
enum { EXIT_NO_EXEC = 126, EXIT_NO_COMMAND = 127 };

void after__init(struct after *after, const struct keep_options *options)
{
	*after = (struct after){.options = options, .from = -1};
}

/* Without -on-capture only the summaries of `n` recordings are missing: no command has failed. */
static void fail(const struct after *after, size_t n, struct metrics *m)
{
	if (after->options->on_capture)
		m->on_capture[ON_CAPTURE_FAILED] += n;
}

/* Names what is done with each recording, for messages. */
static const char *work_of(const struct after *after)
{
	if (!after->options->on_capture)
		return "summary";
	return after->options->summarise ? "summary and -on-capture" : "-on-capture";
}

/*
 * Summarises in another process, because that process gives up its capabilities, which the command
 * may need.
 */
static void summarise(const struct keep_options *options, const char *path, int to)
{
	const struct sched_param idle = {0};
	struct metrics_cause causes[KEEP_CAUSES_MAX];
	pid_t pid = child_process__fork();
	int n;

	if (pid > 0) {
		while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
			;
		return;
	}
	if (pid < 0)
		return;
	setpriority(PRIO_PROCESS, 0, NICE);
	sched_setscheduler(0, SCHED_IDLE, &idle);
	n = options->summarise(path, causes);
	if (n > 0)
		fs__write_fd(to, causes, (size_t)n * sizeof(causes[0]));
	_exit(0);
}

static void work_and_exit(const struct keep_options *options, const char *path, int to)
{
	char *const words[] = {(char *)options->on_capture, (char *)path, NULL};
	int null = open("/dev/null", O_RDWR), err;
	sigset_t none;

	setpgid(0, 0);
	/* Open descriptors would keep mtbpf's probes in the kernel. */
	dup2(null, STDIN_FILENO);
	fs__close_all_but(3, to, -1);
	/* The lock keeps the recording from being removed: see folder.h. */
	flock(open(path, O_RDONLY | O_DIRECTORY), LOCK_SH | LOCK_NB);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	if (options->summarise)
		summarise(options, path, to);
	close(to);
	if (!options->on_capture)
		_exit(0);
	/* The command may outlive mtbpf. */
	prctl(PR_SET_PDEATHSIG, 0);
	execvp(words[0], words);
	err = errno;
	log__error("-on-capture: cannot run %s: %s", words[0], strerror(err));
	log__hint("name a command that exists, with its path or found in $PATH");
	_exit(err == ENOENT ? EXIT_NO_COMMAND : EXIT_NO_EXEC);
}

static void drop_first(struct after *after)
{
	memmove(after->queue[0], after->queue[1], --after->n * sizeof(after->queue[0]));
	after->pid = 0;
}

static void begin(struct after *after, struct metrics *m)
{
	int ends[2];

	if (!pipe2(ends, O_CLOEXEC)) {
		after->until_ns = clock__now_ns() + after->options->on_capture_timeout_ns;
		after->pid = child_process__fork();
		if (!after->pid)
			work_and_exit(after->options, after->queue[0], ends[1]);
		close(ends[1]);
		after->from = ends[0];
		if (after->pid > 0)
			return;
		close(after->from);
	}
	log__warn("%s is kept, but the process for its summary and -on-capture cannot start: %s",
		  after->queue[0], strerror(errno));
	fail(after, 1, m);
	drop_first(after);
}

static void kill_group(const struct after *after)
{
	/* The child may not have created its process group yet. */
	if (kill(-after->pid, SIGKILL))
		kill(after->pid, SIGKILL);
}

/*
 * Takes the causes that the ended process has written. status: its exit status, which is counted;
 * NULL: not known.
 */
static void finish(struct after *after, const int *status, struct metrics *m)
{
	struct metrics_cause causes[KEEP_CAUSES_MAX];
	const char *command = after->options->on_capture;
	ssize_t n;

	fcntl(after->from, F_SETFL, O_NONBLOCK);
	n = read(after->from, causes, sizeof(causes));
	for (size_t i = 0; n > 0 && i < (size_t)n / sizeof(causes[0]); i++)
		metrics__add_cause(m, &causes[i]);
	close(after->from);
	if (command && status) {
		m->on_capture[*status ? ON_CAPTURE_FAILED : ON_CAPTURE_OK]++;
		if (WIFSIGNALED(*status))
			log__warn("-on-capture: '%s %s' was ended by a signal: %s", command,
				  after->queue[0], strsignal(WTERMSIG(*status)));
		else if (*status)
			log__warn("-on-capture: '%s %s' exited with %d", command, after->queue[0],
				  WEXITSTATUS(*status));
	}
	drop_first(after);
}

bool after__look(struct after *after, struct metrics *m)
{
	bool is_done = false;
	int status;
	pid_t ended;

	if (after->pid) {
		if (clock__now_ns() >= after->until_ns) {
			log__warn("%s: %s took longer than -on-capture-timeout (%s) and was ended",
				  after->queue[0], work_of(after),
				  DURATION(after->options->on_capture_timeout_ns));
			kill_group(after);
			after->until_ns = UINT64_MAX; /* it is killed once */
		}
		ended = waitpid(after->pid, &status, WNOHANG);
		if (!ended)
			return false;
		finish(after, ended > 0 ? &status : NULL, m);
		is_done = true;
	}
	if (after->n)
		begin(after, m);
	return is_done;
}

void after__add(struct after *after, const char *path, struct metrics *m)
{
	const struct keep_options *options = after->options;
	char absolute[PATH_MAX];

	if (!options->summarise && !options->on_capture)
		return;
	if (after->n == AFTER_QUEUE_MAX) {
		log__warn("%s: the recording gets no %s: %d others are waiting already", path,
			  work_of(after), AFTER_QUEUE_MAX);
		fail(after, 1, m);
		return;
	}
	if (!realpath(path, absolute)) {
		log__warn("%s: the recording gets no %s: %s", path, work_of(after),
			  strerror(errno));
		fail(after, 1, m);
		return;
	}

	strcpy(after->queue[after->n++], absolute);
	after__look(after, m);
}

const char *after__current(const struct after *after)
{
	return after->pid ? after->queue[0] : NULL;
}

void after__end(struct after *after, struct metrics *m)
{
	uint64_t until_ns = clock__now_ns() + after->options->on_capture_timeout_ns;

	if (after->n > 1 || (after->n && after->options->on_capture))
		log__info(
			"waiting until the summaries and -on-capture of %zu recording%s have ended",
			after->n, after->n == 1 ? "" : "s");
	while (after->n && clock__now_ns() < until_ns) {
		after__look(after, m);
		if (after->n)
			poll(NULL, 0, LOOK_MS);
	}
	if (!after->n)
		return;
	log__warn("%s of %zu recording%s not done: before it exits, mtbpf waits at most %s "
		  "(-on-capture-timeout)",
		  work_of(after), after->n, after->n == 1 ? "" : "s",
		  DURATION(after->options->on_capture_timeout_ns));
	fail(after, after->n, m);
	if (!after->pid)
		return;
	kill_group(after);
	waitpid(after->pid, NULL, 0);
	close(after->from);
	after->pid = 0;
}
