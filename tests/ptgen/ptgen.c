// SPDX-License-Identifier: MIT
/*
 * ptgen: runs a program under qemu-x86_64 with our plugin, and makes a recording of the Intel PT
 * stream that a CPU would have written.
 */
#include <errno.h>
#include <limits.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "capture/recording/recording.h"
#include "convert.h"
#include "shared.h"
#include "util/log.h"
#include "cli/options.h"

enum timing { TIMING_TSC, TIMING_MTC, TIMING_CYC };
static const char *const timings[] = {"tsc", "mtc", "cyc", NULL};

struct ptgen_options {
	const char *output, *truth;
	int timing, mtc_freq;
	int skip, limit;
	uint64_t snapshot_size, overflow, psb_period, tsc_interval, stack_distance;
	bool no_ret_compression, go;
};

#define FIELD(name) offsetof(struct ptgen_options, name)
static const struct option_spec specs[] = {
	{"output", NULL, 'o', OPT_STRING, "NAME.mtbpf", "the recording", FIELD(output), NULL},
	{"truth", NULL, 0, OPT_STRING, "FILE", "log the true stack, as the soft source does",
	 FIELD(truth), NULL},
	{"stack-distance", NULL, 0, OPT_SIZE, "SIZE",
	 "a stack pointer that moves further is on another stack of the thread (0: there is one)",
	 FIELD(stack_distance), NULL},
	{"go", NULL, 0, OPT_FLAG, NULL, "with -truth: each goroutine has a stack of its own",
	 FIELD(go), NULL},
	{"timing", NULL, 0, OPT_CHOICE, "WHAT",
	 "packets of time: tsc, mtc (and TSC at PSBs) or cyc (and MTC)", FIELD(timing), timings},
	{"mtc-freq", NULL, 0, OPT_INT, "N", "an MTC packet every 2^N ticks of 24 MHz (3)",
	 FIELD(mtc_freq), NULL},
	{"tsc-interval", NULL, 0, OPT_DURATION, "TIME",
	 "with -timing tsc: between two TSC packets (20us)", FIELD(tsc_interval), NULL},
	{"skip", NULL, 0, OPT_INT, "N", "instructions of the first thread before it begins",
	 FIELD(skip), NULL},
	{"instructions", NULL, 0, OPT_INT, "N", "end the program after so many (0: when it ends)",
	 FIELD(limit), NULL},
	{"snapshot-size", NULL, 0, OPT_SIZE, "SIZE", "the last bytes of a thread to keep (1G)",
	 FIELD(snapshot_size), NULL},
	{"overflow", NULL, 0, OPT_SIZE, "SIZE", "an overflow every so many bytes (0: none)",
	 FIELD(overflow), NULL},
	{"psb-period", NULL, 0, OPT_SIZE, "SIZE", "bytes between two PSB packets (4K)",
	 FIELD(psb_period), NULL},
	{"no-ret-compression", NULL, 0, OPT_FLAG, NULL, "a TIP packet for every return",
	 FIELD(no_ret_compression), NULL},
};

static const struct option_table table = {
	.command = "",
	.usage = "-o NAME.mtbpf [options] -- PROGRAM [ARGUMENT...]",
	.summary = "Runs a program under QEMU and writes the Intel PT of all that it does.",
	.examples = (const char *const[]){"ptgen -o py.mtbpf -instructions 10000000 -- "
					  "/usr/bin/python3 -c 'print(1)'",
					  NULL},
	.specs = specs,
	.count = sizeof(specs) / sizeof(specs[0]),
};

static uint64_t power_of_two(uint64_t wanted)
{
	uint64_t size = 4096;

	while (size < wanted)
		size <<= 1;
	return size;
}

/* TSC ticks are 1 / 2.4 of a nanosecond. */
static uint64_t ticks(uint64_t ns)
{
	return ns * PTGEN_NOM_FREQ / 10;
}

static struct pt_stream_config stream_config(const struct ptgen_options *options)
{
	bool mtc = options->timing >= TIMING_MTC;

	return (struct pt_stream_config){
		.psb_period = (uint32_t)options->psb_period,
		.tsc_interval = mtc ? ~0ull : ticks(options->tsc_interval),
		.return_compression = !options->no_ret_compression,
		.cbr = PTGEN_CBR,
		.nom_freq = options->timing == TIMING_CYC ? PTGEN_NOM_FREQ : 0,
		.mtc_freq = (uint8_t)options->mtc_freq,
		.ctc_ticks = mtc ? PTGEN_CTC_TICKS : 0,
	};
}

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* The memory that both map, and in *fd what the plugin opens. NULL with errno. */
static struct ptgen_shared *make_shared(const struct ptgen_options *options, char **program,
					int *fd)
{
	uint64_t ring_size = power_of_two(options->snapshot_size);
	size_t size = ptgen_shared__size(ring_size);
	struct ptgen_shared *shared = MAP_FAILED;
	struct ptgen_config *config;

	*fd = memfd_create("ptgen", 0);
	/* Sparse: a page costs memory from the first packet on it. */
	if (*fd >= 0 && !ftruncate(*fd, (off_t)size))
		shared = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, *fd,
			      0);
	if (shared == MAP_FAILED)
		return NULL;
	shared->now = PTGEN_TSC_START;
	config = &shared->config;
	config->stream = stream_config(options);
	config->ring_size = ring_size;
	config->overflow_period = options->overflow;
	config->skip = (uint64_t)options->skip;
	config->limit = (uint64_t)options->limit;
	config->stack_distance = options->stack_distance;
	config->go = options->go;
	while (program[config->argc])
		config->argc++;
	snprintf(config->comm, sizeof(config->comm), "%s", base_name(program[0]));
	if (options->truth)
		snprintf(config->truth_path, sizeof(config->truth_path), "%s", options->truth);
	return shared;
}

/* The plugin lies beside this program. */
static int plugin_option(char *text, size_t size, int fd)
{
	char self[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);

	if (n < 0)
		return -errno;
	self[n] = '\0';
	*strrchr(self, '/') = '\0';
	snprintf(text, size, "%s/libptgen.so,shared=/proc/self/fd/%d", self, fd);
	return 0;
}

/* As execvp() would find it: QEMU takes a path. */
static const char *find_program(const char *name, char path[static PATH_MAX])
{
	const char *dirs = getenv("PATH");

	if (strchr(name, '/'))
		return name;
	while (dirs && *dirs) {
		int n = (int)strcspn(dirs, ":");

		snprintf(path, PATH_MAX, "%.*s/%s", n, dirs, name);
		if (!access(path, X_OK))
			return path;
		dirs += n + (dirs[n] == ':');
	}
	return name;
}

static void exec_qemu(const char *option, char **program)
{
	char path[PATH_MAX];
	size_t n = 0;
	char **argv;

	while (program[n])
		n++;
	argv = calloc(n + 6, sizeof(*argv));
	if (!argv)
		return;
	argv[0] = "qemu-x86_64";
	argv[1] = "-plugin";
	argv[2] = (char *)option;
	argv[3] = "-0";
	argv[4] = program[0];
	argv[5] = (char *)find_program(program[0], path);
	memcpy(argv + 6, program + 1, (n - 1) * sizeof(*argv));
	execvp(argv[0], argv);
	log__error("cannot start qemu-x86_64: %s", strerror(errno));
	log__hint("it is in the package qemu-user");
}

/* 0 when the program has ended, however. */
static int run(int fd, char **program)
{
	char option[PATH_MAX + 64];
	int err = plugin_option(option, sizeof(option), fd);
	pid_t pid;

	if (err)
		return err;
	pid = fork();
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		exec_qemu(option, program);
		_exit(127);
	}
	if (pid < 0 || waitpid(pid, NULL, 0) < 0)
		return -errno;
	return 0;
}

static int nothing(const char *why, const char *hint)
{
	log__error("nothing was generated: %s", why);
	log__hint("%s", hint);
	return -ENODATA;
}

static int check_outcome(const struct ptgen_shared *shared)
{
	uint64_t irregular = 0;

	if (*shared->error)
		return nothing(shared->error,
			       "qemu 7.2 and its plugin interface 1 are known to work");
	if (!shared->n_threads)
		return nothing("the program did not run", "it must be an x86-64 ELF program");
	if (!shared->begun)
		return nothing("the program had ended before", "-skip fewer instructions");
	for (uint32_t i = 0; i < shared->n_threads && i < PTGEN_THREADS; i++)
		irregular += shared->threads[i].irregular;
	if (irregular)
		log__warn("%llu times the program went where its code does not lead",
			  (unsigned long long)irregular);
	if (shared->lost)
		log__warn("no room for %u threads, mappings or pages of code", shared->lost);
	return 0;
}

/* "key value" lines, one a thread and the sums: for tests. */
static void print_summary(const struct ptgen_shared *shared)
{
	unsigned long long bytes = 0, branches = 0, instructions = 0, overflows = 0;

	for (uint32_t i = 0; i < shared->n_threads && i < PTGEN_THREADS; i++) {
		const struct ptgen_thread *t = &shared->threads[i];

		bytes += t->written;
		branches += t->branches;
		instructions += t->instructions;
		overflows += t->overflows;
		printf("thread %d %s branches %llu\n", t->tid, t->comm,
		       (unsigned long long)t->branches);
	}
	printf("instructions %llu\nbranches %llu\nbytes %llu\noverflows %llu\n", instructions,
	       branches, bytes, overflows);
}

static int generate(const struct ptgen_options *options, char **program)
{
	struct recording rec;
	int fd, err = recording_dir__create(options->output);
	struct ptgen_shared *shared = err ? NULL : make_shared(options, program, &fd);

	if (err)
		return err;
	if (!shared) {
		err = -errno;
		log__error("no memory for the streams: %s", strerror(-err));
		log__hint("use a smaller -snapshot-size");
		return err;
	}
	err = run(fd, program);
	if (!err)
		err = check_outcome(shared);
	recording__init(&rec);
	if (!err)
		err = ptgen__convert(shared, &rec);
	if (!err)
		err = recording__write(&rec, options->output);
	recording__fini(&rec);
	if (!err)
		print_summary(shared);
	return err;
}

int main(int argc, char **argv)
{
	struct ptgen_options options = {.mtc_freq = 3,
					.snapshot_size = 1u << 30,
					.psb_period = 4096,
					.tsc_interval = 20000};
	int rest, err = options__parse(&table, &options, argc, argv, &rest);

	if (err)
		return err == -ECANCELED ? 0 : 2;
	if (!options.output || rest >= argc) {
		options__print_help(&table, stderr);
		return 2;
	}
	return generate(&options, argv + rest) ? 1 : 0;
}
