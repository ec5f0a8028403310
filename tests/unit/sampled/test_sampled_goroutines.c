// SPDX-License-Identifier: MIT
/* Calls of goroutines, which no thread's stack holds: a track each. */
#include "sampled_fixture.h"

#include <elf.h>

/* runtime.gopark() at PARK, in a program that Go 1.19 has built: its version tells what reasons
 * mean. */
#define GO   0x50000ull
#define PARK (GO + 0x800)

static void map_go(struct recording *rec)
{
	static const char names[] = "\0.text\0.symtab\0.go.buildinfo\0.strtab\0runtime.gopark";
	static const char info[] = "\xff Go buildinf:\x08\x02";
	struct {
		Elf64_Ehdr header;
		Elf64_Phdr segment;
		Elf64_Shdr sections[5];
		Elf64_Sym symbols[2];
		char names[64], info[64], pad[0x800 - 64 - 56 - 320 - 48 - 128], code[LEN];
	} file = {
		.header = {.e_ident = ELFMAG "\2\1\1",
			   .e_type = ET_DYN,
			   .e_machine = EM_X86_64,
			   .e_version = EV_CURRENT,
			   .e_ehsize = sizeof(Elf64_Ehdr),
			   .e_phoff = offsetof(__typeof__(file), segment),
			   .e_phentsize = sizeof(Elf64_Phdr),
			   .e_phnum = 1,
			   .e_shoff = offsetof(__typeof__(file), sections),
			   .e_shentsize = sizeof(Elf64_Shdr),
			   .e_shnum = 5,
			   .e_shstrndx = 4},
		.segment = {.p_type = PT_LOAD,
			    .p_flags = PF_R | PF_X,
			    .p_filesz = sizeof(file),
			    .p_memsz = sizeof(file)},
		.sections = {{0},
			     {1, SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR, PARK - GO, PARK - GO, LEN,
			      0, 0, 1, 0},
			     {7, SHT_SYMTAB, 0, 0, offsetof(__typeof__(file), symbols),
			      sizeof(file.symbols), 4, 1, 8, sizeof(Elf64_Sym)},
			     {15, SHT_PROGBITS, SHF_ALLOC, offsetof(__typeof__(file), info),
			      offsetof(__typeof__(file), info), sizeof(file.info), 0, 0, 1, 0},
			     {29, SHT_STRTAB, 0, 0, offsetof(__typeof__(file), names),
			      sizeof(file.names), 0, 0, 1, 0}},
		.symbols = {{0}, {37, ELF64_ST_INFO(STB_GLOBAL, STT_FUNC), 0, 1, PARK - GO, LEN}},
	};
	struct rec_map map = {
		.start = GO, .len = sizeof(file), .pid = PID, .tid = PID, .path = (char *)"[go]"};
	struct rec_image image = {.path = (char *)"[go]",
				  .start = GO,
				  .data = (void *)&file,
				  .size = sizeof(file),
				  .is_elf = true};

	memcpy(file.names, names, sizeof(names));
	memcpy(file.info, info, sizeof(info));
	strcpy(file.info + 32, "\006go1.19");
	memset(file.code, 0x90, sizeof(file.code));
	assert_int_equal(recording__add_map(rec, &map), 0);
	assert_int_equal(recording__add_image(rec, &image), 0);
}

static void add(struct fixture *f, uint32_t goroutine, pid_t tid, struct mt_entry entry)
{
	entry.goroutine = goroutine;
	entry.kind = entry.kind ? entry.kind : MT_ENTRY_CALL;
	entry.tid = (uint32_t)tid;
	assert_int_equal(VEC_ADD(&f->rec.entries, entry), 0);
}

/* In whatever order, and on whatever thread they ended; what the threads show stays as it is. */
static void test_a_track_a_goroutine(void **state)
{
	struct fixture *f = *state;
	struct rec_thread thread = {.pid = PID, .tid = TID + 1, .comm = "server"};

	assert_int_equal(recording__add_thread(&f->rec, &thread), 0);
	SAMPLE(f, TID, 1000, MAIN + 8);
	SAMPLE(f, TID, 1300, MAIN + 8);
	add(f, 7, TID, entry_of(FIND, 1100, 1150));
	add(f, 9, TID, entry_of(FIND, 1120, 1220));
	add(f, 7, TID + 1, entry_of(ITER, 1010, 1200));
	add(f, 7, TID + 1, entry_of(FIND, 1200, 1250));
	f->rec.frozen_ns = 1300;
	make_trees(f, 3);
	assert_tree(&f->trees[0], "[main] 1000-1300 inferred-start inferred-end\n");
	assert_int_equal(f->trees[1].pid, PID);
	assert_int_equal(f->trees[1].tid, TID + 1);
	assert_string_equal(f->trees[1].comm, "server");
	assert_int_equal(f->trees[1].coroutine, 1);
	assert_string_equal(f->trees[1].coroutine_name, "goroutine 1");
	assert_tree(&f->trees[1], "[iter] 1010-1200\n"
				  "  [not recorded] 1010-1100\n"
				  "  [find] 1100-1150\n"
				  "    [not recorded] 1100-1150\n"
				  "  [not recorded] 1150-1200\n"
				  "[find] 1200-1250\n"
				  "  [not recorded] 1200-1250\n");
	assert_int_equal(f->trees[2].coroutine, 2);
	assert_tree(&f->trees[2], "[find] 1120-1220\n"
				  "  [not recorded] 1120-1220\n");
}

static void test_ends_that_are_not_known(void **state)
{
	struct fixture *f = *state;
	struct mt_entry left = entry_of(FIND, 1100, 1150);

	left.kind = MT_ENTRY_LEFT;
	add(f, 7, TID, entry_of(MAIN, 1000, 0));
	add(f, 7, TID, entry_of(ITER, 1010, 1200));
	add(f, 7, TID, left);
	/* Longer than what called it. */
	add(f, 7, TID, entry_of(FIND, 1160, 1210));
	hit(f, 1300);
	/* Of the next snapshot. */
	add(f, 7, TID, entry_of(ITER, 2000, 0));
	f->rec.frozen_ns = 2100;
	make_trees(f, 2);
	assert_tree(&f->trees[1], "[main] 1000-1300 inferred-end\n"
				  "  [not recorded] 1000-1010\n"
				  "  [iter] 1010-1200\n"
				  "    [not recorded] 1010-1100\n"
				  "    [find] 1100-1150 inferred-end\n"
				  "      [not recorded] 1100-1150\n"
				  "    [not recorded] 1150-1160\n"
				  "    [find] 1160-1200 inferred-end\n"
				  "      [not recorded] 1160-1200\n"
				  "  [not recorded] 1200-1300\n"
				  "[iter] 2000-2100 inferred-end\n"
				  "  [not recorded] 2000-2100\n");
	assert_int_equal(f->totals.first_ns, 1000);
}

/* Where it began is in the upper bits, what it waits for in the lowest eight. */
static struct mt_entry park_of(uint64_t start_ns, uint64_t end_ns, pid_t began_in, uint8_t reason)
{
	struct mt_entry entry = entry_of(PARK, start_ns, end_ns);

	entry.returns_to = (uint64_t)began_in << 8 | reason;
	return entry;
}

/*
 * It begins on one thread, waits, and goes on in another: of either what its stacks show of the
 * call, and nothing of what they did meanwhile.
 */
static void test_a_call_that_waits(void **state)
{
	struct fixture *f = *state;

	map_go(&f->rec);
	SAMPLE(f, TID, 1000, FIND + 4, ITER + 8, MAIN + 8);
	SAMPLE(f, TID, 1100, FIND + 4, ITER + 8, MAIN + 8);
	SAMPLE(f, TID, 1200, MAIN + 12);
	SAMPLE(f, TID, 1300, MAIN + 12);
	SAMPLE(f, TID + 1, 1200, MAIN + 16);
	SAMPLE(f, TID + 1, 1300, ITER + 4, MAIN + 8);
	SAMPLE(f, TID + 1, 1400, ITER + 4, MAIN + 8);
	add(f, 7, TID + 1, entry_of(ITER, 1010, 1420));
	add(f, 7, TID + 1, park_of(1120, 1260, TID, 14));
	f->rec.frozen_ns = 1430;
	interrupts(f, TID, 1000, 1020, 10);
	interrupts(f, TID, 1200, 1300, 50);
	interrupts(f, TID + 1, 1400, 1440, 20);
	make_trees(f, 3);
	assert_tree(&f->trees[2], "[iter] 1010-1420\n"
				  "  [find] 1010-1120 inferred-start inferred-end\n"
				  "  [blocked] 1120-1260\n");
	assert_int_equal(f->trees[2].waits.n, 1);
	assert_string_equal(f->trees[2].waits.v[0].text, "chan receive");
	/* Of either thread what lies in the call. */
	assert_int_equal(f->trees[2].interrupts.n, 2);
	assert_int_equal(f->trees[2].interrupts.v[0].start_ns, 1010);
	assert_int_equal(f->trees[2].interrupts.v[0].end_ns, 1020);
	assert_int_equal(f->trees[2].interrupts.v[0].ns, 5);
	assert_int_equal(f->trees[2].interrupts.v[1].start_ns, 1400);
	assert_int_equal(f->trees[2].interrupts.v[1].end_ns, 1420);
	assert_int_equal(f->trees[2].interrupts.v[1].ns, 10);
}

/* It is preempted in one thread, and goes on in another: as far as either shows it. */
static void test_a_call_that_moves(void **state)
{
	struct fixture *f = *state;
	struct mt_entry entry = entry_of(ITER, 1010, 1420);

	map_code(&f->rec, 0, PLUGIN, "runtime.gopreempt_m");
	SAMPLE(f, TID, 1000, FIND + 4, ITER + 8, MAIN + 8);
	SAMPLE(f, TID, 1100, FIND + 4, ITER + 8, MAIN + 8);
	SAMPLE(f, TID, 1200, PLUGIN + 4, ITER + 8, MAIN + 8);
	SAMPLE(f, TID, 1300, PLUGIN + 4, ITER + 8, MAIN + 8);
	/* Another goroutine's call. */
	SAMPLE(f, TID, 1400, ITER + 4, MAIN + 8);
	SAMPLE(f, TID + 1, 1200, MAIN + 16);
	SAMPLE(f, TID + 1, 1300, ITER + 4, MAIN + 8);
	SAMPLE(f, TID + 1, 1400, ITER + 4, MAIN + 8);
	entry.returns_to = (uint64_t)TID << 8;
	add(f, 7, TID + 1, entry);
	add(f, 8, TID, entry_of(ITER, 1330, 1430));
	f->rec.frozen_ns = 1430;
	make_trees(f, 4);
	assert_tree(&f->trees[2], "[iter] 1010-1420\n"
				  "  [find] 1010-1150 inferred-start inferred-end\n"
				  "  [not recorded] 1150-1250\n");
}

/* One that two others run between has the call alone: it is seen wherever it goes. */
static void test_the_only_call_in_three_threads(void **state)
{
	struct fixture *f = *state;
	struct mt_entry entry = entry_of(ITER, 1010, 1620);

	map_code(&f->rec, 0, PLUGIN, "runtime.gopreempt_m");
	SAMPLE(f, TID, 1000, FIND + 4, ITER + 8, MAIN + 8);
	SAMPLE(f, TID, 1100, FIND + 4, ITER + 8, MAIN + 8);
	SAMPLE(f, TID, 1200, PLUGIN + 4, ITER + 8, MAIN + 8);
	SAMPLE(f, TID, 1300, MAIN + 16);
	SAMPLE(f, TID, 1400, ITER + 4, MAIN + 8);
	SAMPLE(f, TID, 1500, ITER + 4, MAIN + 8);
	SAMPLE(f, TID, 1600, MAIN + 16);
	SAMPLE(f, TID + 1, 1200, MAIN + 16);
	SAMPLE(f, TID + 1, 1300, FIND + 4, ITER + 4, MAIN + 8);
	SAMPLE(f, TID + 1, 1400, MAIN + 16);
	SAMPLE(f, TID + 1, 1600, ITER + 4, MAIN + 8);
	entry.returns_to = (uint64_t)TID << 8;
	add(f, 7, TID + 1, entry);
	f->rec.frozen_ns = 1630;
	make_trees(f, 3);
	assert_tree(&f->trees[2], "[iter] 1010-1620\n"
				  "  [find] 1010-1150 inferred-start inferred-end\n"
				  "  [not recorded] 1150-1250\n"
				  "  [find] 1250-1350 inferred-start inferred-end\n");
}

/* The stacks of one that began before it was probed are not taken for this one's. */
static void test_a_call_that_nobody_has_logged(void **state)
{
	struct fixture *f = *state;

	for (uint64_t time = 100; time <= 1600; time += 100)
		SAMPLE(f, TID + 1, time, FIND + 4, ITER + 4, MAIN + 8);
	SAMPLE(f, TID, 1000, MAIN + 16);
	SAMPLE(f, TID, 1600, MAIN + 16);
	add(f, 7, TID, entry_of(ITER, 1010, 1420));
	f->rec.frozen_ns = 1630;
	make_trees(f, 3);
	assert_tree(&f->trees[2], "[iter] 1010-1420\n"
				  "  [not recorded] 1010-1420\n");
}

/* It was moved, and nobody saw where to: the thread's stacks are another goroutine's. */
static void test_a_thread_that_is_at_something_else(void **state)
{
	struct fixture *f = *state;

	map_go(&f->rec);
	SAMPLE(f, TID, 1000, FIND + 4, MAIN + 8);
	SAMPLE(f, TID, 1100, FIND + 4, MAIN + 8);
	SAMPLE(f, TID, 1200, FIND + 4, MAIN + 8);
	add(f, 7, TID, entry_of(ITER, 1010, 1190));
	add(f, 7, TID, park_of(1100, 1150, TID, 200));
	f->rec.frozen_ns = 1200;
	make_trees(f, 2);
	assert_tree(&f->trees[1], "[iter] 1010-1190\n"
				  "  [not recorded] 1010-1100\n"
				  "  [blocked] 1100-1150\n"
				  "  [not recorded] 1150-1190\n");
	assert_int_equal(f->trees[1].waits.n, 0);
}

#define READY  0x60000ull
#define HELPER 0x70000ull
#define OTHER  0x80000ull
#define INLINE 0xa0000ull

/* Of goroutine 7, or another one, in thread TID + 1. */
static void ready(struct fixture *f, uint64_t time_ns, uint32_t goroutine, uint64_t by_goid)
{
	struct mt_entry entry = {.start_ns = time_ns,
				 .tgid = PID,
				 .kind = MT_ENTRY_READY,
				 .goid = by_goid,
				 .ip = READY};

	add(f, goroutine, TID + 1, entry);
}

/* In iter from 1010 to 1420, and parked in it from 1120 to 1260. */
static void add_call_that_waits(struct fixture *f)
{
	map_go(&f->rec);
	map_code(&f->rec, 0, READY, "runtime.ready");
	SAMPLE(f, TID, 1000, FIND + 4, ITER + 8, MAIN + 8);
	SAMPLE(f, TID, 1100, FIND + 4, ITER + 8, MAIN + 8);
	add(f, 7, TID, entry_of(ITER, 1010, 1260));
	add(f, 7, TID, park_of(1120, 1260, TID, 14));
	f->rec.frozen_ns = 1430;
}

static void expect_ready_at_1200(struct fixture *f)
{
	make_trees(f, 3);
	assert_tree(&f->trees[2], "[iter] 1010-1260\n"
				  "  [find] 1010-1120 inferred-start inferred-end\n"
				  "  [blocked] 1120-1200\n"
				  "  [runnable] 1200-1260\n");
	assert_int_equal(f->trees[2].waits.n, 2);
	assert_int_equal(f->trees[2].waits.v[0].call, 2);
	assert_string_equal(f->trees[2].waits.v[0].text, "chan receive");
	assert_int_equal(f->trees[2].waits.v[1].call, 3);
	assert_string_equal(f->trees[2].waits.v[1].text, "a thread of Go's runtime");
}

/*
 * The waker is named by the innermost function that is neither the runtime's nor sync's, nor a
 * closure of an inlined one, whose package is not known.
 */
static void test_who_made_it_ready(void **state)
{
	struct fixture *f = *state;
	const struct done_by *by;

	add_call_that_waits(f);
	map_code(&f->rec, 0, HELPER, "sync.(*Mutex).unlockSlow");
	map_code(&f->rec, 0, OTHER, "main.holder");
	map_code(&f->rec, 0, INLINE, "_.goready.func1");
	SAMPLE(f, TID + 1, 1200, READY, INLINE + 8, HELPER + 8, OTHER + 8, MAIN + 8);
	/* Before it waits, another one's, and behind it. */
	ready(f, 1110, 7, 19);
	ready(f, 1250, 8, 20);
	ready(f, 1200, 7, 18);
	ready(f, 1261, 7, 21);
	expect_ready_at_1200(f);
	assert_int_equal(f->trees[2].done_by.n, 1);
	by = call_tree__done_by(&f->trees[2], &f->trees[2].calls.v[2]);
	assert_true(by->is_goroutine);
	assert_string_equal(by->comm, "goroutine 18");
	assert_string_equal(by->in, "main.holder");
	assert_int_equal(by->tid, TID + 1);
	assert_int_equal(by->ns, 80);
}

/* A timer runs on the scheduler's stack, behind which lies the goroutine that ran there before. */
static void test_the_runtime_made_it_ready(void **state)
{
	struct fixture *f = *state;
	const struct done_by *by;

	add_call_that_waits(f);
	map_code(&f->rec, 0, HELPER, "runtime.schedule");
	map_code(&f->rec, 0, OTHER, "main.bystander");
	SAMPLE(f, TID + 1, 1200, READY, HELPER + 8, OTHER + 8, MAIN + 8);
	ready(f, 1200, 7, 0);
	expect_ready_at_1200(f);
	assert_int_equal(f->trees[2].done_by.n, 1);
	by = &f->trees[2].done_by.v[0];
	assert_string_equal(by->comm, "Go's runtime");
	assert_null(by->in);
}

static void test_nobody_knows_who_made_it_ready(void **state)
{
	struct fixture *f = *state;

	add_call_that_waits(f);
	ready(f, 1200, 7, MT_GOID_UNKNOWN);
	make_trees(f, 2);
	assert_int_equal(f->trees[1].calls.n, 4);
	assert_int_equal(f->trees[1].calls.v[3].reason, OFF_RUNNABLE);
	assert_int_equal(f->trees[1].done_by.n, 0);
}

/* The stack of where it began to wait: not what its thread does after that. */
static void test_where_it_waits(void **state)
{
	struct fixture *f = *state;

	add_call_that_waits(f);
	map_code(&f->rec, 0, HELPER, "runtime.chanrecv1");
	map_code(&f->rec, 0, OTHER, "main.backend");
	SAMPLE(f, TID, 1120, PARK + 4, HELPER + 8, OTHER + 8, ITER + 8, MAIN + 8)->at_park = true;
	make_trees(f, 2);
	assert_tree(&f->trees[1], "[iter] 1010-1260\n"
				  "  [find] 1010-1120 inferred-start inferred-end\n"
				  "  main.backend 1120-1260 inferred-start inferred-end\n"
				  "    [blocked] 1120-1260\n");
	assert_string_equal(call_tree__waits_for(&f->trees[1], &f->trees[1].calls.v[3])->text,
			    "chan receive");
	for (size_t i = 0; i < f->trees[0].calls.n; i++)
		assert_true(f->trees[0].calls.v[i].function != f->trees[1].calls.v[2].function);
}

/* It was in that function before, as far as stacks tell. */
static void test_it_waits_where_it_was(void **state)
{
	struct fixture *f = *state;

	add_call_that_waits(f);
	SAMPLE(f, TID, 1120, PARK + 4, FIND + 8, ITER + 8, MAIN + 8)->at_park = true;
	make_trees(f, 2);
	assert_tree(&f->trees[1], "[iter] 1010-1260\n"
				  "  [find] 1010-1260 inferred-start inferred-end\n"
				  "    [blocked] 1120-1260\n");
}

/* A stack that does not lead to the call, and one of another time, tell nothing. */
static void test_a_wait_without_its_stack(void **state)
{
	struct fixture *f = *state;

	add_call_that_waits(f);
	SAMPLE(f, TID, 1120, PARK + 4, FIND + 8, MAIN + 8)->at_park = true;
	SAMPLE(f, TID, 1119, PARK + 4, FIND + 8, ITER + 8, MAIN + 8)->at_park = true;
	make_trees(f, 2);
	assert_tree(&f->trees[1], "[iter] 1010-1260\n"
				  "  [find] 1010-1120 inferred-start inferred-end\n"
				  "  [blocked] 1120-1260\n");
}

static void add_goid(struct fixture *f, uint64_t goid, struct mt_entry entry)
{
	entry.goid = goid;
	add(f, 7, TID, entry);
}

/* As Go's own messages number them; what one leaves behind another one uses. */
static void test_goroutines_have_names(void **state)
{
	struct fixture *f = *state;

	add_goid(f, 18, entry_of(ITER, 1000, 1100));
	add_goid(f, 18, entry_of(ITER, 1200, 1300));
	f->rec.frozen_ns = 1400;
	make_trees(f, 1);
	assert_string_equal(f->trees[0].coroutine_name, "goroutine 18");
}

static void test_two_goroutines_in_one_place(void **state)
{
	struct fixture *f = *state;

	add_goid(f, 18, entry_of(ITER, 1000, 1100));
	add_goid(f, 95, entry_of(ITER, 1200, 1300));
	f->rec.frozen_ns = 1400;
	make_trees(f, 1);
	assert_string_equal(f->trees[0].coroutine_name, "goroutines 18 to 95");
}

/* From 1100 on the world was being stopped, from 1150 on it stood still, until 1250. */
static void stop_the_world(struct fixture *f)
{
	map_code(&f->rec, 0, READY, "runtime.stopTheWorldWithSema");
	map_code(&f->rec, 0, HELPER, "runtime.startTheWorldWithSema");
	add(f, 99, TID + 1, entry_of(READY, 1100, 1150));
	add(f, 99, TID + 1, entry_of(HELPER, 1250, 1260));
	add(f, 7, TID, entry_of(ITER, 1010, 1420));
	f->rec.frozen_ns = 1430;
}

/* While it was being stopped it may have run, and nobody saw that. */
static void test_the_world_stands_still(void **state)
{
	struct fixture *f = *state;

	stop_the_world(f);
	make_trees(f, 1);
	assert_tree(&f->trees[0], "[iter] 1010-1420\n"
				  "  [not recorded] 1010-1150\n"
				  "  [blocked] 1150-1250\n"
				  "  [not recorded] 1250-1420\n");
	assert_int_equal(f->trees[0].waits.n, 1);
	assert_int_equal(f->trees[0].waits.v[0].call, 2);
	assert_string_equal(f->trees[0].waits.v[0].text, "stop-the-world");
}

/* It went to the scheduler, which lets nobody run then. */
static void test_it_stops_with_the_world(void **state)
{
	struct fixture *f = *state;

	map_code(&f->rec, 0, OTHER, "runtime.gopreempt_m");
	SAMPLE(f, TID, 1000, ITER + 8, MAIN + 8);
	SAMPLE(f, TID, 1120, OTHER + 4, ITER + 8, MAIN + 8);
	SAMPLE(f, TID, 1220, OTHER + 4, ITER + 8, MAIN + 8);
	SAMPLE(f, TID, 1300, OTHER + 4, ITER + 8, MAIN + 8);
	stop_the_world(f);
	make_trees(f, 2);
	assert_tree(&f->trees[1], "[iter] 1010-1420\n"
				  "  [not recorded] 1060-1100\n"
				  "  [blocked] 1100-1250\n"
				  "  [not recorded] 1250-1420\n");
}

#define MORESTACK 0x90000ull

/* The scheduler's stack tells of no caller then: it follows the goroutine's. */
static void test_it_stops_in_a_prologue(void **state)
{
	struct fixture *f = *state;

	map_code(&f->rec, 0, OTHER, "runtime.gopreempt_m");
	map_code(&f->rec, 0, MORESTACK, "runtime.morestack.abi0");
	SAMPLE(f, TID, 1000, ITER + 8, MAIN + 8);
	SAMPLE(f, TID, 1120, OTHER + 4, MORESTACK + 8);
	SAMPLE(f, TID, 1220, OTHER + 4, MORESTACK + 8);
	SAMPLE(f, TID, 1300, OTHER + 4, MORESTACK + 8);
	stop_the_world(f);
	make_trees(f, 2);
	assert_tree(&f->trees[1], "[iter] 1010-1420\n"
				  "  [not recorded] 1060-1100\n"
				  "  [blocked] 1100-1250\n"
				  "  [not recorded] 1250-1420\n");
}

/* Its stack grows, and it goes on: that is no way to the scheduler. */
static void test_a_stack_that_grows(void **state)
{
	struct fixture *f = *state;

	map_code(&f->rec, 0, OTHER, "runtime.copystack");
	map_code(&f->rec, 0, MORESTACK, "runtime.morestack.abi0");
	SAMPLE(f, TID, 1000, ITER + 8, MAIN + 8);
	SAMPLE(f, TID, 1120, OTHER + 4, MORESTACK + 8);
	SAMPLE(f, TID, 1220, OTHER + 4, MORESTACK + 8);
	stop_the_world(f);
	make_trees(f, 2);
	assert_tree(&f->trees[1], "[iter] 1010-1420\n"
				  "  [not recorded] 1060-1150\n"
				  "  [blocked] 1150-1250\n"
				  "  [not recorded] 1250-1420\n");
}

/* It is not seen to run, only in the scheduler. */
static void test_it_is_only_seen_to_stop(void **state)
{
	struct fixture *f = *state;

	map_code(&f->rec, 0, OTHER, "runtime.gopreempt_m");
	SAMPLE(f, TID, 1000, MAIN + 16);
	SAMPLE(f, TID, 1120, OTHER + 4, ITER + 8, MAIN + 8);
	SAMPLE(f, TID, 1300, OTHER + 4, ITER + 8, MAIN + 8);
	stop_the_world(f);
	make_trees(f, 2);
	assert_tree(&f->trees[1], "[iter] 1010-1420\n"
				  "  [not recorded] 1010-1100\n"
				  "  [blocked] 1100-1250\n"
				  "  [not recorded] 1250-1420\n");
}

/* BPF's programs run before what is mapped has been noted. */
static void test_calls_before_the_maps(void **state)
{
	struct fixture *f = *state;

	map_code(&f->rec, 5000, PLUGIN, "[plugin]");
	for (size_t i = 0; i < f->rec.maps.n; i++)
		f->rec.maps.v[i].time_ns = 5000;
	add(f, 7, TID, entry_of(PLUGIN, 1000, 1100));
	SAMPLE(f, TID, 5010, MAIN + 8);
	f->rec.frozen_ns = 6000;
	make_trees(f, 2);
	assert_tree(&f->trees[1], "[plugin] 1000-1100\n"
				  "  [not recorded] 1000-1100\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_a_track_a_goroutine),
		TEST(test_ends_that_are_not_known),
		TEST(test_a_call_that_moves),
		TEST(test_the_only_call_in_three_threads),
		TEST(test_it_is_only_seen_to_stop),
		TEST(test_a_call_that_nobody_has_logged),
		TEST(test_a_call_that_waits),
		TEST(test_a_thread_that_is_at_something_else),
		TEST(test_calls_before_the_maps),
		TEST(test_who_made_it_ready),
		TEST(test_the_runtime_made_it_ready),
		TEST(test_nobody_knows_who_made_it_ready),
		TEST(test_where_it_waits),
		TEST(test_it_waits_where_it_was),
		TEST(test_a_wait_without_its_stack),
		TEST(test_goroutines_have_names),
		TEST(test_two_goroutines_in_one_place),
		TEST(test_the_world_stands_still),
		TEST(test_it_stops_in_a_prologue),
		TEST(test_a_stack_that_grows),
		TEST(test_it_stops_with_the_world),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
