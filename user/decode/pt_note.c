// SPDX-License-Identifier: MIT
#include "decode/pt_note.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

const char *pt_note__name(enum pt_note_kind kind)
{
	static const char *const names[] = {
		[PT_NOTE_NONE] = "none", [PT_NOTE_PTWRITE] = "ptwrite", [PT_NOTE_MWAIT] = "mwait",
		[PT_NOTE_PWRE] = "pwre", [PT_NOTE_EXSTOP] = "exstop",	[PT_NOTE_PWRX] = "pwrx",
		[PT_NOTE_PFA] = "pfa",	 [PT_NOTE_VMXQ] = "vmxq",	[PT_NOTE_VMXR] = "vmxr",
		[PT_NOTE_CFE] = "cfe",
	};

	return kind < sizeof(names) / sizeof(names[0]) ? names[kind] : "none";
}

const char *pt_note__category(enum pt_note_kind kind)
{
	return kind == PT_NOTE_PTWRITE ? "ptwrite" : kind < PT_NOTE_PFA ? "power" : "event";
}

uint8_t pt_event__of(uint64_t cfe)
{
	unsigned int type = cfe & 0x1f, vector = cfe >> 8 & 0xff;
	const unsigned int syscall_vector = 0x80;

	if (type == CFE_INTR && vector < PT_EVENT_SYSTEM - PT_EVENT_EXCEPTION)
		return (uint8_t)(PT_EVENT_EXCEPTION + vector);
	if (type == CFE_INTR && vector >= 0xe0)
		return (uint8_t)(PT_EVENT_SYSTEM + vector - 0xe0);
	if (type == CFE_INTR && vector == syscall_vector)
		return 0;
	if (type == CFE_IRET || type == CFE_RSM || type == CFE_UIRET || type == 11 ||
	    type >= CFE_TYPES)
		return 0;
	return (uint8_t)type;
}

#define EXCEPTION(vector) [PT_EVENT_EXCEPTION + (vector)]
#define SYSTEM(vector)	  [PT_EVENT_SYSTEM + (vector)-0xe0]

/* Exceptions: SDM vol. 3, table 6-1. Linux' vectors: arch/x86/include/asm/irq_vectors.h. */
const char *pt_event__name(uint8_t event)
{
	static const char *const names[PT_EVENT_END] = {
		[CFE_INTR] = "[interrupt]",
		[CFE_SMI] = "[SMI]",
		[CFE_SIPI] = "[startup IPI]",
		[CFE_INIT] = "[INIT]",
		[CFE_VMENTRY] = "[VM entry]",
		[CFE_VMEXIT] = "[VM exit]",
		[CFE_VMEXIT_INTR] = "[VM exit: interrupt]",
		[CFE_SHUTDOWN] = "[shutdown]",
		[CFE_UINTR] = "[user interrupt]",
		EXCEPTION(0) = "[divide error]",
		EXCEPTION(1) = "[debug trap]",
		EXCEPTION(2) = "[NMI]",
		EXCEPTION(3) = "[int3]",
		EXCEPTION(4) = "[overflow trap]",
		EXCEPTION(5) = "[bound range exceeded]",
		EXCEPTION(6) = "[invalid opcode]",
		EXCEPTION(7) = "[FPU not available]",
		EXCEPTION(8) = "[double fault]",
		EXCEPTION(10) = "[invalid TSS]",
		EXCEPTION(11) = "[segment not present]",
		EXCEPTION(12) = "[stack fault]",
		EXCEPTION(13) = "[general protection fault]",
		EXCEPTION(14) = "[page fault]",
		EXCEPTION(16) = "[floating-point error]",
		EXCEPTION(17) = "[alignment check]",
		EXCEPTION(18) = "[machine check]",
		EXCEPTION(19) = "[SIMD floating-point error]",
		EXCEPTION(20) = "[virtualization exception]",
		EXCEPTION(21) = "[control protection fault]",
		SYSTEM(0xec) = "[timer interrupt]",
		SYSTEM(0xf6) = "[irq_work interrupt]",
		SYSTEM(0xfa) = "[thermal interrupt]",
		SYSTEM(0xfb) = "[function call interrupt]",
		SYSTEM(0xfc) = "[function call interrupt]",
		SYSTEM(0xfd) = "[rescheduling interrupt]",
		SYSTEM(0xff) = "[spurious interrupt]",
	};

	if (!event || event >= PT_EVENT_END)
		return NULL;
	return names[event]		  ? names[event]
	       : event >= PT_EVENT_SYSTEM ? "[interrupt]"
					  : "[exception]";
}

char *pt_event__format(uint8_t event, uint64_t address, char text[static PT_EVENT_TEXT_SIZE])
{
	const char *name = pt_event__name(event);
	int len = (int)strlen(name) - 2;

	if (address)
		snprintf(text, PT_EVENT_TEXT_SIZE, "[%.*s 0x%" PRIx64 "]", len, name + 1, address);
	else
		snprintf(text, PT_EVENT_TEXT_SIZE, "%s", name);
	return text;
}

uint8_t pt_event__parse(const char *text)
{
	size_t len = strcspn(text, "]");
	const char *address = strstr(text, " 0x");

	if (address && address < text + len)
		len = (size_t)(address - text);
	if (text[0] != '[' || !strchr(text, ']'))
		return 0;
	for (unsigned int event = 1; event < PT_EVENT_END; event++) {
		const char *name = pt_event__name((uint8_t)event);

		if (strlen(name) == len + 1 && !strncmp(name, text, len))
			return (uint8_t)event;
	}
	return 0;
}

/* C-states as perf script prints them: the CPU's own numbers. */
const char *pt_note__format(const struct pt_note *e, char text[static PT_NOTE_TEXT_SIZE])
{
	const char *name = pt_note__name((enum pt_note_kind)e->kind);
	unsigned int low = e->value & 0xf, high = e->value >> 4 & 0xf, top = e->value >> 8 & 0xf;

	switch ((enum pt_note_kind)e->kind) {
	case PT_NOTE_CFE:
		if (pt_event__of(e->value))
			return pt_event__format(pt_event__of(e->value), e->address, text);
		snprintf(text, PT_NOTE_TEXT_SIZE, "%s", name);
		break;
	case PT_NOTE_PFA:
	case PT_NOTE_VMXQ:
	case PT_NOTE_VMXR:
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
