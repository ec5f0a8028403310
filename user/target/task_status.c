// SPDX-License-Identifier: MIT
#include "target/task_status.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "util/cleanup.h"
#include "util/fs.h"
#include "util/label.h"

void task_comm__copy(char comm[static PROCESS_COMM_SIZE], const char *text)
{
	snprintf(comm, PROCESS_COMM_SIZE, "%.*s", (int)strcspn(text, "\n"), text);
	label__clean_in_place(comm);
}

/* The text behind "\nField:\t", or NULL. */
static const char *field(const char *text, const char *name)
{
	const char *at = strstr(text, name);

	return at ? at + strlen(name) : NULL;
}

/* "NSpid:\t4711\t17\t1": one for each namespace, its own last. */
static pid_t last_pid(const char *line)
{
	const char *tab;

	if (!line)
		return 0;
	tab = memrchr(line, '\t', strcspn(line, "\n"));
	return atoi(tab ? tab + 1 : line);
}

int task_status__parse(struct task_status *status, const char *text)
{
	/* The kernel escapes newlines in the name, so a field cannot be forged by it. */
	const char *name = !strncmp(text, "Name:\t", 6) ? text + 6 : NULL;
	const char *state = field(text, "\nState:\t");
	const char *tgid = field(text, "\nTgid:\t");
	const char *tracer = field(text, "\nTracerPid:\t");
	const char *threads = field(text, "\nThreads:\t");

	if (!name || !state || !tgid || !tracer || !threads)
		return -ESRCH;
	*status = (struct task_status){
		.state = *state,
		.tgid = atoi(tgid),
		.tracer = atoi(tracer),
		.threads = (unsigned int)strtoul(threads, NULL, 10),
		.has_memory = field(text, "\nVmSize:\t") != NULL,
		.pid_inside = last_pid(field(text, "\nNSpid:\t")),
	};
	task_comm__copy(status->comm, name);
	return 0;
}

int task_status__read(struct task_status *status, pid_t pid)
{
	_cleanup_free_ char *text = NULL;
	char path[64];
	size_t len;
	int err;

	if (pid <= 0)
		return -ESRCH;
	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	err = fs__read(path, &text, &len);
	if (err)
		return err == -ENOENT ? -ESRCH : err;
	return task_status__parse(status, text);
}
