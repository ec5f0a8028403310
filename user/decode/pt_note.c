// SPDX-License-Identifier: MIT
#include "decode/pt_note.h"

#include <inttypes.h>
#include <stdio.h>

const char *pt_note__name(enum pt_note_kind kind)
{
	static const char *const names[] = {
		[PT_NOTE_NONE] = "none", [PT_NOTE_PTWRITE] = "ptwrite", [PT_NOTE_MWAIT] = "mwait",
		[PT_NOTE_PWRE] = "pwre", [PT_NOTE_EXSTOP] = "exstop",	[PT_NOTE_PWRX] = "pwrx",
	};

	return kind < sizeof(names) / sizeof(names[0]) ? names[kind] : "none";
}

/* C-states as perf script prints them: the CPU's own numbers. */
const char *pt_note__format(const struct pt_note *e, char text[static PT_NOTE_TEXT_SIZE])
{
	const char *name = pt_note__name((enum pt_note_kind)e->kind);
	unsigned int low = e->value & 0xf, high = e->value >> 4 & 0xf, top = e->value >> 8 & 0xf;

	switch ((enum pt_note_kind)e->kind) {
	case PT_NOTE_PTWRITE:
		snprintf(text, PT_NOTE_TEXT_SIZE, "%s 0x%" PRIx64, name, e->value);
		break;
	case PT_NOTE_MWAIT:
		snprintf(text, PT_NOTE_TEXT_SIZE, "%s hints 0x%" PRIx32 " extensions 0x%" PRIx64,
			 name, (uint32_t)e->value, e->value >> 32);
		break;
	case PT_NOTE_PWRE:
		snprintf(text, PT_NOTE_TEXT_SIZE, "%s cstate %u sub-cstate %u hw %u", name, high,
			 low, top & 1);
		break;
	case PT_NOTE_PWRX:
		snprintf(text, PT_NOTE_TEXT_SIZE,
			 "%s deepest cstate %u last cstate %u wake reason 0x%x", name, low, high,
			 top);
		break;
	default:
		snprintf(text, PT_NOTE_TEXT_SIZE, "%s", name);
		break;
	}
	return text;
}
