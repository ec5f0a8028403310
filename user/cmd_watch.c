// SPDX-License-Identifier: MIT
/* watch: how often a function is hit and how far apart, to choose a threshold by. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <poll.h>
#include <unistd.h>

#include "capture_options.h"
#include "cmd.h"
#include "probe.h"
#include "trigger/trigger.h"
#include "util/clock.h"
#include "util/log.h"
#include "util/units.h"
#include "view/status.h"

struct watch_options {
	struct capture_options common; /* pid, symbol, timeout, v, q */
	bool durations;
};

static const struct option_spec specs[] = {
	OPTION_PID,
	OPTION_SYMBOL,
	{"durations", NULL, 0, OPT_FLAG, NULL,
	 "measure how long calls take, not how far apart they are",
	 offsetof(struct watch_options, durations), NULL},
	{"timeout", NULL, 0, OPT_DURATION, "D", "stop after this long", OPTION(timeout_ns), NULL},
	OPTIONS_LOG,
};

static const struct option_table table = {
	.command = "watch",
	.usage = "watch -pid PID -symbol NAME [-durations] [-timeout D]",
	.summary = "Counts hits in the kernel and shows their delays; nothing is recorded.",
	.specs = specs,
	.count = sizeof(specs) / sizeof(specs[0]),
};

#define BAR_WIDTH 40

static void print_histogram(const struct mt_stats *stats, const char *what)
{
	uint64_t most = 0;
	int first = -1, last = -1;

	for (int i = 0; i < MT_HIST_BUCKETS; i++) {
		if (!stats->hist[i])
			continue;
		first = first < 0 ? i : first;
		last = i;
		most = stats->hist[i] > most ? stats->hist[i] : most;
	}
	if (first < 0)
		return;
	printf("%23s : count\n", what);
	for (int i = first; i <= last; i++) {
		char from[UNITS_TEXT_SIZE], to[UNITS_TEXT_SIZE];
		int width = (int)(stats->hist[i] * BAR_WIDTH / most);

		printf("%10s - %10s : %-8llu %.*s\n",
		       units__format_duration(from, i ? 1ull << i : 0),
		       units__format_duration(to, 1ull << (i + 1)),
		       (unsigned long long)stats->hist[i], width,
		       "****************************************");
	}
}

static void show(const struct trigger *trigger, struct mt_stats *last, uint64_t span_ns)
{
	struct mt_stats stats;
	struct status_view view;

	if (trigger__stats(trigger, &stats))
		return;
	view = (struct status_view){
		.hits = stats.hits,
		.hits_per_s = (double)(stats.hits - last->hits) * 1e9 / (double)span_ns,
		.delay_ns = {mt_stats__percentile(&stats, 50), mt_stats__percentile(&stats, 99),
			     stats.max_ns},
	};
	status__show(&view);
	*last = stats;
}

static int watch(const struct watch_options *options, const struct trigger *trigger)
{
	uint64_t start = clock__now_ns(), deadline = UINT64_MAX;
	struct mt_stats stats = {0};
	struct pollfd fd = {.events = POLLIN};
	char text[STATUS_TEXT_SIZE];
	sigset_t set;

	if (options->common.timeout_ns)
		deadline = start + options->common.timeout_ns;
	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigprocmask(SIG_BLOCK, &set, NULL);
	fd.fd = signalfd(-1, &set, SFD_CLOEXEC);
	if (fd.fd < 0)
		return -errno;
	log__info("watching; Ctrl-C ends it");
	for (;;) {
		uint64_t now = clock__now_ns();
		uint64_t left = deadline > now ? deadline - now : 0;
		int timeout = left < 1000000000 ? (int)(left / 1000000) : 1000;

		if (!left || poll(&fd, 1, timeout) > 0)
			break;
		show(trigger, &stats, clock__now_ns() - now);
	}
	close(fd.fd);
	status__end();
	if (trigger__stats(trigger, &stats))
		return -EIO;
	puts(status__format(
		text,
		&(struct status_view){
			.hits = stats.hits,
			.hits_per_s = (double)stats.hits * 1e9 / (double)(clock__now_ns() - start),
			.delay_ns = {mt_stats__percentile(&stats, 50),
				     mt_stats__percentile(&stats, 99), stats.max_ns}}));
	print_histogram(&stats, options->durations ? "duration" : "delay");
	return 0;
}

static int open_event(const struct probe *probe, pid_t pid, bool on_return)
{
	return uprobe_event__open(&(struct uprobe_spec){
		.path = probe->path,
		.offset = on_return ? probe->entry_offset : probe->offset,
		.pid = pid,
		.on_return = on_return,
	});
}

static int attach_and_watch(const struct watch_options *options, const struct probe *probe)
{
	struct trigger_config config = {.tgid = options->common.pid,
					.count_only = true,
					.watch_duration = options->durations};
	struct trigger *trigger = trigger__new(&config);
	int entry = -1, ret = -1, err;

	if (!trigger)
		return -errno;
	entry = open_event(probe, options->common.pid, false);
	err = entry < 0 ? entry : 0;
	if (!err && trigger__needs_return(&config)) {
		ret = open_event(probe, options->common.pid, true);
		err = ret < 0 ? ret : 0;
	}
	if (!err)
		err = trigger__attach(trigger, entry, ret);
	if (!err)
		err = watch(options, trigger);
	trigger__free(trigger);
	if (entry >= 0)
		close(entry);
	if (ret >= 0)
		close(ret);
	return err;
}

int cmd_watch(int argc, char **argv)
{
	struct watch_options options = {.common = CAPTURE_DEFAULTS};
	struct process process;
	struct probe probe;
	int rest, err;

	err = options__parse(&table, &options, argc, argv, &rest);
	if (err)
		return exit_code_for_options(err);
	if (capture_options__check(&options.common, table.command))
		return EXIT_USAGE;
	if (!options.common.pid || !options.common.symbol || rest < argc) {
		log__error("watch: which function of which process?");
		log__hint("usage: mtbpf %s", table.usage);
		return EXIT_USAGE;
	}
	if (process__open(&process, options.common.pid))
		return EXIT_USAGE;
	err = probe__find(&probe, &process, NULL, options.common.symbol);
	process__close(&process);
	if (err)
		return EXIT_USAGE;
	return attach_and_watch(&options, &probe) ? EXIT_FAILED : EXIT_OK;
}
