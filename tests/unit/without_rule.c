// SPDX-License-Identifier: MIT
/*
 * Tests of the rules are linked so that branches are classified by way of this: WITHOUT_RULE=NAME
 * takes one rule out of the table, as if it were not there.
 */
#include <stdlib.h>
#include <string.h>

#include "stack/rules.h"

bool __real_rules__classify(const struct stack *s, const struct branch *b, enum branch_kind as,
			    struct event *e);
bool __wrap_rules__classify(const struct stack *s, const struct branch *b, enum branch_kind as,
			    struct event *e);

bool __wrap_rules__classify(const struct stack *s, const struct branch *b, enum branch_kind as,
			    struct event *e)
{
	const char *without = getenv("WITHOUT_RULE");
	bool found;

	do {
		found = __real_rules__classify(s, b, as, e);
	} while (found && without && !strcmp(e->rule->name, without));
	return found;
}
