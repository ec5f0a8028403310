// SPDX-License-Identifier: MIT
/* attach and record: capture a running process. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include "captures.h"
#include "apart.h"
#include "cmd.h"
#include "keep/keeper.h"
#include "pipeline/output_name.h"
#include "pipeline/pipeline.h"
#include "serve/show.h"
#include "session/capture_options.h"
#include "session/labels.h"
#include "session/session.h"
#include "util/cleanup.h"
#include "util/fs.h"
#include "util/log.h"
#include "util/signals.h"
#include "util/units.h"
#include "util/vec.h"
#include "view/phases.h"

/* After the options are read: the common part of attach, run and record. */

/* The result besides the recording. For Intel PT there is a summary only with a trace. */
enum capture_result { CAPTURE_RECORDING, CAPTURE_SUMMARY, CAPTURE_TRACE };

static void say_full_end(enum session_end end, const struct recording *rec)
{
	uint64_t drops[DROPS];

	if (end == SESSION_EXITED && recording__drops(rec, drops))
		log__info("the program has ended: all of it is recorded, except what was lost");
	else if (end == SESSION_EXITED)
		log__info("the program has ended: all of it is recorded");
	else
		log__info("%s: the run until now is recorded, and the program runs on",
			  end == SESSION_TIMED_OUT ? "-timeout reached" : "interrupted");
}

static void say_end(enum session_end end, bool has_trigger, bool of_requests)
{
	switch (end) {
	case SESSION_TRIGGERED:
		log__info("triggered: the trace is frozen, the target runs on");
		break;
	case SESSION_INTERRUPTED:
		log__info(has_trigger ? "interrupted before a trigger: the snapshot was taken now, "
					"the target runs on"
				      : "interrupted: the snapshot was taken now, the target "
					"runs on");
		break;
	case SESSION_TIMED_OUT:
		log__info("%s: the snapshot was taken now, the target runs on",
			  has_trigger ? "no trigger before -timeout" : "-timeout reached");
		if (of_requests)
			log__hint("a request begins when it is read: -symbol "
				  "'syscall:send*(socket)' -delay-thresh also finds threads that "
				  "read late");
		break;
	case SESSION_COMMAND_ENDED:
		log__info("the command has ended%s: the snapshot was taken now, the target runs on",
			  has_trigger ? " before a trigger" : "");
		break;
	case SESSION_ASKED: /* only with an observer */
		break;
	case SESSION_HITS_OVER:
		log__info("no trigger within -max-hits: the snapshot was taken at the last hit, "
			  "the target runs on");
		break;
	case SESSION_EXITED:
		log__info("the target has exited: the snapshot shows its last moments");
		break;
	}
}

/*
 * Checks that the output can be written before the target is touched. Leaves nothing there, and
 * does not move an existing file, which may be the user's only copy of an earlier capture.
 */
static int check_output(const struct output_names *names, bool decode)
{
	char probe[PATH_MAX + sizeof(".XXXXXX")];
	struct stat st;
	int err;

	if (decode && !stat(names->trace, &st) && !S_ISREG(st.st_mode)) {
		log__error("cannot write %s: it exists and is not a regular file", names->trace);
		log__hint("choose another name with -o");
		return -EINVAL;
	}
	snprintf(probe, sizeof(probe), "%s.XXXXXX", names->recording);
	if (mkdtemp(probe) && !rmdir(probe))
		return 0;
	err = -errno;
	log__error("cannot create the recording %s: %s", names->recording, strerror(-err));
	log__hint(err == -ENOENT ? "the folder must exist; choose another with -o"
				 : "choose another path with -o");
	return err;
}

static int refuse_nothing(const struct capture_options *options, const struct session_start *start,
			  const struct recording *rec)
{
	bool is_one = !start->exec_path && !target__is_cgroup(start->target) &&
		      start->target->pids.n == 1;

	/* A very short region may not contain a sample. */
	if (options->start) {
		log__error("nothing was recorded between -start and -stop");
		log__hint("check with 'mtbpf watch' that -start and -stop are both hit; -source "
			  "sample may miss short regions: raise -sample-rate%s",
			  threshold__is_set(&options->duration_thresh)
				  ? ""
				  : ", or use -duration-thresh");
		return -ENOMSG;
	}
	/* `run`: the program did not start; the reason has been printed. */
	if (start->exec_path)
		return -ENOMSG;
	return empty_snapshot__refuse(rec, is_one ? start->target->pids.v[0] : 0);
}

static int write_recording(struct recording *rec, const struct option_list *labels,
			   const char *path)
{
	uint64_t bytes = 0;
	int err = recording_dir__create(path);

	if (!err)
		err = labels__add(rec, "", labels);
	if (!err)
		err = recording__write(rec, path);
	/* check_output() has found the place writable: any later error is -EIO. */
	if (err)
		return -EIO;
	fs__tree_size(path, &bytes);
	log__info("recording: %s, %s ('perf script -i' reads it too)", path, BYTES(bytes));
	return 0;
}

struct decoding {
	const struct capture_options *options;
	struct recording *rec;
	const struct output_names *names;
	struct phases *phases;
};

/*
 * Stores the summary, except with -no-inline. If it is missing, 'report' of many captures decodes
 * the recording.
 */
static void keep_summary(const struct decoded *decoded, const struct decoding *d)
{
	const char *path = d->names->recording;
	int err = d->options->no_inline ? 0 : captures__keep_summary(decoded, d->rec, path);

	if (err)
		log__debug("%s: no summary was written: %s", path, strerror(-err));
}

/*
 * Decodes the recording; Ctrl-C may interrupt it, since the recording is safe. Returns -errno, or 1
 * if something was lost, otherwise 0.
 */
static int make_trace(void *context)
{
	const struct decoding *d = (const struct decoding *)context;
	_cleanup_free_ char *stopped = stopped__format(d->names->recording, d->names->trace);
	const struct tree_options trees = {.no_inline = d->options->no_inline,
					   .trace = d->names->trace};
	const struct recording *rec = d->rec;
	struct decoded decoded;
	int err;

	/* All files of the recording are open; only the trace is written. */
	confine__decoding(d->names->trace, false, &rec, 1);
	memory_limit__set(d->options->max_memory);
	stop__begin(stopped ?: "");
	interrupts__release();
	log__info("decoding; Ctrl-C stops decoding and keeps the recording");
	err = decoded__make(&decoded, d->rec, &trees);
	phases__end(d->phases, "decoding");
	if (!err)
		err = decoded__write_trace(&decoded, d->rec, d->names->trace);
	phases__end(d->phases, "writing the trace");
	interrupts__hold();
	stop__end();
	if (!err) {
		phases__say(d->phases);
		decoded__summarise(&decoded, d->rec, stdout, REPORT_ROWS);
		keep_summary(&decoded, d);
		err = !decoded__is_whole(&decoded, d->rec);
	}
	decoded__fini(&decoded);
	/* Keeps the order with later lines on stderr, also in a pipe. */
	fflush(stdout);
	if (err >= 0 && !d->options->view)
		next_step__say("view", d->names->trace);
	return err;
}

/* Decodes in a child process. A Ctrl-C from before is ignored. */
static int make_trace_apart(const struct capture_options *options, struct recording *rec,
			    const struct output_names *names, struct phases *phases, bool *is_whole)
{
	struct decoding decoding = {options, rec, names, phases};
	int result;

	interrupts__release();
	interrupts__hold();
	result = apart__run(make_trace, &decoding, "decoding",
			    "the recording is complete: 'mtbpf decode' makes the trace");
	*is_whole = !result;
	return result < 0 ? result : 0;
}

/* Makes the summary silently and at low priority: the capture is complete and has been reported. */
static int make_summary(void *context)
{
	const struct decoding *d = context;
	const struct recording *rec = d->rec;
	struct decoded decoded;

	confine__decoding(d->names->recording, false, &rec, 1);
	memory_limit__set(d->options->max_memory);
	setpriority(PRIO_PROCESS, 0, 19);
	log__set_level(LOG_SILENT);
	interrupts__release();
	if (!decoded__make(&decoded, d->rec, &(struct tree_options){0}))
		keep_summary(&decoded, d);
	decoded__fini(&decoded);
	return 0;
}

/*
 * Makes the summary of samples, in a child process. Recordings of Intel PT are left out: decoding
 * them takes minutes instead of milliseconds, and users of record would have to wait.
 */
static void make_summary_apart(const struct capture_options *options, struct recording *rec,
			       const struct output_names *names)
{
	struct decoding decoding = {options, rec, names, NULL};

	if (!options->full && rec->hits.n && rec->sample_period_ns && !recording__hold_roots(rec))
		apart__run(make_summary, &decoding, "the summary",
			   "the recording is complete: 'mtbpf report' makes the summary");
}

/* Prints the summary of a recording, and what was lost. True if nothing was. */
static bool say_recorded(const struct recording *rec, const char *path, const struct phases *phases)
{
	uint64_t drops[DROPS];
	bool is_whole = !recording__drops(rec, drops);
	char text[DROP_TEXT_SIZE];

	for (int i = 0; i < DROPS; i++)
		if (!is_whole && drops[i])
			log__warn("lost: %s", drop__format(text, (enum drop)i, drops[i]));
	phases__say(phases);
	next_step__say("report", path);
	next_step__say("decode", path);
	return is_whole;
}

struct outcome {
	bool is_untriggered; /* no trigger came */
	bool is_whole;	     /* nothing was lost */
};

static int capture_and_write(const struct capture_options *options, struct session_start *start,
			     const struct output_names *names, enum capture_result result,
			     struct outcome *outcome)
{
	enum session_end end = SESSION_INTERRUPTED;
	struct recording rec;
	struct phases phases;
	int err;

	recording__init(&rec);
	phases__begin(&phases);
	err = session__capture_again(options, start, &rec, &end);
	if (!err && !recording__traced_bytes(&rec))
		err = refuse_nothing(options, start, &rec);
	phases__end(&phases, "capturing");
	if (!err) {
		outcome->is_untriggered =
			end == SESSION_TIMED_OUT || end == SESSION_HITS_OVER ||
			(end == SESSION_COMMAND_ENDED && *rec.trigger && !rec.hits.n);
		if (options->full)
			say_full_end(end, &rec);
		else
			say_end(end, *rec.trigger, options->requests);
		err = write_recording(&rec, &options->labels, names->recording);
	}
	phases__end(&phases, "writing the recording");
	if (!err && result == CAPTURE_TRACE)
		err = recording__hold_roots(&rec);
	if (!err && result == CAPTURE_TRACE)
		err = make_trace_apart(options, &rec, names, &phases, &outcome->is_whole);
	else if (!err)
		outcome->is_whole = say_recorded(&rec, names->recording, &phases);
	if (!err && result == CAPTURE_SUMMARY)
		make_summary_apart(options, &rec, names);
	recording__fini(&rec);
	return err;
}

/* Captures, writes the recording, and makes the result. Returns the exit code. */
static int run_capture(const struct capture_options *options, struct session_start *start,
		       enum capture_result result)
{
	struct outcome outcome = {0};
	struct output_names names;
	char folder[PATH_MAX], *slash;
	int err = output_names__from(&names, options->output);

	if (!err)
		err = check_output(&names, result == CAPTURE_TRACE);
	if (err)
		return exit_code_for(err);
	if (options->full) {
		snprintf(folder, sizeof(folder), "%s", names.recording);
		slash = strrchr(folder, '/');
		if (slash)
			slash[slash == folder] = '\0';
		start->spool_dir = slash ? folder : ".";
	}
	interrupts__hold();
	err = capture_and_write(options, start, &names, result, &outcome);
	interrupts__release();
	if (!err && options->view)
		err = show__trace(names.trace, &(struct show_options){0});
	if (!err && options->strict && !outcome.is_whole)
		return refuse_lost(start->exec_path	     ? "run"
				   : result == CAPTURE_TRACE ? "attach"
							     : "record");
	if (!err && outcome.is_untriggered)
		return EXIT_NO_TRIGGER;
	return exit_code_for(err);
}

/* A program that mtbpf starts and that waits until mtbpf is ready: `run`, and `attach -- CMD`. */

struct child {
	pid_t pid;
	int go_fd;     /* a byte lets the child execute; it ends if this is closed first */
	int status_fd; /* end of file when it has executed the program */
};

static bool is_program(const char *path)
{
	struct stat st;

	return !stat(path, &st) && S_ISREG(st.st_mode) && !access(path, X_OK);
}

static int look_for(const char *name, char path[static PATH_MAX])
{
	const char *dirs = getenv("PATH");
	char found[PATH_MAX];

	if (strchr(name, '/')) {
		snprintf(found, sizeof(found), "%s", name);
		return is_program(found) && realpath(found, path) ? 0 : -ENOENT;
	}
	while (dirs && *dirs) {
		int n = (int)strcspn(dirs, ":");

		snprintf(found, sizeof(found), "%.*s/%s", n ? n : 1, n ? dirs : ".", name);
		if (is_program(found) && realpath(found, path))
			return 0;
		dirs += n + (dirs[n] == ':');
	}
	return -ENOENT;
}

/* Finds a program as execvp(3) does. 0, or -ENOENT after a message and a hint. */
static int child__find_program(const char *name, char path[static PATH_MAX])
{
	int err = look_for(name, path);

	if (err) {
		log__error("no executable program '%s'", name);
		log__hint("give the path of an executable file, or the name of a program in $PATH");
	}
	return err;
}

/* The child's message if execve(2) failed; execve(2) closes the pipe, which reads as end of file.
 */
enum { NOT_STARTED = 'n' };

/* The child waits until mtbpf is ready; end of file means that mtbpf has given up. */
static void wait_and_exec(int go_fd, int status_fd, const char *path, char **argv)
{
	const char not_started = NOT_STARTED;
	sigset_t set;
	char byte;

	if (read(go_fd, &byte, 1) == 1) {
		interrupts__set(&set);
		sigprocmask(SIG_UNBLOCK, &set, NULL);
		execv(path, argv);
		log__error("cannot run %s: %s", path, strerror(errno));
		log__hint("'file %s' shows what kind of file it is", path);
	}
	_exit(write(status_fd, &not_started, 1) == 1 ? 127 : 126);
}

/* Waits for the child's end; passes on signals that kill(1) sends to mtbpf. */
static int wait_for_child(pid_t pid)
{
	siginfo_t info;
	int status = 0;
	sigset_t set;

	if (waitpid(pid, &status, WNOHANG) == pid)
		return status;
	log__info("the program runs on as process %d; mtbpf waits until it exits", pid);
	interrupts__set(&set);
	sigaddset(&set, SIGCHLD);
	sigprocmask(SIG_BLOCK, &set, NULL);
	while (waitpid(pid, &status, WNOHANG) == 0) {
		/*
		 * A terminal sends its signals to the program, too: only those of kill(1) are
		 * passed on.
		 */
		if (sigwaitinfo(&set, &info) > 0 && info.si_signo != SIGCHLD &&
		    info.si_code == SI_USER)
			kill(pid, info.si_signo);
	}
	return status;
}

static int refuse_start(const char *path)
{
	int err = -errno;

	log__error("cannot start %s: %s", path, strerror(-err));
	log__hint("raise the limits of processes and open files (ulimit -u, ulimit -n)");
	return err;
}

static void close_both(const int fds[2])
{
	close(fds[0]);
	close(fds[1]);
}

/*
 * Forks a child that will execute the file, and that survives mtbpf's end. Returns 0, and
 * child__wait() must then be called; or -errno after a message and a hint.
 */
static int child__fork(struct child *child, const char *path, char **argv)
{
	int go[2], status[2], err;

	if (pipe2(go, O_CLOEXEC))
		return refuse_start(path);
	if (pipe2(status, O_CLOEXEC)) {
		err = refuse_start(path);
		close_both(go);
		return err;
	}
	fflush(NULL);
	child->pid = fork();
	if (child->pid < 0) {
		err = refuse_start(path);
		close_both(go);
		close_both(status);
		return err;
	}
	if (!child->pid) {
		close(go[1]);
		wait_and_exec(go[0], status[1], path, argv);
	}
	close(go[0]);
	close(status[1]);
	child->go_fd = go[1];
	child->status_fd = status[0];
	return 0;
}

/*
 * Waits until the program ends, prints how it ended, and passes on signals that kill(1) sends to
 * mtbpf. 0, or -ENOEXEC if it was not executed: it was never let go, or the child has printed why.
 */
static int child__wait(struct child *child)
{
	bool is_started;
	int status = 0;
	char byte;

	close(child->go_fd);
	is_started = read(child->status_fd, &byte, 1) == 0;
	/* Prints how the program ended, unless it exited with 0. */
	if (is_started)
		status = wait_for_child(child->pid);
	else
		waitpid(child->pid, NULL, 0);
	if (WIFSIGNALED(status))
		log__info("the program was ended by signal %d (%s)", WTERMSIG(status),
			  strsignal(WTERMSIG(status)));
	else if (WEXITSTATUS(status))
		log__info("the program exited with status %d", WEXITSTATUS(status));
	close(child->status_fd);
	return is_started ? 0 : -ENOEXEC;
}

/* clang-format off */
#define OPTIONS_RUNNING(output_help) \
	OPTIONS_TARGET,  \
	OPTION_CHILDREN(CHILDREN_HELP), \
	OPTION_SYMBOL,   \
	OPTIONS_REGION,  \
	OPTION_REQUESTS, \
	OPTION_DELAY,    \
	OPTION_DURATION, \
	OPTIONS_CPU,     \
	OPTION_IF,       \
	OPTION_KEY,      \
	OPTION_PRINT,    \
	OPTION_STALL,    \
	OPTIONS_LIMITS,  \
	OPTION_OUTPUT(output_help), \
	OPTIONS_CAPTURE, \
	OPTIONS_SAMPLE,  \
	OPTION_STRICT,   \
	OPTIONS_LOG
/* clang-format on */

static const struct option_spec attach_specs[] = {OPTIONS_RUNNING(OUTPUT_HELP), OPTION_NO_INLINE,
						  OPTION_VIEW};
static const struct option_spec record_specs[] = {
	OPTIONS_RUNNING("the recording: NAME.mtbpf (default trace.mtbpf)"), OPTIONS_KEEP};

const struct option_table attach_table = {
	.command = "attach",
	.examples =
		(const char *const[]){
			"mtbpf attach -pid 1234 -symbol one_iter -delay-thresh 10ms",
			"mtbpf attach -pid 1234 -symbol libm.so.6:exp "
			"-duration-thresh 50us -o slow.fxt.gz",
			"mtbpf attach -name 'web-*' -symbol one_iter -delay-thresh 10ms",
			"mtbpf attach -pid 1234 -start request_begin -stop request_end "
			"-duration-thresh 10ms",
			"mtbpf attach -container web -symbol one_iter -delay-thresh 10ms",
			"mtbpf attach -cgroup system.slice/web.service -symbol "
			"one_iter -delay-thresh 10ms",
			"mtbpf attach -pid 1234 -symbol one_iter -delay-thresh 10ms -- sleep 10",
			NULL},
	.usage = "attach -pid PID | -name GLOB | -container NAME | ... [-symbol NAME] "
		 "[-delay-thresh D | "
		 "-duration-thresh D] [options] [-- CMD ARGS]",
	.summary = "Waits for the slow call, freezes the trace at it, and decodes it. With CMD, "
		   "starts it and records while it runs. With no process given, at a terminal, you "
		   "pick one. Without -symbol the program's own mtbpf_take_snapshot() triggers; if "
		   "it does not contain that, Ctrl-C ends the recording.",
	.specs = attach_specs,
	.count = sizeof(attach_specs) / sizeof(attach_specs[0]),
};

const struct option_table record_table = {
	.command = "record",
	.examples =
		(const char *const[]){
			"mtbpf record -pid 1234 -symbol one_iter -delay-thresh 10ms -o slow.mtbpf",
			"mtbpf decode slow.mtbpf",
			"mtbpf record -pid 1234 -symbol one_iter -delay-thresh 50ms -dir "
			"/var/lib/mtbpf -keep 50 -max-per-hour 10",
			NULL},
	.usage = "record -pid PID | -name GLOB | -container NAME | ... [-symbol NAME] "
		 "[-delay-thresh D | "
		 "-duration-thresh D] [options] [-- CMD ARGS]",
	.summary = "Captures like attach, but does not decode: 'mtbpf decode NAME.mtbpf' does that "
		   "later.",
	.specs = record_specs,
	.count = sizeof(record_specs) / sizeof(record_specs[0]),
};

static int refuse_no_target(const struct option_table *table)
{
	log__error("%s: no process given", table->command);
	log__hint("add -pid PID ('pgrep -a NAME' lists pids), -name NAME, -container NAME or "
		  "-cgroup PATH, or start a program: 'mtbpf run -- CMD'");
	return EXIT_USAGE;
}

/* Captures while `command`, which is started here, runs; NULL: until Ctrl-C. */
static int capture_while(const struct capture_options *options, struct target *target,
			 char **command, enum capture_result result)
{
	struct session_start start = {.target = target};
	char path[PATH_MAX];
	struct child child;
	int code;

	if (!command)
		return run_capture(options, &start, result);
	if (child__find_program(*command, path))
		return EXIT_USAGE;
	if (child__fork(&child, path, command))
		return EXIT_FAILED;
	start.command = child.pid;
	start.go_fd = child.go_fd;
	code = run_capture(options, &start, result);
	return child__wait(&child) && !code ? EXIT_FAILED : code;
}

static int capture_target(const struct option_table *table, const struct capture_options *options,
			  char **command, enum capture_result result)
{
	struct target target;
	int code, err = target__choose(&target, &options->target);

	if (err == -ENODATA)
		code = refuse_no_target(table);
	else if (err)
		code = exit_code_for(err);
	else if (target__is_cgroup(&target) && !cgroup__populated(&target.cgroup))
		code = exit_code_for(target__refuse_empty(&target));
	else
		code = capture_while(options, &target, command, result);
	target__close(&target);
	return code;
}

static int capture_running(const struct option_table *table, int argc, char **argv,
			   enum capture_result result)
{
	struct record_options all = {.capture = CAPTURE_DEFAULTS, .keep = KEEP_DEFAULTS};
	struct capture_options *options = &all.capture;
	char **command = NULL;
	int rest, err;

	err = options__parse(table, &all, argc, argv, &rest);
	if (err)
		return exit_code_for_options(err);
	if (rest < argc && !strcmp(argv[rest - 1], "--"))
		command = argv + rest;
	else if (rest < argc)
		return refuse_word(table, argv[rest]);
	all.keep.summarise = captures__summarise_kept;
	if (capture_options__check(options, table->command) ||
	    keep_options__check(&all, table->command))
		return EXIT_USAGE;
	if (!all.keep.dir)
		return capture_target(table, options, command,
				      all.keep.no_summary ? CAPTURE_RECORDING : result);
	if (command) {
		log__error("%s: -dir and a command after '--' cannot both be given",
			   table->command);
		log__hint("leave out -dir, or the command after '--'");
		return EXIT_USAGE;
	}
	if (!target_options__any(&options->target))
		return refuse_no_target(table);
	return exit_code_for(keeper__run(&all));
}

int cmd_attach(int argc, char **argv)
{
	return capture_running(&attach_table, argc, argv, CAPTURE_TRACE);
}

int cmd_record(int argc, char **argv)
{
	return capture_running(&record_table, argc, argv, CAPTURE_SUMMARY);
}

/* run: starts a program and records it from its first instruction. */

/* clang-format off */
static const struct option_spec specs[] = {
	OPTION_CHILDREN("also record processes that the program forks"),
	OPTION_SYMBOL,
	OPTIONS_REGION,
	OPTION_REQUESTS,
	OPTION_DELAY,
	OPTION_DURATION,
	OPTIONS_CPU,
	OPTION_IF,
	OPTION_KEY,
	OPTION_PRINT,
	OPTION_STALL,
	OPTIONS_LIMITS,
	OPTION_FULL,
	OPTION_OUTPUT(OUTPUT_HELP),
	OPTIONS_CAPTURE,
	OPTIONS_SAMPLE,
	OPTION_STRICT,
	OPTIONS_LOG,
	OPTION_NO_INLINE,
	OPTION_VIEW,
};
/* clang-format on */

const struct option_table run_table = {
	.command = "run",
	.examples =
		(const char *const[]){
			"mtbpf run -symbol one_iter -delay-thresh 10ms -- ./service --port 8080",
			"mtbpf run -- ./short-lived", "mtbpf run -full-execution -- ./batch-job",
			NULL},
	.usage = "run [-symbol NAME] [-delay-thresh D | -duration-thresh D] [options] -- CMD ARGS",
	.summary = "Starts a program and traces it from its first instruction on.",
	.specs = specs,
	.count = sizeof(specs) / sizeof(specs[0]),
};

int cmd_run(int argc, char **argv)
{
	struct capture_options options = CAPTURE_DEFAULTS;
	char path[PATH_MAX];
	struct session_start start = {.exec_path = path};
	struct child child;
	int rest, err;

	err = options__parse(&run_table, &options, argc, argv, &rest);
	if (err)
		return exit_code_for_options(err);
	if (capture_options__check(&options, run_table.command))
		return EXIT_USAGE;
	if (rest >= argc) {
		log__error("run: no program given");
		log__hint("usage: mtbpf %s", run_table.usage);
		return EXIT_USAGE;
	}
	if (child__find_program(argv[rest], path))
		return EXIT_USAGE;
	if (child__fork(&child, path, argv + rest))
		return EXIT_FAILED;
	start.pid = child.pid;
	start.go_fd = child.go_fd;
	err = run_capture(&options, &start, CAPTURE_TRACE);
	child__wait(&child);
	return err;
}
