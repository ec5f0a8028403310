# SPDX-License-Identifier: MIT
import sqlite3
import subprocess
import threading
import time

from service import Service, cause


class Sqlite(Service):
    needs = {'sqlite3': 'sqlite3'}
    symbol = 'libsqlite3.so.0:sqlite3_step'

    def start(self):
        self.path = self.work / 'db'
        self.program = self.spawn('sqlite3', '-batch', self.path, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                  text=True, bufsize=1)
        self.pid = self.program.pid
        self.sql('.timeout 5000')
        self.sql('create table list (i integer, t text); create table one (i); insert into one values (1);'
                 'with recursive n(i) as (values(1) union all select i + 1 from n where i < 500000) '
                 'insert into list select i, hex(randomblob(8)) from n')

    def sql(self, sql):
        self.program.stdin.write(sql + ('' if sql.startswith('.') else ';') + '\n.print done\n')
        for line in iter(self.program.stdout.readline, 'done\n'):
            if not line:
                raise RuntimeError('sqlite3 ended: ' + (self.work / 'log').read_text()[-300:])

    def quick(self):
        self.sql('select * from one')

    @cause(r'on the CPU, in .*(libsqlite3|sqlite3VdbeExec)', threshold='20ms')
    def scan(self):
        self.sql("select count(*) from list where t like '%ABCD%'")

    @cause('blocked in .*BusyHandler.*nanosleep')
    def busy(self):
        other = sqlite3.connect(self.path, isolation_level=None, check_same_thread=False)
        other.execute('begin exclusive')
        release = threading.Timer(0.2, lambda: other.execute('commit'))
        release.start()
        self.sql('update one set i = i + 1')
        release.join()
        other.close()
