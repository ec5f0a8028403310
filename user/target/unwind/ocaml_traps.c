// SPDX-License-Identifier: MIT
#include "target/unwind/ocaml_traps.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "util/cleanup.h"
#include "util/fs.h"
#include "util/log.h"

#define LINE_HELP "one hexadecimal address per line: 0x55d0c81e2f40"

/* The line without its comment, and without what is blank around it. */
static char *trim(char *line)
{
	char *end = line + strcspn(line, "#");

	while (isspace((unsigned char)*line))
		line++;
	while (end > line && isspace((unsigned char)end[-1]))
		end--;
	*end = '\0';
	return line;
}

/* strtoull() also takes blanks and signs. */
static bool parse_address(const char *text, uint64_t *ip)
{
	char *end;

	if (!isxdigit((unsigned char)*text))
		return false;
	errno = 0;
	*ip = strtoull(text, &end, 16);
	return !errno && !*end;
}

static int add_line(struct ocaml_traps *traps, const char *text, const char *path, size_t number)
{
	uint64_t ip, *slot;

	if (!*text)
		return 0;
	if (!parse_address(text, &ip)) {
		log__error("%s:%zu: '%.40s' is not an address", path, number, text);
		log__hint(LINE_HELP);
		return -EINVAL;
	}
	slot = VEC_PUSH(&traps->ips);
	if (!slot) {
		log__error("out of memory");
		return -ENOMEM;
	}
	*slot = ip;
	return 0;
}

static int compare_ips(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

int ocaml_traps__read(struct ocaml_traps *traps, const char *path)
{
	_cleanup_free_ char *text = NULL;
	char *rest, *line;
	size_t len, number = 0;
	int err = fs__read(path, &text, &len);

	if (err) {
		log__error("cannot read %s: %s", path, strerror(-err));
		log__hint("it is a text with %s", LINE_HELP);
		return err;
	}
	rest = text;
	while (!err && (line = strsep(&rest, "\n")))
		err = add_line(traps, trim(line), path, ++number);
	VEC_SORT(&traps->ips, compare_ips);
	return err;
}

void ocaml_traps__fini(struct ocaml_traps *traps)
{
	VEC_FINI(&traps->ips);
}

bool ocaml_traps__has(const struct ocaml_traps *traps, uint64_t ip)
{
	return traps->ips.n && bsearch(&ip, traps->ips.v, traps->ips.n, sizeof(ip), compare_ips);
}
