// SPDX-License-Identifier: MIT
/*
 * A recording to a trace file, all told, against perf script, whose lines go to /dev/null. For each
 * recording given: medians of rounds that take turns, so that what else happens on the machine
 * happens to all of them. With -curve: how it grows with the size of the recording, without perf.
 *
 *   bench_whole [-curve] MTBPF RECORDING...
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "capture/recording/recording.h"
#include "util/clock.h"

#define ROUNDS	 3
#define MAX_ARGS 12

struct result {
	uint64_t ns, cpu_ns;
	uint64_t peak_kb;
	uint64_t bytes; /* of the trace */
};

static uint64_t ns_of(const struct timeval *time)
{
	return (uint64_t)time->tv_sec * 1000000000 + (uint64_t)time->tv_usec * 1000;
}

/* What it says goes into the file `said`. False where it failed. */
static bool run(const char *const *argv, const char *said, struct result *result)
{
	uint64_t start = clock__now_ns();
	pid_t pid = fork();
	struct rusage usage;
	int status;

	if (!pid) {
		int out = open(said, O_WRONLY | O_CREAT | O_TRUNC, 0600);
		int null = open("/dev/null", O_WRONLY);

		dup2(out, STDOUT_FILENO);
		dup2(null, STDERR_FILENO);
		execvp(argv[0], (char *const *)argv);
		_exit(127);
	}
	if (pid < 0 || wait4(pid, &status, 0, &usage) != pid)
		return false;
	*result = (struct result){
		.ns = clock__now_ns() - start,
		.cpu_ns = ns_of(&usage.ru_utime) + ns_of(&usage.ru_stime),
		.peak_kb = (uint64_t)usage.ru_maxrss,
	};
	return WIFEXITED(status) && !WEXITSTATUS(status);
}

static bool run_perf(const char *recording, struct result *result)
{
	const char *const argv[MAX_ARGS] = {
		"perf", "script", "-i", recording, "--itrace=b", "-F", "tid,time,flags,ip,sym,addr",
	};

	return run(argv, "/dev/null", result);
}

/* The summary stays in SCRATCH.said. */
static bool decode_once(const char *mtbpf, const char *recording, const char *scratch,
			const char *suffix, struct result *result)
{
	char trace[PATH_MAX], said[PATH_MAX];
	const char *const argv[MAX_ARGS] = {mtbpf, "decode", "-q", "-o", trace, recording};
	struct stat st;
	bool ok;

	snprintf(trace, sizeof(trace), "%s%s", scratch, suffix);
	snprintf(said, sizeof(said), "%s.said", scratch);
	unlink(trace);
	ok = run(argv, said, result) && !stat(trace, &st);
	result->bytes = ok ? (uint64_t)st.st_size : 0;
	unlink(trace);
	return ok;
}

/*
 * Twice, of which the second counts: where this machine is a VM, memory that nobody has used for a
 * while is its host's, and takes several times as long to be had again. perf needs little of it.
 */
static bool run_decode(const char *mtbpf, const char *recording, const char *scratch,
		       const char *suffix, struct result *result)
{
	return decode_once(mtbpf, recording, scratch, suffix, result) &&
	       decode_once(mtbpf, recording, scratch, suffix, result);
}

/* From "...: 300000007 instructions, 4265837 slices, 1 thread". */
static uint64_t read_slices(const char *scratch)
{
	char said[PATH_MAX], line[512];
	uint64_t slices = 0;
	FILE *file;

	snprintf(said, sizeof(said), "%s.said", scratch);
	file = fopen(said, "r");
	while (file && fgets(line, sizeof(line), file)) {
		const char *number = strstr(line, " instructions, ");

		if (number)
			slices = strtoull(number + strlen(" instructions, "), NULL, 10);
	}
	if (file)
		fclose(file);
	unlink(said);
	return slices;
}

static uint64_t bytes_of_pt(const char *path)
{
	struct recording rec;
	uint64_t bytes = 0;

	recording__init(&rec);
	if (recording__read(&rec, path))
		exit(1);
	for (size_t i = 0; i < rec.aux.n; i++)
		bytes += rec.aux.v[i].size;
	recording__fini(&rec);
	return bytes;
}

static int by_time(const void *a, const void *b)
{
	const struct result *x = a, *y = b;

	return x->ns < y->ns ? -1 : x->ns > y->ns;
}

static const struct result *median(struct result *results)
{
	qsort(results, ROUNDS, sizeof(*results), by_time);
	return &results[ROUNDS / 2];
}

static const char *const suffixes[] = {".fxt", ".fxt.gz", ".fxt.zst"};
#define SUFFIXES (sizeof(suffixes) / sizeof(suffixes[0]))

static void print_row(const char *name, const struct result *r, uint64_t perf_ns)
{
	printf("  %-15s %7.3f s  %7.3f s of CPU  %8.1f MB peak", name, (double)r->ns / 1e9,
	       (double)r->cpu_ns / 1e9, (double)r->peak_kb / 1e3);
	if (perf_ns)
		printf("  %6.1fx", (double)perf_ns / (double)r->ns);
}

static int compare(const char *mtbpf, const char *recording, const char *scratch)
{
	struct result perf[ROUNDS], ours[SUFFIXES][ROUNDS];
	bool has_perf = true;
	uint64_t slices, perf_ns;

	for (int round = 0; round < ROUNDS; round++) {
		has_perf = has_perf && run_perf(recording, &perf[round]);
		for (size_t i = 0; i < SUFFIXES; i++)
			if (!run_decode(mtbpf, recording, scratch, suffixes[i], &ours[i][round]))
				return 1;
	}
	slices = read_slices(scratch);
	printf("%s: %.1f MB of PT, %" PRIu64 " slices\n", recording,
	       (double)bytes_of_pt(recording) / 1e6, slices);
	perf_ns = has_perf ? median(perf)->ns : 0;
	if (has_perf) {
		print_row("perf script", median(perf), 0);
		printf("\n");
	} else {
		printf("  perf script: not here, or it failed\n");
	}
	for (size_t i = 0; i < SUFFIXES; i++) {
		const struct result *r = median(ours[i]);

		print_row(suffixes[i], r, perf_ns);
		printf("  %5.1f bytes a slice\n", (double)r->bytes / (double)(slices ? slices : 1));
	}
	return 0;
}

static int print_point(const char *mtbpf, const char *recording, const char *scratch)
{
	uint64_t pt = bytes_of_pt(recording);
	struct result results[ROUNDS];
	const struct result *r;
	char size[32];

	for (int round = 0; round < ROUNDS; round++)
		if (!run_decode(mtbpf, recording, scratch, ".fxt", &results[round]))
			return 1;
	read_slices(scratch);
	r = median(results);
	snprintf(size, sizeof(size), "%.1f MB", (double)pt / 1e6);
	print_row(size, r, 0);
	printf("  %6.1f MB/s, %5.1f bytes of memory and %5.1f of trace a byte\n",
	       (double)pt / 1e6 / ((double)r->ns / 1e9), (double)r->peak_kb * 1024 / (double)pt,
	       (double)r->bytes / (double)pt);
	return 0;
}

int main(int argc, char **argv)
{
	bool curve = argc > 1 && !strcmp(argv[1], "-curve");
	const char *mtbpf = argv[1 + curve];
	int err = 0;

	if (argc < 3 + curve) {
		fprintf(stderr, "usage: bench_whole [-curve] MTBPF RECORDING...\n");
		return 2;
	}
	setvbuf(stdout, NULL, _IOLBF, 0);
	if (curve)
		printf("decode to .fxt, by the size of the Intel PT in the recording\n");
	for (int i = 2 + curve; i < argc && !err; i++) {
		char scratch[PATH_MAX];

		/* Beside the recording: on the disk that a trace would go to. */
		snprintf(scratch, sizeof(scratch), "%s.bench", argv[i]);
		err = curve ? print_point(mtbpf, argv[i], scratch)
			    : compare(mtbpf, argv[i], scratch);
		if (err)
			fprintf(stderr, "bench_whole: cannot decode %s\n", argv[i]);
	}
	return err;
}
