"""Values under a schema, by readers that share no code with the product: a strict decoder of Avro binary, and the
comparison of what it finds with what another implementation found."""

import struct

NAMED = ("record", "error", "enum", "fixed")


class Node:
    """A schema whose names are resolved."""

    def __init__(self, kind):
        self.kind = kind
        self.name = ""
        self.fields = []  # (name, Node, JSON of the field)
        self.symbols = []
        self.size = 0
        self.item = None
        self.branches = []
        self.decimals = []  # (precision, scale)


def load(schema, names=None, space=""):
    """A Node of a schema in JSON."""
    names = names if names is not None else {}
    if isinstance(schema, list):
        node = Node("union")
        node.branches = [load(branch, names, space) for branch in schema]
        return node
    if isinstance(schema, str):
        full = schema if "." in schema or not space else f"{space}.{schema}"
        return names.get(full) or Node(schema)
    kind = schema["type"]
    if kind in ("array", "map"):
        node = Node(kind)
        node.item = load(schema["items" if kind == "array" else "values"], names, space)
        return node
    if kind not in NAMED:
        node = load(kind, names, space)
        node.decimals += decimal_of(schema)
        return node
    node = Node(kind)
    node.decimals += decimal_of(schema)
    space = schema.get("namespace", space)
    node.name = schema["name"] if "." in schema["name"] or not space else f"{space}.{schema['name']}"
    names[node.name] = node
    node.symbols = schema.get("symbols", [])
    node.size = schema.get("size", 0)
    inner = node.name.rpartition(".")[0]
    node.fields = [(field["name"], load(field["type"], names, inner), field) for field in schema.get("fields", [])]
    return node


def decimal_of(schema):
    """Precision and scale of a decimal, in a list; else an empty one."""
    return [(schema["precision"], schema.get("scale", 0))] if schema.get("logicalType") == "decimal" else []


class Malformed(Exception):
    """The bytes are not of the schema."""


class Decoder:
    """Takes nothing on trust. Unions are (index, value)."""

    def __init__(self, data):
        self.data = data
        self.at = 0

    def take(self, size):
        """So many bytes."""
        if size < 0 or size > len(self.data) - self.at:
            raise Malformed("length")
        self.at += size
        return self.data[self.at - size : self.at]

    def long(self, most=10):
        """A varint; an int has five bytes."""
        value = 0
        for i in range(most):
            byte = self.take(1)[0]
            value |= (byte & 0x7F) << 7 * i
            if not byte & 0x80:
                if value >= 2**64:
                    break
                value = (value >> 1) ^ -(value & 1)
                if most == 5 and not -(2**31) <= value < 2**31:
                    break
                return value
        raise Malformed("varint")

    def index(self, count):
        """Of a union or an enum."""
        index = self.long()
        if not 0 <= index < count:
            raise Malformed("index")
        return index

    def text(self):
        """A string."""
        try:
            return self.take(self.long()).decode()
        except UnicodeDecodeError as error:
            raise Malformed("UTF-8") from error

    def value(self, node):
        """Of a type."""
        kind = node.kind
        if kind == "null":
            return None
        if kind == "boolean":
            byte = self.take(1)[0]
            if byte > 1:
                raise Malformed("boolean")
            return bool(byte)
        if kind == "int":
            return self.long(5)
        if kind == "long":
            return self.long()
        if kind == "float":
            return struct.unpack("<f", self.take(4))[0]
        if kind == "double":
            return struct.unpack("<d", self.take(8))[0]
        if kind == "bytes":
            return self.take(self.long())
        if kind == "string":
            return self.text()
        if kind == "fixed":
            return self.take(node.size)
        if kind == "enum":
            return node.symbols[self.index(len(node.symbols))]
        if kind == "record":
            return {name: self.value(type_) for name, type_, _ in node.fields}
        if kind == "union":
            index = self.index(len(node.branches))
            return (index, self.value(node.branches[index]))
        return self.blocks(node)

    def blocks(self, node):
        """Of an array or a map."""
        items = []
        while True:
            count, size = self.long(), None
            if count == 0:
                return items if node.kind == "array" else dict(items)
            if count < 0:
                count, size = -count, self.long()
            if count > 100000:
                raise Malformed("count")
            start = self.at
            for _ in range(count):
                key = self.text() if node.kind == "map" else None
                item = self.value(node.item)
                items.append(item if key is None else (key, item))
            if size is not None and self.at - start != size:
                raise Malformed("block size")


def decode(node, data):
    """The one value that data holds."""
    decoder = Decoder(data)
    value = decoder.value(node)
    if decoder.at != len(data):
        raise Malformed("left over")
    return value


def same(node, ours, theirs):
    """Is what we decoded what fastavro gave? It knows no index of a branch, and hands out a default as it stands
    in the schema's JSON: bytes as a string, a number of the wrong kind, a record without some of its members."""
    kind = node.kind
    if kind == "union":
        return same(node.branches[ours[0]], ours[1], theirs)
    if kind == "record":
        if not isinstance(theirs, dict):
            return False
        return all(
            same(type_, ours[name], theirs[name] if name in theirs else field.get("default"))
            for name, type_, field in node.fields
        )
    if kind == "array":
        return isinstance(theirs, list) and len(ours) == len(theirs) and all(
            same(node.item, one, other) for one, other in zip(ours, theirs)
        )
    if kind == "map":
        return isinstance(theirs, dict) and ours.keys() == theirs.keys() and all(
            same(node.item, ours[key], theirs[key]) for key in ours
        )
    if kind in ("bytes", "fixed") and isinstance(theirs, str):
        return "".join(map(chr, ours)) == theirs
    if kind in ("float", "double") and isinstance(theirs, (int, float)) and not isinstance(theirs, bool):
        return float_equal(kind, ours, theirs)
    return type(ours) is type(theirs) and ours == theirs


def float_equal(kind, ours, theirs):
    """As the wire has it; NaN equals itself."""
    theirs = float(theirs)
    if kind == "float":
        try:
            theirs = struct.unpack("<f", struct.pack("<f", theirs))[0]
        except OverflowError:
            theirs = float("inf") if theirs > 0 else float("-inf")
    return ours == theirs or (ours != ours and theirs != theirs)
