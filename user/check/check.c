// SPDX-License-Identifier: MIT
#include "check/check.h"

#include <cjson/cJSON.h>
#include <linux/capability.h>
#include <stdlib.h>
#include <string.h>

#include "capture/pt/pt_ring.h"
#include "capture/sample/sample_ring.h"
#include "util/cleanup.h"
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

/* True if attach works with samples. */
static bool samples(const struct check_report *report)
{
	return !is_missing(report, "sample") && !is_missing(report, "bpf") &&
	       !is_missing(report, "uprobe");
}

/* Adds the result `attach`, which follows from the others. */
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

/* The results as text and as JSON: the only place that knows how they look. */

static const char *const state_names[] = {
	[CHECK_OK] = "ok", [CHECK_LIMITED] = "limited", [CHECK_MISSING] = "missing"};

void check_report__print(const struct check_report *report, FILE *out)
{
	int width = 0;

	for (size_t i = 0; i < report->n; i++)
		if ((int)strlen(report->results[i].name) > width)
			width = (int)strlen(report->results[i].name);
	for (size_t i = 0; i < report->n; i++) {
		const struct check_result *r = &report->results[i];

		fprintf(out, "%-*s  %-7s  %s%s%s\n", width, r->name, state_names[r->state],
			r->reason, r->remedy[0] ? "; " : "", r->remedy);
	}
}

static cJSON *facts_of(const struct check_result *result)
{
	cJSON *facts = cJSON_CreateObject();

	for (size_t i = 0; i < result->n_facts; i++) {
		const struct check_fact *fact = &result->facts[i];

		if (fact->text[0])
			cJSON_AddStringToObject(facts, fact->name, fact->text);
		else
			cJSON_AddNumberToObject(facts, fact->name, (double)fact->number);
	}
	return facts;
}

static cJSON *object_of(const struct check_result *result)
{
	cJSON *object = cJSON_CreateObject();

	cJSON_AddStringToObject(object, "name", result->name);
	cJSON_AddStringToObject(object, "state", state_names[result->state]);
	cJSON_AddStringToObject(object, "reason", result->reason);
	if (result->remedy[0])
		cJSON_AddStringToObject(object, "remedy", result->remedy);
	else
		cJSON_AddNullToObject(object, "remedy");
	cJSON_AddBoolToObject(object, "needed", result->needed);
	cJSON_AddItemToObject(object, "facts", facts_of(result));
	return object;
}

char *check_report__json(const struct check_report *report)
{
	cJSON *array = cJSON_CreateArray();
	char *text;

	for (size_t i = 0; i < report->n; i++)
		cJSON_AddItemToArray(array, object_of(&report->results[i]));
	text = cJSON_Print(array);
	cJSON_Delete(array);
	return text;
}
