// SPDX-License-Identifier: MIT
#include "target/elf/arguments_btf.h"

#include <bpf/btf.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "target/elf/elf_internal.h"

/* Structures without a name in each other: more is damage. */
#define DEPTH_MAX 32
/* Members that are looked at for one name: damaged structures may contain themselves. */
#define MEMBERS_MAX (1u << 20)

struct walk {
	const struct btf *btf;
	uint32_t type; /* of what has been reached, without typedefs and qualifiers */
	bool in_memory;
	struct mt_value *value;
	char *why;
	uint32_t n_members;    /* that have been looked at */
	bool is_first_of_many; /* the section has BTF of several files: only the first is read */
};

static int refuse(struct walk *walk, const char *what, const char *name)
{
	snprintf(walk->why, VALUE_WHY_SIZE, "%s%s%s%s", name ? "'" : "", name ? name : "",
		 name ? "' " : "", what);
	return -EINVAL;
}

/* The type without typedefs and qualifiers. NULL: it is void, or damaged. */
static const struct btf_type *resolve(const struct btf *btf, uint32_t *id)
{
	for (int i = 0; i < DEPTH_MAX; i++) {
		const struct btf_type *type = *id ? btf__type_by_id(btf, *id) : NULL;

		if (!type || (!btf_is_mod(type) && !btf_is_typedef(type)))
			return type;
		*id = type->type;
	}
	return NULL;
}

/*
 * BTF of older compilers does not say whether an enumeration is signed: -1 and 0xffffffff are the
 * same there.
 */
static bool has_unclear_sign(const struct btf_type *type)
{
	for (uint32_t i = 0; btf_is_enum(type) && !btf_kflag(type) && i < btf_vlen(type); i++)
		if (btf_enum(type)[i].val < 0)
			return true;
	return false;
}

static bool is_integer(const struct btf_type *type, int8_t *size)
{
	bool is_int = btf_is_int(type);

	if ((!is_int && !btf_is_any_enum(type)) ||
	    (type->size != 1 && type->size != 2 && type->size != 4 && type->size != 8) ||
	    has_unclear_sign(type))
		return false;
	*size = (int8_t)type->size;
	if (is_int ? btf_int_encoding(type) & BTF_INT_SIGNED : btf_kflag(type))
		*size = (int8_t) - *size;
	return true;
}

static bool is_character(const struct btf *btf, uint32_t id)
{
	const struct btf_type *type = resolve(btf, &id);
	int8_t size;

	return type && btf_is_int(type) && is_integer(type, &size) && (size == 1 || size == -1);
}

static int follow(struct walk *walk)
{
	const struct btf_type *type = btf__type_by_id(walk->btf, walk->type);
	struct mt_value *value = walk->value;

	if (value->n_derefs == MT_DEREFS)
		return refuse(walk, "more than 4 pointers are followed", NULL);
	value->offsets[value->n_derefs++] = 0;
	walk->in_memory = true;
	walk->type = type->type;
	return resolve(walk->btf, &walk->type)
		       ? 0
		       : refuse(walk, "what it points to is not known", NULL);
}

static int move(struct walk *walk, int64_t bytes)
{
	int32_t *offset = &walk->value->offsets[walk->value->n_derefs - 1];

	if (bytes > INT32_MAX || __builtin_add_overflow(*offset, (int32_t)bytes, offset))
		return refuse(walk, "the offset is too large", NULL);
	return 0;
}

/* Finds a member, also in members without a name. 1: found; 0: not; -EINVAL. */
static int find_member(struct walk *walk, uint32_t id, const char *name, uint32_t *type,
		       uint32_t *bits, int depth)
{
	const struct btf_type *class = resolve(walk->btf, &id);

	if (depth == DEPTH_MAX || !class || !btf_is_composite(class))
		return 0;
	for (uint32_t i = 0; i < btf_vlen(class); i++) {
		const struct btf_member *m = &btf_members(class)[i];
		const char *own = btf__name_by_offset(walk->btf, m->name_off);
		uint32_t within = 0;

		if (walk->n_members++ > MEMBERS_MAX)
			return 0;
		if (own && *own) {
			if (strcmp(own, name))
				continue;
			if (btf_member_bitfield_size(class, i) ||
			    btf_member_bit_offset(class, i) % 8)
				return refuse(walk, "is a bit field", name);
			*type = m->type;
		} else if (find_member(walk, m->type, name, type, &within, depth + 1) <= 0) {
			continue;
		}
		*bits = btf_member_bit_offset(class, i) + within;
		return 1;
	}
	return 0;
}

static int take_member(struct walk *walk, const struct value_step *step)
{
	const struct btf_type *type = btf__type_by_id(walk->btf, walk->type);
	uint32_t bits = 0, member = 0;
	int got;

	if (step->kind == STEP_ARROW && !btf_is_ptr(type))
		return refuse(walk, "is a member of a structure, not of a pointer: use .",
			      step->name);
	if (step->kind == STEP_DOT && btf_is_ptr(type))
		return refuse(walk, "is reached through a pointer: use ->", step->name);
	got = btf_is_ptr(type) ? follow(walk) : 0;
	if (got)
		return got;
	type = btf__type_by_id(walk->btf, walk->type);
	if (btf_is_fwd(type))
		return refuse(walk, "is a member of a type that the BTF does not define",
			      step->name);
	if (!btf_is_composite(type) || !walk->in_memory)
		return refuse(walk, "needs a structure in memory before it", step->name);
	got = find_member(walk, walk->type, step->name, &member, &bits, 0);
	if (got <= 0)
		return got ? got : refuse(walk, "is not a member of the type", step->name);
	walk->type = member;
	if (!resolve(walk->btf, &walk->type))
		return refuse(walk, "lacks a type in the BTF", step->name);
	return move(walk, bits / 8);
}

static int take_index(struct walk *walk, const struct value_step *step)
{
	const struct btf_type *type = btf__type_by_id(walk->btf, walk->type);
	int64_t size;
	int err = 0;

	if (btf_is_array(type) && walk->in_memory)
		walk->type = btf_array(type)->type;
	else if (btf_is_ptr(type))
		err = follow(walk);
	else
		return refuse(walk, "[] needs an array or a pointer", NULL);
	if (err)
		return err;
	size = resolve(walk->btf, &walk->type) ? btf__resolve_size(walk->btf, walk->type) : -1;
	if (size < 0 || size > INT32_MAX)
		return refuse(walk, "the size of what the array has is not known", NULL);
	return move(walk, size * step->number);
}

static bool is_in_register(const struct btf_type *type)
{
	int8_t size;

	return btf_is_ptr(type) || is_integer(type, &size) || has_unclear_sign(type);
}

/*
 * Finds the register of an argument by the types of those before it, and of the result (System V
 * ABI for x86-64, 3.2.3).
 */
static int find_parameter(struct walk *walk, const struct btf_type *proto, uint32_t arg)
{
	uint32_t id = proto->type, n_registers = 0;
	const struct btf_type *type = resolve(walk->btf, &id);
	bool is_lost = false;

	if (arg >= btf_vlen(proto))
		return refuse(walk, "the function has fewer arguments", NULL);
	if (type && btf_is_composite(type)) {
		n_registers = type->size > 16;
		is_lost = type->size <= 16;
	}
	for (uint32_t i = 0; i <= arg; i++) {
		walk->type = btf_params(proto)[i].type;
		type = resolve(walk->btf, &walk->type);
		if (!type)
			return refuse(walk, "its type is not in the BTF", NULL);
		if (i == arg)
			break;
		is_lost |= !is_in_register(type) && !(btf_is_float(type) && type->size <= 16);
		n_registers += is_in_register(type);
	}
	if (!is_in_register(type))
		return refuse(walk, "it is neither an integer nor a pointer", NULL);
	if (is_lost)
		return refuse(walk,
			      "a structure is passed by value or returned, so that its register is "
			      "not known",
			      NULL);
	if (n_registers >= VALUE_REGISTERS)
		return refuse(walk, "it is passed on the stack", NULL);
	walk->value->from.base = value_registers[n_registers];
	return 0;
}

static int find_begin(struct walk *walk, const struct btf_type *proto,
		      const struct value_path *path)
{
	const struct btf_type *type;

	walk->value->from.kind = MT_ARG_REGISTER;
	walk->value->from.base = VALUE_RETURN_REGISTER;
	if (!path->of_return)
		return find_parameter(walk, proto, path->arg);
	walk->type = proto->type;
	type = resolve(walk->btf, &walk->type);
	if (!type)
		return refuse(walk, "the function returns nothing, by its BTF", NULL);
	return is_in_register(type) ? 0
				    : refuse(walk, "it is neither an integer nor a pointer", NULL);
}

static enum value_type settle_type(const struct walk *walk, int8_t *size)
{
	const struct btf_type *type = btf__type_by_id(walk->btf, walk->type);
	uint32_t under = btf_is_ptr(type) ? type->type : 0;

	*size = 8;
	if (is_integer(type, size))
		return VALUE_INTEGER;
	if (btf_is_ptr(type))
		return !resolve(walk->btf, &under) || is_character(walk->btf, under)
			       ? VALUE_TEXT
			       : VALUE_POINTER;
	return btf_is_array(type) && walk->in_memory &&
			       is_character(walk->btf, btf_array(type)->type)
		       ? VALUE_CHARACTERS
		       : VALUE_NONE;
}

/* Reads the file's section ".BTF", which the caller frees; NULL if it is missing or damaged. */
static struct btf *read_btf(struct elf_image *image, bool *is_first_of_many)
{
	Elf_Scn *section = NULL;
	size_t names;

	if (!image->elf || elf_getshdrstrndx(image->elf, &names))
		return NULL;
	while ((section = elf_nextscn(image->elf, section))) {
		struct btf_header btf = {0};
		GElf_Shdr header;
		const char *name = gelf_getshdr(section, &header)
					   ? elf_strptr(image->elf, names, header.sh_name)
					   : NULL;
		Elf_Data *data = name && !strcmp(name, ".BTF") ? elf_rawdata(section, NULL) : NULL;
		uint64_t types, strings;

		if (!data || !data->d_buf || data->d_size > INT32_MAX)
			continue;
		/* The linker puts the BTF of several files after each other: the first is read. */
		if (data->d_size >= sizeof(btf))
			memcpy(&btf, data->d_buf, sizeof(btf));
		types = (uint64_t)btf.hdr_len + btf.type_off + btf.type_len;
		strings = (uint64_t)btf.hdr_len + btf.str_off + btf.str_len;
		*is_first_of_many =
			data->d_size >= sizeof(btf) &&
			data->d_size >= (types > strings ? types : strings) + sizeof(btf);
		return btf__new(data->d_buf, (uint32_t)data->d_size);
	}
	return NULL;
}

/*
 * Returns 1 and sets *proto if exactly one function has this name; 0 if the file lacks it; -EINVAL
 * if several have it.
 */
static int find_function(struct walk *walk, const char *name, const struct btf_type **proto)
{
	uint32_t n = btf__type_cnt(walk->btf);
	int found = 0;

	for (uint32_t id = 1; id < n; id++) {
		const struct btf_type *type = btf__type_by_id(walk->btf, id);
		const char *own =
			btf_is_func(type) ? btf__name_by_offset(walk->btf, type->name_off) : NULL;

		if (!own || strcmp(own, name))
			continue;
		if (found++)
			return refuse(walk, "the BTF has several functions of this name", NULL);
		*proto = btf__type_by_id(walk->btf, type->type);
		if (!*proto || !btf_is_func_proto(*proto))
			return 0;
	}
	return found;
}

static int find_value(struct walk *walk, const struct function *function,
		      const struct value_path *path, enum value_type *type)
{
	struct elf_image *image = function->image;
	size_t n = elf_image__function_count(image);
	const struct btf_type *proto = NULL;
	struct mt_value *value = walk->value;
	int err = find_function(walk, function->raw_name, &proto);
	int8_t size;

	if (err <= 0)
		return err ? err : -ENODATA;
	/* Static functions of several files may share a name, and BTF gives no addresses. */
	for (size_t i = 0; i < n; i++)
		if (!strcmp(elf_image__raw_name(image, i), function->raw_name) &&
		    elf_image__function(image, i)->vaddr != function->vaddr)
			return refuse(walk, "the program has several functions of this name", NULL);
	if (walk->is_first_of_many && !elf_image__has_symtab(image))
		return refuse(walk, "the BTF is of several files, and the symbol table is missing",
			      NULL);
	err = find_begin(walk, proto, path);
	for (size_t i = 0; i < path->n && !err; i++) {
		const struct value_step *step = &path->steps[i];

		err = step->kind == STEP_INDEX ? take_index(walk, step) : take_member(walk, step);
	}
	if (err)
		return err;
	*type = settle_type(walk, &size);
	value->size = value->n_derefs ? size : 0;
	value->from.size = value->n_derefs ? 8 : size;
	value->is_address = *type == VALUE_CHARACTERS;
	/* "char name[1]" at the end of a structure is the old way to write "char name[]". */
	if (value->is_address && btf_array(btf__type_by_id(walk->btf, walk->type))->nelems > 1)
		value->room = btf_array(btf__type_by_id(walk->btf, walk->type))->nelems;
	return 0;
}

int function__find_value_by_btf(const struct function *function, const struct value_path *path,
				struct mt_value *value, enum value_type *type,
				char why[static VALUE_WHY_SIZE])
{
	struct walk walk = {.value = value, .why = why};
	struct btf *btf = read_btf(function->image, &walk.is_first_of_many);
	int err = -ENODATA;

	*value = (struct mt_value){0};
	walk.btf = btf;
	if (btf)
		err = find_value(&walk, function, path, type);
	btf__free(btf);
	return err;
}
