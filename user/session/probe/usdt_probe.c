// SPDX-License-Identifier: MIT
#include "session/probe/usdt_probe.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "target/usdt_args.h"
#include "util/log.h"

static int refuse(const struct usdt_match *match, int err)
{
	log__error("cannot probe %s:%s at %#llx of %s", match->place.provider, match->place.name,
		   (unsigned long long)match->place.vaddr, elf_image__name(match->module->image));
	log__hint("its note is of other code: is the file damaged?");
	return err;
}

int usdt_probe__make(struct probe *probe, const struct usdt_match *match)
{
	const struct usdt_place *place = &match->place;
	struct elf_image *image = match->module->image;
	const struct function *function = elf_image__function_at(image, place->vaddr);
	const uint8_t *code;
	size_t len;

	*probe = (struct probe){.is_inside = true, .semaphore = place->semaphore_offset};
	probe->offset = elf_image__offset_of_vaddr(image, place->vaddr);
	probe->entry_offset = probe->offset;
	code = elf_image__bytes(image, probe->offset, &len);
	if (!code)
		return refuse(match, -EIO);
	if (probe_site__at(code, len < sizeof(probe->code) ? len : sizeof(probe->code),
			   place->vaddr, 0, &probe->site))
		return refuse(match, -EOPNOTSUPP);
	probe->site.at_entry = function && function->vaddr == place->vaddr;
	memcpy(probe->code, code, len < sizeof(probe->code) ? len : sizeof(probe->code));
	usdt_args__parse(place->args, &probe->args);
	snprintf(probe->name, sizeof(probe->name), USDT_PREFIX "%s:%s", place->provider,
		 place->name);
	return 0;
}
