// SPDX-License-Identifier: MIT
/*
 * Packets to branches: ours against libipt's block decoder, which gets the code its fastest way
 * (pt_iscache, all of it kept mapped) and hands on nothing. For each recording given: medians of
 * rounds that take turns, so that what else happens on the machine happens to all of them; of CPU
 * time where one thread decodes.
 */
#include <errno.h>
#include <fcntl.h>
#include <intel-pt.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "capture/recording/recording.h"
#include "decode/decode.h"
#include "target/elf/elf_image.h"
#include "util/cleanup.h"
#include "util/clock.h"

#define ROUNDS 5

struct result {
	uint64_t ns, cpu_ns;
	uint64_t insns, branches, handed_on, gaps;
	long peak_kb; /* beyond what was there before */
};

/* VmHWM, or another line of /proc/self/status, in KB. */
static long status_kb(const char *key)
{
	FILE *f = fopen("/proc/self/status", "r");
	char line[256];
	long kb = 0;

	while (f && fgets(line, sizeof(line), f))
		if (!strncmp(line, key, strlen(key)))
			sscanf(line + strlen(key), ": %ld", &kb);
	if (f)
		fclose(f);
	return kb;
}

/* Forgets the peak so far (Linux: proc(5), clear_refs). */
static long reset_peak(void)
{
	FILE *f = fopen("/proc/self/clear_refs", "w");

	if (f) {
		fputs("5", f);
		fclose(f);
	}
	return status_kb("VmRSS");
}

struct counts {
	uint64_t branches, handed_on;
};

static int count(void *ctx, struct branch *v, size_t n)
{
	uint64_t branches = 0, handed_on = 0;
	struct counts *counts = ctx;

	for (size_t i = 0; i < n; i++) {
		branches += branch__is_entry(&v[i]) ? 0 : v[i].n_branches;
		handed_on += !branch__is_entry(&v[i]);
	}
	counts->branches += branches;
	counts->handed_on += handed_on;
	return 0;
}

static void run_ours(const struct recording *rec, bool all, unsigned int jobs, struct result *out)
{
	struct decode_totals totals = {0};
	struct counts counts = {0};
	long before = reset_peak();
	uint64_t start = clock__now_ns();
	struct images *images = images__new(rec);

	for (size_t i = 0; i < rec->aux.n; i++) {
		struct code_map *map = code_map__new();

		decode__run(&(struct decode_request){.rec = rec,
						     .aux = &rec->aux.v[i],
						     .images = images,
						     .map = map,
						     .take = count,
						     .ctx = &counts,
						     .totals = &totals,
						     .all_branches = all,
						     .jobs = jobs});
		code_map__free(map);
	}
	images__free(images);
	*out = (struct result){.ns = clock__now_ns() - start,
			       .insns = totals.insns,
			       .branches = counts.branches,
			       .handed_on = counts.handed_on,
			       .peak_kb = status_kb("VmHWM") - before};
	for (int reason = 0; reason < GAP_REASONS; reason++)
		out->gaps += totals.gaps[reason];
}

static void run_events(const struct recording *rec, struct result *out)
{
	run_ours(rec, false, 1, out);
}

static void run_all(const struct recording *rec, struct result *out)
{
	run_ours(rec, true, 1, out);
}

static void run_parallel(const struct recording *rec, struct result *out)
{
	run_ours(rec, false, 0, out);
}

/* libipt takes code from files only. */
static int add_bytes(struct pt_image_section_cache *cache, const struct recording *rec,
		     const struct rec_map *map)
{
	char path[64];

	for (size_t i = 0; i < rec->images.n; i++) {
		const struct rec_image *image = &rec->images.v[i];
		int fd;

		if (strcmp(image->path, map->path))
			continue;
		fd = memfd_create("image", 0);
		if (fd < 0 || write(fd, image->data, image->size) != (ssize_t)image->size)
			return -1;
		snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
		return pt_iscache_add_file(cache, path, 0, image->size, map->start);
	}
	return -1;
}

static void add_images(struct pt_image *image, struct pt_image_section_cache *cache,
		       const struct recording *rec, pid_t pid)
{
	for (size_t i = 0; i < rec->maps.n; i++) {
		const struct rec_map *map = &rec->maps.v[i];
		int id;

		if (map->pid != pid)
			continue;
		id = map->path[0] == '/' ? pt_iscache_add_file(cache, map->path, map->pgoff,
							       map->len, map->start)
					 : add_bytes(cache, rec, map);
		if (id < 0 || pt_image_add_cached(image, cache, id, NULL) < 0)
			fprintf(stderr, "bench_decode: libipt cannot have %s\n", map->path);
	}
}

static void run_blocks(struct pt_block_decoder *decoder, struct result *out)
{
	int status = 0;

	while (status >= 0) {
		struct pt_event event;
		struct pt_block block;

		while (status >= 0 && status & pts_event_pending)
			status = pt_blk_event(decoder, &event, sizeof(event));
		if (status < 0 || status & pts_eos)
			break;
		block.ninsn = 0;
		status = pt_blk_next(decoder, &block, sizeof(block));
		out->insns += block.ninsn;
	}
	out->gaps += status < 0 && status != -pte_eos;
}

static void run_libipt_on(const struct recording *rec, const struct rec_aux *aux,
			  struct pt_image_section_cache *cache, struct result *out)
{
	struct pt_config config;
	struct pt_block_decoder *decoder;

	pt_config_init(&config);
	config.begin = aux->data;
	config.end = aux->data + aux->size;
	config.mtc_freq = (uint8_t)rec->pt.mtc_freq;
	config.nom_freq = (uint8_t)rec->pt.nom_freq;
	config.cpuid_0x15_ebx = rec->pt.tsc_ctc_num;
	config.cpuid_0x15_eax = rec->pt.tsc_ctc_den;
	decoder = pt_blk_alloc_decoder(&config);
	if (!decoder)
		return;
	add_images(pt_blk_get_image(decoder), cache, rec, aux->pid);
	while (pt_blk_sync_forward(decoder) >= 0)
		run_blocks(decoder, out);
	pt_blk_free_decoder(decoder);
}

static void run_libipt(const struct recording *rec, struct result *out)
{
	struct pt_image_section_cache *cache = pt_iscache_alloc("bench");
	long before = reset_peak();
	uint64_t start = clock__now_ns();

	*out = (struct result){0};
	pt_iscache_set_limit(cache, 1ull << 32);
	for (size_t i = 0; i < rec->aux.n; i++)
		run_libipt_on(rec, &rec->aux.v[i], cache, out);
	out->ns = clock__now_ns() - start;
	out->peak_kb = status_kb("VmHWM") - before;
	pt_iscache_free(cache);
}

static const struct decoder {
	const char *name;
	void (*run)(const struct recording *rec, struct result *out);
	bool is_parallel;
} decoders[] = {
	{"libipt", run_libipt, false},
	{"calls, 1 thread", run_events, false},
	{"all, 1 thread", run_all, false},
	{"calls, every CPU", run_parallel, true},
};
#define DECODERS (sizeof(decoders) / sizeof(decoders[0]))

static uint64_t cpu_now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static void run_once(const struct decoder *decoder, const struct recording *rec,
		     struct result *result)
{
	uint64_t start = cpu_now_ns();

	decoder->run(rec, result);
	result->cpu_ns = cpu_now_ns() - start;
}

/* One thread's work is told by its CPU time, which others on the machine do not make longer. */
static uint64_t time_of(const struct decoder *decoder, const struct result *r)
{
	return decoder->is_parallel ? r->ns : r->cpu_ns;
}

static int by_cpu_time(const void *a, const void *b)
{
	const struct result *x = a, *y = b;

	return x->cpu_ns < y->cpu_ns ? -1 : x->cpu_ns > y->cpu_ns;
}

static int by_time(const void *a, const void *b)
{
	const struct result *x = a, *y = b;

	return x->ns < y->ns ? -1 : x->ns > y->ns;
}

static void print_result(const struct decoder *decoder, const struct result *r, uint64_t bytes,
			 uint64_t branches, const struct result *libipt)
{
	double s = (double)time_of(decoder, r) / 1e9;
	double libipt_s = (double)time_of(decoder, libipt) / 1e9;

	printf("  %-17s %7.3f s %7.1f MB/s %7.1f M branches/s %6.1fx %8.1f MB peak  %" PRIu64
	       " insns, %" PRIu64 " handed on, %" PRIu64 " gaps\n",
	       decoder->name, s, (double)bytes / 1e6 / s, (double)branches / 1e6 / s, libipt_s / s,
	       (double)r->peak_kb / 1e3, r->insns, r->handed_on, r->gaps);
}

static void bench(const struct recording *rec, const char *path)
{
	struct result results[DECODERS][ROUNDS];
	uint64_t bytes = 0, branches;

	for (size_t i = 0; i < rec->aux.n; i++)
		bytes += rec->aux.v[i].size;
	for (int round = 0; round < ROUNDS; round++)
		for (size_t i = 0; i < DECODERS; i++)
			run_once(&decoders[i], rec, &results[i][round]);
	for (size_t i = 0; i < DECODERS; i++)
		qsort(results[i], ROUNDS, sizeof(results[i][0]),
		      decoders[i].is_parallel ? by_time : by_cpu_time);
	branches = results[1][ROUNDS / 2].branches;
	printf("%s: %.1f MB of PT, %.1f M branches taken\n", path, (double)bytes / 1e6,
	       (double)branches / 1e6);
	for (size_t i = 0; i < DECODERS; i++)
		print_result(&decoders[i], &results[i][ROUNDS / 2], bytes, branches,
			     &results[0][ROUNDS / 2]);
}

/* By the build id; without one, by the inode. */
static bool is_file_that_ran(const struct rec_map *map)
{
	_cleanup_close_ int fd = open(map->path, O_RDONLY | O_CLOEXEC);
	struct elf_image *image;
	struct stat st;
	bool is_it;

	if (fd < 0 || fstat(fd, &st))
		return false;
	if (!map->build_id[0])
		return !map->ino || st.st_ino == map->ino;
	image = elf_image__open(fd, map->path);
	is_it = image && !strcmp(elf_image__build_id(image), map->build_id);
	elf_image__free(image);
	return is_it;
}

/* With other code than ran, figures mean nothing, and jumps may lead in a circle. */
static int check_files(const struct recording *rec, const char *path)
{
	for (size_t i = 0; i < rec->maps.n; i++) {
		const struct rec_map *map = &rec->maps.v[i];

		if (map->path[0] != '/' || is_file_that_ran(map))
			continue;
		fprintf(stderr,
			"bench_decode: %s: %s is no longer the file that ran: make the recording "
			"anew\n",
			path, map->path);
		return -ENOENT;
	}
	return 0;
}

int main(int argc, char **argv)
{
	if (argc < 2) {
		fprintf(stderr, "usage: bench_decode RECORDING...\n");
		return 2;
	}
	for (int i = 1; i < argc; i++) {
		struct recording rec;

		recording__init(&rec);
		if (recording__read(&rec, argv[i]) || check_files(&rec, argv[i]))
			return 1;
		bench(&rec, argv[i]);
		recording__fini(&rec);
	}
	return 0;
}
