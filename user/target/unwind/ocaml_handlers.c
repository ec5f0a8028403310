// SPDX-License-Identifier: MIT
#include "target/unwind/ocaml_handlers.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "target/elf/elf_internal.h"
#include "util/cleanup.h"
#include "util/fs.h"
#include "util/insn.h"
#include "util/log.h"

/*
 * Instructions with which OCaml's compiler and runtime handle exceptions, from 4.10 on (amd64 emit,
 * runtime/amd64.S): %r14 is the domain's state. A slot in it, whose offset differs between
 * versions, points to the innermost trap frame, which holds the previous frame and the handler.
 */

/* The most instructions in a row that such a shape has. */
#define SHAPE_LENGTH 5

/*
 * Each unit has a note: the address of _.stapsdt.base when the unit's addresses were written, then
 * three lists of addresses, each ended by a 0. If the base has moved since (prelink), the addresses
 * have moved as far, as those of SystemTap's probes (its "UserSpaceProbeImplementation",
 * "Prelink").
 */

#define NOTE_TYPE 1
static const char owner[8] = "OCaml"; /* with padding */

struct note_header {
	uint32_t name_size, desc_size, type;
};

/* Reads the three lists of a note. A list ends with a 0, or with the note. */
static int read_note(const uint8_t *at, const uint8_t *end, uint64_t base, struct ocaml_note *note)
{
	vaddr_vec *lists[] = {&note->handlers, &note->pushes, &note->pops};
	uint64_t recorded, vaddr;

	if ((size_t)(end - at) < sizeof(recorded))
		return 0;
	memcpy(&recorded, at, sizeof(recorded));
	at += sizeof(recorded);
	for (int i = 0; i < 3 && (size_t)(end - at) >= sizeof(vaddr); at += sizeof(vaddr)) {
		memcpy(&vaddr, at, sizeof(vaddr));
		if (!vaddr)
			i++;
		else if (VEC_ADD(lists[i], vaddr + (base - recorded)))
			return -ENOMEM;
	}
	return 0;
}

static int read_notes(const uint8_t *at, size_t left, uint64_t base, struct ocaml_note *note)
{
	struct note_header header;
	int err = 0;

	while (!err && left >= sizeof(header)) {
		uint64_t name, desc;

		memcpy(&header, at, sizeof(header));
		at += sizeof(header);
		left -= sizeof(header);
		/* Both are padded to multiples of 4. */
		name = ((uint64_t)header.name_size + 3) & ~3ull;
		desc = ((uint64_t)header.desc_size + 3) & ~3ull;
		if (name > left || header.desc_size > left - name)
			return 0;
		if (header.type == NOTE_TYPE && name == sizeof(owner) && !memcmp(at, owner, name))
			err = read_note(at + name, at + name + header.desc_size, base, note);
		at += name;
		left -= name;
		/* The last one's padding may be missing. */
		if (desc > left)
			return err;
		at += desc;
		left -= desc;
	}
	return err;
}

int ocaml_note__read(struct elf_image *image, struct ocaml_note *note)
{
	GElf_Shdr shdr, base;
	Elf_Scn *scn;
	const Elf_Data *data;
	int err;

	*note = (struct ocaml_note){0};
	if (!image->elf || !elf_image__section(image, ".stapsdt.base", &base))
		return 0;
	scn = elf_image__section(image, ".note.ocaml_eh", &shdr);
	data = scn ? elf_section__data(scn, sizeof(struct note_header)) : NULL;
	if (!data)
		return 0;
	err = read_notes(data->d_buf, data->d_size, base.sh_addr, note);
	VEC_SORT_U64(&note->handlers);
	VEC_SORT_U64(&note->pushes);
	VEC_SORT_U64(&note->pops);
	return err;
}

void ocaml_note__fini(struct ocaml_note *note)
{
	VEC_FINI(&note->handlers);
	VEC_FINI(&note->pushes);
	VEC_FINI(&note->pops);
}

bool vaddr_vec__has(const vaddr_vec *vaddrs, uint64_t first, uint64_t last)
{
	size_t n = VEC_PARTITION_POINT(vaddrs, e, *e < first);

	return n < vaddrs->n && vaddrs->v[n] <= last;
}

/* The runtime functions that raise do so within this many instructions. */
#define RAISER_LENGTH 8

static bool is_mem(const struct insn_move *move, uint8_t kind, uint8_t base, int32_t disp)
{
	return move->kind == kind && move->base == base && move->disp == disp;
}

static bool is_store_to_state(const struct insn_move *move)
{
	return move->kind == MOVE_STORE && move->base == INSN_R14;
}

/*
 * The address of the table if the last instructions are the jump of a switch statement; 0
 * otherwise: lea table,%x; movslq (%x,%y,4),%y; add %y,%x; jmp *%x
 */
static uint64_t switch_table(const struct insn_move v[static SHAPE_LENGTH])
{
	if (v[0].kind != MOVE_JUMP || v[1].kind != MOVE_ADD || v[1].reg != v[0].reg ||
	    !is_mem(&v[2], MOVE_LOAD_ENTRY, v[3].reg, 0) || v[3].kind != MOVE_ADDRESS)
		return 0;
	return v[3].address;
}

/*
 * True if an instruction of the function may put up a trap frame: mov %reg,disp(%r14), which is
 * REX.W + REX.B 89 /r with %r14 and a displacement. A quick test.
 */
static bool may_push(const uint8_t *code, size_t len)
{
	for (size_t i = 0; i + 2 < len; i++)
		if (code[i + 1] == 0x89 && (code[i] & 0xfb) == 0x49 && (code[i + 2] & 7) == 6 &&
		    ((code[i + 2] >> 6) == 1 || (code[i + 2] >> 6) == 2))
			return true;
	return false;
}

/*
 * Recognised by code, since symbols may be missing: caml_raise_exn loads the stack pointer from the
 * state; and caml_ml_array_bound_error jumps to caml_c_call with a C function's address in %rax.
 */
static bool looks_like_raiser(struct elf_image *image, uint64_t vaddr)
{
	uint64_t offset = elf_image__offset_of_vaddr(image, vaddr);
	struct insn_move move = {0}, before;
	struct insn insn;
	size_t len = 0;
	const uint8_t *code = offset == UINT64_MAX ? NULL : elf_image__bytes(image, offset, &len);

	for (int n = 0; code && n < RAISER_LENGTH && !insn__decode(code, len, vaddr, &insn); n++) {
		before = move;
		move = insn__move(code, len, vaddr);
		if (move.kind == MOVE_LOAD && move.base == INSN_R14 && move.reg == INSN_RSP)
			return true;
		if (insn.cls == INSN_JUMP)
			return before.kind == MOVE_ADDRESS && before.reg == INSN_RAX &&
			       elf_image__offset_of_vaddr(image, before.address) != UINT64_MAX;
		if (insn.cls != INSN_OTHER && insn.cls != INSN_COND)
			return false;
		code += insn.len;
		len -= insn.len;
		vaddr += insn.len;
	}
	return false;
}

/*
 * True if a call to this address does not come back: it raises. The caller must not hold
 * image->lock.
 */
static bool is_raiser(struct elf_image *image, uint64_t vaddr)
{
	static const char *const names[] = {"caml_raise_exn", "caml_reraise_exn",
					    "caml_ml_array_bound_error",
					    "caml_ml_array_align_error"};
	const struct function *function = elf_image__function_at(image, vaddr);
	size_t len;

	if (!function)
		return false;
	if (function->kind == FUNCTION_UNKNOWN)
		return looks_like_raiser(image, vaddr);
	len = strcspn(function->raw_name, "@");
	return ARRAY_FIND(names, name,
			  len == strlen(*name) && !memcmp(function->raw_name, *name, len));
}

/*
 * Trap frames are pushed and popped in a nested way, so that the chain of handlers at each
 * instruction is known statically. If two paths to an instruction disagree, its chain is unknown:
 * unreachable code may have been taken for reachable code.
 */

/* Generated modules have initialisers of a megabyte. */
#define MAX_FUNCTION ((size_t)16 << 20)
#define MAX_TABLES   4096

/* Chains of trap frames, by their index: what flow.chains has for a byte of the code. */
enum {
	CHAIN_UNSEEN, /* no path has reached this byte so far */
	CHAIN_INSIDE, /* only as part of an instruction that begins at an earlier byte */
	CHAIN_NONE,   /* no frame of this function's */
	CHAIN_UNKNOWN,
	CHAIN_FIRST,
};

/* The innermost frame, and those around it. */
struct chain {
	uint64_t handler; /* 0: not known */
	uint32_t outer;
};

/* A place from which code is to be followed. */
struct flow_start {
	size_t at;
	uint32_t chain;
};

struct flow_table {
	uint64_t vaddr;
	uint32_t chain;
};

struct flow {
	struct elf_image *image;
	uint64_t vaddr; /* of the function */
	const uint8_t *code;
	size_t size;
	const struct ocaml_note
		*note; /* believed more than the code; NULL: not about this function */
	int32_t slot;  /* offset from %r14 of the pointer to the innermost trap frame */
	bool has_slot, failed;
	uint32_t *chains; /* of each byte of the code */
	VEC(struct chain) nodes;
	VEC(struct flow_start) starts;
	VEC(struct flow_table) tables;
	size_t n_entries; /* of all tables */
	handler_site_vec *sites;
};

/* An instruction of a straight run of code, and what is known there. */
struct flow_point {
	size_t at;
	uint32_t chain;
	bool raises; /* the stack pointer was reset to the handler's */
	struct insn insn;
	struct insn_move recent[SHAPE_LENGTH]; /* up to this one, the newest first */
};

static void start_at(struct flow *flow, uint64_t vaddr, uint32_t chain)
{
	if (vaddr - flow->vaddr < flow->size &&
	    VEC_ADD(&flow->starts, (struct flow_start){vaddr - flow->vaddr, chain}))
		flow->failed = true;
}

static uint32_t chain_with(struct flow *flow, uint64_t handler, uint32_t outer)
{
	if (VEC_ADD(&flow->nodes, (struct chain){handler, outer})) {
		flow->failed = true;
		return CHAIN_UNKNOWN;
	}
	return (uint32_t)(flow->nodes.n - 1);
}

/* The handler of a trap frame that the instruction puts up, or 0. */
static uint64_t pushed(struct flow *flow, const struct flow_point *p)
{
	const struct insn_move *v = p->recent;
	uint8_t frame = v[0].reg, value = v[1].reg;
	uint64_t handler = 0, vaddr = flow->vaddr + p->at;

	/* Compiled: lea handler,%r11; push %r11; push slot(%r14); mov %rsp,slot(%r14) */
	if (is_store_to_state(&v[0]) && frame == INSN_RSP &&
	    is_mem(&v[1], MOVE_PUSH_MEM, INSN_R14, v[0].disp) && v[2].kind == MOVE_PUSH &&
	    v[3].kind == MOVE_ADDRESS && v[3].reg == v[2].reg)
		handler = v[3].address;
	/*
	 * The runtime's, on a stack that is not switched to yet (5.x: caml_start_program,
	 * caml_runstack): lea handler,%x; mov %x,8(%y); mov ...,%x; mov %x,(%y); mov %y,slot(%r14)
	 */
	else if (is_store_to_state(&v[0]) && is_mem(&v[1], MOVE_STORE, frame, 0) &&
		 v[2].kind == MOVE_LOAD && v[2].reg == value &&
		 is_mem(&v[3], MOVE_STORE, frame, 8) && v[3].reg == value &&
		 v[4].kind == MOVE_ADDRESS && v[4].reg == value)
		handler = v[4].address;
	if (handler) {
		flow->slot = v[0].disp;
		flow->has_slot = true;
	}
	/*
	 * .note.ocaml_eh lists the instructions that load a handler's address to put up its frame:
	 * with this note of the compiler, only these count.
	 */
	if (flow->note)
		handler = vaddr_vec__has(&flow->note->pushes, vaddr, vaddr) &&
					  v[0].kind == MOVE_ADDRESS &&
					  vaddr_vec__has(&flow->note->handlers, v[0].address,
							 v[0].address)
				  ? v[0].address
				  : 0;
	return handler - flow->vaddr < flow->size ? handler : 0;
}

/* Applies the instruction's effect on the trap frames. */
static void follow_traps(struct flow *flow, struct flow_point *p)
{
	const struct insn_move *move = &p->recent[0];
	uint64_t handler = pushed(flow, p), vaddr = flow->vaddr + p->at;
	bool is_popped;

	if (handler) {
		/* The frame is popped before its handler runs. */
		start_at(flow, handler, p->chain);
		p->chain = chain_with(flow, handler, p->chain);
		return;
	}
	/* The stack is set back to the innermost frame; what follows pops it and runs its handler.
	 */
	if (flow->has_slot && is_mem(move, MOVE_LOAD, INSN_R14, flow->slot) &&
	    move->reg == INSN_RSP) {
		p->raises = true;
		return;
	}
	if (flow->note)
		is_popped = vaddr_vec__has(&flow->note->pops, vaddr, vaddr);
	else
		is_popped =
			flow->has_slot && (is_mem(move, MOVE_POP_MEM, INSN_R14, flow->slot) ||
					   (is_store_to_state(move) && move->disp == flow->slot));
	if (is_popped && !p->raises)
		p->chain = p->chain < CHAIN_FIRST ? CHAIN_UNKNOWN : flow->nodes.v[p->chain].outer;
}

static void add_site(struct flow *flow, const struct flow_point *p)
{
	const struct handler_site site = {.start = flow->vaddr + p->at,
					  .end = flow->vaddr + p->at + p->insn.len};

	if (VEC_ADD(flow->sites, site))
		flow->failed = true;
}

/* Follows the instruction's jump. False if control does not continue at the next instruction. */
static bool follow_control(struct flow *flow, const struct flow_point *p, bool is_first_time)
{
	switch ((enum insn_class)p->insn.cls) {
	case INSN_CALL:
	case INSN_CALL_INDIRECT:
		if (is_first_time)
			add_site(flow, p);
		return p->insn.cls == INSN_CALL_INDIRECT || !is_raiser(flow->image, p->insn.target);
	case INSN_COND:
		start_at(flow, p->insn.target, p->chain);
		return true;
	case INSN_JUMP:
		start_at(flow, p->insn.target, p->chain);
		return false;
	case INSN_JUMP_INDIRECT:
		if (!p->raises) {
			uint64_t vaddr = switch_table(p->recent);

			if (vaddr && flow->tables.n < MAX_TABLES &&
			    VEC_ADD(&flow->tables, (struct flow_table){vaddr, p->chain}))
				flow->failed = true;
		}
		/* fall through */
	case INSN_RET:
		if (p->raises && is_first_time)
			add_site(flow, p);
		return false;
	case INSN_OTHER:
	case INSN_SYSCALL:
		return true;
	default:
		return false;
	}
}

/* Notes that the instruction was reached with p->chain. False if that was known already. */
static bool visit(struct flow *flow, struct flow_point *p)
{
	uint32_t *chain = &flow->chains[p->at];

	if (*chain == CHAIN_UNSEEN || *chain == CHAIN_INSIDE) {
		*chain = p->chain;
		return true;
	}
	if (*chain == p->chain || *chain == CHAIN_UNKNOWN)
		return false;
	*chain = p->chain = CHAIN_UNKNOWN;
	return true;
}

/*
 * Each instruction is followed at most twice: with a known chain, and once more with an unknown
 * one.
 */
static void follow_line(struct flow *flow, const struct flow_start *start)
{
	struct flow_point p = {.at = start->at, .chain = start->chain};

	while (p.at < flow->size && !flow->failed) {
		const uint8_t *code = flow->code + p.at;
		bool is_first_time = flow->chains[p.at] < CHAIN_NONE;

		if (!visit(flow, &p) ||
		    insn__decode(code, flow->size - p.at, flow->vaddr + p.at, &p.insn))
			return;
		for (size_t i = p.at + 1; i < p.at + p.insn.len; i++)
			if (flow->chains[i] == CHAIN_UNSEEN)
				flow->chains[i] = CHAIN_INSIDE;
		memmove(&p.recent[1], &p.recent[0], (SHAPE_LENGTH - 1) * sizeof(p.recent[0]));
		p.recent[0] = insn__move(code, p.insn.len, flow->vaddr + p.at);
		follow_traps(flow, &p);
		if (!follow_control(flow, &p, is_first_time))
			return;
		p.at += p.insn.len;
	}
}

static void follow_starts(struct flow *flow)
{
	while (flow->starts.n && !flow->failed) {
		struct flow_start start = flow->starts.v[--flow->starts.n];

		follow_line(flow, &start);
	}
}

/*
 * A table's length is unknown. An entry that leads out of the function, into the middle of an
 * instruction, or to a place with another chain belongs to the next table.
 */
static void follow_table(struct flow *flow, struct flow_table table)
{
	uint64_t end = UINT64_MAX;
	size_t len = 0, n_tables = 0, at = 0;
	const uint8_t *entries = elf_image__loaded_bytes(flow->image, table.vaddr, &len);
	int32_t offset;

	while (entries && len - at >= sizeof(offset) && flow->n_entries < flow->size) {
		uint64_t target;
		uint32_t chain;

		/* Following an entry may have found another table, where this one ends. */
		for (; n_tables < flow->tables.n; n_tables++)
			if (flow->tables.v[n_tables].vaddr > table.vaddr &&
			    flow->tables.v[n_tables].vaddr < end)
				end = flow->tables.v[n_tables].vaddr;
		if (table.vaddr + at >= end)
			return;
		memcpy(&offset, entries + at, sizeof(offset));
		target = table.vaddr + (uint64_t)(int64_t)offset;
		if (target - flow->vaddr >= flow->size)
			return;
		chain = flow->chains[target - flow->vaddr];
		if (chain != CHAIN_UNSEEN && chain != table.chain &&
		    (table.chain != CHAIN_UNKNOWN || chain == CHAIN_INSIDE))
			return;
		start_at(flow, target, table.chain);
		follow_starts(flow);
		at += sizeof(offset);
		flow->n_entries++;
	}
}

/* Drops sites without a handler, and sorts the others. */
static void settle(struct flow *flow)
{
	handler_site_vec *sites = flow->sites;
	size_t out = 0;

	for (size_t i = 0; i < sites->n; i++) {
		struct handler_site site = sites->v[i];
		uint32_t chain = flow->chains[site.start - flow->vaddr];

		if (chain < CHAIN_FIRST || !flow->nodes.v[chain].handler)
			continue;
		site.handler = flow->nodes.v[chain].handler;
		sites->v[out++] = site;
	}
	sites->n = out;
}

int ocaml_flow__find_sites(struct elf_image *image, const struct function *f,
			   const struct ocaml_note *note, handler_site_vec *sites)
{
	struct flow flow = {.image = image, .vaddr = f->vaddr, .sites = sites};
	uint64_t offset = elf_image__offset_of_vaddr(image, f->vaddr);
	size_t len = 0;

	flow.code = offset == UINT64_MAX ? NULL : elf_image__bytes(image, offset, &len);
	flow.size = f->size < len ? f->size : len;
	flow.note = vaddr_vec__has(&note->pushes, f->vaddr, f->vaddr + f->size - 1) ? note : NULL;
	if (!flow.code || flow.size > MAX_FUNCTION ||
	    (!flow.note && !may_push(flow.code, flow.size)))
		return 0;
	flow.chains = calloc(flow.size, sizeof(*flow.chains));
	if (!flow.chains)
		return -ENOMEM;
	/* The fixed chain numbers. */
	for (int i = 0; i < CHAIN_FIRST; i++)
		chain_with(&flow, 0, CHAIN_UNKNOWN);
	start_at(&flow, flow.vaddr, CHAIN_NONE);
	follow_starts(&flow);
	/* Tables come after all that is certain. Following one may find more of them. */
	for (size_t i = 0; i < flow.tables.n && !flow.failed; i++)
		follow_table(&flow, flow.tables.v[i]);
	settle(&flow);
	VEC_SORT_BY(sites, start);
	free(flow.chains);
	VEC_FINI(&flow.nodes);
	VEC_FINI(&flow.starts);
	VEC_FINI(&flow.tables);
	return flow.failed ? -ENOMEM : 0;
}

#define LINE_HELP "one hexadecimal address per line: 0x55d0c81e2f40"

int ocaml_traps__read(struct ocaml_traps *traps, const char *path)
{
	_cleanup_free_ char *text = NULL;
	char *rest, *line, *end;
	size_t len, number = 0;
	uint64_t ip;
	int err = fs__read(path, &text, &len);

	if (err) {
		log__error("cannot read %s: %s", path, strerror(-err));
		log__hint("it is a text with %s", LINE_HELP);
		return err;
	}
	rest = text;
	while (!err && (line = strsep(&rest, "\n"))) {
		number++;
		end = line + strcspn(line, "#");
		while (isspace((unsigned char)*line))
			line++;
		while (end > line && isspace((unsigned char)end[-1]))
			end--;
		*end = '\0';
		if (!*line)
			continue;
		/* strtoull() also takes signs. */
		errno = 0;
		ip = strtoull(line, &end, 16);
		if (!isxdigit((unsigned char)*line) || errno || *end) {
			log__error("%s:%zu: '%.40s' is not an address", path, number, line);
			log__hint(LINE_HELP);
			err = -EINVAL;
		} else if (VEC_ADD(&traps->ips, ip)) {
			log__error("out of memory");
			err = -ENOMEM;
		}
	}
	VEC_SORT_U64(&traps->ips);
	return err;
}

void ocaml_traps__fini(struct ocaml_traps *traps)
{
	VEC_FINI(&traps->ips);
}

bool ocaml_traps__has(const struct ocaml_traps *traps, uint64_t ip)
{
	return vaddr_vec__has(&traps->ips, ip, ip);
}
