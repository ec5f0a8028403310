#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Cuts each AUXTRACE record of a perf.data in pieces, as 'perf record' without snapshots writes
them: a ring is emptied now and then, wherever the CPU is in it.

    split_pt.py [--overlap BYTES] SIZE IN OUT

SIZE: of each piece, in bytes, whole words but for the last. --overlap: snapshots of a ring that was
full, each of which begins with that much of the one before it; their offsets tell nothing.
"""
import argparse
import struct

AUXTRACE_INFO, AUXTRACE = 70, 71
SNAPSHOT_MODE = 16 + 8 * 8  # tools/perf/util/intel-pt.h: INTEL_PT_SNAPSHOT_MODE


def split(record, data, size, overlap):
    offset, at = struct.unpack_from("<Q", record, 16)[0], 0
    out = b""
    while at < len(data):
        begin = max(at - overlap, 0)
        piece = data[begin : at + size]
        piece += bytes(-len(piece) % 8)
        place = 2**64 - 1 - at if overlap else offset + 4096 + begin
        head = bytearray(record)
        struct.pack_into("<QQ", head, 8, len(piece), place)
        out += bytes(head) + piece
        at += size
    return out


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--overlap", type=int, default=0)
    parser.add_argument("size", type=int)
    parser.add_argument("input")
    parser.add_argument("output")
    args = parser.parse_args()
    with open(args.input, "rb") as file:
        data = file.read()
    begin, size = struct.unpack_from("<QQ", data, 40)
    out, at = data[:begin], begin
    while at < begin + size:
        kind, _, length = struct.unpack_from("<IHH", data, at)
        record = data[at : at + length]
        at += length
        if kind == AUXTRACE_INFO:
            record = bytearray(record)
            struct.pack_into("<Q", record, SNAPSHOT_MODE, args.overlap > 0)
        if kind != AUXTRACE:
            out += record
            continue
        more = struct.unpack_from("<Q", record, 8)[0]
        out += split(record, data[at : at + more], args.size, args.overlap)
        at += more
    tail = bytearray(data[at:])
    more = len(out) - at
    out = bytearray(out)
    struct.pack_into("<Q", out, 48, len(out) - begin)
    # A table of the features' sections, which lie behind the data as well.
    features = sum(bin(word).count("1") for word in struct.unpack_from("<4Q", data, 72))
    for i in range(features):
        struct.pack_into("<Q", tail, 16 * i, struct.unpack_from("<Q", tail, 16 * i)[0] + more)
    out += tail
    with open(args.output, "wb") as file:
        file.write(out)


main()
