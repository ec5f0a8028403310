// SPDX-License-Identifier: MIT
/* Where arguments and members are by the debug info that several compilers and languages write. */
#include "../compiled_fixture.h"

#include <errno.h>

#include "target/elf/arguments.h"
#include "value_steps.h"

static struct mt_value value;
static enum value_type type;
static char why[VALUE_WHY_SIZE];

static int find(const struct compiled *f, const char *program, const char *function,
		const struct value_path *path)
{
	struct elf_image *image = open_compiled(f, program);
	const struct function *at = elf_image__function_at(image, address_of(f, program, function));
	int err;

	assert_non_null(at);
	why[0] = '\0';
	err = function__find_value(at, path, &value, &type, why);
	elf_image__free(image);
	return err;
}
#define STEPS(...)                                                                                 \
	&(struct value_path)                                                                       \
	{                                                                                          \
		.steps = {__VA_ARGS__},                                                            \
		.n = sizeof((struct value_step[]){__VA_ARGS__}) / sizeof(struct value_step)        \
	}
#define ARG(i)                                                                                     \
	&(struct value_path)                                                                       \
	{                                                                                          \
		.arg = (i)-1                                                                       \
	}

/* A member in the last structure that a pointer leads to. */
static void assert_offset(const struct compiled *f, const char *program, const char *function,
			  const struct value_path *path, int32_t offset)
{
	if (find(f, program, function, path))
		fail_msg("%s: %s", function, why);
	assert_true(value.n_derefs > 0);
	assert_int_equal(value.offsets[value.n_derefs - 1], offset);
}

static void assert_refused(const struct compiled *f, const char *program, const char *function,
			   const struct value_path *path, const char *reason)
{
	assert_int_equal(find(f, program, function, path), -EINVAL);
	if (!strstr(why, reason))
		fail_msg("%s: '%s'", reason, why);
}

static const char classes[] = "struct Base { int id; long b; virtual ~Base() {} };\n"
			      "struct Derived : Base { int other; int id; };\n"
			      "struct Third { int pad, id; };\n"
			      "struct Both : Base, Third { int x; };\n"
			      "struct Hidden : Base { static int id; struct { int pad, b; }; };\n"
			      "int Hidden::id = 7;\n"
			      "struct Virtual : virtual Third { int w; };\n"
			      "#define KEEP extern \"C\" __attribute__((noinline, used))\n"
			      "KEEP int derived(Derived *d) { return d->id; }\n"
			      "KEEP int both(Both *b) { return b->x; }\n"
			      "KEEP int hidden(Hidden *h) { return h->b; }\n"
			      "KEEP int virtually(Virtual *v) { return v->w; }\n"
			      "int main() { Virtual v; Derived d; Both b; Hidden h; return d.id + "
			      "v.id + b.x + h.pad; }\n";

static void check_classes(const struct compiled *f, const char *compiler)
{
	char line[200];

	snprintf(line, sizeof(line), "%s -g classes.cc -o classes", compiler);
	run_in_folder(f, line);
	/* The table of virtual functions 0, id 8, b 16; other 24, id 28. */
	assert_offset(f, "classes", "derived", STEPS(ARROW("id")), 28);
	assert_offset(f, "classes", "derived", STEPS(ARROW("b")), 16);
	assert_refused(f, "classes", "both", STEPS(ARROW("id")), "in several base classes");
	assert_offset(f, "classes", "both", STEPS(ARROW("b")), 16);
	assert_offset(f, "classes", "both", STEPS(ARROW("x")), 32);
	assert_refused(f, "classes", "hidden", STEPS(ARROW("id")), "is static");
	assert_offset(f, "classes", "hidden", STEPS(ARROW("b")), 28);
	assert_refused(f, "classes", "virtually", STEPS(ARROW("id")), "virtual base");
	assert_refused(f, "classes", "virtually", STEPS(ARROW("nothing")), "not a member");
}

/* Compilers write a class's bases before its members, and static members in two ways. */
static void test_classes(void **state)
{
	const struct compiled *f = *state;

	write_source(f, "classes.cc", classes);
	check_classes(f, "g++");
	check_classes(f, "g++ -gdwarf-4");
	check_classes(f, "g++ -fdebug-types-section");
	if (has_tool("clang++"))
		check_classes(f, "clang++");
}

static const char constructors[] =
	"struct Base { long b; virtual ~Base() {} };\n"
	"struct Shop : virtual Base { long s; Shop(long x, int y); };\n"
	"Shop::Shop(long x, int y) { s = x + y; }\n"
	"struct Plain { long p; Plain(long x); };\n"
	"Plain::Plain(long x) { p = x; }\n"
	"struct Large : Shop { Large() : Shop(1, 2) {} };\n"
	"int main() { Shop s(3, 4); Large l; Plain p(5); return s.s + l.s + p.p; }\n";

/* GCC's description of a constructor has two parameters that are not those of each variant. */
static void test_constructors_with_virtual_bases(void **state)
{
	const struct compiled *f = *state;
	static const char *const variants[] = {"_ZN4ShopC1Eli", "_ZN4ShopC2Eli"};

	write_source(f, "ctor.cc", constructors);
	for (int optimised = 0; optimised < 2; optimised++) {
		run_in_folder(f,
			      optimised ? "g++ -O2 -g ctor.cc -o ctor" : "g++ -g ctor.cc -o ctor");
		for (size_t i = 0; i < 2; i++) {
			assert_int_equal(find(f, "ctor", variants[i], ARG(1)), 0);
			for (uint32_t arg = 2; arg < 7; arg++)
				assert_refused(f, "ctor", variants[i], ARG(arg), "virtual bases");
		}
		assert_int_equal(find(f, "ctor", "_ZN5PlainC1El", ARG(2)), 0);
		assert_int_equal(value.from.base, value_registers[1]);
	}
}

static const char same_code[] =
	"#define KEEP __attribute__((noinline, used))\n"
	"struct a { long p, x; }; struct b { long x, y; };\n"
	"KEEP long of_a(struct a *a) { __asm__ volatile(\"\"); return a->x; }\n"
	"KEEP long of_b(struct b *b) { __asm__ volatile(\"\"); return b->y; }\n"
	"KEEP long other(struct a *a) { return a->p; }\n"
	"extern __typeof__(other) also __attribute__((alias(\"other\")));\n"
	"int main(void) { struct a a = {1, 2}; struct b b = {3, 4};\n"
	"  return (int)(of_a(&a) + of_b(&b) + also(&a)); }\n";

/* A hit may be of either function, whose arguments have different types. An alias is no other. */
static void test_functions_at_one_address(void **state)
{
	const struct compiled *f = *state;
	static const char *const builds[] = {"gcc -O2 -fno-ipa-icf -fuse-ld=gold",
					     "clang -O2 -fuse-ld=lld",
					     "clang -O2 -gdwarf-4 -fuse-ld=lld"};
	static const char *const linkers[] = {"ld.gold", "ld.lld", "ld.lld"};
	char line[200];

	write_source(f, "same.c", same_code);
	for (size_t i = 0; i < 3; i++) {
		if (!has_tool(linkers[i]) || (i && !has_tool("clang")))
			continue;
		snprintf(line, sizeof(line),
			 "%s -g -ffunction-sections -Wl,--icf=all same.c -o same", builds[i]);
		run_in_folder(f, line);
		assert_refused(f, "same", "of_a", STEPS(ARROW("x")), "the same code");
		assert_refused(f, "same", "of_b", STEPS(ARROW("x")), "the same code");
		assert_offset(f, "same", "other", STEPS(ARROW("p")), 0);
		assert_offset(f, "same", "also", STEPS(ARROW("p")), 0);
	}
	run_in_folder(f, "gcc -O2 -fno-ipa-icf -g same.c -o apart");
	assert_offset(f, "apart", "of_b", STEPS(ARROW("y")), 8);
}

static const char of_app[] =
	"struct state; struct same; struct data;\n"
	"struct app { struct state *s; struct same *same; struct data *data; };\n"
	"__attribute__((noinline, used)) int go(struct app *a) { return a->s != 0; }\n"
	"int main(void) { return 0; }\n";
static const char of_parser[] = "struct state { int pos; long len; };\n"
				"struct same { int a, *b; char c[8]; };\n"
				"struct data { int x; };\n"
				"int parse(struct state *s, struct same *t, struct data *d)\n"
				"{ return s->pos + t->a + d->x; }\n";
static const char of_store[] = "struct state { long a, b; int pos; };\n"
			       "struct same { int a, *b; char c[8]; };\n"
			       "struct state *mk(struct same *t) { return 0; }\n"
			       "int a_of(struct same *t) { return t->a; }\n";
/* A unit without code. */
static const char of_data[] = "struct data { long pad; int x; } data = {1, 2};\n";

/* Which type of this name it is cannot be known: both files have a private one. */
static void test_types_of_other_files(void **state)
{
	const struct compiled *f = *state;

	write_source(f, "app.c", of_app);
	write_source(f, "parser.c", of_parser);
	write_source(f, "store.c", of_store);
	write_source(f, "data.c", of_data);
	run_in_folder(f, "gcc -g app.c parser.c store.c data.c -o files");
	assert_refused(f, "files", "go", STEPS(ARROW("s"), ARROW("pos")), "does not define");
	assert_offset(f, "files", "go", STEPS(ARROW("same"), ARROW("b")), 8);
	assert_refused(f, "files", "go", STEPS(ARROW("data"), ARROW("x")), "does not define");
	run_in_folder(f, "gcc -g app.c parser.c -o fewer");
	assert_offset(f, "fewer", "go", STEPS(ARROW("s"), ARROW("len")), 8);
	assert_offset(f, "fewer", "go", STEPS(ARROW("data"), ARROW("x")), 0);
}

static const char of_server[] =
	"namespace ns { struct Conn; } namespace { struct Own; }\n"
	"struct Outer { struct Impl; Impl *impl; };\n"
	"struct Server { ns::Conn *c; Outer o; Own *own; };\n"
	"extern \"C\" __attribute__((noinline, used)) int serve(Server *s) { return s->c != 0; }\n"
	"int main() { return 0; }\n";
static const char of_others[] =
	"struct Conn { int x; }; struct Impl { int x; }; struct Own { int x; };\n"
	"int use(Conn *c, Impl *i, Own *o) { return c->x + i->x + o->x; }\n";
static const char of_right[] = "namespace ns { struct Conn { long pad; int x; }; }\n"
			       "struct Outer { struct Impl; };\n"
			       "struct Outer::Impl { long pad[2]; int x; };\n"
			       "int use(ns::Conn *c, Outer::Impl *i) { return c->x + i->x; }\n";

static void test_types_in_namespaces(void **state)
{
	const struct compiled *f = *state;

	write_source(f, "server.cc", of_server);
	write_source(f, "others.cc", of_others);
	write_source(f, "right.cc", of_right);
	run_in_folder(f, "g++ -g server.cc others.cc -o without");
	assert_refused(f, "without", "serve", STEPS(ARROW("c"), ARROW("x")), "does not define");
	assert_refused(f, "without", "serve", STEPS(ARROW("own"), ARROW("x")), "does not define");
	run_in_folder(f, "g++ -g server.cc others.cc right.cc -o with");
	assert_offset(f, "with", "serve", STEPS(ARROW("c"), ARROW("x")), 8);
	assert_offset(f, "with", "serve",
		      STEPS(ARROW("o"), {.kind = STEP_DOT, .name = "impl"}, ARROW("x")), 16);
}

static void assert_register(const struct compiled *f, const char *program, const char *function,
			    const struct value_path *path, uint16_t base)
{
	if (find(f, program, function, path))
		fail_msg("%s: %s", function, why);
	assert_int_equal(value.from.base, base);
}

/* LLVM removes the first argument of dead(). */
static const char of_removed[] =
	"struct r { int id, fd; }; volatile long sum; void wait_for(int);\n"
	"#define KEEP __attribute__((noinline))\n"
	"KEEP static long dead(int level, struct r *r, int m) { wait_for(1); return r->id + m; }\n"
	"KEEP long outside(int level, struct r *r, int m) { wait_for(3); return r->id + m; }\n"
	"int main(int argc, char **argv)\n"
	"{ struct r r = {argc, argc + 2};\n"
	"  sum += dead(argc, &r, 5); sum += dead(argc + 1, &r, argc + 5);\n"
	"  return outside(1, &r, argc); }\n";

/* The location of an argument is not read for anything else, and may be compressed. */
static void test_compressed_locations(void **state)
{
	static const char *const ways[] = {"-g -gz", "-gdwarf-4 -gz", "-g"};
	const struct compiled *f = *state;
	struct source_place place;
	struct elf_image *image;
	char line[200];

	if (!has_tool("clang"))
		skip();
	write_source(f, "removed.c", of_removed);
	write_source(f, "wait.c", "void wait_for(int n) {}\n");
	for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
		snprintf(line, sizeof(line), "clang -O2 %s removed.c wait.c -o removed", ways[i]);
		run_in_folder(f, line);
		/* r is in the first register, m in the second. */
		assert_register(f, "removed", "dead", ARG(2), 112);
		assert_register(f, "removed", "dead", ARG(3), 104);
		assert_register(f, "removed", "outside", ARG(2), 104);
	}
	run_in_folder(f, "clang -O2 -g -gz removed.c wait.c -o removed");
	image = open_compiled(f, "removed");
	/* Lines are read first here, without locations; they stay as they are. */
	assert_true(function__source(
		elf_image__function_at(image, address_of(f, "removed", "dead")), &place));
	assert_int_equal(function__find_value(
				 elf_image__function_at(image, address_of(f, "removed", "dead")),
				 ARG(2), &value, &type, why),
			 0);
	assert_int_equal(value.from.base, 112);
	assert_non_null(strstr(place.file, "removed.c"));
	assert_true(function__source(
		elf_image__function_at(image, address_of(f, "removed", "outside")), &place));
	assert_non_null(strstr(place.file, "removed.c"));
	elf_image__free(image);
}

static void test_removed_arguments(void **state)
{
	const struct compiled *f = *state;

	if (!has_tool("clang"))
		skip();
	write_source(f, "removed.c", of_removed);
	write_source(f, "wait.c", "void wait_for(int n) {}\n");
	/* Without locations the removed ones cannot be told from the others. */
	run_in_folder(f, "clang -O2 -g removed.c wait.c -o removed &&"
			 " objcopy -R .debug_loclists -R .debug_loc removed without");
	assert_refused(f, "removed", "dead", ARG(1), "has changed how");
	assert_refused(f, "without", "dead", ARG(2), "has changed how");
	run_in_folder(f, "clang -g removed.c wait.c -o slow");
	assert_register(f, "slow", "dead", ARG(2), 104);
	write_source(
		f, "own.c",
		"__attribute__((ms_abi, noinline)) int windows(int a, int b) { return a - b; }\n"
		"int main(void) { return windows(1, 2); }\n");
	run_in_folder(f, "clang -g own.c -o own");
	assert_refused(f, "own", "windows", ARG(1), "has changed how");
}

static void test_other_languages(void **state)
{
	const struct compiled *f = *state;

	if (!has_tool("gfortran"))
		skip();
	write_source(f, "sum.f90",
		     "subroutine add(n)\n  integer :: n\n  n = n + 1\nend subroutine\n"
		     "program sum\n  integer :: i = 1\n  call add(i)\nend program\n");
	run_in_folder(f, "gfortran -g -O1 sum.f90 -o sum");
	assert_refused(f, "sum", "add_", ARG(1), "language");
}

/* m[3][4] is one array with two dimensions. */
static void test_dimensions(void **state)
{
	const struct compiled *f = *state;

	write_source(f, "matrix.c",
		     "struct matrix { int m[3][4], row[4]; char lines[2][8]; int (*p)[4]; };\n"
		     "int use(struct matrix *m, int (*by)[4]) { return m->m[1][2] + by[1][1]; }\n"
		     "int main(void) { return 0; }\n");
	run_in_folder(f, "gcc -g matrix.c -o matrix");
	assert_refused(f, "matrix", "use", STEPS(ARROW("m"), AT(1)), "several dimensions");
	assert_refused(f, "matrix", "use", STEPS(ARROW("m"), AT(1), AT(2)), "several dimensions");
	assert_offset(f, "matrix", "use", STEPS(ARROW("row"), AT(3)), 60);
	assert_int_equal(find(f, "matrix", "use", STEPS(ARROW("lines"))), 0);
	assert_int_equal(type, VALUE_NONE);
	assert_offset(f, "matrix", "use", STEPS(ARROW("p"), AT(2), AT(1)), 36);
}

/* The debug info of a function with a cold part has no single range. */
static void test_cold_parts(void **state)
{
	const struct compiled *f = *state;

	write_source(f, "cold.c",
		     "#include <stdio.h>\n#include <stdlib.h>\n"
		     "struct r { int id, fd; };\n"
		     "__attribute__((cold, noipa)) void fail(const char *s, int n) { puts(s); }\n"
		     "__attribute__((noipa)) int work(struct r *r, double w, int n)\n"
		     "{ if (__builtin_expect(n < 0, 0)) { fail(\"a\", n);\n"
		     "    for (int i = 0; i < n * 2; i++) fail(\"b\", i * n); abort(); }\n"
		     "  return r->id + n + (int)w; }\n"
		     "int main(void) { struct r r = {1, 2}; return work(&r, 1.5, 3); }\n");
	run_in_folder(f, "gcc -g -O2 cold.c -o cold && nm cold | grep -q work.cold");
	assert_register(f, "cold", "work", ARG(3), 104);
	assert_offset(f, "cold", "work", STEPS(ARROW("fd")), 4);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_classes, make_folder, remove_folder),
		cmocka_unit_test_setup_teardown(test_types_of_other_files, make_folder,
						remove_folder),
		cmocka_unit_test_setup_teardown(test_constructors_with_virtual_bases, make_folder,
						remove_folder),
		cmocka_unit_test_setup_teardown(test_functions_at_one_address, make_folder,
						remove_folder),
		cmocka_unit_test_setup_teardown(test_types_in_namespaces, make_folder,
						remove_folder),
		cmocka_unit_test_setup_teardown(test_compressed_locations, make_folder,
						remove_folder),
		cmocka_unit_test_setup_teardown(test_removed_arguments, make_folder, remove_folder),
		cmocka_unit_test_setup_teardown(test_other_languages, make_folder, remove_folder),
		cmocka_unit_test_setup_teardown(test_dimensions, make_folder, remove_folder),
		cmocka_unit_test_setup_teardown(test_cold_parts, make_folder, remove_folder),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
