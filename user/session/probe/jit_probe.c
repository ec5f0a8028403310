// SPDX-License-Identifier: MIT
#include "session/probe/jit_probe.h"

#include <ctype.h>
#include <errno.h>
#include <fnmatch.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "capture/probe/uprobe_event.h"
#include "target/process.h"
#include "target/symbols/live_image.h"
#include "util/cleanup.h"
#include "util/fs.h"
#include "util/insn.h"
#include "util/log.h"
#include "util/names.h"
#include "util/vec.h"

/* A map of a large service has 20 MB. */
#define MAP_MOST (256u << 20)

struct jit_map {
	char *text;
	struct perf_map_entry *v;
	size_t n;
};

/* 0, -ENOENT if the map is missing, or -ENOMEM. Call close_map() in any case. */
static int open_map(struct jit_map *map, pid_t pid)
{
	*map = (struct jit_map){.text = perf_map__read(pid, MAP_MOST)};
	return map->text ? perf_map__parse(map->text, &map->v, &map->n) : -ENOENT;
}

static void close_map(struct jit_map *map)
{
	free(map->v);
	free(map->text);
}

/*
 * The name without the mark of V8's compiler tier: "JS:*f" and "JS:^f" are both "JS:f". The result
 * is in buf.
 */
static const char *plain_name(const struct perf_map_entry *entry, char buf[static LABEL_SIZE])
{
	size_t len = entry->name_len < LABEL_MAX ? entry->name_len : LABEL_MAX;
	char *mark;

	memcpy(buf, entry->name, len);
	buf[len] = 0;
	label__clean_in_place(buf);
	mark = strstr(buf, "JS:");
	if (mark == buf && strchr("*^~+'", buf[3]) && buf[3])
		memmove(buf + 3, buf + 4, strlen(buf + 4) + 1);
	return buf;
}

static bool is_word(char c)
{
	return isalnum((unsigned char)c) || c == '_' || c == '$';
}

/* True if the function's name contains the word; a path after it does not count. */
static bool has_word(const char *name, const char *word)
{
	const char *end = strstr(name, " /"), *at = name;
	size_t len = strlen(word);

	if (!end)
		end = strstr(name, ":/");
	while (len && (at = strstr(at, word)) && (!end || at < end)) {
		if ((at == name || !is_word(at[-1])) && !is_word(at[len]))
			return true;
		at++;
	}
	return false;
}

/* If `is_whole`, the text is the whole name of an entry, and means no other one. */
static bool is_meant(const char *name, const char *text, bool is_whole)
{
	if (is_whole || !strcmp(name, text))
		return !strcmp(name, text);
	return strpbrk(text, "*?[") ? !fnmatch(text, name, 0) : has_word(name, text);
}

/*
 * HotSpot's methods begin with a check of the receiver's class ("mov 0x8(%rsi),%r10d", in older
 * ones with REX.W), which callers that know the class skip. Returns the offset of the code after
 * its jne and the nops that align it. 0: the code has no such check.
 */
static uint32_t skip_class_check(const uint8_t *code, size_t len)
{
	static const uint8_t load[][4] = {{0x44, 0x8b, 0x56, 0x08}, {0x4c, 0x8b, 0x56, 0x08}};
	bool is_checked = false;
	struct insn insn;
	size_t at = 0;

	if (len < 4 || (memcmp(code, load[0], 4) && memcmp(code, load[1], 4)))
		return 0;
	for (; !insn__decode(code + at, len - at, 0, &insn); at += insn.len) {
		bool is_nop = insn.is_nop1 || insn.is_multi_byte_nop;

		if (is_checked && !is_nop)
			return (uint32_t)at;
		is_checked |= insn.cls == INSN_COND;
	}
	return 0;
}

/*
 * True for code that may be called: the entries of a map may be data, such as an interpreter's
 * bytecode. HotSpot replaces the first instruction of a copy that is not called any more by a jump
 * to the code that looks up the new copy.
 */
static bool is_called(pid_t pid, const struct mappings *maps, const struct perf_map_entry *entry)
{
	const struct mapping *map = mappings__find(maps, entry->start);
	size_t size = entry->size;
	uint8_t code[64];
	struct insn insn;
	uint32_t skip;
	ssize_t len;

	if (!map || !(map->prot & PROT_EXEC))
		return false;
	len = process__read_memory(pid, entry->start, code,
				   size < sizeof(code) ? size : sizeof(code));
	skip = len > 0 ? skip_class_check(code, (size_t)len) : 0;
	return len <= 0 ||
	       insn__decode(code + skip, (size_t)len - skip, entry->start + skip, &insn) ||
	       insn.cls != INSN_JUMP || insn.target - entry->start < size;
}

/* Functions are seldom larger than a few KB. */
#define CODE_MOST (1u << 20)

/*
 * True for a JVM with virtual threads: a call in a virtual thread may continue on another thread,
 * at the same stack pointer as a call in another virtual thread.
 */
static bool has_virtual_threads(pid_t pid)
{
	_cleanup_free_ pid_t *tids = NULL;
	char name[PROCESS_COMM_SIZE];
	size_t n = 0;

	if (process__threads(pid, &tids, &n))
		return false;
	for (size_t i = 0; i < n; i++) {
		process__thread_name(pid, tids[i], name);
		if (!strncmp(name, "VirtualThread-", strlen("VirtualThread-")))
			return true;
	}
	return false;
}

static int take_entry(pid_t pid, const struct perf_map_entry *entry, const char *name, probe_fn fn,
		      void *ctx)
{
	struct probe probe = {.site = {.emulated = true, .at_entry = true}};
	size_t size = entry->size < CODE_MOST ? entry->size : CODE_MOST;
	_cleanup_free_ uint8_t *code = malloc(size ? size : 1);
	ssize_t len = code ? process__read_memory(pid, entry->start, code, size) : -ENOMEM;

	if (len <= 0)
		return code ? 0 : -ENOMEM;
	probe.kernel = (struct kernel_probe){.kind = KERNEL_PROBE_BREAKPOINT};
	probe.site.skip = skip_class_check(code, (size_t)len);
	probe.ip = probe.kernel.address = probe.kernel.entry = entry->start + probe.site.skip;
	probe.kernel.end = entry->start + entry->size;
	probe.offset = probe.entry_offset = probe.ip;
	len -= probe.site.skip;
	probe.jit_code_len =
		(uint8_t)((size_t)len < sizeof(probe.code) ? (size_t)len : sizeof(probe.code));
	memcpy(probe.code, code + probe.site.skip, probe.jit_code_len);
	snprintf(probe.name, sizeof(probe.name), "%.*s", (int)sizeof(probe.name) - 1, name);
	snprintf(probe.path, sizeof(probe.path), "%s", JIT_MODULE);
	/*
	 * V8's interpreter and its baseline compiler mark their code in the map. V8 also enters
	 * such code in its middle, when it leaves optimised code.
	 */
	if (entry->name_len > 4 && !memcmp(entry->name, "JS:", 3) &&
	    (entry->name[3] == '~' || entry->name[3] == '^'))
		probe.exits_err = JIT_EXITS_ENTERED;
	else if (has_virtual_threads(pid))
		probe.exits_err = JIT_EXITS_VIRTUAL;
	else
		probe.exits_err = exit_sites__find_returns(
			&(struct exit_part){code + probe.site.skip, (size_t)len, probe.ip},
			&probe.exits);
	log__debug("breakpoint: %s at %#llx, %u returns", probe.name, (unsigned long long)probe.ip,
		   probe.exits.n);
	return fn(ctx, &probe);
}

/* The entries of the map that a selector names. */
struct jit_match {
	size_t n;
	bool is_whole;				  /* the selector is the whole name of an entry */
	char name[LABEL_SIZE], other[LABEL_SIZE]; /* the first match, and a different one */
};

/*
 * A selector that is the whole name of an entry matches no other entry: Erlang's map has
 * "handle/1", and "handle/1-CodeInfoPrologue" for the data before it.
 */
static void find_matches(const struct jit_map *map, const struct mappings *maps, pid_t pid,
			 const char *text, struct jit_match *match)
{
	char name[LABEL_SIZE];

	for (size_t i = 0; i < map->n && !match->is_whole; i++)
		match->is_whole = !strcmp(plain_name(&map->v[i], name), text);
	for (size_t i = 0; i < map->n; i++) {
		if (!is_meant(plain_name(&map->v[i], name), text, match->is_whole) ||
		    !is_called(pid, maps, &map->v[i]))
			continue;
		if (!match->n)
			strcpy(match->name, name);
		else if (strcmp(match->name, name) && !*match->other)
			strcpy(match->other, name);
		match->n++;
	}
}

static int refuse_matches(pid_t pid, const char *text, const struct jit_match *match)
{
	if (!match->n) {
		log__error("no function of process %d matches '" JIT_PREFIX "%s'", (int)pid, text);
		log__hint("'mtbpf list -pid %d \"" JIT_PREFIX "*\"' shows the functions that are "
			  "compiled now; one that is called rarely may not be compiled",
			  (int)pid);
		return -ENOENT;
	}
	if (*match->other) {
		log__error("'" JIT_PREFIX "%s' matches several functions: %s, %s", text,
			   match->name, match->other);
		log__hint("give more of the name, or a glob that matches one");
		return -ENOTUNIQ;
	}
	log__error("%s was compiled %zu times, and a CPU has only %d breakpoints", match->name,
		   match->n, BREAKPOINTS_MAX);
	log__hint("start the program again, or name a function that is compiled once");
	return -ENOTUNIQ;
}

/* The minor version of the Python that runs in the process: N of Python 3.N; 0: none. */
static int python_minor(const char *exe, const struct mappings *maps)
{
	int minor = 0;

	if (sscanf(exe, "python3.%d", &minor) == 1)
		return minor;
	for (size_t i = 0; i < maps->n && !minor; i++) {
		const char *name = strrchr(maps->v[i].path, '/');

		if (!name || sscanf(name, "/libpython3.%d", &minor) != 1)
			minor = 0;
	}
	return minor;
}

/* Says how the runtime of the process is made to write its map. Returns -ENOENT. */
static int refuse_map(pid_t pid)
{
	_cleanup_mappings_ struct mappings maps = {0};
	char path[PATH_MAX];
	const char *exe;
	int minor;

	log__error("process %d does not write /tmp/perf-%d.map, which names the JIT's functions",
		   (int)pid, (int)pid);

	fs__read_proc_link(pid, "exe", path);
	exe = strrchr(path, '/') ? strrchr(path, '/') + 1 : path;
	if (mappings__read(&maps, pid))
		maps.n = 0;
	minor = python_minor(exe, &maps);
	if (minor >= 12)
		log__hint("start it as 'python3.%d -X perf', or with PYTHONPERFSUPPORT=1 in its "
			  "environment",
			  minor);
	else if (minor)
		log__hint("this is Python 3.%d; Python 3.12 and later write it, with 'python3 -X "
			  "perf'",
			  minor);
	else if (!strcmp(exe, "java"))
		log__hint("'jcmd %d Compiler.perfmap' writes it once (JDK 17 and later)", (int)pid);
	else if (!strcmp(exe, "node") || !strcmp(exe, "nodejs"))
		log__hint("start it as 'node --perf-basic-prof'");
	else if (!strcmp(exe, "beam.smp"))
		log__hint("start it with 'erl +JPperf true' (Erlang/OTP 24 or later)");
	else
		log__hint("'node --perf-basic-prof' and 'python3 -X perf' (3.12 and later) write "
			  "it while the program runs, 'jcmd PID Compiler.perfmap' (JDK 17 and "
			  "later) once");
	return -ENOENT;
}

int jit_probe__each(const struct probe_source *source, const char *text, probe_fn fn, void *ctx)
{
	_cleanup_mappings_ struct mappings maps = {0};
	struct jit_match match = {0};
	char name[LABEL_SIZE];
	struct jit_map map;
	pid_t pid;
	int err;

	text += strlen(JIT_PREFIX);
	if (!source->process) {
		log__error("a JIT's function is known only while its program runs");
		log__hint("start the program first, and name it with -pid");
		return -EINVAL;
	}
	pid = source->process->pid;
	err = open_map(&map, pid);
	if (err == -ENOENT)
		err = refuse_map(pid);
	if (!err && (err = mappings__read(&maps, pid))) {
		log__error("cannot read the mappings of process %d: %s", (int)pid, strerror(-err));
		log__hint(err == -ESRCH ? "start the program again"
					: "raise the limits of memory and open files: ulimit -v, "
					  "ulimit -n");
	}
	if (!err)
		find_matches(&map, &maps, pid, text, &match);
	if (!err && (!match.n || *match.other || match.n > BREAKPOINTS_MAX))
		err = refuse_matches(pid, text, &match);
	for (size_t i = 0; i < map.n && !err; i++)
		if (is_meant(plain_name(&map.v[i], name), text, match.is_whole) &&
		    is_called(pid, &maps, &map.v[i]))
			err = take_entry(pid, &map.v[i], name, fn, ctx);
	close_map(&map);
	return err;
}

size_t jit_probe__list(pid_t pid, const char *text)
{
	_cleanup_mappings_ struct mappings maps = {0};
	char name[LABEL_SIZE];
	struct jit_map map;
	size_t n = 0;

	text += strlen(JIT_PREFIX);
	if (open_map(&map, pid) == -ENOENT)
		refuse_map(pid);
	if (mappings__read(&maps, pid))
		map.n = 0;
	for (size_t i = 0; i < map.n; i++) {
		if (!is_meant(plain_name(&map.v[i], name), text, false) ||
		    !is_called(pid, &maps, &map.v[i]))
			continue;
		printf("%016llx %6llu %-20s " JIT_PREFIX "%s\n", (unsigned long long)map.v[i].start,
		       (unsigned long long)map.v[i].size, JIT_MODULE, name);
		n++;
	}
	close_map(&map);
	return n;
}

/*
 * Returns the name of a probed function that the map also has at a place that is not probed, and
 * sets *moved to that place. NULL: there is none.
 */
static const char *find_moved(pid_t pid, const struct probe *probes, size_t n, uint64_t *moved)
{
	_cleanup_mappings_ struct mappings maps = {0};
	const struct probe *found = NULL;
	char name[LABEL_SIZE];
	struct jit_map map;

	if (open_map(&map, pid) || mappings__read(&maps, pid))
		map.n = 0;
	for (size_t i = 0; i < map.n && !found; i++) {
		const struct perf_map_entry *entry = &map.v[i];

		found = FIND_IN(probes, n, probe,
				probe->kernel.kind == KERNEL_PROBE_BREAKPOINT &&
					!strncmp(plain_name(entry, name), probe->name,
						 sizeof(probe->name) - 1));
		if (FIND_IN(probes, n, probe, probe->ip - entry->start < entry->size) ||
		    (found && !is_called(pid, &maps, entry)))
			found = NULL;
		*moved = found ? entry->start : *moved;
	}
	close_map(&map);
	return found ? found->name : NULL;
}

bool jit_probe__check(pid_t pid, const struct probe *probes, size_t n)
{
	const char *name;
	uint64_t moved = 0;
	bool has_any = false;

	for (size_t i = 0; i < n; i++)
		has_any |= probes[i].kernel.kind == KERNEL_PROBE_BREAKPOINT;
	if (!has_any)
		return true;
	name = find_moved(pid, probes, n, &moved);

	for (size_t i = 0; i < n; i++) {
		uint8_t code[sizeof(probes->code)];
		/*
		 * The bytes after the function are other code: Python 3.12's trampolines have 11
		 * bytes.
		 */
		size_t size = probes[i].jit_code_len;

		/* If the read fails, the process has ended. */
		if (probes[i].kernel.kind != KERNEL_PROBE_BREAKPOINT ||
		    process__read_memory(pid, probes[i].ip, code, size) < (ssize_t)size ||
		    !memcmp(code, probes[i].code, size))
			continue;
		log__warn("the JIT has replaced the code of %s at %#llx: mtbpf no longer sees its "
			  "calls",
			  probes[i].name, (unsigned long long)probes[i].ip);
		return false;
	}
	if (!name)
		return true;
	log__warn("the JIT has compiled %s again, at %#llx: mtbpf does not see the calls of that "
		  "code",
		  name, (unsigned long long)moved);
	return false;
}

static int refuse_calls(const struct probe *probe)
{
	switch (probe->exits_err) {
	case JIT_EXITS_ENTERED:
		log__error("the code of %s is not optimised: V8 also enters such code in the "
			   "middle, so that durations cannot be measured",
			   probe->name);
		log__hint("measure delays instead: attach -delay-thresh, or watch without "
			  "-durations; or start "
			  "node with --no-sparkplug, which makes optimised code only");
		break;
	case JIT_EXITS_VIRTUAL:
		log__error("the duration of %s is not known: in Java's virtual threads a call may "
			   "move to another thread",
			   probe->name);
		log__hint("measure delays instead: attach -delay-thresh, or watch without "
			  "-durations");
		break;
	default:
		log__error("cannot find a return in the code of %s", probe->name);
		log__hint("measure delays instead: attach -delay-thresh, or watch without "
			  "-durations");
	}
	return -EINVAL;
}

int jit_probe__check_calls(const struct probe *probes, size_t n)
{
	size_t n_copies = 0, n_returns = 0;
	const struct probe *last = NULL;
	bool has_one_name = true;

	for (size_t i = 0; i < n; i++) {
		has_one_name &= !strcmp(probes[i].name, probes[0].name);
		if (probes[i].kernel.kind != KERNEL_PROBE_BREAKPOINT)
			continue;
		if (probes[i].exits_err)
			return refuse_calls(&probes[i]);
		last = &probes[i];
		n_copies++;
		n_returns += probes[i].exits.n;
	}
	if (n_copies + n_returns <= BREAKPOINTS_MAX)
		return 0;
	log__error("the calls of %s need a breakpoint at %zu entries and %zu returns, and a CPU "
		   "has only %d",
		   last->name, n_copies, n_returns, BREAKPOINTS_MAX);
	if (n_copies > 1 && has_one_name && strncmp(last->name, "JS:", 3))
		log__hint(
			"java -XX:-UseOnStackReplacement compiles a method fewer times; or measure "
			"delays: attach -delay-thresh, or watch without -durations");
	else
		log__hint("use -delay-thresh, or -start and -stop: they need no returns");
	return -EINVAL;
}
