# SPDX-License-Identifier: MIT
# pattern_judge.py REPORT.json SERVICE.log...: compares the report of many captures with the services' own logs.
import json
import sys
from collections import Counter

report = json.load(open(sys.argv[1]))
count, lost = Counter(), Counter()
for path in sys.argv[2:]:
    lines = [line.split() for line in open(path)]
    quick = [int(ns) for cause, ns in lines if cause == "quick"]
    usual = sum(quick) / len(quick)
    for cause, ns in lines:
        if cause != "quick":
            count[cause] += 1
            lost[cause] += int(ns) - usual


# The cause that only this place of the service can have.
def name(cause):
    path = cause["path"]
    if cause["kind"] == "blocked":
        of = cause.get("of") or ""
        for key, found in (("lock", "futex" in of), ("read", "pipe" in of and path[-1] in ("read", "__read")),
                           ("tcp", "TCP" in of), ("poll", "poll" in path[-1] or "ppoll" in path[-1])):
            if found:
                return key
    if cause["kind"] == "on_cpu" and "score_all" in " ".join(path):
        return "work"
    return f"{cause['kind']} {' > '.join(path)} {cause.get('of')}"


wrong = []
main = [c for c in report["causes"] if c["captures"]]
found = {}
for cause in main:
    found.setdefault(name(cause), []).append(cause)
print(f"{'cause':8} {'service':>8} {'report':>7} {'groups':>7} {'service s':>10} {'report s':>9}  hosts, builds")
for cause, seconds in lost.most_common():
    groups = found.pop(cause, [])
    captures = sum(g["captures"] for g in groups)
    files = [f for f in report["files"] if any(report["causes"][f.get("cause", 0)] is g for g in groups)]
    hosts = sorted({f["host"] for f in files})
    builds = {f["build_id"] for f in files}
    print(f"{cause:8} {count[cause]:8} {captures:7} {len(groups):7} {seconds / 1e9:10.3f} "
          f"{sum(g['lost_ns'] for g in groups) / 1e9:9.3f}  {', '.join(hosts)}, {len(builds)}")
    if len(groups) != 1:
        wrong.append(f"{cause}: {len(groups)} groups")
    if captures != count[cause]:
        wrong.append(f"{cause}: {captures} captures, the service says {count[cause]}")
    if hosts != ["host-a", "host-b"] or len(builds) != 2:
        wrong.append(f"{cause}: not of both hosts and both builds")
for other in found:
    wrong.append(f"a cause that the service does not have: {other}")
order = [name(c) for c in main]
if order != [cause for cause, _ in lost.most_common()]:
    wrong.append(f"the order is {order}")
if report["captures"] != sum(count.values()):
    wrong.append(f"{report['captures']} captures, of {sum(count.values())} slow requests")
for line in wrong:
    print("WRONG:", line)
print(f"{report['captures']} captures of {len(report['hosts'])} hosts: {'wrong' if wrong else 'as the services say'}")
sys.exit(bool(wrong))
