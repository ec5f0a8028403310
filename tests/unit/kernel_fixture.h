/* SPDX-License-Identifier: MIT */
/* A small kernel: its /proc/kcore, kallsyms and modules, in a folder of their own. */
#ifndef MTBPF_TESTS_KERNEL_FIXTURE_H
#define MTBPF_TESTS_KERNEL_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <elf.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "util/fs.h"

#define KERNEL_TEXT	 0xffffffff81000000ull
#define KERNEL_TEXT_SIZE 0x2000
#define MODULE_AREA	 0xffffffffc0000000ull
#define MODULE_AREA_SIZE 0x40000
#define MODULE_TEXT	 0xffffffffc0010000ull
#define BPF_TEXT	 0xffffffffc0020000ull

/* Functions, from KERNEL_TEXT on, and where something happens in them. */
enum {
	ENTRY_SYSCALL = 0x000,
	CALL_DO_SYSCALL = ENTRY_SYSCALL + 3,
	SYSRET = ENTRY_SYSCALL + 8,
	DO_SYSCALL = 0x040,
	CALL_MODULE = DO_SYSCALL + 7,
	PAGE_FAULT = 0x080,
	TIMER = 0x100,
	SCHEDULE = 0x180,
	SCHED_OUT = 0x1c0,
	PT_STOP = 0x200,
	FINISH_SWITCH = 0x240,
	PT_START = 0x280,
	DO_SYSCALL_COLD = 0x300,
};

static const struct {
	uint16_t at;
	uint8_t n, bytes[12];
} kernel_pieces[] = {
	/* mov %rax, %cr3; call do_syscall_64; sysretq */
	{ENTRY_SYSCALL, 11, {0x0f, 0x22, 0xd8, 0xe8, 0x38, 0, 0, 0, 0x48, 0x0f, 0x07}},
	/* nop; call __schedule; nop; call *%rax; ret */
	{DO_SYSCALL, 10, {0x90, 0xe8, 0x3a, 1, 0, 0, 0x90, 0xff, 0xd0, 0xc3}},
	/* nop; iretq */
	{PAGE_FAULT, 3, {0x90, 0x48, 0xcf}},
	{TIMER, 3, {0x90, 0x48, 0xcf}},
	/* call sched_out; nop; call finish_switch; ret */
	{SCHEDULE, 12, {0xe8, 0x3b, 0, 0, 0, 0x90, 0xe8, 0xb5, 0, 0, 0, 0xc3}},
	/* call pt_stop; ret */
	{SCHED_OUT, 6, {0xe8, 0x3b, 0, 0, 0, 0xc3}},
	/* nop; wrmsr; ret */
	{PT_STOP, 4, {0x90, 0x0f, 0x30, 0xc3}},
	/* call pt_start; nop; ret */
	{FINISH_SWITCH, 7, {0xe8, 0x3b, 0, 0, 0, 0x90, 0xc3}},
	/* wrmsr; nop; ret */
	{PT_START, 4, {0x0f, 0x30, 0x90, 0xc3}},
};

static const char kernel_kallsyms[] = "0000000000000000 A fixed_percpu_data\n"
				      "ffffffff81000000 T _stext\n"
				      "ffffffff81000000 T entry_SYSCALL_64\n"
				      "ffffffff81000040 T do_syscall_64\n"
				      "ffffffff81000040 T __do_syscall_64\n"
				      "ffffffff81000080 T asm_exc_page_fault\n"
				      "ffffffff81000100 t asm_sysvec_apic_timer_interrupt\n"
				      "ffffffff81000180 t __schedule\n"
				      "ffffffff810001c0 T __perf_event_task_sched_out\n"
				      "ffffffff81000200 t pt_config_stop\n"
				      "ffffffff81000240 t finish_task_switch.isra.0\n"
				      "ffffffff81000280 t pt_config_start\n"
				      "ffffffff81000300 t do_syscall_64.cold\n"
				      "ffffffff81001800 T _etext\n"
				      "ffffffff81002000 D some_data\n"
				      "ffffffffc0010000 t mod_read\t[mod]\n"
				      "ffffffffc0010010 t mod_write\t[mod]\n"
				      "ffffffffc0010800 d mod_data\t[mod]\n"
				      "ffffffffc0020000 t bpf_prog_0123_on_hit\t[bpf]\n";

static const char kernel_modules[] = "mod 12288 1 - Live 0xffffffffc0010000 (OE)\n"
				     "other 4096 0 - Live 0x0000000000000000\n";

static inline void fill_kernel_text(uint8_t text[KERNEL_TEXT_SIZE])
{
	memset(text, 0x90, KERNEL_TEXT_SIZE);
	for (size_t i = 0; i < sizeof(kernel_pieces) / sizeof(kernel_pieces[0]); i++)
		memcpy(text + kernel_pieces[i].at, kernel_pieces[i].bytes, kernel_pieces[i].n);
}

/* Zeroes where nothing is mapped, as the kernel's own shows it. */
static inline void fill_module_area(uint8_t area[MODULE_AREA_SIZE])
{
	static const uint8_t nop_ret[] = {0x90, 0xc3};

	memset(area, 0, MODULE_AREA_SIZE);
	memcpy(area + (MODULE_TEXT - MODULE_AREA), nop_ret, sizeof(nop_ret));
	memcpy(area + (MODULE_TEXT - MODULE_AREA) + 0x10, nop_ret, sizeof(nop_ret));
	memcpy(area + (BPF_TEXT - MODULE_AREA), nop_ret, sizeof(nop_ret));
}

static inline void write_in(const char *folder, const char *name, const void *data, size_t size)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	assert_int_equal(fs__write(path, data, size), 0);
}

/* Notes first, then the areas in no order, at offsets of no order either. */
static inline void write_kcore(const char *folder)
{
	const size_t size = 0x1000 + MODULE_AREA_SIZE + KERNEL_TEXT_SIZE;
	uint8_t *file = calloc(1, size);
	Elf64_Ehdr ehdr = {.e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB,
				       EV_CURRENT},
			   .e_type = ET_CORE,
			   .e_machine = EM_X86_64,
			   .e_version = EV_CURRENT,
			   .e_phoff = sizeof(ehdr),
			   .e_ehsize = sizeof(ehdr),
			   .e_phentsize = sizeof(Elf64_Phdr),
			   .e_phnum = 3};
	Elf64_Phdr phdrs[] = {
		{.p_type = PT_NOTE, .p_offset = 0x400},
		{.p_type = PT_LOAD,
		 .p_flags = PF_R | PF_W | PF_X,
		 .p_offset = 0x1000 + MODULE_AREA_SIZE,
		 .p_vaddr = KERNEL_TEXT,
		 .p_filesz = KERNEL_TEXT_SIZE,
		 .p_memsz = KERNEL_TEXT_SIZE},
		{.p_type = PT_LOAD,
		 .p_flags = PF_R | PF_W | PF_X,
		 .p_offset = 0x1000,
		 .p_vaddr = MODULE_AREA,
		 .p_filesz = MODULE_AREA_SIZE,
		 .p_memsz = MODULE_AREA_SIZE},
	};

	assert_non_null(file);
	memcpy(file, &ehdr, sizeof(ehdr));
	memcpy(file + sizeof(ehdr), phdrs, sizeof(phdrs));
	fill_module_area(file + 0x1000);
	fill_kernel_text(file + 0x1000 + MODULE_AREA_SIZE);
	write_in(folder, "kcore", file, size);
	free(file);
}

/* The folder is the caller's to remove with fs__remove_dir(). */
static inline void make_proc(char folder[static 40])
{
	strcpy(folder, "/tmp/test_kernel.XXXXXX");
	assert_non_null(mkdtemp(folder));
	write_kcore(folder);
	write_in(folder, "kallsyms", kernel_kallsyms, sizeof(kernel_kallsyms) - 1);
	write_in(folder, "modules", kernel_modules, sizeof(kernel_modules) - 1);
}

#endif
