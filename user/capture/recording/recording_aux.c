// SPDX-License-Identifier: MIT
/* The PT of one thread, or of one CPU. */
#include "capture/recording/recording.h"

#include <errno.h>
#include <stdlib.h>

void rec_aux__fini(struct rec_aux *aux)
{
	if (!aux->is_mapped)
		free(aux->data);
	aux->data = NULL;
}

int recording__add_aux(struct recording *rec, const struct rec_aux *aux)
{
	struct rec_aux *out = aux->size ? VEC_PUSH(&rec->aux) : NULL, dropped = *aux;

	if (out) {
		*out = *aux;
		return 0;
	}
	rec_aux__fini(&dropped);
	return aux->size ? -ENOMEM : 0;
}
