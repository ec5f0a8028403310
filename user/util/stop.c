// SPDX-License-Identifier: MIT
#include "util/stop.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "util/fs.h"
#include "util/log.h"

#define ERASE "\r\033[K"

static const int signals[] = {SIGINT, SIGTERM, SIGHUP, SIGPIPE};
#define N_SIGNALS (sizeof(signals) / sizeof(signals[0]))

/* A handler is given nothing: what it needs stands here. Only it reads the text. */
static char text[STOP_TEXT_SIZE];
static size_t text_len;
static char partial[PATH_MAX];
static atomic_bool has_partial;
static struct sigaction before[N_SIGNALS];
static bool has_begun;

/* Ends as if there were no handler: who waits for mtbpf sees the signal. */
static void end(int signal)
{
	ssize_t n = 0;

	if (atomic_load(&has_partial) && unlink(partial) && errno == EISDIR)
		fs__remove_dir(partial);
	if (text_len)
		n = write(STDERR_FILENO, text, text_len);
	(void)n;
	raise(signal);
}

static void handle(int i)
{
	/* The signal waits until the handler is left, and does then what it does by default. */
	struct sigaction action = {.sa_handler = end, .sa_flags = (int)SA_RESETHAND};

	if (signals[i] == SIGPIPE)
		action.sa_handler = SIG_IGN;
	for (size_t k = 0; k < N_SIGNALS; k++)
		sigaddset(&action.sa_mask, signals[k]);
	sigaction(signals[i], NULL, &before[i]);
	if (before[i].sa_handler != SIG_IGN)
		sigaction(signals[i], &action, NULL);
}

void stop__begin(const char *said)
{
	int n = 0;

	if (log__level() > LOG_QUIET)
		n = snprintf(text, sizeof(text), "%s%s", log__has_line() ? ERASE : "", said);
	text_len = (size_t)n < sizeof(text) ? (size_t)n : sizeof(text) - 1;
	for (size_t i = 0; i < N_SIGNALS; i++)
		handle((int)i);
	has_begun = true;
}

void stop__end(void)
{
	for (size_t i = 0; i < N_SIGNALS && has_begun; i++)
		sigaction(signals[i], &before[i], NULL);
	has_begun = false;
}

void stop__set_partial(const char *path)
{
	atomic_store(&has_partial, false);
	if (!path || strlen(path) >= sizeof(partial))
		return;
	strcpy(partial, path);
	atomic_store(&has_partial, true);
}
