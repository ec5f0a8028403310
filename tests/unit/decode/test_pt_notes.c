// SPDX-License-Identifier: MIT
/* Values of PTWRITE and what CPUs say of power, as libipt's encoder writes them. */
#include "packets_fixture.h"

#include "decode/pt_note.h"
#include "decode/decode.h"
#include "pipeline/pipeline.h"

struct notes {
	VEC(struct pt_note) all;
	VEC(struct branch) branches;
	pid_t tid; /* of the thread that has begun; 0: none yet */
};

static void add_note(struct notes *notes, const struct pt_note *note)
{
	assert_int_equal(note->tid, notes->tid);
	assert_int_equal(VEC_ADD(&notes->all, *note), 0);
}

static int take_all(void *ctx, struct branch *v, size_t n)
{
	struct notes *notes = ctx;

	for (size_t i = 0; i < n; i++) {
		struct pt_note note = branch__note(&v[i], PID, notes->tid);

		if (v[i].kind == ENTRY_NOTE)
			add_note(notes, &note);
		else if (!branch__is_entry(&v[i]))
			assert_int_equal(VEC_ADD(&notes->branches, v[i]), 0);
	}
	return 0;
}

static int take_notes(void *ctx, const struct pt_note *v, size_t n)
{
	for (size_t i = 0; i < n; i++)
		add_note(ctx, &v[i]);
	return 0;
}

static int begin_thread(void *ctx, pid_t pid, pid_t tid, struct code_map *map)
{
	struct notes *notes = ctx;

	notes->tid = tid;
	return 0;
}

static int end_thread(void *ctx)
{
	return 0;
}

/* By the decoder's own words for a packet. */
static void put_packet(struct traced *t, const struct pt_packet *packet)
{
	uint8_t bytes[64] = {0};
	struct pt_encoder *encoder;
	struct pt_config config;
	int n;

	pt_config_init(&config);
	config.begin = bytes;
	config.end = bytes + sizeof(bytes);
	encoder = pt_alloc_encoder(&config);
	assert_non_null(encoder);
	n = pt_enc_next(encoder, packet);
	assert_true(n > 0);
	put(t, bytes, (unsigned int)n);
	pt_free_encoder(encoder);
}

static void put_ptw(struct traced *t, uint64_t value, bool is_wide, bool has_fup)
{
	struct pt_packet packet = {.type = ppt_ptw};

	packet.payload.ptw.payload = value;
	packet.payload.ptw.plc = is_wide;
	packet.payload.ptw.ip = has_fup;
	put_packet(t, &packet);
}

static void decode_notes(struct traced *t, struct notes *notes, bool by_cpu)
{
	struct rec_aux aux = {.pid = PID, .tid = TID, .tsc = t->now, .size = t->out.bytes.n};
	struct branch_receiver receiver = {.begin = begin_thread,
					   .take = take_all,
					   .take_notes = take_notes,
					   .end = end_thread,
					   .ctx = notes};
	struct decode_totals totals = {0};
	struct images *images;

	if (by_cpu)
		aux.pid = aux.tid = 0;
	aux.cpu = by_cpu ? 3 : 0;
	aux.data = malloc(aux.size);
	assert_non_null(aux.data);
	memcpy(aux.data, t->out.bytes.v, aux.size);
	assert_int_equal(recording__add_aux(&t->rec, &aux), 0);
	images = images__new(&t->rec);
	assert_non_null(images);
	assert_int_equal(decode__threads(&t->rec, images, true, &receiver, &totals), 0);
	images__free(images);
}

static void notes__fini(struct notes *notes)
{
	VEC_FINI(&notes->all);
	VEC_FINI(&notes->branches);
}

static void assert_note(const struct notes *notes, size_t i, enum pt_note_kind kind,
			uint64_t time_ns, uint64_t ip, uint64_t value)
{
	assert_true(i < notes->all.n);
	assert_int_equal(notes->all.v[i].kind, kind);
	assert_int_equal(notes->all.v[i].time_ns, time_ns);
	assert_int_equal(notes->all.v[i].ip, ip);
	assert_int_equal(notes->all.v[i].value, value);
}

/* The branches beside them are the same as without. */
static void test_values(void **state)
{
	struct traced *t = *state;
	struct notes notes = {0};

	put_psb(t, 1000, BASE);
	put_ptw(t, 0x1122334455667788, true, false);
	put_tsc(t, 1010);
	put_ptw(t, 42, false, true);
	put_ip(t, PT_FUP, BASE + F); /* within the call */
	put_tnt(t, "T");	     /* the RET of F */
	put_tsc(t, 1020);
	put_tip(t, G);
	put_ptw(t, 7, true, true);
	put_tsc(t, 1030); /* the FUP comes later; it was then */
	put_ip(t, PT_FUP, BASE + G);
	put_ip(t, PT_FUP, BASE + G);
	put_ip(t, PT_TIP_PGD, 0);
	decode_notes(t, &notes, false);
	assert_int_equal(notes.all.n, 3);
	assert_note(&notes, 0, PT_NOTE_PTWRITE, 1000, 0, 0x1122334455667788);
	assert_note(&notes, 1, PT_NOTE_PTWRITE, 1010, BASE + F, 42);
	assert_note(&notes, 2, PT_NOTE_PTWRITE, 1020, BASE + G, 7);
	assert_int_equal(notes.all.v[2].pid, PID);
	assert_int_equal(notes.branches.n, 5);
	assert_int_equal(notes.branches.v[0].kind, BRANCH_BEGIN);
	assert_int_equal(notes.branches.v[1].kind, BRANCH_CALL);
	assert_int_equal(notes.branches.v[1].time_ns, 1000);
	assert_int_equal(notes.branches.v[2].kind, BRANCH_RETURN);
	assert_int_equal(notes.branches.v[3].kind, BRANCH_CALL);
	assert_int_equal(notes.branches.v[4].kind, BRANCH_END_ASYNC);
	notes__fini(&notes);
}

/* A FUP that is missing takes no other one's place: the next value, or a PSB, says that it is. */
static void test_values_without_their_fup(void **state)
{
	struct traced *t = *state;
	struct notes notes = {0};

	put_psb(t, 1000, BASE);
	put_ptw(t, 1, false, true);
	put_ptw(t, 2, false, true);
	put_ip(t, PT_FUP, BASE);
	put_ptw(t, 3, false, true);
	decode_notes(t, &notes, false);
	assert_int_equal(notes.all.n, 3);
	assert_note(&notes, 0, PT_NOTE_PTWRITE, 1000, 0, 1);
	assert_note(&notes, 1, PT_NOTE_PTWRITE, 1000, BASE, 2);
	assert_note(&notes, 2, PT_NOTE_PTWRITE, 1000, 0, 3);
	notes__fini(&notes);
}

/* MWAIT, PWRE and the FUP, EXSTOP; the CPU sleeps; PWRX. No thread runs there. */
static void test_power(void **state)
{
	struct traced *t = *state;
	struct rec_switch nobody = {.time_ns = 1, .cpu = 3};
	struct pt_packet packet = {.type = ppt_mwait};
	struct notes notes = {0};
	char text[PT_NOTE_TEXT_SIZE];

	assert_int_equal(recording__add_switch(&t->rec, &nobody), 0);
	put_psb(t, 1000, 0);
	packet.payload.mwait.hints = 0x60;
	packet.payload.mwait.ext = 1;
	put_packet(t, &packet);
	/* libipt has another bit for "by hardware" than the SDM and perf. */
	put(t, (const uint8_t[]){0x02, 0x22, 0x80, 0x61}, 4);
	put_ip(t, PT_FUP, KERNEL + 1);
	packet = (struct pt_packet){.type = ppt_exstop};
	put_packet(t, &packet);
	put_tsc(t, 2000);
	packet = (struct pt_packet){.type = ppt_pwrx};
	packet.payload.pwrx.last = 3;
	packet.payload.pwrx.deepest = 6;
	packet.payload.pwrx.interrupt = 1;
	put_packet(t, &packet);
	decode_notes(t, &notes, true);
	assert_int_equal(notes.all.n, 4);
	assert_note(&notes, 0, PT_NOTE_PWRE, 1000, 0, 0x161);
	assert_note(&notes, 1, PT_NOTE_MWAIT, 1000, KERNEL + 1, 0x100000060);
	assert_note(&notes, 2, PT_NOTE_EXSTOP, 1000, 0, 0);
	assert_note(&notes, 3, PT_NOTE_PWRX, 2000, 0, 0x136);
	assert_int_equal(notes.all.v[3].cpu, 3);
	assert_string_equal(pt_note__format(&notes.all.v[0], text),
			    "pwre cstate 6 sub-cstate 1 hw 1");
	assert_string_equal(pt_note__format(&notes.all.v[1], text),
			    "mwait hints 0x60 extensions 0x1");
	assert_string_equal(pt_note__format(&notes.all.v[2], text), "exstop");
	assert_string_equal(pt_note__format(&notes.all.v[3], text),
			    "pwrx deepest cstate 6 last cstate 3 wake reason 0x1");
	notes__fini(&notes);
}

/* SDM "Control Flow Event (CFE) Packet", "Event Data (EVD) Packet". */
static void put_cfe(struct traced *t, uint8_t type, uint8_t vector, bool has_ip)
{
	put(t, (const uint8_t[]){0x02, 0x13, (uint8_t)(type | (has_ip ? 0x80 : 0)), vector}, 4);
}

static void put_evd(struct traced *t, uint8_t type, uint64_t value)
{
	uint8_t packet[11] = {0x02, 0x53, type};

	memcpy(packet + 3, &value, sizeof(value));
	put(t, packet, sizeof(packet));
}

/*
 * A page fault: its address, then the event, whose place is the FUP of its branch. The call before
 * it keeps its time.
 */
static void test_an_event_of_a_branch(void **state)
{
	struct traced *t = *state;
	struct notes notes = {0};

	put_psb(t, 1000, BASE);
	put_tsc(t, 1005);
	put_evd(t, 0, 0x7f0012345678);
	put_cfe(t, CFE_INTR, 14, false);
	put_ip(t, PT_FUP, BASE + F);
	put_ip(t, PT_TIP_PGD, 0);
	/* Not in user code any more: nothing tells where. */
	put_cfe(t, CFE_SMI, 0, false);
	put_tsc(t, 1010);
	put_ip(t, PT_TIP_PGE, BASE + F);
	put_ip(t, PT_FUP, BASE + F);
	put_ip(t, PT_TIP_PGD, 0);
	decode_notes(t, &notes, false);
	assert_int_equal(notes.all.n, 3);
	assert_note(&notes, 0, PT_NOTE_PFA, 1005, 0, 0x7f0012345678);
	assert_note(&notes, 1, PT_NOTE_CFE, 1005, BASE + F, CFE_INTR | 14 << 8);
	assert_note(&notes, 2, PT_NOTE_CFE, 1005, 0, CFE_SMI);
	assert_int_equal(notes.branches.n, 5);
	assert_int_equal(notes.branches.v[1].kind, BRANCH_CALL);
	assert_int_equal(notes.branches.v[1].time_ns, 1000);
	assert_int_equal(notes.branches.v[2].kind, BRANCH_END_ASYNC);
	assert_int_equal(notes.branches.v[2].time_ns, 1005);
	assert_int_equal(notes.branches.v[2].from, BASE + F);
	assert_int_equal(notes.branches.v[3].kind, BRANCH_BEGIN);
	assert_int_equal(notes.branches.v[4].kind, BRANCH_END_ASYNC);
	notes__fini(&notes);
}

/* With the IP bit the FUP is the event's alone: the branches are the same as without. */
static void test_an_event_with_its_own_fup(void **state)
{
	struct traced *t = *state;
	struct notes notes = {0};

	put_psb(t, 1000, BASE);
	put_evd(t, 2, 0x30);
	put_evd(t, 1, 0x181);
	put_evd(t, 9, 1); /* no such type */
	put_cfe(t, CFE_VMEXIT, 0, true);
	put_ip(t, PT_FUP, BASE + F);
	put_tnt(t, "T");
	put_cfe(t, CFE_IRET, 0, true);
	put_tip(t, G);
	put_ip(t, PT_FUP, BASE + G);
	put_ip(t, PT_TIP_PGD, 0);
	decode_notes(t, &notes, false);
	assert_int_equal(notes.all.n, 4);
	assert_note(&notes, 0, PT_NOTE_VMXR, 1000, 0, 0x30);
	assert_note(&notes, 1, PT_NOTE_VMXQ, 1000, 0, 0x181);
	assert_note(&notes, 2, PT_NOTE_CFE, 1000, BASE + F, CFE_VMEXIT);
	assert_int_equal(notes.branches.n, 5);
	assert_int_equal(notes.branches.v[2].kind, BRANCH_RETURN);
	assert_int_equal(notes.branches.v[3].kind, BRANCH_CALL);
	notes__fini(&notes);
}

/* A packet that the end of the data cuts is none. */
static void test_a_cut_event(void **state)
{
	struct traced *t = *state;
	struct notes notes = {0};

	put_psb(t, 1000, BASE);
	put(t, (const uint8_t[]){0x02, 0x53, 0, 1, 2, 3}, 6);
	decode_notes(t, &notes, false);
	assert_int_equal(notes.all.n, 0);
	notes__fini(&notes);
}

/*
 * A CLI or STI: with Event Trace the FUP after its MODE.Exec tells where it was, and is of no
 * branch.
 */
static void test_the_interrupt_flag(void **state)
{
	struct traced *t = *state;
	struct notes notes = {0};

	t->rec.pt.config |= PT_CONFIG_EVENT;
	put_psb(t, 1000, BASE);
	put(t, (const uint8_t[]){0x99, 0x01 | 0x04}, 2);
	put_ip(t, PT_FUP, BASE + F);
	put_tnt(t, "T");
	put_tip(t, G);
	decode_notes(t, &notes, false);
	assert_int_equal(notes.branches.v[1].kind, BRANCH_CALL);
	assert_int_equal(notes.branches.v[2].kind, BRANCH_RETURN);
	assert_int_equal(notes.branches.v[3].kind, BRANCH_CALL);
	notes__fini(&notes);
}

/*
 * Instants of a trace: a value with its function, and an event that leads nowhere (the kernel is
 * traced too); but not one that is a slice, and nothing that ends one.
 */
static void test_instants(void **state)
{
	struct traced *t = *state;
	struct rec_aux aux = {.pid = PID, .tid = TID};
	struct decoded decoded;

	put_psb(t, 1000, BASE);
	put_ptw(t, 42, false, true);
	put_ip(t, PT_FUP, BASE + F);
	put_cfe(t, CFE_IRET, 0, true);
	put_ip(t, PT_FUP, BASE + F);
	put_evd(t, 0, 0x7f00);
	put_cfe(t, CFE_INTR, 14, true);
	put_ip(t, PT_FUP, BASE + F);
	put_tnt(t, "T"); /* the RET of F */
	put_tsc(t, 1020);
	put_tip(t, G);
	put_evd(t, 0, 0x7f11);
	put_cfe(t, CFE_INTR, 14, false);
	put_ip(t, PT_FUP, BASE + G);
	put_ip(t, PT_TIP_PGD, 0);
	aux.tsc = t->now;
	aux.size = t->out.bytes.n;
	aux.data = malloc(aux.size);
	assert_non_null(aux.data);
	memcpy(aux.data, t->out.bytes.v, aux.size);
	assert_int_equal(recording__add_aux(&t->rec, &aux), 0);
	assert_int_equal(decoded__make(&decoded, &t->rec, &(struct tree_options){0}), 0);
	assert_int_equal(decoded.events.n, 2);
	assert_int_equal(decoded.events.v[0].kind, PT_NOTE_PTWRITE);
	assert_int_equal(decoded.events.v[0].value, 42);
	assert_non_null(decoded.events.v[0].in);
	assert_int_equal(decoded.events.v[1].kind, PT_NOTE_CFE);
	assert_int_equal(decoded.events.v[1].address, 0x7f00);
	decoded__fini(&decoded);
}

static void assert_event(enum cfe_type type, unsigned int vector, uint64_t address,
			 const char *expected)
{
	struct pt_note note = {
		.kind = PT_NOTE_CFE, .value = (uint64_t)type | vector << 8, .address = address};
	uint8_t event = pt_event__of(note.value);
	char text[PT_NOTE_TEXT_SIZE];

	assert_string_equal(pt_note__format(&note, text), expected);
	assert_int_equal(pt_event__parse(text), event);
	if (event && !address)
		assert_string_equal(pt_event__name(event), expected);
}

static void test_names_of_events(void **state)
{
	char text[PT_EVENT_TEXT_SIZE];

	assert_event(CFE_INTR, 14, 0x7f0012345678, "[page fault 0x7f0012345678]");
	assert_event(CFE_INTR, 14, 0, "[page fault]");
	assert_event(CFE_INTR, 2, 0, "[NMI]");
	assert_event(CFE_INTR, 3, 0, "[int3]");
	assert_event(CFE_INTR, 0xec, 0, "[timer interrupt]");
	assert_event(CFE_INTR, 0x21, 0, "[interrupt]");
	assert_event(CFE_INTR, 0, 0, "[divide error]");
	assert_event(CFE_SMI, 0, 0, "[SMI]");
	assert_event(CFE_VMEXIT, 0, 0, "[VM exit]");
	assert_event(CFE_INTR, 0x80, 0, "cfe"); /* a system call */
	assert_event(CFE_IRET, 0, 0, "cfe");
	assert_event(31, 0, 0, "cfe");
	/* No other text is one. */
	assert_int_equal(pt_event__parse("[untraced]"), 0);
	assert_int_equal(pt_event__parse("[page fault"), 0);
	assert_int_equal(pt_event__parse("page fault"), 0);
	assert_int_equal(pt_event__parse(""), 0);
	for (unsigned int event = 1; event < PT_EVENT_END; event++) {
		uint8_t back = pt_event__parse(pt_event__format((uint8_t)event, 0, text));

		assert_string_equal(pt_event__name(back), pt_event__name((uint8_t)event));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_values),
		TEST(test_values_without_their_fup),
		TEST(test_power),
		TEST(test_an_event_of_a_branch),
		TEST(test_an_event_with_its_own_fup),
		TEST(test_a_cut_event),
		TEST(test_the_interrupt_flag),
		TEST(test_instants),
		TEST(test_names_of_events),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
