# SPDX-License-Identifier: MIT
"""A threaded service: each request is exec'd, so that PyEval_EvalCode is a request."""
import gc
import re
import sys
import threading
import time

lock = threading.Lock()
garbage = [[i] for i in range(2000000)]
gc.disable()


def hold_gil():
    re.match('(a+)+$', 'a' * 22 + 'b')


def hold_lock(begun):
    with lock:
        begun.set()
        time.sleep(0.15)


def behind(helper):
    """Started, and it has begun."""
    begun = threading.Event()
    thread = threading.Thread(target=helper, args=(begun,), name='helper')
    thread.start()
    begun.wait()
    return thread


def wait_for_gil():
    threading.Thread(target=hold_gil).start()
    time.sleep(0.001)


def wait_for_lock():
    with lock:
        pass


def collect():
    gc.collect()


def quick():
    pass


def request(what):
    start = time.monotonic_ns()
    exec(what)
    return time.monotonic_ns() - start


def handle(line):
    if line == 'gil':
        return request(GIL)
    if line == 'lock':
        behind(hold_lock)
        return request(LOCK)
    if line == 'young':
        behind(hold_lock)
        took = []
        young = threading.Thread(target=lambda: took.append(request(LOCK)))
        young.start()
        young.join()
        return took[0]
    return request(GC if line == 'gc' else QUICK)


GIL, LOCK, GC, QUICK = (compile(f'{name}()', 'request', 'exec')
                        for name in ('wait_for_gil', 'wait_for_lock', 'collect', 'quick'))
print('ready', flush=True)
for line in sys.stdin:
    print(f'total={handle(line.strip())}', flush=True)
