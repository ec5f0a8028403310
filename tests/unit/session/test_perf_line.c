// SPDX-License-Identifier: MIT
/* Lines as versions of perf from 4.x to 6.x print them, with any of their fields. */
#include "perf/perf_line.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void assert_span(struct perf_span span, const char *expected)
{
	char *text = strndup(span.text ? span.text : "", span.len);

	assert_string_equal(text, expected);
	free(text);
}

static struct perf_line parse(const char *text, enum perf_line_kind kind)
{
	struct perf_line line;
	enum perf_line_kind is = perf_line__parse(&line, text, strlen(text));

	if (is != kind)
		fail_msg("'%s' is %d", text, is);
	return line;
}

/* "symbol offset module|what is left" */
static void assert_place(const char *text, const char *expected)
{
	struct named_place place = {.ip = 1};
	size_t n = perf_place__parse(&place, text, strlen(text));
	char offset[32] = "-", said[512];

	if (place.has_offset)
		snprintf(offset, sizeof(offset), "%llx", (unsigned long long)place.offset);
	snprintf(said, sizeof(said), "%.*s %s %.*s|%s", (int)place.symbol_len,
		 place.symbol ? place.symbol : "", offset, (int)place.module_len,
		 place.module ? place.module : "", text + n);
	assert_string_equal(said, expected);
	assert_int_equal(place.ip, 1);
}

static void test_usual(void **state)
{
	struct perf_line line = parse(
		" 4711/4712    458.129844:  branches:u:   tr end  syscall              4002826d05 "
		"mprotect+0x5 (/usr/lib/ld.so) =>                0 [unknown] ([unknown])",
		PERF_LINE_BRANCH);
	uint64_t to = 1;

	assert_int_equal(line.pid, 4711);
	assert_int_equal(line.tid, 4712);
	assert_int_equal(line.time_ns, 458129844000);
	assert_span(line.flags, "tr end  syscall");
	assert_int_equal(line.from, 0x4002826d05);
	assert_int_equal(line.comm.len, 0);
	line.rest.text += strlen(" mprotect+0x5 (/usr/lib/ld.so)");
	line.rest.len -= strlen(" mprotect+0x5 (/usr/lib/ld.so)");
	assert_true(perf_line__parse_target(&line.rest, &to));
	assert_int_equal(to, 0);
	assert_span(line.rest, " [unknown] ([unknown])");
}

static void test_fields(void **state)
{
	struct perf_line line;

	line = parse("my prog 2 [x]  7/8  [003] U 12.000000001:  1 branches:uH:  call (x)  401000 "
		     "main+0x0 => 401010",
		     PERF_LINE_BRANCH);
	assert_span(line.comm, "my prog 2 [x]");
	assert_int_equal(line.pid, 7);
	assert_int_equal(line.tid, 8);
	assert_int_equal(line.time_ns, 12000000001);
	assert_span(line.flags, "call (x)");
	assert_int_equal(line.from, 0x401000);
	/* Threads only; no event. */
	line = parse("99 1.5: jmp 0x401000 => 401010", PERF_LINE_BRANCH);
	assert_int_equal(line.pid, 99);
	assert_int_equal(line.tid, 99);
	assert_int_equal(line.time_ns, 1500000000);
	assert_int_equal(line.from, 0x401000);
	/* No flags, and letters for flags, which are an address too. */
	line = parse("1/1 1.5: branches: bc => dead", PERF_LINE_BRANCH);
	assert_int_equal(line.flags.len, 0);
	assert_int_equal(line.from, 0xbc);
	line = parse("1/1 1.5: branches: bc 401000 main => dead", PERF_LINE_BRANCH);
	assert_span(line.flags, "bc");
	assert_int_equal(line.from, 0x401000);
	/* A name of hex digits. */
	line = parse("1/1 1.5: branches: jmp 401000 add (/x) => dead", PERF_LINE_BRANCH);
	assert_int_equal(line.from, 0x401000);
	/* Nobody. */
	line = parse("-1/-1 1.5: branches: jmp 401000 add (/x) => dead", PERF_LINE_BRANCH);
	assert_int_equal(line.tid, 0);
}

/* A thread may be called what looks like a line. */
static void test_names_of_threads(void **state)
{
	struct perf_line line;

	line = parse("1/2 3.4: x 7/8 12.5: branches: call 401000 a => 402000", PERF_LINE_BRANCH);
	assert_int_equal(line.tid, 2); /* as safe a guess as any */
	line = parse("a 1.5: b 7/8 12.5: branches: call 401000 a => 402000", PERF_LINE_BRANCH);
	assert_int_equal(line.tid, 8);
	assert_int_equal(line.time_ns, 12500000000);
	assert_span(line.comm, "a 1.5: b");
}

static void test_other_lines(void **state)
{
	static const char *const others[] = {
		"",
		" ",
		"# comment",
		"  file.c:12",
		"	    401000 main+0x0 (/x)",
		"prog 1/2 15: branches:u: call 401000 => 402000",
		"prog 1.5: branches:u: call 401000 => 402000",
		"prog 99999999999/1 1.5: branches:u: call 401000 => 402000",
		"prog 1/2 99999999999.5: branches:u: call 401000 => 402000",
		"prog 1/2 1.0123456789: branches:u: call 401000 => 402000",
		"1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 1/2 1.5: jmp 4 "
		"=> 5",
	};
	static const char *const events[] = {
		"prog 1/2 1.5: ptwrite: IP: 0 payload: 0x12",
		"prog 1/2 1.5: cbr: cbr: 24 freq: 2400 MHz",
		"prog 1/2 1.5: cycles:u: 401000 main (/x)",
		"prog 1/2 1.5: branches:u: call",
		"prog 1/2 1.5: branches:u: call jmp main",
		"prog 1/2 1.5: branches:u: p q r s t u v w x y z p q 401000 => "
		"402",
		"prog 1/2 1.5: ",
	};

	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		parse(others[i], PERF_LINE_OTHER);
	for (size_t i = 0; i < sizeof(events) / sizeof(events[0]); i++)
		parse(events[i], PERF_LINE_EVENT);
}

static void test_events(void **state)
{
	struct perf_line line =
		parse("a b 1/2 [000] 1.5:     250000 cpu-clock:u:  \t 401000 f+0x2 (/x)",
		      PERF_LINE_EVENT);
	struct perf_span place;
	uint64_t ip;

	assert_span(line.comm, "a b");
	assert_span(line.event, "cpu-clock:u");
	assert_int_equal(line.period, 250000);
	assert_true(line.has_pid);
	assert_true(perf_line__parse_frame(line.body, &ip, &place));
	assert_int_equal(ip, 0x401000);
	assert_span(place, " f+0x2 (/x)");
	line = parse("a 2 1.5: cycles: ", PERF_LINE_EVENT);
	assert_false(line.has_pid);
	assert_int_equal(line.period, 0);
	assert_false(perf_line__parse_frame(line.body, &ip, &place));
}

/* "-": it is none; "in", "out", "preempted", and who comes. */
static void assert_switch(const char *text, const char *expected)
{
	struct perf_line line = parse(text, PERF_LINE_EVENT);
	struct perf_switch what;
	char said[32] = "-";

	if (perf_line__parse_switch(&line, &what))
		snprintf(said, sizeof(said), "%s %d",
			 what.is_in	     ? "in"
			 : what.is_preempted ? "preempted"
					     : "out",
			 what.next);
	assert_string_equal(said, expected);
}

static void test_switches(void **state)
{
	assert_switch("a 2 1.5: PERF_RECORD_SWITCH IN", "in 0");
	assert_switch("a 2 1.5: PERF_RECORD_SWITCH OUT ", "out 0");
	assert_switch("a 2 1.5: PERF_RECORD_SWITCH OUT preempt", "preempted 0");
	assert_switch("a 2 [000] 1.5: PERF_RECORD_SWITCH_CPU_WIDE OUT          next pid/tid:  8/9",
		      "out 0");
	assert_switch("a 2 [000] 1.5: PERF_RECORD_SWITCH_CPU_WIDE IN           prev pid/tid:  8/9",
		      "in 0");
	assert_switch("a 2 [000] 1.5: sched:sched_switch: prev_comm=a prev_pid=2 prev_prio=120 "
		      "prev_state=R+ ==> next_comm=b ==> next_pid=1 next_pid=17 next_prio=120",
		      "preempted 17");
	assert_switch("a 2 [000] 1.5: sched:sched_switch: a:2 [120] S ==> b:c:17 [120]", "out 17");
	assert_switch("a 2 [000] 1.5: sched:sched_switch: a:2 [120] R ==> swapper/1:0 [120]",
		      "preempted 0");
	assert_switch("a 2 [000] 1.5: sched:sched_switch: ", "-");
	assert_switch("a 2 [000] 1.5: sched:sched_switch_x: a:2 [120] R ==> b:3 [120]", "-");
	assert_switch("a 2 1.5: PERF_RECORD_LOST lost 0x", "-");
}

static void test_errors(void **state)
{
	struct perf_line line;

	line = parse(" instruction trace error type 1 time 458.129942419 cpu -1 pid 7 tid 8 ip "
		     "0x400280ee72 code 7: Overflow packet",
		     PERF_LINE_ERROR);
	assert_int_equal(line.type, 1);
	assert_true(line.has_time);
	assert_int_equal(line.time_ns, 458129942419);
	assert_int_equal(line.pid, 7);
	assert_int_equal(line.tid, 8);
	assert_int_equal(line.code, 7);
	/* 4.x */
	line = parse(" instruction trace error type 1 cpu 0 pid 7 tid 8 ip 0x40 code 6: Trace "
		     "doesn't match instruction",
		     PERF_LINE_ERROR);
	assert_false(line.has_time);
	assert_int_equal(line.code, 6);
	parse("instruction trace error", PERF_LINE_ERROR);
	parse("instruction trace error type type time time", PERF_LINE_ERROR);
}

static void test_places(void **state)
{
	assert_place(" main+0x12 (/usr/bin/x) => 5", "main 12 /usr/bin/x| => 5");
	assert_place(" main (/usr/bin/x) => 5", "main - /usr/bin/x| => 5");
	assert_place(" main+0x12 => 5", "main 12 | => 5");
	/* OCaml's operators. */
	assert_place(" M.( => )_12+0x2 (/usr/bin/x) => 5", "M.( => )_12 2 /usr/bin/x| => 5");
	assert_place(" M.a => b+0x2 (/x) => 5 M.a => b", "M.a => b 2 /x| => 5 M.a => b");
	assert_place(" main => 5", "main - | => 5");
	assert_place(" => 5", " - | => 5");
	assert_place("", " - |");
	assert_place(" (/usr/bin/x) => 5", " - /usr/bin/x| => 5");
	assert_place(" [unknown] (/usr/bin/x) => 5", " - /usr/bin/x| => 5");
	assert_place(" [unknown] ([unknown])", " - [unknown]|");
	assert_place(" [unknown] => 5", " - | => 5");
	assert_place(" main+0x12 ([kernel.kallsyms])", "main 12 [kernel.kallsyms]|");
	/* -F dsoff; -F srcline for the other side; inlined; -F ipc */
	assert_place(" main+0x12 (/usr/bin/x+0x1012)", "main 12 /usr/bin/x|");
	assert_place(" main+0x12 (inlined) (/usr/bin/x)", "main 12 /usr/bin/x|");
	assert_place(" main+0x12 (/usr/bin/x) \t IPC: 1.0 (2/2) ",
		     "main 12 /usr/bin/x| \t IPC: 1.0 (2/2) ");
	assert_place(" main (/usr/bin/x) \t IPC: 1.0 (2/2) ",
		     "main - /usr/bin/x| \t IPC: 1.0 (2/2) ");
}

static void test_names_of_all_kinds(void **state)
{
	assert_place(" operator new(unsigned long)+0x1c (/lib/libstdc++.so.6) => 5",
		     "operator new(unsigned long) 1c /lib/libstdc++.so.6| => 5");
	assert_place(" operator new(unsigned long) (/lib/libstdc++.so.6) => 5",
		     "operator new(unsigned long) - /lib/libstdc++.so.6| => 5");
	assert_place(" (anonymous namespace)::f()+0x0 (/x)", "(anonymous namespace)::f() 0 /x|");
	assert_place(" <T as core::fmt::Write>::write_str::{{closure}}+0x8 (/x)",
		     "<T as core::fmt::Write>::write_str::{{closure}} 8 /x|");
	assert_place(" operator+=+0x8 (/x)", "operator+= 8 /x|");
	assert_place(" a+0xy+0x8 (/x)", "a+0xy 8 /x|");
	assert_place(" _dl_runtime_resolve+0x0 (/my (old) dir/x (deleted))",
		     "_dl_runtime_resolve 0 /my (old) dir/x (deleted)|");
	assert_place(" f+0x8 (/x", "f 8 | (/x");
	assert_place(" f+0xffffffffffffffff (/x)", "f ffffffffffffffff /x|");
	assert_place(" f+0xfffffffffffffffff (/x)", "f+0xfffffffffffffffff - /x|");
}

static void test_targets(void **state)
{
	struct perf_span rest = {" => 401000", 10};
	uint64_t to;

	assert_true(perf_line__parse_target(&rest, &to));
	assert_int_equal(to, 0x401000);
	assert_int_equal(rest.len, 0);
	rest = (struct perf_span){" => main", 8};
	assert_false(perf_line__parse_target(&rest, &to));
	rest = (struct perf_span){" 401000", 7};
	assert_false(perf_line__parse_target(&rest, &to));
	rest = (struct perf_span){" => 11112222333344445", 21};
	assert_false(perf_line__parse_target(&rest, &to));
	rest = (struct perf_span){"", 0};
	assert_false(perf_line__parse_target(&rest, &to));
}

static void test_extra(void **state)
{
	static const char text[] = " \t IPC: 1.20 (12/10)  ilen: 5 insn: e8 1 2 3 4";
	struct perf_extra extra;

	perf_extra__parse(&extra, text, strlen(text));
	assert_int_equal(extra.n_insns, 12);
	assert_int_equal(extra.insn_len, 5);
	perf_extra__parse(&extra, " ilen: 77 IPC: (", 16);
	assert_int_equal(extra.n_insns, 0);
	assert_int_equal(extra.insn_len, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_usual),
		cmocka_unit_test(test_fields),
		cmocka_unit_test(test_names_of_threads),
		cmocka_unit_test(test_other_lines),
		cmocka_unit_test(test_events),
		cmocka_unit_test(test_switches),
		cmocka_unit_test(test_errors),
		cmocka_unit_test(test_places),
		cmocka_unit_test(test_names_of_all_kinds),
		cmocka_unit_test(test_targets),
		cmocka_unit_test(test_extra),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
