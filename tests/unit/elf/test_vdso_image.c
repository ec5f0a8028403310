// SPDX-License-Identifier: MIT
/* Whose vdso a recording gets that has none: only one that is the same. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

#include "capture/code/live_code.h"
#include "target/elf/elf_image.h"

static int set_up(void **state)
{
	struct rec_map map = {.start = 0x7000, .len = 0x2000, .pid = 7, .path = "[vdso]"};
	struct recording *rec = malloc(sizeof(*rec));

	recording__init(rec);
	assert_int_equal(recording__add_map(rec, &map), 0);
	*state = rec;
	return 0;
}

static int tear_down(void **state)
{
	recording__fini(*state);
	free(*state);
	return 0;
}

static void set_release(struct recording *rec, const char *more)
{
	struct utsname name;
	char release[sizeof(name.release) + 8];

	assert_int_equal(uname(&name), 0);
	snprintf(release, sizeof(release), "%s%s", name.release, more);
	rec->os_release = strdup(release);
}

/* Of the vdso that runs here; the test is skipped where there is none. */
static void set_build_id(struct recording *rec)
{
	struct elf_image *image;
	struct recording own;

	recording__init(&own);
	assert_int_equal(vdso_image__add(&own, NULL), 0);
	if (!own.images.n) {
		print_message("skipped: this process has no vdso\n");
		skip();
	}
	image = elf_image__from_bytes(own.images.v[0].data, own.images.v[0].size, "[vdso]");
	assert_non_null(image);
	assert_int_not_equal(elf_image__build_id(image)[0], '\0');
	snprintf(rec->maps.v[0].build_id, sizeof(rec->maps.v[0].build_id), "%s",
		 elf_image__build_id(image));
	elf_image__free(image);
	recording__fini(&own);
}

static void expect_images(struct recording *rec, size_t n)
{
	assert_int_equal(vdso_image__add_running(rec), 0);
	assert_int_equal(rec->images.n, n);
	if (n)
		assert_string_equal(rec->images.v[0].path, "[vdso]");
}

static void test_the_same_release(void **state)
{
	set_release(*state, "");
	expect_images(*state, 1);
	assert_true(((struct recording *)*state)->images.v[0].is_elf);
}

static void test_another_release(void **state)
{
	set_release(*state, "-1");
	expect_images(*state, 0);
}

static void test_no_release(void **state)
{
	expect_images(*state, 0);
}

/* It tells more than the release does. */
static void test_the_same_build_id(void **state)
{
	set_release(*state, "-1");
	set_build_id(*state);
	expect_images(*state, 1);
}

static void test_another_build_id(void **state)
{
	struct recording *rec = *state;

	set_release(rec, "");
	set_build_id(rec);
	rec->maps.v[0].build_id[0] ^= 1;
	expect_images(rec, 0);
}

static void test_its_own_is_kept(void **state)
{
	struct rec_image image = {.path = "[vdso]", .data = (uint8_t *)"own", .size = 3};
	struct recording *rec = *state;

	set_release(rec, "");
	assert_int_equal(recording__add_image(rec, &image), 0);
	expect_images(rec, 1);
	assert_int_equal(rec->images.v[0].size, 3);
}

static void test_none_is_mapped(void **state)
{
	struct recording *rec = *state;

	set_release(rec, "");
	strcpy(rec->maps.v[0].path, "[heap]");
	expect_images(rec, 0);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(test_the_same_release), TEST(test_another_release),
		TEST(test_no_release),	     TEST(test_the_same_build_id),
		TEST(test_another_build_id), TEST(test_its_own_is_kept),
		TEST(test_none_is_mapped),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
