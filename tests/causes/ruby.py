# SPDX-License-Identifier: MIT
from service import Program, cause


class Ruby(Program):
    needs = {'ruby': 'ruby'}
    symbol = 'rb_ary_each'

    def command(self):
        return 'ruby', self.here / 'programs' / 'handler.rb'

    @cause(r'on the CPU, in .*(gc|libruby)', threshold='20ms')
    def gc(self):
        return self.ask('gc')

    @cause('on the CPU, in .*(onig|rb_reg_)')
    def regexp(self):
        return self.ask('regexp')

    @cause('blocked in .*mutex.*(futex|poll)')
    def mutex(self):
        return self.ask('mutex')
