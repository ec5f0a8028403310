// SPDX-License-Identifier: MIT
/* Causes of many captures: which are one, and which only look alike. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "util/cleanup.h"
#include "view/pattern.h"

#define CAPTURES_MAX 64

struct captures {
	struct summary v[CAPTURES_MAX];
	size_t n;
};

struct given {
	const char *build, *kind, *path, *inlined, *of, *frames, *host;
	uint64_t ns;
};

/* A capture with one cause; `path` and `frames` as JSON has them. */
static void add(struct captures *c, const struct given *given)
{
	char text[8192], of[512] = "", build[128] = "", inlined[128] = "", name[32];

	if (given->of)
		snprintf(of, sizeof(of), "\"of\":\"%s\",", given->of);
	if (given->build)
		snprintf(build, sizeof(build), "\"build_id\":\"%s\",", given->build);
	if (given->inlined)
		snprintf(inlined, sizeof(inlined), "\"inlined\":%s,", given->inlined);
	snprintf(name, sizeof(name), "%02zu.mtbpf", c->n);
	snprintf(text, sizeof(text),
		 "{\"summary\":2,%s\"labels\":{\"host\":\"%s\"},\"hit\":{\"function\":\"iter\"},"
		 "\"slow_ns\":%llu,\"ordinary_ns\":1000,\"unix_ms\":%zu,"
		 "\"account\":{\"slow\":{\"blocked_ns\":%llu},\"ordinary\":{}},"
		 "\"causes\":[{\"kind\":\"%s\",\"ns\":%llu,\"text\":\"why\",%s%s\"path\":%s}],"
		 "\"frames\":%s}",
		 build, given->host ?: "a", (unsigned long long)(given->ns ?: 1000000) + 1000,
		 1000 + c->n, (unsigned long long)(given->ns ?: 1000000), given->kind ?: "blocked",
		 (unsigned long long)(given->ns ?: 1000000), of, inlined, given->path,
		 given->frames ?: "[]");
	assert_int_equal(summary__parse(&c->v[c->n], name, text, 0), 0);
	c->n++;
}

/* The patterns of two captures. */
static size_t patterns_of(const struct given *a, const struct given *b)
{
	struct captures c = {.n = 0};
	struct patterns p;
	size_t n;

	add(&c, a);
	add(&c, b);
	assert_int_equal(patterns__find(&p, c.v, c.n), 0);
	n = p.all.n;
	patterns__fini(&p);
	for (size_t i = 0; i < c.n; i++)
		summary__fini(&c.v[i]);
	return n;
}

#define GIVEN(...) (&(const struct given){__VA_ARGS__})
#define assert_one(a, b)                                                                           \
	do {                                                                                       \
		assert_int_equal(patterns_of(a, b), 1);                                            \
		assert_int_equal(patterns_of(b, a), 1);                                            \
	} while (0)
#define assert_two(a, b)                                                                           \
	do {                                                                                       \
		assert_int_equal(patterns_of(a, b), 2);                                            \
		assert_int_equal(patterns_of(b, a), 2);                                            \
	} while (0)

static void assert_function(const char *name, const char *plain)
{
	char *text = pattern__function(name);

	assert_string_equal(text, plain);
	free(text);
}

static void assert_of(const char *of, const char *plain)
{
	char *text = pattern__of(of);

	assert_string_equal(text, plain);
	free(text);
}

static void names_lose_what_builds_add(void **state)
{
	assert_function("parse", "parse");
	assert_function("parse.constprop.0", "parse");
	assert_function("parse.isra.0.cold", "parse");
	assert_function("parse.part.3", "parse");
	assert_function("parse.llvm.1234567890", "parse");
	assert_function("memcpy@@GLIBC_2.14", "memcpy");
	assert_function("memcpy@plt", "memcpy");
	assert_function("__GI___nanosleep", "nanosleep");
	assert_function("app::handle::h0123456789abcdef", "app::handle");
	assert_function("[jit+0x1f2e]", "[jit+*]");
	/* Those that only look so. */
	assert_function("main.(*Server).handle.func1", "main.(*Server).handle.func1");
	assert_function("-[Foo bar@baz]", "-[Foo bar@baz]");
	assert_function("hash::h0123", "hash::h0123");
	assert_function("__", "__");
	assert_function("_ZN3fooE", "_ZN3fooE");
	assert_function("step0x10", "step0x10");
	assert_function("", "");
	assert_function(".cold", ".cold");
}

static void what_was_waited_for_loses_the_requests_data(void **state)
{
	assert_of("read of pipe:[81234] (fd 5)", "read of pipe:[*]");
	assert_of("futex held by worker-12 (4711)", "futex held by worker-*");
	assert_of("openat of /tmp/req-8812.json (fd 7)", "openat of /tmp/req-*.json");
	assert_of("read of /var/u/5f3c9a1e-77aa-4b1c-9d2e-0123456789ab/x", "read of /var/u/*/x");
	assert_of("recvfrom of TCP 127.0.0.1:40688 to 10.0.0.9:6379 (fd 8)",
		  "recvfrom of TCP *.*.*.*:* to *.*.*.*:6379");
	assert_of("cgroup /web, quota 30.0 ms of 100 ms", "cgroup /web, quota 30.0 ms of 100 ms");
	assert_of("chan receive", "chan receive");
	assert_of("read of /etc/face", "read of /etc/face");
	assert_of("(fd 5", "(fd *");
	assert_of("", "");
}

static void same_cause_of_other_requests_and_threads(void **state)
{
	assert_one(GIVEN(.path = "[\"iter\",\"get\",\"read\"]", .of = "read of pipe:[1] (fd 5)"),
		   GIVEN(.path = "[\"iter\",\"get\",\"read\"]", .of = "read of pipe:[22] (fd 9)"));
	assert_one(GIVEN(.path = "[\"iter\",\"lock\"]", .of = "futex held by w-1 (10)"),
		   GIVEN(.path = "[\"main\",\"iter\",\"lock\"]", .of = "futex held by w-2 (11)"));
	assert_one(GIVEN(.path = "[\"iter\",\"get.constprop.0\"]"),
		   GIVEN(.path = "[\"iter\",\"get\"]"));
}

static void alike_but_not_the_same(void **state)
{
	/* Another function, file, service, or kind; a path of the same build that is shorter. */
	assert_two(GIVEN(.path = "[\"iter\",\"get\"]"), GIVEN(.path = "[\"iter\",\"put\"]"));
	assert_two(GIVEN(.path = "[\"iter\"]", .of = "read of /etc/a"),
		   GIVEN(.path = "[\"iter\"]", .of = "read of /etc/b"));
	assert_two(GIVEN(.path = "[\"iter\"]", .of = "recvfrom of TCP 1.1.1.1:5 to 1.1.1.2:6379"),
		   GIVEN(.path = "[\"iter\"]", .of = "recvfrom of TCP 1.1.1.1:5 to 1.1.1.2:5432"));
	assert_two(GIVEN(.path = "[\"iter\",\"f\"]", .kind = "on_cpu"),
		   GIVEN(.path = "[\"iter\",\"f\"]", .kind = "blocked"));
	assert_two(GIVEN(.build = "b1", .path = "[\"iter\",\"parse\",\"memcpy\"]"),
		   GIVEN(.build = "b1", .path = "[\"iter\",\"memcpy\"]"));
	assert_two(GIVEN(.kind = "throttled", .path = "[]",
			 .of = "cgroup /a, quota 10.0 ms of 100 ms"),
		   GIVEN(.kind = "throttled", .path = "[]",
			 .of = "cgroup /a, quota 20.0 ms of 100 ms"));
	/* A function may be named like two. */
	assert_two(GIVEN(.path = "[\"iter\",\"a > b\"]"), GIVEN(.path = "[\"iter\",\"a\",\"b\"]"));
}

static void chance_places_do_not_count(void **state)
{
	assert_one(GIVEN(.kind = "runnable", .path = "[\"iter\",\"f\"]", .of = "kworker/0:1"),
		   GIVEN(.kind = "runnable", .path = "[\"iter\",\"g\"]", .of = "kworker/1:3"));
	assert_one(GIVEN(.kind = "stolen", .path = "[\"iter\",\"f\"]"),
		   GIVEN(.kind = "stolen", .path = "[]"));
}

static void two_builds_inline_differently(void **state)
{
	static const char has_parse[] = "[[0,\"iter\",9],[1,\"parse\",5]]";

	/* Debug info says that it is inlined there; or that build has no such function. */
	assert_one(GIVEN(.build = "b1", .path = "[\"iter\",\"parse\",\"read\"]", .inlined = "[1]"),
		   GIVEN(.build = "b2", .path = "[\"iter\",\"read\"]", .frames = has_parse));
	assert_one(GIVEN(.build = "b1", .path = "[\"iter\",\"parse\",\"read\"]"),
		   GIVEN(.build = "b2", .path = "[\"iter\",\"read\"]"));
	/* It calls that one elsewhere: this path is another one. */
	assert_two(GIVEN(.build = "b1", .path = "[\"iter\",\"parse\",\"read\"]"),
		   GIVEN(.build = "b2", .path = "[\"iter\",\"read\"]", .frames = has_parse));
	/* Not the innermost, nor of another root. */
	assert_two(GIVEN(.build = "b1", .path = "[\"iter\",\"read\",\"x\"]"),
		   GIVEN(.build = "b2", .path = "[\"other\",\"x\"]"));
}

static void of_two_that_fit_nobody_knows_which(void **state)
{
	struct captures c = {.n = 0};
	struct patterns p;

	add(&c, GIVEN(.build = "b1", .path = "[\"iter\",\"f\",\"read\"]", .inlined = "[1]"));
	add(&c, GIVEN(.build = "b1", .path = "[\"iter\",\"g\",\"read\"]", .inlined = "[1]"));
	add(&c, GIVEN(.build = "b2", .path = "[\"iter\",\"read\"]"));
	assert_int_equal(patterns__find(&p, c.v, c.n), 0);
	assert_int_equal(p.all.n, 3);
	patterns__fini(&p);
	for (size_t i = 0; i < c.n; i++)
		summary__fini(&c.v[i]);
}

static void callers_that_a_stack_lacks(void **state)
{
	assert_one(GIVEN(.build = "b1", .path = "[\"iter\",\"[callers not recorded]\",\"read\"]"),
		   GIVEN(.build = "b1", .path = "[\"iter\",\"get\",\"load\",\"read\"]"));
	assert_two(GIVEN(.build = "b1", .path = "[\"iter\",\"[callers not recorded]\",\"read\"]"),
		   GIVEN(.build = "b1", .path = "[\"iter\",\"get\",\"load\",\"write\"]"));
}

static void figures(void **state)
{
	struct captures c = {.n = 0};
	struct patterns p;

	for (int i = 0; i < 4; i++)
		add(&c, GIVEN(.path = "[\"iter\",\"a\"]", .ns = 1000u * (unsigned)(i + 1),
			      .host = i % 2 ? "x" : "y"));
	add(&c, GIVEN(.path = "[\"iter\",\"b\"]", .ns = 30000));
	assert_int_equal(patterns__find(&p, c.v, c.n), 0);
	assert_int_equal(p.all.n, 2);
	/* Most time lost first, though it came once. */
	assert_string_equal(pattern__leaf(&p.all.v[0]), "b");
	assert_int_equal(p.all.v[1].lost_ns, 10000);
	assert_int_equal(p.all.v[1].median_ns, 2500);
	assert_int_equal(p.all.v[1].entries.v[0].cause->ns, 4000);
	assert_int_equal(p.all.v[1].n_main, 4);
	assert_int_equal(p.all.v[1].hosts.n, 2);
	assert_int_equal(p.all.v[1].first_ms, 1000);
	assert_int_equal(p.all.v[1].last_ms, 1003);
	assert_int_equal(p.hosts.n, 3);
	assert_int_equal(p.lost_ns, 40000);
	assert_int_equal(p.slow[ACCOUNT_BLOCKED], 40000);
	patterns__fini(&p);
	for (size_t i = 0; i < c.n; i++)
		summary__fini(&c.v[i]);
}

/* The first lines of the report about a capture with this ordinary iteration. */
static void assert_says(const char *ordinary, const char *total, const char *accounts)
{
	_cleanup_free_ char *out = NULL;
	size_t len;
	FILE *f = open_memstream(&out, &len);
	struct patterns p;
	struct summary s;
	char text[512];

	snprintf(text, sizeof(text),
		 "{\"summary\":2,\"hit\":{\"function\":\"iter\"},\"slow_ns\":5000,"
		 "\"account\":{\"slow\":{\"blocked_ns\":5000}%s}",
		 ordinary);
	assert_int_equal(summary__parse(&s, "x.mtbpf", text, 0), 0);
	assert_int_equal(patterns__find(&p, &s, 1), 0);
	patterns__print(f, &p, 5);
	fclose(f);
	assert_non_null(strstr(out, total));
	assert_non_null(strstr(out, accounts));
	assert_int_equal(!strstr(out, "\n  ordinary"), !strstr(accounts, "\n  ordinary"));
	patterns__fini(&p);
	summary__fini(&s);
}

static void captures_without_ordinary_iterations_show_none(void **state)
{
	(void)state;
	assert_says(",\"ordinary\":{\"blocked_ns\":1000}},\"ordinary_ns\":1000",
		    "4.00 us more than ordinary iterations took",
		    "and as many ordinary ones:\n  slow     blocked 5.00 us\n  ordinary blocked "
		    "1.00 us\n");
	assert_says("},\"ordinary_ns\":1000", "4.00 us more than ordinary iterations took",
		    "contain no ordinary ones with stacks to compare with:\n  slow ");
	assert_says("}", "5.00 us in slow iterations",
		    "contain no ordinary ones with stacks to compare with:\n  slow ");
}

static int parse(const char *text)
{
	struct summary s;
	int err = summary__parse(&s, "x", text, 7);

	summary__fini(&s);
	return err;
}

#define HEAD "{\"summary\":2,\"data_bytes\":7,\"slow_ns\":5,"

static void summaries_that_somebody_else_wrote(void **state)
{
	assert_int_equal(parse(HEAD "\"causes\":[]}"), 0);
	assert_int_equal(parse(""), -EINVAL);
	assert_int_equal(parse("[]"), -EINVAL);
	assert_int_equal(parse("{\"summary\":1}"), -EPROTO);
	assert_int_equal(parse("{\"summary\":2,\"data_bytes\":8,\"slow_ns\":5}"), -ESTALE);
	assert_int_equal(parse("{\"summary\":2,\"data_bytes\":7}"), -EINVAL);
	assert_int_equal(parse(HEAD "\"causes\":[{\"kind\":\"no such\",\"text\":\"\"}]}"), -EINVAL);
	assert_int_equal(
		parse(HEAD "\"causes\":[{\"kind\":\"blocked\",\"text\":\"\",\"path\":[1]}]}"),
		-EINVAL);
	assert_int_equal(parse(HEAD "\"causes\":[7]}"), -EINVAL);
	assert_int_equal(parse(HEAD "\"functions\":[{\"name\":\"f\",\"extra_ns\":1e300}]}"),
			 -EINVAL);
	assert_int_equal(
		parse(HEAD
		      "\"account\":7,\"hit\":[],\"labels\":\"x\",\"frames\":{},\"threads\":3}"),
		0);
}

static void frames_and_threads_that_are_none(void **state)
{
	struct summary_thread thread;
	struct summary_call call = {0};
	struct summary s;
	size_t n = 0;

	/* The third lies below one that is not there. */
	assert_int_equal(summary__parse(&s, "x",
					HEAD "\"frames\":[[0,\"a\",1],[1,\"b\",1],[3,\"c\",1]],"
					     "\"threads\":[{\"name\":\"t\",\"bins\":\"CC\"}]}",
					7),
			 0);
	while (summary__next_call(&s, &call))
		n++;
	assert_int_equal(n, 2);
	assert_false(summary__thread(&s, 0, &thread));
	summary__fini(&s);
}

static void texts_are_fit_to_be_shown(void **state)
{
	struct summary s;

	assert_int_equal(summary__parse(&s, "x",
					HEAD "\"labels\":{\"host\":\"a\\u001b[31m\"},\"causes\":[{"
					     "\"kind\":\"blocked\",\"ns\":3,\"text\":\"\\n\","
					     "\"path\":[\"f\\u0007\"]}]}",
					7),
			 0);
	assert_string_equal(s.host, "a?[31m");
	assert_string_equal(s.causes.v[0].text, "?");
	assert_string_equal(s.causes.v[0].path.v[0].name, "f?");
	summary__fini(&s);
}

/* Functions without a symbol have one name; the number beside it is that of the captures. */
static void functions_of_one_name_are_one_capture(void **state)
{
	static const char text[] =
		"{\"summary\":2,\"labels\":{\"host\":\"a\"},\"hit\":{\"function\":\"iter\"},"
		"\"slow_ns\":5000,\"ordinary_ns\":1000,\"unix_ms\":1000,"
		"\"functions\":[{\"name\":\"[prog+0x10]\",\"extra_ns\":1000},"
		"{\"name\":\"[prog+0x20]\",\"extra_ns\":3000}]}";
	struct summary both[2];
	struct patterns p;

	for (int i = 0; i < 2; i++)
		assert_int_equal(summary__parse(&both[i], "a.mtbpf", text, 0), 0);
	assert_int_equal(patterns__find(&p, both, 2), 0);
	assert_int_equal(p.functions.n, 1);
	assert_string_equal(p.functions.v[0].name, "[prog+*]");
	assert_int_equal(p.functions.v[0].n, 2);
	assert_int_equal(p.functions.v[0].extra_ns, 8000);
	patterns__fini(&p);
	for (int i = 0; i < 2; i++)
		summary__fini(&both[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_lose_what_builds_add),
		cmocka_unit_test(what_was_waited_for_loses_the_requests_data),
		cmocka_unit_test(same_cause_of_other_requests_and_threads),
		cmocka_unit_test(alike_but_not_the_same),
		cmocka_unit_test(chance_places_do_not_count),
		cmocka_unit_test(two_builds_inline_differently),
		cmocka_unit_test(of_two_that_fit_nobody_knows_which),
		cmocka_unit_test(callers_that_a_stack_lacks),
		cmocka_unit_test(figures),
		cmocka_unit_test(captures_without_ordinary_iterations_show_none),
		cmocka_unit_test(functions_of_one_name_are_one_capture),
		cmocka_unit_test(summaries_that_somebody_else_wrote),
		cmocka_unit_test(frames_and_threads_that_are_none),
		cmocka_unit_test(texts_are_fit_to_be_shown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
