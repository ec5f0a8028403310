// SPDX-License-Identifier: MIT
#include "view/pattern.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "util/vec.h"

/* A placeholder for callers that are missing in a stack, however many. */
#define NO_CALLERS "[callers not recorded]"

/* Names. */

static bool is_hex(char c)
{
	return isxdigit((unsigned char)c);
}

/* Suffixes that GCC, Clang and linkers append to the names of a function's clones. */
static const char *const clones[] = {".constprop.", ".isra.", ".part.",	     ".cold",
				     ".lto_priv.",  ".llvm.", ".localalias", ".__uniq."};

/* Skips prefixes such as "__libc_", with which glibc has several names for one function. */
static const char *skip_libc(const char *name)
{
	static const char *const prefixes[] = {"__GI_", "__libc_", "__"};

	for (size_t i = 0; i < sizeof(prefixes) / sizeof(prefixes[0]); i++) {
		size_t n = strlen(prefixes[i]);

		if (!strncmp(name, prefixes[i], n) &&
		    (islower((unsigned char)name[n]) || name[n] == '_'))
			name += n;
	}
	return name;
}

char *pattern__function(const char *name)
{
	char *copy = strdup(name[0] == '_' ? skip_libc(name) : name), *at;
	size_t n, digits = 0;

	if (!copy)
		return NULL;
	for (size_t i = 0; i < sizeof(clones) / sizeof(clones[0]); i++)
		if ((at = strstr(copy, clones[i])) && at != copy)
			*at = '\0';
	/* Cuts off a symbol's version ("@GLIBC_2.2") or "@plt". */
	at = strchr(copy, '@');
	if (at && at != copy &&
	    (at[1] == '@' || isupper((unsigned char)at[1]) || !strcmp(at, "@plt")))
		*at = '\0';
	/* Cuts off the hash of Rust's older names, "::h0123456789abcdef". */
	n = strlen(copy);
	while (digits < 16 && digits < n && is_hex(copy[n - 1 - digits]))
		digits++;
	if (digits == 16 && n > 19 && !strncmp(copy + n - 19, "::h", 3))
		copy[n - 19] = '\0';
	/*
	 * Replaces the address in "[jit+0x1f]" or "0x7f12", which differs from process to process,
	 * by '*'.
	 */
	at = strstr(copy, "0x");
	if (at && (copy[0] == '[' || at == copy) && is_hex(at[2])) {
		n = strspn(at + 2, "0123456789abcdefABCDEF");
		memmove(at + 1, at + 2 + n, strlen(at + 2 + n) + 1);
		*at = '*';
	}
	return copy;
}

static bool is_word(char c)
{
	return isalnum((unsigned char)c);
}

/* 8-4-4-4-12 hexadecimal digits. */
static bool is_uuid(const char *at)
{
	for (int i = 0; i < 36; i++) {
		bool is_dash = i == 8 || i == 13 || i == 18 || i == 23;

		if (is_dash ? at[i] != '-' : !is_hex(at[i]))
			return false;
	}
	return true;
}

/* Length of the number that begins here: digits, a hash, or a UUID; 0: none. */
static size_t number_len(const char *at, char before)
{
	size_t n = strspn(at, "0123456789"), hex = strspn(at, "0123456789abcdefABCDEF");
	bool has_digit = strcspn(at, "0123456789") < hex;

	if (!is_word(before) && is_uuid(at))
		return 36;
	if (hex >= 8 && has_digit && !is_word(before) && !is_word(at[hex]))
		return hex;
	return n;
}

/* The first port that Linux gives to clients; services have lower ones. */
#define EPHEMERAL_FIRST 32768

/*
 * Length of the number of a descriptor or thread that begins here, " (fd 5)" or " (123)"; 0: none.
 */
static size_t bracket_len(const char *at)
{
	size_t n = !strncmp(at, " (fd ", 5) ? 5 : !strncmp(at, " (", 2) ? 2 : 0;
	size_t digits = n ? strspn(at + n, "0123456789") : 0;

	return digits && at[n + digits] == ')' ? n + digits + 1 : 0;
}

char *pattern__of(const char *of)
{
	/* The values of a quota are kept: another quota is another cause. */
	const char *quota = strstr(of, ", quota ");
	char *out = malloc(strlen(of) + 1), *to = out;
	size_t dots = 0;

	if (!out)
		return NULL;
	for (const char *at = of; *at;) {
		char before = at == of ? ' ' : at[-1];
		size_t n = bracket_len(at);

		if (n) {
			at += n;
			continue;
		}
		if (quota && at >= quota) {
			to = stpcpy(to, at);
			break;
		}
		dots = *at == '.' ? dots + 1 : *at == ' ' || *at == '/' ? 0 : dots;
		n = number_len(at, before);
		/* ":6379" of "10.0.0.1:6379" tells which service it is. */
		if (n && before == ':' && dots && n < 6 &&
		    strtoul(at, NULL, 10) < EPHEMERAL_FIRST && !is_word(at[n]) && at[n] != '.') {
			to = mempcpy(to, at, n);
			at += n;
		} else if (n) {
			if (to == out || to[-1] != '*')
				*to++ = '*';
			at += n;
		} else {
			*to++ = *at++;
		}
	}
	*to = '\0';
	return out;
}

/* Groups. */

/* Causes of the other kinds hit whatever code runs, so their place is random. */
static bool has_place(enum cause_kind kind)
{
	return kind == CAUSE_CPU || kind == CAUSE_KERNEL || kind == CAUSE_BLOCKED ||
	       kind == CAUSE_TRACED || kind == CAUSE_SYSCALL;
}

static int fill_key(struct pattern *pattern, const struct summary *summary,
		    const struct summary_cause *cause)
{
	size_t n = has_place(cause->kind) ? cause->path.n : 0, first = 0;
	int err = 0;

	/* Callers of the trigger's function do not count: stacks of some captures lack them. */
	while (summary->function && first < n &&
	       strcmp(cause->path.v[first].name, summary->function))
		first++;
	if (first == n)
		first = 0;
	*pattern = (struct pattern){.kind = cause->kind};
	if (cause->of) {
		pattern->of = pattern__of(cause->of);
		err = pattern->of ? 0 : -ENOMEM;
	}
	for (size_t i = first; i < n && !err; i++) {
		struct pattern_frame frame = {pattern__function(cause->path.v[i].name),
					      cause->path.v[i].is_inlined};

		err = frame.name ? VEC_ADD(&pattern->path, frame) : -ENOMEM;
		if (err)
			free(frame.name);
	}
	return err;
}

static void fini_pattern(struct pattern *pattern)
{
	VEC_FINI_EACH(&pattern->path, e, free(e->name));
	VEC_FINI(&pattern->entries);
	VEC_FINI(&pattern->hosts);
	free(pattern->of);
}

static bool is_of_same(const struct pattern *a, const struct pattern *b)
{
	return a->kind == b->kind && !strcmp(a->of ?: "", b->of ?: "");
}

static bool is_same(const struct pattern *a, const struct pattern *b)
{
	if (!is_of_same(a, b) || a->path.n != b->path.n)
		return false;
	for (size_t i = 0; i < a->path.n; i++)
		if (strcmp(a->path.v[i].name, b->path.v[i].name))
			return false;
	return true;
}

static int add_cause(struct patterns *p, const struct summary *summary, size_t i)
{
	const struct pattern_entry entry = {summary, &summary->causes.v[i], !i};
	struct pattern key, *known = NULL;
	int err = fill_key(&key, summary, entry.cause);

	/* A linear search will do: causes are few, and captures of each are many. */
	if (!err)
		known = VEC_FIND(&p->all, pattern, is_same(pattern, &key));
	for (size_t k = 0; known && k < key.path.n && k < known->path.n; k++)
		known->path.v[k].is_inlined |= key.path.v[k].is_inlined;
	if (!err && !known) {
		known = VEC_PUSH(&p->all);
		err = known ? 0 : -ENOMEM;
		if (known) {
			*known = key;
			key = (struct pattern){0};
		}
	}
	fini_pattern(&key);
	return err ? err : VEC_ADD(&known->entries, entry);
}

/* Paths of one cause, as two builds show it. */

static bool has_build(const struct pattern *pattern, const char *build)
{
	return VEC_FIND(&pattern->entries, entry,
			!build || !entry->summary->build_id ||
				!strcmp(build, entry->summary->build_id));
}

/*
 * True if both have captures of one build, or of an unknown build, which may be the same. One build
 * always shows a path in the same way, so two different paths of it are two causes.
 */
static bool share_build(const struct pattern *a, const struct pattern *b)
{
	return VEC_FIND(&a->entries, entry, has_build(b, entry->summary->build_id));
}

/* True if a capture of one of the pattern's builds shows the function. */
static bool knows_function(const struct patterns *p, const struct pattern *pattern,
			   const char *name)
{
	bool found = false;

	for (size_t i = 0; i < p->n && !found; i++) {
		const struct summary *s = &p->summaries[i];
		struct summary_call call = {0};

		if (!s->build_id || !has_build(pattern, s->build_id))
			continue;
		while (!found && summary__next_call(s, &call)) {
			char *plain = pattern__function(call.name);

			found = plain && !strcmp(plain, name);
			free(plain);
		}
	}
	return found;
}

/*
 * True if `shorter` is `longer` without functions that the build of `shorter` has inlined and does
 * not show.
 */
static bool is_shortened(const struct patterns *p, const struct pattern *shorter,
			 const struct pattern *longer)
{
	size_t at = 0;

	if (!shorter->path.n || shorter->path.n >= longer->path.n)
		return false;
	for (size_t i = 0; i < longer->path.n; i++) {
		const struct pattern_frame *frame = &longer->path.v[i];

		if (at < shorter->path.n && !strcmp(shorter->path.v[at].name, frame->name))
			at++;
		else if (!i || (!frame->is_inlined && knows_function(p, shorter, frame->name)))
			return false;
	}
	return at == shorter->path.n;
}

static size_t find_wildcard(const struct pattern *pattern)
{
	size_t i = 0;

	while (i < pattern->path.n && strcmp(pattern->path.v[i].name, NO_CALLERS))
		i++;
	return i;
}

static bool has_part(const struct pattern *whole, size_t at, const struct pattern *part,
		     size_t from, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (strcmp(whole->path.v[at + i].name, part->path.v[from + i].name))
			return false;
	return true;
}

/* True if a path that lacks callers in its middle fits one that has all. */
static bool is_with_gap(const struct pattern *gap, const struct pattern *whole)
{
	size_t at = find_wildcard(gap), rest;

	if (at == gap->path.n || find_wildcard(whole) != whole->path.n)
		return false;
	rest = gap->path.n - at - 1;
	return rest && whole->path.n >= at + rest && has_part(whole, 0, gap, 0, at) &&
	       has_part(whole, whole->path.n - rest, gap, at + 1, rest);
}

/* Joins a pattern with another that may be the same, unless it fits several. */
static int join_same(struct patterns *p)
{
	int err = 0;

	for (size_t i = 0; i < p->all.n && !err;) {
		size_t n = 0, fits = 0;

		for (size_t k = 0; k < p->all.n && n < 2; k++) {
			const struct pattern *a = &p->all.v[i], *b = &p->all.v[k];

			if (k == i || !is_of_same(a, b) ||
			    !(is_with_gap(a, b) || (!share_build(a, b) && is_shortened(p, a, b))))
				continue;
			fits = k;
			n++;
		}
		if (n != 1) {
			i++;
			continue;
		}
		err = VEC_ADD_ALL(&p->all.v[fits].entries, &p->all.v[i].entries);
		if (err)
			return err;
		fini_pattern(&p->all.v[i]);
		VEC_REMOVE(&p->all, i);
	}
	return 0;
}

/* Figures. */

ORDER(by_ns, struct pattern_entry,
      COMPARE(y->cause->ns, x->cause->ns) ?: strcmp(x->summary->path, y->summary->path))

ORDER(by_lost, struct pattern,
      COMPARE(y->lost_ns, x->lost_ns)
	      ?: strcmp(x->entries.v[0].cause->text, y->entries.v[0].cause->text))

static void add_time(uint64_t *first_ms, uint64_t *last_ms, uint64_t ms)
{
	if (!ms)
		return;
	if (!*first_ms || ms < *first_ms)
		*first_ms = ms;
	if (ms > *last_ms)
		*last_ms = ms;
}

#define ADD_HOST(hosts, host)                                                                      \
	({                                                                                         \
		size_t i_ = 0;                                                                     \
                                                                                                   \
		while ((host) && i_ < (hosts)->n && strcmp((hosts)->v[i_], (host)))                \
			i_++;                                                                      \
		(host) && i_ == (hosts)->n ? VEC_ADD(hosts, host) : 0;                             \
	})

ORDER(by_text, char *, strcmp(*x, *y))

static int settle(struct pattern *pattern)
{
	size_t n = pattern->entries.n;
	int err = 0;

	VEC_SORT(&pattern->entries, by_ns);
	for (size_t i = 0; i < n && !err; i++) {
		const struct pattern_entry *entry = &pattern->entries.v[i];

		pattern->lost_ns += entry->cause->ns;
		pattern->n_main += entry->is_main;
		add_time(&pattern->first_ms, &pattern->last_ms, entry->summary->unix_ms);
		err = ADD_HOST(&pattern->hosts, entry->summary->host);
	}
	VEC_SORT(&pattern->hosts, by_text);
	pattern->median_ns =
		(pattern->entries.v[n / 2].cause->ns + pattern->entries.v[(n - 1) / 2].cause->ns) /
		2;
	return err;
}

/* "[blocked] in read": time outside of functions is named with its place. */
static char *function_name(const struct summary_function *function)
{
	char *name = pattern__function(function->name), *in, *text = NULL;

	if (!name || !function->in)
		return name;
	in = pattern__function(function->in);
	if (!in || asprintf(&text, "%s in %s", name, in) < 0)
		text = NULL;
	free(in);
	free(name);
	return text;
}

ORDER(by_name, struct pattern_function, strcmp(x->name, y->name))

ORDER(by_extra, struct pattern_function,
      COMPARE(y->extra_ns, x->extra_ns) ?: strcmp(x->name, y->name))

/*
 * Adds the capture's functions. Several of them may have the same name after pattern__function(),
 * such as "[program+*]": their times add up.
 */
static int add_functions(struct patterns *p, const struct summary *summary)
{
	size_t first = p->functions.n;
	int err = 0;

	VEC_EACH_WHILE(&summary->functions, function, !err) {
		char *name = function_name(function);
		size_t at = first;

		if (!name)
			return -ENOMEM;
		while (at < p->functions.n && strcmp(p->functions.v[at].name, name))
			at++;
		if (at == p->functions.n) {
			err = VEC_ADD(&p->functions,
				      (struct pattern_function){name, 1, function->extra_ns});
			if (!err)
				continue;
		} else {
			p->functions.v[at].extra_ns += function->extra_ns;
		}
		free(name);
	}
	return err;
}

/* Joins entries that have the same name. */
static void sum_functions(struct patterns *p)
{
	size_t n = 0;

	VEC_SORT(&p->functions, by_name);
	VEC_EACH(&p->functions, function) {
		struct pattern_function *last = n ? &p->functions.v[n - 1] : NULL;

		if (!last || strcmp(last->name, function->name)) {
			p->functions.v[n++] = *function;
			continue;
		}
		last->n++;
		last->extra_ns += function->extra_ns;
		free(function->name);
	}
	p->functions.n = n;
	VEC_SORT(&p->functions, by_extra);
}

/* At most this many pairs of key and value are counted: a value may differ in each capture. */
#define LABELS_MAX 256

static int add_labels(struct patterns *p, const struct summary *summary)
{
	struct summary_label label;
	int err = 0;

	for (size_t i = 0; !err && summary__label_at(summary, i, &label); i++) {
		size_t at = 0;

		if (!strcmp(label.key, "host"))
			continue;
		while (at < p->labels.n && (strcmp(p->labels.v[at].key, label.key) ||
					    strcmp(p->labels.v[at].value, label.value)))
			at++;
		if (at < p->labels.n)
			p->labels.v[at].n++;
		else if (at < LABELS_MAX)
			err = VEC_ADD(&p->labels,
				      (struct pattern_label){label.key, label.value, 1});
	}
	return err;
}

ORDER(by_key, struct pattern_label,
      strcmp(x->key, y->key) ?: COMPARE(y->n, x->n) ?: strcmp(x->value, y->value))

static int add_summary(struct patterns *p, const struct summary *summary)
{
	int err = ADD_HOST(&p->hosts, summary->host);
	bool knows_ordinary = false;

	if (!err)
		err = add_labels(p, summary);
	add_time(&p->first_ms, &p->last_ms, summary->unix_ms);
	if (summary->no_report)
		return err;
	p->n_reports++;
	p->n_timed += summary->ordinary_ns > 0;
	p->lost_ns += summary__excess(summary);
	for (int i = 0; i < ACCOUNT_PARTS; i++) {
		p->slow[i] += summary->slow[i];
		p->ordinary[i] += summary->ordinary[i];
		knows_ordinary |= summary->ordinary[i] > 0;
	}
	p->n_compared += knows_ordinary;
	for (size_t i = 0; i < summary->causes.n && !err; i++)
		err = add_cause(p, summary, i);
	return err ? err : add_functions(p, summary);
}

int patterns__find(struct patterns *p, const struct summary *summaries, size_t n)
{
	int err = 0;

	*p = (struct patterns){.summaries = summaries, .n = n};
	for (size_t i = 0; i < n && !err; i++)
		err = add_summary(p, &summaries[i]);
	if (!err)
		err = join_same(p);
	for (size_t i = 0; i < p->all.n && !err; i++)
		err = settle(&p->all.v[i]);
	if (err)
		return err;
	VEC_SORT(&p->hosts, by_text);
	VEC_SORT(&p->all, by_lost);
	sum_functions(p);
	VEC_SORT(&p->labels, by_key);
	return 0;
}

void patterns__fini(struct patterns *p)
{
	VEC_FINI_EACH(&p->all, e, fini_pattern(e));
	VEC_FINI_EACH(&p->functions, e, free(e->name));
	VEC_FINI(&p->hosts);
	VEC_FINI(&p->labels);
}
