# SPDX-License-Identifier: MIT
import os
import threading
import time

from service import Program, cause


class Node(Program):
    # Its own clock is no figure: the callback also writes the answer.
    needs = {'node': 'nodejs'}
    args = ('-snapshot-size', '32M')  # all its threads collect garbage
    symbol = 'node::AsyncWrap::MakeCallback(v8::Local<v8::Function>, int, v8::Local<v8::Value>*)'

    def command(self):
        return 'node', '--expose-gc', self.here / 'programs' / 'handler.js'

    def start(self):
        super().start()
        os.mkfifo(self.work / 'fifo')

    @cause('on the CPU, in .*[Jj]son')
    def json_parse(self):
        self.ask('json')

    @cause('(on the CPU,|blocked) in .*(Heap|MarkCompact|Collect|GC|Marking)')
    def gc(self):
        self.ask('gc')

    @cause('blocked in .*uv_fs_open')
    def sync_fs(self):
        def write():
            time.sleep(0.15)
            (self.work / 'fifo').write_text('x')
        writer = threading.Thread(target=write)
        writer.start()
        self.ask('fs')
        writer.join()
