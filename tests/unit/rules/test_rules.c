// SPDX-License-Identifier: MIT
/*
 * The table of rules: what each row says, and that the rules say of the common branches what is
 * done with these without them. With -print: the rows as docs/dev/stacks.md has them.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "stack_fixture.h"

enum { RESOLVER = 0xa000 };

static int start(void **state)
{
	struct thread *t;

	start_thread(state);
	t = *state;
	add_function(t, RESOLVER, "_dl_runtime_resolve_xsavec", "", 0);
	begin(t, MAIN);
	return 0;
}

/* The event that the branch would be, which changes nothing. */
static const char *rule_of(struct thread *t, enum branch_kind kind, uint64_t from, uint64_t to,
			   uint8_t len)
{
	const struct branch b = {
		.time_ns = t->now, .from = from, .to = to, .kind = (uint8_t)kind, .len = len};
	struct event e = {.group = NULL};

	if (!rules__classify(t->stack, &b, kind, &e))
		return "none";
	t->stack->n_events[e.group - rule_groups][e.rule - e.group->rules]++;
	return e.rule->name;
}

static void test_every_row_is_complete_and_has_a_name_of_its_own(void **state)
{
	for (size_t i = 0; i < n_rule_groups; i++) {
		assert_true(rule_groups[i].n <= GROUP_RULES_MAX);
		assert_true(rule_groups[i].branches);
		for (size_t k = 0; k < rule_groups[i].n; k++) {
			const struct rule *rule = &rule_groups[i].rules[k];

			assert_true(*rule->name && *rule->evidence && *rule->source && rule->holds);
			for (size_t m = 0; m < i * GROUP_RULES_MAX + k; m++) {
				const struct rule_group *group = &rule_groups[m / GROUP_RULES_MAX];

				if (m % GROUP_RULES_MAX < group->n)
					assert_string_not_equal(
						group->rules[m % GROUP_RULES_MAX].name, rule->name);
			}
		}
	}
}

static void test_a_call_and_its_return(void **state)
{
	struct thread *t = *state;

	assert_string_equal(rule_of(t, BRANCH_CALL, MAIN + 0x10, A, CALL_LEN), "call");
	assert_on_top(t, "main", 0);
	call(t, MAIN + 0x10, A);
	assert_on_top(t, "a", 1);
	assert_string_equal(rule_of(t, BRANCH_RETURN, A + 0x20, MAIN + 0x15, 1), "return");
	assert_on_top(t, "a", 1);
	ret(t, A + 0x20, MAIN + 0x15);
	assert_on_top(t, "main", 0);
}

static void test_jumps_within_a_function(void **state)
{
	struct thread *t = *state;

	assert_string_equal(rule_of(t, BRANCH_JUMP, MAIN + 0x10, MAIN + 0x40, 2),
			    "jump within a function");
	assert_string_equal(rule_of(t, BRANCH_COND, MAIN + 0x10, MAIN + 0x40, 2),
			    "jump within a function");
	assert_string_equal(rule_of(t, BRANCH_JUMP, MAIN + 0x10, NOWHERE + 0x4000, 2),
			    "jump to unknown code");
	jump(t, MAIN + 0x10, MAIN + 0x40);
	jump(t, MAIN + 0x10, NOWHERE + 0x4000);
	assert_on_top(t, "main", 0);
}

static void test_a_call_that_goes_on_behind_itself(void **state)
{
	struct thread *t = *state;

	assert_string_equal(rule_of(t, BRANCH_CALL, MAIN + 0x10, MAIN + 0x15, CALL_LEN),
			    "call of the next instruction");
	call(t, MAIN + 0x10, MAIN + 0x15);
	assert_on_top(t, "main", 0);
}

/* What the stub's frame is that is being bound. */
static void test_out_of_a_stub(void **state)
{
	struct thread *t = *state;

	call(t, MAIN + 0x10, A);
	frames__top(t->stack->frames)->is_resolving = true;
	assert_string_equal(rule_of(t, BRANCH_JUMP, A + 0x10, B, 2), "stub");
	jump(t, A + 0x10, B);
	assert_on_top(t, "b", 1);
	assert_false(frame__is_stub(frames__top(t->stack->frames)));
}

static void test_an_event_in_words(void **state)
{
	struct thread *t = *state;
	struct branch b = {.from = A + 0x20, .to = MAIN + 0x15, .kind = BRANCH_RETURN, .len = 1};
	struct event e = {.group = NULL};
	char text[EVENT_TEXT_SIZE];

	call(t, MAIN + 0x10, A);
	call(t, A + 0x10, B);
	assert_true(rules__classify(t->stack, &b, BRANCH_RETURN, &e));
	event__format(&e, t->stack, &b, text);
	assert_string_equal(text, "return to an outer frame: 0x2020 to 0x1015, "
				  "of the frame at depth 1");
}

static void print_rows(void)
{
	for (size_t i = 0; i < n_rule_groups; i++)
		for (size_t k = 0; k < rule_groups[i].n; k++)
			printf("| %s | %s | %s |\n", rule_groups[i].rules[k].name,
			       rule_groups[i].rules[k].evidence, rule_groups[i].rules[k].source);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_row_is_complete_and_has_a_name_of_its_own),
		cmocka_unit_test_setup_teardown(test_a_call_and_its_return, start, end_thread),
		cmocka_unit_test_setup_teardown(test_jumps_within_a_function, start, end_thread),
		cmocka_unit_test_setup_teardown(test_a_call_that_goes_on_behind_itself, start,
						end_thread),
		cmocka_unit_test_setup_teardown(test_out_of_a_stub, start, end_thread),
		cmocka_unit_test_setup_teardown(test_an_event_in_words, start, end_thread),
	};

	if (argc > 1 && !strcmp(argv[1], "-print")) {
		print_rows();
		return 0;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
