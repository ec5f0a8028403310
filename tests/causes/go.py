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

    def ask(self, what):
        """Of garbage collections the program knows how long they stopped the world, in the planted call or not."""
        known = super().ask(what)
        del known['stopped']
        return known

    @cause(r'(semacquire|sync\.\(?\*?Mutex).*, made ready by goroutine [0-9]+ in main\.prepare\.func1')
    def mutex(self):
        return self.ask('mutex')

    @cause(r'chan(nel)? receive, made ready by goroutine [0-9]+ in main\.prepare\.func2')
    def channel(self):
        return self.ask('channel')

    @cause(r'^(?!.*main\.handle > runtime\.(systemstack|mcall)).*(GC|gc)', threshold='10ms')
    def gc(self):
        return self.ask('gc')

    @cause(r'on the CPU, in .*main\.busyHandler > main\.renderPage')
    def busy(self):
        return self.ask('busy')

    @cause(r'on the CPU, in .*(runtime\.gcAssistAlloc|in GC assist)', args=['-unwind', 'fp'])
    def assist(self):
        return self.ask('assist')


class Go_stops(Go):
    """A loop that takes no signal, and makes no calls, keeps the garbage collector waiting, and all others with it."""
    def command(self):
        return 'env', 'GODEBUG=asyncpreemptoff=1', 'GOMAXPROCS=4', *super().command()

    # While it waits it tries again all the time, and each try is two switches.
    @cause(r'blocked in .*: stop-the-world', args=['-unwind', 'fp'])
    def stopped(self):
        return Program.ask(self, 'stopped')


class Go_stripped(Go):
    flags = ('-ldflags', '-s -w')

    @cause(r'on the CPU, in .*main\.busyHandler > main\.renderPage')
    def busy(self):
        return self.ask('busy')
