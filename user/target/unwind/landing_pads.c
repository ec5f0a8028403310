// SPDX-License-Identifier: MIT
#include "target/unwind/landing_pads.h"

#include <dwarf.h>
#include <stdlib.h>
#include <string.h>

#include "target/elf/elf_internal.h"
#include "target/unwind/ocaml_handlers.h"
#include "util/insn.h"

static void skip(struct eh_bytes *bytes, size_t n)
{
	bytes->at += n;
	bytes->vaddr += n;
}

static bool read_byte(struct eh_bytes *bytes, uint8_t *value)
{
	if (bytes->at == bytes->end)
		return false;
	*value = *bytes->at;
	skip(bytes, 1);
	return true;
}

/* Up to 64 bits; `shift` is where the number ended, for its sign. */
static bool read_leb128(struct eh_bytes *bytes, uint64_t *value, unsigned int *shift)
{
	uint8_t byte;

	*value = 0;
	for (*shift = 0; *shift < 64; *shift += 7) {
		if (!read_byte(bytes, &byte))
			return false;
		*value |= (uint64_t)(byte & 0x7f) << *shift;
		if (!(byte & 0x80)) {
			*shift += 7;
			return true;
		}
	}
	return false;
}

bool eh_bytes__uleb128(struct eh_bytes *bytes, uint64_t *value)
{
	unsigned int shift;

	return read_leb128(bytes, value, &shift);
}

static bool read_sleb128(struct eh_bytes *bytes, uint64_t *value)
{
	unsigned int shift;

	if (!read_leb128(bytes, value, &shift))
		return false;
	if (shift < 64 && *value >> (shift - 1) & 1)
		*value |= ~(uint64_t)0 << shift;
	return true;
}

static bool read_fixed(struct eh_bytes *bytes, size_t size, bool is_signed, uint64_t *value)
{
	unsigned int unused = 64 - 8 * (unsigned int)size;

	*value = 0;
	if ((size_t)(bytes->end - bytes->at) < size)
		return false;
	memcpy(value, bytes->at, size);
	skip(bytes, size);
	if (is_signed)
		*value = (uint64_t)((int64_t)(*value << unused) >> unused);
	return true;
}

/* The number without its base. */
static bool read_value(struct eh_bytes *bytes, uint8_t encoding, uint64_t *value)
{
	bool is_signed = encoding & DW_EH_PE_signed;

	switch (encoding & 0x0f) {
	case DW_EH_PE_uleb128:
		return eh_bytes__uleb128(bytes, value);
	case DW_EH_PE_sleb128:
		return read_sleb128(bytes, value);
	case DW_EH_PE_udata2:
	case DW_EH_PE_sdata2:
		return read_fixed(bytes, 2, is_signed, value);
	case DW_EH_PE_udata4:
	case DW_EH_PE_sdata4:
		return read_fixed(bytes, 4, is_signed, value);
	case DW_EH_PE_absptr:
	case DW_EH_PE_signed:
	case DW_EH_PE_udata8:
	case DW_EH_PE_sdata8:
		return read_fixed(bytes, 8, false, value);
	default:
		return false;
	}
}

bool eh_bytes__pointer(struct eh_bytes *bytes, uint8_t encoding, uint64_t *value)
{
	uint64_t base = bytes->vaddr;

	*value = 0;
	if (encoding == DW_EH_PE_omit)
		return true;
	if (encoding & DW_EH_PE_indirect || !read_value(bytes, encoding, value))
		return false;
	switch (encoding & 0x70) {
	case DW_EH_PE_absptr:
		return true;
	case DW_EH_PE_pcrel:
		*value += *value ? base : 0;
		return true;
	default:
		return false;
	}
}

bool lsda__open(struct lsda *lsda, struct eh_bytes table, uint64_t start)
{
	uint64_t len, types;
	uint8_t byte;

	lsda->start = lsda->pads = start;
	if (!read_byte(&table, &byte))
		return false;
	if (byte != DW_EH_PE_omit && !eh_bytes__pointer(&table, byte, &lsda->pads))
		return false;
	if (!read_byte(&table, &byte))
		return false;
	if (byte != DW_EH_PE_omit && !eh_bytes__uleb128(&table, &types))
		return false;
	if (!read_byte(&table, &lsda->encoding) || !eh_bytes__uleb128(&table, &len) ||
	    len > (uint64_t)(table.end - table.at))
		return false;
	table.end = table.at + len;
	lsda->sites = table;
	return true;
}

bool lsda__next(struct lsda *lsda, struct lsda_site *site)
{
	struct eh_bytes *sites = &lsda->sites;
	uint64_t from, len, pad, action;

	if (!read_value(sites, lsda->encoding, &from) || !read_value(sites, lsda->encoding, &len) ||
	    !read_value(sites, lsda->encoding, &pad) || !eh_bytes__uleb128(sites, &action))
		return false;
	site->start = lsda->start + from;
	site->end = site->start + len;
	site->pad = pad ? lsda->pads + pad : 0;
	return true;
}

/* The instructions of a landing pad up to its jump. */
#define PAD_INSNS 8

/* An OCaml function whose code has been followed. */
struct handling_function {
	uint64_t vaddr;
	handler_site_vec sites;
};

/* The functions that have landing pads, and the section with their tables. */
struct landing_table {
	elf_frame_vec frames; /* ascending */
	vaddr_vec pads;	      /* of all of them; ascending */
	const uint8_t *bytes;
	size_t len;
	uint64_t vaddr;
	struct ocaml_note note;
	VEC(struct handling_function) functions; /* ascending; image->lock protects it */
};

void landing_table__free(struct landing_table *table)
{
	if (!table)
		return;
	VEC_FINI(&table->frames);
	VEC_FINI(&table->pads);
	VEC_FINI_EACH(&table->functions, e, VEC_FINI(&e->sites));
	ocaml_note__fini(&table->note);
	free(table);
}

/* Keeps only frames whose table the section contains. */
static void keep_described(struct landing_table *table)
{
	size_t out = 0;

	VEC_EACH(&table->frames, frame)
		if (frame->lsda && frame->lsda - table->vaddr < table->len)
			table->frames.v[out++] = *frame;
	table->frames.n = out;
}

static bool open_lsda(const struct landing_table *table, const struct elf_frame *frame,
		      struct lsda *lsda)
{
	struct eh_bytes bytes = {table->bytes + (frame->lsda - table->vaddr),
				 table->bytes + table->len, frame->lsda};

	return lsda__open(lsda, bytes, frame->start);
}

/* Collects at most `limit` call sites of the function. Returns their number. */
static size_t collect_pads(struct landing_table *table, const struct elf_frame *frame, size_t limit)
{
	struct lsda_site site;
	struct lsda lsda;
	size_t n = 0;

	if (!open_lsda(table, frame, &lsda))
		return 0;
	for (; n < limit && lsda__next(&lsda, &site); n++)
		if (site.pad && VEC_ADD(&table->pads, site.pad))
			return limit;
	return n;
}

/*
 * A call site takes 4 bytes or more. Only in a damaged file do functions share their tables, so
 * that there would be more call sites than that.
 */
static void collect_all_pads(struct landing_table *table)
{
	size_t left = table->len / 4;

	for (size_t i = 0; i < table->frames.n && left; i++)
		left -= collect_pads(table, &table->frames.v[i], left);
	VEC_SORT_U64(&table->pads);
}

/* NULL: out of memory. Empty if the image has no such table. */
static struct landing_table *build(struct elf_image *image)
{
	struct landing_table *table = calloc(1, sizeof(*table));
	GElf_Shdr shdr;
	const Elf_Data *data;

	if (!table)
		return NULL;
	if (ocaml_note__read(image, &table->note)) {
		landing_table__free(table);
		return NULL;
	}
	data = elf_section__data(elf_image__section(image, ".gcc_except_table", &shdr), 1);
	if (!data)
		return table;
	table->bytes = data->d_buf;
	table->len = data->d_size;
	table->vaddr = shdr.sh_addr;
	if (elf_image__load_frames(image, &table->frames)) {
		landing_table__free(table);
		return NULL;
	}
	keep_described(table);
	collect_all_pads(table);
	return table;
}

static struct landing_table *get_table(struct elf_image *image)
{
	struct landing_table *table = __atomic_load_n(&image->pads, __ATOMIC_ACQUIRE);

	if (table)
		return table;
	pthread_mutex_lock(&image->lock);
	if (!image->pads)
		__atomic_store_n(&image->pads, build(image), __ATOMIC_RELEASE);
	table = image->pads;
	pthread_mutex_unlock(&image->lock);
	return table;
}

/* True if the range has neither a symbol nor a name found at the program's entry (_start, main). */
static bool is_nameless(const struct function_range *range)
{
	return range->entry->function.kind == FUNCTION_UNKNOWN && !range->entry->function.raw_name;
}

static bool is_within(const struct elf_frame *frame, uint64_t vaddr)
{
	return vaddr - frame->start < frame->end - frame->start;
}

/*
 * The target if a pad's code continues in another part, directly or by a jump, and before that only
 * moves registers that the unwinder has set. 0 otherwise.
 */
static uint64_t follow_pad(const struct elf_image *image, const struct elf_frame *frame,
			   uint64_t pad)
{
	struct insn insn = {.target = pad};
	size_t len, at = 0;
	const uint8_t *code;

	if (!is_within(frame, pad))
		return pad;
	code = elf_image__loaded_bytes(image, pad, &len);
	for (int i = 0; code && i < PAD_INSNS; i++, at += insn.len) {
		if (insn__decode(code + at, len - at, pad + at, &insn) ||
		    (insn.cls != INSN_OTHER && insn.cls != INSN_JUMP))
			return 0;
		if (insn.cls == INSN_JUMP)
			return is_within(frame, insn.target) ? 0 : insn.target;
	}
	return 0;
}

/*
 * Hands the pads of at most `limit` call sites over to the function, because their code belongs to
 * it.
 */
static size_t hand_over(const struct elf_image *image, const struct elf_frame *frame,
			struct function_table *full, size_t limit)
{
	const struct function_range *own = function_table__find(full, frame->start);
	struct lsda_site site;
	struct lsda lsda;
	size_t n = 0;

	if (!own || !open_lsda(image->pads, frame, &lsda))
		return 0;
	for (; n < limit && lsda__next(&lsda, &site); n++) {
		uint64_t at = site.pad ? follow_pad(image, frame, site.pad) : 0;
		struct function_range *apart = at ? function_table__find(full, at) : NULL;

		/* A jump to where a function begins may call it. */
		if (apart && (at == site.pad || at != apart->start) && is_nameless(apart))
			apart->entry = own->entry;
	}
	return n;
}

/*
 * Compilers put what an exception leads to into a function's cold part: the landing pad, or what it
 * jumps to, where its table can tell of one part only (gcc/except.cc:
 * fix_up_crossing_landing_pad()).
 */
void elf_image__resolve_pads(struct elf_image *image, struct function_table *full)
{
	struct landing_table *table = image->pads;
	size_t left;

	if (!table) {
		table = build(image);
		__atomic_store_n(&image->pads, table, __ATOMIC_RELEASE);
	}
	left = table ? table->len / 4 : 0;
	for (size_t i = 0; i < (table ? table->frames.n : 0) && left; i++)
		left -= hand_over(image, &table->frames.v[i], full, left);
}

static uint64_t find_in_lsda(struct elf_image *image, uint64_t vaddr)
{
	const struct landing_table *table = get_table(image);
	const struct elf_frame *frame = table ? elf_frames__find(&table->frames, vaddr) : NULL;
	struct lsda_site site;
	struct lsda lsda;

	if (!frame || !open_lsda(table, frame, &lsda))
		return 0;
	while (lsda__next(&lsda, &site))
		if (vaddr - site.start < site.end - site.start)
			return site.pad;
	return 0;
}

/* OCaml's functions. */

/* The index of the function at vaddr, or where to insert it. */
static size_t lower_bound(const struct landing_table *table, uint64_t vaddr)
{
	return VEC_PARTITION_POINT(&table->functions, e, e->vaddr < vaddr);
}

static const struct handling_function *find_function(const struct landing_table *table,
						     uint64_t vaddr)
{
	size_t i = lower_bound(table, vaddr);

	if (i == table->functions.n || table->functions.v[i].vaddr != vaddr)
		return NULL;
	return &table->functions.v[i];
}

/* Wants the lock. Takes the sites over; two threads may have found the same. NULL: no memory. */
static const struct handling_function *keep(struct landing_table *table, uint64_t vaddr,
					    handler_site_vec *sites)
{
	size_t i = lower_bound(table, vaddr);
	const struct handling_function *known = find_function(table, vaddr);
	struct handling_function *v = known ? NULL : VEC_PUSH(&table->functions);

	if (!v) {
		VEC_FINI(sites);
		return known;
	}
	v = table->functions.v;
	memmove(&v[i + 1], &v[i], (table->functions.n - 1 - i) * sizeof(*v));
	v[i] = (struct handling_function){.vaddr = vaddr};
	memcpy(&v[i].sites, sites, sizeof(*sites));
	return &v[i];
}

static uint64_t find_site(const struct handling_function *function, uint64_t vaddr)
{
	size_t n = VEC_PARTITION_POINT(&function->sites, e, e->end <= vaddr);

	if (n == function->sites.n || function->sites.v[n].start > vaddr)
		return 0;
	return function->sites.v[n].handler;
}

/* Calls `ask` for vaddr and the function that holds it. */
static uint64_t ask_function(struct elf_image *image, uint64_t vaddr,
			     uint64_t (*ask)(const struct handling_function *, uint64_t))
{
	const struct function *function = elf_image__function_at(image, vaddr);
	struct landing_table *table = function ? get_table(image) : NULL;
	const struct handling_function *known;
	handler_site_vec sites = {0};
	uint64_t answer;

	if (!table)
		return 0;
	pthread_mutex_lock(&image->lock);
	known = find_function(table, function->vaddr);
	if (!known) {
		pthread_mutex_unlock(&image->lock);
		if (ocaml_flow__find_sites(image, function, &table->note, &sites)) {
			VEC_FINI(&sites);
			return 0;
		}
		pthread_mutex_lock(&image->lock);
		known = keep(table, function->vaddr, &sites);
	}
	answer = known ? ask(known, vaddr) : 0;
	pthread_mutex_unlock(&image->lock);
	return answer;
}

static uint64_t is_handler(const struct handling_function *function, uint64_t vaddr)
{
	for (size_t i = 0; i < function->sites.n; i++)
		if (function->sites.v[i].handler == vaddr)
			return 1;
	return 0;
}

uint64_t landing_pads__find(struct elf_image *image, uint64_t vaddr)
{
	return find_in_lsda(image, vaddr) ?: ask_function(image, vaddr, find_site);
}

enum pad_kind landing_pads__kind(struct elf_image *image, uint64_t vaddr)
{
	const struct landing_table *table = get_table(image);

	if (table && vaddr_vec__has(&table->pads, vaddr, vaddr))
		return PAD_EXCEPTION;
	return ask_function(image, vaddr, is_handler) ? PAD_RAISE : PAD_NONE;
}
