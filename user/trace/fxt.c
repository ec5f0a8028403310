// SPDX-License-Identifier: MIT
#include "trace/fxt.h"

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

#include "trace/fxt_format.h"
#include "util/names.h"
#include "util/vec.h"

/* A string reference has 15 bits for the index, and 0 is the empty string. */
#define STRING_TABLE_MAX 32767

/* A thread reference has 8 bits, and 0 says that pid and tid follow. */
#define THREAD_TABLE_MAX 255

/* All zeroes at first. */
struct thread_table {
	struct {
		pid_t pid, tid;
	} threads[THREAD_TABLE_MAX];
	unsigned int n;
	unsigned int last; /* index of the thread that was looked up last */
	unsigned int next_evicted;
};

/* True if thread number i + 1 has these ids. */
static inline bool thread_table__has(const struct thread_table *table, unsigned int i, pid_t pid,
				     pid_t tid)
{
	return i < table->n && table->threads[i].tid == tid && table->threads[i].pid == pid;
}

#define BUCKETS 65536

/* All zeroes at first. */
struct string_table {
	unsigned int used;
	uint32_t generation; /* indices stay valid while it is the same */
	/* Slot 0 holds no string: it is the end of each chain. */
	struct slot {
		char *text;
		uint32_t len, hash;
		uint16_t next; /* in its bucket's chain */
	} slots[STRING_TABLE_MAX + 1];
	uint16_t buckets[BUCKETS];
};

static void forget(struct string_table *table)
{
	for (unsigned int i = 1; i <= table->used; i++)
		free(table->slots[i].text);
	memset(table->buckets, 0, sizeof(table->buckets));
	table->used = 0;
}

/*
 * The index of a string, from 1 on; 0 if memory ran out, or room was not made. *is_new is set if
 * the index gets a (new) meaning.
 */
static unsigned int string_table__index(struct string_table *table, const char *text, size_t len,
					bool *is_new)
{
	uint32_t hash = (uint32_t)hash__bytes(0, text, len);
	uint16_t *bucket = &table->buckets[hash % BUCKETS];
	const struct slot *slot;
	char *copy;

	for (unsigned int i = *bucket; i; i = slot->next) {
		slot = &table->slots[i];
		*is_new = false;
		if (slot->hash == hash && slot->len == len && !memcmp(slot->text, text, len))
			return i;
	}
	*is_new = true;
	copy = table->used < STRING_TABLE_MAX ? malloc(len + 1) : NULL;
	if (!copy)
		return 0;
	memcpy(copy, text, len);
	table->slots[++table->used] =
		(struct slot){.text = copy, .len = (uint32_t)len, .hash = hash, .next = *bucket};
	*bucket = (uint16_t)table->used;
	return table->used;
}

/* "Trace format" below is Fuchsia's docs/reference/tracing/trace-format.md. */

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "records are written as they lie");

#define TICKS_PER_SECOND 1000000000
/* Time, end time, and two words for each argument. */
#define MAX_WORDS (1 + 2 + 2 * FXT_MAX_ARGS)
/* Category, name, and two for each argument. */
#define MAX_STRINGS (2 + 2 * FXT_MAX_ARGS)

struct fxt {
	struct sink *sink;
	struct string_table strings;
	struct thread_table threads;
	char label[LABEL_SIZE];
};

struct record {
	unsigned int n;
	uint64_t words[MAX_WORDS];
};

static void put_word(struct record *record, uint64_t word)
{
	record->words[record->n++] = word;
}

static uint64_t header(enum fxt_record_type type, const struct record *record)
{
	return record->words[0] | (uint64_t)type | (uint64_t)record->n << 4;
}

static void write_record(struct fxt *fxt, enum fxt_record_type type, struct record *record)
{
	record->words[0] = header(type, record);
	sink__write(fxt->sink, record->words, record->n * sizeof(uint64_t));
}

struct fxt *fxt__new(struct sink *sink)
{
	struct fxt *fxt = calloc(1, sizeof(*fxt));
	const uint64_t magic = FXT_MAGIC;
	/* Trace format, "Initialization record": ticks per second. */
	struct record record = {2, {0, TICKS_PER_SECOND}};

	if (!fxt)
		return NULL;
	fxt->sink = sink;
	sink__write(sink, &magic, sizeof(magic));
	write_record(fxt, FXT_RECORD_INITIALIZATION, &record);
	return fxt;
}

void fxt__free(struct fxt *fxt)
{
	if (!fxt)
		return;
	forget(&fxt->strings);
	free(fxt);
}

/*
 * Before the first string of a record: all of them must mean something when it is read. Forgets all
 * strings if there is not enough room for those of a record.
 */
static void begin_strings(struct fxt *fxt)
{
	if (STRING_TABLE_MAX - fxt->strings.used >= MAX_STRINGS)
		return;
	forget(&fxt->strings);
	fxt->strings.generation++;
}

/*
 * A 16-bit reference, 0 for the empty string. If the table does not contain the string, its record
 * is written first: readers use the last string record of an index before the event.
 */
static uint64_t string_ref(struct fxt *fxt, const char *text)
{
	static const char padding[sizeof(uint64_t)];
	unsigned int index;
	size_t len, words;
	uint64_t head;
	bool is_new;

	if (!text || !*text)
		return 0;
	text = label__clean(fxt->label, text, &len);
	index = string_table__index(&fxt->strings, text, len, &is_new);
	if (!index)
		sink__fail(fxt->sink, -ENOMEM);
	if (!index || !is_new)
		return index;
	/*
	 * Trace format, "String record": index in bits 16..30, length in 32..46, then the padded
	 * bytes.
	 */
	words = 1 + (len + sizeof(uint64_t) - 1) / sizeof(uint64_t);
	head = (uint64_t)FXT_RECORD_STRING | (uint64_t)words << 4 | (uint64_t)index << 16 |
	       (uint64_t)len << 32;
	sink__write(fxt->sink, &head, sizeof(head));
	sink__write(fxt->sink, text, len);
	sink__write(fxt->sink, padding, (words - 1) * sizeof(uint64_t) - len);
	return index;
}

/* A new thread gets a number: that of another thread if all are in use. */
static __attribute__((noinline)) uint64_t look_up_thread(struct fxt *fxt, pid_t pid, pid_t tid)
{
	struct thread_table *table = &fxt->threads;
	struct record record;
	unsigned int i = 0;

	while (i < table->n && !thread_table__has(table, i, pid, tid))
		i++;
	table->last = i;
	if (i < table->n)
		return i + 1;
	if (table->n < THREAD_TABLE_MAX) {
		table->n++;
	} else {
		i = table->last = table->next_evicted;
		table->next_evicted = (i + 1) % THREAD_TABLE_MAX;
	}
	table->threads[i].pid = pid;
	table->threads[i].tid = tid;
	/* Trace format, "Thread record": index in bits 16..23, then pid and tid. */
	record = (struct record){3, {(uint64_t)(i + 1) << 16, (uint32_t)pid, (uint32_t)tid}};
	write_record(fxt, FXT_RECORD_THREAD, &record);
	return i + 1;
}

/* An 8-bit reference, usually the same as in the previous record. */
static inline uint64_t thread_ref(struct fxt *fxt, pid_t pid, pid_t tid)
{
	const struct thread_table *threads = &fxt->threads;

	return thread_table__has(threads, threads->last, pid, tid) ? threads->last + 1
								   : look_up_thread(fxt, pid, tid);
}

/*
 * Trace format, "Argument types": type in bits 0..3, size in words in 4..15, the key's reference in
 * 16..31; values of 32 bits and string references from bit 32 on, others in a word of their own.
 */
static void put_short_arg(struct record *record, enum fxt_arg_type type, uint64_t key,
			  uint32_t value)
{
	put_word(record, (uint64_t)type | 1 << 4 | key << 16 | (uint64_t)value << 32);
}

static void put_long_arg(struct record *record, enum fxt_arg_type type, uint64_t key,
			 uint64_t value)
{
	put_word(record, (uint64_t)type | 2 << 4 | key << 16);
	put_word(record, value);
}

static void put_arg(struct fxt *fxt, struct record *record, const struct fxt_arg *arg)
{
	uint64_t key = string_ref(fxt, arg->key), bits;

	memcpy(&bits, &arg->fraction, sizeof(bits));
	if (arg->kind == FXT_STRING)
		put_short_arg(record, FXT_ARG_STRING, key, (uint32_t)string_ref(fxt, arg->string));
	else if (arg->kind == FXT_POINTER)
		put_long_arg(record, FXT_ARG_POINTER, key, arg->number);
	else if (arg->kind == FXT_DOUBLE)
		put_long_arg(record, FXT_ARG_DOUBLE, key, bits);
	else if (arg->kind == FXT_INT)
		put_long_arg(record, FXT_ARG_I64, key, arg->number);
	else if (arg->number <= UINT32_MAX)
		put_short_arg(record, FXT_ARG_U32, key, (uint32_t)arg->number);
	else
		put_long_arg(record, FXT_ARG_U64, key, arg->number);
}

/* Trace format, "Kernel object record": object type in bits 16..23, name in 24..39, then the id. */
static void put_object(struct fxt *fxt, struct record *record, enum fxt_object_type type, pid_t id,
		       const char *name)
{
	put_word(record, (uint64_t)type << 16 | string_ref(fxt, name) << 24);
	put_word(record, (uint32_t)id);
}

void fxt__name_process(struct fxt *fxt, pid_t pid, const char *name)
{
	struct record record = {0};

	begin_strings(fxt);
	put_object(fxt, &record, FXT_OBJECT_PROCESS, pid, name);
	write_record(fxt, FXT_RECORD_KERNEL_OBJECT, &record);
}

/*
 * The argument "process" has to be there, and of type koid: Perfetto's importer would name a thread
 * of process 0 without it (fuchsia_trace_parser.cc).
 */
void fxt__name_track(struct fxt *fxt, pid_t pid, pid_t tid, pid_t thread, const char *name)
{
	bool is_beside = thread != tid;
	struct record record = {0};

	begin_strings(fxt);
	put_object(fxt, &record, FXT_OBJECT_THREAD, tid, name);
	record.words[0] |= (uint64_t)(1 + is_beside) << 40;
	put_long_arg(&record, FXT_ARG_KOID, string_ref(fxt, "process"), (uint32_t)pid);
	if (is_beside)
		put_long_arg(&record, FXT_ARG_KOID, string_ref(fxt, "thread"), (uint32_t)thread);
	write_record(fxt, FXT_RECORD_KERNEL_OBJECT, &record);
}

/*
 * Trace format, "Event record": event type in bits 16..19, number of arguments in 20..23, thread in
 * 24..31, category in 32..47, name in 48..63; then the time, the arguments, and what the type adds.
 */
static void put_event(struct fxt *fxt, struct record *record, enum fxt_event_type type,
		      const struct fxt_event *event)
{
	unsigned int n_args = event->n_args < FXT_MAX_ARGS ? event->n_args : FXT_MAX_ARGS;
	uint64_t head = (uint64_t)type << 16 | (uint64_t)n_args << 20;

	begin_strings(fxt);
	head |= thread_ref(fxt, event->pid, event->tid) << 24;
	head |= string_ref(fxt, event->category) << 32;
	head |= string_ref(fxt, event->name) << 48;
	put_word(record, head);
	put_word(record, event->time_ns);
	for (unsigned int i = 0; i < n_args; i++)
		put_arg(fxt, record, &event->args[i]);
}

/* True for values of 32 bits, which fit in the upper half of the header word. */
static bool is_short(const struct fxt_arg *arg)
{
	return arg->kind == FXT_STRING || (arg->kind == FXT_UINT && arg->number <= UINT32_MAX);
}

bool fxt__make_template(struct fxt *fxt, struct fxt_template *template,
			const struct fxt_event *event)
{
	const uint64_t thread = (uint64_t)0xff << 24;
	struct record record = {0};
	unsigned int word = 1; /* the last one so far: the time */

	*template = (struct fxt_template){0};
	put_event(fxt, &record, FXT_EVENT_BEGIN, event);
	if (record.n > FXT_TEMPLATE_WORDS)
		return false;
	record.words[0] = header(FXT_RECORD_EVENT, &record) & ~thread;
	memcpy(template->words, record.words, record.n * sizeof(uint64_t));
	for (unsigned int i = 0; i < event->n_args; i++) {
		const struct fxt_arg *arg = &event->args[i];

		word += is_short(arg) ? 1 : 2;
		if (!arg->varies)
			continue;
		if (template->n_numbers == FXT_TEMPLATE_NUMBERS)
			return false;
		template->at[template->n_numbers] = (uint8_t)word;
		template->shift[template->n_numbers++] = is_short(arg) ? 32 : 0;
		template->words[word] &= is_short(arg) ? UINT32_MAX : 0;
	}
	template->generation = fxt->strings.generation;
	template->n_words = (uint8_t)record.n;
	return true;
}

bool fxt__is_current(const struct fxt *fxt, const struct fxt_template *template)
{
	return template->n_words && template->generation == fxt->strings.generation;
}

void fxt__slice_from(struct fxt *fxt, const struct fxt_template *template, pid_t pid, pid_t tid,
		     uint64_t time_ns, uint64_t end_ns, const uint64_t *numbers)
{
	const uint64_t complete = (uint64_t)(FXT_EVENT_COMPLETE - FXT_EVENT_BEGIN) << 16 | 1 << 4;
	uint64_t thread = thread_ref(fxt, pid, tid) << 24;
	uint64_t *words = sink__room(fxt->sink, sizeof(template->words) + sizeof(uint64_t));

	if (!words)
		return;
	memcpy(words, template->words, sizeof(template->words));
	words[0] |= thread;
	words[1] = time_ns;
	for (unsigned int i = 0; i < template->n_numbers; i++)
		words[template->at[i]] |= numbers[i] << template->shift[i];
	if (end_ns) {
		words[0] += complete;
		words[template->n_words] = end_ns;
	}
	sink__use_room(fxt->sink, (template->n_words + !!end_ns) * sizeof(uint64_t));
}

void fxt__event(struct fxt *fxt, enum fxt_event_type type, uint64_t last,
		const struct fxt_event *event)
{
	struct record record;

	record.n = 0;
	put_event(fxt, &record, type, event);
	if (type == FXT_EVENT_COMPLETE || type == FXT_EVENT_COUNTER)
		put_word(&record, last);
	write_record(fxt, FXT_RECORD_EVENT, &record);
}

/* Flows lack names and categories, because importers drop them. */
void fxt__flow(struct fxt *fxt, enum fxt_event_type type, const struct fxt_flow *flow)
{
	uint64_t thread = thread_ref(fxt, flow->pid, flow->tid);
	struct record record = {3, {(uint64_t)type << 16 | thread << 24, flow->time_ns, flow->id}};

	write_record(fxt, FXT_RECORD_EVENT, &record);
}

/*
 * The event has neither name nor category: readers do not compare them with those of its begin, and
 * they would take a tenth of the compressed file.
 */
void fxt__end(struct fxt *fxt, pid_t pid, pid_t tid, uint64_t time_ns)
{
	uint64_t thread = thread_ref(fxt, pid, tid);
	uint64_t *words = sink__room(fxt->sink, 2 * sizeof(uint64_t));

	if (!words)
		return;
	words[0] =
		(uint64_t)FXT_RECORD_EVENT | 2 << 4 | (uint64_t)FXT_EVENT_END << 16 | thread << 24;
	words[1] = time_ns;
	sink__use_room(fxt->sink, 2 * sizeof(uint64_t));
}
