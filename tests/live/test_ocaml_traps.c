// SPDX-License-Identifier: MIT
/*
 * What perf prints of an OCaml program has no code in it, in which handlers of exceptions could be
 * found: -ocaml-traps says where they are.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <fcntl.h>
#include <unistd.h>
#include <cmocka.h>

#include "pipeline/perf_pipeline.h"
#include "target/unwind/ocaml_handlers.h"
#include "util/cleanup.h"
#include "util/fs.h"

/* Handlers: what is loaded into the register that is pushed next. Our ptgen maps it there. */
#define LIST_HANDLERS                                                                              \
	"objdump -d --no-show-raw-insn $program | awk '"                                           \
	"/lea .*,%%r11/ { at = $0; sub(/.*# /, \"\", at); sub(/ .*/, \"\", at); next }"            \
	"/push +%%r11/ && at != \"\" { print at } { at = \"\" }' |"                                \
	" while read -r at; do printf '%%x\\n' $((0x4000000000 + 0x$at)); done >$dir/traps"

static bool has_tools(void)
{
	char line[256];
	const char *folder = getenv("O");

	snprintf(line, sizeof(line),
		 "qemu-x86_64 -help 2>/dev/null | grep -qe -plugin && command -v perf objdump "
		 ">/dev/null &&"
		 " test -e %s/tests/ptgen/programs/raises-notrace",
		 folder ? folder : "build");
	return !system(line);
}

/* DIR/r.mtbpf, DIR/text and DIR/traps, of a part of the program. */
static void record(const char *dir, int part)
{
	const char *folder = getenv("O");
	char line[2048];

	snprintf(line, sizeof(line),
		 "O=%s; dir=%s; program=$O/tests/ptgen/programs/raises-notrace;"
		 "$O/tests/ptgen/ptgen -instructions 1200000 -o $dir/r.mtbpf -- $program 20 %d"
		 " >$dir/out 2>&1 && perf script -i $dir/r.mtbpf --itrace=be --ns"
		 " -F comm,pid,tid,time,event,ip,sym,symoff,addr,dso,flags >$dir/text 2>>$dir/out"
		 " </dev/null && " LIST_HANDLERS,
		 folder ? folder : "build", dir, part);
	assert_int_equal(system(line), 0);
}

/* Calls that an exception has ended. */
static size_t count_raised(const struct decoded *decoded)
{
	size_t n = 0;

	for (size_t i = 0; i < decoded->trees.n; i++)
		for (size_t k = 0; k < decoded->trees.v[i].calls.n; k++)
			n += decoded->trees.v[i].calls.v[k].left_by == LEFT_BY_RAISE;
	return n;
}

static size_t count_in_text(const char *dir, const struct ocaml_traps *traps)
{
	struct perf_text_summary summary;
	struct decoded decoded;
	struct recording rec;
	char path[80];
	size_t n;

	snprintf(path, sizeof(path), "%s/text", dir);
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
	recording__init(&rec);
	assert_int_equal(decoded__make_from_text(
				 &decoded, &rec,
				 &(struct perf_text_input){.fd = fd, .name = path, .traps = traps},
				 &summary),
			 0);
	n = count_raised(&decoded);
	decoded__fini(&decoded);
	recording__fini(&rec);
	return n;
}

static size_t count_in_recording(const char *dir)
{
	struct decoded decoded;
	struct recording rec;
	char path[80];
	size_t n;

	snprintf(path, sizeof(path), "%s/r.mtbpf", dir);
	recording__init(&rec);
	assert_int_equal(recording__read(&rec, path), 0);
	assert_int_equal(decoded__make(&decoded, &rec, &(struct tree_options){0}), 0);
	n = count_raised(&decoded);
	decoded__fini(&decoded);
	recording__fini(&rec);
	return n;
}

struct counts {
	size_t none, told, truly;
};

static struct counts count(int part)
{
	char dir[] = "/tmp/mtbpf-test-XXXXXX", path[80];
	struct ocaml_traps traps = {0};
	struct counts counts;

	if (!has_tools()) {
		print_message(
			"# skip: needs qemu-x86_64, perf, objdump, and ocamlopt when built\n");
		skip();
	}
	assert_non_null(mkdtemp(dir));
	record(dir, part);
	snprintf(path, sizeof(path), "%s/traps", dir);
	assert_int_equal(ocaml_traps__read(&traps, path), 0);
	assert_in_range(traps.ips.n, 20, 1000);
	counts.none = count_in_text(dir, NULL);
	counts.told = count_in_text(dir, &traps);
	counts.truly = count_in_recording(dir);
	ocaml_traps__fini(&traps);
	assert_int_equal(fs__remove_dir(dir), 0);
	print_message("part %d: %zu calls ended by exceptions, %zu without the file, truly %zu\n",
		      part, counts.told, counts.none, counts.truly);
	return counts;
}

/* Parts of raises.ml. */
enum { DEEP = 0, CHOSEN = 1, AGAIN = 3, ITER = 4, PROTECT = 8 };

/* The nearest frame of the handler's function is the one that takes it. */
static void test_the_nearest(void **state)
{
	static const int parts[] = {DEEP, AGAIN, ITER, PROTECT};

	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
		struct counts counts = count(parts[i]);

		assert_true(counts.none < counts.told);
		assert_int_equal(counts.told, counts.truly);
	}
}

/* In a recursion it may be another activation: which, no address tells. */
static void test_another_activation(void **state)
{
	struct counts counts = count(CHOSEN);

	assert_in_range(counts.told, counts.none, counts.truly - 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_the_nearest),
		cmocka_unit_test(test_another_activation),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
