// SPDX-License-Identifier: MIT
/* Recordings by CPU: who ran where is read back as it was written; a stream in pieces is one. */
#include "recording_dir_fixture.h"

#include "capture/recording/perf_data.h"

static int set_up_by_cpu(void **state)
{
	struct fixture *f;

	if (set_up(state))
		return -1;
	f = *state;
	recording__fini(&f->rec);
	recording__fill_by_cpu(&f->rec);
	return 0;
}

static void assert_same_switches(const struct recording *a, const struct recording *b)
{
	assert_int_equal(a->switches.n, b->switches.n);
	for (size_t i = 0; i < a->switches.n; i++) {
		assert_int_equal(a->switches.v[i].time_ns, b->switches.v[i].time_ns);
		assert_int_equal(a->switches.v[i].cpu, b->switches.v[i].cpu);
		assert_int_equal(a->switches.v[i].pid, b->switches.v[i].pid);
		assert_int_equal(a->switches.v[i].tid, b->switches.v[i].tid);
	}
}

static void assert_same_aux(const struct recording *a, const struct recording *b)
{
	assert_int_equal(a->aux.n, b->aux.n);
	for (size_t i = 0; i < a->aux.n; i++) {
		const struct rec_aux *x = &a->aux.v[i], *y = &b->aux.v[i];

		assert_int_equal(y->pid, 0);
		assert_int_equal(y->tid, 0);
		assert_int_equal(x->cpu, y->cpu);
		assert_int_equal(x->tsc, y->tsc);
		assert_int_equal(x->size, y->size);
		assert_memory_equal(x->data, y->data, x->size);
	}
}

static void test_what_is_written_is_read(void **state)
{
	struct fixture *f = *state;

	write_it(f);
	assert_int_equal(read_it(f), 0);
	assert_string_equal(f->said.text, "");
	assert_true(recording__is_by_cpu(&f->back));
	assert_same_switches(&f->rec, &f->back);
	assert_same_aux(&f->rec, &f->back);
	assert_int_equal(f->back.maps.n, f->rec.maps.n);
	assert_int_equal(f->back.hits.n, f->rec.hits.n);
	assert_int_equal(f->back.losses.n, 2);
	for (size_t i = 0; i < 2; i++)
		assert_memory_equal(&f->back.losses.v[i], &f->rec.losses.v[i],
				    sizeof(struct rec_loss));
}

/* The file's bytes, and the n-th AUXTRACE record in them. */
struct bytes {
	uint8_t *v;
	size_t n;
};

static struct bytes bytes_of(const struct recording *rec)
{
	struct bytes bytes;
	FILE *out = tmpfile();

	perf_data__write(rec, out);
	bytes.n = (size_t)ftell(out);
	fseek(out, 0, SEEK_END);
	bytes.n = (size_t)ftell(out);
	bytes.v = malloc(bytes.n);
	rewind(out);
	assert_int_equal(fread(bytes.v, 1, bytes.n, out), bytes.n);
	fclose(out);
	return bytes;
}

struct auxtrace {
	uint32_t type;
	uint16_t misc, size;
	uint64_t bytes, offset, tsc;
	uint32_t index, tid, cpu, pad;
};

static struct auxtrace *auxtrace_at(const struct bytes *bytes, size_t n)
{
	const struct perf_data_header *header = (const void *)bytes->v;
	uint64_t at = header->data.offset;

	while (at < header->data.offset + header->data.size) {
		struct auxtrace *record = (void *)(bytes->v + at);

		at += record->size;
		if (record->type != PERF_USER_AUXTRACE)
			continue;
		if (!n--)
			return record;
		at += record->bytes;
	}
	fail_msg("no such record");
	return NULL;
}

static void read_bytes(const struct bytes *bytes, struct recording *rec)
{
	const char *why;

	recording__init(rec);
	assert_int_equal(perf_data__read(rec, bytes->v, bytes->n, &why), 0);
}

static void test_pieces_of_one_stream_are_joined_in_order(void **state)
{
	struct fixture *f = *state;
	struct bytes bytes = bytes_of(&f->rec);
	struct recording back;

	/* As perf record writes a buffer, each time that it has looked at it. */
	auxtrace_at(&bytes, 0)->offset = 0x1000;
	auxtrace_at(&bytes, 3)->offset = 0x1010;
	auxtrace_at(&bytes, 3)->tsc = 99;
	read_bytes(&bytes, &back);
	assert_int_equal(back.aux.n, 3);
	assert_int_equal(back.aux.v[0].size, 48);
	assert_int_equal(back.aux.v[0].tsc, 99);
	assert_memory_equal(back.aux.v[0].data, f->rec.aux.v[0].data, 16);
	assert_memory_equal(back.aux.v[0].data + 16, f->rec.aux.v[3].data, 32);
	recording__fini(&back);
	free(bytes.v);
}

static void test_a_hole_between_pieces_is_no_stream(void **state)
{
	struct fixture *f = *state;
	struct bytes bytes = bytes_of(&f->rec);
	struct recording back;

	auxtrace_at(&bytes, 0)->offset = 0x1000;
	auxtrace_at(&bytes, 3)->offset = 0x1018;
	read_bytes(&bytes, &back);
	assert_same_aux(&f->rec, &back);
	recording__fini(&back);
	free(bytes.v);
}

static void test_the_padding_between_pieces_goes(void **state)
{
	struct fixture *f = *state;
	struct bytes bytes = bytes_of(&f->rec);
	struct recording back;

	auxtrace_at(&bytes, 0)->offset = 0x1000;
	auxtrace_at(&bytes, 3)->offset = 0x100b;
	read_bytes(&bytes, &back);
	assert_int_equal(back.aux.n, 3);
	assert_int_equal(back.aux.v[0].size, 11 + 32);
	assert_memory_equal(back.aux.v[0].data, f->rec.aux.v[0].data, 11);
	assert_memory_equal(back.aux.v[0].data + 11, f->rec.aux.v[3].data, 32);
	recording__fini(&back);
	free(bytes.v);
}

/* 'perf record -p' writes the tid of the first thread, too. */
static void test_a_cpu_with_a_tid_is_a_cpu(void **state)
{
	struct fixture *f = *state;
	struct bytes bytes = bytes_of(&f->rec);
	struct recording back;

	for (size_t i = 0; i < 4; i++)
		auxtrace_at(&bytes, i)->tid = 100;
	read_bytes(&bytes, &back);
	assert_same_aux(&f->rec, &back);
	assert_same_switches(&f->rec, &back);
	recording__fini(&back);
	free(bytes.v);
}

static void add_map(struct recording *rec, pid_t pid, uint64_t start, uint64_t ino)
{
	struct rec_map map = {.time_ns = 90,
			      .start = start,
			      .len = 0x2000,
			      .pgoff = 0x1000,
			      .ino = ino,
			      .pid = pid,
			      .path = "/bin/x"};

	assert_int_equal(recording__add_map(rec, &map), 0);
}

static void test_the_probe_is_elsewhere_in_each_process(void **state)
{
	struct fixture *f = *state;
	struct mt_hit hit = {.ip = 0x9999};

	f->rec.pid = 600;
	f->rec.probe_ip = 0x7f0000000123;
	add_map(&f->rec, 600, 0x7f0000000000, 5);
	add_map(&f->rec, 700, 0x560000000000, 5);
	add_map(&f->rec, 700, 0x550000000000, 6);
	hit.tgid = 600;
	assert_int_equal(recording__probe_of(&f->rec, &hit), 0x7f0000000123);
	hit.tgid = 700;
	assert_int_equal(recording__probe_of(&f->rec, &hit), 0x560000000123);
	hit.tgid = 800;
	assert_int_equal(recording__probe_of(&f->rec, &hit), 0x9999);
	f->rec.probe_ip = 0;
	hit.tgid = 600;
	assert_int_equal(recording__probe_of(&f->rec, &hit), 0x9999);
}

/* perf writes what each CPU's buffer holds, one after the other. */
static void test_switches_that_come_by_buffer_are_ordered_by_time(void **state)
{
	struct fixture *f = *state;
	struct recording by_buffer = f->rec;
	struct rec_switch switches[9];
	struct bytes bytes;
	struct recording back;
	size_t n = 0;

	for (int cpu = 255; cpu >= 0; cpu--)
		for (size_t i = 0; i < f->rec.switches.n; i++)
			if (f->rec.switches.v[i].cpu == cpu)
				switches[n++] = f->rec.switches.v[i];
	by_buffer.switches.v = switches;
	bytes = bytes_of(&by_buffer);
	read_bytes(&bytes, &back);
	assert_int_equal(back.switches.n, 9);
	for (size_t i = 1; i < 9; i++)
		assert_true(back.switches.v[i - 1].time_ns <= back.switches.v[i].time_ns);
	assert_int_equal(back.switches.v[8].cpu, 0);
	assert_int_equal(back.switches.v[7].cpu, 255);
	recording__fini(&back);
	free(bytes.v);
}

static void test_a_fork_takes_the_name_and_the_mappings_of_then(void **state)
{
	struct fixture *f = *state;
	const struct rec_thread parent = {.pid = 100, .tid = 105, .comm = "worker"};
	const struct rec_thread thread = {.pid = 100, .tid = 106, .start_ns = 20};
	const struct rec_thread child = {.pid = 500, .tid = 500, .start_ns = 20};
	size_t copied = 0, before = f->rec.maps.n;

	assert_int_equal(recording__add_thread(&f->rec, &parent), 0);
	assert_int_equal(recording__add_fork(&f->rec, &thread, 100, 105), 0);
	assert_int_equal(f->rec.maps.n, before);
	assert_int_equal(recording__add_fork(&f->rec, &child, 100, 105), 0);
	assert_string_equal(recording__find_thread(&f->rec, 500, 500)->comm, "worker");
	assert_string_equal(recording__find_thread(&f->rec, 100, 106)->comm, "worker");
	for (size_t i = 0; i < f->rec.maps.n; i++) {
		if (f->rec.maps.v[i].pid != 500)
			continue;
		copied++;
		assert_int_equal(f->rec.maps.v[i].time_ns, 20);
	}
	/* Those of times 0, 10 and 20; not those of 30 and 40. */
	assert_int_equal(copied, 3);
}

#undef TEST
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up_by_cpu, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_what_is_written_is_read),
		TEST(test_pieces_of_one_stream_are_joined_in_order),
		TEST(test_the_padding_between_pieces_goes),
		TEST(test_a_cpu_with_a_tid_is_a_cpu),
		TEST(test_the_probe_is_elsewhere_in_each_process),
		TEST(test_a_hole_between_pieces_is_no_stream),
		TEST(test_switches_that_come_by_buffer_are_ordered_by_time),
		TEST(test_a_fork_takes_the_name_and_the_mappings_of_then),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
