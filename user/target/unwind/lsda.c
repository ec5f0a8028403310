// SPDX-License-Identifier: MIT
#include "target/unwind/lsda.h"

#include <dwarf.h>
#include <string.h>

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

bool lsda__next(struct lsda *lsda, struct call_site *site)
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
