# SPDX-License-Identifier: MIT
"""Judges a report: is the planted cause in its reason, and do its figures agree with independent ones?"""
import collections
import re

Verdict = collections.namedtuple('Verdict', 'what reason disagrees', defaults=[[]])

# The parts of the account that are time without a CPU. The others are time with one, or not recorded.
WAITING = ('runnable', 'preempted', 'throttled', 'stolen')


def differ(name, said, known, not_said=0, not_known=0):
    """A line where they are more than 5 % and more than 1 ms apart, even if all of what either does not know
    belongs there."""
    tolerance = max(10**6, known / 20)
    if known - not_said - tolerance <= said <= known + not_known + tolerance:
        return []
    return [f'{name}: it says {said / 1e6:.2f} ms, known are {known / 1e6:.2f} ms']


def check_account(report, kernel, known):
    """Where the account disagrees with the kernel's record of switches, and with `known`: what the program
    and the machine's counters say."""
    account = {key.removesuffix('_ns'): ns for key, ns in report['account']['slow'].items()}
    lines = differ('its parts and the iteration', sum(account.values()), report['slow_ns'])
    if kernel:
        # To the switches runnable and preempted and throttled are much the same, and time that was stolen is time on a CPU.
        stolen = account.get('stolen', 0)
        waiting = sum(account.get(part, 0) for part in WAITING) - stolen
        unknown = account.get('not_recorded', 0), kernel['unknown']
        blocked = account['blocked'] + account.get('reclaim_blocked', 0)
        lines += differ('on a CPU', sum(account.values()) - blocked - waiting - unknown[0],
                        kernel['on_cpu'], *unknown)
        lines += differ('blocked', blocked, kernel['blocked'], *unknown)
        lines += differ('waiting for a CPU', waiting, kernel['runnable'] + kernel['preempted'], *unknown)
    waits = [w for f in report['functions'] for w in f.get('waits', []) if w['for'] == 'stop-the-world']
    for part, ns in known.items():
        name = part + ', as others know it'
        if part == 'waker':
            continue
        if part == 'stopped':
            lines += differ(name, sum(w['ns'] for w in waits), ns)
        elif part == 'total':
            # Its clock is read before the call and after it: it may have waited for a CPU there.
            around = kernel['around'] if kernel else sum(account.get(part, 0) for part in WAITING)
            lines += differ(name, report['slow_ns'], ns, not_said=around)
        else:
            lines += differ(name, account.get(part, 0), ns)
    return lines


def check_wakers(reason, wakers):
    """Whom it names as wakers, where only interrupts woke the thread while these ran."""
    wakers = set(wakers)
    for named in re.findall(r'woken by ([^;]*)', reason):
        for who, tid in re.findall(r'([^,]+) \((\d+)\)', named):
            if int(tid) not in wakers:
                yield f'woken by {who.strip()} ({tid}): the kernel has no such wake-up, but for interrupts'


def check_goroutine(reason, goroutine):
    """Whom it names as the one that made the goroutine ready; 0: there is none."""
    for named in re.findall(r'made ready by goroutine (\d+)', reason):
        if int(named) != goroutine:
            yield f'made ready by goroutine {named}: it was {goroutine or "nobody"}'


def account_around(switches, report, end_ns, total_ns):
    """The kernel's account of the slow iteration; and how long the thread had no CPU just before it and just
    after it, as far as its own clock may have counted that."""
    tid, start_ns = report['hit']['tid'], end_ns - report['slow_ns']
    kernel = switches.account(tid, start_ns, end_ns)
    more_ns = max(total_ns - report['slow_ns'], 0)
    sides = [switches.account(tid, *span) for span in ((start_ns - more_ns, start_ns), (end_ns, end_ns + more_ns))]
    return dict(kernel, around=sum(side['runnable'] + side['preempted'] + side['unknown'] for side in sides))


def judge(cause, attach, known):
    """`known` is what the cause returned: {"total" or a part of the account: ns}"""
    report = attach.report
    if not report or 'reasons' not in report:
        said = [line for line in attach.said().split('\n') if line.startswith(('mtbpf:', 'no report', 'lost:'))]
        return Verdict('none', '; '.join(said) or ('no reason' if report else 'no report'))
    reason, end_ns = '; '.join(report['reasons']), int(attach.recording['frozen_ns'], 0)
    kernel = cause.look and account_around(attach.switches, report, end_ns, known.get('total', 0))
    disagrees = check_account(report, kernel, known)
    if attach.switches.with_interrupts:
        took, unknown = attach.switches.interrupts(report['hit']['tid'], end_ns - report['slow_ns'], end_ns)
        disagrees += differ('interrupts', report['account']['slow'].get('interrupts_ns', 0), took, not_known=unknown)
    if 'waker' in known:
        disagrees += check_goroutine(reason, known['waker'])
    if cause.look:
        disagrees += check_wakers(reason, attach.switches.wakers(report['hit']['tid']))
    if cause.says.search(reason):
        return Verdict('right', reason, disagrees)
    if 'not recorded' in reason:
        return Verdict('not recorded', reason, disagrees)
    # Without a CPU for half of it, and not for the planted reason.
    others = kernel and kernel['runnable'] + kernel['preempted'] - known.get('throttled', 0) > report['slow_ns'] / 2
    if others and 'its CPU was taken' in reason:
        return Verdict('spoiled', reason, disagrees)
    return Verdict('wrong', reason, disagrees)
