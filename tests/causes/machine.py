# SPDX-License-Identifier: MIT
"""tests/programs/causes.c, and what a machine does to it."""
import ctypes
import fcntl
import os
import struct

from service import Program, cause

PERF_EVENT_OPEN, ENABLE, DISABLE = 298, 0x2400, 0x2401


def cpu_clock(cpu, period_ns):
    """A timer that interrupts this CPU all the time, once it is enabled: its descriptor."""
    # type PERF_TYPE_SOFTWARE, size, config PERF_COUNT_SW_CPU_CLOCK, period, ..., disabled
    attr = struct.pack('IIQQQQQ', 1, 64, 0, period_ns, 0, 0, 1).ljust(64, b'\0')
    fd = ctypes.CDLL(None, use_errno=True).syscall(PERF_EVENT_OPEN, attr, -1, cpu, -1, 8)
    if fd < 0:
        raise OSError(ctypes.get_errno(), 'perf_event_open')
    return fd


class _Causes(Program):
    symbol, threshold = 'one_iter', '20ms'

    def command(self, *args):
        return self.build / 'programs' / 'causes', 'ask', *(args or ('branch', self.work / 'file'))


class Machine(_Causes):
    def start(self):
        super().start()
        self.write_file(64)

    @cause('on the CPU, in .*(slow_branch|work_us)')
    def branch(self):
        return self.ask('branch')

    @cause(r'blocked in .*: futex held by helper \([0-9]+\), woken by helper ')
    def lock(self):
        return self.ask('lock')

    @cause(r'blocked in .*: read of pipe:\[[0-9]+\] \(fd [0-9]+\), woken by helper ')
    def read(self):
        return self.ask('read')

    # Nobody is named if an interrupt ended just before the softirq that delivered the answer.
    @cause(r'blocked in .*: recvfrom of TCP 127\.0\.0\.1:[0-9]+ to 127\.0\.0\.1:[0-9]+ \(fd [0-9]+\)(, woken by helper |;)')
    def tcp(self):
        return self.ask('tcp')

    @cause(r'[0-9]{4,} page faults.* in .*touch_pages')
    def faults(self):
        return self.ask('faults')

    @cause(r'(blocked in|on the CPU, (mostly )?in the kernel, for) .*read_file', threshold='5ms')
    def cold_read(self):
        self.drop_file()
        return self.ask('cold')

    @cause(r'page faults?.* in .*touch_file', threshold='5ms')
    def cold_map(self):
        self.drop_file()
        return self.ask('map')


class Hog(_Causes):
    def command(self):
        return super().command('hog')

    @cause(r'(ready to run, but its CPU was taken|preempted).*, by (.*, )?hog ')
    def hog(self):
        return self.ask('hog')


class Storm(_Causes):
    """Each call does the same; the slow one while timers interrupt its CPU, as many as make it slow here."""
    threshold = '36ms'
    with_interrupts = True
    # How many, and how far apart
    storms = (1, 100), (1, 60), (1, 40), (1, 30), (1, 20), *((n, 20) for n in range(2, 9))

    def start(self):
        super().start()
        cpu = min(os.sched_getaffinity(0))
        os.sched_setaffinity(self.pid, {cpu})
        self.come_first()
        for count, period_us in self.storms:
            # Not whole microseconds: in these ftrace prints times, and would round all of them alike.
            self.timers = [cpu_clock(cpu, period_us * 1000 + 137) for _ in range(count)]
            if min(self.stormy()['total'] for _ in range(3)) > 44 * 10**6:
                break
            self.close()
        self.at_end.append(self.close)

    def close(self):
        while self.timers:
            os.close(self.timers.pop())

    def stormy(self):
        for timer in self.timers:
            fcntl.ioctl(timer, ENABLE)
        try:
            return self.ask('loop')
        finally:
            for timer in self.timers:
                fcntl.ioctl(timer, DISABLE)

    def quick(self):
        self.ask('loop')

    @cause('its CPU ran interrupts')
    def interrupts(self):
        return self.stormy()


class Quota(_Causes):
    first = False

    def start(self):
        super().start()
        self.limit('cpu', {'cpu.cfs_period_us': 100000, 'cpu.cfs_quota_us': 10000}, {'cpu.max': '10000 100000'})

    def throttled_ns(self):
        stat = dict(line.split() for line in (self.group / 'cpu.stat').read_text().splitlines())
        return int(stat['throttled_time']) if 'throttled_time' in stat else int(stat['throttled_usec']) * 1000

    @cause('throttled')
    def quota(self):
        before = self.throttled_ns()
        return dict(self.ask('branch'), throttled=self.throttled_ns() - before)


class Slow_disk(_Causes):
    def start(self):
        super().start()
        self.write_file(64)
        self.slow_disk(read=256, write=32)

    @cause('blocked in .*read_file.*: read of ', threshold='50ms')
    def slow_read(self):
        self.drop_file()
        return self.ask('cold')

    @cause('blocked in .*write_file.*: fsync of ', threshold='30ms')
    def slow_fsync(self):
        return self.ask('sync')


class Little_memory(_Causes):
    def start(self):
        super().start()
        self.limit('memory', {'memory.limit_in_bytes': 64 << 20}, {'memory.max': 64 << 20})

    @cause(r'memory reclaim: the limit of cgroup /mtbpf-causes-[0-9]+, .* in .*touch_pages', threshold='20ms')
    def reclaim(self):
        # Anew: what was on the disk already is written so fast that reclaim takes no time.
        (self.work / 'file').unlink(missing_ok=True)
        self.ask('dirty')
        return self.ask('few')
