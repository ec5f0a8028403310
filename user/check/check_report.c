// SPDX-License-Identifier: MIT
#include "check/check_report.h"
#include "util/json.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

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

	snprintf(fact->text, sizeof(fact->text), "%.*s", (int)sizeof(fact->text) - 1, text);
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

static void add_result(cJSON *array, const struct check_result *result)
{
	cJSON *object = json__append_object(array), *facts;

	cJSON_AddStringToObject(object, "name", result->name);
	cJSON_AddStringToObject(object, "state", state_names[result->state]);
	cJSON_AddStringToObject(object, "reason", result->reason);
	json__add_text_or_null(object, "remedy", result->remedy[0] ? result->remedy : NULL);
	cJSON_AddBoolToObject(object, "needed", result->needed);
	facts = cJSON_AddObjectToObject(object, "facts");
	for (size_t i = 0; i < result->n_facts; i++) {
		const struct check_fact *fact = &result->facts[i];

		if (fact->text[0])
			cJSON_AddStringToObject(facts, fact->name, fact->text);
		else
			cJSON_AddNumberToObject(facts, fact->name, (double)fact->number);
	}
}

char *check_report__json(const struct check_report *report)
{
	cJSON *array = cJSON_CreateArray();

	for (size_t i = 0; i < report->n; i++)
		add_result(array, &report->results[i]);
	return json__finish(array);
}
