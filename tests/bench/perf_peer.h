/* SPDX-License-Identifier: MIT */
/* perf record on the same target, switched on and off by its control descriptor. */
#ifndef MTBPF_TESTS_PERF_PEER_H
#define MTBPF_TESTS_PERF_PEER_H

#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static struct {
	pid_t pid; /* 0: it does not run */
	int to, from;
} perf_peer;

/* And waits until it has: "ack\n". False where perf is gone. */
static bool perf_peer__say(const char *command)
{
	char answer[8];

	return dprintf(perf_peer.to, "%s\n", command) > 0 &&
	       read(perf_peer.from, answer, sizeof(answer)) > 0;
}

static void perf_peer__end(void)
{
	if (!perf_peer.pid)
		return;
	kill(perf_peer.pid, SIGTERM);
	waitpid(perf_peer.pid, NULL, 0);
	close(perf_peer.to);
	close(perf_peer.from);
	perf_peer.pid = 0;
}

static void perf_peer__exec(pid_t target, unsigned int hz, int commands, int answers)
{
	char pid[16], rate[16], control[48];
	int null = open("/dev/null", O_WRONLY | O_CLOEXEC);

	prctl(PR_SET_PDEATHSIG, SIGTERM);
	snprintf(pid, sizeof(pid), "%d", target);
	snprintf(rate, sizeof(rate), "%u", hz);
	snprintf(control, sizeof(control), "fd:%d,%d", commands, answers);
	dup2(null, STDOUT_FILENO);
	dup2(null, STDERR_FILENO);
	execlp("perf", "perf", "record", "-q", "-e", "cpu-clock", "-F", rate, "-g", "-D", "-1",
	       "--control", control, "-o", "/dev/null", "-p", pid, NULL);
	_exit(127);
}

/* False where there is no perf that can be switched. It is off. */
static bool perf_peer__start(pid_t target, unsigned int hz)
{
	int commands[2], answers[2];

	signal(SIGPIPE, SIG_IGN);
	if (pipe(commands) || pipe(answers))
		return false;
	perf_peer.pid = fork();
	if (!perf_peer.pid) {
		close(commands[1]);
		close(answers[0]);
		perf_peer__exec(target, hz, commands[0], answers[1]);
	}
	close(commands[0]);
	close(answers[1]);
	perf_peer.to = commands[1];
	perf_peer.from = answers[0];
	/* It answers once it records, and not at all where it has refused. */
	if (perf_peer.pid > 0 && perf_peer__say("enable") && perf_peer__say("disable"))
		return true;
	perf_peer__end();
	return false;
}

#endif
