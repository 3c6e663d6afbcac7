"""Avro without the product: Debian's python3-avro, and a small encoder that can also lie.

The records are read from schemas/*.avsc. Logical types are taken off before parsing, so that times
stay integers and ids stay the strings that were on the wire.

Framing is that of the Avro specification, "Single-object encoding": C3 01, the CRC-64-AVRO of the
parsing canonical form in little-endian order, the body. Canonical form and fingerprint are written
here from the text of the specification, and a self-test compares them with those of python3-avro.
"""

import io
import json
import os
import struct
from pathlib import Path

import avro.io
import avro.schema

ROOT = Path(__file__).resolve().parents[2]
SCHEMAS = Path(os.environ.get("FERMATA_SCHEMAS", ROOT / "schemas"))
NAMES = ("SuspendEvent", "ApprovalEvent", "ResumeEvent", "GateEvent")
PRIMITIVES = {"null", "boolean", "int", "long", "float", "double", "bytes", "string"}
CRC64_EMPTY = 0xC15D213AA4D7A795
MARKER = b"\xc3\x01"


def _crc64_table():
    table = []
    for value in range(256):
        for _ in range(8):
            value = (value >> 1) ^ (CRC64_EMPTY if value & 1 else 0)
        table.append(value)
    return table


_TABLE = _crc64_table()


def crc64_avro(data):
    """The 64-bit Rabin fingerprint of the specification, as a number."""
    crc = CRC64_EMPTY
    for byte in data:
        crc = (crc >> 8) ^ _TABLE[(crc ^ byte) & 0xFF]
    return crc


def canonical_form(schema):
    """The parsing canonical form of a schema (the parsed JSON of its text)."""
    return json.dumps(_canonical(schema, ""), separators=(",", ":"), ensure_ascii=False)


def _full(name, namespace):
    return name if "." in name or not namespace else f"{namespace}.{name}"


def _canonical(schema, namespace):
    if isinstance(schema, str):
        return schema if schema in PRIMITIVES else _full(schema, namespace)
    if isinstance(schema, list):
        return [_canonical(branch, namespace) for branch in schema]
    kind = schema["type"]
    if kind in PRIMITIVES or not isinstance(kind, str):
        return _canonical(kind, namespace)
    if kind == "array":
        return {"type": kind, "items": _canonical(schema["items"], namespace)}
    if kind == "map":
        return {"type": kind, "values": _canonical(schema["values"], namespace)}
    name = _full(schema["name"], schema.get("namespace", namespace))
    result = {"name": name, "type": kind}
    if kind == "enum":
        result["symbols"] = schema["symbols"]
    elif kind == "fixed":
        result["size"] = int(schema["size"])
    else:
        inner = name.rpartition(".")[0]
        result["fields"] = [
            {"name": f["name"], "type": _canonical(f["type"], inner)} for f in schema["fields"]
        ]
    return result


def _without_logical_types(schema):
    if isinstance(schema, list):
        return [_without_logical_types(each) for each in schema]
    if isinstance(schema, dict):
        return {
            key: value if key == "default" else _without_logical_types(value)
            for key, value in schema.items()
            if key != "logicalType"
        }
    return schema


class Raw(bytes):
    """Bytes that `Schema.lie` writes as they are in the place of a value."""


class _Writer(avro.io.DatumWriter):
    """python3-avro's writer, with the branch of a union chosen by the exact type.

    Left alone it takes the last branch that would do, which makes true and 1 doubles.
    """

    def write_union(self, writers_schema, datum, encoder):
        for index, branch in enumerate(writers_schema.schemas):
            if _fits(branch.type, datum):
                encoder.write_long(index)
                self.write_data(branch, datum, encoder)
                return
        raise TypeError(f"{datum!r} fits no branch of {writers_schema}")


class Schema:
    """One schema: its text, its fingerprint, and the two ways to write a datum."""

    def __init__(self, text):
        self.json = json.loads(text)
        self.fingerprint = struct.pack("<Q", crc64_avro(canonical_form(self.json).encode()))
        self.frame = MARKER + self.fingerprint
        self.avro = avro.schema.parse(json.dumps(_without_logical_types(self.json)))
        self._writer = _Writer(self.avro)
        self._reader = avro.io.DatumReader(self.avro)
        self._named = {}
        self._collect(self.json, "")

    def _collect(self, schema, namespace):
        if isinstance(schema, list):
            for branch in schema:
                self._collect(branch, namespace)
        elif isinstance(schema, dict):
            if "name" in schema:
                name = _full(schema["name"], schema.get("namespace", namespace))
                self._named[name] = schema
                namespace = name.rpartition(".")[0]
            for part in [schema.get("items"), schema.get("values")]:
                self._collect(part, namespace)
            if not isinstance(schema["type"], str):
                self._collect(schema["type"], namespace)
            for field in schema.get("fields", []):
                self._collect(field["type"], namespace)

    @property
    def fields(self):
        return [field["name"] for field in self.json["fields"]]

    def body(self, datum):
        """The bare Avro binary of a datum, by python3-avro."""
        out = io.BytesIO()
        self._writer.write(datum, avro.io.BinaryEncoder(out))
        return out.getvalue()

    def encode(self, datum):
        """The datum with its single-object frame."""
        return self.frame + self.body(datum)

    def decode_body(self, data):
        """The datum of a bare body; every byte must belong to it."""
        source = io.BytesIO(data)
        datum = self._reader.read(avro.io.BinaryDecoder(source))
        if source.read(1):
            raise ValueError("bytes are left after the datum")
        return datum

    def decode(self, data):
        """The datum of a framed value."""
        if data[:10] != self.frame:
            raise ValueError(f"frame {data[:10].hex()}, wanted {self.frame.hex()}")
        return self.decode_body(data[10:])

    # -- the encoder that can lie --

    def lie(self, datum, frame=None):
        """Like encode, but a Raw anywhere stands for itself and nothing is checked."""
        out = bytearray(self.frame if frame is None else frame)
        self._write(self.json, datum, out, "")
        return bytes(out)

    def _write(self, schema, datum, out, namespace):
        if isinstance(datum, Raw):
            out += datum
        elif isinstance(schema, list):
            self._write_union(schema, datum, out, namespace)
        elif isinstance(schema, str) and schema not in PRIMITIVES:
            name = _full(schema, namespace)
            self._write(self._named[name], datum, out, name.rpartition(".")[0])
        else:
            kind = schema if isinstance(schema, str) else schema["type"]
            if not isinstance(kind, str):
                self._write(kind, datum, out, namespace)
            elif kind in PRIMITIVES:
                out += _primitive(kind, datum)
            else:
                self._write_complex(kind, schema, datum, out, namespace)

    def _write_complex(self, kind, schema, datum, out, namespace):
        if "name" in schema:
            name = _full(schema["name"], schema.get("namespace", namespace))
            namespace = name.rpartition(".")[0]
        if kind == "record":
            for field in schema["fields"]:
                value = datum[field["name"]] if field["name"] in datum else field["default"]
                self._write(field["type"], value, out, namespace)
        elif kind == "fixed":
            out += datum
        elif kind == "enum":
            out += long(schema["symbols"].index(datum))
        else:
            items = datum.items() if kind == "map" else [(None, each) for each in datum]
            if items:
                out += long(len(items))
            for key, value in items:
                if key is not None:
                    out += _primitive("string", key)
                self._write(schema["values" if kind == "map" else "items"], value, out, namespace)
            out += long(0)

    def _write_union(self, branches, datum, out, namespace):
        for index, branch in enumerate(branches):
            kind = branch if isinstance(branch, str) else branch["type"]
            if _fits(self._named.get(_full(kind, namespace), {"type": kind})["type"], datum):
                out += long(index)
                self._write(branch, datum, out, namespace)
                return
        raise TypeError(f"{datum!r} fits no branch of {branches}")


def _fits(kind, datum):
    wanted = {
        "null": type(None),
        "boolean": bool,
        "int": int,
        "long": int,
        "double": float,
        "string": str,
        "enum": str,
        "array": list,
        "bytes": (bytes, bytearray),
        "fixed": (bytes, bytearray),
        "record": dict,
        "map": dict,
    }[kind]
    if isinstance(datum, bool):
        return kind == "boolean"
    return isinstance(datum, wanted) or isinstance(datum, Text) and kind == "string"


class Text(bytes):
    """A string given as bytes, which need not be UTF-8."""


def long(number):
    """A zig-zag varint, of as many bytes as the number needs."""
    number = (number << 1) ^ (number >> 63)
    number &= (1 << 64) - 1
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return Raw(out)


def _primitive(kind, datum):
    if kind == "null":
        return b""
    if kind == "boolean":
        return b"\1" if datum else b"\0"
    if kind in ("int", "long"):
        return long(datum)
    if kind == "float":
        return struct.pack("<f", datum)
    if kind == "double":
        return struct.pack("<d", datum)
    data = datum.encode("utf-8", "surrogatepass") if isinstance(datum, str) else datum
    return long(len(data)) + data


_loaded = {}


def schema(name):
    """The schema of one of NAMES, parsed once."""
    if name not in _loaded:
        _loaded[name] = Schema((SCHEMAS / f"{name}.avsc").read_text(encoding="utf-8"))
    return _loaded[name]


def same(left, right):
    """Equal, and doubles bit by bit: NaN is NaN, and -0.0 is not 0.0."""
    if isinstance(left, float) and isinstance(right, float):
        return struct.pack("<d", left) == struct.pack("<d", right)
    if type(left) is not type(right):
        return False
    if isinstance(left, dict):
        return left.keys() == right.keys() and all(same(left[k], right[k]) for k in left)
    if isinstance(left, list):
        return len(left) == len(right) and all(map(same, left, right))
    return left == right
