// SPDX-License-Identifier: MIT
#include "decode/errata.h"

#include <intel-pt.h>

void errata__of(struct errata *errata, const struct rec_pt_config *config)
{
	struct pt_cpu cpu = {
		.vendor = pcv_intel,
		.family = (uint16_t)config->cpu_family,
		.model = (uint8_t)config->cpu_model,
		.stepping = (uint8_t)config->cpu_stepping,
	};
	struct pt_errata all = {0};

	*errata = (struct errata){0};
	if (!config->cpu_family || pt_cpu_errata(&all, &cpu) < 0)
		return;
	errata->bdm64 = all.bdm64;
	errata->skd007 = all.skd007;
	errata->skd022 = all.skd022;
	errata->skl014 = all.skl014;
}
