// SPDX-License-Identifier: MIT
#include "check/check.h"

#include <errno.h>
#include <linux/capability.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "capture/pt/pt_ring.h"
#include "capture/sample/sample_ring.h"
#include "check/subjects.h"
#include "util/cleanup.h"
#include "util/fs.h"
#include "util/log.h"

#define CAPABILITY(cap, what)                                                                      \
	{                                                                                          \
		.name = #cap, .run = check_capability, .which = cap, .purpose = what               \
	}

static const struct check checks[] = {
	{.name = "kernel", .run = check_kernel},
	{.name = "btf", .run = check_btf},
	{.name = "lockdown", .run = check_lockdown},
	{.name = "vm", .run = check_vm},
	{.name = "intel_pt", .run = check_intel_pt, .needed = true},
	{.name = "pt_caps", .run = check_pt_caps},
	{.name = "freeze_pause", .run = check_freeze, .which = PT_FREEZE_PAUSE},
	{.name = "freeze_refresh", .run = check_freeze, .which = PT_FREEZE_REFRESH},
	{.name = "freeze_disable", .run = check_freeze, .needed = true, .which = PT_FREEZE_DISABLE},
	{.name = "sample", .run = check_sample},
	{.name = "cycles", .run = check_counting, .which = COUNTING_CYCLES},
	{.name = "lbr", .run = check_counting, .which = COUNTING_BRANCHES},
	{.name = "lbr_stacks", .run = check_counting, .which = COUNTING_CALLS},
	{.name = "branch_snapshot", .run = check_branch_snapshot},
	{.name = "kernel_code", .run = check_kernel_code},
	{.name = "bpf", .run = check_bpf, .needed = true},
	{.name = "uprobe", .run = check_uprobe, .needed = true},
	{.name = "tracefs", .run = check_tracefs},
	{.name = "perf", .run = check_perf},
	{.name = "ptrace", .run = check_ptrace, .needed = true},
	{.name = "memlock", .run = check_memlock, .needed = true},
	CAPABILITY(CAP_SYS_ADMIN, "uprobes"),
	CAPABILITY(CAP_BPF, "BPF programs"),
	CAPABILITY(CAP_PERFMON, "Intel PT of other users' processes"),
	CAPABILITY(CAP_SYS_PTRACE, "other users' processes"),
	CAPABILITY(CAP_DAC_READ_SEARCH, "symbols from files that only others can read"),
	CAPABILITY(CAP_CHECKPOINT_RESTORE, "symbols of deleted and replaced files"),
	CAPABILITY(CAP_SYSLOG, "addresses in /proc/kallsyms"),
	CAPABILITY(CAP_IPC_LOCK, "traces of more than 'memlock' says"),
	CAPABILITY(CAP_SYS_RESOURCE, "raising hard limits (open files)"),
	{.name = "fzf", .run = check_fzf},
};

_Static_assert(sizeof(checks) / sizeof(checks[0]) < CHECK_MAX_RESULTS, "room for all and attach");

static void add_word(char *list, size_t size, const char *word)
{
	size_t len = strlen(list);

	snprintf(list + len, size - len, "%s%s", len ? ", " : "", word);
}

static bool is_missing(const struct check_report *report, const char *name)
{
	for (size_t i = 0; i < report->n; i++)
		if (!strcmp(report->results[i].name, name))
			return report->results[i].state == CHECK_MISSING;
	return true;
}

/* What attach does without Intel PT. */
static bool samples(const struct check_report *report)
{
	return !is_missing(report, "sample") && !is_missing(report, "bpf") &&
	       !is_missing(report, "uprobe");
}

/* The answer that the others add up to. */
static void sum_up(struct check_report *report)
{
	struct check_result *sum = &report->results[report->n];
	char missing[CHECK_TEXT_SIZE] = "";

	sum->name = "attach";
	for (size_t i = 0; i < report->n; i++) {
		const struct check_result *r = &report->results[i];

		if (r->needed && r->state == CHECK_MISSING)
			add_word(missing, sizeof(missing), r->name);
	}
	if (missing[0] && samples(report))
		check_result__set(sum, CHECK_LIMITED, "by samples; with Intel PT it needs %s",
				  missing);
	else if (missing[0])
		check_result__set(sum, CHECK_MISSING, "with Intel PT it needs %s", missing);
	else
		check_result__set(sum, CHECK_OK, "works with Intel PT");
	report->n++;
}

static void run(const struct check *check, struct check_result *result)
{
	enum log_level level = log__level();

	*result = (struct check_result){.name = check->name, .needed = check->needed};
	log__set_level(LOG_SILENT);
	check->run(check, result);
	log__set_level(level);
}

bool check__one(const char *name, struct check_result *result)
{
	for (size_t i = 0; i < sizeof(checks) / sizeof(checks[0]); i++) {
		if (!strcmp(checks[i].name, name)) {
			run(&checks[i], result);
			return true;
		}
	}
	return false;
}

struct check_report *check_report__new(void)
{
	struct check_report *report = calloc(1, sizeof(*report));

	if (!report)
		return NULL;
	for (size_t i = 0; i < sizeof(checks) / sizeof(checks[0]); i++)
		run(&checks[i], &report->results[report->n++]);
	sum_up(report);
	return report;
}

void check_report__free(struct check_report *report)
{
	free(report);
}

bool check_report__good(const struct check_report *report)
{
	for (size_t i = 0; i < report->n; i++)
		if (report->results[i].needed && report->results[i].state == CHECK_MISSING)
			return false;
	return true;
}

void check_result__set(struct check_result *result, enum check_state state, const char *reason, ...)
{
	va_list ap;

	result->state = state;
	va_start(ap, reason);
	vsnprintf(result->reason, sizeof(result->reason), reason, ap);
	va_end(ap);
}

void check_result__remedy(struct check_result *result, const char *remedy, ...)
{
	va_list ap;

	va_start(ap, remedy);
	vsnprintf(result->remedy, sizeof(result->remedy), remedy, ap);
	va_end(ap);
}

static struct check_fact *add_fact(struct check_result *result, const char *name)
{
	static struct check_fact left_out;
	struct check_fact *fact = &left_out;

	if (result->n_facts < CHECK_MAX_FACTS)
		fact = &result->facts[result->n_facts++];
	fact->name = name;
	return fact;
}

void check_result__add_number(struct check_result *result, const char *name, int64_t number)
{
	add_fact(result, name)->number = number;
}

void check_result__add_text(struct check_result *result, const char *name, const char *text)
{
	struct check_fact *fact = add_fact(result, name);

	snprintf(fact->text, sizeof(fact->text), "%s", text);
}

int check__read_line(const char *path, char *line, size_t size)
{
	_cleanup_free_ char *text = NULL;
	size_t len, n = 0;
	int err = fs__read(path, &text, &len);

	if (err)
		return err;
	for (size_t i = 0; i < len && text[i] != '\n' && n + 1 < size; i++)
		if (text[i] >= ' ' && text[i] <= '~')
			line[n++] = text[i];
	line[n] = '\0';
	return 0;
}
