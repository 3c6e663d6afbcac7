"""Random (writer schema, reader schema, datum) triples: a schema, a value of it, and what people and accidents
make of the schema later. Everything follows from the seed.

Schemas are graphs of Type objects while they are changed, and printed as JSON at the end: sometimes a name is
written in full, sometimes it leans on the namespace around it.
"""

import copy
import json
import random
import struct

PRIMITIVES = ["null", "boolean", "int", "long", "float", "double", "bytes", "string"]
NAMED = ("record", "enum", "fixed")
SPACES = ["", "a", "b.c"]


class Type:
    """A schema; named ones are shared by all who use them."""

    def __init__(self, kind, **members):
        self.kind = kind
        self.name = members.get("name")  # full
        self.aliases = members.get("aliases", [])
        self.fields = members.get("fields", [])
        self.symbols = members.get("symbols", [])
        self.default = members.get("default")  # of an enum
        self.size = members.get("size", 0)
        self.item = members.get("item")
        self.branches = members.get("branches", [])
        self.logical = members.get("logical")  # precision, scale

    @property
    def space(self):
        """The namespace."""
        return self.name.rpartition(".")[0]

    @property
    def last(self):
        """The name without it."""
        return self.name.rpartition(".")[2]


class Field:
    """Of a record."""

    def __init__(self, name, type_):
        self.name = name
        self.type = type_
        self.aliases = []
        self.has_default = False
        self.default = None


# ---- printing ----


def to_json(type_, rng, space="", seen=None):
    """The schema as JSON."""
    seen = seen if seen is not None else set()
    if type_.kind in NAMED:
        return _named_json(type_, rng, space, seen)
    if type_.kind == "array":
        return {"type": "array", "items": to_json(type_.item, rng, space, seen)}
    if type_.kind == "map":
        return {"type": "map", "values": to_json(type_.item, rng, space, seen)}
    if type_.kind == "union":
        return [to_json(branch, rng, space, seen) for branch in type_.branches]
    if type_.logical:
        return dict({"type": type_.kind, "logicalType": "decimal"}, **type_.logical)
    return type_.kind if rng.random() < 0.9 else {"type": type_.kind}


def _named_json(type_, rng, space, seen):
    short = type_.space == space and rng.random() < 0.5
    if type_.name in seen:
        return type_.last if short else type_.name
    seen.add(type_.name)
    text = {"type": type_.kind, "name": type_.last}
    if not short:
        text["namespace"] = type_.space
    if type_.aliases:
        text["aliases"] = type_.aliases
    if type_.kind == "record":
        text["fields"] = [_field_json(field, rng, type_.space, seen) for field in type_.fields]
    elif type_.kind == "enum":
        text["symbols"] = type_.symbols
        if type_.default is not None:
            text["default"] = type_.default
    else:
        text["size"] = type_.size
        if type_.logical:
            text.update({"logicalType": "decimal"}, **type_.logical)
    return text


def _field_json(field, rng, space, seen):
    text = {"name": field.name, "type": to_json(field.type, rng, space, seen)}
    if field.has_default:
        text["default"] = field.default
    if field.aliases:
        text["aliases"] = field.aliases
    return text


# ---- making schemas ----


class Maker:
    """Makes types, values and defaults."""

    def __init__(self, rng):
        self.rng = rng
        self.count = 0
        self.spaces = [rng.choice(SPACES)] if rng.random() < 0.7 else ["a", "b.c"]

    def name(self, prefix):
        """A full name that nobody has."""
        self.count += 1
        space = self.rng.choice(self.spaces)
        return f"{space}{'.' if space else ''}{prefix}{self.count}"

    def type(self, depth, around=()):
        """A type; around: records that are being made, which may be used where that can end."""
        rng = self.rng
        roll = rng.random()
        if depth <= 0 or roll < 0.45:
            return self.leaf()
        if roll < 0.62:
            return self.record(depth - 1, around)
        if roll < 0.72:
            return Type(rng.choice(["array", "map"]), item=self.part(depth - 1, around))
        return self.union(depth - 1, around)

    def part(self, depth, around):
        """Of an array, map or union: a record may hold itself there."""
        if around and self.rng.random() < 0.25:
            return self.rng.choice(around)
        return self.type(depth, around)

    def leaf(self):
        """A type without parts."""
        rng = self.rng
        roll = rng.random()
        if roll < 0.70:
            return Type(rng.choice(PRIMITIVES))
        if roll < 0.82:
            symbols = [f"S{i}" for i in range(rng.randint(1, 4))]
            default = rng.choice(symbols) if rng.random() < 0.3 else None
            return Type("enum", name=self.name("E"), symbols=symbols, default=default)
        if roll < 0.92:
            return Type("fixed", name=self.name("F"), size=rng.choice([0, 1, 4]))
        return Type("bytes", logical={"precision": rng.choice([4, 9]), "scale": rng.choice([0, 2])})

    def record(self, depth, around):
        """A record of a few fields."""
        record = Type("record", name=self.name("R"))
        known = [around[-1]] if around else []
        for i in range(self.rng.randint(0, 4)):
            field = Field(f"f{i}", self.type(depth, tuple(known) + (record,)))
            record.fields.append(field)
        for field in record.fields:
            if self.rng.random() < 0.2:
                self.give_default(field)
        return record

    def union(self, depth, around):
        """A union of types that may stand together."""
        union = Type("union")
        if self.rng.random() < 0.6:
            union.branches.append(Type("null"))
        for _ in range(self.rng.randint(1, 3)):
            branch = self.part(depth, around)
            if may_join(union, branch):
                union.branches.append(branch)
        if all(branch.kind == "record" for branch in union.branches):
            union.branches.insert(0, Type("null"))  # so that it ends
        self.rng.shuffle(union.branches)
        return union

    def give_default(self, field):
        """A default, when one can be made."""
        try:
            field.default = self.default(field.type, 3)
            field.has_default = True
        except RecursionError:
            field.has_default = False

    def default(self, type_, depth):
        """JSON that fits the type."""
        rng = self.rng
        kind = type_.kind
        if depth < 0:
            raise RecursionError
        if kind == "record":
            return {
                field.name: self.default(field.type, depth - 1)
                for field in type_.fields
                if not (field.has_default and rng.random() < 0.5)
            }
        if kind in ("array", "map"):
            if depth == 0 or rng.random() < 0.5:
                return [] if kind == "array" else {}
            item = self.default(type_.item, depth - 1)
            return [item] if kind == "array" else {"k": item}
        if kind == "union":
            return self.default(rng.choice(type_.branches), depth - 1)
        if kind == "enum":
            return rng.choice(type_.symbols)
        if kind in ("bytes", "fixed"):
            return value_of_bytes(rng, type_.size if kind == "fixed" else rng.randint(0, 3)).decode("latin-1")
        return self.value(type_, depth)

    def value(self, type_, depth):
        """A value: unions are (index, value), the rest is what it is."""
        rng = self.rng
        kind = type_.kind
        if kind == "null":
            return None
        if kind == "boolean":
            return rng.random() < 0.5
        if kind == "int":
            return rng.choice([0, -1, 1, 2**31 - 1, -(2**31), 16777217, rng.randint(-1000, 1000)])
        if kind == "long":
            return rng.choice([0, -1, 2**63 - 1, -(2**63), 9007199254740993, 36028797018963969, rng.randint(-10**6, 10**6)])
        if kind == "float":
            return struct.unpack("<f", struct.pack("<f", rng.choice([0.0, 1.5, -2.25, 0.1, 3e38])))[0]
        if kind == "double":
            return rng.choice([0.0, 1.5, -2.25, 0.1, 1e300])
        if kind == "bytes":
            return value_of_bytes(rng, rng.randint(0, 4))
        if kind == "fixed":
            return value_of_bytes(rng, type_.size)
        if kind == "string":
            return rng.choice(["", "a", "snow \u2603", "\u00ff", "nul \0", "\U0001f40d"])
        if kind == "enum":
            return rng.choice(type_.symbols)
        return self.whole(type_, depth)

    def whole(self, type_, depth):
        """A value that has parts."""
        rng = self.rng
        if type_.kind == "record":
            return {field.name: self.value(field.type, depth - 1) for field in type_.fields}
        if type_.kind == "union":
            ends = [i for i, branch in enumerate(type_.branches) if branch.kind != "record"]
            index = rng.choice(ends) if depth <= 0 and ends else rng.randrange(len(type_.branches))
            return (index, self.value(type_.branches[index], depth - 1))
        count = 0 if depth <= 0 else rng.randint(0, 3)
        items = [self.value(type_.item, depth - 1) for _ in range(count)]
        return items if type_.kind == "array" else {f"k{i}": item for i, item in enumerate(items)}


def value_of_bytes(rng, size):
    """Bytes, often such that are UTF-8."""
    if rng.random() < 0.6:
        return bytes(rng.choice(b"az09") for _ in range(size))
    return bytes(rng.randrange(256) for _ in range(size))


def may_join(union, branch):
    """May the branch stand in the union beside those that it has?"""
    if branch.kind == "union":
        return False
    if branch.kind in NAMED:
        return all(other.name != branch.name for other in union.branches)
    return all(other.kind != branch.kind for other in union.branches)


# ---- encoding ----


def put_long(value, out):
    """A zig-zag varint."""
    value = (value << 1) ^ (value >> 63)
    value &= 2**64 - 1
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)


def encode(type_, value, out, rng):
    """Avro binary; now and then a block says its size, or items come in two blocks."""
    kind = type_.kind
    if kind == "boolean":
        out.append(1 if value else 0)
    elif kind in ("int", "long"):
        put_long(value, out)
    elif kind == "float":
        out += struct.pack("<f", value)
    elif kind == "double":
        out += struct.pack("<d", value)
    elif kind in ("bytes", "string"):
        data = value if kind == "bytes" else value.encode()
        put_long(len(data), out)
        out += data
    elif kind == "fixed":
        out += value
    elif kind == "enum":
        put_long(type_.symbols.index(value), out)
    elif kind == "record":
        for field in type_.fields:
            encode(field.type, value[field.name], out, rng)
    elif kind == "union":
        put_long(value[0], out)
        encode(type_.branches[value[0]], value[1], out, rng)
    elif kind in ("array", "map"):
        _encode_blocks(type_, value, out, rng)


def _encode_blocks(type_, value, out, rng):
    items = list(value.items()) if type_.kind == "map" else [(None, item) for item in value]
    while items:
        count = rng.randint(1, len(items)) if rng.random() < 0.2 else len(items)
        block = bytearray()
        for key, item in items[:count]:
            if key is not None:
                encode(Type("string"), key, block, rng)
            encode(type_.item, item, block, rng)
        if rng.random() < 0.2:
            put_long(-count, out)
            put_long(len(block), out)
        else:
            put_long(count, out)
        out += block
        items = items[count:]
    out.append(0)


# ---- what becomes of a schema ----


class Change:
    """Changes of a reader's schema, which starts as the writer's."""

    def __init__(self, maker, root):
        self.maker = maker
        self.rng = maker.rng
        self.root = root

    def types(self):
        """Every type once, with a way to put another in its place."""
        found, seen = [], set()

        def walk(type_, put):
            found.append((type_, put))
            if id(type_) in seen:
                return
            seen.add(id(type_))
            for field in type_.fields:
                walk(field.type, lambda new, field=field: setattr(field, "type", new))
            if type_.item:
                walk(type_.item, lambda new: setattr(type_, "item", new))
            for i, branch in enumerate(type_.branches):
                walk(branch, lambda new, i=i: type_.branches.__setitem__(i, new))

        walk(self.root, lambda new: setattr(self, "root", new))
        return found

    def of_kind(self, *kinds):
        """One of these types, or None."""
        some = [type_ for type_, _ in self.types() if type_.kind in kinds]
        return self.rng.choice(some) if some else None

    def step(self):
        """One change."""
        changes = [
            self.add_field, self.add_field, self.drop_field, self.reorder, self.rename_field, self.swap_names,
            self.promote, self.promote, self.retype, self.wrap, self.unwrap, self.join, self.leave, self.shuffle_union,
            self.rename_type, self.move_type, self.drop_symbol, self.default_symbol, self.resize, self.rescale,
            self.toggle_default, self.alias_clash,
        ]
        self.rng.choice(changes)()

    def add_field(self):
        record = self.of_kind("record")
        if not record:
            return
        self.maker.count += 1
        field = Field(f"n{self.maker.count}", self.maker.type(1))
        if self.rng.random() < 0.85:
            self.maker.give_default(field)
        record.fields.insert(self.rng.randint(0, len(record.fields)), field)

    def drop_field(self):
        record = self.of_kind("record")
        if record and record.fields:
            record.fields.pop(self.rng.randrange(len(record.fields)))

    def reorder(self):
        record = self.of_kind("record")
        if record:
            self.rng.shuffle(record.fields)

    def rename_field(self):
        record = self.of_kind("record")
        if not record or not record.fields:
            return
        field = self.rng.choice(record.fields)
        self.maker.count += 1
        old, field.name = field.name, f"r{self.maker.count}"
        if self.rng.random() < 0.8:
            field.aliases = field.aliases + [old]

    def swap_names(self):
        record = self.of_kind("record")
        if not record or len(record.fields) < 2 or self.rng.random() < 0.5:
            return
        one, two = self.rng.sample(record.fields, 2)
        if not one.aliases and not two.aliases:
            one.name, two.name = two.name, one.name
            one.aliases, two.aliases = [two.name], [one.name]

    def alias_clash(self):
        record = self.of_kind("record")
        if record and len(record.fields) >= 2 and self.rng.random() < 0.2:
            one, two = self.rng.sample(record.fields, 2)
            one.aliases = one.aliases + [two.name]

    def promote(self):
        ways = {"int": ["long", "float", "double"], "long": ["float", "double"], "float": ["double"],
                "string": ["bytes"], "bytes": ["string"]}
        some = [(t, put) for t, put in self.types() if t.kind in ways and not t.logical]
        if some:
            type_, put = self.rng.choice(some)
            put(Type(self.rng.choice(ways[type_.kind])))

    def retype(self):
        if self.rng.random() < 0.3:
            _, put = self.rng.choice(self.types())
            put(self.maker.leaf())

    def wrap(self):
        type_, put = self.rng.choice(self.types())
        if type_.kind in ("union", "null"):
            return
        union = Type("union", branches=[type_])
        for other in (Type("null"), self.maker.leaf()):
            if self.rng.random() < 0.7 and may_join(union, other):
                union.branches.insert(self.rng.randint(0, len(union.branches)), other)
        put(union)

    def unwrap(self):
        some = [(t, put) for t, put in self.types() if t.kind == "union"]
        if some:
            type_, put = self.rng.choice(some)
            put(self.rng.choice(type_.branches))

    def join(self):
        union = self.of_kind("union")
        branch = self.maker.leaf()
        if union and may_join(union, branch):
            union.branches.insert(self.rng.randint(0, len(union.branches)), branch)

    def leave(self):
        union = self.of_kind("union")
        if union and len(union.branches) > 1:
            union.branches.pop(self.rng.randrange(len(union.branches)))

    def shuffle_union(self):
        union = self.of_kind("union")
        if union:
            self.rng.shuffle(union.branches)

    def rename_type(self):
        type_ = self.of_kind(*NAMED)
        if not type_:
            return
        old, type_.name = type_.name, self.maker.name("T")
        roll = self.rng.random()
        if roll < 0.7:
            type_.aliases = type_.aliases + [old]
        elif roll < 0.85:
            type_.aliases = type_.aliases + [old.rpartition(".")[2]]

    def move_type(self):
        type_ = self.of_kind(*NAMED)
        if type_ and type_.space:
            old = type_.name
            type_.name = f"moved.{type_.last}"
            if self.rng.random() < 0.3:
                type_.aliases = type_.aliases + [old]

    def drop_symbol(self):
        enum = self.of_kind("enum")
        if enum and len(enum.symbols) > 1:
            gone = enum.symbols.pop(self.rng.randrange(len(enum.symbols)))
            if enum.default == gone:
                enum.default = None

    def default_symbol(self):
        enum = self.of_kind("enum")
        if enum and enum.symbols:
            if self.rng.random() < 0.5:
                enum.symbols.append("UNKNOWN") if "UNKNOWN" not in enum.symbols else None
            enum.default = self.rng.choice(enum.symbols)

    def resize(self):
        fixed = self.of_kind("fixed")
        if fixed and self.rng.random() < 0.3:
            fixed.size += 1

    def rescale(self):
        some = [t for t, _ in self.types() if t.logical]
        if some and self.rng.random() < 0.5:
            self.rng.choice(some).logical = {"precision": 9, "scale": self.rng.choice([0, 2, 3])}

    def toggle_default(self):
        record = self.of_kind("record")
        if record and record.fields:
            field = self.rng.choice(record.fields)
            if field.has_default:
                field.has_default = False
            else:
                self.maker.give_default(field)


# ---- is it a schema? ----


def fits(type_, value, depth=0):
    """Is the JSON value a default of the type?"""
    kind = type_.kind
    if depth > 40:
        return False
    if kind == "union":
        return any(fits(branch, value, depth + 1) for branch in type_.branches)
    if kind == "null":
        return value is None
    if kind == "boolean":
        return isinstance(value, bool)
    if kind in ("int", "long", "float", "double"):
        number = isinstance(value, (int, float)) and not isinstance(value, bool)
        if kind in ("float", "double"):
            return number
        bits = 31 if kind == "int" else 63
        return number and isinstance(value, int) and -(2**bits) <= value < 2**bits
    if kind in ("bytes", "fixed"):
        good = isinstance(value, str) and all(ord(c) < 256 for c in value)
        return good and (kind == "bytes" or len(value) == type_.size)
    if kind == "string":
        return isinstance(value, str)
    if kind == "enum":
        return value in type_.symbols
    if kind == "array":
        return isinstance(value, list) and all(fits(type_.item, item, depth + 1) for item in value)
    if not isinstance(value, dict):
        return False
    if kind == "map":
        return all(fits(type_.item, item, depth + 1) for item in value.values())
    return all(
        fits(field.type, value[field.name], depth + 1) if field.name in value
        else field.has_default and fits(field.type, field.default, depth + 1)
        for field in type_.fields
    )


def tidy(change):
    """Defaults that no longer fit go; false when the schema is none any more."""
    names = {}
    for _ in range(3):
        for type_, _ in change.types():
            for field in type_.fields:
                if field.has_default and not fits(field.type, field.default):
                    field.has_default = False
    for type_, _ in change.types():
        if type_.kind in NAMED and names.setdefault(type_.name, type_) is not type_:
            return False
        if len({field.name for field in type_.fields}) != len(type_.fields):
            return False
        if type_.kind == "union":
            for i, branch in enumerate(type_.branches):
                if not may_join(Type("union", branches=type_.branches[:i]), branch):
                    return False
    return all(ends(type_) for type_, _ in change.types())


def ends(type_, inside=()):
    """Does a value of the type exist?"""
    if any(type_ is other for other in inside):
        return False
    if type_.kind == "record":
        return all(ends(field.type, inside + (type_,)) for field in type_.fields)
    if type_.kind == "union":
        return any(ends(branch, inside) for branch in type_.branches)
    return True


def mangle(body, rng):
    """Bytes that are (nearly always) not of the writer's schema."""
    roll = rng.random()
    if roll < 0.4 and body:
        return body[: rng.randrange(len(body))]
    if roll < 0.7:
        return body + bytes([rng.randrange(256)])
    if not body:
        return b"\x07"
    at = rng.randrange(len(body))
    return body[:at] + bytes([body[at] ^ (1 << rng.randrange(8))]) + body[at + 1 :]


def more_bodies(maker, writer, seed, count):
    """Other values of the writer's."""
    maker.rng = random.Random(f"{seed} bodies")
    bodies = []
    for _ in range(count):
        body = bytearray()
        encode(writer, maker.value(writer, 5), body, maker.rng)
        bodies.append(bytes(body))
    return bodies


def triple(seed, bodies=0):
    """{"id", "writer", "reader", "body", "mangled", "bodies"}; the schemas are JSON, the bodies bytes, none but the
    first one mangled."""
    rng = random.Random(seed)
    maker = Maker(rng)
    writer = maker.record(3, ()) if rng.random() < 0.8 else maker.type(3)
    tidy(Change(maker, writer))
    value = maker.value(writer, 5)
    body = bytearray()
    encode(writer, value, body, rng)
    change = Change(maker, copy.deepcopy(writer))
    for _ in range(rng.choice([0, 1, 1, 2, 2, 3, 5])):
        before = copy.deepcopy(change.root)
        change.step()
        if not tidy(change):
            change.root = before
    mangled = rng.random() < 0.06
    return {
        "id": seed,
        "writer": to_json(writer, rng),
        "reader": to_json(change.root, rng),
        "body": mangle(bytes(body), rng) if mangled else bytes(body),
        "mangled": mangled,
        "bodies": more_bodies(maker, writer, seed, bodies),
    }


if __name__ == "__main__":
    print(json.dumps({key: str(value) if key == "body" else value for key, value in triple(0).items()}, indent=1))
