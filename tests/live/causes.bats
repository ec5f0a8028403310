# SPDX-License-Identifier: MIT
# The short part of `make causes`: what needs no packages, once each, and that its judge finds faults.

load causes

tried() {
	command -v python3 >/dev/null || skip "needs python3"
	# The service runs as nobody, who cannot enter a clone in /root.
	setpriv --reuid nobody --regid nogroup --clear-groups test -x "$O/programs/causes" ||
		skip "the user nobody cannot run $O/programs/causes"
	run env CAUSES_INSTALL=no timeout -k 5 120 "$BATS_TEST_DIRNAME/../causes/run" -runs 1 "$@"
	echo "$output"
	[ "$status" -eq 0 ]
	for cause; do
		# right, not recorded, spoiled, wrong, none, account
		grep -Eq "^$cause +(1 +0 +0|0 +0 +1) +0 +0 +0 " <<<"$output"
	done
}

@test "a slow path, a lock and answers that come late, by a pipe and by TCP: the report names them, its account is the kernel's" {
	tried machine.branch machine.lock machine.read machine.tcp
}

@test "page faults, and others on the same CPU" {
	tried machine.faults hog.hog
}

# bats test_tags=slow
@test "timers that interrupt its CPU: a part of the account, as long as the kernel's own events say" {
	tried storm.interrupts
}

@test "a reason that names another cause is wrong, and figures that are off are found" {
	command -v python3 >/dev/null || skip "needs python3"
	PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=$BATS_TEST_DIRNAME/../causes python3 - <<-'END'
	import re
	from types import SimpleNamespace as Some
	from judge import judge

	def judged(reason, on_cpu, blocked, preempted, known={}):
	    account = dict(on_cpu_ns=on_cpu, blocked_ns=blocked, preempted_ns=preempted)
	    report = dict(slow_ns=10**8, hit=dict(tid=1), reasons=[reason], functions=[], account=dict(slow=account))
	    kernel = dict(on_cpu=10**7, blocked=0, runnable=0, preempted=9 * 10**7, unknown=0)
	    attach = Some(report=report, recording=dict(frozen_ns='0x0'), switches=Some(with_interrupts=False, account=lambda *_: kernel, wakers=lambda _: [7]))
	    return judge(Some(says=re.compile('in f'), look=True), attach, known)

	taken = 'ready to run, but its CPU was taken'
	assert judged('in f', 10**7, 0, 9 * 10**7) == ('right', 'in f', [])
	assert judged(taken, 10**7, 0, 9 * 10**7).what == 'spoiled'
	assert judged(taken, 10**7, 0, 9 * 10**7, dict(throttled=9 * 10**7)).what == 'wrong'
	assert judged('in g', 10**7, 0, 9 * 10**7).what == 'wrong'
	assert judged('not recorded: 9 ms', 10**7, 0, 9 * 10**7).what == 'not recorded'
	assert len(judged('in f', 10**7, 9 * 10**7, 0).disagrees) == 2
	assert len(judged('in f', 10**7, 0, 8 * 10**7).disagrees) == 2
	assert len(judged('in f', 10**7, 0, 9 * 10**7, dict(total=3 * 10**8)).disagrees) == 1
	assert judged('in f, woken by helper (7); 1 ms', 10**7, 0, 9 * 10**7).disagrees == []
	assert len(judged('in f, woken by helper (7), awk (8)', 10**7, 0, 9 * 10**7).disagrees) == 1
	assert judged('in f, made ready by goroutine 7 in f; 1 ms', 10**7, 0, 9 * 10**7, dict(waker=7)).disagrees == []
	assert len(judged('in f, made ready by goroutine 8; 1 ms', 10**7, 0, 9 * 10**7, dict(waker=7)).disagrees) == 1
	END
}

@test "a thread that is woken on its way to sleep is runnable once it sleeps, in the judge's record" {
	command -v python3 >/dev/null || skip "needs python3"
	PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=$BATS_TEST_DIRNAME/../causes python3 - <<-'END'
	from switches import Switches

	def account(*events):
	    lines = {'on': 'sched_switch: prev_comm=a prev_pid=1 prev_prio=120 prev_state=S ==> next_comm=b next_pid=7 next_prio=120',
	             'sleeps': 'sched_switch: prev_comm=b prev_pid=7 prev_prio=120 prev_state=S ==> next_comm=a next_pid=1 next_prio=120',
	             'preempted': 'sched_switch: prev_comm=b prev_pid=7 prev_prio=120 prev_state=R ==> next_comm=a next_pid=1 next_prio=120',
	             'woken': 'sched_waking: comm=b pid=7 prio=120 target_cpu=000'}
	    record = Switches.__new__(Switches)
	    record.lines = [f'a-1 [000] d..2. 1.{at:06}: {lines[what]}' for at, what in events]
	    return record.account(7, 10**9, 10**9 + 9000)

	early = account((1, 'on'), (2, 'woken'), (3, 'sleeps'), (8, 'on'))
	assert (early['runnable'], early['blocked']) == (5000, 0), early
	# It may have slept again later, or have run when nobody saw that.
	later = account((1, 'on'), (2, 'woken'), (3, 'sleeps'), (6, 'woken'), (8, 'on'))
	assert (later['runnable'], later['unknown']) == (2000, 3000), later
	assert account((1, 'on'), (3, 'sleeps'), (8, 'on'))['blocked'] == 5000
	# It ran in between, and nobody saw that: nor whether it was woken before it slept.
	unseen = account((1, 'on'), (3, 'preempted'), (6, 'woken'), (7, 'sleeps'), (8, 'on'))
	assert (unseen['unknown'], unseen['blocked']) == (5000, 0), unseen
	unseen = account((1, 'on'), (2, 'sleeps'), (4, 'woken'), (5, 'sleeps'), (8, 'on'))
	assert (unseen['unknown'], unseen['blocked'], unseen['runnable']) == (4000, 2000, 0), unseen
	unseen = account((1, 'on'), (2, 'sleeps'), (4, 'woken'), (5, 'sleeps'), (7, 'woken'), (8, 'on'))
	assert (unseen['unknown'], unseen['blocked'], unseen['runnable']) == (1000, 4000, 1000), unseen
	unseen = account((1, 'on'), (2, 'sleeps'), (3, 'woken'), (6, 'woken'), (7, 'sleeps'), (8, 'on'))
	assert unseen['unknown'] == 3000, unseen
	END
}
