// SPDX-License-Identifier: MIT
#include "perf/perf_line.h"

#include <string.h>

#include "decode/branch.h"
#include "kernel/kernel.h"

/*
 * tools/perf/builtin-script.c: perf_sample__fprintf_start() and perf_sample__fprintf_bts(). perf
 * prints the fields that -F names, always in the same order. The name of a thread may contain
 * anything.
 */

/* The most tokens before the time: a name of 15 characters and some fields. */
#define MAX_TOKENS 24
/* Between the thread and the time: [cpu], misc, time of day. */
#define MAX_BETWEEN 3
/* More than in "tr end  hw int (xDt)". */
#define MAX_FLAG_WORDS 8

struct cursor {
	const char *at, *end;
};

static void skip_spaces(struct cursor *c)
{
	while (c->at < c->end && (*c->at == ' ' || *c->at == '\t'))
		c->at++;
}

/* The next token, up to a space. Empty at the end. */
static struct perf_span next_token(struct cursor *c)
{
	struct perf_span token;

	skip_spaces(c);
	token.text = c->at;
	while (c->at < c->end && *c->at != ' ' && *c->at != '\t')
		c->at++;
	token.len = (size_t)(c->at - token.text);
	return token;
}

static struct perf_span peek_token(const struct cursor *c)
{
	struct cursor ahead = *c;

	return next_token(&ahead);
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool starts_with(struct perf_span span, const char *text)
{
	size_t n = strlen(text);

	return span.len >= n && !memcmp(span.text, text, n);
}

/* Reads at most 18 digits into *value. Returns how many. */
static size_t take_number(const char *text, size_t len, uint64_t *value)
{
	size_t n = 0;

	*value = 0;
	for (; n < len && n < 18 && is_digit(text[n]); n++)
		*value = *value * 10 + (uint64_t)(text[n] - '0');
	return n;
}

static size_t take_hex(const char *text, size_t len, uint64_t *value)
{
	size_t n = 0;

	*value = 0;
	for (; n < len && n < 16; n++) {
		char letter = text[n] | 0x20;

		if (is_digit(text[n]))
			*value = *value << 4 | (uint64_t)(text[n] - '0');
		else if (letter >= 'a' && letter <= 'f')
			*value = *value << 4 | (uint64_t)(letter - 'a' + 10);
		else
			break;
	}
	return n;
}

/* True if the whole token is an address. */
static bool parse_address(struct perf_span token, uint64_t *value)
{
	size_t skip = starts_with(token, "0x") ? 2 : 0;

	return token.len > skip &&
	       take_hex(token.text + skip, token.len - skip, value) == token.len - skip;
}

/* "458.129844" or, to the nanosecond, "458.129844123". */
static bool parse_time(struct perf_span token, uint64_t *ns)
{
	static const uint64_t scale[] = {1000000000, 100000000, 10000000, 1000000, 100000,
					 10000,	     1000,	100,	  10,	   1};
	uint64_t seconds, fraction;
	size_t whole = take_number(token.text, token.len, &seconds), part;

	if (!whole || whole == token.len || token.text[whole] != '.')
		return false;
	part = take_number(token.text + whole + 1, token.len - whole - 1, &fraction);
	if (!part || part > 9 || whole + 1 + part != token.len || seconds > UINT32_MAX)
		return false;
	*ns = seconds * scale[0] + fraction * scale[part];
	return true;
}

/* "-1" means that the thread is unknown. */
static size_t take_id(const char *text, size_t len, pid_t *id)
{
	uint64_t value;
	size_t sign = len && text[0] == '-', n = take_number(text + sign, len - sign, &value);

	if (!n || value > INT32_MAX)
		return 0;
	*id = sign ? 0 : (pid_t)value;
	return sign + n;
}

/* "4711/4712", or "4712" alone. */
static bool parse_ids(struct perf_span token, pid_t *pid, pid_t *tid)
{
	size_t n = take_id(token.text, token.len, pid);

	*tid = *pid;
	if (!n || n == token.len)
		return n;
	if (token.text[n] != '/')
		return false;
	return take_id(token.text + n + 1, token.len - n - 1, tid) == token.len - n - 1;
}

/* Finds the name and the ids in the fields before the time. */
static bool find_who(struct perf_line *line, const struct perf_span *tokens, size_t n)
{
	for (size_t i = n; i-- > 0 && n - i <= MAX_BETWEEN + 1;) {
		size_t len;

		if (!parse_ids(tokens[i], &line->pid, &line->tid))
			continue;
		len = (size_t)(tokens[i].text - tokens[0].text);
		while (len && tokens[0].text[len - 1] == ' ')
			len--;
		line->comm = (struct perf_span){tokens[0].text, len};
		line->has_pid = memchr(tokens[i].text, '/', tokens[i].len);
		return true;
	}
	return false;
}

/*
 * Parses up to the time, which is a number with a colon that follows the name and the ids of a
 * thread.
 */
static bool parse_start(struct perf_line *line, struct cursor *c)
{
	struct perf_span tokens[MAX_TOKENS];

	for (size_t n = 0; n < MAX_TOKENS; n++) {
		struct perf_span *token = &tokens[n];

		*token = next_token(c);
		if (!token->len)
			return false;
		if (!n || token->text[token->len - 1] != ':' || !is_digit(token->text[0]))
			continue;
		if (parse_time((struct perf_span){token->text, token->len - 1}, &line->time_ns) &&
		    find_who(line, tokens, n))
			return true;
	}
	return false;
}

static bool is_event(struct perf_span token)
{
	return token.len && token.text[token.len - 1] == ':';
}

/* The optional name of the event, and its period. */
static void parse_event(struct perf_line *line, struct cursor *c)
{
	struct cursor ahead = *c;
	struct perf_span token = next_token(&ahead);
	uint64_t period = 0;

	if (token.len && !is_event(token) &&
	    take_number(token.text, token.len, &period) == token.len &&
	    is_event(peek_token(&ahead)))
		token = next_token(&ahead);
	if (is_event(token)) {
		*c = ahead;
		line->event = (struct perf_span){token.text, token.len - 1};
		line->period = period;
	}
	line->body = (struct perf_span){c->at, (size_t)(c->end - c->at)};
}

/*
 * Parses the flags: all words before the first address, which is the branch's. False: without an
 * address.
 */
static bool parse_flags(struct perf_line *line, struct cursor *c)
{
	struct perf_span token;

	skip_spaces(c);
	line->flags = (struct perf_span){c->at, 0};
	for (int i = 0; i <= MAX_FLAG_WORDS; i++) {
		uint64_t unused;

		token = next_token(c);
		if (!token.len)
			return false;
		if (parse_address(token, &line->from) &&
		    !(perf_words__are_letters(token.text, token.len) &&
		      parse_address(peek_token(c), &unused)))
			return true;
		line->flags.len = (size_t)(c->at - line->flags.text);
	}
	return false;
}

/* "error type 1 time 1.5 cpu -1 pid 7 tid 8 ip 0x12 code 7: Overflow packet" */
static void parse_error(struct perf_line *line, struct cursor *c)
{
	struct perf_span token;
	uint64_t value;
	pid_t id;

	while ((token = next_token(c)).len) {
		struct perf_span after = peek_token(c);

		if (starts_with(token, "time"))
			line->has_time = parse_time(after, &line->time_ns);
		else if (starts_with(token, "type") && take_number(after.text, after.len, &value))
			line->type = (int)value;
		else if (starts_with(token, "pid") && take_id(after.text, after.len, &id))
			line->pid = id;
		else if (starts_with(token, "tid") && take_id(after.text, after.len, &id))
			line->tid = id;
		else if (starts_with(token, "code") && take_number(after.text, after.len, &value)) {
			line->code = (int)value;
			return;
		}
	}
}

enum perf_line_kind perf_line__parse(struct perf_line *line, const char *text, size_t len)
{
	static const char error[] = "instruction trace error", branches[] = "branches";
	struct cursor c = {text, text + len};
	const char *name;

	*line = (struct perf_line){0};
	skip_spaces(&c);
	if (starts_with((struct perf_span){c.at, (size_t)(c.end - c.at)}, error)) {
		c.at += strlen(error);
		parse_error(line, &c);
		return PERF_LINE_ERROR;
	}
	if (!parse_start(line, &c))
		return PERF_LINE_OTHER;
	parse_event(line, &c);
	/* "branches:u:", "cpu_core/branches/:"; not "branch-misses". */
	if (line->event.len) {
		name = memmem(line->event.text, line->event.len, branches, strlen(branches));
		if (!name || (name != line->event.text && name[-1] != '/'))
			return PERF_LINE_EVENT;
	}
	if (!parse_flags(line, &c))
		return PERF_LINE_EVENT;
	line->rest = (struct perf_span){c.at, (size_t)(c.end - c.at)};
	return PERF_LINE_BRANCH;
}

bool perf_line__parse_target(struct perf_span *rest, uint64_t *to)
{
	struct cursor c = {rest->text, rest->text + rest->len};
	struct perf_span arrow = next_token(&c);

	if (arrow.len != 2 || !starts_with(arrow, "=>") || !parse_address(next_token(&c), to))
		return false;
	*rest = (struct perf_span){c.at, (size_t)(c.end - c.at)};
	return true;
}

bool perf_line__parse_frame(struct perf_span text, uint64_t *ip, struct perf_span *place)
{
	struct cursor c = {text.text, text.text + text.len};

	if (!parse_address(next_token(&c), ip))
		return false;
	*place = (struct perf_span){c.at, (size_t)(c.end - c.at)};
	return true;
}

/* The text after the last `what`, or NULL. */
static const char *find_behind(struct perf_span text, const char *what)
{
	size_t n = strlen(what);

	for (size_t at = text.len; at-- > 0;)
		if (text.len - at >= n && !memcmp(text.text + at, what, n))
			return text.text + at + n;
	return NULL;
}

/*
 * "prev_comm=a prev_pid=1 prev_prio=120 prev_state=S ==> next_comm=b next_pid=2 next_prio=120", or
 * "a:1 [120] S ==> b:2 [120]" of perf's plugin. A name may contain anything, so the last match
 * counts.
 */
static bool parse_sched_switch(struct perf_span body, struct perf_switch *out)
{
	static const char arrow[] = " ==> ";
	const char *next = find_behind(body, arrow), *end = body.text + body.len, *at;
	struct perf_span prev, after;
	uint64_t tid;

	if (!next)
		return false;
	prev = (struct perf_span){body.text, (size_t)(next - body.text) - strlen(arrow)};
	after = (struct perf_span){next, (size_t)(end - next)};
	at = find_behind(prev, " prev_state=") ?: find_behind(prev, " ");
	out->is_preempted = at && *at == 'R';
	at = find_behind(after, " next_pid=") ?: find_behind(after, ":");
	if (at && take_number(at, (size_t)(end - at), &tid) && tid <= INT32_MAX)
		out->next = (pid_t)tid;
	return true;
}

bool perf_line__parse_switch(const struct perf_line *line, struct perf_switch *out)
{
	static const char sched_switch[] = "sched:sched_switch";
	struct cursor c = {line->body.text, line->body.text + line->body.len};

	*out = (struct perf_switch){0};
	if (line->event.len == strlen(sched_switch) && starts_with(line->event, sched_switch))
		return parse_sched_switch(line->body, out);
	/* "PERF_RECORD_SWITCH OUT preempt", "PERF_RECORD_SWITCH_CPU_WIDE IN   prev pid/tid: 0/0" */
	if (line->event.len || !starts_with(next_token(&c), "PERF_RECORD_SWITCH"))
		return false;
	out->is_in = starts_with(next_token(&c), "IN");
	out->is_preempted = starts_with(peek_token(&c), "preempt");
	return true;
}

void perf_extra__parse(struct perf_extra *extra, const char *text, size_t len)
{
	struct cursor c = {text, text + len};
	struct perf_span token;
	uint64_t value;

	*extra = (struct perf_extra){0};
	while ((token = next_token(&c)).len) {
		struct perf_span after = peek_token(&c);

		if (starts_with(token, "ilen:")) {
			if (take_number(after.text, after.len, &value) && value <= 15)
				extra->insn_len = (uint8_t)value;
		} else if (starts_with(token, "IPC:")) {
			/* "IPC: 1.20 (12/10)" */
			next_token(&c);
			after = peek_token(&c);
			if (after.len && *after.text == '(' &&
			    take_number(after.text + 1, after.len - 1, &value) &&
			    value <= UINT32_MAX)
				extra->n_insns = (uint32_t)value;
		}
	}
}

/*
 * "main+0x12 (/usr/bin/service)": tools/perf/util/evsel_fprintf.c. Names may hold spaces,
 * parentheses and more, and so may paths.
 */

static const char arrow[] = " =>";
static const char unknown[] = "[unknown]";
static const char nameless_scope[] = "(anonymous namespace)";

static bool begins(const char *text, size_t len, const char *with)
{
	size_t n = strlen(with);

	return len >= n && !memcmp(text, with, n);
}

static bool is_end(const char *text, size_t at, size_t len)
{
	return at == len || text[at] == ' ' || text[at] == '\t';
}

static size_t after_spaces(const char *text, size_t at, size_t len)
{
	while (at < len && text[at] == ' ')
		at++;
	return at;
}

/* Lower case, as perf prints it: "A => B" is part of a name. */
static size_t count_hex(const char *text, size_t len, uint64_t *value)
{
	static const char digits[] = "0123456789abcdef";
	size_t n = 0;

	*value = 0;
	for (; n < len && n < 16; n++) {
		const char *digit = text[n] ? strchr(digits, text[n]) : NULL;

		if (!digit)
			break;
		*value = *value << 4 | (uint64_t)(digit - digits);
	}
	return n;
}

/* Finds "+0x12" at the end of a name. Returns its start, or len; *end is its end. */
static size_t find_offset(const char *text, size_t len, uint64_t *offset, size_t *end)
{
	size_t at = 0;

	while (at < len) {
		const char *plus = memchr(text + at, '+', len - at);
		size_t digits;

		if (!plus)
			return len;
		at = (size_t)(plus - text);
		if (begins(plus, len - at, "+0x")) {
			digits = count_hex(plus + 3, len - at - 3, offset);
			*end = at + 3 + digits;
			if (digits && is_end(text, *end, len))
				return at;
		}
		at++;
	}
	return len;
}

static void set_symbol(struct named_place *place, const char *text, size_t len)
{
	while (len && text[len - 1] == ' ')
		len--;
	place->symbol = text;
	place->symbol_len = len;
}

/* Sets the place's function and the offset in it. Returns the position after them. */
static size_t take_symbol(struct named_place *place, const char *text, size_t at, size_t len)
{
	size_t end = len, plus;

	if (begins(text + at, len - at, unknown) && is_end(text, at + strlen(unknown), len))
		return at + strlen(unknown);
	if (at < len && text[at] == '(' && !begins(text + at, len - at, nameless_scope))
		return at;
	plus = at + find_offset(text + at, len - at, &place->offset, &end);
	if (plus < len) {
		place->has_offset = true;
		set_symbol(place, text + at, plus - at);
		return at + end;
	}
	/* Without an offset, the name ends where the last parentheses begin: those of the module.
	 */
	for (end = len; end > at + 1; end--)
		if (text[end - 1] == '(' && text[end - 2] == ' ')
			break;
	end = end > at + 1 ? end - 2 : len;
	set_symbol(place, text + at, end - at);
	return end;
}

/* Parses "(libc.so.6)", or with -F dsoff "(libc.so.6+0x12)". Returns the position after it. */
static size_t take_module(struct named_place *place, const char *text, size_t at, size_t len)
{
	static const char inlined[] = "(inlined)";
	size_t start = after_spaces(text, at, len), after, depth = 1, plus, end;
	uint64_t offset;

	if (begins(text + start, len - start, inlined)) {
		at = start + strlen(inlined);
		start = after_spaces(text, at, len);
	}
	if (start == len || text[start] != '(')
		return at;
	for (after = start + 1; after < len && depth; after++) {
		depth += text[after] == '(';
		depth -= text[after] == ')';
	}
	if (depth)
		return at;
	place->module = text + start + 1;
	place->module_len = after - start - 2;
	plus = find_offset(place->module, place->module_len, &offset, &end);
	if (plus && plus < place->module_len && end == place->module_len)
		place->module_len = plus;
	return after;
}

/* The arrow in front of an address; OCaml's operators have others in their names. NULL: none. */
static const char *find_arrow(const char *text, size_t len)
{
	const char *at = text, *end = text + len;

	while ((at = memmem(at, (size_t)(end - at), arrow, strlen(arrow)))) {
		size_t skip = strlen(arrow), n;
		uint64_t unused;

		skip = after_spaces(at, skip, (size_t)(end - at));
		n = count_hex(at + skip, (size_t)(end - at) - skip, &unused);
		if (skip > strlen(arrow) && n && is_end(at, skip + n, (size_t)(end - at)))
			return at;
		at++;
	}
	return NULL;
}

size_t perf_place__parse(struct named_place *place, const char *text, size_t len)
{
	const char *next = find_arrow(text, len);
	const char *tab = memchr(text, '\t', len);
	size_t at;

	if (next)
		len = (size_t)(next - text);
	if (tab && (size_t)(tab - text) < len)
		len = (size_t)(tab - text);
	*place = (struct named_place){.ip = place->ip};
	at = after_spaces(text, 0, len);
	at = take_symbol(place, text, at, len);
	return take_module(place, text, at, len);
}

/* The length of "syscall", and of "int n". */
#define SYSCALL_LEN 2

struct word {
	const char *text;
	uint32_t flags;
};

/* The parts of two-word flags follow each other in the text: "hw" and "int", "tx" and "abrt". */
static const struct word known[] = {
	{"call", PERF_IS_BRANCH | PERF_IS_CALL},
	{"return", PERF_IS_BRANCH | PERF_IS_RETURN},
	{"jmp", PERF_IS_BRANCH},
	{"jcc", PERF_IS_BRANCH | PERF_IS_CONDITIONAL},
	{"int", PERF_IS_BRANCH | PERF_IS_CALL | PERF_IS_INTERRUPT},
	{"iret", PERF_IS_BRANCH | PERF_IS_RETURN | PERF_IS_INTERRUPT},
	{"syscall", PERF_IS_BRANCH | PERF_IS_CALL | PERF_IS_SYSCALL},
	{"sysret", PERF_IS_BRANCH | PERF_IS_RETURN | PERF_IS_SYSCALL},
	{"async", PERF_IS_BRANCH | PERF_IS_ASYNC},
	{"hw", PERF_IS_BRANCH | PERF_IS_ASYNC},
	{"tx", PERF_IS_BRANCH},
	{"abrt", PERF_IS_BRANCH | PERF_IS_ABORT},
	{"tr", PERF_IS_BRANCH},
	{"strt", PERF_IS_BRANCH | PERF_IS_BEGIN},
	{"end", PERF_IS_BRANCH | PERF_IS_END},
	{"vmentry", PERF_IS_BRANCH | PERF_IS_CALL | PERF_IS_VMENTRY},
	{"vmexit", PERF_IS_BRANCH | PERF_IS_CALL | PERF_IS_VMEXIT},
	{"miss", PERF_IS_BRANCH},
	{"not_taken", PERF_IS_BRANCH | PERF_IS_NOT_TAKEN},
};

/* PERF_IP_FLAG_CHARS: one letter per bit. */
static const char letters[] = "bcrosyiABExghDtmn";

static uint32_t find_letters(const char *text, size_t len)
{
	uint32_t flags = 0;

	if (!len || text[0] != letters[0])
		return 0;
	for (size_t i = 0; i < len; i++) {
		const char *at = text[i] ? strchr(letters, text[i]) : NULL;

		if (!at)
			return 0;
		flags |= 1u << (at - letters);
	}
	return flags;
}

bool perf_words__are_letters(const char *text, size_t len)
{
	return find_letters(text, len) != 0;
}

static void take_word(struct perf_words *words, const char *text, size_t len)
{
	uint32_t flags;

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		if (strlen(known[i].text) != len || memcmp(known[i].text, text, len))
			continue;
		words->flags |= known[i].flags;
		return;
	}
	flags = find_letters(text, len);
	words->flags |= flags;
	if (!flags)
		words->has_unknown = true;
}

void perf_words__parse(struct perf_words *words, const char *text, size_t len)
{
	static const char missed[] = "br miss";
	size_t at = 0;

	*words = (struct perf_words){0};
	/* Only perf 6.14 prints this. Without "miss", the two letters are those of a return. */
	if (len >= strlen(missed) && !memcmp(text, missed, strlen(missed)))
		at = strlen("br ");
	while (at < len) {
		size_t start = at;
		bool is_state = at && text[at - 1] == '(';

		while (at < len && !memchr(" /,()", text[at], 5))
			at++;
		if (at > start && !is_state)
			take_word(words, text + start, at - start);
		/*
		 * The machine's state after the branch: in a transaction (x), interrupts off (D),
		 * or switched (t).
		 */
		for (size_t i = start; i < at && is_state; i++) {
			if (text[i] == 'x')
				words->flags |= PERF_IN_TRANSACTION;
			else if (text[i] != 'D' && text[i] != 't')
				words->has_unknown = true;
		}
		at++;
	}
}

uint8_t perf_flags__kind(uint32_t flags, uint64_t from, uint64_t to)
{
	const uint32_t not_how = PERF_IS_BRANCH | PERF_IS_END | PERF_IN_TRANSACTION;

	if (flags & PERF_IS_BEGIN || (!from && to))
		return BRANCH_BEGIN;
	if (flags & PERF_IS_END || !to) {
		/* perf before 6.2 (2023) prints no other flag for page faults and interrupts. */
		if (flags & PERF_IS_ASYNC || (flags & PERF_IS_END && !(flags & ~not_how)))
			return BRANCH_END_ASYNC;
		if (flags & PERF_IS_CALL && flags & (PERF_IS_SYSCALL | PERF_IS_INTERRUPT))
			return BRANCH_END_SYSCALL;
		return BRANCH_END;
	}
	if (flags & (PERF_IS_ASYNC | PERF_IS_SYSCALL | PERF_IS_INTERRUPT)) {
		/* Into the kernel, out of it, or into a signal handler. */
		if (flags & PERF_IS_ASYNC)
			return address__is_kernel(to) ? BRANCH_ENTER : BRANCH_JUMP;
		if (flags & PERF_IS_CALL)
			return BRANCH_ENTER;
		return address__is_kernel(from) ? BRANCH_LEAVE : BRANCH_JUMP;
	}
	/* An abort returns to the start of its transaction. A guest has its own stack. */
	if (flags & (PERF_IS_ABORT | PERF_IS_VMENTRY | PERF_IS_VMEXIT))
		return BRANCH_JUMP;
	if (flags & PERF_IS_CALL)
		return BRANCH_CALL;
	if (flags & PERF_IS_RETURN)
		return BRANCH_RETURN;
	return flags & PERF_IS_CONDITIONAL ? BRANCH_COND : BRANCH_JUMP;
}

uint8_t perf_flags__insn_len(uint8_t kind, uint32_t flags)
{
	bool is_syscall =
		kind == BRANCH_END_SYSCALL || (kind == BRANCH_ENTER && !(flags & PERF_IS_ASYNC));

	return is_syscall ? SYSCALL_LEN : 0;
}
