// SPDX-License-Identifier: MIT
/*
 * The stack at a trigger is known whole, while its branches may go back to no further than the
 * frames that returned: what called the outermost of those is taken from it.
 */
#include <errno.h>

#include "stack/stack_internal.h"

int stack__anchor(struct stack *s, uint64_t time_ns, const uint64_t *ips, size_t n)
{
	struct anchor *anchor = VEC_PUSH(&s->anchors);

	if (!anchor)
		return -ENOMEM;
	*anchor = (struct anchor){.time_ns = time_ns, .first = s->anchor_ips.n};
	for (; anchor->n < n; anchor->n++) {
		uint64_t *ip = VEC_PUSH(&s->anchor_ips);

		if (!ip)
			return -ENOMEM;
		*ip = ips[anchor->n];
	}
	return 0;
}

/* A return address may be the first behind the function that called. */
static const struct function *function_of(struct stack *s, const uint64_t *ips, size_t i)
{
	bool is_entry;

	return stack__function_at(s, i ? ips[i] - 1 : ips[i], &is_entry);
}

/* Up to the first address that is no code: behind it nothing is to be trusted. */
static size_t count_known(struct stack *s, const uint64_t *ips, size_t n)
{
	size_t i = 0;

	while (i < n && ips[i] && function_of(s, ips, i))
		i++;
	return i;
}

static void use(struct stack *s, const uint64_t *ips, size_t n)
{
	struct held *held;

	n = count_known(s, ips, n);
	held = calloc(n + 1, sizeof(*held));
	if (!held) {
		s->frames->failed = true;
		return;
	}
	for (size_t i = 0; i < n; i++)
		held[n - 1 - i] = (struct held){
			.function = function_of(s, ips, i),
			.return_ip = i + 1 < n ? ips[i + 1] : 0,
			.entry_ip = ips[i],
		};
	frames__take_stack(s->frames, (struct held_stack){held, n});
	free(held);
}

void stack__use_anchors(struct stack *s, uint64_t before_ns)
{
	while (s->next_anchor < s->anchors.n && s->anchors.v[s->next_anchor].time_ns < before_ns) {
		const struct anchor *anchor = &s->anchors.v[s->next_anchor++];

		use(s, &s->anchor_ips.v[anchor->first], anchor->n);
	}
}
