// SPDX-License-Identifier: MIT
#include "session/probe/find_probes.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/user.h>
#include <unistd.h>

#include "session/probe/hit_reads.h"
#include "session/probe/kernel_probe.h"
#include "target/maps.h"
#include "target/usdt.h"
#include "util/cleanup.h"
#include "util/fs.h"
#include "util/insn.h"
#include "util/log.h"
#include "util/vec.h"

/* The function of include/mtbpf.h that mtbpf_take_snapshot() calls. */
#define OUR_TRIGGER "mtbpf_hit"

/*
 * The functions that are the default for -symbol, in order of preference, NULL at the end: that of
 * include/mtbpf.h, which also has an argument and a mark, and that of magic-trace's library.
 */
static const char *const default_triggers[] = {OUR_TRIGGER, "magic_trace_stop_indicator", NULL};

const char *default_trigger__find(const struct process *process, const char *exec_path)
{
	LOG_SILENTLY;
	const char *found = NULL;
	struct symbols symbols;

	if (exec_path ? symbols__open_file(&symbols, exec_path) : symbols__open(&symbols, process))
		return NULL;
	for (size_t i = 0; default_triggers[i] && !found; i++)
		if (symbols__have(&symbols, default_triggers[i]))
			found = default_triggers[i];
	symbols__close(&symbols);
	return found;
}

/*
 * True for mtbpf_hit(). Sets *args to the registers of its parameters 1, 4, 5 and 6: the argument,
 * the two halves of the trace id, and has_arg. The number of arguments and the mark are parameters
 * too; see include/mtbpf.h.
 */
static bool is_library(const struct function *function, struct mt_args *args)
{
	static const uint16_t registers[] = {
		offsetof(struct user_regs_struct, rdi), offsetof(struct user_regs_struct, rcx),
		offsetof(struct user_regs_struct, r8), offsetof(struct user_regs_struct, r9)};

	if (strcmp(function->raw_name, OUR_TRIGGER))
		return false;
	*args = (struct mt_args){
		.n = sizeof(registers) / sizeof(registers[0]),
		.is_library = 1,
	};
	for (size_t i = 0; i < args->n; i++)
		args->v[i] =
			(struct mt_arg){.kind = MT_ARG_REGISTER, .base = registers[i], .size = 8};
	return true;
}

/*
 * Returns 1 if the process maps this file: the int3 of a trial probe appears in its memory at once,
 * or the int3 of another tool's probe is there already. 0 if not; -errno.
 */
static int is_it(const struct probe *probe, const struct process *process, const char *path)
{
	struct uprobe_spec spec = {.path = path,
				   .offset = probe->offset,
				   .semaphore = probe->semaphore,
				   .pid = process->pid};
	_cleanup_close_ int fd = -1;
	uint8_t before, now;

	if (process__read_memory(process->pid, probe->ip, &before, 1) != 1)
		return -ESRCH;
	if (before != probe->code[0])
		return 1;
	fd = uprobe_event__open(&spec);
	if (fd < 0)
		return fd;
	return process__read_memory(process->pid, probe->ip, &now, 1) == 1 && now != before;
}

/*
 * True if `found` in the process is the same place of the same file as `other`: then `other` also
 * hits in this process. If overlays share a layer, a trial probe is needed to find out.
 */
static bool is_same(const struct probe *other, const struct probe *found,
		    const struct process *process)
{
	if (other->offset != found->offset)
		return false;
	if (!strcmp(other->path, found->path) ||
	    (found->file.ino && other->file.ino == found->file.ino &&
	     other->file.maj == found->file.maj && other->file.min == found->file.min))
		return true;
	if (memcmp(other->code, found->code, sizeof(found->code)) ||
	    (!overlay__has(other->path) && !overlay__has(found->path)))
		return false;
	return is_it(found, process, other->path) == 1;
}

static int try_layers(struct probe *probe, const struct process *process,
		      const struct layer_paths *paths)
{
	static const char *const roots[] = {"", "/proc/1/root"};

	for (size_t i = 0; i < paths->n; i++) {
		for (size_t r = 0; r < sizeof(roots) / sizeof(roots[0]); r++) {
			char path[PATH_MAX];
			int got;

			if (snprintf(path, sizeof(path), "%s%s", roots[r], paths->v[i]) >=
				    (int)sizeof(path) ||
			    access(path, R_OK))
				continue;
			got = is_it(probe, process, path);
			if (got < 0)
				return got;
			if (!got)
				continue;
			snprintf(probe->path, sizeof(probe->path), "%s", path);
			return 0;
		}
	}
	return -ESTALE;
}

/*
 * On an overlay (a container's file system) the path may lead to a copy that was made after the
 * process started: a probe in it would never hit. Checks this with a trial probe. If it does not
 * appear in the process, sets probe->path to the layer from which the process runs, and prints a
 * line. Returns 0; -ESTALE after a message and a hint if that layer cannot be opened; or -errno.
 */
static int settle_file(struct probe *probe, const struct process *process,
		       const struct mapping *mapping)
{
	_cleanup_free_ char *mountinfo = NULL;
	const char *path = mapping->path;
	struct layer_paths paths = {0};
	char root[PATH_MAX];
	size_t len;
	int got, err;

	if (!overlay__has(probe->path))
		return 0;
	got = is_it(probe, process, probe->path);
	if (got)
		return got < 0 ? got : 0;
	/*
	 * A mapping's path starts at the root of the mount namespace as we see it; mountinfo's
	 * paths start at the process's own root, which differs after a chroot.
	 */
	fs__read_proc_link(process->pid, "root", root);
	len = strlen(root);
	if (len > 1 && !strncmp(path, root, len) && path[len] == '/')
		path += len;
	err = fs__read_proc(process->pid, "mountinfo", &mountinfo, &len);
	if (!err)
		err = overlay__lower_paths(&paths, mountinfo, path);
	if (!err)
		err = try_layers(probe, process, &paths);
	VEC_FINI(&paths);
	if (!err) {
		log__info("%s was modified since process %d started: the probe is in the file that "
			  "the process runs, %s",
			  mapping->path, process->pid, probe->path);
		return 0;
	}
	log__error("%s was modified since process %d started, and the old file, which the process "
		   "runs, cannot be opened from here",
		   mapping->path, process->pid);
	log__hint("restart the process, or run mtbpf on the host, which has the layers of the "
		  "overlay");
	return -ESTALE;
}

static int refuse_usdt(const struct usdt_match *match, int err)
{
	log__error("cannot probe %s:%s at %#llx of %s", match->place.provider, match->place.name,
		   (unsigned long long)match->place.vaddr, elf_image__name(match->module->image));
	log__hint("the probe's ELF note (.note.stapsdt) does not match the code; the file may be "
		  "damaged");
	return err;
}

/*
 * Fills the probe except for its file and process. 0, or -errno after a message and a hint: -EIO if
 * its code cannot be read, -EOPNOTSUPP if the kernel cannot probe it.
 */
static int make_usdt(struct probe *probe, const struct usdt_match *match)
{
	const struct usdt_place *place = &match->place;
	struct elf_image *image = match->module->image;
	const struct function *function = elf_image__function_at(image, place->vaddr);
	const uint8_t *code;
	size_t len;

	*probe = (struct probe){
		.is_inside = true, .is_usdt = true, .semaphore = place->semaphore_offset};
	probe->offset = elf_image__offset_of_vaddr(image, place->vaddr);
	probe->entry_offset = probe->offset;
	code = elf_image__bytes(image, probe->offset, &len);
	if (!code)
		return refuse_usdt(match, -EIO);
	if (probe_site__at(code, len < sizeof(probe->code) ? len : sizeof(probe->code),
			   place->vaddr, 0, &probe->site))
		return refuse_usdt(match, -EOPNOTSUPP);
	probe->site.at_entry = function && function->vaddr == place->vaddr;
	memcpy(probe->code, code, len < sizeof(probe->code) ? len : sizeof(probe->code));
	usdt_args__parse(place->args, &probe->args);
	snprintf(probe->name, sizeof(probe->name), USDT_PREFIX "%s:%s", place->provider,
		 place->name);
	return 0;
}

/*
 * Sets the site: to the instruction that the user has named, or to the best one at the function's
 * entry that leaves the registers `kept`.
 */
static int set_site(struct probe *probe, const struct symbol_match *match, const uint8_t *code,
		    size_t len, uint8_t kept)
{
	const struct function *f = match->function;
	int err = match->offset ? probe_site__at(code, len, f->vaddr, match->offset, &probe->site)
				: probe_site__choose(code, len, f->vaddr, kept, &probe->site);

	if (!err)
		return 0;
	if (!match->offset) {
		log__error("cannot probe %s: its first bytes are not an x86-64 instruction",
			   f->name);
		log__hint("the address may be data; 'mtbpf list' shows functions");
		return err;
	}
	if (err == -EILSEQ)
		log__error("no instruction begins at %s+%#" PRIx64, f->name, match->offset);
	else
		log__error("the kernel refuses probes on the instruction at %s+%#" PRIx64
			   ": it has a lock, es, cs, ss or ds prefix",
			   f->name, match->offset);
	log__hint("choose another instruction: 'objdump -d --disassemble=%s %s' shows them",
		  f->raw_name, elf_image__name(f->image));
	return err;
}

/* Finds the function's cold part (exit_sites_part_fn). */
static bool find_part(void *ctx, uint64_t vaddr, struct exit_part *part)
{
	const struct function *f = ctx;
	uint64_t end, offset;
	size_t len = 0;

	if (elf_image__part_at(f->image, vaddr, &part->vaddr, &end) != f)
		return false;
	offset = elf_image__offset_of_vaddr(f->image, part->vaddr);
	part->code = offset == UINT64_MAX ? NULL : elf_image__bytes(f->image, offset, &len);
	part->len = part->code && len > end - part->vaddr ? end - part->vaddr : len;
	return part->code;
}

/*
 * Exits are given relative to the entry: their distance from it must be the same in the file and in
 * memory.
 */
static int check_exits(const struct probe *probe, const struct function *f)
{
	for (uint32_t i = 0; i < probe->exits.n; i++) {
		uint64_t at = (uint64_t)(int64_t)probe->exits.at[i];

		if (elf_image__offset_of_vaddr(f->image, f->vaddr + at) != probe->entry_offset + at)
			return -EILSEQ;
	}
	return 0;
}

static int choose_site(struct probe *probe, const struct symbol_match *match, uint8_t kept)
{
	const struct function *f = match->function;
	struct exit_part entry = {.vaddr = f->vaddr};
	const uint8_t *code;
	size_t len;
	int err;

	if (f->is_resolver) {
		log__error("'%s' of %s is an IFUNC: a variant for this CPU is called instead",
			   f->name, f->module);
		log__hint("probe that variant, if the library names it ('mtbpf list' with '*%s*'), "
			  "or its "
			  "caller",
			  f->name);
		return -EINVAL;
	}
	probe->entry_offset = elf_image__offset_of_vaddr(f->image, f->vaddr);
	code = probe->entry_offset == UINT64_MAX
		       ? NULL
		       : elf_image__bytes(f->image, probe->entry_offset, &len);
	if (!code) {
		log__error("cannot read the code of %s in %s", f->name, f->module);
		log__hint("the file is damaged, or was replaced after the process started");
		return -EIO;
	}
	if (len > f->size)
		len = f->size;
	probe->is_library = !match->offset && is_library(f, &probe->args);
	err = set_site(probe, match, code, len, probe->is_library ? UINT8_MAX : kept);
	if (err)
		return err;
	if (!probe->site.emulated)
		log__warn("the kernel must single-step the '%s' under the probe: each hit costs "
			  "about 1 us on bare metal, 10 us in a VM",
			  probe->site.insn);
	entry.code = code;
	entry.len = len;
	probe->exits_err = exit_sites__find(&entry, find_part, (void *)f, &probe->exits);
	if (!probe->exits_err)
		probe->exits_err = check_exits(probe, f);
	probe->is_inside = match->offset;
	probe->offset = probe->entry_offset + probe->site.skip;
	code += probe->site.skip;
	len -= probe->site.skip;
	memcpy(probe->code, code, len < sizeof(probe->code) ? len : sizeof(probe->code));
	return 0;
}

/* Sets the probe's file and its address in the process. */
static int set_place(struct probe *probe, const struct probe_source *source,
		     const struct module *module, uint64_t entry)
{
	int err = 0;

	if (source->exec_path)
		snprintf(probe->path, sizeof(probe->path), "%s", source->exec_path);
	else
		err = process__mapping_path(source->process->pid, &module->mapping, probe->path,
					    sizeof(probe->path));
	if (err)
		return err;
	if (!source->exec_path) {
		probe->ip = entry + module->bias + probe->site.skip;
		probe->file.ino = module->mapping.ino;
		probe->file.maj = module->mapping.maj;
		probe->file.min = module->mapping.min;
		err = settle_file(probe, source->process, &module->mapping);
	}
	if (!err)
		log__debug("probe: %s+%u (%s) in %s, offset %#llx", probe->name, probe->site.skip,
			   probe->site.insn, probe->path, (unsigned long long)probe->offset);
	return err;
}

static enum return_reader find_return_reader(const struct symbols *symbols, const struct module *of)
{
	const char *name = module__name(of);
	/* The C library has unwind tables only for its clean-up when a thread is cancelled. */
	bool is_libc = !strncmp(name, "libc.so", 7) || !strncmp(name, "libc-2", 6) ||
		       !strncmp(name, "libpthread", 10);

	/*
	 * OCaml's collector looks up return addresses in its frame tables, HotSpot in its code:
	 * neither knows the kernel's trampoline.
	 */
	if (symbols__have(symbols, "runtime.gopanic") ||
	    symbols__have(symbols, "caml_garbage_collection") || !strncmp(name, "libjvm.so", 9))
		return RETURN_READER_RUNTIME;
	/*
	 * Exceptions unwind through files with exception tables. If the program has such tables,
	 * they may also unwind through C libraries that call it back. A C program is not expected
	 * to throw through its own functions, even if it uses a C++ library.
	 */
	if (!is_libc && elf_image__has_exception_tables(of->image))
		return RETURN_READER_UNWINDER;
	for (size_t i = 0; i < symbols->n; i++)
		if (symbols->modules[i].is_executable)
			return elf_image__has_exception_tables(symbols->modules[i].image)
				       ? RETURN_READER_UNWINDER
				       : RETURN_READER_NONE;
	return RETURN_READER_UNWINDER;
}

/* Adds the registers from which the argument is read: see probe_site__choose(). */
static void add_registers(uint8_t *kept, const struct mt_arg *from)
{
	static const size_t registers[INSN_ARGUMENTS] = {
		offsetof(struct user_regs_struct, rdi), offsetof(struct user_regs_struct, rsi),
		offsetof(struct user_regs_struct, rdx), offsetof(struct user_regs_struct, rcx),
		offsetof(struct user_regs_struct, r8),	offsetof(struct user_regs_struct, r9)};

	for (int i = 0; i < INSN_ARGUMENTS; i++)
		if ((from->kind == MT_ARG_REGISTER || from->kind == MT_ARG_MEMORY) &&
		    (from->base == registers[i] || (from->scale && from->index == registers[i])))
			*kept |= (uint8_t)(1 << i);
}

static uint8_t read_registers(const struct probe *probe)
{
	const struct mt_reads *reads = &probe->reads;
	uint8_t kept = 0;

	add_registers(&kept, &reads->key.from);
	for (size_t i = 0; i < MT_TERMS; i++)
		add_registers(&kept, &reads->terms[i].from);
	for (size_t i = 0; i < MT_PRINTS; i++) {
		add_registers(&kept, &reads->prints[i].value.from);
		add_registers(&kept, &reads->prints[i].length.from);
	}
	for (uint32_t i = 0; i < probe->args.n; i++)
		add_registers(&kept, &probe->args.v[i]);
	return kept;
}

static int make_probe(struct probe *probe, const struct probe_source *source,
		      const struct symbols *symbols, const struct symbol_match *match)
{
	bool reads = source->reads && hit_reads__any(source->reads);
	uint8_t kept = 0;
	int err;

	*probe = (struct probe){.is_go = symbols__have(symbols, "runtime.gopanic"),
				.return_reader = find_return_reader(symbols, match->module)};
	if (probe->is_go)
		probe->go_minor = elf_image__go_minor(match->function->image);
	err = choose_site(probe, match, 0);
	if (err)
		return err;
	snprintf(probe->name, sizeof(probe->name), "%s", match->function->name);
	if (reads) {
		hit_reads__bind(source->reads, match->function, probe, source->is_start);
		kept = read_registers(probe);
	}
	/*
	 * If the site is after code that overwrites a register that is read, another site is
	 * chosen.
	 */
	if (probe->site.changed & kept) {
		const struct mt_args args = probe->args;

		err = choose_site(probe, match, kept);
		probe->args = args;
	}
	if (err)
		return err;
	return set_place(probe, source, match->module, match->function->vaddr);
}

/* Context of take_match(): whom to hand the probes to, and how many matches there were. */
struct match_ctx {
	const struct probe_source *source;
	const struct symbols *symbols;
	probe_fn fn;
	void *ctx;
	size_t n;
};

static int take_match(void *ctx, const struct symbol_match *match)
{
	struct match_ctx *matches = ctx;
	struct probe probe;
	int err = make_probe(&probe, matches->source, matches->symbols, match);

	matches->n++;
	return err ? err : matches->fn(matches->ctx, &probe);
}

static int each_function(const struct probe_source *source, const struct symbols *symbols,
			 const char *symbol, probe_fn fn, void *ctx)
{
	struct match_ctx matches = {source, symbols, fn, ctx, 0};
	struct symbol_match match;
	int err = 0;

	for (size_t i = 0; default_triggers[i]; i++)
		if (!strcmp(symbol, default_triggers[i]))
			err = symbols__each_of_name(symbols, symbol, take_match, &matches);
	if (err || matches.n)
		return err;
	err = symbols__find(symbols, symbol, &match);
	return err ? err : take_match(&matches, &match);
}

static int each_usdt(const struct probe_source *source, const struct symbols *symbols,
		     const char *symbol, probe_fn fn, void *ctx)
{
	usdt_match_vec found;
	int err = symbols__find_usdt(symbols, symbol, &found);

	for (size_t i = 0; !err && i < found.n; i++) {
		struct probe probe;

		err = make_usdt(&probe, &found.v[i]);
		if (!err)
			err = set_place(&probe, source, found.v[i].module, found.v[i].place.vaddr);
		if (!err)
			err = fn(ctx, &probe);
	}
	VEC_FINI(&found);
	return err;
}

/*
 * Calls fn for every place in source->process or source->exec_path: one for a function, all places
 * of a USDT probe. Warns if each hit will be single-stepped.
 */
static int each_in_file(const struct probe_source *source, const char *symbol, probe_fn fn,
			void *ctx)
{
	struct symbols symbols;
	int err;

	err = source->exec_path ? symbols__open_file(&symbols, source->exec_path)
				: symbols__open(&symbols, source->process);
	if (err)
		return err;
	if (usdt__is_selector(symbol))
		err = each_usdt(source, &symbols, symbol, fn, ctx);
	else
		err = each_function(source, &symbols, symbol, fn, ctx);
	symbols__close(&symbols);
	return err;
}

/* Skips functions of a glob that cannot be probed, without a message. */
static int take_probeable(void *ctx, const struct symbol_match *match)
{
	enum log_level level = log__level();
	struct match_ctx *matches = ctx;
	struct probe probe;
	int err;

	log__set_level(LOG_SILENT);
	err = make_probe(&probe, matches->source, matches->symbols, match);
	log__set_level(level);
	if (err)
		log__debug("%s takes no probe", match->function->name);
	return err ? 0 : matches->fn(matches->ctx, &probe);
}

/* Like each_in_file(), for all functions that match a glob, except those that cannot be probed. */
static int each_function_in_file(const struct probe_source *source, const char *symbol, probe_fn fn,
				 void *ctx)
{
	struct symbols symbols;
	struct match_ctx matches = {source, &symbols, fn, ctx, 0};
	int err;

	err = source->exec_path ? symbols__open_file(&symbols, source->exec_path)
				: symbols__open(&symbols, source->process);
	if (err)
		return err;
	err = symbols__each_meant(&symbols, symbol,
				  strpbrk(symbol, "*?[") ? take_probeable : take_match, &matches);
	symbols__close(&symbols);
	return err;
}

/* A hash of the mapped files: workers of one program have the same. */
static uint64_t code_hash(const struct process *process)
{
	uint64_t hash = 0;

	VEC_EACH(&process->maps, m)
		if (m->prot & PROT_EXEC && m->ino)
			hash = hash__mix(hash__mix(hash, m->ino), (uint64_t)m->maj << 32 | m->min);
	return hash;
}

static struct program *find_code(const struct programs *programs, uint64_t code)
{
	return VEC_FIND(&programs->all, e, e->code == code);
}

/*
 * Processes that cannot be opened, for example because they have just exited, are skipped silently.
 */
static int add_process(struct programs *programs, pid_t pid)
{
	LOG_SILENTLY;
	struct program new = {.n = 1}, *known;
	int err = 0;

	if (process__open(&new.process, pid))
		return 0;
	new.code = code_hash(&new.process);
	known = find_code(programs, new.code);
	if (known)
		known->n++;
	else
		err = VEC_ADD(&programs->all, new);
	if (known || err)
		process__close(&new.process);
	return err;
}

static void name_target(const struct programs *programs, char *name, size_t size)
{
	if (target__is_cgroup(programs->target))
		snprintf(name, size, "the cgroup %s", programs->target->cgroup.path);
	else
		snprintf(name, size, "the target");
}

int programs__open(struct programs *programs, const struct target *target)
{
	_cleanup_free_ pid_t *pids = NULL;
	char where[PATH_MAX + 32];
	size_t n;
	int err;

	*programs = (struct programs){.target = target};
	err = target__processes(target, &pids, &n);
	if (!err && !n)
		err = target__refuse_empty(target);
	for (size_t i = 0; !err && i < n; i++)
		err = add_process(programs, pids[i]);
	if (err || programs->all.n)
		return err;
	name_target(programs, where, sizeof(where));
	log__error("cannot inspect any process of %s", where);
	log__hint(
		"run as root, or with CAP_SYS_PTRACE; if the processes have exited, attach again");
	return -ESRCH;
}

void programs__fini(struct programs *programs)
{
	VEC_FINI_EACH(&programs->all, e, process__close(&e->process));
}

/* each_in_process(), or each_function_in_file(). */
typedef int (*probe_each_fn)(const struct probe_source *source, const char *symbol, probe_fn fn,
			     void *ctx);

/* The state of a search through programs. */
struct search {
	const struct probe_source *source; /* the settings for all programs */
	probe_each_fn each;
	probe_fn fn;
	void *ctx;
	const struct process *process; /* the current process */
	const char *symbol;	       /* the selector, or the name that the user has picked */
	char picked[sizeof(((struct probe *)NULL)->name)];
	VEC(struct probe) found; /* in all programs so far */
	size_t n_new;		 /* places in this program that no earlier one has */
	bool is_quiet;		 /* new places are only counted */
};

/* Counts a place that is new and, unless is_quiet, passes it on. */
static int take_new(void *ctx, const struct probe *probe)
{
	struct search *search = ctx;

	if (VEC_FIND(&search->found, known, is_same(known, probe, search->process)))
		return 0;
	search->n_new++;
	if (search->is_quiet)
		return 0;
	return VEC_ADD(&search->found, *probe) ? -ENOMEM : search->fn(search->ctx, probe);
}

/*
 * Searches one program: with messages, and the user may pick a function; or quietly, to count its
 * places that are new.
 */
static int search_in(struct search *search, const struct program *program, bool quietly)
{
	struct probe_source source = search->source ? *search->source : (struct probe_source){0};
	enum log_level level = log__level();
	int err;

	source.process = &program->process;
	source.programs = NULL;
	search->process = &program->process;
	search->n_new = 0;
	search->is_quiet = quietly;
	if (quietly)
		log__set_level(LOG_SILENT);
	err = search->each(&source, search->symbol, take_new, search);
	log__set_level(level);
	return err;
}

/*
 * Replaces the process, which has ended, by another one of the same program. False if none runs.
 */
static bool replace_process(const struct programs *programs, struct program *program)
{
	LOG_SILENTLY;
	_cleanup_free_ pid_t *pids = NULL;
	size_t n = 0;

	if (target__processes(programs->target, &pids, &n))
		return false;
	for (size_t i = 0; i < n; i++) {
		struct process other;

		if (pids[i] == program->process.pid || process__open(&other, pids[i]))
			continue;
		if (code_hash(&other) != program->code) {
			process__close(&other);
			continue;
		}
		process__close(&program->process);
		program->process = other;
		program->n--;
		return true;
	}
	return false;
}

/* Returns 0 also if the program lacks the symbol: another may have it. */
static int search_program(struct search *search, struct program *program)
{
	int err = search_in(search, program, true);
	bool is_ambiguous = err == -ENOTUNIQ;

	if (is_ambiguous && search->found.n) {
		log__warn("'%s' names several functions in process %d (%s): none of them is probed",
			  search->symbol, (int)program->process.pid, program->process.comm);
		return 0;
	}
	if (err && !is_ambiguous)
		return err == -ENOMEM ? err : 0;
	program->is_probed = true;
	if (!is_ambiguous && !search->n_new)
		return 0;
	err = search_in(search, program, false);
	if (err || !is_ambiguous)
		return err;
	snprintf(search->picked, sizeof(search->picked), "%s", search->found.v[0].name);
	search->symbol = search->picked;
	return 0;
}

/* If there is only one program, its own message explains why the symbol is not found. */
static int explain(const struct programs *programs, struct search *search)
{
	char where[PATH_MAX + 32];
	int err = programs->all.n == 1 ? search_in(search, &programs->all.v[0], false) : 0;

	if (err)
		return err;
	name_target(programs, where, sizeof(where));
	log__error("the processes of %s do not contain a function '%s'", where, search->symbol);
	log__hint("'mtbpf list -pid PID' shows functions; lib.so:NAME is one in a library");
	return -ENOENT;
}

/*
 * Calls fn once for every place in any of source->programs, and marks those programs as probed. A
 * function that the user picks in one program is looked up by its name in the others. -ENOENT: no
 * program has it.
 */
static int each_in_programs(const struct probe_source *source, const char *symbol,
			    probe_each_fn each, probe_fn fn, void *ctx)
{
	struct programs *programs = source->programs;
	struct search search = {
		.source = source, .each = each, .fn = fn, .ctx = ctx, .symbol = symbol};
	size_t n_gone = 0;
	int err = 0;

	VEC_EACH_WHILE(&programs->all, program, !err) {
		do
			err = search_program(&search, program);
		while (err != -ENOMEM && !process__alive(program->process.pid) &&
		       replace_process(programs, program));
		if (process__alive(program->process.pid))
			continue;
		n_gone++;
		program->is_probed = false;
		err = err == -ENOMEM ? err : 0;
	}
	if (n_gone)
		log__info("programs that have ended and are ignored: %zu", n_gone);
	if (!err && !search.found.n)
		err = explain(programs, &search);
	VEC_FINI(&search.found);
	return err;
}

static int each_in_process(const struct probe_source *source, const char *symbol, probe_fn fn,
			   void *ctx)
{
	return kernel_probe_kind__of(symbol) ? kernel_probe__each(source, symbol, fn, ctx)
					     : each_in_file(source, symbol, fn, ctx);
}

int probe__each(const struct probe_source *source, const char *symbol, probe_fn fn, void *ctx)
{
	return source->programs ? each_in_programs(source, symbol, each_in_process, fn, ctx)
				: each_in_process(source, symbol, fn, ctx);
}

int probe__each_function(const struct probe_source *source, const char *symbol, probe_fn fn,
			 void *ctx)
{
	return source->programs ? each_in_programs(source, symbol, each_function_in_file, fn, ctx)
				: each_function_in_file(source, symbol, fn, ctx);
}

bool programs__have(const struct programs *programs, const char *symbol)
{
	struct search search = {.each = each_in_process, .symbol = symbol};
	bool found = false;

	for (size_t i = 0; i < programs->all.n && !found; i++) {
		int err = search_in(&search, &programs->all.v[i], true);

		found = !err || err == -ENOTUNIQ;
	}
	return found;
}

void programs__remove(struct programs *programs, const struct programs *others)
{
	VEC_DROP_EACH(&programs->all, program, find_code(others, program->code),
		      process__close(&program->process));
}

const struct process *programs__first(const struct programs *programs)
{
	return &(VEC_FIND(&programs->all, e, e->is_probed) ?: &programs->all.v[0])->process;
}

size_t programs__unprobed(const struct programs *programs, const struct process **first)
{
	size_t n = 0;

	VEC_EACH(&programs->all, program) {
		if (program->is_probed)
			continue;
		if (!n)
			*first = &program->process;
		n += program->n;
	}
	return n;
}

const char *programs__default_trigger(const struct programs *programs)
{
	for (size_t i = 0; default_triggers[i]; i++)
		if (programs__have(programs, default_triggers[i]))
			return default_triggers[i];
	return NULL;
}
