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

struct usdt_reader {
	struct elf_image *image;
	uint64_t base; /* the address of .stapsdt.base now; 0: absent */
};

/* The string at *at, which must end before `end`; moves *at past it. Otherwise NULL. */
static const char *take_string(const char **at, const char *end)
{
	const char *text = *at, *nul = memchr(text, '\0', (size_t)(end - text));

	if (!nul)
		return NULL;
	*at = nul + 1;
	return text;
}

/* 0 if the address is not in writable data. */
static uint64_t semaphore_offset(const struct elf_image *image, uint64_t vaddr)
{
	size_t len;
	const uint8_t *bytes = vaddr ? elf_image__loaded_bytes(image, vaddr, &len) : NULL;

	if (!bytes || len < SEMAPHORE_SIZE || elf_image__segment(image, vaddr))
		return 0;
	return (uint64_t)(bytes - image->data);
}

/* False where the note makes no sense. */
static bool read_place(const struct usdt_reader *r, const char *desc, size_t size,
		       struct usdt_place *place)
{
	const char *at = desc, *end = desc + size;
	uint64_t addresses[3], moved;

	if (size < sizeof(addresses))
		return false;
	memcpy(addresses, at, sizeof(addresses));
	at += sizeof(addresses);
	place->provider = take_string(&at, end);
	place->name = place->provider ? take_string(&at, end) : NULL;
	place->args = place->name ? take_string(&at, end) : NULL;
	/* prelink(8) moves everything except addresses in notes. */
	moved = r->base ? r->base - addresses[1] : 0;
	place->vaddr = addresses[0] + moved;
	place->semaphore_offset =
		semaphore_offset(r->image, addresses[2] ? addresses[2] + moved : 0);
	return place->args && *place->provider && *place->name &&
	       elf_image__segment(r->image, place->vaddr) &&
	       (!addresses[2] || place->semaphore_offset);
}

static int each_note(const struct usdt_reader *r, Elf_Data *notes,
		     int (*fn)(void *ctx, const struct usdt_place *place), void *ctx)
{
	size_t offset = 0, name_offset, desc_offset;
	const char *base = notes->d_buf;
	struct usdt_place place;
	GElf_Nhdr note;
	int result = 0;

	while (!result &&
	       (offset = gelf_getnote(notes, offset, &note, &name_offset, &desc_offset))) {
		if (note.n_type != NT_STAPSDT || note.n_namesz != sizeof("stapsdt") ||
		    memcmp(base + name_offset, "stapsdt", sizeof("stapsdt")))
			continue;
		if (read_place(r, base + desc_offset, note.n_descsz, &place))
			result = fn(ctx, &place);
	}
	return result;
}

int elf_image__each_usdt(struct elf_image *image,
			 int (*fn)(void *ctx, const struct usdt_place *place), void *ctx)
{
	struct usdt_reader r = {.image = image};
	Elf_Data *notes;
	GElf_Shdr shdr;

	pthread_mutex_lock(&image->lock);
	if (elf_image__section(image, ".stapsdt.base", &shdr))
		r.base = shdr.sh_addr;
	notes = (Elf_Data *)elf_section__data(elf_image__section(image, ".note.stapsdt", &shdr), 1);
	pthread_mutex_unlock(&image->lock);
	return notes ? each_note(&r, notes, fn, ctx) : 0;
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

static bool is_register(const char *const *names, const char *text, size_t len)
{
	for (int i = 0; i < 4; i++)
		if (strlen(names[i]) == len && !memcmp(names[i], text, len))
			return true;
	return false;
}

/* Reads "%rax" at *text and moves *text past it. */
static bool take_register(const char **text, uint16_t *place)
{
	size_t len;

	if (**text != '%')
		return false;
	len = strspn(*text + 1, "abcdefghijklmnopqrstuvwxyz0123456789");
	for (size_t i = 0; i < sizeof(registers) / sizeof(registers[0]); i++) {
		if (!is_register(registers[i].names, *text + 1, len))
			continue;
		*place = registers[i].place;
		*text += 1 + len;
		return true;
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

/* Reads ",%rbx,8)" after the base. */
static bool take_index(const char **text, struct mt_arg *arg)
{
	uint64_t scale;

	if (**text != ',')
		return true;
	(*text)++;
	if (!take_register(text, &arg->index))
		return false;
	arg->scale = 1;
	if (**text != ',')
		return true;
	(*text)++;
	if (!take_number(text, &scale) || !scale || scale > 8)
		return false;
	arg->scale = (uint8_t)scale;
	return true;
}

static bool take_memory(const char **text, struct mt_arg *arg)
{
	arg->kind = MT_ARG_MEMORY;
	if (**text != '(' && !take_number(text, &arg->value))
		return false;
	if (**text != '(')
		return false;
	(*text)++;
	if (!take_register(text, &arg->base) || !take_index(text, arg) || **text != ')')
		return false;
	(*text)++;
	return true;
}

static bool take_size(const char **text, struct mt_arg *arg)
{
	uint64_t number;
	int64_t size;

	if (!take_number(text, &number) || *(*text)++ != '@')
		return false;
	size = (int64_t)number;
	if (size < -8 || size > 8)
		return false;
	arg->size = (int8_t)size;
	size = size < 0 ? -size : size;
	return size == 1 || size == 2 || size == 4 || size == 8;
}

/* Parses all of "size@operand"; false for unsupported operands. */
static bool parse_arg(const char *text, const char *end, struct mt_arg *arg)
{
	bool is_good;

	if (!take_size(&text, arg))
		return false;
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

static bool is_module(const struct usdt_query *query, const struct module *module)
{
	struct query by_name = {.module = query->module};

	if (!query->module || !strcmp(query->module, module->mapping.path))
		return true;
	by_name.module_len = strlen(query->module);
	return query__covers(&by_name, TIER_NAMED, module);
}

/* A search among the places of one module. */
struct usdt_search {
	const struct usdt_query *query;
	const struct module *module;
	usdt_match_vec *found;
	struct nearest nearest;
	char *best;	 /* what nearest.best points to */
	size_t n_places; /* looked at */
};

/* Another place of a probe may be named twice, by inlining: a hit there is one hit. */
static bool is_known(const struct usdt_search *s, const struct usdt_place *place)
{
	for (size_t i = 0; i < s->found->n; i++)
		if (s->found->v[i].module == s->module &&
		    s->found->v[i].place.vaddr == place->vaddr)
			return true;
	return false;
}

static void offer(struct usdt_search *s, const struct usdt_place *place)
{
	char *name;

	if (asprintf(&name, "%s:%s", place->provider, place->name) < 0)
		return;
	nearest__offer(&s->nearest, name);
	if (s->nearest.best == name) {
		free(s->best);
		s->best = name;
	} else {
		free(name);
	}
}

static int look_at(void *ctx, const struct usdt_place *place)
{
	struct usdt_search *s = ctx;

	s->n_places++;
	if (fnmatch(s->query->provider, place->provider, 0) ||
	    fnmatch(s->query->name, place->name, 0)) {
		offer(s, place);
		return 0;
	}
	if (is_known(s, place))
		return 0;
	return VEC_ADD(s->found, (struct usdt_match){.module = s->module, .place = *place});
}

static bool is_same_probe(const struct usdt_match *a, const struct usdt_match *b)
{
	return !strcmp(a->place.provider, b->place.provider) &&
	       !strcmp(a->place.name, b->place.name);
}

static bool is_first(const usdt_match_vec *found, size_t at)
{
	for (size_t i = 0; i < at; i++)
		if (is_same_probe(&found->v[i], &found->v[at]))
			return false;
	return true;
}

static int refuse_several(const struct symbols *symbols, const struct usdt_query *query,
			  const usdt_match_vec *found)
{
	size_t n = 0, listed = 0;

	for (size_t i = 0; i < found->n; i++)
		n += is_first(found, i);
	log__error("'%s' names %zu USDT probes in %s", query->text, n, symbols->label);
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

static int refuse_missing(const struct symbols *symbols, const struct usdt_search *s)
{
	if (!s->n_places) {
		log__error("%s does not contain USDT probes%s%s", symbols->label,
			   s->query->module ? " in " : "",
			   s->query->module ? s->query->module : "");
		log__hint("USDT probes come from sys/sdt.h; -symbol also takes functions");
		return -ENODATA;
	}
	log__error("no USDT probe '%s' in %s", s->query->text, symbols->label);
	if (s->best)
		log__hint("did you mean 'usdt:%s'?", s->best);
	else
		log__hint("'mtbpf list' with 'usdt:*' shows them");
	return -ENOENT;
}

static int search(const struct symbols *symbols, struct usdt_search *s)
{
	_cleanup_free_ char *wanted = NULL;
	int err = 0;

	if (asprintf(&wanted, "%s:%s", s->query->provider, s->query->name) < 0) {
		wanted = NULL;
		return -ENOMEM;
	}
	s->nearest.word = wanted;
	for (size_t i = 0; !err && i < symbols->n; i++) {
		s->module = &symbols->modules[i];
		if (is_module(s->query, s->module))
			err = elf_image__each_usdt(s->module->image, look_at, s);
	}
	if (!err && !s->found->n)
		err = refuse_missing(symbols, s);
	for (size_t i = 1; !err && i < s->found->n; i++)
		if (!is_same_probe(&s->found->v[0], &s->found->v[i]))
			err = refuse_several(symbols, s->query, s->found);
	return err;
}

int symbols__find_usdt(const struct symbols *symbols, const char *text, usdt_match_vec *found)
{
	struct usdt_query query;
	struct usdt_search s = {.query = &query, .found = found};
	int err = parse(&query, text);

	*found = (usdt_match_vec){0};
	if (!err)
		err = search(symbols, &s);
	if (err)
		VEC_FINI(found);
	free(s.best);
	free(query.words);
	return err;
}

/* symbols__each_usdt()'s, of one module. */
struct usdt_listing {
	const struct module *module;
	const char *glob;
	int (*fn)(void *ctx, const struct usdt_match *match);
	void *ctx;
};

static char *format(const char *module, const char *colon, const struct usdt_place *place)
{
	char *text;

	if (asprintf(&text, USDT_PREFIX "%s%s%s:%s", module, colon, place->provider, place->name) <
	    0)
		return NULL;
	return text;
}

static int list_place(void *ctx, const struct usdt_place *place)
{
	const struct usdt_listing *l = ctx;
	const struct usdt_match match = {.module = l->module, .place = *place};
	_cleanup_free_ char *full = format(module__name(l->module), ":", place);
	_cleanup_free_ char *plain = format("", "", place);

	if (!full || !plain)
		return -ENOMEM;
	if (fnmatch(l->glob, full, 0) && fnmatch(l->glob, plain, 0))
		return 0;
	return l->fn(l->ctx, &match);
}

int symbols__each_usdt(const struct symbols *symbols, const char *glob,
		       int (*fn)(void *ctx, const struct usdt_match *match), void *ctx)
{
	int result = 0;

	for (size_t i = 0; !result && i < symbols->n; i++) {
		struct usdt_listing l = {&symbols->modules[i], glob, fn, ctx};

		result = elf_image__each_usdt(l.module->image, list_place, &l);
	}
	return result;
}
