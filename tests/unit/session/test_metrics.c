// SPDX-License-Identifier: MIT
#include "metrics/metrics.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "http/http.h"
#include "stderr_capture.h"
#include "trigger/trigger.h"
#include "util/cleanup.h"

static void expect_line(const char *text, const char *line)
{
	char whole[160];

	snprintf(whole, sizeof(whole), "\n%s\n", line);
	if (!strstr(text, whole))
		fail_msg("no line '%s' in:\n%s", line, text);
}

static void test_counters_and_gauges(void **state)
{
	struct metrics m = {
		.stats = {.hits = 12345678901, .triggers = 7, .sum_ns = 2500000001},
		.threshold_ns = 50000000,
		.attached = true,
		.attaches = 2,
		.captures = 5,
		.requests = 3,
		.skipped = {[SKIPPED_RATE] = 11, [SKIPPED_DISK] = 1},
		.lost = {[LOST_TRACE] = 4},
		.recordings = 20,
		.recordings_bytes = 1 << 20,
		.newest_unix_ms = 1795255200007,
	};
	_cleanup_free_ char *text = metrics__print(&m, METRICS_TEXT);

	expect_line(text, "mtbpf_build_info{version=\"" MTBPF_VERSION "\"} 1");
	expect_line(text, "mtbpf_hits_total 12345678901");
	expect_line(text, "mtbpf_triggers_total 7");
	expect_line(text, "mtbpf_threshold_seconds 0.05");
	expect_line(text, "mtbpf_attached 1");
	expect_line(text, "mtbpf_attaches_total 2");
	expect_line(text, "mtbpf_captures_total 5");
	expect_line(text, "mtbpf_requests_total 3");
	expect_line(text, "mtbpf_captures_skipped_total{reason=\"rate\"} 11");
	expect_line(text, "mtbpf_captures_skipped_total{reason=\"busy\"} 0");
	expect_line(text, "mtbpf_captures_skipped_total{reason=\"disk\"} 1");
	expect_line(text, "mtbpf_lost_total{what=\"trace\"} 4");
	expect_line(text, "mtbpf_recordings 20");
	expect_line(text, "mtbpf_recordings_bytes 1048576");
	expect_line(text, "mtbpf_newest_recording_timestamp_seconds 1795255200.007");
	expect_line(text, "mtbpf_delay_seconds_sum 2.500000001");
}

/* Names that a program chose, and more of them than a server would want. */
static void test_causes_are_series_up_to_a_bound(void **state)
{
	struct metrics m = {0};
	_cleanup_free_ char *text = NULL;
	size_t lines = 0;

	for (int i = 0; i < 100; i++) {
		struct metrics_cause cause = {.kind = "on_cpu", .ns = 1000000000, .n = 1};

		snprintf(cause.function, sizeof(cause.function), "f%d\"\\", i);
		metrics__add_cause(&m, &cause);
		metrics__add_cause(&m, &cause);
	}
	m.on_capture[ON_CAPTURE_FAILED] = 3;
	text = metrics__print(&m, METRICS_TEXT);
	expect_line(text, "mtbpf_cause_seconds_total{kind=\"on_cpu\",function=\"f0\\\"\\\\\"} "
			  "2.000000000");
	expect_line(text, "mtbpf_cause_seconds_total{kind=\"other\",function=\"\"} 160.000000000");
	expect_line(text, "mtbpf_cause_captures_total{kind=\"other\",function=\"\"} 160");
	expect_line(text, "mtbpf_on_capture_total{result=\"failed\"} 3");
	for (const char *at = text; (at = strstr(at, "\nmtbpf_cause_seconds_total{")); at++)
		lines++;
	assert_int_equal(lines, METRICS_CAUSES_MAX + 1);
}

/* Counters' families have no "_total", the latest capture with a trace id is the exemplar. */
static void test_openmetrics_has_exemplars(void **state)
{
	const char *id = "4bf92f3577b34da6a3ce929d0e0e4736";
	struct metrics_cause cause = {.kind = "blocked", .function = "read", .ns = 30000000};
	struct metrics m = {.captures = 2, .capture = {.unix_ms = 1795255200007}};
	_cleanup_free_ char *text = NULL, *old = NULL;

	strcpy(m.capture.trace_id, id);
	metrics__add_cause(&m, &cause);
	cause.exemplar = (struct metrics_exemplar){.unix_ms = 1795255200009, .ns = 30000000};
	strcpy(cause.exemplar.trace_id, id);
	metrics__add_cause(&m, &cause);
	/* Without an id it leaves the one that there is. */
	cause.exemplar = (struct metrics_exemplar){0};
	metrics__add_cause(&m, &cause);
	text = metrics__print(&m, METRICS_OPEN);
	expect_line(text, "# TYPE mtbpf_captures counter");
	expect_line(text, "# TYPE mtbpf_threshold_seconds gauge");
	expect_line(text,
		    "mtbpf_captures_total 2 # {trace_id=\"4bf92f3577b34da6a3ce929d0e0e4736\"} "
		    "1 1795255200.007");
	expect_line(text, "mtbpf_cause_seconds_total{kind=\"blocked\",function=\"read\"} "
			  "0.090000000 # {trace_id=\"4bf92f3577b34da6a3ce929d0e0e4736\"} 0.03 "
			  "1795255200.009");
	assert_string_equal(text + strlen(text) - 7, "\n# EOF\n");
	old = metrics__print(&m, METRICS_TEXT);
	assert_null(strstr(old, "trace_id"));
	assert_null(strstr(old, "EOF"));
}

static void test_the_format_is_the_clients_choice(void **state)
{
	static const char *const open[] = {
		"application/openmetrics-text",
		"text/plain;q=0.5, application/openmetrics-text;version=1.0.0",
		/* Prometheus 2.42. */
		"application/openmetrics-text;version=1.0.0,application/"
		"openmetrics-text;version=0.0.1;q=0.75,text/plain;version=0.0.4;q=0.5,*/*;q=0.1",
		"Application/OpenMetrics-Text; q=0.9 , text/plain; q=0.2",
	};
	static const char *const text[] = {
		"*/*",
		"",
		"text/plain",
		"text/plain, application/openmetrics-text;q=0.5",
		"application/openmetrics-text;q=0",
		"application/openmetrics-textual",
		"application/json;q",
	};

	for (size_t i = 0; i < sizeof(open) / sizeof(open[0]); i++)
		assert_int_equal(metrics__choose_format(open[i]), METRICS_OPEN);
	for (size_t i = 0; i < sizeof(text) / sizeof(text[0]); i++)
		assert_int_equal(metrics__choose_format(text[i]), METRICS_TEXT);
	assert_int_equal(metrics__choose_format(NULL), METRICS_TEXT);
}

/* Each bucket has those below its end; the last of ours is also for what is larger. */
static void test_the_histogram_adds_up(void **state)
{
	struct metrics m = {.of_durations = true};
	_cleanup_free_ char *text = NULL;

	m.stats.hist[0] = 1;  /* below 2 ns */
	m.stats.hist[20] = 5; /* below 2^21 ns */
	m.stats.hist[MT_HIST_BUCKETS - 1] = 3;
	text = metrics__print(&m, METRICS_TEXT);
	expect_line(text, "# TYPE mtbpf_duration_seconds histogram");
	expect_line(text, "mtbpf_duration_seconds_bucket{le=\"2e-09\"} 1");
	expect_line(text, "mtbpf_duration_seconds_bucket{le=\"0.001048576\"} 1");
	expect_line(text, "mtbpf_duration_seconds_bucket{le=\"0.002097152\"} 6");
	expect_line(text, "mtbpf_duration_seconds_bucket{le=\"140737.488\"} 6");
	expect_line(text, "mtbpf_duration_seconds_bucket{le=\"+Inf\"} 9");
	expect_line(text, "mtbpf_duration_seconds_count 9");
	assert_null(strstr(text, "mtbpf_delay_seconds"));
	free(text);
	/* With -cpu-thresh and -off-cpu-thresh only a part of the duration is counted. */
	m.cpu_measure = MT_CPU_ON;
	text = metrics__print(&m, METRICS_TEXT);
	expect_line(text, "mtbpf_on_cpu_seconds_count 9");
	assert_null(strstr(text, "mtbpf_duration_seconds"));
	free(text);
	m.cpu_measure = MT_CPU_OFF;
	text = metrics__print(&m, METRICS_TEXT);
	expect_line(text, "mtbpf_off_cpu_seconds_count 9");
	assert_null(strstr(text, "mtbpf_duration_seconds"));
}

/* Of what is not there yet there is no sample. */
static void test_without_a_recording_there_is_no_time_of_it(void **state)
{
	struct metrics m = {0};
	_cleanup_free_ char *text = metrics__print(&m, METRICS_TEXT);

	assert_null(strstr(text, "timestamp"));
	assert_int_equal(text[strlen(text) - 1], '\n');
}

static void test_a_threshold_that_is_not_learned_yet(void **state)
{
	struct metrics m = {.threshold_ns = UINT64_MAX};
	_cleanup_free_ char *text = metrics__print(&m, METRICS_TEXT);

	expect_line(text, "mtbpf_threshold_seconds +Inf");
}

static void test_counters_of_several_targets_add_up(void **state)
{
	/* All members have the same type: none can be forgotten here. */
	union {
		struct mt_stats stats;
		uint64_t members[sizeof(struct mt_stats) / sizeof(uint64_t)];
	} sum = {0}, more;
	const size_t max = offsetof(struct mt_stats, max_ns) / sizeof(uint64_t);

	for (size_t i = 0; i < sizeof(more) / sizeof(uint64_t); i++)
		more.members[i] = i + 1;
	mt_stats__add(&sum.stats, &more.stats);
	mt_stats__add(&sum.stats, &more.stats);
	for (size_t i = 0; i < sizeof(sum) / sizeof(uint64_t); i++)
		if (sum.members[i] != (i == max ? 1 : 2) * (i + 1))
			fail_msg("member %zu: %llu", i, (unsigned long long)sum.members[i]);
	more.stats.max_ns = 1;
	mt_stats__add(&sum.stats, &more.stats);
	assert_int_equal(sum.stats.max_ns, max + 1);
}

static void expect_refused(const char *address)
{
	struct stderr_capture said;
	const char *text;

	stderr_capture__begin(&said);
	if (metrics_server__start(address))
		fail_msg("%s", address);
	text = stderr_capture__end(&said);
	assert_non_null(strstr(text, "mtbpf: -metrics: "));
	assert_non_null(strstr(text, "\nhint: "));
}

static void test_only_this_machine_can_ask(void **state)
{
	static const char *const others[] = {
		"0.0.0.0:9464",	  "10.0.0.1:9464",
		"[::]:9464",	  "[::2]:9464",
		":9464",	  "9464",
		"127.0.0.1",	  "127.0.0.1:",
		"127.0.0.1:x",	  "127.0.0.1:65536",
		"127.0.0.1:-1",	  "example.org:80",
		"unix:",	  "unix:/no/such/folder",
		"128.0.0.1:9464", "",
	};

	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		expect_refused(others[i]);
}

static void test_ports(void **state)
{
	struct listener l, again;
	char taken[32];
	int port;

	assert_int_equal(listener__open(&l, "127.0.0.1:0"), 0);
	assert_int_equal(sscanf(l.url, "http://127.0.0.1:%d", &port), 1);
	assert_int_equal(port, l.port);
	snprintf(taken, sizeof(taken), "localhost:%d", port);
	assert_int_equal(listener__open(&again, taken), -EADDRINUSE);
	listener__close(&l);
}

static void test_a_unix_socket_is_the_groups_and_goes_at_the_end(void **state)
{
	char folder[] = "/tmp/test_listen.XXXXXX", address[64];
	const char *path = address + strlen("unix:");
	struct listener l, again;
	struct stat st;

	assert_non_null(mkdtemp(folder));
	snprintf(address, sizeof(address), "unix:%s/s", folder);
	assert_int_equal(listener__open(&l, address), 0);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0660);
	/* Somebody listens: it is theirs. */
	assert_int_equal(listener__open(&again, address), -EADDRINUSE);
	assert_int_equal(access(path, F_OK), 0);
	/* Nobody does any more, as after a SIGKILL. */
	close(l.fd);
	assert_int_equal(listener__open(&l, address), 0);
	listener__close(&l);
	assert_int_equal(access(path, F_OK), -1);
	rmdir(folder);
}

/* Of another kind, and in use: whose it is nobody can ask. */
static void test_a_socket_that_is_not_ours_stays(void **state)
{
	char folder[] = "/tmp/test_listen.XXXXXX", address[64];
	struct sockaddr_un name = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct listener l;

	assert_non_null(mkdtemp(folder));
	snprintf(address, sizeof(address), "unix:%s/s", folder);
	strcpy(name.sun_path, address + strlen("unix:"));
	assert_int_equal(bind(fd, (struct sockaddr *)&name, sizeof(name)), 0);
	assert_int_equal(listener__open(&l, address), -EADDRINUSE);
	assert_int_equal(access(name.sun_path, F_OK), 0);
	close(fd);
	unlink(name.sun_path);
	rmdir(folder);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_counters_and_gauges),
		cmocka_unit_test(test_causes_are_series_up_to_a_bound),
		cmocka_unit_test(test_openmetrics_has_exemplars),
		cmocka_unit_test(test_the_format_is_the_clients_choice),
		cmocka_unit_test(test_the_histogram_adds_up),
		cmocka_unit_test(test_without_a_recording_there_is_no_time_of_it),
		cmocka_unit_test(test_a_threshold_that_is_not_learned_yet),
		cmocka_unit_test(test_counters_of_several_targets_add_up),
		cmocka_unit_test(test_only_this_machine_can_ask),
		cmocka_unit_test(test_ports),
		cmocka_unit_test(test_a_unix_socket_is_the_groups_and_goes_at_the_end),
		cmocka_unit_test(test_a_socket_that_is_not_ours_stays),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
