/* SPDX-License-Identifier: MIT */
/*
 * The same question asked with bpftrace: a latch of each thread and a compare, at a uprobe or at a
 * kprobe.
 */
#ifndef MTBPF_BENCH_BPFTRACE_H
#define MTBPF_BENCH_BPFTRACE_H

#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>

#include "trigger_target.h"

/* The end of what it prints is how often it was hit. */
#define BPFTRACE_SCRIPT                                                                            \
	"%s { $now = nsecs; $last = @last[tid]; @last[tid] = $now; "                               \
	"@hits = count(); if ($last && $now - $last > 3600000000000) { printf(\"slow\\n\"); } } "  \
	"END { clear(@last); }"

struct bpftrace {
	pid_t pid;
	FILE *out;
};

/* The probe is that of a kernel function, if kprobe is not NULL; otherwise of victim_push(). */
static inline void bpftrace__exec(pid_t pid, const char *program, const char *kprobe, int out)
{
	char script[PATH_MAX + 512], target[16], probe[PATH_MAX + 64];

	if (kprobe)
		snprintf(probe, sizeof(probe), "kprobe:%s /pid == %d/", kprobe, pid);
	else
		snprintf(probe, sizeof(probe), "uprobe:%s:victim_push", program);
	snprintf(script, sizeof(script), BPFTRACE_SCRIPT, probe);
	snprintf(target, sizeof(target), "%d", pid);
	dup2(out, STDOUT_FILENO);
	dup2(out, STDERR_FILENO);
	execlp("bpftrace", "bpftrace", "-p", target, "-e", script, NULL);
	_exit(127);
}

/* The kernel lists its kprobes. */
static inline bool bpftrace__has_kprobe(const char *kprobe)
{
	FILE *list = fopen("/sys/kernel/debug/kprobes/list", "re");
	bool found = false;
	char line[256];

	while (list && !found && fgets(line, sizeof(line), list))
		found = strstr(line, kprobe);
	if (list)
		fclose(list);
	return found;
}

/* Attaching takes it a second: until the int3 is there, or it has ended. */
static inline bool bpftrace__is_attached(const struct bpftrace *b, pid_t pid, const char *kprobe)
{
	char path[64];
	uint8_t byte;
	FILE *mem;

	if (kprobe)
		return bpftrace__has_kprobe(kprobe);
	snprintf(path, sizeof(path), "/proc/%d/mem", pid);
	mem = fopen(path, "re");
	if (!mem || fseek(mem, (long)(uintptr_t)victim_push, SEEK_SET) ||
	    fread(&byte, 1, 1, mem) != 1)
		die("the target's memory");
	fclose(mem);
	return byte == 0xcc;
}

/* Attaching takes a second, or ten on a busy machine. */
#define BPFTRACE_LIMIT_S 30

/* False if there is no bpftrace, if it cannot attach, or if it takes too long. */
static inline bool bpftrace__start(struct bpftrace *b, pid_t pid, const char *kprobe)
{
	char program[PATH_MAX] = "";
	int out[2];

	if (readlink("/proc/self/exe", program, sizeof(program) - 1) < 0 || pipe2(out, O_CLOEXEC))
		die("bpftrace");
	b->pid = fork();
	if (!b->pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		bpftrace__exec(pid, program, kprobe, out[1]);
	}
	close(out[1]);
	b->out = fdopen(out[0], "r");
	for (int i = 0; !bpftrace__is_attached(b, pid, kprobe); i++) {
		bool has_ended = waitpid(b->pid, NULL, WNOHANG) == b->pid;

		if (has_ended || i == BPFTRACE_LIMIT_S * 100) {
			if (!has_ended)
				kill(b->pid, SIGKILL);
			fclose(b->out);
			return false;
		}
		usleep(10000);
	}
	return true;
}

/*
 * How often it was hit; -1: it did not say. bpftrace loses a signal that comes after its probes are
 * attached and before it waits, and prints its maps at the first that it gets: it is asked again.
 */
static inline int64_t bpftrace__stop(struct bpftrace *b)
{
	struct pollfd pfd = {.fd = fileno(b->out), .events = POLLIN};
	unsigned long long hits;
	int64_t result = -1;
	char line[256];

	for (int i = 0; i < BPFTRACE_LIMIT_S; i++) {
		kill(b->pid, SIGINT);
		if (waitpid(b->pid, NULL, WNOHANG) == b->pid)
			break;
		usleep(i ? 1000000 : 200000);
	}
	kill(b->pid, SIGKILL);
	waitpid(b->pid, NULL, 0);
	while (poll(&pfd, 1, 0) > 0 && fgets(line, sizeof(line), b->out))
		if (sscanf(line, "@hits: %llu", &hits) == 1)
			result = (int64_t)hits;
	fclose(b->out);
	return result;
}

#endif
