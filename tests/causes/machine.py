# SPDX-License-Identifier: MIT
"""tests/programs/causes.c, and what a machine does to it."""
from service import Program, cause

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

    @cause(r'[0-9]{4,} page faults.* in .*touch_pages')
    def faults(self):
        return self.ask('faults')

    @cause(r'(blocked in|on the CPU, in the kernel, for) .*read_file', threshold='5ms')
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

    @cause('reclaim|[0-9]{4,} page faults.* in .*touch_pages', threshold='20ms')
    def reclaim(self):
        self.ask('dirty')
        return self.ask('few')
