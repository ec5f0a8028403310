# SPDX-License-Identifier: MIT
"""Judges a report: is the planted cause in its reason, and do its figures agree with independent ones?"""
import collections

Verdict = collections.namedtuple('Verdict', 'what reason disagrees', defaults=[[]])

OFF = ('blocked', 'runnable', 'preempted', 'throttled', 'stolen')
PARTS = ('on_cpu', 'page_faults', 'not_recorded', *OFF)


def account_of(report):
    """{part: ns} of the slow iteration"""
    if 'account' in report:
        return {part: report['account']['slow'].get(part + '_ns', 0) for part in PARTS}
    account = dict.fromkeys(PARTS, 0)
    for row in report['functions']:
        part = row['name'].strip('[]') if row['name'].startswith('[') else ''
        account[part if part in OFF else 'on_cpu'] += row['slow_ns']
    return account


def differ(name, said, known):
    """A line where they are more than 5 % and more than 1 ms apart."""
    if abs(said - known) <= max(10**6, known / 20):
        return []
    return [f'{name}: it says {said / 1e6:.2f} ms, known are {known / 1e6:.2f} ms']


def check_account(report, kernel, known):
    """Where the account disagrees with the kernel's record and with what the program knows."""
    said = account_of(report)
    lines = differ('its parts and the iteration', sum(said.values()), report['slow_ns'])
    if kernel:
        # To be without a CPU is one thing to the switches, whatever the report calls it.
        lines += differ('on CPU', said['on_cpu'] + said['page_faults'] + said['not_recorded'], kernel['on_cpu'])
        lines += differ('blocked', said['blocked'], kernel['blocked'])
        lines += differ('runnable', said['runnable'] + said['preempted'] + said['throttled'] + said['stolen'],
                        kernel['runnable'] + kernel['preempted'])
    for part, ns in known.items():
        lines += differ(part + ', by the program', report['slow_ns'] if part == 'total' else said[part], ns)
    return lines


def judge(cause, attach, known):
    report = attach.report
    if not report or 'reason' not in report:
        said = [line for line in attach.said().split('\n') if line.startswith(('mtbpf:', 'no report', 'lost:'))]
        return Verdict('none', '; '.join(said) or ('no reason' if report else 'no report'))
    reason, end_ns = report['reason'], int(attach.recording['frozen_ns'], 0)
    kernel = cause.look and attach.switches.account(report['hit']['tid'], end_ns - report['slow_ns'], end_ns)
    disagrees = check_account(report, kernel, known)
    if cause.says.search(reason):
        return Verdict('right', reason, disagrees)
    if 'not recorded' in reason:
        return Verdict('not recorded', reason, disagrees)
    others = kernel and kernel['runnable'] + kernel['preempted'] - known.get('throttled', 0) > report['slow_ns'] / 2
    if others and ('ready to run' in reason or 'CPU was taken' in reason):
        return Verdict('spoiled', reason, disagrees)
    return Verdict('wrong', reason, disagrees)
