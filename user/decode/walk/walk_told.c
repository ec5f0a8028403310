// SPDX-License-Identifier: MIT
/* What packets tell that is no branch (pt_note.h). */
#include "decode/pt_note.h"
#include "decode/walk/walk_internal.h"

static void tell(struct walker *w, uint8_t kind, uint64_t ip, uint64_t value, uint64_t tsc)
{
	walker__emit(w, OUTBOX_NOTE, 0, ip, value, tsc);
	if (w->out->n && !w->out->err)
		w->out->v[w->out->n - 1].reason = kind;
}

void walker__place_event(struct walker *w, uint64_t ip)
{
	if (w->event.kind)
		tell(w, w->event.kind, ip, w->event.value, w->event.tsc);
	w->event.kind = PT_NOTE_NONE;
}

/* Between an MWAIT and its FUP, a PWRE may lie (SDM "Power Event Tracing"). */
void walker__on_event(struct walker *w, const struct packet *packet)
{
	/* It may only look like a packet. */
	if (walker__doubts(w))
		return;
	if (packet->kind != PACKET_BEFORE_FUP) {
		tell(w, packet->event, 0, packet->value, w->time.tsc);
		return;
	}
	walker__place_event(w, 0);
	w->event.kind = packet->event;
	w->event.value = packet->value;
	w->event.tsc = w->time.tsc;
}
