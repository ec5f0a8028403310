// SPDX-License-Identifier: MIT
#include "util/units.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

/* The one wide type: no product of two 64-bit numbers overflows it. */
typedef unsigned __int128 u128;

struct unit {
	const char *name;
	uint64_t factor;
};

static const struct unit duration_units[] = {
	{"ns", 1},
	{"us", 1000},
	{"\u00b5s", 1000}, /* the micro sign */
	{"ms", 1000000},
	{"s", 1000000000},
	{"min", 60000000000},
	{"h", 3600000000000},
	{"d", 86400000000000},
	{NULL, 0},
};

static const struct unit size_units[] = {
	{"", 1},
	{"B", 1},
	{"K", 1ull << 10},
	{"KB", 1ull << 10},
	{"KiB", 1ull << 10},
	{"M", 1ull << 20},
	{"MB", 1ull << 20},
	{"MiB", 1ull << 20},
	{"G", 1ull << 30},
	{"GB", 1ull << 30},
	{"GiB", 1ull << 30},
	{"T", 1ull << 40},
	{"TB", 1ull << 40},
	{"TiB", 1ull << 40},
	{NULL, 0},
};

/* A decimal number as whole + frac / frac_den, so that 1.5 and 0.1 are exact. */
struct decimal {
	uint64_t whole;
	uint64_t frac;
	uint64_t frac_den;
	bool too_large;
};

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* Returns the first character after the number, or NULL if the text does not start with one. */
static const char *parse_decimal(const char *text, struct decimal *d)
{
	const char *p = text;

	*d = (struct decimal){.frac_den = 1};
	for (; is_digit(*p); p++) {
		d->too_large |= __builtin_mul_overflow(d->whole, 10, &d->whole);
		d->too_large |= __builtin_add_overflow(d->whole, *p - '0', &d->whole);
	}
	if (*p != '.')
		return p == text ? NULL : p;
	/* A point stands between digits: "1." and ".5" are more likely cut short than meant. */
	if (p == text || !is_digit(p[1]))
		return NULL;
	/* At most 18 digits after it count: later ones are below any unit's resolution. */
	for (p++; is_digit(*p); p++) {
		if (d->frac_den >= 1000000000000000000u)
			continue;
		d->frac = d->frac * 10 + (uint64_t)(*p - '0');
		d->frac_den *= 10;
	}
	return p;
}

static int scale(const struct decimal *d, uint64_t factor, uint64_t *value)
{
	u128 sum;

	if (d->too_large)
		return -ERANGE;
	sum = (u128)d->whole * factor;
	sum += ((u128)d->frac * factor * 2 + d->frac_den) / ((u128)d->frac_den * 2);
	if (sum > INT64_MAX)
		return -ERANGE;
	*value = (uint64_t)sum;
	return 0;
}

static int parse(const char *text, const struct unit *units,
		 int (*compare)(const char *, const char *), uint64_t *value)
{
	struct decimal d;
	const char *name = parse_decimal(text, &d);

	if (!name)
		return -EINVAL;
	/* "10.0 ms", as it is printed, is read back. */
	if (name[0] == ' ' && name[1])
		name++;
	for (; units->name; units++) {
		if (!compare(name, units->name))
			return scale(&d, units->factor, value);
	}
	return -EINVAL;
}

int units__parse_duration(const char *text, uint64_t *ns)
{
	return parse(text, duration_units, strcmp, ns);
}

int units__parse_size(const char *text, uint64_t *bytes)
{
	return parse(text, size_units, strcasecmp, bytes);
}

int units__parse_percent(const char *text, uint64_t *ppm)
{
	static const struct unit units[] = {{"%", 10000}, {NULL, 0}};
	int err = parse(text, units, strcmp, ppm);

	return !err && *ppm > 1000000 ? -ERANGE : err;
}

/* Three significant digits of n / unit; false where n rounds to a thousand units or more. */
static bool format_three(char buf[static UNITS_TEXT_SIZE], uint64_t n, uint64_t unit,
			 const char *name)
{
	unsigned int power = 100;

	for (int decimals = 2; decimals >= 0; decimals--, power /= 10) {
		uint64_t scaled = (uint64_t)(((u128)n * power + unit / 2) / unit);

		if (scaled >= 1000)
			continue;
		snprintf(buf, UNITS_TEXT_SIZE, "%.*f %s", decimals, (double)scaled / power, name);
		return true;
	}
	return false;
}

const char *units__format_duration(char buf[static UNITS_TEXT_SIZE], uint64_t ns)
{
	if (ns < 1000)
		snprintf(buf, UNITS_TEXT_SIZE, "%u ns", (unsigned int)ns);
	else if (!format_three(buf, ns, 1000, "us") && !format_three(buf, ns, 1000000, "ms") &&
		 !format_three(buf, ns, 1000000000, "s"))
		snprintf(buf, UNITS_TEXT_SIZE, "%.0f s", (double)ns / 1e9);
	return buf;
}

const char *units__format_size(char buf[static UNITS_TEXT_SIZE], uint64_t bytes)
{
	static const char prefixes[] = "KMGTPE";
	uint64_t unit = 1024;
	uint64_t tenths = 0;
	size_t i;

	if (bytes < 1024) {
		snprintf(buf, UNITS_TEXT_SIZE, "%u B", (unsigned int)bytes);
		return buf;
	}
	/* On to the next unit where this one would round to 1024.0. */
	for (i = 0; i < sizeof(prefixes) - 1; i++, unit <<= 10) {
		tenths = (uint64_t)(((u128)bytes * 10 + unit / 2) / unit);
		if (tenths < 10240)
			break;
	}
	snprintf(buf, UNITS_TEXT_SIZE, "%u.%u %ciB", (unsigned int)(tenths / 10),
		 (unsigned int)(tenths % 10), prefixes[i]);
	return buf;
}

const char *units__format_moment(char buf[static UNITS_MOMENT_SIZE], uint64_t unix_ms)
{
	time_t seconds = (time_t)(unix_ms / 1000);
	struct tm tm = {0};
	size_t n;

	gmtime_r(&seconds, &tm);
	n = strftime(buf, UNITS_MOMENT_SIZE, "%Y-%m-%dT%H:%M:%S", &tm);
	snprintf(buf + n, UNITS_MOMENT_SIZE - n, ".%03uZ", (unsigned int)(unix_ms % 1000));
	return buf;
}

int units__parse_moment(const char *text, uint64_t *unix_ms)
{
	struct tm tm = {0};
	const char *end = strptime(text, "%Y-%m-%dT%H:%M:%S.", &tm);
	char again[UNITS_MOMENT_SIZE];

	if (!end)
		return -EINVAL;
	*unix_ms = (uint64_t)timegm(&tm) * 1000 + strtoul(end, NULL, 10) % 1000;
	/* Rejects numbers out of range and any text that is not written back identically. */
	return strncmp(units__format_moment(again, *unix_ms), text, UNITS_MOMENT_SIZE - 1) ? -EINVAL
											   : 0;
}

#define MAX_PERCENT  99.9999
#define ABOVE_WANTED 10

static int parse_percentile(const char *text, double *percent)
{
	size_t whole = strspn(text, "0123456789");
	size_t behind = text[whole] == '.' ? strspn(text + whole + 1, "0123456789") : 0;
	size_t len = behind ? whole + 1 + behind : whole;

	if (!whole || text[len])
		return -EINVAL;
	*percent = strtod(text, NULL);
	if (*percent <= 0)
		return -EINVAL;
	return *percent <= MAX_PERCENT ? 0 : -ERANGE;
}

int threshold__parse(const char *text, struct threshold *threshold)
{
	struct threshold parsed = {0};
	int err = text[0] == 'p' || text[0] == 'P' ? parse_percentile(text + 1, &parsed.percent)
						   : units__parse_duration(text, &parsed.ns);

	if (!err)
		*threshold = parsed;
	return err;
}

uint64_t threshold__needed(double percent)
{
	return (uint64_t)(ABOVE_WANTED * 100 / (100 - percent) + 0.5);
}

const char *threshold__format_percent(char buf[static THRESHOLD_TEXT_SIZE], double percent)
{
	snprintf(buf, THRESHOLD_TEXT_SIZE, "p%g", percent);
	return buf;
}
