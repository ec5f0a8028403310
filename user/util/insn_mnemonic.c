// SPDX-License-Identifier: MIT
#include "util/insn.h"

#include <Zydis/Zydis.h>
#include <errno.h>
#include <stdio.h>

int insn__mnemonic(const uint8_t *bytes, size_t len, char *buf, size_t size)
{
	ZydisDecodedInstruction zydis;
	ZydisDecoder decoder;
	const char *name;

	ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
	ZydisDecoderEnableMode(&decoder, ZYDIS_DECODER_MODE_MINIMAL, ZYAN_TRUE);
	if (!ZYAN_SUCCESS(ZydisDecoderDecodeInstruction(&decoder, NULL, bytes, len, &zydis)))
		return -EILSEQ;
	name = ZydisMnemonicGetString(zydis.mnemonic);
	snprintf(buf, size, "%s", name ? name : "?");
	return 0;
}
