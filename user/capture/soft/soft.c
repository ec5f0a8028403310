// SPDX-License-Identifier: MIT
/* The soft source, on mtbpf's side: starts the stepper, and reads what it left in shared memory. */
#include "capture/soft/soft_source.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "capture/soft/stepper.h"
#include "capture/code/uprobes_page.h"
#include "util/clock.h"
#include "util/fs.h"
#include "util/log.h"

#define RING_MIN	       (16u << 10)
#define RING_MAX	       (256u << 20)
#define PSB_PERIOD	       2048 /* psb_period=0: as often as a CPU can */
#define TSC_INTERVAL_NS	       20000
#define ATTACH_TIMEOUT_MS      5000
#define FIRST_STEPS_TIMEOUT_MS 500
#define FREEZE_TIMEOUT_MS      5000

static int soft__probe(void)
{
	return 0;
}

static uint64_t ring_size(uint64_t wanted)
{
	uint64_t size = RING_MIN;

	while (size < wanted && size < RING_MAX)
		size <<= 1;
	return size;
}

static struct soft_shared *map_shared(size_t size)
{
	int fd = memfd_create("mtbpf-soft", MFD_CLOEXEC);
	void *p = MAP_FAILED;

	if (fd < 0)
		return NULL;
	/* Sparse: a page costs memory from the first packet on it. */
	if (!ftruncate(fd, (off_t)size))
		p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0);
	close(fd);
	return p == MAP_FAILED ? NULL : p;
}

/* Known here, where the reason can be told; the stepper opens it again. */
static int check_truth_path(const char *path)
{
	FILE *f = path ? fopen(path, "we") : NULL;
	int err = path && !f ? -errno : 0;

	if (f)
		fclose(f);
	if (err) {
		log__error("cannot write the true stack to %s: %s", path, strerror(-err));
		log__hint("choose another place with -truth");
	}
	return err;
}

static int check_starts(const struct source_config *config)
{
	if (config->n_starts <= SOFT_MAX_STARTS)
		return 0;
	log__error("-start means %zu places, and -source soft waits at %d at most",
		   config->n_starts, SOFT_MAX_STARTS);
	log__hint("they are breakpoints of the CPU's; name a function, or one of the places "
		  "(addr:0x...)");
	return -EINVAL;
}

static bool new_spools(struct source *source)
{
	source->spools = calloc(SOFT_MAX_THREADS, sizeof(*source->spools));
	for (size_t i = 0; source->spools && i < SOFT_MAX_THREADS; i++)
		source->spools[i] = (struct spool)SPOOL_NONE;
	return source->spools;
}

static struct source *soft__open(const struct source_config *config)
{
	int err = check_starts(config);
	struct source *source;

	if (!err)
		err = check_truth_path(config->truth_path);
	source = err ? NULL : calloc(1, sizeof(*source));
	if (!source) {
		errno = err ? -err : ENOMEM;
		return NULL;
	}
	if (config->snapshot_size > RING_MAX)
		log__warn("the soft source keeps 256 MiB a thread at most");
	source->config = *config;
	source->control_fd = -1;
	source->shared_size = soft_shared__size(ring_size(config->snapshot_size));
	source->shared = map_shared(source->shared_size);
	if (!source->shared) {
		err = errno;
		log__error("cannot map %zu bytes for the soft source: %s", source->shared_size,
			   strerror(err));
		log__hint("a smaller -snapshot-size needs less");
		free(source);
		errno = err;
		return NULL;
	}
	source->shared->ring_size = ring_size(config->snapshot_size);
	if (config->spool_dir && !new_spools(source)) {
		munmap(source->shared, source->shared_size);
		free(source);
		errno = ENOMEM;
		return NULL;
	}
	if (config->return_probe)
		source->shared->uprobes_len =
			uprobes_page__read(source->shared->uprobes_page, SOFT_PAGE);
	return source;
}

/* In the child: keep nothing of mtbpf's (a probe's descriptor would keep the probe). */
static void close_others(int a, int b)
{
	int low = a < b ? a : b, high = a < b ? b : a;

	if (low < 3)
		low = high; /* freeze_fd -1 */
	if (low > 3)
		close_range(3, (unsigned int)low - 1, 0);
	if (high > low + 1)
		close_range((unsigned int)low + 1, (unsigned int)high - 1, 0);
	close_range((unsigned int)high + 1, ~0u, 0);
}

static void run_stepper(struct source *source, int control_fd)
{
	const struct source_config *c = &source->config;
	struct stepper_config config = {
		.pid = c->pid,
		.control_fd = control_fd,
		.freeze_fd = c->freeze_fd,
		.from_exec = c->from_exec,
		.keeps_all = c->spool_dir,
		.starts = c->starts,
		.n_starts = c->n_starts,
		.stops = c->stops,
		.n_stops = c->n_stops,
		.truth_path = c->truth_path,
		.stream = {.psb_period = PSB_PERIOD,
			   .tsc_interval = TSC_INTERVAL_NS,
			   .return_compression = c->return_compression,
			   .cbr = SOFT_CBR},
	};

	/* Not in the terminal's foreground group, not in mtbpf's session, the last to be killed. */
	setsid();
	prctl(PR_SET_NAME, "pt-stepper");
	/* On a busy machine each step would wait for a turn of its own; without the right to it, it
	 * does. */
	setpriority(PRIO_PROCESS, 0, -20);
	fs__write("/proc/self/oom_score_adj", "-1000", 5);
	signal(SIGPIPE, SIG_IGN);
	close_others(control_fd, c->freeze_fd);
	stepper__run(source->shared, &config);
}

static bool wait_state(struct source *source, int timeout_ms, bool (*done)(int state))
{
	uint64_t deadline = clock__now_ns() + (uint64_t)timeout_ms * 1000000;
	struct pollfd fd = {source->control_fd, POLLIN, 0};
	char bytes[16];

	while (!done(source->shared->state)) {
		uint64_t now = clock__now_ns();

		if (now >= deadline)
			return false;
		if (poll(&fd, 1, (int)((deadline - now) / 1000000) + 1) > 0 &&
		    read(source->control_fd, bytes, sizeof(bytes)) == 0)
			return done(source->shared->state); /* the stepper is gone */
	}
	return true;
}

/*
 * Until every thread is stepped: a hit before that would trigger with nothing recorded. One that
 * sleeps where it cannot be interrupted makes no hit either, and is not waited for.
 */
static void wait_for_first_steps(const struct source *source)
{
	uint64_t deadline = clock__now_ns() + FIRST_STEPS_TIMEOUT_MS * 1000000ull;

	while (source->shared->unseen > 0 && source->shared->state == SOFT_RUNNING &&
	       clock__now_ns() < deadline)
		usleep(200);
}

static bool is_started(int state)
{
	return state != SOFT_STARTING;
}

static bool is_over(int state)
{
	return state > SOFT_RUNNING;
}

static int start_failed(const struct source *source)
{
	int err = source->shared->error ? source->shared->error : ETIMEDOUT;
	pid_t pid = source->config.pid;

	log__error("cannot single-step process %d: %s", pid, strerror(err));
	if (err == EPERM)
		log__hint(
			"it may be traced already (grep TracerPid /proc/%d/status); otherwise this "
			"needs CAP_SYS_PTRACE: try sudo",
			pid);
	else if (err == ESRCH)
		log__hint("it has exited");
	else
		log__hint("'mtbpf check' shows what this machine allows");
	return -err;
}

static int refuse_breakpoints(int err)
{
	log__error("-start: the CPU's breakpoints cannot be set: %s", strerror(err));
	log__hint("some virtual machines have none; without -start and -stop all is stepped");
	return -EOPNOTSUPP;
}

static int soft__start(struct source *source)
{
	int sockets[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets))
		return -errno;
	fflush(NULL);
	source->stepper = fork();
	if (source->stepper < 0) {
		int err = -errno;

		close(sockets[0]);
		close(sockets[1]);
		log__error("cannot start the stepper: %s", strerror(-err));
		log__hint("too many processes? ulimit -u");
		return err;
	}
	if (!source->stepper) {
		run_stepper(source, sockets[1]);
		_exit(0);
	}
	close(sockets[1]);
	source->control_fd = sockets[0];
	if (!wait_state(source, ATTACH_TIMEOUT_MS, is_started) ||
	    source->shared->state == SOFT_FAILED)
		return start_failed(source);
	wait_for_first_steps(source);
	if (source->shared->breakpoint_error)
		return refuse_breakpoints(source->shared->breakpoint_error);
	if (source->shared->lost_threads)
		log__warn("the process has more than %d threads; the others are not recorded",
			  SOFT_MAX_THREADS);
	return 0;
}

static int soft__fd(const struct source *source)
{
	return source->control_fd;
}

static enum source_state soft__state(struct source *source)
{
	char bytes[16];
	int state;

	soft_source__drain(source);
	if (recv(source->control_fd, bytes, sizeof(bytes), MSG_DONTWAIT) == 0 &&
	    source->shared->state <= SOFT_RUNNING)
		return SOURCE_EXITED;
	state = source->shared->state;
	switch (state) {
	case SOFT_FROZEN:
		return SOURCE_FROZEN;
	case SOFT_EXITED:
	case SOFT_FAILED:
		return SOURCE_EXITED;
	}
	return SOURCE_RUNNING;
}

static int soft__freeze(struct source *source)
{
	char command = SOFT_COMMAND_FREEZE;

	if (is_over(source->shared->state))
		return 0;
	if (send(source->control_fd, &command, 1, MSG_NOSIGNAL) < 0)
		return is_over(source->shared->state) ? 0 : -EPIPE;
	if (wait_state(source, FREEZE_TIMEOUT_MS, is_over))
		return 0;
	/* They are let go as soon as they wake; the stepper stays behind for that. */
	log__warn(
		"%d threads sleep where they cannot be interrupted; they are let go when they wake",
		source->shared->stuck);
	return 0;
}

static const char *soft__freeze_name(const struct source *source)
{
	return "between two steps, at the probe";
}

static void soft__close(struct source *source)
{
	if (!source)
		return;
	if (source->control_fd >= 0) {
		soft__freeze(source);
		/* End of file: a stepper that still waits for a thread goes on alone. */
		close(source->control_fd);
		waitpid(source->stepper, NULL, is_over(source->shared->state) ? 0 : WNOHANG);
	}
	munmap(source->shared, source->shared_size);
	for (size_t i = 0; source->spools && i < SOFT_MAX_THREADS; i++)
		spool__close(&source->spools[i]);
	free(source->spools);
	free(source);
}

const struct source_ops source_soft = {
	.name = "soft",
	.about = "single-steps the target: exact, but about 10,000 times slower than it runs by "
		 "itself",
	.steps = true,
	.probe = soft__probe,
	.open = soft__open,
	.start = soft__start,
	.fd = soft__fd,
	.state = soft__state,
	.freeze = soft__freeze,
	.read = soft_source__read,
	.freeze_name = soft__freeze_name,
	.close = soft__close,
};
