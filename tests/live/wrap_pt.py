#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Makes a perf.data of raw Intel PT and the code that it ran: what 'perf record -e intel_pt//u
--per-thread' would have written, without times.

    wrap_pt.py [--cpu FAMILY,MODEL,STEPPING] [--full-returns] PT IMAGE_MAP OUT

IMAGE_MAP has a line for each mapping: "ADDRESS SIZE FILE OFFSET", numbers in hexadecimal, the file
beside IMAGE_MAP. The format: the kernel's tools/perf/Documentation/perf.data-file-format.txt and
include/uapi/linux/perf_event.h.
"""
import argparse
import os
import struct

PID = 1000
PMU_TYPE = 8  # only has to be the same in the event and in AUXTRACE_INFO
CONFIG_BRANCH, CONFIG_NORETCOMP, CONFIG_PT = 1 << 13, 1 << 11, 1

# perf_event_attr.sample_type and the bits behind read_format
SAMPLE_TYPE = 1 << 0 | 1 << 1 | 1 << 16  # IP, TID, IDENTIFIER
DISABLED, EXCLUDE_KERNEL, EXCLUDE_HV = 1 << 0, 1 << 5, 1 << 6
MMAP, COMM, SAMPLE_ID_ALL, MMAP2 = 1 << 8, 1 << 9, 1 << 18, 1 << 23

RECORD_COMM, RECORD_MMAP2, RECORD_ITRACE_START = 3, 10, 12
RECORD_FINISHED_ROUND, RECORD_AUXTRACE_INFO, RECORD_AUXTRACE = 68, 70, 71
MISC_USER = 2
FEATURE_ARCH, FEATURE_CPUID, FEATURE_AUXTRACE = 6, 9, 18

HEADER_SIZE, ATTR_SIZE, AUXTRACE_SIZE = 104, 112, 48
PT_ID, SIDEBAND_ID = 1, 2


def pad(data, to):
    return data + bytes(-len(data) % to)


def c_string(text, to):
    return pad(text.encode() + b"\0", to)


def record(kind, body, misc=0):
    return struct.pack("<IHH", kind, misc, 8 + len(body)) + body


def sample_id(event):
    return struct.pack("<IIQ", PID, PID, event)


def attr(kind, config, flags):
    head = struct.pack("<IIQQQQQ", kind, ATTR_SIZE, config, 1, SAMPLE_TYPE, 0,
                       flags | DISABLED | EXCLUDE_KERNEL | EXCLUDE_HV | SAMPLE_ID_ALL)
    return pad(head, ATTR_SIZE)


def auxtrace_info():
    """tools/perf/util/intel-pt.h: INTEL_PT_PMU_TYPE ff. The clock's words stay 0: no times."""
    words = [0] * 17
    words[0] = PMU_TYPE
    words[5], words[6] = 1 << 10, CONFIG_NORETCOMP
    words[8] = 1  # snapshot mode
    words[10], words[11], words[14] = 1 << 9, 0xF << 14, 1 << 1
    return record(RECORD_AUXTRACE_INFO, struct.pack("<II17Q", 1, 0, *words))


def mappings(path):
    folder = os.path.dirname(os.path.abspath(path))
    with open(path) as lines:
        for line in lines:
            address, size, name, offset = line.split()
            yield int(address, 16), int(size, 16), os.path.join(folder, name), int(offset, 16)


def mmap2(address, size, path, offset):
    body = struct.pack("<IIQQQIIQQII", PID, PID, address, size + -size % 4096, offset, 0, 0,
                       os.stat(path).st_ino, 0, 5, 2)
    return record(RECORD_MMAP2, body + c_string(path, 8) + sample_id(SIDEBAND_ID), MISC_USER)


def auxtrace(pt):
    body = struct.pack("<QQQIIII", len(pt), 0, 0, 0, PID, 0xFFFFFFFF, 0)
    return record(RECORD_AUXTRACE, body) + pt


def features(start, wanted):
    """A table of sections in the order of their numbers, then the sections."""
    table, bodies = b"", b""
    at = start + 16 * len(wanted)
    for _, body in sorted(wanted.items()):
        table += struct.pack("<QQ", at + len(bodies), len(body))
        bodies += body
    return table + bodies


def feature_string(text):
    data = c_string(text, 64)
    return struct.pack("<I", len(data)) + data


def wrap(options):
    with open(options.pt, "rb") as file:
        pt = pad(file.read(), 8)
    ids = struct.pack("<QQ", PT_ID, SIDEBAND_ID)
    ids_at, attrs_at = HEADER_SIZE, HEADER_SIZE + len(ids)
    config = CONFIG_PT | CONFIG_BRANCH | (CONFIG_NORETCOMP if options.full_returns else 0)
    attrs = attr(PMU_TYPE, config, 0) + struct.pack("<QQ", ids_at, 8)
    attrs += attr(1, 9, MMAP | COMM | MMAP2) + struct.pack("<QQ", ids_at + 8, 8)  # dummy:u
    data_at = attrs_at + len(attrs)

    data = auxtrace_info()
    data += record(RECORD_COMM, struct.pack("<II", PID, PID) + c_string("traced", 8) +
                   sample_id(SIDEBAND_ID), MISC_USER)
    for mapping in mappings(options.image_map):
        data += mmap2(*mapping)
    data += record(RECORD_ITRACE_START, struct.pack("<II", PID, PID) + sample_id(PT_ID))
    auxtrace_at = data_at + len(data)
    data += auxtrace(pt) + record(RECORD_FINISHED_ROUND, b"")

    wanted = {FEATURE_ARCH: feature_string("x86_64"),
              FEATURE_AUXTRACE: struct.pack("<QQQ", 1, auxtrace_at, AUXTRACE_SIZE)}
    if options.cpu:
        wanted[FEATURE_CPUID] = feature_string("GenuineIntel," + options.cpu)
    bits = sum(1 << number for number in wanted)
    header = struct.pack("<8s12Q", b"PERFILE2", HEADER_SIZE, ATTR_SIZE + 16, attrs_at, len(attrs),
                         data_at, len(data), 0, 0, bits, 0, 0, 0)
    with open(options.out, "wb") as out:
        out.write(header + ids + attrs + data + features(data_at + len(data), wanted))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--cpu", help="FAMILY,MODEL,STEPPING")
    parser.add_argument("--full-returns", action="store_true", help="no return compression")
    parser.add_argument("pt")
    parser.add_argument("image_map")
    parser.add_argument("out")
    wrap(parser.parse_args())


main()
