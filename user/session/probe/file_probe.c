// SPDX-License-Identifier: MIT
#include "session/probe/file_probe.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stddef.h>
#include <string.h>
#include <sys/user.h>
#include <unistd.h>

#include "session/probe/hit_reads.h"
#include "target/maps.h"
#include "target/usdt.h"
#include "util/cleanup.h"
#include "util/fs.h"
#include "util/insn.h"
#include "util/log.h"
#include "util/vec.h"

/* The function of include/mtbpf.h that mtbpf_take_snapshot() calls. */
#define OUR_TRIGGER "mtbpf_hit"

const char *const default_triggers[] = {OUR_TRIGGER, "magic_trace_stop_indicator", NULL};

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
 * Lists the registers of the parameters 1, 4, 5 and 6 of mtbpf_hit(): the argument, the two halves
 * of the trace id, and has_arg. The number of arguments and the mark are parameters too; see
 * include/mtbpf.h.
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

bool file_probe__is_same(const struct probe *other, const struct probe *found,
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
	log__error(
		"%s was modified since process %d started, and the file that the process runs is "
		"not in a layer of the overlay that can be opened here",
		mapping->path, process->pid);
	log__hint("restart the process, or run mtbpf on the host, which has the layers of the "
		  "overlay");
	return -ESTALE;
}

static int refuse_usdt(const struct usdt_match *match, int err)
{
	log__error("cannot probe %s:%s at %#llx of %s", match->place.provider, match->place.name,
		   (unsigned long long)match->place.vaddr, elf_image__name(match->module->image));
	log__hint("the probe's note does not match the code; the file may be damaged");
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
		log__hint("it may be data; 'mtbpf list' shows functions");
		return err;
	}
	if (err == -EILSEQ)
		log__error("an instruction does not begin at %s+%#" PRIx64, f->name, match->offset);
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
	size_t len;

	if (elf_image__part_at(f->image, vaddr, &part->vaddr, &end) != f)
		return false;
	offset = elf_image__offset_of_vaddr(f->image, part->vaddr);
	part->code = offset == UINT64_MAX ? NULL : elf_image__bytes(f->image, offset, &len);
	part->len = part->code && len > end - part->vaddr ? end - part->vaddr : len;
	return part->code;
}

/* Exits are given relative to the entry: their distance must be the same in the file. */
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

	/* OCaml's collector finds return addresses in its frame tables, HotSpot in its code. */
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

/* Adds the registers of arguments in which the value begins: see probe_site__choose(). */
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
	/* If the site is behind code that overwrites what is read, another one is chosen. */
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
	if (!err)
		VEC_FINI(&found);
	return err;
}

int file_probe__each(const struct probe_source *source, const char *symbol, probe_fn fn, void *ctx)
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

int file_probe__each_function(const struct probe_source *source, const char *symbol, probe_fn fn,
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
