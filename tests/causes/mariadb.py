# SPDX-License-Identifier: MIT
import subprocess
import time

from service import Service, cause, free_port


class Mariadb(Service):
    needs = {'mariadbd': 'mariadb-server-core', 'mariadb': 'mariadb-client-core'}
    symbol = '_Z16dispatch_command19enum_server_commandP3THDPcjb'

    def start(self):
        self.port = free_port()
        self.run('mariadb-install-db', '--no-defaults', f'--datadir={self.work}/data', '--auth-root-authentication-method=normal',
                 cwd=self.work, user='nobody')
        server = self.spawn('mariadbd', '--no-defaults', f'--datadir={self.work}/data', f'--socket={self.work}/socket',
                            '--bind-address=127.0.0.1', f'--port={self.port}', '--innodb-flush-log-at-trx-commit=1',
                            '--innodb-buffer-pool-size=64M')
        self.pid = server.pid
        self.listens(self.port)
        self.session, self.other = self.client(), self.client()
        self.sql('create database causes; use causes; create table one (i int primary key) engine=innodb; '
                 'insert into one values (1); create table list (t char(32)); '
                 'insert into list select md5(seq) from seq_1_to_300000; create table log (t text)')
        self.sql('use causes', self.other)

    def client(self):
        return self.spawn('mariadb', '--no-defaults', '-uroot', '-h127.0.0.1', f'-P{self.port}', '-NB', '-n',
                          stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1)

    def send(self, sql, session):
        session.stdin.write(f'{sql};\nselect "done";\n')

    def done(self, session):
        for line in iter(session.stdout.readline, 'done\n'):
            if not line:
                raise RuntimeError('the client ended: ' + (self.work / 'log').read_text()[-300:])

    def sql(self, sql, session=None):
        self.send(sql, session or self.session)
        self.done(session or self.session)

    def quick(self):
        self.sql('select * from one')

    @cause('blocked in .*(lock_wait|row_upd|ha_innobase|mysql_update|cond_timedwait).*futex')
    def row_lock(self):
        self.sql('begin; update one set i = 2', self.other)
        self.send('update one set i = 3', self.session)
        time.sleep(0.15)
        self.sql('rollback', self.other)
        self.done(self.session)

    @cause('on the CPU, in .*(filesort|sort|Filesort)')
    def sort(self):
        self.sql('set sort_buffer_size = 67108864; select t from list order by t desc limit 100001, 1')

    @cause('blocked in .*(sleep|cond_timedwait)')
    def sleep(self):
        self.sql('select sleep(0.15)')
