# SPDX-License-Identifier: MIT
from service import Program, cause


class Java(Program):
    needs = {'javac': 'default-jdk-headless'}
    args = ('-snapshot-size', '32M')  # its own threads collect garbage as long
    symbol = 'libjvm.so:JVM_InvokeMethod'

    def command(self):
        self.run('javac', '-d', self.work, self.here / 'programs' / 'Handler.java')
        return ('java', '-Xmx1g', '-XX:+UseSerialGC', '-XX:-UseCountedLoopSafepoints', '-XX:LoopStripMiningIter=0',
                '-Dsun.reflect.inflationThreshold=2147483647', '-cp', self.work, 'Handler', 'live')

    @cause('blocked in .*([Mm]onitor|park).*futex')
    def synchronized(self):
        return self.ask('waitForLock')

    @cause('blocked in .*(GC|VMThread::execute|JVM_GC)')
    def gc(self):
        return self.ask('collect')

    @cause('blocked in .*([Ss]afepoint|WaitBarrier)')
    def safepoint(self):
        return self.ask('allocate')
