// SPDX-License-Identifier: MIT
/*
 * What a static libmicrohttpd needs of GnuTLS. It calls the first two whenever a server starts, and
 * the others, which no_tls.h lists, only for a server with MHD_USE_TLS: mtbpf starts none.
 */
#include <stdlib.h>

int gnutls_global_init(void);
void gnutls_global_deinit(void);
void no_tls(void);

int gnutls_global_init(void)
{
	return 0;
}

void gnutls_global_deinit(void)
{
}

void no_tls(void)
{
	abort();
}

#define NO_TLS(name) __asm__(".globl " #name "\n.set " #name ", no_tls");
#include "no_tls.h"
