// SPDX-License-Identifier: MIT
#include "target/unwind/cfi.h"

#include <stdlib.h>
#include <string.h>

#include "target/unwind/cfi_program.h"
#include "target/elf/elf_internal.h"

struct cfi_table {
	elf_frame_vec frames; /* ascending */
};

void cfi_table__free(struct cfi_table *table)
{
	if (!table)
		return;
	VEC_FINI(&table->frames);
	free(table);
}

static struct cfi_table *build(struct elf_image *image)
{
	struct cfi_table *table = calloc(1, sizeof(*table));

	if (table && elf_image__load_frames(image, &table->frames)) {
		cfi_table__free(table);
		return NULL;
	}
	return table;
}

/* What describes vaddr, and what that starts from. */
static const struct elf_frame *find_frame(struct elf_image *image, uint64_t vaddr, Dwarf_CIE *cie)
{
	const struct elf_frame *frame = NULL;

	pthread_mutex_lock(&image->lock);
	if (!image->cfi)
		image->cfi = build(image);
	if (image->cfi)
		frame = elf_frames__find(&image->cfi->frames, vaddr);
	if (frame && (!frame->program || !elf_image__read_cie(image, frame->cie, cie)))
		frame = NULL;
	pthread_mutex_unlock(&image->lock);
	return frame;
}

/*
 * What a callee need not keep is lost without a rule that says otherwise. The caller's stack
 * pointer is the CFA.
 */
static void reset(struct cfi_row *row)
{
	static const uint8_t kept[] = {CFI_RBX, CFI_RBP, CFI_R12, CFI_R13, CFI_R14, CFI_R15};

	*row = (struct cfi_row){.cfa = {.kind = CFI_NOT_UNDERSTOOD}};
	for (int i = 0; i < CFI_REGISTERS; i++)
		row->registers[i].kind = CFI_UNDEFINED;
	for (size_t i = 0; i < sizeof(kept); i++)
		row->registers[kept[i]].kind = CFI_SAME;
	row->registers[CFI_RSP].kind = CFI_CFA_PLUS;
	row->registers[CFI_RETURN].kind = CFI_NOT_UNDERSTOOD;
}

bool cfi__find(struct elf_image *image, uint64_t vaddr, struct cfi_row *row)
{
	struct cfi_program program = {.until = vaddr};
	const struct elf_frame *frame;
	struct cfi_row initial;
	Dwarf_CIE cie;

	frame = find_frame(image, vaddr, &cie);
	if (!frame || cie.return_address_register != CFI_RETURN)
		return false;
	reset(row);
	row->is_signal = strchr(cie.augmentation, 'S') != NULL;
	program.code_factor = cie.code_alignment_factor;
	program.data_factor = cie.data_alignment_factor;
	program.at = cie.initial_instructions;
	program.end = cie.initial_instructions_end;
	program.location = vaddr;
	if (!cfi_program__run(&program, row))
		return false;
	initial = *row;
	program.initial = &initial;
	program.at = frame->program;
	program.end = frame->program_end;
	program.location = frame->start;
	return cfi_program__run(&program, row) && row->cfa.kind != CFI_NOT_UNDERSTOOD;
}
