// SPDX-License-Identifier: MIT
/*
 * Trap frames are put up and taken down in a nested way, so that each instruction has a chain of
 * them, known before the program runs. Where two ways to an instruction disagree, nothing is said
 * of it: code that is never reached may have been taken for code that is.
 */
#include "target/unwind/ocaml_flow.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "target/elf/elf_internal.h"
#include "target/unwind/ocaml_shapes.h"
#include "util/insn.h"

/* Generated modules have initialisers of a megabyte. */
#define MAX_FUNCTION ((size_t)16 << 20)
#define MAX_TABLES   4096

/* Chains of trap frames, by their index. */
enum {
	CHAIN_UNSEEN, /* the instruction has not been come to */
	CHAIN_INSIDE, /* it is within another instruction */
	CHAIN_NONE,   /* no frame of this function's */
	CHAIN_UNKNOWN,
	CHAIN_FIRST,
};

/* The innermost frame, and those around it. */
struct chain {
	uint64_t handler; /* 0: not known */
	uint32_t outer;
};

/* From where on to follow. */
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
	const struct ocaml_note *note; /* what it says goes; NULL: nothing of this function */
	int32_t slot;		       /* of the domain's state */
	bool has_slot, failed;
	uint32_t *chains; /* of each byte of the code */
	VEC(struct chain) nodes;
	VEC(struct flow_start) starts;
	VEC(struct flow_table) tables;
	size_t n_entries; /* of all tables */
	handler_site_vec *sites;
};

/* An instruction on a straight way. */
struct flow_point {
	size_t at;
	uint32_t chain;
	bool raises; /* the stack has been set back */
	struct insn insn;
	struct recent_moves recent;
};

static void start_at(struct flow *flow, uint64_t vaddr, uint32_t chain)
{
	struct flow_start *start;

	if (vaddr - flow->vaddr >= flow->size)
		return;
	start = VEC_PUSH(&flow->starts);
	if (start)
		*start = (struct flow_start){vaddr - flow->vaddr, chain};
	else
		flow->failed = true;
}

static uint32_t chain_with(struct flow *flow, uint64_t handler, uint32_t outer)
{
	struct chain *chain = VEC_PUSH(&flow->nodes);

	if (!chain) {
		flow->failed = true;
		return CHAIN_UNKNOWN;
	}
	*chain = (struct chain){handler, outer};
	return (uint32_t)(flow->nodes.n - 1);
}

static uint32_t outer_chain(const struct flow *flow, uint32_t chain)
{
	return chain < CHAIN_FIRST ? CHAIN_UNKNOWN : flow->nodes.v[chain].outer;
}

/* The compiler put the handler's address right where the frame is put up. */
static uint64_t noted_push(const struct flow *flow, const struct flow_point *p)
{
	uint64_t vaddr = flow->vaddr + p->at;
	const struct insn_move *move = &p->recent.v[0];

	if (!vaddr_vec__has(&flow->note->pushes, vaddr, vaddr + 1) || move->kind != MOVE_ADDRESS ||
	    !vaddr_vec__has(&flow->note->handlers, move->address, move->address + 1))
		return 0;
	return move->address;
}

static bool noted_pop(const struct flow *flow, const struct flow_point *p)
{
	uint64_t vaddr = flow->vaddr + p->at;

	return vaddr_vec__has(&flow->note->pops, vaddr, vaddr + 1);
}

/* The handler of a frame that the instruction puts up, or 0. */
static uint64_t pushed(struct flow *flow, const struct flow_point *p)
{
	int32_t slot;
	uint64_t handler = recent_moves__pushed(&p->recent, &slot);

	if (handler) {
		flow->slot = slot;
		flow->has_slot = true;
	}
	if (flow->note)
		handler = noted_push(flow, p);
	return handler - flow->vaddr < flow->size ? handler : 0;
}

static bool popped(const struct flow *flow, const struct flow_point *p)
{
	if (flow->note)
		return noted_pop(flow, p);
	return flow->has_slot && recent_moves__popped(&p->recent, flow->slot);
}

/* What the instruction does to the trap frames. */
static void follow_traps(struct flow *flow, struct flow_point *p)
{
	uint64_t handler = pushed(flow, p);

	if (handler) {
		/* Whoever comes to the handler has taken its frame down. */
		start_at(flow, handler, p->chain);
		p->chain = chain_with(flow, handler, p->chain);
	} else if (flow->has_slot && recent_moves__raises(&p->recent, flow->slot)) {
		p->raises = true;
	} else if (!p->raises && popped(flow, p)) {
		p->chain = outer_chain(flow, p->chain);
	}
}

static void add_site(struct flow *flow, const struct flow_point *p)
{
	struct handler_site *site = VEC_PUSH(flow->sites);

	if (site)
		*site = (struct handler_site){.start = flow->vaddr + p->at,
					      .end = flow->vaddr + p->at + p->insn.len};
	else
		flow->failed = true;
}

static void add_table(struct flow *flow, const struct flow_point *p)
{
	uint64_t vaddr = recent_moves__switches(&p->recent);
	struct flow_table *table;

	if (!vaddr || flow->tables.n == MAX_TABLES)
		return;
	table = VEC_PUSH(&flow->tables);
	if (table)
		*table = (struct flow_table){vaddr, p->chain};
	else
		flow->failed = true;
}

/* Where the instruction leads. False where it is not on to the next one. */
static bool follow_control(struct flow *flow, const struct flow_point *p, bool is_first_time)
{
	switch ((enum insn_class)p->insn.cls) {
	case INSN_CALL:
	case INSN_CALL_INDIRECT:
		if (is_first_time)
			add_site(flow, p);
		return p->insn.cls == INSN_CALL_INDIRECT ||
		       !ocaml_shapes__is_raiser(flow->image, p->insn.target);
	case INSN_COND:
		start_at(flow, p->insn.target, p->chain);
		return true;
	case INSN_JUMP:
		start_at(flow, p->insn.target, p->chain);
		return false;
	case INSN_JUMP_INDIRECT:
		if (!p->raises)
			add_table(flow, p);
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

/* Notes that the instruction was come to with p->chain. False where that is nothing new. */
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

static void mark_inside(struct flow *flow, const struct flow_point *p)
{
	for (size_t i = p->at + 1; i < p->at + p->insn.len; i++)
		if (flow->chains[i] == CHAIN_UNSEEN)
			flow->chains[i] = CHAIN_INSIDE;
}

/* Each instruction is come to three times at most: with a chain, with an unknown one, in vain. */
static void follow_line(struct flow *flow, const struct flow_start *start)
{
	struct flow_point p = {.at = start->at, .chain = start->chain};

	while (p.at < flow->size && !flow->failed) {
		const uint8_t *code = flow->code + p.at;
		bool is_first_time = flow->chains[p.at] < CHAIN_NONE;

		if (!visit(flow, &p) ||
		    insn__decode(code, flow->size - p.at, flow->vaddr + p.at, &p.insn))
			return;
		mark_inside(flow, &p);
		recent_moves__add(&p.recent, insn__move(code, p.insn.len, flow->vaddr + p.at));
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
 * How long a table is, nobody says. What leads out of the function, into an instruction, or to
 * where the chain is another one, is of the next table.
 */
static bool is_entry_of(const struct flow *flow, const struct flow_table *table, uint64_t target)
{
	uint32_t chain;

	if (target - flow->vaddr >= flow->size)
		return false;
	chain = flow->chains[target - flow->vaddr];
	return chain == CHAIN_UNSEEN || chain == table->chain ||
	       (table->chain == CHAIN_UNKNOWN && chain != CHAIN_INSIDE);
}

/* Where the function's next table begins. */
static uint64_t end_of_table(const struct flow *flow, uint64_t vaddr)
{
	uint64_t end = UINT64_MAX;

	for (size_t i = 0; i < flow->tables.n; i++)
		if (flow->tables.v[i].vaddr > vaddr && flow->tables.v[i].vaddr < end)
			end = flow->tables.v[i].vaddr;
	return end;
}

static void follow_table(struct flow *flow, struct flow_table table)
{
	uint64_t end = UINT64_MAX, vaddr = table.vaddr;
	size_t len = 0, n_tables = 0;
	const uint8_t *entry = elf_image__loaded_bytes(flow->image, vaddr, &len);
	int32_t offset;

	while (entry && len >= sizeof(offset) && vaddr < end && flow->n_entries < flow->size) {
		uint64_t target;

		/* The cases may have more of them. */
		if (flow->tables.n != n_tables) {
			n_tables = flow->tables.n;
			end = end_of_table(flow, table.vaddr);
			continue;
		}
		memcpy(&offset, entry, sizeof(offset));
		target = table.vaddr + (uint64_t)(int64_t)offset;
		if (!is_entry_of(flow, &table, target))
			return;
		start_at(flow, target, table.chain);
		follow_starts(flow);
		entry += sizeof(offset);
		len -= sizeof(offset);
		vaddr += sizeof(offset);
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

static int compare_sites(const void *a, const void *b)
{
	const struct handler_site *x = a, *y = b;

	return (x->start > y->start) - (x->start < y->start);
}

static void follow_all(struct flow *flow)
{
	/* Those that stand for themselves. */
	for (int i = 0; i < CHAIN_FIRST; i++)
		chain_with(flow, 0, CHAIN_UNKNOWN);
	start_at(flow, flow->vaddr, CHAIN_NONE);
	follow_starts(flow);
	/* After what leads to places for sure. Their code may have more of them. */
	for (size_t i = 0; i < flow->tables.n && !flow->failed; i++)
		follow_table(flow, flow->tables.v[i]);
	settle(flow);
}

static bool is_noted(const struct ocaml_note *note, const struct function *f)
{
	return vaddr_vec__has(&note->pushes, f->vaddr, f->vaddr + f->size);
}

int ocaml_flow__find_sites(struct elf_image *image, const struct function *f,
			   const struct ocaml_note *note, handler_site_vec *sites)
{
	struct flow flow = {.image = image, .vaddr = f->vaddr, .sites = sites};
	uint64_t offset = elf_image__offset_of_vaddr(image, f->vaddr);
	size_t len = 0;

	flow.code = offset == UINT64_MAX ? NULL : elf_image__bytes(image, offset, &len);
	flow.size = f->size < len ? f->size : len;
	flow.note = is_noted(note, f) ? note : NULL;
	if (!flow.code || flow.size > MAX_FUNCTION ||
	    (!flow.note && !ocaml_shapes__may_push(flow.code, flow.size)))
		return 0;
	flow.chains = calloc(flow.size, sizeof(*flow.chains));
	if (!flow.chains)
		return -ENOMEM;
	follow_all(&flow);
	VEC_SORT(sites, compare_sites);
	free(flow.chains);
	VEC_FINI(&flow.nodes);
	VEC_FINI(&flow.starts);
	VEC_FINI(&flow.tables);
	return flow.failed ? -ENOMEM : 0;
}
