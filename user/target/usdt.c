// SPDX-License-Identifier: MIT
#include "target/usdt.h"

#include <errno.h>
#include <fnmatch.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/user.h>

#include "target/elf/elf_internal.h"
#include "target/symbols/query.h"
#include "util/cleanup.h"
#include "util/log.h"
#include "util/names.h"

/*
 * A note's descriptor: the addresses of the probe, of .stapsdt.base and of the semaphore, as they
 * were when it was linked, then three strings: provider, name, arguments
 * (sourceware.org/systemtap/wiki/UserSpaceProbeImplementation).
 */

#define NT_STAPSDT     3
#define SEMAPHORE_SIZE 2

/*
 * Reads a note. `base` is the address of .stapsdt.base now; 0: absent. False if the note makes no
 * sense.
 */
static bool read_place(const struct elf_image *image, uint64_t base, const char *desc, size_t size,
		       struct usdt_place *place)
{
	uint64_t addresses[3], moved, semaphore;
	const char **texts[] = {&place->provider, &place->name, &place->args};
	const char *end = desc + size;
	const uint8_t *bytes;
	size_t len;

	if (size < sizeof(addresses))
		return false;
	memcpy(addresses, desc, sizeof(addresses));
	desc += sizeof(addresses);
	for (int i = 0; i < 3; i++) {
		*texts[i] = desc;
		desc = memchr(desc, '\0', (size_t)(end - desc));
		if (!desc)
			return false;
		desc++;
	}
	/* prelink(8) moves everything except addresses in notes. */
	moved = base ? base - addresses[1] : 0;
	place->vaddr = addresses[0] + moved;
	place->semaphore_offset = 0;
	if (addresses[2]) {
		/* The semaphore must be in loaded data, and not in code. */
		semaphore = addresses[2] + moved;
		bytes = elf_image__loaded_bytes(image, semaphore, &len);
		if (!bytes || len < SEMAPHORE_SIZE || elf_image__segment(image, semaphore))
			return false;
		place->semaphore_offset = (uint64_t)(bytes - image->data);
	}
	return *place->provider && *place->name && elf_image__segment(image, place->vaddr) &&
	       (!addresses[2] || place->semaphore_offset);
}

int elf_image__usdt_places(struct elf_image *image, usdt_place_vec *places)
{
	size_t offset = 0, name_offset, desc_offset;
	uint64_t base = 0;
	struct usdt_place place;
	Elf_Data *notes;
	GElf_Shdr shdr;
	GElf_Nhdr note;
	int err = 0;

	pthread_mutex_lock(&image->lock);
	if (elf_image__section(image, ".stapsdt.base", &shdr))
		base = shdr.sh_addr;
	notes = (Elf_Data *)elf_section__data(elf_image__section(image, ".note.stapsdt", &shdr), 1);
	pthread_mutex_unlock(&image->lock);
	while (notes && !err &&
	       (offset = gelf_getnote(notes, offset, &note, &name_offset, &desc_offset))) {
		const char *bytes = notes->d_buf;

		if (note.n_type == NT_STAPSDT && note.n_namesz == sizeof("stapsdt") &&
		    !memcmp(bytes + name_offset, "stapsdt", sizeof("stapsdt")) &&
		    read_place(image, base, bytes + desc_offset, note.n_descsz, &place))
			err = VEC_ADD(places, place);
	}
	return err;
}

/* Offset in pt_regs, which has the layout of user_regs_struct. */
#define PLACE(name) offsetof(struct user_regs_struct, name)

static const struct {
	const char *names[4]; /* of 64, 32, 16 and 8 bits; the upper 8 of 16 are not there */
	uint16_t place;
} registers[] = {
	{{"rax", "eax", "ax", "al"}, PLACE(rax)},
	{{"rbx", "ebx", "bx", "bl"}, PLACE(rbx)},
	{{"rcx", "ecx", "cx", "cl"}, PLACE(rcx)},
	{{"rdx", "edx", "dx", "dl"}, PLACE(rdx)},
	{{"rsi", "esi", "si", "sil"}, PLACE(rsi)},
	{{"rdi", "edi", "di", "dil"}, PLACE(rdi)},
	{{"rbp", "ebp", "bp", "bpl"}, PLACE(rbp)},
	{{"rsp", "esp", "sp", "spl"}, PLACE(rsp)},
	{{"r8", "r8d", "r8w", "r8b"}, PLACE(r8)},
	{{"r9", "r9d", "r9w", "r9b"}, PLACE(r9)},
	{{"r10", "r10d", "r10w", "r10b"}, PLACE(r10)},
	{{"r11", "r11d", "r11w", "r11b"}, PLACE(r11)},
	{{"r12", "r12d", "r12w", "r12b"}, PLACE(r12)},
	{{"r13", "r13d", "r13w", "r13b"}, PLACE(r13)},
	{{"r14", "r14d", "r14w", "r14b"}, PLACE(r14)},
	{{"r15", "r15d", "r15w", "r15b"}, PLACE(r15)},
};

/* Reads "%rax" at *text and moves *text past it. */
static bool take_register(const char **text, uint16_t *place)
{
	size_t len;

	if (**text != '%')
		return false;
	len = strspn(*text + 1, "abcdefghijklmnopqrstuvwxyz0123456789");
	for (size_t i = 0; i < sizeof(registers) / sizeof(registers[0]); i++) {
		for (int k = 0; k < 4; k++) {
			const char *name = registers[i].names[k];

			if (strlen(name) != len || memcmp(name, *text + 1, len))
				continue;
			*place = registers[i].place;
			*text += 1 + len;
			return true;
		}
	}
	return false;
}

/* Reads a number at *text and moves *text past it. */
static bool take_number(const char **text, uint64_t *number)
{
	const char *digits = *text + (**text == '-');
	char *end;

	/* strtoull() would pass over space and signs. */
	if (*digits < '0' || *digits > '9')
		return false;
	errno = 0;
	*number = strtoull(digits, &end, 0);
	*number = digits == *text ? *number : -*number;
	*text = end;
	return !errno;
}

/* Reads "-24(%rbp)" or "(%rax,%rbx,8)". */
static bool take_memory(const char **text, struct mt_arg *arg)
{
	uint64_t scale = 1;

	arg->kind = MT_ARG_MEMORY;
	if (**text != '(' && !take_number(text, &arg->value))
		return false;
	if (*(*text)++ != '(' || !take_register(text, &arg->base))
		return false;
	if (**text == ',') {
		(*text)++;
		if (!take_register(text, &arg->index))
			return false;
		if (**text == ',') {
			(*text)++;
			if (!take_number(text, &scale) || !scale || scale > 8)
				return false;
		}
		arg->scale = (uint8_t)scale;
	}
	return *(*text)++ == ')';
}

/* Parses all of "size@operand"; false for unsupported operands. */
static bool parse_arg(const char *text, const char *end, struct mt_arg *arg)
{
	uint64_t number, size;
	bool is_good;

	if (!take_number(&text, &number) || *text++ != '@')
		return false;
	size = (int64_t)number < 0 ? -number : number;
	if (size != 1 && size != 2 && size != 4 && size != 8)
		return false;
	arg->size = (int8_t)number;
	if (*text == '$') {
		text++;
		arg->kind = MT_ARG_CONSTANT;
		is_good = take_number(&text, &arg->value);
	} else if (*text == '%') {
		arg->kind = MT_ARG_REGISTER;
		is_good = take_register(&text, &arg->base);
	} else {
		is_good = take_memory(&text, arg);
	}
	return is_good && text == end;
}

void usdt_args__parse(const char *text, struct mt_args *args)
{
	*args = (struct mt_args){0};
	for (text += strspn(text, " "); *text && args->n < MT_ARGS_MAX; text += strspn(text, " ")) {
		struct mt_arg arg = {0};
		const char *end = text + strcspn(text, " ");

		if (parse_arg(text, end, &arg))
			args->v[args->n] = arg;
		args->n++;
		text = end;
	}
}

#define MAX_LISTED 5

/* A parsed selector; its parts point into `words`. */
struct usdt_query {
	const char *text;
	char *words;	    /* owned */
	const char *module; /* NULL: any */
	const char *provider, *name;
};

bool usdt__is_selector(const char *text)
{
	return !strncmp(text, USDT_PREFIX, strlen(USDT_PREFIX));
}

static int refuse_text(const struct usdt_query *query, size_t at, const char *what)
{
	log__error("bad trigger: %s", what);
	log__caret(query->text, at);
	log__hint("the form is usdt:PROVIDER:NAME or usdt:FILE:PROVIDER:NAME; 'mtbpf list' with "
		  "'usdt:*' shows them");
	return -EINVAL;
}

/* The last two words are the probe's, whatever colons a path has. */
static int parse(struct usdt_query *query, const char *text)
{
	char *last, *middle;

	*query = (struct usdt_query){.text = text};
	query->words = strdup(text + strlen(USDT_PREFIX));
	if (!query->words)
		return -ENOMEM;
	last = strrchr(query->words, ':');
	if (!last)
		return refuse_text(query, strlen(text), "a USDT probe is a provider's");
	*last = '\0';
	query->name = last + 1;
	middle = strrchr(query->words, ':');
	query->provider = middle ? middle + 1 : query->words;
	if (middle) {
		*middle = '\0';
		query->module = query->words;
	}
	if (!*query->provider)
		return refuse_text(query, strlen(USDT_PREFIX) + (query->provider - query->words),
				   "no provider");
	return *query->name ? 0 : refuse_text(query, strlen(text), "no name of a probe");
}

/* True if no earlier one is a place of the same probe. */
static bool is_first(const usdt_match_vec *found, size_t at)
{
	for (size_t i = 0; i < at; i++)
		if (!strcmp(found->v[i].place.provider, found->v[at].place.provider) &&
		    !strcmp(found->v[i].place.name, found->v[at].place.name))
			return false;
	return true;
}

static int refuse_several(const struct symbols *symbols, const char *text, size_t n,
			  const usdt_match_vec *found)
{
	size_t listed = 0;

	log__error("'%s' names %zu USDT probes in %s", text, n, symbols->label);
	log__hint("name one of them:");
	for (size_t i = 0; i < found->n && listed < MAX_LISTED; i++) {
		if (!is_first(found, i))
			continue;
		log__hint("  usdt:%s:%s", found->v[i].place.provider, found->v[i].place.name);
		listed++;
	}
	if (n > listed)
		log__hint("  and %zu more", n - listed);
	return -ENOTUNIQ;
}

/* "PROVIDER:NAME" after `before`: "", "usdt:" or "usdt:FILE:". NULL: out of memory. */
static char *format(const char *before, const char *provider, const char *name)
{
	char *text;

	return asprintf(&text, "%s%s:%s", before, provider, name) < 0 ? NULL : text;
}

/* `others` are the probes that the modules have. */
static int refuse_missing(const struct symbols *symbols, const struct usdt_query *query,
			  const usdt_match_vec *others)
{
	_cleanup_free_ char *wanted = NULL, *best = NULL;
	struct nearest nearest = {0};

	if (!others->n) {
		log__error("%s does not contain USDT probes%s%s", symbols->label,
			   query->module ? " in " : "", query->module ? query->module : "");
		log__hint("USDT probes come from sys/sdt.h; -symbol also takes functions");
		return -ENODATA;
	}
	log__error("no USDT probe '%s' in %s", query->text, symbols->label);
	nearest.word = wanted = format("", query->provider, query->name);
	for (size_t i = 0; wanted && i < others->n; i++) {
		const struct usdt_place *place = &others->v[i].place;
		char *name = format("", place->provider, place->name);

		if (!name)
			continue;
		nearest__offer(&nearest, name);
		if (nearest.best == name) {
			free(best);
			best = name;
		} else {
			free(name);
		}
	}
	if (best)
		log__hint("did you mean 'usdt:%s'?", best);
	else
		log__hint("'mtbpf list' with 'usdt:*' shows them");
	return -ENOENT;
}

/* Finds the places of all probes that the query names. Others are those that it does not name. */
static int search(const struct symbols *symbols, const struct usdt_query *query,
		  usdt_match_vec *found, usdt_match_vec *others)
{
	struct query by_name = {.module = query->module,
				.module_len = query->module ? strlen(query->module) : 0};
	int err = 0;

	for (size_t i = 0; !err && i < symbols->n; i++) {
		const struct module *module = &symbols->modules[i];
		usdt_place_vec places = {0};
		size_t first = found->n;

		if (query->module && strcmp(query->module, module->mapping.path) &&
		    !query__covers(&by_name, TIER_NAMED, module))
			continue;
		err = elf_image__usdt_places(module->image, &places);
		VEC_EACH_WHILE(&places, place, !err) {
			bool is_meant = !fnmatch(query->provider, place->provider, 0) &&
					!fnmatch(query->name, place->name, 0);
			size_t k = first;

			/* Inlining may name a place twice: a hit there is one hit. */
			while (is_meant && k < found->n && found->v[k].place.vaddr != place->vaddr)
				k++;
			if (!is_meant)
				err = VEC_ADD(others, (struct usdt_match){module, *place});
			else if (k == found->n)
				err = VEC_ADD(found, (struct usdt_match){module, *place});
		}
		VEC_FINI(&places);
	}
	return err;
}

int symbols__find_usdt(const struct symbols *symbols, const char *text, usdt_match_vec *found)
{
	struct usdt_query query;
	usdt_match_vec others = {0};
	size_t n = 0;
	int err = parse(&query, text);

	*found = (usdt_match_vec){0};
	if (!err)
		err = search(symbols, &query, found, &others);
	for (size_t i = 0; i < found->n; i++)
		n += is_first(found, i);
	if (!err && !n)
		err = refuse_missing(symbols, &query, &others);
	else if (!err && n > 1)
		err = refuse_several(symbols, text, n, found);
	if (err)
		VEC_FINI(found);
	VEC_FINI(&others);
	free(query.words);
	return err;
}

int symbols__each_usdt(const struct symbols *symbols, const char *glob,
		       int (*fn)(void *ctx, const struct usdt_match *match), void *ctx)
{
	int result = 0;

	for (size_t i = 0; !result && i < symbols->n; i++) {
		const struct module *module = &symbols->modules[i];
		usdt_place_vec places = {0};

		result = elf_image__usdt_places(module->image, &places);
		VEC_EACH_WHILE(&places, place, !result) {
			const struct usdt_match match = {module, *place};
			_cleanup_free_ char *file = NULL, *full = NULL, *plain = NULL;

			plain = format(USDT_PREFIX, place->provider, place->name);
			if (asprintf(&file, USDT_PREFIX "%s:", module__name(module)) < 0)
				file = NULL;
			full = file ? format(file, place->provider, place->name) : NULL;
			if (!full || !plain)
				result = -ENOMEM;
			else if (!fnmatch(glob, full, 0) || !fnmatch(glob, plain, 0))
				result = fn(ctx, &match);
		}
		VEC_FINI(&places);
	}
	return result;
}
