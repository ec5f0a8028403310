// SPDX-License-Identifier: MIT
/* Where arguments are by a function's debug info: functions of this very program. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdbool.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "target/elf/arguments.h"
#include "value_steps.h"

struct incomplete;
struct large {
	long v[3];
};
struct small {
	int a, b;
};
enum colour { RED, GREEN };
typedef unsigned short port_t;
struct inner {
	char name[12];
	union {
		int number;
		float real;
	};
	unsigned bits : 3;
	char old[1];
};
struct outer {
	long pad;
	struct inner in;
	struct outer *next;
	const char *text;
	const struct inner *others[4];
	volatile port_t port;
	void *any;
	double weight;
};

#define KEEP __attribute__((noipa, used))
KEEP static int plain(struct outer *o, int n, unsigned char flag, const char *text)
{
	return n + flag + (o && text);
}
KEEP static long mixed(double d, float f, enum colour c, bool is, long last)
{
	return (long)d + (long)f + (long)c + is + last;
}
KEEP static struct large returns_large(int n)
{
	return (struct large){{n}};
}
KEEP static struct small returns_small(int n)
{
	return (struct small){n, n};
}
KEEP static int by_value(struct small s, int n)
{
	return s.a + n;
}
KEEP static int many(int a, int b, int c, int d, int e, int f, int g)
{
	return a + b + c + d + e + f + g;
}
KEEP static void opaque(struct incomplete *i, int n)
{
}

static struct elf_image *image;

static const struct function *function_of(const char *name)
{
	for (size_t i = 0; i < elf_image__function_count(image); i++)
		if (!strcmp(elf_image__raw_name(image, i), name))
			return elf_image__function(image, i);
	fail_msg("no %s", name);
	return NULL;
}

static char why[VALUE_WHY_SIZE];
static struct mt_value value;
static enum value_type type;

static int find(const char *name, const struct value_path *path)
{
	why[0] = '\0';
	return function__find_value(function_of(name), path, &value, &type, why);
}

static int find_arg(const char *name, uint32_t arg)
{
	return find(name, &(struct value_path){.arg = arg - 1});
}

static void assert_arg(const char *name, uint32_t arg, uint16_t base, int8_t size,
		       enum value_type of)
{
	assert_int_equal(find_arg(name, arg), 0);
	assert_int_equal(value.from.kind, MT_ARG_REGISTER);
	assert_int_equal(value.from.base, base);
	assert_int_equal(value.from.size, size);
	assert_int_equal(value.n_derefs, 0);
	assert_int_equal(type, of);
}

static void assert_unknown(const char *name, uint32_t arg, const char *reason)
{
	assert_int_equal(find_arg(name, arg), -EINVAL);
	if (!strstr(why, reason))
		fail_msg("%s: '%s'", reason, why);
}

/* di 112, si 104, dx 96, cx 88. */
static void test_registers(void **state)
{
	assert_arg("plain", 1, 112, 8, VALUE_POINTER);
	assert_arg("plain", 2, 104, -4, VALUE_INTEGER);
	assert_arg("plain", 3, 96, 1, VALUE_INTEGER);
	assert_arg("plain", 4, 88, 8, VALUE_TEXT);
	assert_unknown("plain", 5, "fewer arguments");
	/* The first two are in vector registers. */
	assert_unknown("mixed", 1, "neither");
	assert_arg("mixed", 3, 112, 4, VALUE_INTEGER);
	assert_arg("mixed", 4, 104, 1, VALUE_INTEGER);
	assert_arg("mixed", 5, 96, -8, VALUE_INTEGER);
	/* The first register has the place of what it returns. */
	assert_arg("returns_large", 1, 104, -4, VALUE_INTEGER);
	assert_arg("many", 6, 64, -4, VALUE_INTEGER);
	assert_unknown("many", 7, "stack");
	assert_arg("opaque", 2, 104, -4, VALUE_INTEGER);
}

/* By optimised code's own word where each argument is; otherwise such functions are refused. */
static void test_structures_by_value(void **state)
{
	int err = find_arg("by_value", 2);

	assert_true(!err ? value.from.base == 104 : strstr(why, "by value") != NULL);
	err = find_arg("returns_small", 1);
	assert_true(!err ? value.from.base == 112 : strstr(why, "returned") != NULL);
	assert_unknown("by_value", 1, "neither");
}

static void test_returned(void **state)
{
	const struct value_path path = {.of_return = true};

	assert_int_equal(find("mixed", &path), 0);
	assert_int_equal(value.from.base, VALUE_RETURN_REGISTER);
	assert_int_equal(value.from.size, -8);
	assert_int_equal(find("returns_small", &path), -EINVAL);
	assert_int_equal(find("opaque", &path), -EINVAL);
}

#define FIND(...)                                                                                  \
	find("plain", &(struct value_path){.steps = {__VA_ARGS__},                                 \
					   .n = sizeof((struct value_step[]){__VA_ARGS__}) /       \
						sizeof(struct value_step)})

static void test_members(void **state)
{
	assert_int_equal(FIND(ARROW("in"), DOT("number")), 0);
	assert_int_equal(value.n_derefs, 1);
	assert_int_equal(value.offsets[0],
			 offsetof(struct outer, in) + offsetof(struct inner, number));
	assert_int_equal(value.size, -4);
	assert_int_equal(value.from.size, 8);
	assert_int_equal(FIND(ARROW("in"), DOT("name")), 0);
	assert_int_equal(type, VALUE_CHARACTERS);
	assert_true(value.is_address);
	assert_int_equal(value.room, sizeof(((struct inner *)0)->name));
	assert_int_equal(FIND(ARROW("in"), DOT("old")), 0);
	assert_int_equal(type, VALUE_CHARACTERS);
	assert_int_equal(value.room, 0);
	assert_int_equal(FIND(ARROW("next"), ARROW("next"), ARROW("text")), 0);
	assert_int_equal(value.n_derefs, 3);
	assert_int_equal(value.offsets[1], offsetof(struct outer, next));
	assert_int_equal(value.offsets[2], offsetof(struct outer, text));
	assert_int_equal(type, VALUE_TEXT);
	assert_int_equal(FIND(ARROW("others"), AT(2), ARROW("number")), 0);
	assert_int_equal(value.n_derefs, 2);
	assert_int_equal(value.offsets[0], offsetof(struct outer, others) + 2 * sizeof(void *));
	assert_int_equal(value.offsets[1], offsetof(struct inner, number));
	assert_int_equal(FIND(ARROW("port")), 0);
	assert_int_equal(value.size, 2);
	assert_int_equal(FIND(AT(2), DOT("port")), 0);
	assert_int_equal(value.offsets[0], 2 * sizeof(struct outer) + offsetof(struct outer, port));
	assert_int_equal(FIND(ARROW("any")), 0);
	assert_int_equal(type, VALUE_TEXT);
	assert_int_equal(FIND(ARROW("weight")), 0);
	assert_int_equal(type, VALUE_NONE);
}

static void test_members_that_are_not_there(void **state)
{
	const struct value_path of_opaque = {.n = 1, .steps = {ARROW("x")}};

	assert_int_equal(FIND(ARROW("nothing")), -EINVAL);
	assert_int_equal(FIND(DOT("in")), -EINVAL);
	assert_int_equal(FIND(ARROW("in"), ARROW("number")), -EINVAL);
	assert_int_equal(FIND(ARROW("in"), DOT("bits")), -EINVAL);
	assert_int_equal(FIND(ARROW("pad"), AT(1)), -EINVAL);
	assert_int_equal(FIND(ARROW("any"), ARROW("x")), -EINVAL);
	assert_int_equal(
		FIND(ARROW("next"), ARROW("next"), ARROW("next"), ARROW("next"), ARROW("text")),
		-EINVAL);
	assert_int_equal(find("opaque", &of_opaque), -EINVAL);
	assert_non_null(strstr(why, "does not define"));
}

static void test_without_debug_info(void **state)
{
	static const unsigned char code[] = {0xc3};
	struct elf_image *raw = elf_image__raw(code, sizeof(code), "raw", "raw");
	const struct function *function = elf_image__function_at(raw, 0);

	assert_int_equal(
		function__find_value(function, &(struct value_path){0}, &value, &type, why),
		-ENODATA);
	elf_image__free(raw);
}

static int open_self(void **state)
{
	int fd = open("/proc/self/exe", O_RDONLY);

	image = elf_image__open(fd, "self");
	close(fd);
	return image ? 0 : -1;
}

static int close_self(void **state)
{
	elf_image__free(image);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_registers),
		cmocka_unit_test(test_structures_by_value),
		cmocka_unit_test(test_returned),
		cmocka_unit_test(test_members),
		cmocka_unit_test(test_members_that_are_not_there),
		cmocka_unit_test(test_without_debug_info),
	};

	return cmocka_run_group_tests(tests, open_self, close_self);
}
