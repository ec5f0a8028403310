# SPDX-License-Identifier: MIT
from service import Service, cause, free_port


class Redis(Service):
    needs = {'redis-server': 'redis-server', 'redis-cli': 'redis-tools'}
    symbol, threshold = 'call', '30ms'

    def start(self):
        self.port = free_port()
        self.pid = self.spawn('redis-server', '--port', self.port, '--bind', '127.0.0.1', '--save', '',
                              '--enable-debug-command', 'yes', '--dir', self.work).pid
        self.listens(self.port)
        self.ask('DEBUG', 'POPULATE', 200000, 'key', 1000)

    def ask(self, *words):
        return self.run('redis-cli', '-p', self.port, *words)

    def quick(self):
        self.ask('GET', 'key:1')

    @cause('on the CPU, in .*keysCommand')
    def keys(self):
        self.ask('KEYS', '*x')

    @cause('on the CPU, in .*(lua|eval)')
    def lua(self):
        self.ask('EVAL', 'local n = 0 for i = 1, 2e7 do n = n + i % 7 end return n', 0)

    @cause('blocked in .*(nanosleep|usleep|debugCommand).*.*nanosleep')
    def sleep(self):
        self.ask('DEBUG', 'SLEEP', '0.15')

    @cause('(on the CPU, (mostly )?in the kernel, for|page faults.* in) .*([Ff]ork|bgsave)', threshold='2ms')
    def fork(self):
        self.ask('BGSAVE')
