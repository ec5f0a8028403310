// SPDX-License-Identifier: MIT
/* What a major page fault costs is counted: perf takes a stack at each of them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "sample_by_cpu.h"

#define PAGES 64
#define PAGE  4096

/* Maps pages of a file that the page cache does not have, without reading ahead. */
static volatile char *map_uncached(void)
{
	char path[] = "/var/tmp/mtbpf-major-faults-XXXXXX", page[PAGE];
	int fd = mkstemp(path);
	void *pages;

	assert_true(fd >= 0);
	unlink(path);
	memset(page, 1, sizeof(page));
	for (int i = 0; i < PAGES; i++)
		assert_int_equal(write(fd, page, sizeof(page)), sizeof(page));
	assert_int_equal(fsync(fd), 0);
	assert_int_equal(posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED), 0);
	pages = mmap(NULL, PAGES * PAGE, PROT_READ, MAP_SHARED, fd, 0);
	assert_true(pages != MAP_FAILED);
	assert_int_equal(madvise(pages, PAGES * PAGE, MADV_RANDOM), 0);
	close(fd);
	return pages;
}

static uint64_t count_faults(void)
{
	struct rusage usage;

	assert_int_equal(getrusage(RUSAGE_THREAD, &usage), 0);
	return (uint64_t)usage.ru_majflt;
}

static uint64_t count_samples(const struct recorder *recorder)
{
	struct recorder_counts counts;

	assert_int_equal(recorder__count(recorder, &counts), 0);
	return counts.samples;
}

static void test_their_stacks_count(void **state)
{
	struct recorder *recorder;
	struct source *source;
	volatile char *pages;
	uint64_t faults, samples;

	if (geteuid())
		skip();
	pages = map_uncached();
	recorder = recorder__new(&(struct recorder_config){.tgid = getpid(), .log_size = LOG_SIZE});
	assert_non_null(recorder);
	recorder__begin(recorder);
	/* So low a rate that the clock adds no samples that matter. */
	source = start_samples(recorder, getpid(), 1);
	faults = count_faults();
	samples = count_samples(recorder);
	for (size_t i = 0; i < PAGES; i++)
		(void)pages[i * PAGE];
	faults = count_faults() - faults;
	samples = count_samples(recorder) - samples;
	source_sample.close(source);
	recorder__free(recorder);
	munmap((void *)pages, PAGES * PAGE);
	if (faults < PAGES / 2) {
		print_message("only %d major faults: the file system of /var/tmp has no disk\n",
			      (int)faults);
		skip();
	}
	assert_true(samples >= faults);
	/* The switches while the thread waited for the disk are not counted here. */
	assert_true(samples < faults + PAGES / 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_their_stacks_count),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
