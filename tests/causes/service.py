# SPDX-License-Identifier: MIT
"""What the services share: starting and ending them, asking them, and one `mtbpf attach`."""
import collections
import json
import os
import pathlib
import re
import select
import shutil
import signal
import socket
import subprocess
import tempfile
import time

from switches import Switches

NOBODY = 'nobody'

Cause = collections.namedtuple('Cause', 'name plant says symbol threshold args look')


class Skip(Exception):
    """Why these causes cannot be tried here."""


def cause(says, symbol=None, threshold=None, args=(), look=None):
    """Makes a method of a Service that plants a cause. It returns what is known of the slow call, by the
    names of the account and "total", in ns; or None.

    says       a regular expression that the reason must match
    symbol     what triggers, threshold: its -duration-thresh; the service's own by default
    args       further options of mtbpf attach
    look       False: the thread's switches are not the call's (goroutines)
    """
    def mark(method):
        method.cause = (says, symbol, threshold, list(args), look)
        return method
    return mark


def wait_for(what, check, seconds=30):
    end = time.monotonic() + seconds
    while True:
        result = check()
        if result:
            return result
        if time.monotonic() > end:
            raise RuntimeError(f'{what}: not within {seconds} s')
        time.sleep(0.02)


def free_port():
    with socket.socket() as s:
        s.bind(('127.0.0.1', 0))
        return s.getsockname()[1]


class Service:
    """A service with causes planted in it. A subclass sets `needs`, `symbol` and `threshold`, and has
    start(), which sets self.pid, and quick(), an ordinary call."""
    needs = {}  # command: Debian's package that has it
    threshold = '50ms'
    args = ()  # of mtbpf attach
    look = True
    with_interrupts = False  # what they took is known independently
    first = True  # it comes before other processes, so that only what is planted makes it slow

    def __init__(self, build, work):
        self.build, self.work = build, work
        self.here = pathlib.Path(__file__).parent
        self.children = []
        self.at_end = []
        work.mkdir(mode=0o755)
        work.parent.chmod(0o755)
        shutil.chown(work, NOBODY)

    def __enter__(self):
        try:
            self.start()
            if self.first:
                self.come_first()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        for undo in reversed(self.at_end):
            undo()
        for child in reversed(self.children[:]):
            self.end(child)

    @classmethod
    def causes(cls):
        for name, method in vars(cls).items():
            if hasattr(method, 'cause'):
                says, symbol, threshold, args, look = method.cause
                yield Cause(name, method, re.compile(says), symbol or cls.symbol, threshold or cls.threshold,
                            [*cls.args, *args], cls.look if look is None else look)

    def come_first(self):
        """Before all other processes; a session of its own is a group of its own to the scheduler."""
        self.run('renice', '-n', '-19', '-g', os.getpgid(self.pid))
        autogroup = pathlib.Path(f'/proc/{self.pid}/autogroup')
        if autogroup.exists():
            autogroup.write_text('-19')

    def quick(self):
        raise NotImplementedError

    def plant(self, cause):
        for _ in range(8):
            self.quick()
            time.sleep(0.005)
        return cause.plant(self)

    def spawn(self, *command, user=NOBODY, **kw):
        """A process of this service's; ended with it."""
        with open(self.work / 'log', 'ab') as log:
            kw = {'stdin': subprocess.DEVNULL, 'stdout': log, **kw}
            child = subprocess.Popen([str(c) for c in command], stderr=log, cwd=self.work, user=user,
                                     start_new_session=True, **kw)
        self.children.append(child)
        return child

    def end(self, child):
        if child.poll() is None:
            child.terminate()
            try:
                child.wait(10)
            except subprocess.TimeoutExpired:
                child.kill()
                child.wait()
        if child in self.children:
            self.children.remove(child)

    def listens(self, port):
        def connects():
            with socket.socket() as s:
                return s.connect_ex(('127.0.0.1', port)) == 0
        wait_for(f'{type(self).__name__} to listen', connects)

    def run(self, *command, **kw):
        """A client's command: its output."""
        return subprocess.run([str(c) for c in command], check=True, capture_output=True, text=True,
                              timeout=60, **kw).stdout

    def limit(self, controller, v1, v2):
        """Into a cgroup of its own, of version 1 or 2, with these settings."""
        root = pathlib.Path('/sys/fs/cgroup')
        old = (root / controller).is_dir()
        if not old:
            (root / 'cgroup.subtree_control').write_text('+' + {'blkio': 'io'}.get(controller, controller))
        self.group = (root / controller if old else root) / f'mtbpf-causes-{self.pid}'
        self.group.mkdir()
        self.at_end.append(self.leave)
        for name, value in (v1 if old else v2).items():
            (self.group / name).write_text(str(value))
        (self.group / 'cgroup.procs').write_text(str(self.pid))

    def leave(self):
        for pid in (self.group / 'cgroup.procs').read_text().split():
            (self.group.parent / 'cgroup.procs').write_text(pid)
        self.group.rmdir()

    def slow_disk(self, read, write):
        """Megabytes a second."""
        device = os.stat(self.work).st_dev
        disk = pathlib.Path(f'/sys/dev/block/{os.major(device)}:{os.minor(device)}').resolve()
        disk = ((disk.parent if (disk / 'partition').exists() else disk) / 'dev').read_text().strip()
        self.limit('blkio', {'blkio.throttle.read_bps_device': f'{disk} {read << 20}',
                             'blkio.throttle.write_bps_device': f'{disk} {write << 20}'},
                   {'io.max': f'{disk} rbps={read << 20} wbps={write << 20}'})

    def write_file(self, megabytes, name='file'):
        (self.work / name).write_bytes(os.urandom(megabytes << 20))
        shutil.chown(self.work / name, NOBODY)

    def drop_file(self, name='file'):
        """Out of the page cache."""
        with open(self.work / name, 'r+b') as f:
            os.fsync(f.fileno())
            os.posix_fadvise(f.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


class Program(Service):
    """A program that reads a line, does what it says, and answers "KEY=NS ...": its own clock's figures. It
    says "ready" first."""

    def start(self):
        self.program = self.start_program(*self.command())
        self.pid = self.program.pid

    def start_program(self, *command, **kw):
        program = self.spawn(*command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0, **kw)
        program.answers = open(program.stdout.fileno(), closefd=False)
        if program.answers.readline().strip() != 'ready':
            raise RuntimeError('does not start: ' + (self.work / 'log').read_text()[-300:])
        return program

    def ask(self, what, program=None):
        program = program or self.program
        program.stdin.write(what.encode() + b'\n')
        if not select.select([program.stdout], [], [], 30)[0]:
            raise RuntimeError(f'no answer to "{what}"')
        answer = program.answers.readline().split()
        if not answer:
            raise RuntimeError('it has ended: ' + (self.work / 'log').read_text()[-300:])
        return {key: int(ns) for key, ns in (pair.split('=') for pair in answer)}

    def quick(self):
        self.ask('quick')


class Attach:
    """One `mtbpf attach`: waits until it waits, then until it has written a report."""

    def __init__(self, service, cause):
        self.service, self.cause = service, cause
        self.mtbpf = service.build / 'mtbpf'

    def __enter__(self):
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix='attach.', dir=self.service.work))
        self.switches = Switches(self.service.with_interrupts)
        command = [self.mtbpf, 'attach', '-source', 'sample', '-pid', self.service.pid, '-timeout', '25s', '-o', 'slow.fxt.gz']
        if self.cause.symbol:
            command += ['-symbol', self.cause.symbol]
        command += ['-duration-thresh', self.cause.threshold, *self.cause.args]
        self.log = open(self.dir / 'log', 'w+')
        self.process = subprocess.Popen([str(c) for c in command], cwd=self.dir, stdout=self.log, stderr=self.log)
        try:
            wait_for('mtbpf attach to wait', lambda: self.process.poll() is not None or
                     re.search(r'^(waiting|recording;)', self.said(), re.M))
        except BaseException:
            self.__exit__()
            raise
        return self

    def said(self):
        return (self.dir / 'log').read_text(errors='replace')

    def end(self):
        """The report, as self.report: None where there is none."""
        self.switches.stop()
        self.stop(5)
        self.report = self.recording = None
        done = subprocess.run([self.mtbpf, 'report', self.dir / 'slow.fxt.gz', '-json'], capture_output=True, text=True)
        if done.returncode == 0 and done.stdout.startswith('{'):
            self.report = json.loads(done.stdout)
            self.recording = json.loads((self.dir / 'slow.mtbpf' / 'meta.json').read_text())

    def keep(self, where):
        shutil.rmtree(where, ignore_errors=True)
        shutil.copytree(self.dir, where)
        (where / 'switches').write_text('\n'.join(self.switches.lines))

    def stop(self, seconds=0):
        """Lets it end by itself for so long, then by Ctrl-C; for 20 more at most."""
        for signo, limit in zip((None, signal.SIGINT, signal.SIGKILL), (seconds, 20, None)):
            if signo:
                self.process.send_signal(signo)
            try:
                return self.process.wait(limit)
            except subprocess.TimeoutExpired:
                pass

    def __exit__(self, *_):
        self.stop()
        self.log.close()
        self.switches.close()
        shutil.rmtree(self.dir, ignore_errors=True)
