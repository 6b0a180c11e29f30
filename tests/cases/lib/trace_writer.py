"""Traces made by hand, record by record, for what no program of the tests would do. Fields by their names in records.def; what
is not given is 0 or empty. All in one chunk."""
import pathlib
import struct

CHUNK_BYTES, CHUNK_HEADER_BYTES = 65536, 64


class Trace:
    """The header, and with it the list of records and fields, is that of a trace that the recorder made."""

    def __init__(self, like):
        data = pathlib.Path(like).read_bytes()
        header_bytes, = struct.unpack_from("<I", data, 16)
        schema_bytes, = struct.unpack_from("<I", data, 44)
        self.header = bytearray(data[:header_bytes])
        self.fields, self.numbers = {}, {}
        for line in data[128:128 + schema_bytes].decode().splitlines():
            number, name, *fields = line.split()
            self.numbers[name] = int(number)
            self.fields[name] = [field.split(":") for field in fields]
        self.start_ns, = struct.unpack_from("<Q", data, 24)
        self.records, self.time_ns, self.address = bytearray(), 0, 0

    @staticmethod
    def number(value):
        out = bytearray()
        while value > 127:
            out.append(value & 127 | 128)
            value >>= 7
        return bytes(out + bytes([value]))

    def signed(self, value):
        return self.number((value << 1 ^ value >> 63) & (1 << 64) - 1)

    def field(self, sort, value):
        if sort == "T":
            last, self.time_ns = self.time_ns, value or self.time_ns
            return self.signed(self.time_ns - last)
        if sort == "A":
            last, self.address = self.address, value or 0
            return self.signed(self.address - last)
        if sort == "N":
            return self.number(value or 0)
        if sort == "S":
            return self.signed(value or 0)
        if sort == "X":
            return self.number(len(value or b"")) + (value or b"")
        last, out = 0, self.number(len(value or ()))
        for item in value or ():
            out += self.signed(item - last)
            last = item
        return out

    def put(self, record, /, **values):
        self.records += bytes([self.numbers[record]])
        for sort, field in self.fields[record]:
            self.records += self.field(sort, values.pop(field, None))
        assert not values, values

    def write(self, path):
        assert len(self.records) <= CHUNK_BYTES - CHUNK_HEADER_BYTES, len(self.records)
        struct.pack_into("<QQ", self.header, 48, 1, 0)  # one chunk, nothing lost
        chunk = struct.pack("<IIIIIIQQQQQ", 0x4b4e4843, 0, 1, len(self.records), 0, 0, 0, 0, 0, 0, 0)
        pathlib.Path(path).write_bytes(self.header + (chunk + self.records).ljust(CHUNK_BYTES, b"\0"))
