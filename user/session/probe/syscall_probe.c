// SPDX-License-Identifier: MIT
#include "session/probe/syscall_probe.h"

#include <errno.h>
#include <fnmatch.h>
#include <stdio.h>
#include <string.h>
#include <sys/user.h>

#include "util/log.h"
#include "util/nearest.h"

static const char *const kind_names[] = {
	[MT_FILE_SOCKET] = "socket",   [MT_FILE_REGULAR] = "file",    [MT_FILE_PIPE] = "pipe",
	[MT_FILE_TTY] = "tty",	       [MT_FILE_EVENTFD] = "eventfd", [MT_FILE_EPOLL] = "epoll",
	[MT_FILE_TIMERFD] = "timerfd",
};
#define N_KINDS (sizeof(kind_names) / sizeof(kind_names[0]))

/* A selector, taken apart. */
struct selector {
	char names[256]; /* with | between them */
	enum mt_file_kind kind;
};

struct search {
	const char *text; /* as the user has given it */
	const struct selector *selector;
	probe_fn fn;
	void *ctx;
	size_t n;
};

bool syscall_probe__is_selector(const char *text)
{
	return !strncmp(text, SYSCALL_PREFIX, strlen(SYSCALL_PREFIX));
}

static int refuse_kind(const char *text, const char *kind)
{
	log__error("'%s': there is no kind of descriptor '%s'", text, kind);
	log__hint("socket, file, pipe, tty, eventfd, epoll or timerfd: 'syscall:read(socket)'");
	return -EINVAL;
}

static int take_kind(struct selector *selector, const char *text)
{
	char *open = strchr(selector->names, '('), *close = open ? strchr(open, ')') : NULL;

	if (!open)
		return 0;
	if (!close || close[1])
		return refuse_kind(text, open);
	*open = *close = 0;
	for (size_t i = MT_FILE_SOCKET; i < N_KINDS; i++)
		if (!strcmp(open + 1, kind_names[i]))
			selector->kind = (enum mt_file_kind)i;
	return selector->kind == MT_FILE_ANY ? refuse_kind(text, open + 1) : 0;
}

static int take_apart(struct selector *selector, const char *text)
{
	*selector = (struct selector){0};
	snprintf(selector->names, sizeof(selector->names), "%s", text + strlen(SYSCALL_PREFIX));
	return take_kind(selector, text);
}

/* A result of 0 of these means that there was nothing: a file's end, a closed connection. */
static bool is_reading(const char *name)
{
	return !strncmp(name, "read", 4) || !strncmp(name, "pread", 5) ||
	       !strncmp(name, "recv", 4) || !strncmp(name, "epoll_", 6) || strstr(name, "poll") ||
	       strstr(name, "select");
}

static int take(struct search *search, const char *name, int number)
{
	/* It counts at once, and its registers tell what it was called with. */
	static const uint16_t places[] = {offsetof(struct user_regs_struct, rdi),
					  offsetof(struct user_regs_struct, rsi),
					  offsetof(struct user_regs_struct, rdx)};
	enum mt_file_kind kind = search->selector->kind;
	struct probe probe = {.offset = (uint64_t)number, .site = {.emulated = true}};

	probe.args.n = sizeof(places) / sizeof(places[0]);
	for (size_t i = 0; i < probe.args.n; i++)
		probe.args.v[i] =
			(struct mt_arg){.kind = MT_ARG_REGISTER, .base = places[i], .size = 8};
	probe.syscall = (struct trigger_syscall){
		.name = name,
		.number = number,
		.what = {.file_kind = (uint8_t)kind, .reads = is_reading(name)}};
	snprintf(probe.name, sizeof(probe.name), SYSCALL_PREFIX "%s%s%s%s", name, kind ? "(" : "",
		 kind ? kind_names[kind] : "", kind ? ")" : "");
	snprintf(probe.path, sizeof(probe.path), "%s", probe.name);
	search->n++;
	return search->fn(search->ctx, &probe);
}

/* With a kind those alone that have a descriptor. */
static int each_match(struct search *search, const char *glob)
{
	int err = 0;

	for (int i = 0; i < MT_SYSCALLS && !err; i++) {
		const char *name = syscall__name(i);

		if (!name || fnmatch(glob, name, 0))
			continue;
		if (!search->selector->kind || syscall__is_of_file(i))
			err = take(search, name, i);
	}
	return err;
}

static int refuse_unknown(const struct search *search)
{
	struct nearest nearest = {.word = search->selector->names};
	const char *meant;

	for (int i = 0; i < MT_SYSCALLS; i++)
		if (syscall__name(i))
			nearest__offer(&nearest, syscall__name(i));
	meant = nearest__result(&nearest);
	log__error("'%s': no such system call%s", search->text,
		   search->selector->kind ? " that takes a descriptor first" : "");
	if (meant && strcmp(meant, search->selector->names))
		log__hint("did you mean " SYSCALL_PREFIX "%s?", meant);
	else
		log__hint("by its name, as strace shows it: " SYSCALL_PREFIX
			  "fsync, '" SYSCALL_PREFIX "recv*(socket)'");
	return -ENOENT;
}

int syscall_probe__each(const char *text, probe_fn fn, void *ctx)
{
	struct selector selector;
	struct search search = {.text = text, .selector = &selector, .fn = fn, .ctx = ctx};
	char names[sizeof(selector.names)], *rest = names, *name;
	int err = take_apart(&selector, text);

	strcpy(names, selector.names);
	while (!err && (name = strsep(&rest, "|")))
		err = each_match(&search, name);
	if (err)
		return err;
	return search.n ? 0 : refuse_unknown(&search);
}
