# SPDX-License-Identifier: MIT
import os

from service import Program, cause


class Go(Program):
    needs = {'go': 'golang-go'}
    symbol = 'main.handle'
    look = False
    flags = ()

    def command(self):
        self.run('go', 'build', *self.flags, '-o', self.work / 'handler', self.here / 'programs' / 'handler.go',
                 env=dict(os.environ, GOCACHE=str(self.build / 'gocache'), GO111MODULE='off', CGO_ENABLED='0'))
        return (self.work / 'handler',)

    @cause(r'(semacquire|sync\.\(?\*?Mutex)')
    def mutex(self):
        return self.ask('mutex')

    @cause('chan(nel)? receive')
    def channel(self):
        return self.ask('channel')

    @cause(r'^(?!.*main\.handle > runtime\.(systemstack|mcall)).*(GC|gc)', threshold='10ms')
    def gc(self):
        return self.ask('gc')

    @cause(r'on the CPU, in .*main\.busyHandler > main\.renderPage')
    def busy(self):
        return self.ask('busy')


class Go_stripped(Go):
    flags = ('-ldflags', '-s -w')

    @cause(r'on the CPU, in .*main\.busyHandler > main\.renderPage')
    def busy(self):
        return self.ask('busy')
