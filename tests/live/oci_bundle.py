#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# Makes of the DaemonSet in deploy/kubernetes what a node would make of it: the OCI bundle of its container.
#
#   oci_bundle.py DIR ROOT OPTIONS [-- ARGS]     DIR/config.json; ARGS instead of the manifest's
#
#   -volume NAME=PATH   where a hostPath volume is here        -set KEY=VALUE   of the ConfigMap
#   -without CAP        a capability less                      -memlock BYTES   RLIMIT_MEMLOCK
#   -own-pids           a pid namespace, as without hostPID    -seccomp FILE    a runtime's default profile
import json
import sys

import yaml

KUBERNETES = __file__.rsplit("/", 3)[0] + "/deploy/kubernetes/"
# What runtimes hide and protect in every container that is not privileged.
MASKED = ["/proc/acpi", "/proc/asound", "/proc/kcore", "/proc/keys", "/proc/latency_stats",
          "/proc/timer_list", "/proc/sched_debug", "/proc/scsi", "/sys/firmware"]
READ_ONLY = ["/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger"]


def load(name):
    with open(KUBERNETES + name) as file:
        return yaml.safe_load(file)


def options(words):
    given = {"volume": {}, "set": {}, "without": [], "memlock": None, "own-pids": False,
             "seccomp": None, "args": None}
    words = iter(words)
    for word in words:
        if word == "--":
            given["args"] = list(words)
        elif word == "-own-pids":
            given["own-pids"] = True
        elif isinstance(given[word[1:]], dict):
            key, value = next(words).split("=", 1)
            given[word[1:]][key] = value
        elif isinstance(given[word[1:]], list):
            given[word[1:]].append(next(words))
        else:
            given[word[1:]] = next(words)
    return given


def expand(arg, values):
    for key, value in values.items():
        arg = arg.replace("$(%s)" % key, value)
    return arg


def mounts(spec, container, volumes):
    kinds = [("/proc", "proc", "proc", []),
             ("/sys", "sysfs", "sysfs", ["nosuid", "noexec", "nodev", "ro"]),
             ("/dev", "tmpfs", "tmpfs", ["nosuid", "mode=755"])]
    made = [{"destination": to, "type": kind, "source": source, "options": opts}
            for to, kind, source, opts in kinds]
    paths = {v["name"]: volumes.get(v["name"], v["hostPath"]["path"]) for v in spec["volumes"]}
    for m in container["volumeMounts"]:
        how = "ro" if m.get("readOnly") else "rw"
        made.append({"destination": m["mountPath"], "type": "bind", "source": paths[m["name"]],
                     "options": ["rbind", how]})
    return made


def seccomp(path, caps):
    with open(path) as file:
        profile = json.load(file)
    rules = []
    for rule in profile["syscalls"]:
        with_caps = set((rule.get("includes") or {}).get("caps") or [])
        but_caps = set((rule.get("excludes") or {}).get("caps") or [])
        if not with_caps <= set(caps) or but_caps & set(caps):
            continue
        rules.append({k: rule[k] for k in ("names", "action", "args") if rule.get(k)})
    return {"defaultAction": profile["defaultAction"], "architectures": ["SCMP_ARCH_X86_64"],
            "syscalls": rules}


def main():
    bundle, root, given = sys.argv[1], sys.argv[2], options(sys.argv[3:])
    spec = load("daemonset.yaml")["spec"]["template"]["spec"]
    values = dict(load("configmap.yaml")["data"], **given["set"])
    container = spec["containers"][0]
    security = container["securityContext"]
    caps = ["CAP_" + c for c in security["capabilities"]["add"] if c not in given["without"]]
    if security["privileged"] or security["capabilities"]["drop"] != ["ALL"]:
        sys.exit("the container is privileged, or has more than what it adds")
    spaces = ["mount", "ipc", "uts", "network"]
    if given["own-pids"] or not spec["hostPID"]:
        spaces.append("pid")
    process = {
        "terminal": False, "cwd": "/", "env": ["PATH=/usr/bin"],
        "user": {"uid": security["runAsUser"], "gid": 0},
        "args": ["/usr/bin/mtbpf"] + (given["args"] or [expand(a, values) for a in container["args"]]),
        "capabilities": {kind: caps for kind in ("bounding", "effective", "permitted")},
        "noNewPrivileges": not security["allowPrivilegeEscalation"],
    }
    if given["memlock"]:
        limit = int(given["memlock"])
        process["rlimits"] = [{"type": "RLIMIT_MEMLOCK", "hard": limit, "soft": limit}]
    config = {
        "ociVersion": "1.0.0", "process": process, "hostname": "node",
        "root": {"path": root, "readonly": security["readOnlyRootFilesystem"]},
        "mounts": mounts(spec, container, given["volume"]),
        "linux": {"namespaces": [{"type": s} for s in spaces], "maskedPaths": MASKED,
                  "readonlyPaths": READ_ONLY},
    }
    if given["seccomp"] and security["seccompProfile"]["type"] == "RuntimeDefault":
        config["linux"]["seccomp"] = seccomp(given["seccomp"], caps)
    with open(bundle + "/config.json", "w") as file:
        json.dump(config, file, indent=1)


main()
