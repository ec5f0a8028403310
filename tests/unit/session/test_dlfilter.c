// SPDX-License-Identifier: MIT
/* mtbpf-dlfilter.so as perf would call it: with what is new in its interface, and without. */
#include "dlfilter/dlfilter_abi.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "perf/perf_line.h"
#include "util/fs.h"

#if __has_include(<perf/perf_dlfilter.h>)
#include <perf/perf_dlfilter.h>
#define HAS_HEADER 1
#endif

#define BRANCH_CALL_FLAGS (PERF_IS_BRANCH | PERF_IS_CALL)

struct filter {
	void *library, *data;
	struct dlfilter_fns *fns;
	int (*start)(void **data, void *ctx);
	int (*filter_event)(void *data, const struct dlfilter_sample *sample, void *ctx);
	int (*stop)(void *data, void *ctx);
	char dir[32], trace[64];
};

/* What the fakes hand out. */
static char *arguments[2];
static int n_arguments;
static struct dlfilter_place places[2];

static char **fake_args(void *ctx, int *count)
{
	*count = n_arguments;
	return arguments;
}

static const struct dlfilter_place *fake_ip(void *ctx)
{
	return &places[0];
}

static const struct dlfilter_place *fake_addr(void *ctx)
{
	return &places[1];
}

static const uint8_t *fake_insn(void *ctx, uint32_t *len)
{
	static const uint8_t call[] = {0xe8, 1, 2, 3, 4, 0x90};

	*len = sizeof(call);
	return call;
}

static int set_up(void **state)
{
	static struct filter filter;
	const char *folder = getenv("O");
	struct filter *f = &filter;
	char path[4096];

	*f = (struct filter){.dir = "/tmp/mtbpf-test-XXXXXX"};
	snprintf(path, sizeof(path), "%s/mtbpf-dlfilter.so", folder ? folder : "build");
	f->library = dlopen(path, RTLD_NOW);
	if (!f->library) {
		print_message("%s\n", dlerror());
		return -1;
	}
	*(void **)&f->start = dlsym(f->library, "start");
	*(void **)&f->filter_event = dlsym(f->library, "filter_event");
	*(void **)&f->stop = dlsym(f->library, "stop");
	f->fns = dlsym(f->library, "perf_dlfilter_fns");
	assert_true(f->start && f->filter_event && f->stop && f->fns);
	assert_non_null(mkdtemp(f->dir));
	snprintf(f->trace, sizeof(f->trace), "%s/x.fxt", f->dir);
	*f->fns = (struct dlfilter_fns){.resolve_ip = fake_ip,
					.resolve_addr = fake_addr,
					.args = fake_args,
					.insn = fake_insn};
	arguments[0] = f->trace;
	n_arguments = 1;
	places[0] = places[1] = (struct dlfilter_place){.size = sizeof(places[0])};
	*state = f;
	return 0;
}

static int tear_down(void **state)
{
	struct filter *f = *state;

	dlclose(f->library);
	return fs__remove_dir(f->dir);
}

static int branch(struct filter *f, uint32_t flags, uint64_t from, uint64_t to)
{
	static uint64_t now;
	struct dlfilter_sample sample = {.size = sizeof(sample),
					 .ip = from,
					 .addr = to,
					 .pid = 7,
					 .tid = 7,
					 .time = ++now * 1000,
					 .flags = flags,
					 .addr_correlates_sym = 1};

	return f->filter_event(f->data, &sample, NULL);
}

static void name(int which, const char *sym, uint32_t offset)
{
	places[which].sym = sym;
	places[which].symoff = offset;
	places[which].dso = "/usr/bin/svc";
}

static bool trace_has(struct filter *f, const char *text)
{
	char bytes[65536];
	FILE *file = fopen(f->trace, "r");
	size_t n;

	if (!file)
		return false;
	n = fread(bytes, 1, sizeof(bytes), file);
	fclose(file);
	return memmem(bytes, n, text, strlen(text));
}

static void test_a_trace(void **state)
{
	struct filter *f = *state;

	assert_int_equal(f->start(&f->data, NULL), 0);
	places[0].comm = "worker";
	name(0, "main_function", 0x10);
	name(1, "work_function", 0);
	/* 1: perf is not to print it. */
	assert_int_equal(branch(f, BRANCH_CALL_FLAGS, 0x401010, 0x402000), 1);
	name(0, "work_function", 0x20);
	name(1, "main_function", 0x15);
	assert_int_equal(branch(f, PERF_IS_BRANCH | PERF_IS_RETURN, 0x402020, 0x401015), 1);
	assert_int_equal(f->stop(f->data, NULL), 0);
	assert_true(trace_has(f, "main_function"));
	assert_true(trace_has(f, "work_function"));
	assert_true(trace_has(f, "worker"));
	assert_true(trace_has(f, "svc"));
}

/* 5.14, the first: no names of threads, no instructions. Nobody resolves an address. */
static void test_old_perf(void **state)
{
	struct filter *f = *state;

	places[0].size = places[1].size = offsetof(struct dlfilter_place, comm);
	places[0].comm = (const char *)1;
	f->fns->insn = NULL;
	assert_int_equal(f->start(&f->data, NULL), 0);
	name(0, "main_function", 0x10);
	assert_int_equal(branch(f, BRANCH_CALL_FLAGS, 0x401010, 0x402000), 1);
	places[1].size = 0;
	assert_int_equal(branch(f, BRANCH_CALL_FLAGS, 0x401010, 0x403000), 1);
	assert_int_equal(f->stop(f->data, NULL), 0);
	assert_true(trace_has(f, "main_function"));
}

static void test_other_samples(void **state)
{
	struct filter *f = *state;

	assert_int_equal(f->start(&f->data, NULL), 0);
	assert_int_equal(branch(f, 0, 0x401010, 0), 1);
	assert_int_equal(branch(f, PERF_IS_BRANCH | PERF_IS_NOT_TAKEN, 0x401010, 0x401020), 1);
	assert_true(f->stop(f->data, NULL) < 0);
	assert_int_not_equal(access(f->trace, F_OK), 0);
}

static void test_refused(void **state)
{
	struct filter *f = *state;
	struct dlfilter_sample small = {.size = 64};

	n_arguments = 0;
	assert_true(f->start(&f->data, NULL) < 0);
	n_arguments = 2;
	arguments[1] = arguments[0];
	assert_true(f->start(&f->data, NULL) < 0);
	n_arguments = 1;
	arguments[0] = f->dir;
	assert_true(f->start(&f->data, NULL) < 0);
	/* perf ends what did not start. */
	assert_null(f->data);
	assert_int_equal(f->stop(f->data, NULL), 0);
	arguments[0] = f->trace;
	assert_int_equal(f->start(&f->data, NULL), 0);
	assert_true(f->filter_event(f->data, &small, NULL) < 0);
	/* That has been said. */
	assert_int_equal(f->stop(f->data, NULL), 0);
}

static void test_same_as_perfs_header(void **state)
{
#ifdef HAS_HEADER
#define SAME(ours, theirs, field)                                                                  \
	assert_int_equal(offsetof(struct ours, field), offsetof(struct theirs, field))
	SAME(dlfilter_sample, perf_dlfilter_sample, ip);
	SAME(dlfilter_sample, perf_dlfilter_sample, pid);
	SAME(dlfilter_sample, perf_dlfilter_sample, tid);
	SAME(dlfilter_sample, perf_dlfilter_sample, time);
	SAME(dlfilter_sample, perf_dlfilter_sample, addr);
	SAME(dlfilter_sample, perf_dlfilter_sample, insn_cnt);
	SAME(dlfilter_sample, perf_dlfilter_sample, flags);
	SAME(dlfilter_sample, perf_dlfilter_sample, addr_correlates_sym);
	SAME(dlfilter_place, perf_dlfilter_al, symoff);
	SAME(dlfilter_place, perf_dlfilter_al, sym);
	SAME(dlfilter_place, perf_dlfilter_al, dso);
	SAME(dlfilter_place, perf_dlfilter_al, comm);
	SAME(dlfilter_fns, perf_dlfilter_fns, resolve_addr);
	SAME(dlfilter_fns, perf_dlfilter_fns, args);
	SAME(dlfilter_fns, perf_dlfilter_fns, insn);
	assert_int_equal(sizeof(struct dlfilter_fns), sizeof(struct perf_dlfilter_fns));
	assert_int_equal(PERF_IS_BRANCH, PERF_DLFILTER_FLAG_BRANCH);
	assert_int_equal(PERF_IS_CALL, PERF_DLFILTER_FLAG_CALL);
	assert_int_equal(PERF_IS_RETURN, PERF_DLFILTER_FLAG_RETURN);
	assert_int_equal(PERF_IS_CONDITIONAL, PERF_DLFILTER_FLAG_CONDITIONAL);
	assert_int_equal(PERF_IS_SYSCALL, PERF_DLFILTER_FLAG_SYSCALLRET);
	assert_int_equal(PERF_IS_ASYNC, PERF_DLFILTER_FLAG_ASYNC);
	assert_int_equal(PERF_IS_INTERRUPT, PERF_DLFILTER_FLAG_INTERRUPT);
	assert_int_equal(PERF_IS_ABORT, PERF_DLFILTER_FLAG_TX_ABORT);
	assert_int_equal(PERF_IS_BEGIN, PERF_DLFILTER_FLAG_TRACE_BEGIN);
	assert_int_equal(PERF_IS_END, PERF_DLFILTER_FLAG_TRACE_END);
	assert_int_equal(PERF_IN_TRANSACTION, PERF_DLFILTER_FLAG_IN_TX);
	assert_int_equal(PERF_IS_VMENTRY, PERF_DLFILTER_FLAG_VMENTRY);
	assert_int_equal(PERF_IS_VMEXIT, PERF_DLFILTER_FLAG_VMEXIT);
#else
	print_message("# skip: perf/perf_dlfilter.h is missing (package linux-perf)\n");
	skip();
#endif
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_a_trace, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_old_perf, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_other_samples, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_refused, set_up, tear_down),
		cmocka_unit_test(test_same_as_perfs_header),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
