// SPDX-License-Identifier: MIT
#include "session/probe/kernel_probe.h"

#include <errno.h>
#include <fnmatch.h>
#include <glob.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/user.h>

#include "session/probe/jit_probe.h"
#include "util/cleanup.h"
#include "util/fs.h"
#include "util/log.h"
#include "util/names.h"
#include "util/vec.h"

static const char *const kind_names[] = {
	[MT_FILE_SOCKET] = "socket",   [MT_FILE_REGULAR] = "file",    [MT_FILE_PIPE] = "pipe",
	[MT_FILE_TTY] = "tty",	       [MT_FILE_EVENTFD] = "eventfd", [MT_FILE_EPOLL] = "epoll",
	[MT_FILE_TIMERFD] = "timerfd",
};
#define N_KINDS (sizeof(kind_names) / sizeof(kind_names[0]))

struct search {
	enum mt_file_kind kind; /* kind of file of the call's descriptor; MT_FILE_ANY: any */
	probe_fn fn;
	void *ctx;
	size_t n;
	bool is_start; /* the selector is that of -start */
};

static int refuse_kind(const char *text, const char *kind)
{
	log__error("'%s': unknown kind of descriptor '%s'", text, kind);
	log__hint("use socket, file, pipe, tty, eventfd, epoll or timerfd, as in "
		  "'syscall:read(socket)'");
	return -EINVAL;
}

/*
 * True for system calls whose result 0 means that the file has ended, the connection is closed, or
 * nothing is ready.
 */
static bool is_reading(const char *name)
{
	static const char *const names[] = {
		"read",	    "readv",   "pread64",    "preadv",	    "preadv2",
		"recvfrom", "recvmsg", "recvmmsg",   "select",	    "poll",
		"pselect6", "ppoll",   "epoll_wait", "epoll_pwait", "epoll_pwait2",
	};

	return ARRAY_FIND(names, e, !strcmp(name, *e));
}

static int refuse_end(const char *name)
{
	log__error("-start %s: recording cannot begin there, because the thread ends there", name);
	log__hint("use it as -stop: -start NAME -stop %s", name);
	return -EINVAL;
}

static int take(struct search *search, const char *name, int number)
{
	/* The registers at the entry of the system call have its arguments. */
	static const uint16_t places[] = {offsetof(struct user_regs_struct, rdi),
					  offsetof(struct user_regs_struct, rsi),
					  offsetof(struct user_regs_struct, rdx)};
	enum mt_file_kind kind = search->kind;
	struct probe probe = {.offset = (uint64_t)number, .site = {.emulated = true}};

	/*
	 * Refuses a kind of file with close() at -start: a region begins when the call has
	 * returned.
	 */
	if (kind && search->is_start && number == SYS_close) {
		log__error("-start " SYSCALL_PREFIX
			   "%s(...): recording begins when the call has returned: the descriptor "
			   "is closed then, and its kind not known",
			   name);
		log__hint("use -start " SYSCALL_PREFIX "%s, without the kind", name);
		return -EINVAL;
	}
	probe.args.n = sizeof(places) / sizeof(places[0]);
	for (size_t i = 0; i < probe.args.n; i++)
		probe.args.v[i] =
			(struct mt_arg){.kind = MT_ARG_REGISTER, .base = places[i], .size = 8};
	probe.kernel = (struct kernel_probe){
		.kind = KERNEL_PROBE_SYSCALL,
		.number = number,
		.what = {.file_kind = (uint8_t)kind, .reads = is_reading(name)}};
	snprintf(probe.kernel.name, sizeof(probe.kernel.name), "%s", name);
	snprintf(probe.name, sizeof(probe.name), SYSCALL_PREFIX "%s%s%s%s", name, kind ? "(" : "",
		 kind ? kind_names[kind] : "", kind ? ")" : "");
	snprintf(probe.path, sizeof(probe.path), "%s", probe.name);
	search->n++;
	return search->fn(search->ctx, &probe);
}

/* If a kind of file is given, only system calls with a descriptor match. */
static int each_match(struct search *search, const char *glob)
{
	int err = 0;

	for (int i = 0; i < MT_SYSCALLS && !err; i++) {
		const char *name = syscall__name(i);

		if (!name || fnmatch(glob, name, 0))
			continue;
		if (search->is_start && (i == SYS_exit || i == SYS_exit_group)) {
			if (!strcmp(glob, name))
				return refuse_end(syscall__selector(i));
			continue;
		}
		if (!search->kind || syscall__is_of_file(i))
			err = take(search, name, i);
	}
	return err;
}

static int refuse_unknown(const struct search *search, const char *name)
{
	struct nearest nearest = {.word = name};
	const char *meant;

	for (int i = 0; i < MT_SYSCALLS; i++)
		if (syscall__name(i))
			nearest__offer(&nearest, syscall__name(i));
	meant = nearest__result(&nearest);
	log__error("'" SYSCALL_PREFIX "%s': no such system call%s", name,
		   search->kind ? " with a descriptor as its first argument" : "");
	if (search->kind && meant && !strcmp(meant, name))
		log__hint("name one whose first argument is a descriptor, as in '" SYSCALL_PREFIX
			  "recv*(socket)', or leave out '(...)'");
	else if (meant && strcmp(meant, name))
		log__hint("did you mean " SYSCALL_PREFIX "%s?", meant);
	else
		log__hint("use the name that strace shows: " SYSCALL_PREFIX
			  "fsync, '" SYSCALL_PREFIX "recv*(socket)'");
	return -ENOENT;
}

static int each_syscall(const struct probe_source *source, const char *text, probe_fn fn, void *ctx)
{
	struct search search = {.fn = fn, .ctx = ctx, .is_start = source->is_start};
	const char *all = text + strlen(SYSCALL_PREFIX);
	char names[256], *rest = names, *name, *open, *close;
	int err = 0;

	if (strlen(all) >= sizeof(names)) {
		log__error("a list of system calls has more than %zu characters",
			   sizeof(names) - 1);
		log__hint("use a pattern: '" SYSCALL_PREFIX "recv*(socket)'");
		return -EINVAL;
	}
	strcpy(names, all);
	open = strchr(names, '(');
	close = open ? strchr(open, ')') : NULL;
	if (open && (!close || close[1]))
		return refuse_kind(text, open);
	if (open) {
		*open = *close = 0;
		for (size_t i = MT_FILE_SOCKET; i < N_KINDS; i++)
			if (!strcmp(open + 1, kind_names[i]))
				search.kind = (enum mt_file_kind)i;
		if (search.kind == MT_FILE_ANY)
			return refuse_kind(text, open + 1);
	}
	while (!err && (name = strsep(&rest, "|"))) {
		search.n = 0;
		err = each_match(&search, name);
		if (!err && !search.n)
			err = refuse_unknown(&search, name);
	}
	return err;
}

/* Calls fn for a probe at whose hits no arguments are read. */
static int take_named(const char *text, const struct kernel_probe *kernel, probe_fn fn, void *ctx)
{
	struct probe probe = {
		.offset = (uint64_t)kernel->number, .site = {.emulated = true}, .kernel = *kernel};

	probe.is_inside = kernel->kind != KERNEL_PROBE_FUNCTION;
	snprintf(probe.name, sizeof(probe.name), "%s", text);
	snprintf(probe.path, sizeof(probe.path), "%s", text);
	return fn(ctx, &probe);
}

#define EVENTS "/sys/kernel/tracing/events/"

/*
 * False for categories whose events are not tracepoints (kernel/trace/trace_syscalls.c,
 * trace_export.c).
 */
static bool has_tracepoints(const char *category)
{
	return strcmp(category, "syscalls") && strcmp(category, "ftrace");
}

/* Called for each tracepoint that matches. Returns 1 to end the search. */
typedef int (*tracepoint_fn)(void *ctx, const char *category, const char *event);

/* Calls fn for the folders CATEGORY/NAME of tracefs that match both globs. */
static void each_event(const char *category_glob, const char *name_glob, tracepoint_fn fn,
		       void *ctx)
{
	char pattern[PATH_MAX];
	glob_t found = {0};
	int ends = 0;

	snprintf(pattern, sizeof(pattern), EVENTS "%s/%s/id", category_glob, name_glob);
	if (glob(pattern, 0, NULL, &found))
		found.gl_pathc = 0;
	for (size_t i = 0; i < found.gl_pathc && !ends; i++) {
		char *category = found.gl_pathv[i] + strlen(EVENTS);
		char *event = strchr(category, '/'), *end = strrchr(category, '/');

		if (!event || event == end)
			continue;
		*event++ = *end = '\0';
		if (has_tracepoints(category))
			ends = fn(ctx, category, event);
	}
	globfree(&found);
}

static int note_category(void *category, const char *found, const char *event)
{
	(void)event;
	snprintf(category, NAME_MAX, "%s", found);
	return 1;
}

static int each_tracepoint(const struct probe_source *source, const char *text, probe_fn fn,
			   void *ctx)
{
	const char *category = text + strlen(TRACEPOINT_PREFIX), *colon = strchr(category, ':');
	struct kernel_probe kernel = {.kind = KERNEL_PROBE_TRACEPOINT};
	char of[NAME_MAX], found[NAME_MAX] = "";
	const char *name;

	(void)source;
	if (!colon || colon == category || !colon[1] || strpbrk(category, "*?[/") ||
	    strchr(colon + 1, ':')) {
		log__error("'%s' is not the name of a tracepoint", text);
		log__hint("use " TRACEPOINT_PREFIX "CATEGORY:NAME, as in " TRACEPOINT_PREFIX
			  "block:block_rq_issue");
		return -EINVAL;
	}
	snprintf(of, sizeof(of), "%.*s", (int)(colon - category), category);
	name = colon + 1;
	if (!has_tracepoints(of)) {
		/* These events are made by the tracepoints of all system calls. */
		bool is_exit = !strncmp(name, "sys_exit_", 9);

		log__error("'%s' cannot be probed: this event has no tracepoint of its own", text);
		if (is_exit || !strncmp(name, "sys_enter_", 10))
			log__hint("name the system call instead: " SYSCALL_PREFIX "%s",
				  name + (is_exit ? 9 : 10));
		else
			log__hint("mtbpf list '" SYSCALL_PREFIX "*' shows system calls");
		return -EINVAL;
	}
	/*
	 * The kernel finds a tracepoint by its name, which is unique without its category.
	 * Tracepoints without an event are not in tracefs, and lack categories. Without tracefs
	 * nothing is checked.
	 */
	each_event("*", name, note_category, found);
	if (*found && strcmp(found, of)) {
		log__error("'%s': the tracepoint %s has the category %s", text, name, found);
		log__hint("use " TRACEPOINT_PREFIX "%s:%s", found, name);
		return -EINVAL;
	}
	snprintf(kernel.name, sizeof(kernel.name), "%s", name);
	return take_named(text, &kernel, fn, ctx);
}

/* Signals 1 to 31: the real-time signals are left out. */
#define N_SIGNALS 32

static int each_signal(const struct probe_source *source, const char *text, probe_fn fn, void *ctx)
{
	const char *name = text + strlen(SIGNAL_PREFIX);
	struct kernel_probe kernel = {.kind = KERNEL_PROBE_SIGNAL, .name = "signal_deliver"};

	name += strncmp(name, "SIG", 3) ? 0 : 3;
	for (int i = 1; i < N_SIGNALS && !kernel.signals; i++)
		if (!strcmp(sigabbrev_np(i) ?: "", name))
			kernel.signals = 1ull << i;
	if (kernel.signals)
		return take_named(text, &kernel, fn, ctx);
	log__error("'%s': no such signal, or a real-time signal", text);
	log__hint("mtbpf list '" SIGNAL_PREFIX "*' shows the possible signals: " SIGNAL_PREFIX
		  "SEGV, " SIGNAL_PREFIX "ABRT");
	return -EINVAL;
}

static int each_exit(const struct probe_source *source, const char *text, probe_fn fn, void *ctx)
{
	const struct kernel_probe kernel = {.kind = KERNEL_PROBE_SYSCALL,
					    .name = "exit_group",
					    .number = SYS_exit_group,
					    .what = {.nonzero = true}};

	if (strcmp(text, EXIT_PREFIX "nonzero")) {
		log__error("'%s': only " EXIT_PREFIX "nonzero is possible", text);
		log__hint("use exit:nonzero, or " SYSCALL_PREFIX
			  "exit_group, which is hit at every exit, also with status 0");
		return -EINVAL;
	}
	return source->is_start ? refuse_end(text) : take_named(text, &kernel, fn, ctx);
}

static int each_oom(const struct probe_source *source, const char *text, probe_fn fn, void *ctx)
{
	const struct kernel_probe kernel = {.kind = KERNEL_PROBE_OOM, .name = OOM_PREFIX};

	if (!strcmp(text, OOM_PREFIX))
		return take_named(text, &kernel, fn, ctx);
	log__error("'%s': nothing may follow the colon", text);
	log__hint("use " OOM_PREFIX ", which stands for every process of the target");
	return -EINVAL;
}

/* Functions of the kernel and of its modules, by /proc/kallsyms. */
struct kernel_functions {
	const char *glob;
	uint64_t refused_from, refused_to; /* .noinstr.text, in which the kernel allows no probes */
	struct nearest nearest;
	char name[128], first_others[3][128];
	size_t n;
};

typedef void (*function_fn)(struct kernel_functions *functions, const char *name,
			    const struct kallsym *sym);

/* Names with a dot, such as "f.cold", are parts or copies that a compiler made of a function. */
static bool is_function(const struct kernel_functions *functions, const struct kallsym *sym)
{
	return kallsym__is_code(sym) && !memchr(sym->name, '.', sym->name_len) &&
	       (!sym->address || sym->address < functions->refused_from ||
		sym->address >= functions->refused_to) &&
	       sym->name_len < sizeof(functions->name);
}

/* Calls fn for each function that can be probed. The caller frees *text. 0 or -errno. */
static int each_kernel_function(struct kernel_functions *functions, function_fn fn, char **text)
{
	struct kallsym sym;
	const char *rest;
	size_t len;
	int err = fs__read("/proc/kallsyms", text, &len);

	if (err)
		return err;
	if (!kallsyms__find(*text, "__noinstr_text_start", &functions->refused_from) ||
	    !kallsyms__find(*text, "__noinstr_text_end", &functions->refused_to))
		functions->refused_to = 0;
	for (rest = *text; kallsyms__next(&rest, &sym);) {
		char *name = (char *)sym.name;

		if (!is_function(functions, &sym))
			continue;
		/* The text is our own copy: end each name in it. */
		if (sym.module)
			((char *)sym.module)[sym.module_len] = 0;
		name[sym.name_len] = 0;
		fn(functions, name, &sym);
	}
	return 0;
}

static void match_function(struct kernel_functions *functions, const char *name,
			   const struct kallsym *sym)
{
	(void)sym;
	nearest__offer(&functions->nearest, name);
	if (fnmatch(functions->glob, name, 0))
		return;
	if (functions->n < 3)
		snprintf(functions->first_others[functions->n], sizeof(functions->name), "%s",
			 name);
	functions->n++;
}

static int refuse_several(const char *text, const struct kernel_functions *functions)
{
	bool is_one_name = !strcmp(functions->first_others[0], functions->first_others[1]);

	if (is_one_name)
		log__error("'%s': the kernel has %zu functions of this name", text, functions->n);
	else
		log__error("'%s' matches %zu functions of the kernel: %s, %s%s%s%s", text,
			   functions->n, functions->first_others[0], functions->first_others[1],
			   functions->n > 2 ? ", " : "",
			   functions->n > 2 ? functions->first_others[2] : "",
			   functions->n > 3 ? ", ..." : "");
	log__hint(is_one_name ? "the kernel does not tell them apart: name a function that calls "
				"the one you mean"
			      : "each probed function costs every process a little: name those "
				"that you need, with commas between them");
	return -EINVAL;
}

static int each_function(const struct probe_source *source, const char *text, probe_fn fn,
			 void *ctx)
{
	struct kernel_functions functions = {.glob = text + strlen(FUNCTION_PREFIX)};
	struct kernel_probe kernel = {.kind = KERNEL_PROBE_FUNCTION};
	_cleanup_free_ char *kallsyms = NULL;
	char name[sizeof(FUNCTION_PREFIX) + sizeof(functions.name)];
	int err;

	functions.nearest.word = functions.glob;
	err = each_kernel_function(&functions, match_function, &kallsyms);
	if (err) {
		log__error("cannot read the kernel's symbols in /proc/kallsyms: %s",
			   strerror(-err));
		return err;
	}
	if (!functions.n) {
		const char *meant = nearest__result(&functions.nearest);

		log__error("'%s': the kernel has no function of this name that can be probed",
			   text);
		if (meant && strcmp(meant, functions.glob))
			log__hint("did you mean " FUNCTION_PREFIX "%s?", meant);
		else
			log__hint("it may be inlined everywhere; 'mtbpf list \"" FUNCTION_PREFIX
				  "*%s*\"' shows those with a similar name",
				  functions.glob);
		return -ENOENT;
	}
	if (functions.n > 1)
		return refuse_several(text, &functions);
	snprintf(kernel.name, sizeof(kernel.name), "%s", functions.first_others[0]);
	snprintf(name, sizeof(name), FUNCTION_PREFIX "%s", kernel.name);
	return take_named(name, &kernel, fn, ctx);
}

static void print_function(struct kernel_functions *functions, const char *name,
			   const struct kallsym *sym)
{
	if (fnmatch(functions->glob, name, 0))
		return;
	printf("%016llx %6s %-20s " FUNCTION_PREFIX "%s\n", (unsigned long long)sym->address, "",
	       sym->module ?: "kernel", name);
	functions->n++;
}

static size_t list_functions(const char *text)
{
	struct kernel_functions functions = {.glob = text + strlen(FUNCTION_PREFIX)};
	_cleanup_free_ char *kallsyms = NULL;

	if (each_kernel_function(&functions, print_function, &kallsyms))
		return 0;
	return functions.n;
}

static size_t list_syscalls(const char *text)
{
	const char *glob = text + strlen(SYSCALL_PREFIX);
	size_t n = 0;

	for (int i = 0; i < MT_SYSCALLS; i++) {
		if (!syscall__name(i) || fnmatch(glob, syscall__name(i), 0))
			continue;
		printf("%16s %6s %-20s %s\n", "-", "", "system call", syscall__selector(i));
		n++;
	}
	return n;
}

static int print_tracepoint(void *n, const char *category, const char *event)
{
	printf("%16s %6s %-20s " TRACEPOINT_PREFIX "%s:%s\n", "-", "", "tracepoint", category,
	       event);
	++*(size_t *)n;
	return 0;
}

static size_t list_tracepoints(const char *text)
{
	const char *name = text + strlen(TRACEPOINT_PREFIX), *colon = strchr(name, ':');
	char category[PATH_MAX];
	size_t n = 0;

	snprintf(category, sizeof(category), "%.*s",
		 colon ? (int)(colon - name) : (int)strlen(name), name);
	each_event(category, colon ? colon + 1 : "*", print_tracepoint, &n);
	return n;
}

static size_t list_signals(const char *text)
{
	size_t n = 0;

	for (int i = 1; i < N_SIGNALS; i++) {
		const char *name = sigabbrev_np(i);

		if (!name || fnmatch(text + strlen(SIGNAL_PREFIX), name, 0))
			continue;
		printf("%16s %6s %-20s " SIGNAL_PREFIX "%s\n", "-", "", "signal", name);
		n++;
	}
	return n;
}

static const struct {
	/* Like kernel_probe__each() for a selector of this kind. */
	int (*each)(const struct probe_source *source, const char *text, probe_fn fn, void *ctx);
	/* Prints the matches of the selector's glob, returns how many; NULL: cannot list them. */
	size_t (*list)(const char *text);
} kinds[KERNEL_PROBE_KINDS] = {
	[KERNEL_PROBE_SYSCALL] = {each_syscall, list_syscalls},
	[KERNEL_PROBE_FUNCTION] = {each_function, list_functions},
	[KERNEL_PROBE_TRACEPOINT] = {each_tracepoint, list_tracepoints},
	[KERNEL_PROBE_SIGNAL] = {each_signal, list_signals},
	[KERNEL_PROBE_EXIT] = {each_exit},
	[KERNEL_PROBE_OOM] = {each_oom},
	[KERNEL_PROBE_BREAKPOINT] = {jit_probe__each},
};

int kernel_probe__each(const struct probe_source *source, const char *text, probe_fn fn, void *ctx)
{
	return kinds[kernel_probe_kind__of(text)].each(source, text, fn, ctx);
}

bool kernel_probe__can_list(const char *text)
{
	return kinds[kernel_probe_kind__of(text)].list;
}

size_t kernel_probe__list(const char *text)
{
	return kinds[kernel_probe_kind__of(text)].list(text);
}
