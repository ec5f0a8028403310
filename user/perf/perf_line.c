// SPDX-License-Identifier: MIT
/*
 * tools/perf/builtin-script.c: perf_sample__fprintf_start() and perf_sample__fprintf_bts(). What
 * was asked for with -F is there, in one order; a thread may be called anything.
 */
#include "perf/perf_line.h"

#include <string.h>

#include "perf/perf_flags.h"

/* Of a line before its time: a name of 15 characters, and some fields. */
#define MAX_TOKENS 24
/* Between the thread and the time: [cpu], misc, time of day. */
#define MAX_BETWEEN 3
/* "tr end  hw int (xDt)" */
#define MAX_FLAG_WORDS 8

struct cursor {
	const char *at, *end;
};

static void skip_spaces(struct cursor *c)
{
	while (c->at < c->end && (*c->at == ' ' || *c->at == '\t'))
		c->at++;
}

/* What comes next up to a space; empty at the end. */
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

/* How many digits there are; their number to *value, which stays below 10^18. */
static size_t take_number(const char *text, size_t len, uint64_t *value)
{
	size_t n = 0;

	*value = 0;
	for (; n < len && n < 18 && is_digit(text[n]); n++)
		*value = *value * 10 + (uint64_t)(text[n] - '0');
	return n;
}

static int hex_digit(char c)
{
	if (is_digit(c))
		return c - '0';
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static size_t take_hex(const char *text, size_t len, uint64_t *value)
{
	size_t n = 0;
	int digit;

	*value = 0;
	for (; n < len && n < 16 && (digit = hex_digit(text[n])) >= 0; n++)
		*value = *value << 4 | (uint64_t)digit;
	return n;
}

/* All of the token is an address. */
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

/* "-1" is nobody. */
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

/* Who it is, from the fields in front of the time. */
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

/* Up to the time: that is a number with a colon, and somebody's. */
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

/* "branches:u:", "cpu_core/branches/:"; not "branch-misses". */
static bool is_branches(struct perf_span event)
{
	static const char name[] = "branches";
	const char *at = memmem(event.text, event.len, name, strlen(name));

	return at && (at == event.text || at[-1] == '/');
}

/* The event's name where there is one, and its period. */
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

/* Words up to an address. */
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
	static const char error[] = "instruction trace error";
	struct cursor c = {text, text + len};

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
	if ((line->event.len && !is_branches(line->event)) || !parse_flags(line, &c))
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

/* "PERF_RECORD_SWITCH OUT preempt", "PERF_RECORD_SWITCH_CPU_WIDE IN   prev pid/tid: 0/0" */
static bool parse_record(struct cursor c, struct perf_switch *out)
{
	if (!starts_with(next_token(&c), "PERF_RECORD_SWITCH"))
		return false;
	out->is_in = starts_with(next_token(&c), "IN");
	out->is_preempted = starts_with(peek_token(&c), "preempt");
	return true;
}

/* Behind the last `what` in the text; NULL: there is none. */
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
 * of perf's plugin "a:1 [120] S ==> b:2 [120]". A name may hold anything; what is asked for stands
 * behind it.
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

	*out = (struct perf_switch){0};
	if (line->event.len == strlen(sched_switch) && starts_with(line->event, sched_switch))
		return parse_sched_switch(line->body, out);
	return !line->event.len &&
	       parse_record((struct cursor){line->body.text, line->body.text + line->body.len},
			    out);
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
