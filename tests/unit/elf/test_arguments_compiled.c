// SPDX-License-Identifier: MIT
/* Where arguments and members are by the debug info that several compilers and languages write. */
#include "../compiled_fixture.h"

#include <errno.h>

#include "target/elf/arguments.h"

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

#define ARROW(text)                                                                                \
	{                                                                                          \
		.kind = STEP_ARROW, .name = text                                                   \
	}
#define AT(i)                                                                                      \
	{                                                                                          \
		.kind = STEP_INDEX, .number = (i)                                                  \
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_classes, make_folder, remove_folder),
		cmocka_unit_test_setup_teardown(test_types_of_other_files, make_folder,
						remove_folder),
		cmocka_unit_test_setup_teardown(test_types_in_namespaces, make_folder,
						remove_folder),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
