// SPDX-License-Identifier: MIT
/* -if, -key and -print: what their texts mean, and where the values are. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <string.h>

#include "compiled_fixture.h"
#include "session/probe/hit_reads.h"
#include "session/probe/probes.h"
#include "stderr_capture.h"

static int parse_all(struct hit_reads *reads, const char *filter, const char *key,
		     const char *print)
{
	struct stderr_capture said;
	int err;

	stderr_capture__begin(&said);
	err = hit_reads__parse(reads, filter, key, print);
	assert_true(!err == !*stderr_capture__end(&said));
	return err;
}

static int parse(struct hit_reads *reads, const char *text)
{
	return parse_all(reads, text, NULL, NULL);
}

static void test_terms(void **state)
{
	struct hit_reads reads;
	const struct hit_filter *f = &reads.filter;

	assert_int_equal(parse(&reads, NULL), 0);
	assert_int_equal(f->n, 0);
	assert_false(hit_reads__any(&reads));
	assert_int_equal(
		parse(&reads,
		      " (unsigned int)arg3>=0x10&&tid!=-1 && comm == \"a b\" && (int)retval&8 "),
		0);
	assert_int_equal(f->n, 4);
	assert_int_equal(f->terms[0].field, MT_FIELD_ARG);
	assert_int_equal(f->values[0].path.arg, 2);
	assert_int_equal(f->values[0].size, 4);
	assert_int_equal(f->terms[0].op, MT_OP_GE);
	assert_int_equal(f->terms[0].value, 16);
	assert_int_equal(f->terms[1].op, MT_OP_NE);
	assert_true(f->terms[1].value == UINT64_MAX);
	assert_string_equal((const char *)f->terms[2].comm, "a b");
	assert_int_equal(f->values[3].size, -4);
	assert_int_equal(f->terms[3].op, MT_OP_AND);
	assert_string_equal(hit_reads__of_return(&reads), "-if");
	assert_int_equal(parse(&reads, "comm != \"123456789012345\""), 0);
	assert_null(hit_reads__of_return(&reads));
}

static void test_members(void **state)
{
	struct hit_reads reads;
	const struct value_path *path = &reads.filter.values[0].path;

	assert_int_equal(parse(&reads, "arg12->a_1.b[0x10]->8 < 3"), 0);
	assert_int_equal(path->arg, 11);
	assert_int_equal(path->n, 4);
	assert_int_equal(path->steps[0].kind, STEP_ARROW);
	assert_string_equal(path->steps[0].name, "a_1");
	assert_int_equal(path->steps[1].kind, STEP_DOT);
	assert_string_equal(path->steps[1].name, "b");
	assert_int_equal(path->steps[2].kind, STEP_INDEX);
	assert_int_equal(path->steps[2].number, 16);
	assert_int_equal(path->steps[3].kind, STEP_OFFSET);
	assert_int_equal(path->steps[3].number, 8);
	assert_string_equal(reads.filter.values[0].text, "arg12->a_1.b[0x10]->8");
}

static void test_keys(void **state)
{
	struct hit_reads reads;

	assert_int_equal(parse_all(&reads, NULL, "arg1", NULL), 0);
	assert_true(reads.has_key);
	assert_memory_equal(&reads.keys[0], &reads.keys[1], sizeof(reads.keys[0]));
	assert_null(hit_reads__of_memory(&reads));
	assert_false(reads.has_stop_key);
	assert_int_equal(parse_all(&reads, NULL, "(long)arg1, arg2->id", NULL), 0);
	assert_true(reads.has_stop_key);
	assert_int_equal(reads.keys[0].size, -8);
	assert_int_equal(reads.keys[1].path.arg, 1);
	assert_string_equal(hit_reads__of_memory(&reads), "-key");
	assert_int_equal(parse_all(&reads, NULL, "arg1,arg2,arg3", NULL), -EINVAL);
	assert_int_equal(parse_all(&reads, NULL, "retval", NULL), -EINVAL);
	assert_int_equal(parse_all(&reads, NULL, "tid", NULL), -EINVAL);
	assert_int_equal(parse_all(&reads, NULL, "", NULL), -EINVAL);
}

static void test_prints(void **state)
{
	static const char *const wrong[] = {"",
					    "str(arg1",
					    "str(arg1, arg2, arg3)",
					    "str(arg1, retval)",
					    "str()",
					    "arg1,,arg2",
					    "arg1 arg2",
					    "arg1->",
					    "arg1->a[b]",
					    "arg13",
					    "arg1,arg2,arg3,arg4,arg5",
					    "arg1[-1]",
					    "arg1->99999999999"};
	struct hit_reads reads;

	assert_int_equal(
		parse_all(&reads, NULL, NULL, "str( arg1 ),str(arg1->p, arg2),retval , (int)arg2"),
		0);
	assert_int_equal(reads.n_prints, 4);
	assert_int_equal(reads.prints[0].kind, MT_PRINT_STRING);
	assert_string_equal(reads.prints[0].text, "str( arg1 )");
	assert_int_equal(reads.prints[1].kind, MT_PRINT_BYTES);
	assert_int_equal(reads.prints[1].length.path.arg, 1);
	assert_int_equal(reads.prints[2].kind, MT_PRINT_NUMBER);
	assert_string_equal(reads.prints[2].text, "retval");
	assert_string_equal(hit_reads__of_return(&reads), "-print");
	assert_string_equal(hit_reads__of_memory(&reads), "-print");
	assert_int_equal(parse_all(&reads, NULL, NULL, "arg1"), 0);
	assert_null(hit_reads__of_memory(&reads));
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		assert_int_equal(parse_all(&reads, NULL, NULL, wrong[i]), -EINVAL);
}

static void test_what_is_refused(void **state)
{
	static const char *const texts[] = {
		"",
		"arg0 == 1",
		"arg1x == 1",
		"(int)arg1 = 1",
		"(int)arg1 && 1",
		"(float)arg1 == 1",
		"comm == \"1234567890123456\"",
		"comm == \"a",
		"comm & \"a\"",
		"tid == 1 tid == 2",
		"tid == 1 &&",
		"tid == 1x",
		"tid == 18446744073709551616",
		"arg1 == arg2",
		"(int)comm == 1",
	};
	struct hit_reads f;

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		assert_int_equal(parse(&f, texts[i]), -EINVAL);
}

/* A function without debug info, which no image is asked for. */
static int apply(const char *filter, const char *print, struct probe *probe, const char *function)
{
	static struct elf_image *image;
	static const unsigned char code[] = {0xc3};
	struct function f = {.raw_name = function, .name = function};
	struct probes probes = {0};
	struct stderr_capture said;
	struct hit_reads reads;
	int err = parse_all(&reads, filter, NULL, print);

	assert_int_equal(err, 0);
	if (!image)
		image = elf_image__raw(code, sizeof(code), "raw", "raw");
	f.image = image;
	if (function)
		hit_reads__bind(&reads, &f, probe, false);
	assert_int_equal(VEC_ADD(&probes.all, *probe), 0);
	stderr_capture__begin(&said);
	err = hit_reads__check(&reads, probes.all.v, probes.all.n, false);
	assert_true(!err == !*stderr_capture__end(&said));
	*probe = probes.all.v[0];
	VEC_FINI(&probes.all);
	return err;
}

static void test_arguments(void **state)
{
	static struct probe function;

	assert_int_equal(apply("(short)arg6 == 1 && (long)arg1 == 1", NULL, &function, "f"), 0);
	assert_int_equal(function.args.n, 6);
	assert_int_equal(function.args.v[5].base, 64); /* r9 */
	assert_int_equal(function.args.v[5].size, -2);
	assert_int_equal(function.args.v[0].base, 112); /* di */
	assert_int_equal(function.args.v[1].kind, MT_ARG_UNKNOWN);
	assert_int_equal(function.reads.terms[0].from.base, 64);
	assert_int_equal(function.reads.terms[1].from.size, -8);
	function = (struct probe){0};
	assert_int_equal(apply("(int)arg1->0x20->8 == 1", "str(arg2), (int)retval", &function, "f"),
			 0);
	assert_int_equal(function.reads.terms[0].n_derefs, 2);
	assert_int_equal(function.reads.terms[0].offsets[0], 0x20);
	assert_int_equal(function.reads.terms[0].offsets[1], 8);
	assert_int_equal(function.reads.terms[0].size, -4);
	assert_int_equal(function.reads.terms[0].from.size, 8);
	assert_int_equal(function.reads.prints[0].value.from.base, 104); /* si */
	assert_int_equal(function.reads.prints[1].value.from.base, 80);	 /* ax */
	assert_int_equal(function.reads.prints[1].at_return, 1);
}

static void test_arguments_that_are_not_known(void **state)
{
	static const char *const terms[] = {"arg1 == 1",    "(int)arg7 == 1",
					    "arg1->a == 1", "(int)arg1->0->0->0->0->0 == 1",
					    "arg1->8 == 1", "retval == 1"};
	static struct probe inside = {.is_inside = true}, go = {.is_go = true};

	for (size_t i = 0; i < sizeof(terms) / sizeof(terms[0]); i++) {
		static struct probe function;

		function = (struct probe){0};
		assert_int_equal(apply(terms[i], NULL, &function, "f"), -EINVAL);
	}
	for (int i = 0; i < 3; i++) {
		static const char *const clones[] = {"f.isra.0", "f.constprop.1", "f.part.0"};
		static struct probe clone;

		clone = (struct probe){0};
		assert_int_equal(apply("(int)arg1 == 1", NULL, &clone, clones[i]), -EINVAL);
	}
	assert_int_equal(apply("(int)arg1 == 1", NULL, &inside, "f"), -EINVAL);
	assert_int_equal(apply("(int)arg1 == 1", NULL, &go, "f"), -EINVAL);
	inside = (struct probe){.is_inside = true};
	assert_int_equal(apply("tid == 1", NULL, &inside, "f"), 0);
}

static void test_usdt_and_system_calls(void **state)
{
	static struct probe usdt = {.is_inside = true, .is_usdt = true};
	static struct probe syscall = {
		.kernel = {.kind = KERNEL_PROBE_SYSCALL, .name = "write", .number = 1}};
	static struct probe tracepoint = {
		.kernel = {.kind = KERNEL_PROBE_TRACEPOINT, .name = "sched_switch"}};
	static struct probe oom = {.kernel = {.kind = KERNEL_PROBE_OOM, .name = "oom:"}};

	usdt.args = (struct mt_args){
		.n = 2, .v = {{.kind = MT_ARG_REGISTER, .base = 5, .size = -4}, {.size = 8}}};
	assert_int_equal(apply("arg1 == 1", "str(arg2), arg1", &usdt, NULL), 0);
	assert_int_equal(usdt.reads.terms[0].from.base, 5);
	assert_int_equal(usdt.reads.terms[0].from.size, -4);
	assert_int_equal(apply("arg3 == 1", NULL, &usdt, NULL), -EINVAL);
	usdt.refused[0] = '\0';
	assert_int_equal(apply("(int)arg2 == 1", NULL, &usdt, NULL), -EINVAL);
	usdt.refused[0] = '\0';
	assert_int_equal(apply("arg2->name == 1", NULL, &usdt, NULL), -EINVAL);
	usdt.refused[0] = '\0';
	assert_int_equal(apply("(int)arg2->8 == 1", NULL, &usdt, NULL), 0);
	assert_int_equal(apply("(int)arg1->8 == 1", NULL, &usdt, NULL), -EINVAL);
	assert_non_null(strstr(usdt.refused, "not a pointer"));
	usdt.refused[0] = '\0';
	assert_int_equal(apply("(int)arg1 == 7 && arg4 > 2 && retval < 0", "str(arg2, arg3)",
			       &syscall, NULL),
			 0);
	assert_int_equal(syscall.reads.terms[0].from.size, -4);
	assert_int_equal(syscall.reads.terms[1].from.base, 56); /* r10 */
	assert_int_equal(syscall.reads.terms[2].from.base, 80);
	assert_int_equal(syscall.reads.terms[2].from.size, -8);
	assert_int_equal(syscall.reads.prints[0].length.from.base, 96);
	/* AT_FDCWD: the program sets half of the register. */
	assert_int_equal(apply("(int)arg1 == -100", NULL, &syscall, NULL), 0);
	assert_int_equal(apply("arg1 == -100", NULL, &syscall, NULL), -EINVAL);
	assert_non_null(strstr(syscall.refused, "as in (int)arg1"));
	syscall.refused[0] = '\0';
	assert_int_equal(apply("arg7 == 1", NULL, &syscall, NULL), -EINVAL);
	assert_int_equal(apply("arg1 == 1", NULL, &tracepoint, NULL), -EINVAL);
	assert_int_equal(apply("tid == 1 && comm == \"worker\"", NULL, &tracepoint, NULL), 0);
	assert_int_equal(apply("tid == 1", "arg1", &tracepoint, NULL), -EINVAL);
	/* The victim is not the thread that is at the hit. */
	assert_int_equal(apply("tid == 1", NULL, &oom, NULL), -EINVAL);
}

/* Functions with debug info. */
static const char typed_sample[] =
	"struct Mat { long pad[8]; double w; int fd, flags; unsigned u; unsigned char c; };\n"
	"extern \"C\" {\n"
	"__attribute__((noipa)) int ref(Mat &m) { return m.fd; }\n"
	"__attribute__((noipa)) int refptr(Mat *&m) { return m->fd; }\n"
	"__attribute__((noipa)) int refint(const int &n) { return n; }\n"
	"__attribute__((noipa)) long ptr(Mat *m, int n, unsigned u, unsigned long l, long s)\n"
	"{ return m->fd + n + u + l + s; }\n"
	"}\n"
	"int main() { Mat m = {}, *p = &m; return ref(m) + refptr(p) + refint(3) + ptr(p, 1, 2, 3, "
	"4); }\n";
/* offsetof() of w, fd, u */
#define AT_W  64
#define AT_FD 72
#define AT_U  80

static struct elf_image *typed_image;

static int compile_typed(void **state)
{
	int err = make_folder(state);

	if (err || !has_tool("g++"))
		return err;
	write_source(*state, "sample.cc", typed_sample);
	run_in_folder(*state, "g++ -O1 -g sample.cc -o sample");
	typed_image = open_compiled(*state, "sample");
	return 0;
}

static int remove_typed(void **state)
{
	elf_image__free(typed_image);
	return remove_folder(state);
}

static struct probe typed;
static bool no_memory;

/* Parses the texts, and binds them to this function of the sample: typed.reads, typed.refused. */
static bool bind_typed(const char *name, const char *filter, const char *key, const char *print)
{
	const struct function *function = NULL;
	struct hit_reads reads;

	if (!typed_image)
		skip();
	for (size_t i = 0; i < elf_image__function_count(typed_image); i++)
		if (!strcmp(elf_image__raw_name(typed_image, i), name))
			function = elf_image__function(typed_image, i);
	assert_non_null(function);
	assert_int_equal(parse_all(&reads, filter, key, print), 0);
	reads.stores_no_memory = no_memory;
	typed = (struct probe){0};
	hit_reads__bind(&reads, function, &typed, false);
	return !*typed.refused;
}

static void assert_refused(const char *name, const char *filter, const char *key, const char *print,
			   const char *reason)
{
	assert_false(bind_typed(name, filter, key, print));
	if (!strstr(typed.refused, reason))
		fail_msg("'%s' is not in '%s'", reason, typed.refused);
}

static void test_offsets_from_references(void **state)
{
	const struct mt_value *value = &typed.reads.prints[0].value;

	assert_true(bind_typed("ref", NULL, NULL, "(int)arg1->72"));
	assert_int_equal(value->n_derefs, 1);
	assert_int_equal(value->offsets[0], AT_FD);
	assert_int_equal(value->size, -4);
	assert_int_equal(value->from.size, 8);
	assert_true(bind_typed("ref", NULL, NULL, "(int)arg1->1->2->3->4"));
	assert_int_equal(value->n_derefs, 4);
	assert_int_equal(value->offsets[0], 1);
	assert_int_equal(value->offsets[3], 4);
	assert_int_equal(value->size, -4);
	assert_int_equal(value->is_address, 0);
	/* Here the argument itself is a pointer, and its address is passed. */
	assert_true(bind_typed("refptr", NULL, NULL, "(int)arg1->72"));
	assert_int_equal(value->n_derefs, 2);
	assert_int_equal(value->offsets[0], 0);
	assert_int_equal(value->offsets[1], AT_FD);
	assert_refused("refptr", NULL, NULL, "(int)arg1->1->2->3->4", "more than 4");
	assert_refused("ptr", NULL, NULL, "(int)arg2->8", "not a pointer");
}

static void test_types_that_are_stated(void **state)
{
	const struct mt_value *value = &typed.reads.prints[0].value;

	/* What is beside a member, or the upper half of the register, is not of the value. */
	assert_true(bind_typed("ptr", NULL, NULL, "(long)arg1->fd"));
	assert_int_equal(value->offsets[0], AT_FD);
	assert_int_equal(value->size, -4);
	assert_true(bind_typed("ptr", NULL, NULL, "(long)arg2"));
	assert_int_equal(value->from.size, -4);
	assert_true(bind_typed("ptr", NULL, NULL, "(long)arg3"));
	assert_int_equal(value->from.size, 4);
	assert_refused("ptr", NULL, NULL, "(unsigned long)arg2", "signed");
	assert_true(bind_typed("ptr", NULL, NULL, "(long)arg1->u"));
	assert_int_equal(value->offsets[0], AT_U);
	assert_int_equal(value->size, 4);
	/* A smaller type, or another sign. */
	assert_true(bind_typed("ptr", NULL, NULL, "(short)arg1->fd"));
	assert_int_equal(value->size, -2);
	assert_true(bind_typed("ptr", NULL, NULL, "(unsigned)arg2"));
	assert_int_equal(value->from.size, 4);
	assert_true(bind_typed("ptr", NULL, NULL, "(long)arg4"));
	assert_int_equal(value->from.size, -8);
	assert_refused("ptr", NULL, NULL, "(int)arg1->w", "neither an integer nor a pointer");
	assert_refused("ptr", NULL, NULL, "(long)arg1->w", "neither an integer nor a pointer");
	assert_refused("ref", NULL, NULL, "(int)arg1", "neither an integer nor a pointer");
	assert_refused("ptr", NULL, NULL, "str((char *)arg1->w)", "neither");
	assert_refused("ptr", NULL, NULL, "str((char *)arg1->fd)", "smaller than a pointer");
	assert_true(bind_typed("ptr", NULL, NULL, "str((char *)arg1)"));
	assert_int_equal(value->from.size, 8);
}

/* The hit shows the arguments that -if reads: not a reference, whose register has an address. */
static void test_arguments_that_the_hit_shows(void **state)
{
	assert_true(bind_typed("refint", "arg1 == 5", NULL, NULL));
	assert_int_equal(typed.reads.terms[0].n_derefs, 1);
	assert_int_equal(typed.args.n, 0);
	assert_true(bind_typed("ptr", "arg2 == 5", NULL, NULL));
	assert_int_equal(typed.args.n, 2);
	assert_int_equal(typed.args.v[1].size, -4);
}

/* The program's memory is not stored, also if only the debug info tells that it is in memory. */
static void test_references_without_memory(void **state)
{
	no_memory = true;
	assert_refused("refint", NULL, NULL, "arg1", "-print: arg1 of : it is a reference");
	assert_refused("refint", NULL, "arg1", NULL, "-key: arg1 of : it is a reference");
	assert_true(bind_typed("refint", "arg1 == 5", NULL, NULL));
	assert_true(bind_typed("ptr", "arg1->fd == 5", "arg2", "arg1, arg4"));
	no_memory = false;
	assert_true(bind_typed("refint", NULL, "arg1", "arg1"));
}

static void test_numbers_that_a_type_lacks(void **state)
{
	static const char *const fits[] = {
		"arg3 == 0xffffffff",
		"arg3 >= 0",
		"arg3 & -8",
		"arg2 == -1",
		"arg2 != -2147483648",
		"arg2 == 2147483647",
		"arg2 & 0x80000000",
		"arg1->c < 255",
		"(int)arg3 == -1",
		"(unsigned)arg2 == 0xffffffff",
		"arg4 == -1",
		"arg4 == 0xffffffffffffffff",
		"arg5 == -9223372036854775808",
		"arg5 == 9223372036854775807",
		"arg1 != -1",
	};
	static const char *const lacks[][2] = {
		{"arg3 == -1", "0 to 4294967295, and cannot be compared with -1"},
		{"arg3 != -1", "0 to 4294967295"},
		{"arg3 > -1", "0 to 4294967295"},
		{"arg3 < 0x100000000", "cannot be compared with 4294967296"},
		{"arg2 == 0xffffffff", "-2147483648 to 2147483647, and cannot"},
		{"arg2 == -2147483649", "cannot be compared with -2147483649"},
		{"arg1->c == -1", "0 to 255"},
		{"arg1->c == 256", "0 to 255"},
		{"(long)arg2 == 0xffffffff", "-2147483648"},
		{"(int)arg3 == 0xffffffff", "-2147483648"},
		{"arg5 < 0xffffffffffffffff", "-9223372036854775808 to 9223372036854775807"},
	};

	for (size_t i = 0; i < sizeof(fits) / sizeof(fits[0]); i++)
		if (!bind_typed("ptr", fits[i], NULL, NULL))
			fail_msg("%s: %s", fits[i], typed.refused);
	for (size_t i = 0; i < sizeof(lacks) / sizeof(lacks[0]); i++)
		assert_refused("ptr", lacks[i][0], NULL, NULL, lacks[i][1]);
}

/* Of the parameters of mtbpf_hit() only the first is the program's. */
static void test_the_programs_own_call(void **state)
{
	static struct probe own = {.is_library = true};

	own.args = (struct mt_args){.n = 4, .is_library = 1};
	for (int i = 0; i < 4; i++)
		own.args.v[i] = (struct mt_arg){.kind = MT_ARG_REGISTER, .base = 112, .size = 8};
	assert_int_equal(apply("arg1 == 0", "arg1", &own, "mtbpf_hit"), 0);
	assert_int_equal(own.reads.terms[0].from.base, 112);
	for (int i = 2; i <= 5; i++) {
		char text[] = "arg0";

		text[3] = (char)('0' + i);
		own.refused[0] = '\0';
		assert_int_equal(apply(NULL, text, &own, "mtbpf_hit"), -EINVAL);
		assert_non_null(strstr(own.refused, "has one argument"));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_terms),
		cmocka_unit_test(test_members),
		cmocka_unit_test(test_keys),
		cmocka_unit_test(test_prints),
		cmocka_unit_test(test_what_is_refused),
		cmocka_unit_test(test_arguments),
		cmocka_unit_test(test_arguments_that_are_not_known),
		cmocka_unit_test(test_usdt_and_system_calls),
		cmocka_unit_test(test_offsets_from_references),
		cmocka_unit_test(test_types_that_are_stated),
		cmocka_unit_test(test_arguments_that_the_hit_shows),
		cmocka_unit_test(test_references_without_memory),
		cmocka_unit_test(test_numbers_that_a_type_lacks),
		cmocka_unit_test(test_the_programs_own_call),
	};

	return cmocka_run_group_tests(tests, compile_typed, remove_typed);
}
