#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Reads a .pace trace with nothing but docs/trace-format.md and Python's own library.

usage: read_trace.py FILE      prints the header and the events, one JSON object a line

It shares no code with Paceline: it shows that the text is enough, and it is a start for a reader of your own. Hashes
are not checked. Zstandard comes from libzstd, which every Linux distribution has.
"""
import ctypes
import ctypes.util
import json
import struct
import sys

UNIT_BYTES, PAGE_BYTES = 65536, 4096
FREE, OPEN, FULL, LOST_TABLE = range(4)
SLOT = struct.Struct("<QQ")
U64 = 2**64

# Type: (name, extension slots, columns). A column is (word, first bit, bits, coding); words are low, ext.high, ext.low,
# ext2.high, ext2.low.
LOW, EXT_HIGH, EXT_LOW, EXT2_HIGH, EXT2_LOW = range(5)


def plain(word, first=0, bits=64):
    return word, first, bits, "plain"


def delta(word, first=0, bits=64):
    return word, first, bits, "delta"


def series(word, first=0, bits=64):
    return word, first, bits, "series"


SCOPE = [plain(LOW, 0, 32), plain(LOW, 32, 16), plain(LOW, 48, 16)]
TWO = [plain(LOW, 0, 32), plain(LOW, 32, 32)]
PEER = [plain(LOW, 0, 16), plain(LOW, 16, 32), plain(LOW, 48, 16), plain(EXT_HIGH), plain(EXT_LOW, 0, 32)]
FUNCTION = [plain(LOW, 0, 16), plain(LOW, 16, 48)]
SIX = TWO + [plain(EXT_HIGH, 0, 32), plain(EXT_HIGH, 32, 32), plain(EXT_LOW, 0, 32), plain(EXT_LOW, 32, 32)]
RAN = TWO + [plain(EXT_HIGH), delta(EXT_LOW, 0, 32), plain(EXT_LOW, 32, 32)]
MOVED = [plain(EXT2_HIGH), plain(EXT2_LOW, 0, 32), plain(EXT2_LOW, 32, 32)]
EXT_LOW_HALVES = [plain(EXT_LOW, 0, 32), plain(EXT_LOW, 32, 32)]
TYPES = {
    1: ("name", None, [delta(LOW, 0, 32), plain(LOW, 32, 32)]),
    2: ("domain", 0, [plain(LOW, 0, 16), plain(LOW, 16, 16), plain(LOW, 32, 32)]),
    3: ("category", 1, [plain(LOW, 0, 16), plain(LOW, 16, 16), plain(LOW, 32, 32), delta(EXT_HIGH), plain(EXT_LOW)]),
    4: ("thread_name", 1, TWO + [plain(EXT_HIGH), plain(EXT_LOW)]),
    5: ("communicator", 1, TWO + [plain(EXT_HIGH), plain(EXT_LOW, 0, 32), plain(EXT_LOW, 32, 32)]),
    16: ("push", 0, SCOPE),
    17: ("push_payload", 1, SCOPE + [plain(EXT_HIGH), plain(EXT_LOW)]),
    18: ("pop", 0, [plain(LOW)]),
    19: ("mark", 0, SCOPE),
    20: ("mark_payload", 1, SCOPE + [plain(EXT_HIGH), plain(EXT_LOW)]),
    21: ("start", 1, SCOPE + [delta(EXT_HIGH), plain(EXT_LOW)]),
    22: ("start_payload", 2, SCOPE + [delta(EXT_HIGH), plain(EXT_LOW), plain(EXT2_HIGH), plain(EXT2_LOW)]),
    23: ("end", 0, [delta(LOW)]),
    32: ("mpi_begin", 0, FUNCTION),
    33: ("mpi_begin_peer", 1, PEER + [plain(EXT_LOW, 32, 32)]),
    34: ("mpi_begin_coll", 1, PEER + [delta(EXT_LOW, 32, 32)]),
    35: ("mpi_end", 0, FUNCTION),
    48: ("clock_pair", 1, [delta(LOW), delta(EXT_HIGH), plain(EXT_LOW)]),
    49: ("clock_exchange", 1, TWO + [delta(EXT_HIGH), delta(EXT_LOW)]),
    56: ("setting", 0, TWO),
    57: ("recording", 0, [plain(LOW)]),
    58: ("trigger", 1, [plain(LOW, 0, 8), plain(LOW, 8, 56), plain(EXT_HIGH), plain(EXT_LOW)]),
    59: ("lost", 1, [plain(LOW, 0, 8), plain(LOW, 8, 8), plain(LOW, 16, 48), delta(EXT_HIGH), delta(EXT_LOW)]),
    63: ("process_end", 0, [plain(LOW)]),
    64: ("resource", 1, [delta(LOW, 0, 32), plain(LOW, 32, 32), delta(EXT_HIGH), *EXT_LOW_HALVES]),
    65: ("resource_end", 0, [plain(LOW)]),
    66: ("schema", 2, TWO + [plain(EXT_HIGH, 0, 16), plain(EXT_HIGH, 16, 16), plain(EXT_HIGH, 32, 32), *EXT_LOW_HALVES,
                             plain(EXT2_HIGH), plain(EXT2_LOW)]),
    67: ("schema_entry", 2, TWO + [plain(EXT_HIGH, 0, 32), plain(EXT_HIGH, 32, 32), plain(EXT_LOW, 0, 16),
                                   delta(EXT_LOW, 16, 16), plain(EXT_LOW, 32, 32), plain(EXT2_HIGH), plain(EXT2_LOW)]),
    68: ("enumeration", 1, TWO + [plain(EXT_HIGH, 0, 16), plain(EXT_HIGH, 16, 48), plain(EXT_LOW)]),
    69: ("enumerator", 1, TWO + [delta(EXT_HIGH), plain(EXT_LOW, 0, 16), plain(EXT_LOW, 16, 48)]),
    70: ("payload", None, TWO),
    71: ("payload_part", None, TWO),
    72: ("scope", 1, [plain(LOW, 0, 16), plain(LOW, 16, 16), plain(LOW, 32, 32), plain(EXT_HIGH), plain(EXT_LOW)]),
    73: ("time_domain", 2, [plain(LOW, 0, 16), plain(LOW, 16, 48), plain(EXT_HIGH), plain(EXT_LOW), plain(EXT2_HIGH),
                            plain(EXT2_LOW)]),
    74: ("time_sync", 2, [plain(LOW), plain(EXT_HIGH), plain(EXT_LOW), delta(EXT2_HIGH), delta(EXT2_LOW)]),
    75: ("submit", 0, SCOPE),
    80: ("mpi_posted", 0, [delta(LOW)]),
    81: ("mpi_completed", 0, [delta(LOW)]),
    82: ("mpi_file", 1, TWO + [plain(EXT_HIGH), plain(EXT_LOW)]),
    83: ("mpi_begin_file", 1, [plain(LOW, 0, 16), plain(LOW, 16, 32), plain(LOW, 48, 16), plain(EXT_HIGH), delta(EXT_LOW)]),
    84: ("mpi_window", 1, TWO + [plain(EXT_HIGH), plain(EXT_LOW)]),
    85: ("mpi_begin_window", 1, PEER + [plain(EXT_LOW, 32, 32)]),
    96: ("cuda_function", 0, [plain(LOW, 0, 16), plain(LOW, 16, 16), plain(LOW, 32, 32)]),
    97: ("cuda_stream", 1, SIX),
    98: ("cuda_kernel", 2, [delta(LOW, 0, 32), *SIX[1:], plain(EXT2_HIGH, 0, 32), plain(EXT2_HIGH, 32, 32), plain(EXT2_LOW)]),
    99: ("cuda_call", 1, [plain(LOW, 0, 16), plain(LOW, 16, 16), plain(LOW, 32, 32), *RAN[2:]]),
    100: ("cuda_kernel_run", 1, RAN),
    101: ("cuda_copy", 2, RAN + MOVED),
    102: ("cuda_set", 2, RAN + MOVED),
    103: ("cuda_wait", 1, RAN),
    104: ("cuda_graph", 1, RAN),
    105: ("cuda_overhead", 1, RAN),
    106: ("cuda_clock", 1, [delta(LOW), plain(EXT_HIGH), plain(EXT_LOW)]),
    107: ("cuda_handle", 1, [plain(LOW, 0, 32), delta(LOW, 32, 32), delta(EXT_HIGH), plain(EXT_LOW)]),
    113: ("nccl_collective", 2, RAN + [delta(EXT2_HIGH), delta(EXT2_LOW)]),
    114: ("nccl_peer", 2, RAN + [delta(EXT2_HIGH), delta(EXT2_LOW)]),
    115: ("nccl_call", 2, RAN + [delta(EXT2_HIGH), delta(EXT2_LOW)]),
    116: ("nccl_channel", 1, [delta(LOW), delta(EXT_HIGH), plain(EXT_LOW, 0, 32), plain(EXT_LOW, 32, 32)]),
    117: ("nccl_proxy", 2, [plain(LOW, 0, 16), plain(LOW, 16, 16), plain(LOW, 32, 32), delta(EXT_HIGH),
                            plain(EXT_LOW, 0, 32), plain(EXT_LOW, 32, 32), delta(EXT2_HIGH), plain(EXT2_LOW)]),
    118: ("nccl_end", 0, [delta(LOW)]),
    120: ("stack", 1, [delta(LOW, 0, 32), plain(LOW, 32, 32), plain(EXT_HIGH, 0, 32), plain(EXT_HIGH, 32, 32),
                       plain(EXT_LOW, 0, 32), plain(EXT_LOW, 32, 32)]),
    121: ("stack_sample", 1, TWO + [plain(EXT_HIGH), plain(EXT_LOW)]),
    128: ("counter", 1, [plain(LOW, 0, 16), plain(LOW, 16, 16), plain(LOW, 32, 32), plain(EXT_HIGH, 0, 32),
                         plain(EXT_HIGH, 32, 32), plain(EXT_LOW)]),
    129: ("sample", 1, TWO + [series(EXT_HIGH), plain(EXT_LOW)]),
    130: ("thread_found", 1, TWO + [plain(EXT_HIGH), plain(EXT_LOW)]),
    131: ("thread_switch", 0, [plain(LOW, 0, 32), plain(LOW, 32, 8), plain(LOW, 40, 24)]),
    132: ("thread_times", 1, TWO + [series(EXT_HIGH), series(EXT_LOW)]),
    133: ("other_program", 2, TWO + [plain(EXT_HIGH), plain(EXT_LOW), plain(EXT2_HIGH), plain(EXT2_LOW)]),
}
WITH_BYTES = ("name", "payload", "payload_part")
PAYLOADS = {1: "<Q", 2: "<q", 3: "<d"}

zstd = ctypes.CDLL(ctypes.util.find_library("zstd") or "libzstd.so.1")
zstd.ZSTD_decompress.restype = ctypes.c_size_t
zstd.ZSTD_decompress.argtypes = [ctypes.c_char_p, ctypes.c_size_t, ctypes.c_char_p, ctypes.c_size_t]


class Event:
    """One event: its type's number and name, its ticks, its words after `high`, and the bytes of a name or payload."""

    def __init__(self, type, ticks, words, text=b""):
        self.type, self.ticks, self.words, self.text = type, ticks, words, text
        self.name = TYPES[type][0]

    def extension_slots(self):
        return (self.words[LOW] >> 32) + 15 >> 4 if self.name in WITH_BYTES else TYPES[self.type][1]


def decompress(payload, raw_bytes):
    raw = ctypes.create_string_buffer(raw_bytes)
    if zstd.ZSTD_decompress(raw, raw_bytes, payload, len(payload)) != raw_bytes:
        raise ValueError("a block does not decompress")
    return raw.raw


def numbers(column, count):
    """The LEB128 numbers of a column; an empty one stands for zeros."""
    if not column:
        return [0] * count
    values, value, shift = [], 0, 0
    for byte in column:
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            values.append(value)
            value = shift = 0
    assert len(values) == count and shift == 0
    return values


def decode_block(raw):
    """The events of a block's decompressed payload."""
    at = 0

    def column():
        nonlocal at
        (length,) = struct.unpack_from("<I", raw, at)
        at += 4 + length
        return raw[at - length : at]

    types = column()
    differences, going_on = [0] * len(types), list(range(len(types)))
    for plane in range(8):
        column_bytes = column()
        assert len(column_bytes) == len(going_on)
        for event, byte in zip(going_on, column_bytes):
            differences[event] |= (byte & 127) << 7 * plane
        going_on = [event for event, byte in zip(going_on, column_bytes) if byte >= 128]
    events, ticks = [], 0
    for type, difference in zip(types, differences):
        ticks = (ticks + difference) % 2**56
        events.append(Event(type, ticks, [0] * 5))
    for type in sorted(set(types)):
        of_type = [event for event in events if event.type == type]
        for word, first, bits, coding in TYPES[type][2]:
            before = {}
            for event, value in zip(of_type, numbers(column(), len(of_type))):
                if coding != "plain":
                    key = event.words[LOW] % 256 if coding == "series" else 0
                    value = (before.get(key, 0) + (value >> 1 ^ -(value & 1))) % U64
                    before[key] = value
                event.words[word] |= value << first
        if TYPES[type][0] in WITH_BYTES:
            texts, start = column(), 0
            for event in of_type:
                length = event.words[LOW] >> 32
                event.text = texts[start : start + length]
                start += length
    assert at == len(raw)
    return events


def decode_chunk(chunk):
    """The events of a live chunk, up to the first head that was not written."""
    slots, events, at = list(SLOT.iter_unpack(chunk[64:])), [], 0
    while at < len(slots) and slots[at][0] & 255 in TYPES:
        high, low = slots[at]
        event = Event(high & 255, high >> 8, [low])
        extension = slots[at + 1 : at + 1 + event.extension_slots()]
        if event.name in WITH_BYTES:
            event.text = b"".join(SLOT.pack(*slot) for slot in extension)[: low >> 32]
        else:
            event.words += [word for slot in extension for word in slot]
        event.words += [0] * (5 - len(event.words))
        at += 1 + event.extension_slots()
        if at <= len(slots):
            events.append(event)
    return events


class Trace:
    def __init__(self, path):
        with open(path, "rb") as file:
            data = file.read()
        self.read_header(data)
        header = self.header
        pieces = {}  # sequence → (track, thread id, events)
        at = header["header_bytes"] + header["live_bytes"]
        while at < min(header["blocks_end"], len(data)):
            magic, kind, track, slots, sequence, thread_id, size, raw_bytes = struct.unpack_from("<4sIIIQQII", data, at)
            head = 48 if kind == 1 else 80
            if magic != b"PBLK" or at + head + size > len(data):
                break  # a reader for damaged files would search for the next block
            events = decode_block(decompress(data[at + head : at + head + size], raw_bytes))
            assert sum(1 + event.extension_slots() for event in events) == slots
            pieces[sequence] = track, thread_id, events
            at += head + size
        self.lost = []  # (track, first ticks, last ticks, events) of what was being lost when the process ended
        for unit in range(header["header_bytes"], header["header_bytes"] + header["live_bytes"], UNIT_BYTES):
            if struct.unpack_from("<I", data, unit)[0] == LOST_TABLE:
                for entry in range(unit + 64, unit + UNIT_BYTES, 64):
                    events, first, last, thread_id, track = struct.unpack_from("<QQQQI", data, entry)
                    if events > 0:
                        self.lost.append((track, first, last, events))
                continue
            (pages,) = struct.unpack_from("<I", data, unit + 24)
            step = PAGE_BYTES if pages == 1 else UNIT_BYTES
            for at in range(unit, unit + UNIT_BYTES, step):
                state, track, sequence, thread_id = struct.unpack_from("<IIQQ", data, at)
                if state in (OPEN, FULL) and sequence not in pieces:
                    pieces[sequence] = track, thread_id, decode_chunk(data[at : at + step])
        self.tracks, self.thread_ids = {}, {}
        for sequence in sorted(pieces):
            track, thread_id, events = pieces[sequence]
            self.tracks.setdefault(track, []).extend(events)
            self.thread_ids[track] = thread_id
        self.collect_definitions()

    def read_header(self, data):
        names = ("magic version header_bytes file_id clock_source pid ticks_per_second start_ticks start_utc_ns "
                 "process_start_utc_ns text_bytes reserved text_hash hash live_bytes blocks_end rank world_size "
                 "local_rank closed").split()
        values = struct.unpack_from("<8sIIQIIdQqqIIQQQQiiiI", data)
        self.header = dict(zip(names, values))
        if self.header.pop("magic") != b"PACELINE" or self.header["version"] not in (1, 2):
            raise ValueError("not a .pace file of version 1 or 2")
        self.header["dropped"] = list(struct.unpack_from("<7Q", data, 120))
        late_counters = self.header["header_bytes"] - 64
        if 184 + self.header["text_bytes"] <= late_counters:
            self.header["dropped"] += struct.unpack_from("<Q", data, late_counters)
        (self.header["kept_from"],) = struct.unpack_from("<Q", data, 176)
        self.text = json.loads(data[184 : 184 + self.header["text_bytes"]])

    def collect_definitions(self):
        self.names, self.domains, self.categories, self.counters = {0: ""}, {0: ""}, {}, {}
        definitions = [event for events in self.tracks.values() for event in events if event.type < 16 or event.type == 128]
        for event in definitions:
            if event.name == "name":
                self.names[event.words[LOW] & 0xFFFFFFFF] = event.text.decode()
        for event in definitions:
            low = event.words[LOW]
            if event.name == "domain":
                self.domains[low & 0xFFFF] = self.names[low >> 32]
            elif event.name == "category":
                self.categories[low & 0xFFFF, low >> 32] = self.names[event.words[EXT_HIGH]]
            elif event.name == "counter":
                unit = event.words[EXT_HIGH]
                kind = "sum" if low >> 16 & 0xFFFF == 1 else "level"
                self.counters[low & 0xFFFF] = self.names[low >> 32], self.names[unit & 0xFFFFFFFF], self.names[unit >> 32], kind

    def nanoseconds(self, event):
        """Since the recording began, by the nominal frequency."""
        return event.ticks * 1e9 / self.header["ticks_per_second"]

    def scope(self, event):
        """Name, domain and category of a push, mark or start."""
        low = event.words[LOW]
        domain = low >> 48
        category = self.categories.get((domain, low >> 32 & 0xFFFF), "")
        return self.names[low & 0xFFFFFFFF], self.domains[domain], category

    def payload(self, event):
        type, value = {
            "push_payload": (EXT_HIGH, EXT_LOW), "mark_payload": (EXT_HIGH, EXT_LOW), "start_payload": (EXT2_HIGH, EXT_LOW)
        }.get(event.name, (None, None))
        if type is None or event.words[type] not in PAYLOADS:
            return None
        return struct.unpack(PAYLOADS[event.words[type]], struct.pack("<Q", event.words[value]))[0]

    def samples(self):
        """(time, counter's name, unit, device, kind, value) of all samples, track by track."""
        for events in self.tracks.values():
            for event in events:
                if event.name == "sample" and event.words[LOW] in self.counters:
                    yield self.nanoseconds(event), *self.counters[event.words[LOW]], event.words[EXT_HIGH]

    def ranges(self):
        """(track, begin, end, name, domain, category, payload) of all ranges of pushes that were popped, as they end."""
        for track, events in self.tracks.items():
            open_pushes = {}
            for event in events:
                if event.name in ("push", "push_payload"):
                    open_pushes.setdefault(event.words[LOW] >> 48, []).append(event)
                elif event.name == "pop" and open_pushes.get(event.words[LOW] & 0xFFFF):
                    push = open_pushes[event.words[LOW] & 0xFFFF].pop()
                    yield track, self.nanoseconds(push), self.nanoseconds(event), *self.scope(push), self.payload(push)


def main():
    trace = Trace(sys.argv[1])
    print(json.dumps(trace.header | {"text": trace.text}))
    for track, events in trace.tracks.items():
        for event in events:
            line = {"track": track, "thread": trace.thread_ids[track], "ns": trace.nanoseconds(event), "type": event.name}
            if event.name in ("push", "push_payload", "mark", "mark_payload", "start", "start_payload"):
                line["name"], line["domain"], line["category"] = trace.scope(event)
                line["payload"] = trace.payload(event)
            else:
                line["words"] = event.words
                if event.name in WITH_BYTES:
                    line["text"] = event.text.decode(errors="replace")
            print(json.dumps(line))
    for track, first, last, events in trace.lost:
        print(json.dumps({"track": track, "type": "lost", "first": first, "last": last, "events": events}))


if __name__ == "__main__":
    main()
