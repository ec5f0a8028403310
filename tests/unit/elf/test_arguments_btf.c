// SPDX-License-Identifier: MIT
/* Where arguments are by BTF: functions of a program without DWARF. */
#include "../compiled_fixture.h"

#include <errno.h>

#include "target/elf/arguments_btf.h"
#include "value_steps.h"

static const char source[] =
	"enum plain { A, B }; enum signs { LESS = -1, MORE };\n"
	"struct small { int a, b; }; struct large { long v[3]; };\n"
	"struct outer { long pad; struct { int x; union { int number; float real; }; } in;\n"
	"  struct outer *next; const char *text; char name[12]; unsigned bits : 3; double weight;\n"
	"  struct small many[4]; struct elsewhere *other; void *any; };\n"
	"#define KEEP __attribute__((noipa, used))\n"
	"KEEP int plain(struct outer *o, const int n, unsigned char f, const char *t)\n"
	"{ return n + f + !!o + !!t; }\n"
	"KEEP long mixed(double d, enum plain e, enum signs s, long last)\n"
	"{ return d + e + s + last; }\n"
	"KEEP int by_value(struct small s, int n) { return s.a + n; }\n"
	"KEEP struct large large(int n) { return (struct large){{n}}; }\n"
	"KEEP struct small small(int n) { return (struct small){n, n}; }\n"
	"KEEP int seven(int a, int b, int c, int d, int e, int f, int g) { return a + g; }\n"
	"int main(void) { return 0; }\n";

struct found {
	struct elf_image *image;
	struct mt_value value;
	enum value_type type;
	char why[VALUE_WHY_SIZE];
};

/* A compiler without -gbtf makes none. */
static void open_sample(const struct compiled *f, struct found *found)
{
	write_source(f, "s.c", source);
	run_in_folder(f, "gcc -gbtf -O2 s.c -o s || gcc -O2 s.c -o s");
	*found = (struct found){.image = open_compiled(f, "s")};
}

static int find_at(struct found *found, uint64_t vaddr, const struct value_path *path)
{
	const struct function *at = elf_image__function_at(found->image, vaddr);

	assert_non_null(at);
	return function__find_value_by_btf(at, path, &found->value, &found->type, found->why);
}

static int find(const struct compiled *f, struct found *found, const char *function,
		const struct value_path *path)
{
	return find_at(found, address_of(f, "s", function), path);
}

static void assert_arg(const struct compiled *f, struct found *found, const char *function,
		       uint32_t arg, uint16_t base, int8_t size, enum value_type type)
{
	assert_int_equal(find(f, found, function, &(struct value_path){.arg = arg - 1}), 0);
	assert_int_equal(found->value.from.base, base);
	assert_int_equal(found->value.from.size, size);
	assert_int_equal(found->type, type);
}

static void assert_unknown(const struct compiled *f, struct found *found, const char *function,
			   uint32_t arg, const char *reason)
{
	assert_int_equal(find(f, found, function, &(struct value_path){.arg = arg - 1}), -EINVAL);
	assert_non_null(strstr(found->why, reason));
}

static bool has_btf(const struct compiled *f)
{
	char line[100];

	snprintf(line, sizeof(line), "readelf -SW %s/s | grep -q '[.]BTF'", f->dir);
	return !system(line);
}

/* Skips the test if the compiler makes no BTF. */
static void open_with_btf(const struct compiled *f, struct found *found)
{
	open_sample(f, found);
	if (has_btf(f))
		return;
	elf_image__free(found->image);
	skip();
}

static void test_registers(void **state)
{
	const struct compiled *f = *state;
	struct found found;

	open_with_btf(f, &found);
	assert_arg(f, &found, "plain", 1, 112, 8, VALUE_POINTER);
	assert_arg(f, &found, "plain", 2, 104, -4, VALUE_INTEGER);
	assert_arg(f, &found, "plain", 3, 96, 1, VALUE_INTEGER);
	assert_arg(f, &found, "plain", 4, 88, 8, VALUE_TEXT);
	assert_unknown(f, &found, "plain", 5, "fewer arguments");
	assert_unknown(f, &found, "mixed", 1, "neither");
	assert_arg(f, &found, "mixed", 2, 112, 4, VALUE_INTEGER);
	assert_arg(f, &found, "mixed", 4, 96, -8, VALUE_INTEGER);
	/* Whether it is signed is not known: without a cast it is no value. */
	assert_int_equal(find(f, &found, "mixed", &(struct value_path){.arg = 2}), 0);
	assert_int_equal(found.type, VALUE_NONE);
	assert_unknown(f, &found, "by_value", 2, "by value");
	assert_arg(f, &found, "large", 1, 104, -4, VALUE_INTEGER);
	assert_unknown(f, &found, "small", 1, "returned");
	assert_unknown(f, &found, "seven", 7, "stack");
	assert_int_equal(find(f, &found, "mixed", &(struct value_path){.of_return = true}), 0);
	assert_int_equal(found.value.from.base, VALUE_RETURN_REGISTER);
	assert_int_equal(found.value.from.size, -8);
	assert_int_equal(find(f, &found, "small", &(struct value_path){.of_return = true}),
			 -EINVAL);
	/* Of the C library, and not of the program's BTF. */
	assert_int_equal(find(f, &found, "_start", &(struct value_path){0}), -ENODATA);
	elf_image__free(found.image);
}

static int find_member(const struct compiled *f, struct found *found,
		       const struct value_step *steps, size_t n)
{
	struct value_path path = {.n = n};

	memcpy(path.steps, steps, n * sizeof(*steps));
	return find(f, found, "plain", &path);
}

#define MEMBER(...)                                                                                \
	find_member(f, &found, (struct value_step[]){__VA_ARGS__},                                 \
		    sizeof((struct value_step[]){__VA_ARGS__}) / sizeof(struct value_step))

static void test_members(void **state)
{
	const struct compiled *f = *state;
	struct found found;

	open_with_btf(f, &found);
	/* pad 0, in 8 (x 8, number 12), next 16, text 24, name 32, bits 44, weight 48, many 56 */
	assert_int_equal(MEMBER(ARROW("in"), DOT("number")), 0);
	assert_int_equal(found.value.offsets[0], 12);
	assert_int_equal(found.value.size, -4);
	assert_int_equal(found.value.from.size, 8);
	assert_int_equal(MEMBER(ARROW("next"), ARROW("next"), ARROW("text")), 0);
	assert_int_equal(found.value.n_derefs, 3);
	assert_int_equal(found.value.offsets[1], 16);
	assert_int_equal(found.value.offsets[2], 24);
	assert_int_equal(found.type, VALUE_TEXT);
	assert_int_equal(MEMBER(ARROW("name")), 0);
	assert_int_equal(found.type, VALUE_CHARACTERS);
	assert_true(found.value.is_address);
	assert_int_equal(found.value.room, 12);
	assert_int_equal(MEMBER(ARROW("many"), AT(2), DOT("b")), 0);
	assert_int_equal(found.value.offsets[0], 56 + 2 * 8 + 4);
	assert_int_equal(MEMBER(ARROW("weight")), 0);
	assert_int_equal(found.type, VALUE_NONE);
	assert_int_equal(MEMBER(ARROW("bits")), -EINVAL);
	assert_non_null(strstr(found.why, "bit field"));
	assert_int_equal(MEMBER(ARROW("none")), -EINVAL);
	assert_non_null(strstr(found.why, "not a member"));
	assert_int_equal(MEMBER(ARROW("other"), ARROW("x")), -EINVAL);
	assert_non_null(strstr(found.why, "does not define"));
	assert_int_equal(MEMBER(ARROW("any"), ARROW("x")), -EINVAL);
	assert_int_equal(MEMBER(DOT("pad")), -EINVAL);
	elf_image__free(found.image);
}

static uint64_t global_address_of(const struct compiled *f, const char *symbol)
{
	char line[200];
	unsigned long long vaddr = 0;
	FILE *out;

	snprintf(line, sizeof(line), "nm -D %s/s | awk '$3 == \"%s\" { print $1 }'", f->dir,
		 symbol);
	out = popen(line, "r");
	assert_int_equal(fscanf(out, "%llx", &vaddr), 1);
	pclose(out);
	return vaddr;
}

/* The linker puts the BTF of both files into one section, of which the first is read. */
static void test_several_files(void **state)
{
	const struct compiled *f = *state;
	struct found found;

	write_source(f, "one.c",
		     "#define KEEP __attribute__((noipa, used))\n"
		     "KEEP static int handle(long *at, int n) { return n; }\n"
		     "KEEP int only(double d, int n) { return n; }\n"
		     "KEEP static int hidden(long *at, int n) { return n; }\n"
		     "int main(void) { return 0; }\n");
	write_source(f, "two.c",
		     "#define KEEP __attribute__((noipa, used))\n"
		     "KEEP static int handle(double d, int n, long *at) { return n; }\n"
		     "KEEP int hidden(double d, int n) { return n; }\n");
	run_in_folder(f, "for i in one two; do gcc -gbtf -O2 -c $i.c || gcc -O2 -c $i.c; done");
	run_in_folder(f, "gcc -rdynamic one.o two.o -o s");
	if (!has_btf(f))
		skip();
	found = (struct found){.image = open_compiled(f, "s")};
	assert_unknown(f, &found, "handle", 2, "several functions");
	assert_arg(f, &found, "only", 2, 112, -4, VALUE_INTEGER);
	elf_image__free(found.image);
	/* The only one that the dynamic symbols have is of the other file. */
	run_in_folder(f, "strip s -o stripped");
	found.image = open_compiled(f, "stripped");
	assert_int_equal(
		find_at(&found, global_address_of(f, "hidden"), &(struct value_path){.arg = 1}),
		-EINVAL);
	assert_non_null(strstr(found.why, "several files"));
	elf_image__free(found.image);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_registers, make_folder, remove_folder),
		cmocka_unit_test_setup_teardown(test_members, make_folder, remove_folder),
		cmocka_unit_test_setup_teardown(test_several_files, make_folder, remove_folder),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
