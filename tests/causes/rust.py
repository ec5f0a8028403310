# SPDX-License-Identifier: MIT
from service import Program, cause


class Rust(Program):
    needs = {'rustc': 'rustc'}
    symbol = 'handle_request'

    def command(self):
        self.run('rustc', '-O', '-g', '-o', self.work / 'handler', self.here / 'programs' / 'handler.rs')
        return (self.work / 'handler',)

    @cause('on the CPU, in .*(sort_rows|merge_sort|insert_head)')
    def sort(self):
        return self.ask('sort')

    @cause('blocked in .*(wait_for_lock|lock_contended).*: futex')
    def mutex(self):
        return self.ask('mutex')

    @cause('blocked in .*(recv|park).*: futex')
    def channel(self):
        return self.ask('channel')
