// SPDX-License-Identifier: MIT
/* A recording with the kernel in it, as perf reads it: branch for branch, and by name. */
#include "../unit/kernel_stream.h"

#include <errno.h>
#include <unistd.h>

#define SKIP_WITHOUT_PERF                                                                          \
	do {                                                                                       \
		if (system("perf version --build-options 2>/dev/null |"                            \
			   "grep -q ' on .*HAVE_AUXTRACE_SUPPORT'")) {                             \
			puts("# skip: no perf that decodes Intel PT");                             \
			skip();                                                                    \
		}                                                                                  \
	} while (0)

struct fixture {
	struct traced t;
	char folder[40], path[64];
};

/* perf reads user code from files only: the fixture's in a file of its own. */
static void map_file(struct fixture *f)
{
	uint8_t code[CODE_SIZE];
	char path[64];

	fill_code(code);
	write_in(f->folder, "code", code, sizeof(code));
	snprintf(path, sizeof(path), "%s/code", f->folder);
	traced__map(&f->t, 0, path, code);
}

static int set_up(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	struct traced *t = &f->t;
	struct rec_thread thread = {.pid = PID, .tid = TID, .start_ns = 1, .comm = "traced"};
	struct rec_aux aux = {.pid = PID, .tid = TID};

	strcpy(f->folder, "/tmp/test_kernel.XXXXXX");
	assert_non_null(mkdtemp(f->folder));
	snprintf(f->path, sizeof(f->path), "%s/x.mtbpf", f->folder);
	traced__init(t, 100, 0, true);
	map_file(f);
	traced__add_kernel(t);
	for (int i = 0; i < 5; i++)
		traced__run_kernel(t);
	aux.tsc = t->now;
	aux.size = t->out.bytes.n;
	aux.data = malloc(aux.size);
	memcpy(aux.data, t->out.bytes.v, aux.size);
	t->rec.pt.config = 1 | 1 << 10 | 1 << 13;
	t->rec.pid = PID;
	assert_int_equal(recording__add_thread(&t->rec, &thread), 0);
	assert_int_equal(recording__add_aux(&t->rec, &aux), 0);
	assert_int_equal(recording_dir__create(f->path), 0);
	assert_int_equal(recording__write(&t->rec, f->path), 0);
	*state = f;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *f = *state;

	traced__fini(&f->t);
	assert_int_equal(fs__remove_dir(f->folder), 0);
	free(f);
	return 0;
}

/* What a command prints, the caller's to free. */
static char *output_of(const char *command)
{
	char *text = NULL, buf[4096];
	size_t size, n;
	FILE *out = open_memstream(&text, &size), *in;

	in = popen(command, "r");
	assert_non_null(in);
	while ((n = fread(buf, 1, sizeof(buf), in)))
		fwrite(buf, 1, n, out);
	assert_int_equal(pclose(in), 0);
	fclose(out);
	return text;
}

static char *perf_script(const struct fixture *f, const char *fields)
{
	char command[256];

	snprintf(command, sizeof(command), "perf script -i %s --itrace=be -F %s 2>&1", f->path,
		 fields);
	return output_of(command);
}

static void test_branch_for_branch(void **state)
{
	struct fixture *f = *state;
	const struct branches *taken = &f->t.taken;
	char *text, *line, *rest;
	size_t n = 0;

	SKIP_WITHOUT_PERF;
	text = perf_script(f, "ip,addr");
	for (line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest), n++) {
		const char *arrow = strstr(line, "=> ");
		uint64_t from, to;

		if (!arrow)
			fail_msg("perf: %s", line);
		from = strtoull(line, NULL, 16);
		to = strtoull(arrow + 3, NULL, 16);
		assert_true(n < taken->list.n);
		if (from == taken->list.v[n].from && to == taken->list.v[n].to)
			continue;
		print_branch("taken", &taken->list.v[n]);
		fail_msg("perf: %s", line);
	}
	assert_int_equal(n, taken->list.n);
	free(text);
}

static void test_names(void **state)
{
	static const char *const names[] = {"entry_SYSCALL_64", "do_syscall_64",
					    "__schedule",	"asm_exc_page_fault",
					    "mod_read",		"asm_sysvec_apic_timer_interrupt"};
	struct fixture *f = *state;
	char *text;

	SKIP_WITHOUT_PERF;
	text = perf_script(f, "ip,sym,dso");
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (!strstr(text, names[i]))
			fail_msg("perf does not know %s:\n%s", names[i], text);
	assert_non_null(strstr(text, "([kernel.kallsyms])"));
	free(text);
}

/* The command itself: each of the kernel's functions with its module, on what it interrupted. */
static void test_decode(void **state)
{
	static const char *const lines[] = {
		"43 1 .* entry_SYSCALL_64 [kernel]", "43 2 .* do_syscall_64 [kernel]",
		"43 3 .* mod_read [mod]", "43 4 .* asm_exc_page_fault [kernel]"};
	const char *folder = getenv("O") ? getenv("O") : "build";
	struct fixture *f = *state;
	char command[256], *text;

	snprintf(command, sizeof(command), "%s/mtbpf decode %s -print calls 2>&1", folder, f->path);
	text = output_of(command);
	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		const char *name = strstr(lines[i], ".* ") + 3, *at = strstr(text, name);

		if (!at)
			fail_msg("no %s in:\n%s", name, text);
		while (at > text && at[-1] != '\n')
			at--;
		assert_memory_equal(at, lines[i], strlen("43 1 "));
	}
	free(text);
}

/* perf's own --kcore is a directory of these two, and ours without its end is no such one. */
static void test_perfs_directory_is_read(void **state)
{
	struct fixture *f = *state;
	struct recording back;
	char path[80];

	snprintf(path, sizeof(path), "%s/meta.json", f->path);
	assert_int_equal(unlink(path), 0);
	recording__init(&back);
	assert_int_equal(recording__read(&back, f->path), -ENODATA);
	recording__fini(&back);
	snprintf(path, sizeof(path), "%s/images", f->path);
	assert_int_equal(fs__remove_dir(path), 0);
	recording__init(&back);
	assert_int_equal(recording__read(&back, f->path), 0);
	assert_string_equal(back.source, "perf");
	assert_non_null(back.kernel.kallsyms);
	assert_int_equal(back.aux.n, 1);
	recording__fini(&back);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_branch_for_branch),
		TEST(test_names),
		TEST(test_decode),
		TEST(test_perfs_directory_is_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
