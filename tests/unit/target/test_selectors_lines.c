// SPDX-License-Identifier: MIT
/* Functions by source line and by glob, in a program that is compiled here. */
#include "compiled_fixture.h"

#include <errno.h>
#include <sys/stat.h>

#include "stderr_capture.h"
#include "target/symbols/symbols.h"

/* Each line has a number that the tests know. */
static const char source[] =
	"static volatile int v;\n"					    /* 1 */
	"static inline __attribute__((always_inline)) void bump(int n)\n"   /* 2 */
	"{\n"								    /* 3 */
	"\tv += n * 3;\n"						    /* 4 */
	"}\n"								    /* 5 */
	"__attribute__((noinline)) void http_get(int n)\n"		    /* 6 */
	"{\n"								    /* 7 */
	"\tv = n;\n"							    /* 8 */
	"\n"								    /* 9 */
	"\tv++, bump(n);\n"						    /* 10 */
	"}\n"								    /* 11 */
	"__attribute__((noinline)) void http_put(int n) { bump(n + v); }\n" /* 12 */
	"__attribute__((noinline)) void other(int n) { v = n; }\n"	    /* 13 */
	"int main(int n, char **w) { http_get(n); http_put(n); other(n); return v; }\n";

struct fixture {
	struct compiled *folder;
	struct symbols symbols;
};

static int set_up(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	char path[80];

	if (make_folder((void **)&f->folder))
		return -1;
	snprintf(path, sizeof(path), "%s/src", f->folder->dir);
	if (mkdir(path, 0700))
		return -1;
	write_source(f->folder, "src/svc.c", source);
	run_in_folder(f->folder, "gcc -O0 -g -o svc src/svc.c");
	snprintf(path, sizeof(path), "%s/svc", f->folder->dir);
	*state = f;
	return symbols__open_file(&f->symbols, path);
}

static int tear_down(void **state)
{
	struct fixture *f = *state;

	symbols__close(&f->symbols);
	remove_folder((void **)&f->folder);
	free(f);
	return 0;
}

static int find(struct fixture *f, const char *name, struct symbol_match *match,
		struct stderr_capture *capture)
{
	int err;

	stderr_capture__begin(capture);
	err = symbols__find(&f->symbols, name, match);
	stderr_capture__end(capture);
	return err;
}

static struct symbol_match expect(struct fixture *f, const char *name, const char *function)
{
	struct stderr_capture capture;
	struct symbol_match match = {0};

	assert_int_equal(find(f, name, &match, &capture), 0);
	/* What a glob has found is said. */
	if (strpbrk(name, "*?["))
		assert_non_null(strstr(capture.text, function));
	else
		assert_string_equal(capture.text, "");
	assert_string_equal(match.function->name, function);
	return match;
}

static void refuse(struct fixture *f, const char *name, int err, const char *said)
{
	struct stderr_capture capture;
	struct symbol_match match;

	assert_int_equal(find(f, name, &match, &capture), err);
	if (!strstr(capture.text, said))
		assert_string_equal(capture.text, said);
}

static void assert_line(struct fixture *f, const struct symbol_match *match, unsigned int line)
{
	struct source_place place;

	assert_true(elf_image__source_at(match->module->image,
					 match->function->vaddr + match->offset, &place));
	assert_int_equal(place.line, line);
}

static void test_a_line(void **state)
{
	static const char *const files[] = {"svc.c", "src/svc.c"};
	struct fixture *f = *state;
	struct symbol_match match;
	char text[120];

	for (size_t i = 0; i < 2; i++) {
		snprintf(text, sizeof(text), "line:%s:8", files[i]);
		match = expect(f, text, "http_get");
		assert_line(f, &match, 8);
		assert_true(match.offset);
	}
	snprintf(text, sizeof(text), "line:%s/src/svc.c:8", f->folder->dir);
	refuse(f, text, -ENOENT, "no code of the file '"); /* it was given as src/svc.c */
	match = expect(f, "line:svc.c:7", "http_get");
	assert_int_equal(match.offset, 0);
	match = expect(f, "line:svc.c:13", "other");
	assert_int_equal(match.offset, 0);
}

static void test_a_line_that_is_in_several_functions(void **state)
{
	refuse(*state, "line:svc.c:4", -ENOTUNIQ, "'line:svc.c:4' is in 2 functions of ");
	refuse(*state, "line:svc.c:4", -ENOTUNIQ, " in http_put\n");
}

/* The address that the list gives is taken. */
static void test_one_of_the_list(void **state)
{
	struct fixture *f = *state;
	struct stderr_capture capture;
	struct symbol_match match;
	char *address, *end;

	find(f, "line:svc.c:4", &match, &capture);
	address = strstr(capture.text, "addr:");
	assert_non_null(address);
	end = strchr(address, ' ');
	*end = '\0';
	match = expect(f, address, strncmp(end + 1, "in http_get", 11) ? "http_put" : "http_get");
	assert_line(f, &match, 4);
}

static void test_lines_without_code(void **state)
{
	refuse(*state, "line:svc.c:9", -ENOENT, "did you mean line:svc.c:10, the nearest");
	refuse(*state, "line:svc.c:1000", -ENOENT, "did you mean line:svc.c:14, the nearest");
	refuse(*state, "line:vc.c:8", -ENOENT, "no code of the file 'vc.c'");
	refuse(*state, "line:other.c:8", -ENOENT, "-g");
}

static void test_bad_lines(void **state)
{
	refuse(*state, "line:svc.c", -EINVAL, "  line:svc.c\n            ^\n");
	refuse(*state, "line:svc.c:", -EINVAL, "  line:svc.c:\n             ^\n");
	refuse(*state, "line:svc.c:x", -EINVAL, "  line:svc.c:x\n             ^\n");
	refuse(*state, "line:svc.c:12x", -EINVAL, "  line:svc.c:12x\n               ^\n");
	refuse(*state, "line:svc.c:0", -EINVAL, "  line:svc.c:0\n             ^\n");
	refuse(*state, "line::12", -EINVAL, "  line::12\n       ^\n");
	refuse(*state, "line:svc.c:99999999999", -EINVAL, "line:FILE:NUMBER");
	refuse(*state, "line:", -EINVAL, "  line:\n       ^\n");
}

static void test_globs(void **state)
{
	struct fixture *f = *state;

	expect(f, "othe?", "other");
	expect(f, "*_put", "http_put");
	expect(f, "svc:*_get", "http_get");
	expect(f, "http_[g]et", "http_get");
	refuse(f, "http_*", -ENOTUNIQ, "'http_*' names 2 functions");
	refuse(f, "http_*", -ENOTUNIQ, " http_put svc\n");
	refuse(f, "ftp_*", -ENOENT, "no function 'ftp_*'");
	assert_int_equal(expect(f, "*_put+0x1", "http_put").offset, 1);
}

/* Code of a line where no statement begins (a condition's second half, say) is no place to stop. */
static void test_where_a_statement_begins(void **state)
{
	static const char text[] = "int main(void)\n{\n"
				   "\tasm volatile(\".loc 1 100 0 is_stmt 0\\n nop\\n"
				   ".loc 1 100 0 is_stmt 1\\nstatement: nop\\n\");\n"
				   "\treturn 0;\n}\n";
	struct fixture *f = *state;
	struct symbols symbols;
	struct symbol_match match;
	char path[80];

	write_source(f->folder, "src/stmt.c", text);
	run_in_folder(f->folder, "gcc -O0 -g -o stmt src/stmt.c");
	snprintf(path, sizeof(path), "%s/stmt", f->folder->dir);
	assert_int_equal(symbols__open_file(&symbols, path), 0);
	assert_int_equal(symbols__find(&symbols, "line:stmt.c:100", &match), 0);
	assert_int_equal(match.function->vaddr + match.offset,
			 address_of(f->folder, "stmt", "statement"));
	symbols__close(&symbols);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_a_line),
		TEST(test_a_line_that_is_in_several_functions),
		TEST(test_one_of_the_list),
		TEST(test_lines_without_code),
		TEST(test_bad_lines),
		TEST(test_globs),
		TEST(test_where_a_statement_begins),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
