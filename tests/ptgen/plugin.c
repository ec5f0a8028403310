// SPDX-License-Identifier: MIT
/* The part of ptgen that qemu-x86_64 loads: what it is told of the program, to walk.c. */
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "block.h"
#include "guest_maps.h"
#include "qemu_plugin.h"
#include "shared.h"
#include "signals.h"
#include "walk.h"

int qemu_plugin_version = QEMU_PLUGIN_VERSION;

struct traced_thread {
	struct walk walk;
	struct ptgen_thread *out;
	/* The system call that it is in. */
	uint64_t args[2];
};

/* One a process: a plugin's callbacks have no context of their own. */
static struct {
	struct ptgen_shared *shared;
	struct guest_maps maps;
	struct signals signals;
	struct block *blocks;
	pthread_mutex_t lock; /* of maps and blocks */
	FILE *truth;
	_Atomic bool ending;
	bool off; /* refused; or in a child process, which is not recorded */
} plugin = {.lock = PTHREAD_MUTEX_INITIALIZER};

#define THREAD_LOCAL static __thread __attribute__((tls_model("initial-exec")))
THREAD_LOCAL struct traced_thread *self;
THREAD_LOCAL bool unrecorded; /* there was no room for it */

static void refuse(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(plugin.shared->error, sizeof(plugin.shared->error), format, args);
	va_end(args);
	plugin.off = true;
	_exit(1);
}

/* At the program's first instruction its stack pointer is at argc, with argv behind it. */
static void check_registers(const struct cpu_regs *regs)
{
	struct cpu_regs copy = {0};
	uint64_t argc = 0;
	struct iovec local[2] = {{&copy, sizeof(copy)}, {&argc, sizeof(argc)}};
	struct iovec remote[2] = {{(void *)regs, sizeof(*regs)}, {NULL, sizeof(argc)}};

	if (process_vm_readv(getpid(), &local[0], 1, &remote[0], 1, 0) == sizeof(copy)) {
		remote[1].iov_base = (void *)copy.rsp;
		process_vm_readv(getpid(), &local[1], 1, &remote[1], 1, 0);
	}
	if (argc != plugin.shared->config.argc)
		refuse("this qemu keeps the registers of the CPU elsewhere than 7.2 does");
}

static struct traced_thread *start_thread(const struct cpu_regs *regs)
{
	struct ptgen_shared *shared = plugin.shared;
	uint32_t i = shared->n_threads++;
	struct traced_thread *t;

	if (!i)
		check_registers(regs);
	t = i < PTGEN_THREADS ? calloc(1, sizeof(*t)) : NULL;
	if (!t) {
		unrecorded = true;
		shared->lost++;
		return NULL;
	}
	t->out = &shared->threads[i];
	t->out->tid = gettid();
	memcpy(t->out->comm, shared->config.comm, sizeof(t->out->comm));
	walk__init(&t->walk, shared, i, &plugin.signals, plugin.truth);
	return t;
}

static bool all_ended(const struct ptgen_shared *shared)
{
	for (uint32_t i = 0; i < shared->n_threads && i < PTGEN_THREADS; i++) {
		const struct ptgen_thread *t = &shared->threads[i];

		if (!t->ended && (t->busy || t->stream.enabled))
			return false;
	}
	return true;
}

/* Every thread comes here, or sleeps in a system call: their streams are whole. */
static void end_process(void)
{
	if (atomic_exchange(&plugin.ending, true))
		for (;;)
			pause();
	for (int i = 0; i < 1000 && !all_ended(plugin.shared); i++)
		usleep(1000);
	if (plugin.truth)
		fflush(plugin.truth);
	_exit(0);
}

/*
 * QEMU's code generator keeps the CPU in %rbp (TCG_AREG0), which a C function could not tell; at
 * the begin of a block the registers in it are right.
 */
void plugin__enter_block(unsigned int vcpu, void *block);
__asm__(".text\n"
	"plugin__enter_block:\n"
	"	mov %rbp, %rdx\n"
	"	jmp plugin__on_block\n");

void plugin__on_block(unsigned int vcpu, void *block, const struct cpu_regs *regs);
__attribute__((used, visibility("hidden"))) void plugin__on_block(unsigned int vcpu, void *block,
								  const struct cpu_regs *regs)
{
	if (plugin.off || unrecorded)
		return;
	if (!self)
		self = start_thread(regs);
	if (!self)
		return;
	walk__block(&self->walk, block, regs);
	if (self->out->ended)
		end_process();
}

static bool may_be_handler(uint64_t ip)
{
	for (int nr = 1; nr <= 64; nr++)
		if (plugin.signals.handler[nr] == ip)
			return true;
	return false;
}

static void add_block(struct block *b)
{
	pthread_mutex_lock(&plugin.lock);
	b->is_handler = may_be_handler(b->start);
	b->next = plugin.blocks;
	plugin.blocks = b;
	guest_maps__add_code(&plugin.maps, b->start, b->end);
	pthread_mutex_unlock(&plugin.lock);
}

static void on_translation(qemu_plugin_id_t id, struct qemu_plugin_tb *tb)
{
	size_t n = qemu_plugin_tb_n_insns(tb);
	const struct qemu_plugin_insn *first = qemu_plugin_tb_get_insn(tb, 0);
	const struct qemu_plugin_insn *last = qemu_plugin_tb_get_insn(tb, n - 1);
	uint64_t start = qemu_plugin_insn_vaddr(first);
	struct block *b;

	if (plugin.off)
		return;
	if ((uint64_t)qemu_plugin_insn_haddr(first) != start)
		refuse("this qemu has the program's memory at other addresses than the program");
	/* Kept for good: a block that is no longer run may still be a thread's last one. */
	b = malloc(sizeof(*b));
	if (!b)
		refuse("out of memory");
	block__init(b, start, qemu_plugin_insn_vaddr(last), qemu_plugin_insn_data(last),
		    qemu_plugin_insn_size(last), (uint32_t)n);
	add_block(b);
	qemu_plugin_register_vcpu_tb_exec_cb(tb, plugin__enter_block, QEMU_PLUGIN_CB_R_REGS, b);
}

static void set_handler(uint64_t nr, uint64_t action)
{
	pthread_mutex_lock(&plugin.lock);
	signals__set(&plugin.signals, nr, action);
	for (struct block *b = plugin.blocks; b; b = b->next)
		b->is_handler = may_be_handler(b->start);
	pthread_mutex_unlock(&plugin.lock);
}

static void forget(uint64_t start, uint64_t len)
{
	pthread_mutex_lock(&plugin.lock);
	guest_maps__forget(&plugin.maps, start, start + len);
	pthread_mutex_unlock(&plugin.lock);
}

static void set_comm(struct traced_thread *t, uint64_t name)
{
	char comm[sizeof(t->out->comm)] = "";
	struct iovec local = {comm, sizeof(comm) - 1}, remote = {(void *)name, sizeof(comm) - 1};

	if (process_vm_readv(getpid(), &local, 1, &remote, 1, 0) > 0)
		memcpy(t->out->comm, comm, sizeof(comm));
}

static void on_syscall(qemu_plugin_id_t id, unsigned int vcpu, int64_t nr, uint64_t a1, uint64_t a2,
		       uint64_t a3, uint64_t a4, uint64_t a5, uint64_t a6, uint64_t a7, uint64_t a8)
{
	if (plugin.off || !self)
		return;
	self->args[0] = a1;
	self->args[1] = a2;
	walk__syscall(&self->walk, nr);
	switch (nr) {
	case SYS_rt_sigaction:
		set_handler(a1, a2);
		break;
	case SYS_prctl:
		if (a1 == PR_SET_NAME)
			set_comm(self, a2);
		break;
	case SYS_exit_group:
	case SYS_execve:
		if (plugin.truth)
			fflush(plugin.truth);
		break;
	}
}

static void on_syscall_return(qemu_plugin_id_t id, unsigned int vcpu, int64_t nr, int64_t ret)
{
	if (plugin.off || !self)
		return;
	switch (nr) {
	case SYS_mmap:
		if (ret > 0)
			forget((uint64_t)ret, self->args[1]);
		break;
	case SYS_munmap:
	case SYS_mremap:
		forget(self->args[0], self->args[1]);
		break;
	}
}

static void off_in_child(void)
{
	plugin.off = true;
}

static int open_shared(const char *path)
{
	int fd = open(path, O_RDWR | O_CLOEXEC);
	struct stat st;
	void *p;

	if (fd < 0 || fstat(fd, &st))
		return -1;
	p = mmap(NULL, (size_t)st.st_size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd,
		 0);
	close(fd);
	if (p == MAP_FAILED)
		return -1;
	plugin.shared = plugin.maps.shared = p;
	plugin.shared->pid = getpid();
	return 0;
}

int qemu_plugin_install(qemu_plugin_id_t id, const void *info, int argc, char **argv)
{
	static const char option[] = "shared=";
	const char *truth;

	if (argc != 1 || strncmp(argv[0], option, strlen(option)) ||
	    open_shared(argv[0] + strlen(option)))
		return -1;
	truth = plugin.shared->config.truth_path;
	if (*truth)
		plugin.truth = fopen(truth, "we");
	if (*truth && !plugin.truth)
		return -1;
	pthread_atfork(NULL, NULL, off_in_child);
	qemu_plugin_register_vcpu_tb_trans_cb(id, on_translation);
	qemu_plugin_register_vcpu_syscall_cb(id, on_syscall);
	qemu_plugin_register_vcpu_syscall_ret_cb(id, on_syscall_return);
	return 0;
}
