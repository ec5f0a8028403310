// SPDX-License-Identifier: MIT
/* The PT of one thread, or of one CPU. */
#include "capture/recording/recording.h"

#include <errno.h>
#include <stdlib.h>

void rec_aux__fini(struct rec_aux *aux)
{
	if (!aux->is_mapped && aux->data)
		free(aux->data - aux->left_out);
	aux->data = NULL;
}

/* Less than a few of the decoder's regions has little that could be left out. */
#define WORTH_HALVING (64u << 10)

bool recording__leave_out_older_half(struct recording *rec)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < rec->aux.n; i++) {
		struct rec_aux *aux = &rec->aux.v[i];
		size_t half = aux->size < WORTH_HALVING ? 0 : aux->size / 2;

		aux->data += half;
		aux->size -= half;
		aux->left_out += half;
		aux->wrapped |= half > 0;
		sum += half;
	}
	rec->drops[DROP_LEFT_OUT] += sum;
	return sum;
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
