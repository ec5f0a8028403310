// SPDX-License-Identifier: MIT
/* The soft source, on mtbpf's side: starts the stepper, and reads what it left in shared memory. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include "capture/code/live_code.h"
#include "capture/recording/recording.h"
#include "capture/soft/stepper.h"
#include "capture/source.h"
#include "util/clock.h"
#include "util/fs.h"
#include "util/log.h"
#include "util/units.h"

#define SOFT_CBR 10 /* x 100 MHz: the stream's clock is 1 GHz, nanoseconds */

struct source {
	struct source_config config;
	struct soft_shared *shared;
	size_t shared_size;
	int control_fd;
	pid_t stepper;
	struct spool spools[SOFT_MAX_THREADS]; /* with config.spool_dir: where all is kept */
};

/* Converts the contents of the shared memory to a recording. */

/* attr.config of a real event that would write this: pt, tsc, branch; noretcomp as asked. */
#define CONFIG_PT	 (1u << 0)
#define CONFIG_TSC	 (1u << 10)
#define CONFIG_NORETCOMP (1u << 11)
#define CONFIG_BRANCH	 (1u << 13)

static void drain_thread(struct source *source, uint32_t i)
{
	struct soft_thread *t = &source->shared->threads[i];
	const uint8_t *ring = soft_shared__ring(source->shared, i);
	uint64_t size = source->shared->ring_size, ready = t->ready, at = t->taken & (size - 1);
	size_t n = ready - t->taken, first = size - at < n ? size - at : n;
	struct spool *spool = &source->spools[i];

	if (spool->fd < 0 && !spool->err)
		spool->err = spool__open(spool, source->config.spool_dir);
	if (!spool->err && n)
		spool__write(spool, ring + at, first);
	if (!spool->err && n > first)
		spool__write(spool, ring, n - first);
	/* Also after a failed write, so that the thread does not wait for the disk. */
	t->taken = ready;
}

static int read_ring(struct source *source, uint32_t i, struct recording *rec)
{
	const struct soft_shared *shared = source->shared;
	const struct soft_thread *t = &shared->threads[i];
	const uint8_t *ring = soft_shared__ring(source->shared, i);
	bool wrapped = t->written > shared->ring_size;
	size_t size = wrapped ? shared->ring_size : t->written;
	size_t head = t->written & (shared->ring_size - 1);
	struct rec_aux aux = {.pid = source->config.pid,
			      .tid = t->tid,
			      .tsc = t->last_ns,
			      .size = size,
			      .wrapped = wrapped};

	aux.data = malloc(size ? size : 1);
	if (!aux.data)
		return -ENOMEM;
	/* If it has not wrapped, everything is before the head. */
	memcpy(aux.data, ring + head, size - head);
	memcpy(aux.data + size - head, ring, head);
	return recording__add_aux(rec, &aux);
}

static int read_threads(struct source *source, struct recording *rec)
{
	struct soft_shared *shared = source->shared;
	int err = 0;

	for (uint32_t i = 0; i < shared->n_threads && !err; i++) {
		struct soft_thread *t = &shared->threads[i];
		struct rec_thread thread = {
			.pid = source->config.pid, .tid = t->tid, .start_ns = t->start_ns};
		struct rec_aux aux = {.pid = source->config.pid, .tid = t->tid, .tsc = t->last_ns};

		memcpy(thread.comm, t->comm, sizeof(thread.comm));
		err = recording__add_thread(rec, &thread);
		if (!err && !source->config.spool_dir)
			err = read_ring(source, i, rec);
		if (err || !source->config.spool_dir)
			continue;
		/* The stepper has ended: its last bytes are there as well. */
		t->ready = t->written;
		drain_thread(source, i);
		err = source->spools[i].fd < 0 ? source->spools[i].err
					       : spool__finish(&source->spools[i], &aux, rec);
	}
	return err;
}

static int soft__read(struct source *source, struct recording *rec)
{
	const struct soft_shared *shared = source->shared;
	int err;

	/* A clock of our own, in nanoseconds: CLOCK_MONOTONIC, as bpf_ktime_get_ns() has it. */
	rec->pt = (struct rec_pt_config){
		.time_mult = 1,
		.config = CONFIG_PT | CONFIG_TSC | CONFIG_BRANCH |
			  (source->config.return_compression ? 0 : CONFIG_NORETCOMP),
		.nom_freq = SOFT_CBR,
	};
	rec->frozen_ns = shared->frozen_ns ? shared->frozen_ns : clock__now_ns();
	err = read_threads(source, rec);
	for (uint32_t i = 0; i < shared->n_maps && !err; i++) {
		struct rec_map map = shared->maps[i].map;

		map.path = (char *)shared->maps[i].path;
		err = recording__add_map(rec, &map);
	}
	if (!err && shared->lost_maps)
		log__warn("%u mappings were not recorded: their code shows as gaps",
			  shared->lost_maps);
	if (!err) {
		/* The code of the [uprobes] page, which cannot be read from outside. */
		struct rec_image image = {.path = "[uprobes]",
					  .start = shared->uprobes_start,
					  .data = (uint8_t *)shared->uprobes_page,
					  .size = shared->uprobes_len};

		rec->drops[DROP_MAPPINGS] += shared->lost_maps;
		rec->drops[DROP_THREADS] += shared->lost_threads;
		err = shared->uprobes_start ? recording__add_image(rec, &image) : 0;
	}
	if (err)
		source__refuse_read("the trace of -source soft", err);
	if (shared->breakpoint_error)
		log__warn("-start and -stop were not watched in every thread (%s): regions may be "
			  "missing or too long",
			  strerror(shared->breakpoint_error));
	if (shared->waited_ns > 10000000)
		log__info("the target was stopped for %s in all, while mtbpf read the trace from "
			  "its full buffers",
			  DURATION(shared->waited_ns));
	log__debug("soft: %llu instructions stepped", (unsigned long long)shared->steps);
	return err;
}

#define RING_MIN	       (16u << 10)
#define RING_MAX	       (256u << 20)
#define PSB_PERIOD	       2048 /* psb_period=0: the shortest that CPUs have */
#define TSC_INTERVAL_NS	       20000
#define ATTACH_TIMEOUT_MS      5000
#define FIRST_STEPS_TIMEOUT_MS 500
#define FREEZE_TIMEOUT_MS      5000

/* Checks the path here, where an error can be reported; the stepper opens the file again. */
static int check_truth_path(const char *path)
{
	FILE *f = path ? fopen(path, "we") : NULL;
	int err = path && !f ? -errno : 0;

	if (f)
		fclose(f);
	if (err) {
		log__error("cannot write the log of calls to %s: %s", path, strerror(-err));
		log__hint("choose another path with -truth");
	}
	return err;
}

static int refuse_starts(void)
{
	log__error("-start matches more addresses than the %d that -source soft supports",
		   SOFT_MAX_STARTS);
	log__hint("name a function or one of the addresses (addr:0x...): each needs a hardware "
		  "breakpoint");
	return -EINVAL;
}

static void soft__close(struct source *source);

static struct source *soft__open(const struct source_config *config)
{
	size_t size = source__ring_size(config->snapshot_size, RING_MIN, RING_MAX);
	int err = config->n_starts > SOFT_MAX_STARTS ? refuse_starts() : 0;
	struct source *source;
	void *shared = MAP_FAILED;
	int fd;

	if (!err)
		err = check_truth_path(config->truth_path);
	source = err ? NULL : calloc(1, sizeof(*source));
	if (!source) {
		errno = err ? -err : ENOMEM;
		return NULL;
	}
	if (config->snapshot_size > RING_MAX)
		log__warn("-snapshot-size: -source soft keeps at most 256 MiB per thread");
	source->config = *config;
	source->control_fd = -1;
	for (size_t i = 0; i < SOFT_MAX_THREADS; i++)
		source->spools[i] = (struct spool)SPOOL_NONE;
	source->shared_size = soft_shared__size(size);
	fd = memfd_create("mtbpf-soft", MFD_CLOEXEC);
	/* Sparse: a page costs memory from the first packet on it. */
	if (fd >= 0 && !ftruncate(fd, (off_t)source->shared_size))
		shared = mmap(NULL, source->shared_size, PROT_READ | PROT_WRITE,
			      MAP_SHARED | MAP_NORESERVE, fd, 0);
	err = errno;
	if (fd >= 0)
		close(fd);
	source->shared = shared == MAP_FAILED ? NULL : shared;
	if (!source->shared) {
		log__error("cannot map %zu bytes for the soft source: %s", source->shared_size,
			   strerror(err));
		log__hint("use a smaller -snapshot-size");
		soft__close(source);
		errno = err;
		return NULL;
	}
	source->shared->ring_size = size;
	if (config->return_probe)
		source->shared->uprobes_len =
			uprobes_page__read(source->shared->uprobes_page, SOFT_PAGE);
	return source;
}

static void run_stepper(struct source *source, int control_fd)
{
	const struct source_config *c = &source->config;
	const struct pt_stream_config stream = {.psb_period = PSB_PERIOD,
						.tsc_interval = TSC_INTERVAL_NS,
						.return_compression = c->return_compression,
						.cbr = SOFT_CBR};

	/* Ctrl-C, and the end of mtbpf's session, must not reach the stepper. */
	setsid();
	prctl(PR_SET_NAME, "pt-stepper");
	/*
	 * A high priority, so that steps do not wait for a turn on a busy machine. Without the
	 * right to set it, they do.
	 */
	setpriority(PRIO_PROCESS, 0, -20);
	fs__write("/proc/self/oom_score_adj", "-1000", 5);
	signal(SIGPIPE, SIG_IGN);
	/* Keep nothing of mtbpf's: a probe's descriptor would keep the probe. */
	fs__close_all_but(3, control_fd, c->freeze_fd);
	stepper__run(source->shared, c, &stream, control_fd);
}

/* Waits until the stepper's state is later than this one. False after the timeout. */
static bool wait_beyond(struct source *source, enum soft_state state, int timeout_ms)
{
	uint64_t deadline = clock__now_ns() + (uint64_t)timeout_ms * 1000000;
	struct pollfd fd = {source->control_fd, POLLIN, 0};
	char bytes[16];

	while (source->shared->state <= (int)state) {
		uint64_t now = clock__now_ns();

		if (now >= deadline)
			return false;
		if (poll(&fd, 1, (int)((deadline - now) / 1000000) + 1) > 0 &&
		    read(source->control_fd, bytes, sizeof(bytes)) == 0)
			return source->shared->state > (int)state; /* the stepper is gone */
	}
	return true;
}

static bool is_over(const struct source *source)
{
	return source->shared->state > SOFT_RUNNING;
}

static int start_failed(const struct source *source)
{
	int err = source->shared->error ? source->shared->error : ETIMEDOUT;
	pid_t pid = source->config.pid;

	log__error("cannot single-step process %d: %s", pid, strerror(err));
	if (err == EPERM)
		log__hint("another tracer may be attached (grep TracerPid /proc/%d/status); "
			  "otherwise this needs CAP_SYS_PTRACE: try sudo",
			  pid);
	else if (err == ESRCH)
		log__hint("the process has exited");
	else
		log__hint("'mtbpf check' shows what works on this machine");
	return -err;
}

static int soft__start(struct source *source)
{
	struct soft_shared *shared = source->shared;
	uint64_t deadline;
	int sockets[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets)) {
		int err = -errno;

		log__error("cannot start the helper process pt-stepper: %s", strerror(-err));
		log__hint("there may be too many open files: see ulimit -n");
		return err;
	}
	fflush(NULL);
	source->stepper = fork();
	if (source->stepper < 0) {
		int err = -errno;

		close(sockets[0]);
		close(sockets[1]);
		log__error("cannot start the helper process pt-stepper: %s", strerror(-err));
		log__hint("there may be too many processes: see ulimit -u");
		return err;
	}
	if (!source->stepper) {
		run_stepper(source, sockets[1]);
		_exit(0);
	}
	close(sockets[1]);
	source->control_fd = sockets[0];
	if (!wait_beyond(source, SOFT_STARTING, ATTACH_TIMEOUT_MS) || shared->state == SOFT_FAILED)
		return start_failed(source);
	/*
	 * Waits until every thread is stepped, but not longer than FIRST_STEPS_TIMEOUT_MS: a hit
	 * before that would trigger with nothing recorded. A thread in uninterruptible sleep makes
	 * no first step in time, but cannot hit either.
	 */
	deadline = clock__now_ns() + FIRST_STEPS_TIMEOUT_MS * 1000000ull;
	while (shared->unseen > 0 && shared->state == SOFT_RUNNING && clock__now_ns() < deadline)
		usleep(200);
	if (shared->breakpoint_error == E2BIG)
		return refuse_starts();
	if (shared->breakpoint_error) {
		log__error("-start: the CPU's breakpoints cannot be set: %s",
			   strerror(shared->breakpoint_error));
		log__hint("some virtual machines lack breakpoints: leave out -start and -stop to "
			  "step everything");
		return -EOPNOTSUPP;
	}
	if (shared->lost_threads)
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

	for (uint32_t i = 0; source->config.spool_dir && i < source->shared->n_threads; i++)
		drain_thread(source, i);
	/* At end of file, the stepper is gone. */
	if (recv(source->control_fd, bytes, sizeof(bytes), MSG_DONTWAIT) == 0 && !is_over(source))
		return SOURCE_EXITED;
	if (!is_over(source))
		return SOURCE_RUNNING;
	return source->shared->state == SOFT_FROZEN ? SOURCE_FROZEN : SOURCE_EXITED;
}

static int soft__freeze(struct source *source)
{
	char command = SOFT_COMMAND_FREEZE;

	if (is_over(source))
		return 0;
	if (send(source->control_fd, &command, 1, MSG_NOSIGNAL) < 0)
		return is_over(source) ? 0 : -EPIPE;
	if (wait_beyond(source, SOFT_RUNNING, FREEZE_TIMEOUT_MS))
		return 0;
	/* The stepper lives on to release these threads as soon as they wake. */
	log__warn("%d threads are in uninterruptible sleep; they are released when they wake up",
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
		/* End of file: the stepper continues alone if it still waits for threads. */
		close(source->control_fd);
		waitpid(source->stepper, NULL, is_over(source) ? 0 : WNOHANG);
	}
	if (source->shared)
		munmap(source->shared, source->shared_size);
	for (size_t i = 0; i < SOFT_MAX_THREADS; i++)
		spool__close(&source->spools[i]);
	free(source);
}

const struct source_ops source_soft = {
	.name = "soft",
	.about = "single-steps the target: exact, but about 10,000 times slower than it runs by "
		 "itself",
	.steps = true,
	.open = soft__open,
	.start = soft__start,
	.fd = soft__fd,
	.state = soft__state,
	.freeze = soft__freeze,
	.read = soft__read,
	.freeze_name = soft__freeze_name,
	.close = soft__close,
};
