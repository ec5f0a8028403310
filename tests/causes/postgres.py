# SPDX-License-Identifier: MIT
import glob
import pathlib
import re
import subprocess
import time

from service import Service, cause, free_port, wait_for


def exec_sort():
    """How a report names the executor's sort, ExecSort(): Debian's postgres has no symbol for it. ExecInitSort(),
    which has one, takes its address first."""
    for postgres in sorted(glob.glob('/usr/lib/postgresql/*/bin/postgres'))[-1:]:
        code = subprocess.run(['objdump', '-d', '--disassemble=ExecInitSort', postgres], capture_output=True, text=True)
        address = re.search(r'lea .*# ([0-9a-f]+) ', code.stdout)
        if address:
            return rf'\[postgres\+0x{address[1]}\];'
    return 'ExecSort;'


EXEC_SORT = exec_sort()


class _Postgres(Service):
    needs = {'pg_ctlcluster': 'postgresql', 'objdump': 'binutils'}
    symbol = 'PortalRun'

    def start(self):
        self.port = free_port()
        self.bin = pathlib.Path(sorted(glob.glob('/usr/lib/postgresql/*/bin'))[-1])
        self.run(self.bin / 'initdb', '-D', 'data', '-A', 'trust', '-U', 'causes', cwd=self.work, user='nobody')
        self.server = self.spawn(self.bin / 'postgres', '-D', 'data', '-p', self.port, '-k', self.work,
                                 '-c', 'listen_addresses=127.0.0.1', '-c', 'jit=off',
                                 '-c', 'max_parallel_workers_per_gather=0', '-c', 'autovacuum=off',
                                 '-c', 'wal_writer_delay=10s')  # which would flush the log before the commit does
        self.listens(self.port)
        wait_for('PostgreSQL', lambda: not subprocess.run([self.bin / 'pg_isready', '-q', '-h', '127.0.0.1', '-p',
                                                           str(self.port)]).returncode)
        self.session, self.other = self.psql(), self.psql()
        self.sql("create table rows as select i, md5(i::text) as text from generate_series(1, 200000) i;"
                 "create table one as select 1 as i; create table log (text text)")
        self.pid = int(self.sql('select pg_backend_pid()'))
        self.sql('set max_parallel_workers_per_gather = 0')

    def psql(self):
        session = self.spawn('psql', '-XqAt', '-h', '127.0.0.1', '-p', self.port, '-U', 'causes', 'postgres',
                             stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1)
        self.sql('select 1', session)
        return session

    def send(self, sql, session):
        session.stdin.write(f'{sql};\n\\echo done\n')

    def done(self, session):
        lines = []
        for line in iter(session.stdout.readline, 'done\n'):
            if not line:
                raise RuntimeError('psql ended: ' + (self.work / 'log').read_text()[-300:])
            lines.append(line)
        return ''.join(lines).strip()

    def sql(self, sql, session=None):
        self.send(sql, session or self.session)
        return self.done(session or self.session)

    def quick(self):
        self.sql('select count(*) from one')

    def behind_a_row_lock(self, sql, session):
        self.sql('begin; update one set i = i', self.other)
        self.send(sql, session)
        time.sleep(0.15)
        self.sql('commit', self.other)
        self.done(session)


class Postgres(_Postgres):
    @cause('blocked in .*(heap_update|ProcSleep|LockAcquire)')
    def row_lock(self):
        self.behind_a_row_lock('update one set i = i; select 1', self.session)

    @cause(rf'(on the CPU|page faults.*), in .*(tuplesort|{EXEC_SORT})')
    def sort_in_memory(self):
        self.sql("set work_mem = '256MB'; select text from rows order by text collate \"C\" desc offset 199999")

    @cause(rf'on the CPU, .*(tuplesort|LogicalTape|{EXEC_SORT})')
    def sort_on_disk(self):
        self.sql("set work_mem = '64kB'; select text from rows order by text collate \"C\" desc offset 199999")


class Postgres_fsync(_Postgres):
    symbol, threshold = 'CommitTransactionCommand', '30ms'

    def start(self):
        super().start()
        self.slow_disk(read=256, write=8)

    # A new file of the log is synchronized before it is used.
    @cause('blocked in .*(XLogFlush.*(fdatasync|fsync)|: fsync of .*/pg_wal/)')
    def wal_fsync(self):
        self.sql("insert into log select repeat('x', 1000) from generate_series(1, 1000)")


class Postgres_young(_Postgres):
    args = ('-children',)

    def start(self):
        super().start()
        self.pid = self.server.pid

    @cause('blocked in .*(heap_update|ProcSleep|LockAcquire)')
    def young_backend(self):
        session = self.psql()
        self.behind_a_row_lock('update one set i = i; select 1', session)
        self.end(session)
