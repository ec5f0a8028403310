// SPDX-License-Identifier: MIT
#include "target/unwind/landing_pads.h"

#include <dwarf.h>
#include <errno.h>
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

/* Up to 64 bits. */
static bool read_leb128(struct eh_bytes *bytes, bool is_signed, uint64_t *value)
{
	uint8_t byte;

	*value = 0;
	for (unsigned int shift = 0; shift < 64; shift += 7) {
		if (!read_byte(bytes, &byte))
			return false;
		*value |= (uint64_t)(byte & 0x7f) << shift;
		if (byte & 0x80)
			continue;
		if (is_signed && shift + 7 < 64 && byte & 0x40)
			*value |= ~(uint64_t)0 << (shift + 7);
		return true;
	}
	return false;
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
		return read_leb128(bytes, false, value);
	case DW_EH_PE_sleb128:
		return read_leb128(bytes, true, value);
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

/*
 * .eh_frame describes every function that an exception may pass, also in a stripped file: its
 * FDEs say where functions lie. LSB Core 5.0, 10.6 "Exception Frames" and 10.5 "DWARF Extensions".
 */

struct frame_section {
	const unsigned char *e_ident;
	Elf_Data *data;
	uint64_t addr;
	Dwarf_Off cie;	  /* offset of the CIE that the members below are from */
	uint8_t encoding; /* of the addresses in its FDEs */
	uint8_t lsda;	  /* encoding of the LSDA's address in FDEs; DW_EH_PE_omit: none */
	bool is_sized;	  /* its FDEs give the length of their augmentation data */
};

/*
 * Reads the augmentation of a CIE, whose letters say what its data and its FDEs contain. False if
 * it cannot be read, or hides how addresses are encoded ('R').
 */
static bool use_cie(struct frame_section *section, Dwarf_Off offset)
{
	Dwarf_CFI_Entry entry;
	const char *letter;
	struct eh_bytes data;
	uint64_t personality;
	Dwarf_Off next;
	bool has_encoding;

	if (offset == section->cie)
		return true;
	if (offset >= section->data->d_size ||
	    dwarf_next_cfi(section->e_ident, section->data, true, offset, &next, &entry) ||
	    !dwarf_cfi_cie_p(&entry))
		return false;
	section->cie = (Dwarf_Off)-1;
	section->encoding = DW_EH_PE_absptr;
	section->lsda = DW_EH_PE_omit;
	letter = entry.cie.augmentation;
	section->is_sized = *letter == 'z';
	data = (struct eh_bytes){.at = entry.cie.augmentation_data};
	if (section->is_sized)
		letter++;
	has_encoding = section->is_sized && data.at ? !strchr(letter, 'R') : !*letter;
	if (section->is_sized && data.at)
		data.end = data.at + entry.cie.augmentation_data_size;
	for (; data.end && *letter; letter++) {
		uint8_t encoding;

		if (*letter == 'S' || *letter == 'B')
			continue;
		if (!read_byte(&data, &encoding))
			break;
		if (*letter == 'R')
			section->encoding = encoding;
		else if (*letter == 'L')
			section->lsda = encoding;
		else if (*letter != 'P' || !eh_bytes__pointer(&data, encoding & 0x0f, &personality))
			break;
		has_encoding |= *letter == 'R';
	}
	if (has_encoding)
		section->cie = offset;
	return has_encoding;
}

/* False if the FDE is damaged, or in an encoding that is not used for code. */
static bool read_fde(struct frame_section *section, const Dwarf_FDE *fde, struct elf_frame *out)
{
	const uint8_t *base = section->data->d_buf;
	struct eh_bytes bytes = {fde->start, fde->end,
				 section->addr + (uint64_t)(fde->start - base)};
	uint64_t len;

	if (fde->end < fde->start || !use_cie(section, fde->CIE_pointer) ||
	    !eh_bytes__pointer(&bytes, section->encoding, &out->start))
		return false;
	/* The length is encoded in the same format, without sign and base. */
	if (!eh_bytes__pointer(&bytes, section->encoding & 0x07, &len))
		return false;
	out->end = out->start + len;
	out->lsda = 0;
	if (section->is_sized && section->lsda != DW_EH_PE_omit &&
	    read_leb128(&bytes, false, &len) && len <= (uint64_t)(bytes.end - bytes.at)) {
		bytes.end = bytes.at + len;
		if (!eh_bytes__pointer(&bytes, section->lsda, &out->lsda))
			out->lsda = 0;
	}
	return out->end > out->start;
}

int elf_image__load_frames(struct elf_image *image, elf_frame_vec *frames)
{
	struct frame_section section = {.cie = (Dwarf_Off)-1};
	Dwarf_Off offset = 0, next;
	Dwarf_CFI_Entry entry;
	struct elf_frame frame;
	GElf_Shdr shdr;
	Elf_Scn *scn = elf_image__section(image, ".eh_frame", &shdr);
	int result, err = 0;

	if (!scn || !elf_section__data(scn, 1))
		return 0;
	section.e_ident = (const unsigned char *)elf_getident(image->elf, NULL);
	section.data = elf_getdata(scn, NULL);
	section.addr = shdr.sh_addr;
	for (; section.e_ident && !err; offset = next) {
		next = offset;
		result = dwarf_next_cfi(section.e_ident, section.data, true, offset, &next, &entry);
		/* On some errors libdw knows where the next entry begins. */
		if (result > 0 || next == (Dwarf_Off)-1 || next <= offset)
			break;
		if (!result && !dwarf_cfi_cie_p(&entry) && read_fde(&section, &entry.fde, &frame))
			err = VEC_ADD(frames, frame);
	}
	VEC_SORT_BY(frames, start);
	return err;
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
	if (byte != DW_EH_PE_omit && !read_leb128(&table, false, &types))
		return false;
	if (!read_byte(&table, &lsda->encoding) || !read_leb128(&table, false, &len) ||
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
	    !read_value(sites, lsda->encoding, &pad) || !read_leb128(sites, false, &action))
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

static bool open_lsda(const struct landing_table *table, const struct elf_frame *frame,
		      struct lsda *lsda)
{
	struct eh_bytes bytes = {table->bytes + (frame->lsda - table->vaddr),
				 table->bytes + table->len, frame->lsda};

	return lsda__open(lsda, bytes, frame->start);
}

/* NULL: out of memory. Empty if the image has no such table. */
static struct landing_table *build(struct elf_image *image)
{
	struct landing_table *table = calloc(1, sizeof(*table));
	const Elf_Data *data;
	struct lsda_site site;
	struct lsda lsda;
	size_t left;
	GElf_Shdr shdr;
	int err = 0;

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
	/* Keeps only frames whose table the section contains. */
	VEC_DROP(&table->frames, frame, !frame->lsda || frame->lsda - table->vaddr >= table->len);
	/*
	 * A call site takes 4 bytes or more. Only in a damaged file do functions share their
	 * tables, so that there would be more call sites than that.
	 */
	left = table->len / 4;
	VEC_EACH_WHILE(&table->frames, frame, left && !err) {
		if (!open_lsda(table, frame, &lsda))
			continue;
		for (; left && !err && lsda__next(&lsda, &site); left--)
			if (site.pad)
				err = VEC_ADD(&table->pads, site.pad);
	}
	if (err) {
		landing_table__free(table);
		return NULL;
	}
	VEC_SORT_U64(&table->pads);
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
		const struct function *f = apart ? &apart->entry->function : NULL;

		/*
		 * The code must have neither a symbol nor a name found at the program's entry
		 * (_start, main). A jump to where a function begins may call it.
		 */
		if (f && f->kind == FUNCTION_UNKNOWN && !f->raw_name &&
		    (at == site.pad || at != apart->start))
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

/* OCaml's functions. */

/*
 * The sites of an OCaml function, whose code is followed at the first call; NULL: out of memory.
 * The caller holds image->lock, which is released while the code is followed.
 */
static const handler_site_vec *sites_of(struct elf_image *image, const struct function *function)
{
	struct landing_table *table = image->pads;
	struct handling_function added = {.vaddr = function->vaddr};
	size_t i = VEC_PARTITION_POINT(&table->functions, e, e->vaddr < added.vaddr);
	int err;

	if (i < table->functions.n && table->functions.v[i].vaddr == added.vaddr)
		return &table->functions.v[i].sites;
	pthread_mutex_unlock(&image->lock);
	err = ocaml_flow__find_sites(image, function, &table->note, &added.sites);
	pthread_mutex_lock(&image->lock);
	/* Another thread may have added the function. */
	i = VEC_PARTITION_POINT(&table->functions, e, e->vaddr < added.vaddr);
	if (err || (i < table->functions.n && table->functions.v[i].vaddr == added.vaddr) ||
	    VEC_INSERT(&table->functions, i, added)) {
		VEC_FINI(&added.sites);
		return i < table->functions.n && table->functions.v[i].vaddr == added.vaddr
			       ? &table->functions.v[i].sites
			       : NULL;
	}
	return &table->functions.v[i].sites;
}

/*
 * The handler of the OCaml call or raise at vaddr; 0: none. Sets *is_handler, if not NULL, if vaddr
 * is the handler of any site of its function.
 */
static uint64_t ask_function(struct elf_image *image, uint64_t vaddr, bool *is_handler)
{
	const struct function *function = elf_image__function_at(image, vaddr);
	const handler_site_vec *sites;
	uint64_t handler = 0;
	size_t n;

	if (!function || !get_table(image))
		return 0;
	pthread_mutex_lock(&image->lock);
	sites = sites_of(image, function);
	if (sites) {
		n = VEC_PARTITION_POINT(sites, e, e->end <= vaddr);
		if (n < sites->n && sites->v[n].start <= vaddr)
			handler = sites->v[n].handler;
		for (size_t i = 0; is_handler && i < sites->n; i++)
			*is_handler |= sites->v[i].handler == vaddr;
	}
	pthread_mutex_unlock(&image->lock);
	return handler;
}

uint64_t landing_pads__find(struct elf_image *image, uint64_t vaddr)
{
	const struct landing_table *table = get_table(image);
	struct lsda_site site = {0};
	struct lsda lsda;
	bool is_found = false;
	size_t n = table ? VEC_PARTITION_POINT(&table->frames, e, e->start <= vaddr) : 0;

	if (n && vaddr < table->frames.v[n - 1].end &&
	    open_lsda(table, &table->frames.v[n - 1], &lsda))
		while (!is_found && lsda__next(&lsda, &site))
			is_found = vaddr - site.start < site.end - site.start;
	return is_found && site.pad ? site.pad : ask_function(image, vaddr, NULL);
}

enum pad_kind landing_pads__kind(struct elf_image *image, uint64_t vaddr)
{
	const struct landing_table *table = get_table(image);
	bool is_handler = false;

	if (table && vaddr_vec__has(&table->pads, vaddr, vaddr))
		return PAD_EXCEPTION;
	ask_function(image, vaddr, &is_handler);
	return is_handler ? PAD_RAISE : PAD_NONE;
}
