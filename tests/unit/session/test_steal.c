// SPDX-License-Identifier: MIT
/* Which machines are told what is stolen from them. */
#include "kernel/kernel.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <string.h>

static bool is_told(struct steal_facts facts)
{
	return steal__is_told(&facts);
}

static void test_nothing_is_stolen_from_a_real_machine(void **state)
{
	assert_true(is_told((struct steal_facts){.is_guest = false}));
}

static void test_kvm_tells_where_it_says_so(void **state)
{
	struct steal_facts kvm = {.is_guest = true, .hypervisor = "KVMKVMKVM"};

	assert_false(is_told(kvm));
	kvm.kvm_features = 1u << 5;
	assert_true(is_told(kvm));
	kvm.is_refused = true;
	assert_false(is_told(kvm));
}

/* The same bit means something else there. */
static void test_others_do_not(void **state)
{
	struct steal_facts other = {
		.is_guest = true, .hypervisor = "Microsoft Hv", .kvm_features = ~0u};

	assert_false(is_told(other));
	strcpy(other.hypervisor, "");
	assert_false(is_told(other));
	strcpy(other.hypervisor, "XenVMMXenVMM");
	assert_true(is_told(other));
}

static void test_who_was_told_once_is_told(void **state)
{
	assert_true(is_told((struct steal_facts){
		.is_guest = true, .hypervisor = "VMwareVMware", .any_stolen = true}));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_nothing_is_stolen_from_a_real_machine),
		cmocka_unit_test(test_kvm_tells_where_it_says_so),
		cmocka_unit_test(test_others_do_not),
		cmocka_unit_test(test_who_was_told_once_is_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
