// SPDX-License-Identifier: MIT
#include "walk_go.h"

/*
 * Go's src/runtime/asm_amd64.s: mcall() pushes a word where the scheduler's stack begins, and calls
 * a function that does not return; systemstack() calls one there that does, and is no less a caller
 * than any other.
 */
static void enter_scheduler(struct walk *w, uint64_t sp)
{
	const struct goroutine *system = &w->goroutine;

	if (sp == system->saved_sp - 16) {
		truth__use_stack(&w->truth, system->g, system->top);
		truth__at(&w->truth, system->saved_sp);
	} else if (sp == system->saved_sp - 8) {
		w->called_by = (struct goroutine){.g = w->last_g};
		w->called_shift = w->last_sp - 16 - sp;
	}
}

/* Its frames lie below those of the goroutine that went there. */
static uint64_t find_away(struct walk *w, uint64_t sp)
{
	if (!w->is_away)
		w->away_shift = w->last_sp - 16 - sp;
	w->is_away = true;
	return sp + w->away_shift;
}

uint64_t walk_go__place(struct walk *w, const struct block *p, uint64_t sp)
{
	const struct goroutine *now = &w->goroutine;

	if (w->n_signals)
		return sp + w->signal_shift;
	if (goroutine__is_away(now, sp))
		return find_away(w, sp);
	w->is_away = false;
	if (p->cls == INSN_CALL_INDIRECT && w->last_g && w->last_g != now->g)
		enter_scheduler(w, sp);
	else if (w->last_g != now->g)
		w->called_by.g = 0;
	w->last_g = now->g;
	if (w->called_by.g)
		return sp + w->called_shift;
	sp += truth__use_stack(&w->truth, now->g, now->top);
	w->last_sp = sp;
	return sp;
}

void walk_go__interrupted(struct walk *w, const struct signal_frame *first)
{
	const struct goroutine *now = &w->goroutine;
	uint64_t sp = first->sp;

	if (goroutine__is_away(now, sp))
		sp = find_away(w, sp);
	else if (w->called_by.g)
		sp += w->called_shift;
	else
		sp += truth__use_stack(&w->truth, now->g, now->top);
	/* Its frame's last word is above the return address. */
	w->signal_shift = sp - 16 - first->slot;
	w->interrupted_ip = first->ip;
	w->interrupted_sp = first->sp;
}

/* src/runtime/preempt.go: as if what was interrupted had made a call. */
void walk_go__resumed(struct walk *w, uint64_t ip, uint64_t sp)
{
	if (ip != w->interrupted_ip && sp == w->interrupted_sp - 8)
		truth__pushed(&w->truth,
			      sp + truth__use_stack(&w->truth, w->goroutine.g, w->goroutine.top));
	w->interrupted_sp = 0;
}
