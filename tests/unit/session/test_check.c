// SPDX-License-Identifier: MIT
#include "check/check.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

#include <cjson/cJSON.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "capture/perf/perf_ring.h"
#include "said.h"
#include "stderr_capture.h"
#include "util/cleanup.h"
#include "util/fs.h"
#include "kernel/rights.h"

#define MIB (1ull << 20)

static void test_lockdown(void **state)
{
	assert_int_equal(lockdown__parse("[none] integrity confidentiality"), LOCKDOWN_NONE);
	assert_int_equal(lockdown__parse("none [integrity] confidentiality\n"), LOCKDOWN_INTEGRITY);
	assert_int_equal(lockdown__parse("none integrity [confidentiality]"),
			 LOCKDOWN_CONFIDENTIALITY);
	assert_int_equal(lockdown__parse("none integrity confidentiality"), -EINVAL);
	assert_int_equal(lockdown__parse(""), -EINVAL);
}

/* 516 KiB a CPU for the user, and RLIMIT_MEMLOCK for the process beyond that. */
static void test_memlock(void **state)
{
	struct memlock_limits limits = {
		.mlock_kb = 516, .cpus = 4, .rlimit = 8 * MIB, .paranoid = 2};

	assert_true(memlock__fits(&limits) == 8 * MIB + 4 * 516 * 1024);
	limits.paranoid = 0;
	assert_true(memlock__fits(&limits) == 8 * MIB + 4 * 516 * 1024);
	limits.rlimit = 0;
	assert_true(memlock__fits(&limits) == 4 * 516 * 1024);
	limits.rlimit = UINT64_MAX;
	assert_true(memlock__fits(&limits) == UINT64_MAX);
}

static void test_memlock_is_lifted(void **state)
{
	struct memlock_limits limits = {.mlock_kb = 516, .cpus = 1, .rlimit = 0, .paranoid = 2};

	limits.ipc_lock = true;
	assert_true(memlock__fits(&limits) == UINT64_MAX);
	limits.ipc_lock = false;
	limits.paranoid = -1;
	assert_true(memlock__fits(&limits) == UINT64_MAX);
}

/* What would fit is named, and does. */
static void test_memlock_is_explained(void **state)
{
	struct memlock_limits limits = {.mlock_kb = 512, .cpus = 2, .rlimit = 3 * MIB};
	struct stderr_capture capture;
	const char *said;

	assert_int_equal(memlock__check(&limits, 2, 2 * MIB, 1 * MIB), 0);
	stderr_capture__begin(&capture);
	assert_int_equal(memlock__check(&limits, 3, 2 * MIB, 1 * MIB), -EPERM);
	said = stderr_capture__end(&capture);
	ASSERT_ERROR(said, TEXT_locked_memory, "6.0 MiB", (size_t)3, "s", "4.0 MiB", 512ull, 2u);
	ASSERT_HINT(said, TEXT_size_fits_lock, (size_t)256, "256.0 KiB");
	assert_int_equal(memlock__check(&limits, 3, MIB + 256 * 1024, 256 * 1024), 0);
	stderr_capture__begin(&capture);
	assert_int_equal(memlock__check(&limits, 5, 2 * MIB, 1 * MIB), -EPERM);
	assert_null(strstr(stderr_capture__end(&capture), "-snapshot-size"));
}

static void test_hypervisors(void **state)
{
	assert_string_equal(vm__hypervisor("KVMKVMKVM\0\0\0"), "KVM");
	assert_string_equal(vm__hypervisor("TCGTCGTCGTCG"), "QEMU TCG");
	assert_string_equal(vm__hypervisor("Microsoft Hv"), "Hyper-V");
	assert_null(vm__hypervisor("KVMKVMKVM   "));
	assert_null(vm__hypervisor("GenuineIntel"));
}

static void test_ptrace_scopes(void **state)
{
	assert_int_equal(ptrace__judge(0, false), CHECK_LIMITED);
	assert_int_equal(ptrace__judge(1, false), CHECK_LIMITED);
	assert_int_equal(ptrace__judge(2, false), CHECK_MISSING);
	assert_int_equal(ptrace__judge(2, true), CHECK_OK);
	assert_int_equal(ptrace__judge(3, true), CHECK_MISSING);
}

static void test_perf_levels(void **state)
{
	assert_int_equal(perf__judge(2, false, false), CHECK_LIMITED);
	assert_int_equal(perf__judge(2, true, false), CHECK_OK);
	assert_int_equal(perf__judge(3, false, false), CHECK_MISSING);
	/* Debian's level 3 is above CAP_PERFMON. */
	assert_int_equal(perf__judge(3, true, false), CHECK_MISSING);
	assert_int_equal(perf__judge(3, true, true), CHECK_OK);
}

static void test_reads_lines(void **state)
{
	char path[] = "/tmp/test_check.XXXXXX", line[8];
	int fd = mkstemp(path);

	assert_true(fd >= 0);
	assert_int_equal(fs__write_fd(fd, "a\x01\xff b\tc\nnext", 12), 0);
	close(fd);
	assert_int_equal(check__read_line(path, line, sizeof(line)), 0);
	assert_string_equal(line, "a bc");
	assert_int_equal(check__read_line(path, line, 3), 0);
	assert_string_equal(line, "a ");
	unlink(path);
	assert_int_equal(check__read_line(path, line, sizeof(line)), -ENOENT);
}

static struct check_report sample(void)
{
	struct check_report report = {.n = 2};

	report.results[0].name = "intel_pt";
	report.results[0].needed = true;
	check_result__set(&report.results[0], CHECK_OK, "type %d", 8);
	check_result__add_number(&report.results[0], "psb_cyc", 1);
	check_result__add_text(&report.results[0], "place", "a \"b\"\\");
	report.results[1].name = "fzf";
	check_result__set(&report.results[1], CHECK_MISSING, "none");
	check_result__remedy(&report.results[1], "install it");
	return report;
}

static const char *string_of(const cJSON *object, const char *name)
{
	return cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(object, name));
}

static void test_json(void **state)
{
	struct check_report report = sample();
	_cleanup_free_ char *text = check_report__json(&report);
	cJSON *array = cJSON_Parse(text);
	const cJSON *first = cJSON_GetArrayItem(array, 0), *second = cJSON_GetArrayItem(array, 1);
	const cJSON *facts = cJSON_GetObjectItemCaseSensitive(first, "facts");

	assert_true(cJSON_IsArray(array));
	assert_int_equal(cJSON_GetArraySize(array), 2);
	assert_string_equal(string_of(first, "name"), "intel_pt");
	assert_string_equal(string_of(first, "state"), "ok");
	assert_string_equal(string_of(first, "reason"), "type 8");
	assert_true(cJSON_IsNull(cJSON_GetObjectItemCaseSensitive(first, "remedy")));
	assert_true(cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(first, "needed")));
	assert_int_equal(cJSON_GetObjectItemCaseSensitive(facts, "psb_cyc")->valueint, 1);
	assert_string_equal(string_of(facts, "place"), "a \"b\"\\");
	assert_string_equal(string_of(second, "state"), "missing");
	assert_string_equal(string_of(second, "remedy"), "install it");
	cJSON_Delete(array);
}

static void test_text(void **state)
{
	struct check_report report = sample();
	_cleanup_free_ char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	check_report__print(&report, out);
	fclose(out);
	assert_string_equal(text, "intel_pt  ok       type 8\n"
				  "fzf       missing  none; install it\n");
}

static void test_good_without_what_is_not_needed(void **state)
{
	struct check_report report = sample();

	assert_true(check_report__good(&report));
	report.results[0].state = CHECK_LIMITED;
	assert_true(check_report__good(&report));
	report.results[0].state = CHECK_MISSING;
	assert_false(check_report__good(&report));
}

static void test_too_many_facts(void **state)
{
	struct check_result result = {0};

	for (int i = 0; i < CHECK_MAX_FACTS + 3; i++)
		check_result__add_number(&result, "n", i);
	assert_int_equal(result.n_facts, CHECK_MAX_FACTS);
	assert_int_equal(result.facts[CHECK_MAX_FACTS - 1].number, CHECK_MAX_FACTS - 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lockdown),
		cmocka_unit_test(test_memlock),
		cmocka_unit_test(test_memlock_is_lifted),
		cmocka_unit_test(test_memlock_is_explained),
		cmocka_unit_test(test_hypervisors),
		cmocka_unit_test(test_ptrace_scopes),
		cmocka_unit_test(test_perf_levels),
		cmocka_unit_test(test_reads_lines),
		cmocka_unit_test(test_json),
		cmocka_unit_test(test_text),
		cmocka_unit_test(test_good_without_what_is_not_needed),
		cmocka_unit_test(test_too_many_facts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
