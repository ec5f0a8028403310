// SPDX-License-Identifier: MIT
/*
 * Signals wherever they can come: a timer whose handler raises another signal inside itself, one
 * handler on an alternate stack, blocked system calls that a signal ends. Beside them system calls
 * of several kinds, mappings that come and go, and a library that is loaded and unloaded. The slow
 * iteration is a long backlog that is drained inside a handler.
 */
#include "sample.h"
#include <dlfcn.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>

enum { BUCKETS = 256, ALT_STACK = 65536, DRAIN_EVERY = 4, BLOCK_EVERY = 16, LOAD_EVERY = 64 };

/* What the handlers share with the loop. A handler writes only its own counters. */
static struct {
	volatile uint64_t alarms;
	volatile uint64_t nested;
	volatile uint64_t backlog; /* events that the next SIGUSR2 drains */
	uint64_t buckets[BUCKETS]; /* SIGUSR2's alone */
	struct itimerval tick;
} state;

struct loop {
	struct sample options;
	int pipe[2];	  /* carries a byte to and fro */
	int idle_pipe[2]; /* never written to: a read blocks until a signal */
	uint64_t sum;
};

TRACED uint64_t mix(uint64_t value)
{
	value = (value ^ (value >> 33)) * 0xff51afd7ed558ccdu;
	return value ^ (value >> 29);
}

TRACED void handle_event(uint64_t event)
{
	uint64_t hash = mix(event);
	uint64_t *bucket = &state.buckets[hash % BUCKETS];

	*bucket = (*bucket + hash) % 1000003;
}

TRACED void drain_backlog(void)
{
	while (state.backlog)
		handle_event(state.backlog--);
}

TRACED void record_nested(void)
{
	state.nested++;
}

static void on_usr1(int signo)
{
	record_nested();
}

TRACED void record_tick(void)
{
	state.alarms++;
	raise(SIGUSR1);
}

/* The timer runs once and is set again here, so that a slow machine has time between two ticks. */
static void on_alarm(int signo)
{
	record_tick();
	setitimer(ITIMER_REAL, &state.tick, NULL);
}

static void on_usr2(int signo)
{
	drain_backlog();
	raise(SIGUSR1);
}

TRACED void post_events(uint64_t events)
{
	state.backlog = events;
	raise(SIGUSR2);
}

TRACED void echo_byte(struct loop *loop)
{
	char byte = 'x';

	if (write(loop->pipe[1], &byte, 1) == 1 && read(loop->pipe[0], &byte, 1) == 1)
		loop->sum += (uint64_t)byte;
}

TRACED void map_page(struct loop *loop)
{
	char *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (page == MAP_FAILED)
		return;
	page[100] = 1;
	loop->sum += (uint64_t)page[100];
	munmap(page, 4096);
}

TRACED void load_library(struct loop *loop)
{
	void *libm = dlopen("libm.so.6", RTLD_LAZY | RTLD_LOCAL);
	double (*cube_root)(double);

	if (!libm)
		return;
	cube_root = (double (*)(double))dlsym(libm, "cbrt");
	if (cube_root)
		loop->sum += (uint64_t)cube_root((double)loop->options.done);
	dlclose(libm);
}

TRACED void call_kernel(struct loop *loop, uint64_t kind)
{
	switch (kind % 4) {
	case 0:
		loop->sum += (uint64_t)syscall(SYS_getppid);
		break;
	case 1:
		echo_byte(loop);
		break;
	case 2:
		map_page(loop);
		break;
	default:
		syscall(SYS_sched_yield);
	}
}

/* Ends at the next alarm: EINTR. An alarm just before the call is no matter, for another follows.
 */
TRACED void block_until_signal(struct loop *loop, uint64_t kind)
{
	struct timespec long_time = {.tv_sec = 60};
	char byte;

	if (kind % 2)
		loop->sum += read(loop->idle_pipe[0], &byte, 1) < 0;
	else
		loop->sum += nanosleep(&long_time, NULL) < 0;
}

TRACED void one_iter(struct loop *loop)
{
	uint64_t done = loop->options.done;

	for (uint64_t i = 0; i < loop->options.batch; i++)
		call_kernel(loop, done + i);
	if (done % loop->options.slow_every == 0)
		post_events(loop->options.table_size);
	else if (done % DRAIN_EVERY == 0)
		post_events(4);
	if (done % LOAD_EVERY == 0)
		load_library(loop);
}

static void handle(int signo, void (*handler)(int), int flags)
{
	struct sigaction action = {.sa_handler = handler, .sa_flags = flags};

	sigemptyset(&action.sa_mask);
	if (sigaction(signo, &action, NULL))
		abort();
}

static void set_up_signals(uint64_t tick_ns)
{
	static char alt_stack[ALT_STACK];
	stack_t stack = {.ss_sp = alt_stack, .ss_size = sizeof(alt_stack)};

	if (sigaltstack(&stack, NULL))
		abort();
	handle(SIGUSR1, on_usr1, 0);
	handle(SIGUSR2, on_usr2, SA_ONSTACK);
	handle(SIGALRM, on_alarm, 0);
	state.tick.it_value.tv_usec = (suseconds_t)(tick_ns / 1000);
	setitimer(ITIMER_REAL, &state.tick, NULL);
}

int main(int argc, char **argv)
{
	static const struct sample native = {.slow_every = 1000,
					     .table_size = 9000000,
					     .batch = 20,
					     .pause_ns = 1000000,
					     .tick_ns = 2000000};
	static const struct sample small = {
		.slow_every = 25, .table_size = 500, .batch = 4, .tick_ns = 50000000};
	struct loop loop = {0};

	sample__init(&loop.options, argv, &native, &small);
	if (pipe(loop.pipe) || pipe(loop.idle_pipe))
		abort();
	set_up_signals(loop.options.tick_ns);
	sample__announce();
	while (sample__next(&loop.options)) {
		one_iter(&loop);
		if (loop.options.done % BLOCK_EVERY == 0 && !sample_stop)
			block_until_signal(&loop, loop.options.done / BLOCK_EVERY);
	}
	sample__fini(&loop.options);
	return 0;
}
