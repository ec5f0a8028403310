// SPDX-License-Identifier: MIT
#include "target/elf/arguments.h"

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "target/elf/elf_internal.h"

/* arch/x86/include/asm/ptrace.h: di, si, dx, cx, r8, r9 of struct pt_regs. */
const uint16_t value_registers[VALUE_REGISTERS] = {112, 104, 96, 88, 72, 64};

/* By DWARF's numbers, System V ABI for x86-64, figure 3.36: ax, dx, cx, bx, si, di, bp, sp, r8 to
 * r15; as above. */
static const uint16_t dwarf_registers[] = {80, 96, 88, 40, 104, 112, 32, 152,
					   72, 64, 56, 48, 24,	16,  8,	 0};

/* Namespaces in each other, typedefs of typedefs, classes in classes: more is damage. */
#define DEPTH_MAX 32
/* Classes that are looked at for one name: damaged ones may contain themselves. */
#define CLASSES_MAX 4096

bool function__is_clone(const struct function *function)
{
	return strstr(function->raw_name, ".isra.") || strstr(function->raw_name, ".constprop.") ||
	       strstr(function->raw_name, ".part.");
}

bool function__is_ocaml(const struct function *function)
{
	return ocaml_name__is_mangled(function->raw_name);
}

/* Walking a value_path. */
struct walk {
	Dwarf_Die type; /* of what has been reached */
	bool in_memory; /* it is at offsets[n_derefs - 1]; otherwise it is in the register */
	struct mt_value *value;
	char *why;
	uint32_t n_classes; /* that have been looked at */
};

static int refuse(struct walk *walk, const char *what, const char *name)
{
	snprintf(walk->why, VALUE_WHY_SIZE, "%s%s%s%s", name ? "'" : "", name ? name : "",
		 name ? "' " : "", what);
	return -EINVAL;
}

static bool get_number(Dwarf_Die *die, unsigned int name, Dwarf_Word *number)
{
	Dwarf_Attribute attr;

	return dwarf_attr_integrate(die, name, &attr) && !dwarf_formudata(&attr, number);
}

/* Finds the entry's type without typedefs and qualifiers. False if it is void, or damaged. */
static bool get_type(Dwarf_Die *die, Dwarf_Die *type)
{
	Dwarf_Attribute attr;

	*type = *die;
	for (int i = 0; i < DEPTH_MAX; i++) {
		if (!dwarf_attr_integrate(type, DW_AT_type, &attr) ||
		    !dwarf_formref_die(&attr, type))
			return false;
		switch (dwarf_tag(type)) {
		case DW_TAG_typedef:
		case DW_TAG_const_type:
		case DW_TAG_volatile_type:
		case DW_TAG_restrict_type:
		case DW_TAG_atomic_type:
			continue;
		}
		return true;
	}
	return false;
}

static bool is_class(int tag)
{
	return tag == DW_TAG_structure_type || tag == DW_TAG_class_type || tag == DW_TAG_union_type;
}

static bool is_reference(int tag)
{
	return tag == DW_TAG_reference_type || tag == DW_TAG_rvalue_reference_type;
}

static bool is_pointer(int tag)
{
	return tag == DW_TAG_pointer_type || is_reference(tag);
}

/* The distance of a member in its class; false where a computation tells it (virtual bases). */
static bool get_offset(Dwarf_Die *member, Dwarf_Word *offset)
{
	*offset = 0;
	return !dwarf_hasattr(member, DW_AT_data_member_location) ||
	       get_number(member, DW_AT_data_member_location, offset);
}

static bool is_same(const char *a, const char *b)
{
	return a && b ? !strcmp(a, b) : a == b;
}

/* Rough, but enough to tell structures apart that have the same name by chance. */
static bool types_agree(Dwarf_Die *a, Dwarf_Die *b, int depth)
{
	Dwarf_Word size_a = 0, size_b = 0, encoding_a = 0, encoding_b = 0;
	Dwarf_Die type_a, type_b;
	bool has = get_type(a, &type_a);
	int tag;

	if (has != get_type(b, &type_b) || depth == DEPTH_MAX)
		return false;
	if (!has)
		return true;
	tag = dwarf_tag(&type_a);
	if (tag != dwarf_tag(&type_b) || !is_same(dwarf_diename(&type_a), dwarf_diename(&type_b)))
		return false;
	get_number(&type_a, DW_AT_encoding, &encoding_a);
	get_number(&type_b, DW_AT_encoding, &encoding_b);
	if (encoding_a != encoding_b)
		return false;
	if (is_pointer(tag))
		return types_agree(&type_a, &type_b, depth + 1);
	/* One of the two units may only declare it. */
	if (dwarf_aggregate_size(&type_a, &size_a) || dwarf_aggregate_size(&type_b, &size_b))
		return true;
	return size_a == size_b &&
	       (tag != DW_TAG_array_type || types_agree(&type_a, &type_b, depth + 1));
}

static bool next_of_layout(Dwarf_Die *die)
{
	do {
		int tag = dwarf_tag(die);

		if (tag == DW_TAG_member || tag == DW_TAG_inheritance)
			return true;
	} while (!dwarf_siblingof(die, die));
	return false;
}

/* True if both definitions have the same size, and the same members at the same places. */
static bool definitions_agree(Dwarf_Die *a, Dwarf_Die *b)
{
	Dwarf_Word size_a = 0, size_b = 0;
	Dwarf_Die in_a, in_b;
	bool has_a, has_b;

	if (a->addr == b->addr)
		return true;
	get_number(a, DW_AT_byte_size, &size_a);
	get_number(b, DW_AT_byte_size, &size_b);
	if (size_a != size_b)
		return false;
	has_a = !dwarf_child(a, &in_a) && next_of_layout(&in_a);
	has_b = !dwarf_child(b, &in_b) && next_of_layout(&in_b);
	while (has_a && has_b) {
		Dwarf_Word at_a, at_b;

		if (dwarf_tag(&in_a) != dwarf_tag(&in_b) ||
		    !is_same(dwarf_diename(&in_a), dwarf_diename(&in_b)) ||
		    get_offset(&in_a, &at_a) != get_offset(&in_b, &at_b) || at_a != at_b ||
		    !types_agree(&in_a, &in_b, 0))
			return false;
		has_a = !dwarf_siblingof(&in_a, &in_a) && next_of_layout(&in_a);
		has_b = !dwarf_siblingof(&in_b, &in_b) && next_of_layout(&in_b);
	}
	return has_a == has_b;
}

/* A search for the definition of a type that a unit only declares. */
struct definition {
	Dwarf_Die *scopes; /* [0] is the type; those around it follow, up to the unit */
	int n_scopes;
	Dwarf_Die found;
	bool has_any, has_many; /* has_many: with different members */
};

/* Looks through what `parent` has for scopes[at]: a namespace, a class, or the type itself. */
static void search_definition(struct definition *d, Dwarf_Die *parent, int at)
{
	const char *name = dwarf_diename(&d->scopes[at]);
	int tag = dwarf_tag(&d->scopes[at]);
	Dwarf_Die die;

	if (dwarf_child(parent, &die))
		return;
	do {
		int other = dwarf_tag(&die);
		bool fits = other == tag || (tag != DW_TAG_union_type && is_class(tag) &&
					     other != DW_TAG_union_type && is_class(other));

		if (!fits || !is_same(dwarf_diename(&die), name))
			continue;
		if (at) {
			search_definition(d, &die, at - 1);
		} else if (!dwarf_hasattr(&die, DW_AT_declaration)) {
			d->has_many |= d->has_any && !definitions_agree(&d->found, &die);
			d->found = die;
			d->has_any = true;
		}
	} while (!dwarf_siblingof(&die, &die));
}

/*
 * A type that this unit only declares is searched in all units. Files of C may have different types
 * of the same name. False: it is nowhere, or which one is meant is not known.
 */
static bool find_definition(struct elf_debug *debug, Dwarf_Die *type)
{
	Dwarf *files[] = {debug->dwarf, debug->alt};
	struct definition d = {0};
	Dwarf_CU *cu = NULL;
	Dwarf_Attribute attr;
	Dwarf_Die die;
	uint8_t kind;
	bool is_searched;

	if (dwarf_attr(type, DW_AT_signature, &attr)) {
		if (dwarf_formref_die(&attr, type))
			return true;
		/*
		 * libdw finds a type unit of DWARF 5 only after it has listed the units up to that
		 * one.
		 */
		while (!dwarf_get_units(debug->dwarf, cu, &cu, NULL, NULL, NULL, NULL))
			;
		return dwarf_formref_die(&attr, type) != NULL;
	}
	if (!dwarf_hasattr(type, DW_AT_declaration))
		return true;
	d.n_scopes = dwarf_getscopes_die(type, &d.scopes);
	is_searched = d.n_scopes >= 2;
	/* Other units cannot see what is in a function, or in a namespace without a name. */
	for (int i = 0; i < d.n_scopes - 1; i++) {
		int tag = dwarf_tag(&d.scopes[i]);

		is_searched &=
			dwarf_diename(&d.scopes[i]) &&
			(!i || tag == DW_TAG_namespace || tag == DW_TAG_module || is_class(tag));
	}
	for (int i = 0; i < 2 && is_searched && files[i]; i++) {
		cu = NULL;
		while (is_searched &&
		       !dwarf_get_units(files[i], cu, &cu, NULL, &kind, &die, NULL)) {
			/* This unit is in another file. */
			is_searched = kind != DW_UT_skeleton;
			if (is_searched)
				search_definition(&d, &die, d.n_scopes - 2);
		}
	}
	if (d.n_scopes > 0)
		free(d.scopes);
	if (!is_searched || !d.has_any || d.has_many)
		return false;
	*type = d.found;
	return true;
}

static int find_member(struct walk *walk, struct elf_debug *debug, Dwarf_Die *class,
		       const char *name, Dwarf_Die *found, Dwarf_Word *offset, int depth);

/* Like find_member(), among the members of the class itself, and of its members without a name. */
static int find_own_member(struct walk *walk, struct elf_debug *debug, Dwarf_Die *class,
			   const char *name, Dwarf_Die *found, Dwarf_Word *offset, int depth)
{
	Dwarf_Die die, inner;
	int got = 0;

	if (dwarf_child(class, &die))
		return 0;
	do {
		int tag = dwarf_tag(&die);
		const char *own = dwarf_diename(&die);
		Dwarf_Word at, within = 0;

		if ((tag != DW_TAG_member && tag != DW_TAG_variable) || (own && strcmp(own, name)))
			continue;
		/* DWARF before version 5 describes static members like other members. */
		if (own && (tag == DW_TAG_variable || dwarf_hasattr(&die, DW_AT_external) ||
			    dwarf_hasattr(&die, DW_AT_declaration)))
			return refuse(walk, "is static: it is in no object", name);
		if (own) {
			*found = die;
			got = 1;
		} else if (get_type(&die, &inner) && is_class(dwarf_tag(&inner)) &&
			   find_definition(debug, &inner)) {
			got = find_member(walk, debug, &inner, name, found, &within, depth + 1);
		}
		if (got > 0 && !get_offset(&die, &at))
			return refuse(walk, "has a location that is computed", name);
		if (got > 0)
			*offset = at + within;
	} while (!got && !dwarf_siblingof(&die, &die));
	return got;
}

/* Like find_member(), in the base classes. -EINVAL also if two of them have the name. */
static int find_inherited(struct walk *walk, struct elf_debug *debug, Dwarf_Die *class,
			  const char *name, Dwarf_Die *found, Dwarf_Word *offset, int depth)
{
	Dwarf_Die die, base;
	int got = 0;

	if (dwarf_child(class, &die))
		return 0;
	do {
		Dwarf_Word at, within = 0;
		Dwarf_Die in_base;
		int one;

		if (dwarf_tag(&die) != DW_TAG_inheritance)
			continue;
		if (!get_type(&die, &base) || !find_definition(debug, &base))
			return refuse(walk,
				      "may be in a base class that the debug info does not define",
				      name);
		one = find_member(walk, debug, &base, name, &in_base, &within, depth + 1);
		if (one < 0)
			return one;
		if (!one)
			continue;
		if (dwarf_hasattr(&die, DW_AT_virtuality) || !get_offset(&die, &at))
			return refuse(walk, "is in a virtual base class", name);
		if (got)
			return refuse(walk, "is in several base classes", name);
		*found = in_base;
		*offset = at + within;
		got = 1;
	} while (!dwarf_siblingof(&die, &die));
	return got;
}

/*
 * Finds a member as the language does: a class's own one hides those of its base classes. 1: found;
 * 0: not; -EINVAL.
 */
static int find_member(struct walk *walk, struct elf_debug *debug, Dwarf_Die *class,
		       const char *name, Dwarf_Die *found, Dwarf_Word *offset, int depth)
{
	int got;

	if (depth == DEPTH_MAX || walk->n_classes++ == CLASSES_MAX)
		return refuse(walk, "is not found: the debug info is damaged", name);
	got = find_own_member(walk, debug, class, name, found, offset, depth);
	return got ? got : find_inherited(walk, debug, class, name, found, offset, depth);
}

/* Follows the pointer that the walk has reached. */
static int follow(struct walk *walk, struct elf_debug *debug, int64_t offset)
{
	struct mt_value *value = walk->value;

	if (value->n_derefs == MT_DEREFS)
		return refuse(walk, "more than 4 pointers are followed", NULL);
	if (offset < INT32_MIN || offset > INT32_MAX)
		return refuse(walk, "the offset is too large", NULL);
	value->offsets[value->n_derefs++] = (int32_t)offset;
	walk->in_memory = true;
	return debug && !get_type(&walk->type, &walk->type)
		       ? refuse(walk, "what it points to is not known", NULL)
		       : 0;
}

static int move(struct walk *walk, int64_t bytes)
{
	int32_t *offset = &walk->value->offsets[walk->value->n_derefs - 1];

	if (bytes < INT32_MIN || bytes > INT32_MAX ||
	    __builtin_add_overflow(*offset, (int32_t)bytes, offset))
		return refuse(walk, "the offset is too large", NULL);
	return 0;
}

static int take_member(struct walk *walk, struct elf_debug *debug, const struct value_step *step)
{
	int tag = dwarf_tag(&walk->type), got;
	bool by_pointer = step->kind == STEP_ARROW ? is_pointer(tag) : is_reference(tag);
	Dwarf_Word offset = 0;
	Dwarf_Die member;

	if (step->kind == STEP_ARROW && !by_pointer)
		return refuse(walk, "is a member of a structure, not of a pointer: use .",
			      step->name);
	if (step->kind == STEP_DOT && tag == DW_TAG_pointer_type)
		return refuse(walk, "is reached through a pointer: use ->", step->name);
	got = by_pointer ? follow(walk, debug, 0) : 0;
	if (got)
		return got;
	if (!is_class(dwarf_tag(&walk->type)) || !walk->in_memory)
		return refuse(walk, "needs a structure in memory before it", step->name);
	if (!find_definition(debug, &walk->type))
		return refuse(walk,
			      "is a member of a type that the debug info does not define, or "
			      "defines differently in several files",
			      step->name);
	got = find_member(walk, debug, &walk->type, step->name, &member, &offset, 0);
	if (got < 0)
		return got;
	if (!got)
		return refuse(walk, "is not a member of the type", step->name);
	if (dwarf_hasattr(&member, DW_AT_bit_size))
		return refuse(walk, "is a bit field", step->name);
	if (!get_type(&member, &walk->type))
		return refuse(walk, "lacks a type in the debug info", step->name);
	return move(walk, (int64_t)offset);
}

/*
 * False for an array of arrays, whose inner arrays lack entries of their own, and for one whose
 * elements are further apart than their size.
 */
static bool is_plain_array(Dwarf_Die *array)
{
	Dwarf_Die die;
	int n = 0;

	if (dwarf_hasattr(array, DW_AT_byte_stride) || dwarf_hasattr(array, DW_AT_bit_stride) ||
	    dwarf_child(array, &die))
		return false;
	do {
		int tag = dwarf_tag(&die);

		n += tag == DW_TAG_subrange_type || tag == DW_TAG_enumeration_type;
	} while (!dwarf_siblingof(&die, &die));
	return n == 1;
}

static int take_index(struct walk *walk, struct elf_debug *debug, const struct value_step *step)
{
	int tag = dwarf_tag(&walk->type), err;
	Dwarf_Word size;

	if (tag == DW_TAG_array_type && !is_plain_array(&walk->type))
		return refuse(walk, "the array has several dimensions", NULL);
	if (tag == DW_TAG_array_type && walk->in_memory)
		err = get_type(&walk->type, &walk->type) ? 0 : -EINVAL;
	else if (tag == DW_TAG_pointer_type)
		err = follow(walk, debug, 0);
	else
		return refuse(walk, "[] needs an array or a pointer", NULL);
	if (err)
		return refuse(walk, "what the array has is not known", NULL);
	if (!find_definition(debug, &walk->type) || dwarf_aggregate_size(&walk->type, &size) ||
	    size > INT32_MAX)
		return refuse(walk, "the size of what the array has is not known", NULL);
	return move(walk, (int64_t)size * step->number);
}

/* True for an integer or enumeration of 1, 2, 4 or 8 bytes. *size is negative if it is signed. */
static bool is_integer(Dwarf_Die *type, int8_t *size)
{
	Dwarf_Word bytes, encoding = DW_ATE_unsigned;
	Dwarf_Die under;
	int tag = dwarf_tag(type);

	if (tag == DW_TAG_enumeration_type && get_type(type, &under))
		get_number(&under, DW_AT_encoding, &encoding);
	if (tag == DW_TAG_base_type && !get_number(type, DW_AT_encoding, &encoding))
		return false;
	if ((tag != DW_TAG_base_type && tag != DW_TAG_enumeration_type) ||
	    !get_number(type, DW_AT_byte_size, &bytes) ||
	    (bytes != 1 && bytes != 2 && bytes != 4 && bytes != 8))
		return false;
	switch (encoding) {
	case DW_ATE_signed:
	case DW_ATE_signed_char:
		*size = -(int8_t)bytes;
		return true;
	case DW_ATE_boolean:
	case DW_ATE_unsigned:
	case DW_ATE_unsigned_char:
	case DW_ATE_UTF:
		*size = (int8_t)bytes;
		return true;
	}
	return false;
}

/* char, signed char, unsigned char, char8_t, uint8_t. */
static bool is_character(Dwarf_Die *type)
{
	int8_t size;

	return dwarf_tag(type) == DW_TAG_base_type && is_integer(type, &size) &&
	       (size == 1 || size == -1);
}

static enum value_type settle_type(struct walk *walk, int8_t *size)
{
	Dwarf_Die *type = &walk->type, under;

	*size = 8;
	if (is_integer(type, size))
		return VALUE_INTEGER;
	if (is_pointer(dwarf_tag(type)))
		return !get_type(type, &under) || is_character(&under) ? VALUE_TEXT : VALUE_POINTER;
	if (dwarf_tag(type) == DW_TAG_array_type && walk->in_memory && is_plain_array(type) &&
	    get_type(type, &under) && is_character(&under))
		return VALUE_CHARACTERS;
	return VALUE_NONE;
}

/*
 * True if the function's code begins at vaddr. A function whose cold code is elsewhere has ranges
 * only.
 */
static bool begins_at(Dwarf_Die *subprogram, uint64_t vaddr)
{
	Dwarf_Addr entry, base, start, end;
	ptrdiff_t offset = 0;

	if (!dwarf_entrypc(subprogram, &entry))
		return entry == vaddr;
	while ((offset = dwarf_ranges(subprogram, offset, &base, &start, &end)) > 0)
		if (start == vaddr && start < end)
			return true;
	return false;
}

/* The entry of the function that begins at vaddr, in namespaces as well. */
static bool find_subprogram(Dwarf_Die *parent, uint64_t vaddr, Dwarf_Die *found, int depth)
{
	Dwarf_Die die;

	if (depth == DEPTH_MAX || dwarf_child(parent, &die))
		return false;
	do {
		int tag = dwarf_tag(&die);

		if ((tag == DW_TAG_namespace || tag == DW_TAG_module) &&
		    find_subprogram(&die, vaddr, found, depth + 1))
			return true;
		if (tag != DW_TAG_subprogram || !begins_at(&die, vaddr))
			continue;
		*found = die;
		return true;
	} while (!dwarf_siblingof(&die, &die));
	return false;
}

enum passing {
	PASSED_IN_REGISTER, /* one of those for integers */
	PASSED_ELSEWHERE,   /* in a vector register, or on the stack */
	PASSED_NOT_KNOWN,   /* a structure, which may be in either, or in two registers */
};

static enum passing passing_of(Dwarf_Die *type)
{
	Dwarf_Word encoding, size;
	int8_t integer;

	if (is_pointer(dwarf_tag(type)) || is_integer(type, &integer))
		return PASSED_IN_REGISTER;
	if (dwarf_tag(type) == DW_TAG_base_type && get_number(type, DW_AT_encoding, &encoding) &&
	    encoding == DW_ATE_float && get_number(type, DW_AT_byte_size, &size))
		return PASSED_ELSEWHERE;
	return PASSED_NOT_KNOWN;
}

/*
 * A large structure is returned in memory, whose address is passed before all arguments. 1: the
 * function has that argument; 0: it has not; -1: unknown.
 */
static int has_hidden_argument(Dwarf_Die *subprogram)
{
	Dwarf_Word convention, size;
	Dwarf_Die type;

	if (!get_type(subprogram, &type) || !is_class(dwarf_tag(&type)))
		return 0;
	if (get_number(&type, DW_AT_calling_convention, &convention) &&
	    convention == DW_CC_pass_by_reference)
		return 1;
	if (dwarf_aggregate_size(&type, &size))
		return -1;
	return size > 16 ? 1 : -1;
}

enum place {
	PLACE_NONE,	/* the debug info gives none */
	PLACE_REGISTER, /* at the first instruction */
	PLACE_STACK,	/* of code that is not optimised, which stores it there, but only later */
	PLACE_OTHER,	/* it is a constant, in memory, or in several parts: no register has it */
};

static enum place place_of(Dwarf_Die *parameter, uint64_t vaddr, uint16_t *reg)
{
	Dwarf_Attribute attr;
	Dwarf_Op *ops;
	size_t n;

	if (dwarf_hasattr(parameter, DW_AT_const_value))
		return PLACE_OTHER;
	if (!dwarf_attr(parameter, DW_AT_location, &attr) ||
	    dwarf_getlocation_addr(&attr, vaddr, &ops, &n, 1) != 1 || !n)
		return PLACE_NONE;
	/* Relative to the frame base, rbx, rbp or rsp. */
	if (n == 1 && (ops[0].atom == DW_OP_fbreg || ops[0].atom == DW_OP_breg3 ||
		       ops[0].atom == DW_OP_breg6 || ops[0].atom == DW_OP_breg7))
		return PLACE_STACK;
	if (n != 1)
		return PLACE_OTHER;
	n = ops[0].atom == DW_OP_regx ? ops[0].number : (size_t)ops[0].atom - DW_OP_reg0;
	if (n >= sizeof(dwarf_registers) / sizeof(dwarf_registers[0]))
		return PLACE_OTHER;
	*reg = dwarf_registers[n];
	return PLACE_REGISTER;
}

static enum place place_at_entry(Dwarf_Die *subprogram, Dwarf_Die *parameter, uint64_t vaddr,
				 uint16_t *reg)
{
	Dwarf_Attribute origin;
	Dwarf_Die die, of;

	if (dwarf_child(subprogram, &die))
		return PLACE_NONE;
	do {
		/* In an instance of an abstract function its parameters have origins. */
		bool is_it = die.addr == parameter->addr ||
			     (dwarf_attr(&die, DW_AT_abstract_origin, &origin) &&
			      dwarf_formref_die(&origin, &of) && of.addr == parameter->addr);

		if (is_it && dwarf_tag(&die) == DW_TAG_formal_parameter)
			return place_of(&die, vaddr, reg);
	} while (!dwarf_siblingof(&die, &die));
	return PLACE_NONE;
}

/* LLVM removes arguments that a function does not use, and does not rename the function. */
static bool may_lack_arguments(Dwarf_Die *subprogram)
{
	Dwarf_Attribute attr;
	Dwarf_Die unit;
	const char *producer;

	if (!dwarf_diecu(subprogram, &unit, NULL, NULL))
		return true;
	producer = dwarf_formstring(dwarf_attr_integrate(&unit, DW_AT_producer, &attr));
	return !producer || strncmp(producer, "GNU ", strlen("GNU ")) != 0;
}

static bool next_parameter(Dwarf_Die *die)
{
	do {
		if (dwarf_tag(die) == DW_TAG_formal_parameter)
			return true;
	} while (!dwarf_siblingof(die, die));
	return false;
}

static int find_parameter(struct walk *walk, const struct function *function, Dwarf_Die *subprogram,
			  uint32_t arg)
{
	Dwarf_Die declaration = *subprogram, die;
	int hidden = has_hidden_argument(subprogram);
	uint32_t n_registers = hidden > 0;
	struct mt_arg *from = &walk->value->from;
	bool is_lost = hidden < 0, is_changed = function__is_clone(function), has_any;
	Dwarf_Attribute attr;
	Dwarf_Word convention;
	enum place place;
	uint16_t reg;

	if (dwarf_hasattr_integrate(subprogram, DW_AT_calling_convention))
		is_changed |= !get_number(subprogram, DW_AT_calling_convention, &convention) ||
			      convention != DW_CC_normal;
	/* The declaration has all parameters; an instance of it may lack some. */
	if (dwarf_attr(subprogram, DW_AT_abstract_origin, &attr) &&
	    !dwarf_formref_die(&attr, &declaration))
		declaration = *subprogram;
	has_any = !dwarf_child(&declaration, &die) && next_parameter(&die);
	for (uint32_t i = 0;; i++) {
		enum passing passing;

		if (!has_any)
			return refuse(walk, "the function has fewer arguments", NULL);
		/*
		 * GCC describes all variants of a constructor together, with "__in_chrg" and
		 * "__vtt_parm" after `this`. No variant gets the first; only the one for base
		 * classes gets the second.
		 */
		if (is_same(dwarf_diename(&die), "__in_chrg"))
			return refuse(walk,
				      "the class has virtual bases, so that its register is not "
				      "known",
				      NULL);
		if (!get_type(&die, &walk->type))
			return refuse(walk, "its type is not in the debug info", NULL);
		passing = passing_of(&walk->type);
		if (i == arg && passing != PASSED_IN_REGISTER)
			return refuse(walk, "it is neither an integer nor a pointer", NULL);
		place = place_at_entry(subprogram, &die, function->vaddr, &reg);
		is_changed |= place == PLACE_NONE && may_lack_arguments(subprogram);
		if (i == arg)
			break;
		is_lost |= passing == PASSED_NOT_KNOWN;
		n_registers += passing == PASSED_IN_REGISTER;
		has_any = !dwarf_siblingof(&die, &die) && next_parameter(&die);
	}
	if (place == PLACE_REGISTER) {
		from->base = reg;
		return 0;
	}
	if (is_changed || place == PLACE_OTHER)
		return refuse(walk, "the compiler has changed how this function gets its arguments",
			      NULL);
	if (is_lost)
		return refuse(walk,
			      "a structure is passed by value or returned, so that its "
			      "register is not known",
			      NULL);
	if (n_registers >= VALUE_REGISTERS)
		return refuse(walk, "it is passed on the stack", NULL);
	from->base = value_registers[n_registers];
	return 0;
}

static int find_begin(struct walk *walk, const struct function *function, Dwarf_Die *subprogram,
		      const struct value_path *path)
{
	struct mt_arg *from = &walk->value->from;
	int err = 0;

	from->kind = MT_ARG_REGISTER;
	from->base = VALUE_RETURN_REGISTER;
	if (!path->of_return)
		err = find_parameter(walk, function, subprogram, path->arg);
	else if (!get_type(subprogram, &walk->type))
		err = refuse(walk, "the function returns nothing, by its debug info", NULL);
	else if (passing_of(&walk->type) != PASSED_IN_REGISTER)
		err = refuse(walk, "it is neither an integer nor a pointer", NULL);
	return err;
}

/* True for languages that pass what their debug info calls an integer or a pointer as C does. */
static bool is_known_language(int language)
{
	static const int known[] = {DW_LANG_C89,
				    DW_LANG_C,
				    DW_LANG_C99,
				    DW_LANG_C11,
				    LANG_C17,
				    LANG_C23,
				    DW_LANG_C_plus_plus,
				    DW_LANG_C_plus_plus_03,
				    DW_LANG_C_plus_plus_11,
				    DW_LANG_C_plus_plus_14,
				    LANG_CPP17,
				    LANG_CPP20,
				    LANG_CPP23,
				    DW_LANG_ObjC,
				    DW_LANG_ObjC_plus_plus,
				    DW_LANG_Rust,
				    LANG_OLD_RUST};

	return ARRAY_FIND(known, e, *e == language);
}

/* A search for functions that the linker has put at one address, as their code is the same (--icf).
 */
struct folded_search {
	struct elf_image *image;
	uint64_t vaddr;
	size_t first, end; /* the functions at vaddr, in the image's order */
	size_t found;	   /* the one of them that a definition has been found of; SIZE_MAX: none */
	bool is_folded;
};

static void look_for_folded(struct folded_search *search, Dwarf_Die *parent, int depth)
{
	Dwarf_Die die;

	if (depth == DEPTH_MAX || dwarf_child(parent, &die))
		return;
	do {
		int tag = dwarf_tag(&die);
		Dwarf_Attribute attr;
		const char *name;
		Dwarf_Addr entry;

		if (tag == DW_TAG_namespace || tag == DW_TAG_module)
			look_for_folded(search, &die, depth + 1);
		/* Linkers that drop the code of a definition leave 0 as its address. */
		if (tag != DW_TAG_subprogram || dwarf_entrypc(&die, &entry) ||
		    (entry && entry != search->vaddr))
			continue;
		name = dwarf_formstring(dwarf_attr_integrate(&die, DW_AT_linkage_name, &attr))
			       ?: dwarf_diename(&die);
		for (size_t i = search->first; name && i < search->end; i++) {
			if (strcmp(search->image->symbols.v[i].function.raw_name, name))
				continue;
			search->is_folded |= search->found != SIZE_MAX && search->found != i;
			search->found = i;
			break;
		}
	} while (!search->is_folded && !dwarf_siblingof(&die, &die));
}

/*
 * True if the debug info defines another function whose code is at the function's address, too: an
 * alias is not defined a second time.
 */
static bool is_folded(const struct function *function, struct elf_debug *debug)
{
	struct elf_image *image = function->image;
	struct folded_search search = {.image = image, .vaddr = function->vaddr, .found = SIZE_MAX};
	Dwarf_CU *cu = NULL;
	Dwarf_Die unit;

	if (!elf_image__function_count(image))
		return false;
	search.first = VEC_PARTITION_POINT(&image->symbols, e, e->function.vaddr < search.vaddr);
	search.end = VEC_PARTITION_POINT(&image->symbols, e, e->function.vaddr <= search.vaddr);
	/* Most functions have one name, and need no search. */
	if (search.end - search.first < 2)
		return false;
	while (!search.is_folded &&
	       !dwarf_get_units(debug->dwarf, cu, &cu, NULL, NULL, &unit, NULL)) {
		elf_debug__go_to_split(&unit);
		look_for_folded(&search, &unit, 0);
	}
	return search.is_folded;
}

static int find_value(const struct function *function, const struct value_path *path,
		      struct walk *walk, enum value_type *type)
{
	struct elf_debug *debug = elf_image__debug_with_locations(function->image);
	struct mt_value *value = walk->value;
	Dwarf_Die unit, subprogram;
	Dwarf_Word room;
	int8_t size;
	int err;

	if (!debug || !elf_debug__unit_at(debug, function->vaddr, &unit))
		return -ENODATA;
	elf_debug__go_to_split(&unit);
	/* The assembler writes entries without types, also for OCaml. */
	if (dwarf_srclang(&unit) == DW_LANG_Mips_Assembler)
		return -ENODATA;
	if (!find_subprogram(&unit, function->vaddr, &subprogram, 0))
		return -ENODATA;
	if (!is_known_language(dwarf_srclang(&unit)))
		return refuse(walk, "how the function's language passes arguments is not known",
			      NULL);
	if (is_folded(function, debug))
		return refuse(walk,
			      "the linker has put several functions with the same code there, and "
			      "calls of each are hits",
			      NULL);
	err = find_begin(walk, function, &subprogram, path);
	for (size_t i = 0; i < path->n && !err; i++) {
		const struct value_step *step = &path->steps[i];

		if (step->kind == STEP_INDEX)
			err = take_index(walk, debug, step);
		else if (step->kind == STEP_OFFSET)
			err = refuse(walk, "with debug info members have names", NULL);
		else
			err = take_member(walk, debug, step);
	}
	/* A reference means the object that it refers to. */
	if (!err && is_reference(dwarf_tag(&walk->type)))
		err = follow(walk, debug, 0);
	if (err)
		return err;
	*type = settle_type(walk, &size);
	value->size = value->n_derefs ? size : 0;
	value->from.size = value->n_derefs ? 8 : size;
	value->is_address = *type == VALUE_CHARACTERS;
	/* "char name[1]" at the end of a structure is the old way to write "char name[]". */
	if (value->is_address && !dwarf_aggregate_size(&walk->type, &room) && room > 1 &&
	    room <= UINT32_MAX)
		value->room = (uint32_t)room;
	return 0;
}

int function__find_value(const struct function *function, const struct value_path *path,
			 struct mt_value *value, enum value_type *type,
			 char why[static VALUE_WHY_SIZE])
{
	struct walk walk = {.value = value, .why = why};
	int err;

	*value = (struct mt_value){0};
	pthread_mutex_lock(&function->image->source_lock);
	err = find_value(function, path, &walk, type);
	pthread_mutex_unlock(&function->image->source_lock);
	return err;
}
