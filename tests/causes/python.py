# SPDX-License-Identifier: MIT
from service import Program, cause


class Python(Program):
    # The second has the symbols of the first.
    needs = {'/usr/bin/python3': 'python3', 'python3-dbg': 'python3-dbg'}
    symbol = 'PyEval_EvalCode'

    def command(self):
        return '/usr/bin/python3', self.here / 'programs' / 'handler.py'

    @cause('blocked in .*(take_gil|RestoreThread|cond_timedwait|futex).*futex')
    def gil(self):
        return self.ask('gil')

    @cause('on the CPU, in .*([Gg][Cc]_|traverse|visit)')
    def gc(self):
        return self.ask('gc')

    @cause('blocked in .*(PyThread_acquire_lock|sem_).*: futex')
    def lock(self):
        return self.ask('lock')

    @cause('blocked in .*(PyThread_acquire_lock|sem_).*: futex')
    def young_thread(self):
        return self.ask('young')
