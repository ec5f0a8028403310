// SPDX-License-Identifier: MIT
/*
 * A request loop over a table of sessions. An iteration answers a few requests; the last is a
 * login, for which the oldest session expires. An expired session leaves a tombstone, tombstones
 * count towards the load, and the login that passes the load limit pays for a rehash of the whole
 * table: that is the slow iteration, and it recurs for ever.
 */
#include "sample.h"
#include <sys/mman.h>

enum op { OP_LOGIN = 'L', OP_UPDATE = 'U' };

struct request {
	enum op op;
	uint64_t session;
	uint64_t amount;
};

#define TOMBSTONE UINT64_MAX

struct session {
	uint64_t id; /* 0: a slot never used since the last rehash */
	uint64_t seen_ns;
	uint64_t balance;
	uint64_t requests;
};

struct table {
	struct session *slots;
	size_t capacity; /* a power of two */
	size_t live;
	size_t used;	 /* live sessions and tombstones */
	size_t used_max; /* the load limit */
};

struct server {
	struct table table;
	uint64_t oldest, newest; /* ids of the live sessions: a closed range */
	uint64_t random;
	uint64_t batch;
	uint64_t bytes_out;
};

TRACED uint64_t hash_key(uint64_t key)
{
	key ^= key >> 30;
	key *= 0xbf58476d1ce4e5b9u;
	key ^= key >> 27;
	key *= 0x94d049bb133111ebu;
	return key ^ (key >> 31);
}

TRACED struct session *table_find(struct table *t, uint64_t id)
{
	size_t mask = t->capacity - 1;

	for (size_t i = hash_key(id) & mask; t->slots[i].id; i = (i + 1) & mask)
		if (t->slots[i].id == id)
			return &t->slots[i];
	return NULL;
}

/* Mapped, not allocated: a memset of the slots would be most of what a single-stepper sees. */
static struct session *slots__new(size_t capacity)
{
	void *slots = mmap(NULL, capacity * sizeof(struct session), PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (slots == MAP_FAILED)
		abort();
	return slots;
}

static void slots__free(struct session *slots, size_t capacity)
{
	munmap(slots, capacity * sizeof(*slots));
}

/* A fresh array of slots: twice as large where the live sessions alone would pass the limit. */
TRACED struct session *table_grow(struct table *t)
{
	if (t->live >= t->used_max) {
		t->capacity *= 2;
		t->used_max *= 2;
	}
	return slots__new(t->capacity);
}

TRACED void rehash_entry(struct table *t, const struct session *entry)
{
	size_t mask = t->capacity - 1;
	size_t i = hash_key(entry->id) & mask;

	while (t->slots[i].id)
		i = (i + 1) & mask;
	t->slots[i] = *entry;
}

TRACED void table_rehash(struct table *t)
{
	struct session *old = t->slots;
	size_t old_capacity = t->capacity;

	t->slots = table_grow(t);
	for (size_t i = 0; i < old_capacity; i++)
		if (old[i].id && old[i].id != TOMBSTONE)
			rehash_entry(t, &old[i]);
	t->used = t->live;
	slots__free(old, old_capacity);
}

/* Tombstones are not used again: only a rehash removes them. */
TRACED struct session *table_insert(struct table *t, uint64_t id)
{
	size_t mask, i;

	if (t->used >= t->used_max)
		table_rehash(t);
	mask = t->capacity - 1;
	for (i = hash_key(id) & mask; t->slots[i].id; i = (i + 1) & mask)
		;
	t->slots[i] = (struct session){.id = id};
	t->live++;
	t->used++;
	return &t->slots[i];
}

TRACED void table_expire(struct table *t, uint64_t id)
{
	struct session *session = table_find(t, id);

	if (!session)
		return;
	session->id = TOMBSTONE;
	t->live--;
}

static char *put_number(char *to, uint64_t value)
{
	char digits[20];
	int n = 0;

	do {
		digits[n++] = (char)('0' + value % 10);
	} while (value /= 10);
	while (n)
		*to++ = digits[--n];
	return to;
}

/* The client's side: "U 1234 17\n". */
TRACED void receive_request(struct server *s, enum op op, char *text)
{
	uint64_t random = sample__random(&s->random);
	uint64_t range = s->newest - s->oldest + 1;
	uint64_t id = op == OP_LOGIN ? s->newest + 1 : s->oldest + random % range;

	*text++ = (char)op;
	*text++ = ' ';
	text = put_number(text, id);
	*text++ = ' ';
	text = put_number(text, random >> 58);
	*text++ = '\n';
	*text = '\0';
}

static const char *get_number(const char *text, uint64_t *value)
{
	for (*value = 0; *text >= '0' && *text <= '9'; text++)
		*value = *value * 10 + (uint64_t)(*text - '0');
	return text;
}

TRACED bool parse_request(const char *text, struct request *request)
{
	request->op = (enum op)text[0];
	if ((request->op != OP_LOGIN && request->op != OP_UPDATE) || text[1] != ' ')
		return false;
	text = get_number(text + 2, &request->session);
	if (*text != ' ')
		return false;
	text = get_number(text + 1, &request->amount);
	return *text == '\n';
}

TRACED struct session *log_in(struct server *s, uint64_t id)
{
	table_expire(&s->table, s->oldest++);
	s->newest = id;
	return table_insert(&s->table, id);
}

TRACED size_t format_reply(const struct session *session, char *text)
{
	char *end = text;

	*end++ = session ? '+' : '-';
	if (session) {
		end = put_number(end, session->balance);
		*end++ = ' ';
		end = put_number(end, session->requests);
	}
	*end++ = '\n';
	return (size_t)(end - text);
}

TRACED void handle_request(struct server *s, enum op op, uint64_t now_ns)
{
	char in[64], out[64];
	struct request request;
	struct session *session = NULL;

	receive_request(s, op, in);
	if (parse_request(in, &request))
		session = request.op == OP_LOGIN ? log_in(s, request.session)
						 : table_find(&s->table, request.session);
	if (session) {
		session->seen_ns = now_ns;
		session->balance += request.amount;
		session->requests++;
	}
	s->bytes_out += format_reply(session, out);
}

TRACED void one_iter(struct server *s)
{
	uint64_t now_ns = sample__now_ns();

	for (uint64_t i = 1; i < s->batch; i++)
		handle_request(s, OP_UPDATE, now_ns);
	handle_request(s, OP_LOGIN, now_ns);
}

/* One login an iteration: so many fit between two rehashes as -slow-every says. */
static void server__init(struct server *s, const struct sample *options)
{
	struct table *t = &s->table;

	*s = (struct server){.oldest = 1, .random = 88172645463325252u, .batch = options->batch};
	t->used_max = options->table_size + options->slow_every - 1;
	for (t->capacity = 16; t->capacity / 4 * 3 < t->used_max;)
		t->capacity *= 2;
	t->slots = slots__new(t->capacity);
	while (s->newest < options->table_size)
		table_insert(t, ++s->newest);
}

int main(int argc, char **argv)
{
	static const struct sample native = {
		.slow_every = 1000, .table_size = 500000, .batch = 150, .pause_ns = 1000000};
	static const struct sample small = {.slow_every = 25, .table_size = 250, .batch = 1};
	struct sample options;
	struct server server;

	sample__init(&options, argv, &native, &small);
	server__init(&server, &options);
	sample__announce();
	while (sample__next(&options))
		one_iter(&server);
	sample__fini(&options);
	slots__free(server.table.slots, server.table.capacity);
	return 0;
}
