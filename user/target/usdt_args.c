// SPDX-License-Identifier: MIT
#include "target/usdt_args.h"

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/user.h>

/* In pt_regs, which user_regs_struct is the same as. */
#define PLACE(name) offsetof(struct user_regs_struct, name)

static const struct {
	const char *names[4]; /* of 64, 32, 16 and 8 bits; the upper 8 of 16 are not there */
	uint16_t place;
} registers[] = {
	{{"rax", "eax", "ax", "al"}, PLACE(rax)},
	{{"rbx", "ebx", "bx", "bl"}, PLACE(rbx)},
	{{"rcx", "ecx", "cx", "cl"}, PLACE(rcx)},
	{{"rdx", "edx", "dx", "dl"}, PLACE(rdx)},
	{{"rsi", "esi", "si", "sil"}, PLACE(rsi)},
	{{"rdi", "edi", "di", "dil"}, PLACE(rdi)},
	{{"rbp", "ebp", "bp", "bpl"}, PLACE(rbp)},
	{{"rsp", "esp", "sp", "spl"}, PLACE(rsp)},
	{{"r8", "r8d", "r8w", "r8b"}, PLACE(r8)},
	{{"r9", "r9d", "r9w", "r9b"}, PLACE(r9)},
	{{"r10", "r10d", "r10w", "r10b"}, PLACE(r10)},
	{{"r11", "r11d", "r11w", "r11b"}, PLACE(r11)},
	{{"r12", "r12d", "r12w", "r12b"}, PLACE(r12)},
	{{"r13", "r13d", "r13w", "r13b"}, PLACE(r13)},
	{{"r14", "r14d", "r14w", "r14b"}, PLACE(r14)},
	{{"r15", "r15d", "r15w", "r15b"}, PLACE(r15)},
};

static bool is_register(const char *const *names, const char *text, size_t len)
{
	for (int i = 0; i < 4; i++)
		if (strlen(names[i]) == len && !memcmp(names[i], text, len))
			return true;
	return false;
}

/* "%rax" at *text, which moves behind it. */
static bool take_register(const char **text, uint16_t *place)
{
	size_t len;

	if (**text != '%')
		return false;
	len = strspn(*text + 1, "abcdefghijklmnopqrstuvwxyz0123456789");
	for (size_t i = 0; i < sizeof(registers) / sizeof(registers[0]); i++) {
		if (!is_register(registers[i].names, *text + 1, len))
			continue;
		*place = registers[i].place;
		*text += 1 + len;
		return true;
	}
	return false;
}

/* A number at *text, which moves behind it. */
static bool take_number(const char **text, uint64_t *number)
{
	const char *digits = *text + (**text == '-');
	char *end;

	/* strtoull() would pass over space and signs. */
	if (*digits < '0' || *digits > '9')
		return false;
	errno = 0;
	*number = strtoull(digits, &end, 0);
	*number = digits == *text ? *number : -*number;
	*text = end;
	return !errno;
}

/* ",%rbx,8)" behind the base. */
static bool take_index(const char **text, struct mt_arg *arg)
{
	uint64_t scale;

	if (**text != ',')
		return true;
	(*text)++;
	if (!take_register(text, &arg->index))
		return false;
	arg->scale = 1;
	if (**text != ',')
		return true;
	(*text)++;
	if (!take_number(text, &scale) || !scale || scale > 8)
		return false;
	arg->scale = (uint8_t)scale;
	return true;
}

static bool take_memory(const char **text, struct mt_arg *arg)
{
	arg->kind = MT_ARG_MEMORY;
	if (**text != '(' && !take_number(text, &arg->value))
		return false;
	if (**text != '(')
		return false;
	(*text)++;
	if (!take_register(text, &arg->base) || !take_index(text, arg) || **text != ')')
		return false;
	(*text)++;
	return true;
}

static bool take_size(const char **text, struct mt_arg *arg)
{
	uint64_t number;
	int64_t size;

	if (!take_number(text, &number) || *(*text)++ != '@')
		return false;
	size = (int64_t)number;
	if (size < -8 || size > 8)
		return false;
	arg->size = (int8_t)size;
	size = size < 0 ? -size : size;
	return size == 1 || size == 2 || size == 4 || size == 8;
}

/* "size@operand", whole; false where it is somewhere that is not read. */
static bool parse_arg(const char *text, const char *end, struct mt_arg *arg)
{
	bool is_good;

	if (!take_size(&text, arg))
		return false;
	if (*text == '$') {
		text++;
		arg->kind = MT_ARG_CONSTANT;
		is_good = take_number(&text, &arg->value);
	} else if (*text == '%') {
		arg->kind = MT_ARG_REGISTER;
		is_good = take_register(&text, &arg->base);
	} else {
		is_good = take_memory(&text, arg);
	}
	return is_good && text == end;
}

void usdt_args__parse(const char *text, struct mt_args *args)
{
	*args = (struct mt_args){0};
	for (text += strspn(text, " "); *text && args->n < MT_ARGS_MAX; text += strspn(text, " ")) {
		struct mt_arg arg = {0};
		const char *end = text + strcspn(text, " ");

		if (parse_arg(text, end, &arg))
			args->v[args->n] = arg;
		args->n++;
		text = end;
	}
}
