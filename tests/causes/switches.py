# SPDX-License-Identifier: MIT
"""Who was on a CPU, and why not: the kernel's own record (ftrace), which mtbpf has no part in."""
import os
import pathlib
import re
import subprocess
import tempfile

# With both ends. What comes within another is part of that.
INTERRUPTS = {'irq': ('irq_handler', 'softirq'),
              'irq_vectors': ('local_timer', 'call_function', 'call_function_single')}
INTERRUPT = re.compile(r' \[(\d+)\] .* (\d+)\.(\d+): (?:irq_handler|softirq|local_timer|call_function|call_function_single)_(entry|exit): ')
ON_CPU = re.compile(r' \[(\d+)\] .*: sched_switch: .*prev_pid=(\d+) .* next_pid=(\d+) ', re.DOTALL)

# Names of threads may have a line's end in them. An event begins with a name, -PID and [CPU].
EVENT_END = re.compile(r'\n(?=[^\n]{0,16}-\d+ +\[\d+\] )')
LINE = re.compile(r' (\d+)\.(\d+): (sched_\w+): (.*)', re.DOTALL)
SWITCH = re.compile(r'prev_pid=(\d+) .*prev_state=(\S+) ==> .*next_pid=(\d+)', re.DOTALL)
WOKEN = re.compile(r' pid=(\d+) ')
# -PID [CPU] FLAGS, of which the third tells of interrupts
WAKER = re.compile(r'-(\d+) +\[\d+\] ..(.)')


class Switches:
    """The latest of the whole machine, from now until stop(); of interrupts only if asked for."""

    def __init__(self, with_interrupts=False):
        self.lines = []
        self.with_interrupts = with_interrupts
        self.root = pathlib.Path(tempfile.mkdtemp(prefix='tracefs.'))
        subprocess.run(['mount', '-t', 'tracefs', 'tracefs', self.root], check=True)
        self.instance = self.root / 'instances' / f'causes-{os.getpid()}'
        self.instance.mkdir()
        # Not by set_event_pid: with it, switches to the thread were missing now and then (6.18).
        self.put('trace_clock', 'mono')
        self.put('buffer_size_kb', '16384')
        for event in 'sched_switch', 'sched_waking':
            self.put(f'events/sched/{event}/enable', '1')
        for system, names in INTERRUPTS.items() if with_interrupts else ():
            for name in names:
                self.put(f'events/{system}/{name}_entry/enable', '1')
                self.put(f'events/{system}/{name}_exit/enable', '1')

    def put(self, name, text):
        (self.instance / name).write_text(text)

    def stop(self):
        self.put('tracing_on', '0')
        self.lines = EVENT_END.split((self.instance / 'trace').read_text(errors='replace'))

    def of(self, tid):
        """(ns, what it was from then on: on_cpu, blocked, preempted, or woken) of a thread"""
        for line in self.lines:
            m = f'pid={tid} ' in line + ' ' and LINE.search(line)
            if not m:
                continue
            time_ns = int(m[1]) * 10**9 + int(m[2]) * 10**3
            if m[3] == 'sched_waking':
                if int(WOKEN.search(m[4])[1]) == tid:
                    yield time_ns, 'woken'
                continue
            prev, state, after = SWITCH.search(m[4]).groups()
            if int(prev) == tid:
                yield time_ns, 'preempted' if state[0] == 'R' else 'blocked'
            if int(after) == tid:
                yield time_ns, 'on_cpu'

    def wakers(self, tid):
        """Who woke it, but for interrupts, which come while anybody runs. A softirq that ends a sleep may well be
        that thread's doing, what it has sent over loopback; one that ends a wait for a disk is not."""
        state = None
        for line in self.lines:
            if f' prev_pid={tid} ' in line:
                state = SWITCH.search(line)[2]
            elif ': sched_waking: ' in line and f' pid={tid} ' in line:
                waker, context = WAKER.search(line).groups()
                if context not in 'hHzZ' and (context != 's' or state != 'D'):
                    yield int(waker)

    def account(self, tid, start_ns, end_ns):
        """ns on a CPU, blocked, runnable (woken) and preempted; unknown are those that end with a thread leaving
        a CPU that it was not seen to get (where a hypervisor's agent in the guest hides its switches)"""
        sums = dict.fromkeys(('on_cpu', 'blocked', 'runnable', 'preempted', 'unknown'), 0)
        events = list(self.of(tid))
        # Before its first event it was what that ends; without any it was on a CPU all the time.
        state = {'on_cpu': 'preempted', 'woken': 'blocked'}.get(events[0][1] if events else None, 'on_cpu')
        since = start_ns
        woken_early = woken_since = False
        for time_ns, then in [*events, (end_ns, None)]:
            # Since it was seen to run. Wherever it ran unseen, that may be what ended its last sleep.
            slept_unseen = state == 'blocked' and then == 'on_cpu' and woken_since and not woken_early
            woken_since = then == 'woken' or (woken_since and then != 'on_cpu')
            if (then, state) == ('woken', 'preempted'):
                # On its way to sleep, either before that, or since: what comes next tells which.
                continue
            at = min(max(time_ns, start_ns), end_ns)
            if state == 'woken_again':
                state = 'runnable' if then == 'on_cpu' else 'on_cpu'
            # Nor is one woken twice, or leaves a CPU that it did not have: it ran, and that was not seen.
            is_woken = state == 'runnable' or (state == 'blocked' and woken_early)
            unseen = is_woken if then == 'woken' else then in ('blocked', 'preempted') and state != 'on_cpu'
            unseen = unseen or slept_unseen
            # Nobody runs again without a wake-up: this one came when it was on its way to sleep.
            was_woken = state == 'blocked' and then == 'on_cpu' and woken_early
            sums['unknown' if unseen else 'runnable' if was_woken else state] += at - since
            since = at
            if then != 'woken':
                woken_early = woken_early and then == 'blocked'
                state = then
            elif state == 'blocked' and not unseen:
                state = 'runnable'
            else:
                # By itself this says nothing: it may have gone to sleep later.
                woken_early = True
                state = 'woken_again' if unseen else state
        return sums

    def interrupts(self, tid, start_ns, end_ns):
        """ns that interrupts and softirqs took from a thread that stays on one CPU, and how many more that may
        be: those before it was seen to leave the CPU, and not to get it"""
        cpu = next(m[1] for m in map(ON_CPU.search, self.lines) if m and int(m[3]) == tid)
        depth = since = total = others = unknown = 0
        runs = True
        for line in self.lines:
            if f' [{cpu}] ' not in line:
                continue
            if m := ON_CPU.search(line):
                unknown += others if int(m[2]) == tid and not runs else 0
                runs, depth, others = int(m[3]) == tid, 0, 0
            m = INTERRUPT.search(line)
            if not m:
                continue
            time_ns = min(max(int(m[2]) * 10**9 + int(m[3]) * 10**3, start_ns), end_ns)
            if m[4] == 'entry':
                since = since if depth else time_ns
                depth += 1
            elif depth:
                depth -= 1
                took = 0 if depth else time_ns - since
                total += took if runs else 0
                others += 0 if runs else took
        return total, unknown

    def close(self):
        try:
            self.instance.rmdir()
        finally:
            subprocess.run(['umount', self.root], check=True)
            self.root.rmdir()
