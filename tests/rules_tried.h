/* SPDX-License-Identifier: MIT */
/* Which rules have named an event, for tests that switch each of them off: WITHOUT_RULE=NAME. */
#ifndef MTBPF_TESTS_RULES_TRIED_H
#define MTBPF_TESTS_RULES_TRIED_H

#include <stdio.h>
#include <stdlib.h>

#include "stack/rules.h"

/* Appends their names to the file RULES_TRIED, if that is set. */
static inline void tell_rules(const struct stack *s)
{
	const char *path = getenv("RULES_TRIED");
	FILE *file = path ? fopen(path, "a") : NULL;

	if (!file)
		return;
	for (size_t i = 0; i < n_rule_groups; i++)
		for (size_t k = 0; k < rule_groups[i].n; k++)
			if (s->n_events[i][k])
				fprintf(file, "%s\n", rule_groups[i].rules[k].name);
	fclose(file);
}

#endif
