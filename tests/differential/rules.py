"""Where the others are known to differ from us, and why: docs/decisions/ has the reasons, under the same names. A
difference is explained only when the triple itself shows what the rule is about; everything else fails the run."""

import re

from values import NAMED


class Rule:
    """who: "fastavro", "java" or "compat" (Java's SchemaCompatibility); how: "they_take" (we refuse), "we_take" (they refuse) or "values" (both take)."""

    def __init__(self, name, who, how, seen, ours="", theirs=""):
        self.name = name
        self.who = who.split()
        self.how = how
        self.seen = seen  # of the triple: (Pair) -> bool
        self.ours = ours  # what our error must look like
        self.theirs = theirs

    def explains(self, who, how, pair, ours, theirs):
        """Is this the difference?"""
        return (
            who in self.who
            and how == self.how
            and re.search(self.ours, ours or "") is not None
            and re.search(self.theirs, theirs or "") is not None
            and self.seen(pair)
        )


class Pair:
    """What there is to see of a pair of schemas."""

    def __init__(self, writer, reader):
        self.writer = all_nodes(writer)
        self.reader = all_nodes(reader)

    def records(self, side):
        """The records of the writer or the reader."""
        return [node for node in getattr(self, side) if node.kind == "record"]


def all_nodes(root):
    """Every type once."""
    found, work = [], [root]
    while work:
        node = work.pop()
        if any(node is other for other in found):
            continue
        found.append(node)
        work += [type_ for _, type_, _ in node.fields] + node.branches + ([node.item] if node.item else [])
    return found


def last(name):
    """A name without its namespace."""
    return name.rpartition(".")[2]


def names_differ(pair):
    """There are types of different names."""
    return len({last(node.name) for node in pair.writer + pair.reader if node.kind in NAMED}) > 1


def spaces_differ(pair):
    """A name stands in another namespace."""
    writer = {node.name for node in pair.writer if node.kind in NAMED}
    lasts = {last(name) for name in writer}
    return any(n.name not in writer and last(n.name) in lasts for n in pair.reader if n.kind in NAMED)


def aliases_overlap(pair):
    """An alias of the reader's is a name that stands beside it, in the reader's record or one of the writer's."""
    for record in pair.records("reader"):
        names = [name for name, _, _ in record.fields]
        aliases = [(name, alias) for name, _, field in record.fields for alias in field.get("aliases", [])]
        if len({alias for _, alias in aliases}) < len(aliases):
            return True
        for name, alias in aliases:
            if alias != name and alias in names:
                return True
            for other in pair.records("writer"):
                if {name, alias} <= {field for field, _, _ in other.fields}:
                    return True
    return False


def has_field_aliases(pair):
    """A field of the reader's has an alias."""
    return any(field.get("aliases") for record in pair.records("reader") for _, _, field in record.fields)


def unions_promote(pair):
    """A union of the reader's has a branch to which another of its branches can be promoted."""
    ways = [{"bytes", "string"}, {"int", "long"}, {"int", "float"}, {"int", "double"}, {"long", "float"},
            {"long", "double"}, {"float", "double"}]
    return any(
        way <= {branch.kind for branch in node.branches} for node in pair.reader if node.kind == "union" for way in ways
    )


def named_of_a_kind(pair):
    """A union of the reader's has two named types of a kind."""
    for node in pair.reader:
        kinds = [branch.kind for branch in node.branches if branch.kind in NAMED]
        if len(kinds) != len(set(kinds)):
            return True
    return False


def decimals_differ(pair):
    """Decimals of the two differ in precision or scale."""
    return {d for node in pair.writer for d in node.decimals} != {d for node in pair.reader for d in node.decimals}


def has_items(pair):
    """There are arrays or maps."""
    return any(node.kind in ("array", "map") for node in pair.reader)


def fits(node, value):
    """Is the JSON value a default of the type? Roughly: kinds, and the members of records."""
    kinds = {"null": type(None), "boolean": bool, "string": str, "bytes": str, "fixed": str, "array": list, "map": dict,
             "record": dict}
    if node.kind == "union":
        return any(fits(branch, value) for branch in node.branches)
    if node.kind == "enum":
        return value in node.symbols
    if node.kind in ("int", "long"):
        bits = 31 if node.kind == "int" else 63
        return isinstance(value, int) and not isinstance(value, bool) and -(2**bits) <= value < 2**bits
    if node.kind in ("float", "double"):
        return isinstance(value, (int, float)) and not isinstance(value, bool)
    if not isinstance(value, kinds[node.kind]):
        return False
    if node.kind in ("bytes", "fixed") and any(ord(c) > 255 for c in value):
        return False
    if node.kind == "fixed":
        return len(value) == node.size
    if node.kind == "record":
        return all(fits(t, value[n]) if n in value else "default" in f for n, t, f in node.fields)
    return True


def wants_later_branch(node, value, depth=0):
    """Does a default mean another than the first branch of some union?"""
    if depth > 20:
        return True
    if node.kind == "union":
        if not fits(node.branches[0], value):
            return True
        return wants_later_branch(node.branches[0], value, depth + 1)
    if node.kind == "record" and isinstance(value, dict):
        return any(
            wants_later_branch(type_, value[name] if name in value else field.get("default"), depth + 1)
            for name, type_, field in node.fields
        )
    if node.kind in ("array", "map"):
        return any(wants_later_branch(node.item, v, depth + 1) for v in (value if node.kind == "array" else value.values()))
    return False


def later_default(pair):
    """A default of either schema means a later branch of a union."""
    return any(
        "default" in field and wants_later_branch(type_, field["default"])
        for record in pair.records("reader") + pair.records("writer")
        for _, type_, field in record.fields
    )


def reaches(start, goal):
    """Does a type hold another?"""
    return any(node is goal for node in all_nodes(start))


def default_of_circle(pair):
    """A default stands inside of a record that the default's own type holds."""
    return any(
        "default" in field and any(node.kind == "record" and reaches(node, record) for node in all_nodes(type_))
        for record in pair.records("reader") + pair.records("writer")
        for _, type_, field in record.fields
    )


def circle(pair):
    """A record of the writer's holds itself."""
    return any(reaches(type_, record) for record in pair.records("writer") for _, type_, _ in record.fields)


def array_for_union(pair):
    """A default of a union is an array."""
    return any(
        isinstance(field.get("default"), list) and type_.kind == "union"
        for record in pair.records("reader")
        for _, type_, field in record.fields
    )


def integer_for_real(pair):
    """A default of a float or double is written without a point."""
    return any(
        isinstance(field.get("default"), int) and any(node.kind in ("float", "double") for node in all_nodes(type_))
        for record in pair.records("reader") + pair.records("writer")
        for _, type_, field in record.fields
    )


def bytes_to_string(pair):
    """The writer has bytes and the reader a string."""
    return any(n.kind == "bytes" for n in pair.writer) and any(n.kind == "string" for n in pair.reader)


NAMES = r"has no such alias|is no branch of the reader's union|\[\]|that ends can be read"

RULES = [
    Rule("aliases rewrite names", "java fastavro", "they_take", aliases_overlap,
         ours=r"two fields of the|no such field|is not the reader's|is no branch|\[\]|that ends can be read|not UTF-8"),
    Rule("aliases rewrite names", "java fastavro", "we_take", aliases_overlap),
    Rule("aliases rewrite names", "java fastavro", "values", aliases_overlap),
    Rule("aliases rewrite names", "compat", "they_take", aliases_overlap,
         ours=r"two fields of the|no such field|is not the reader's|is no branch"),
    Rule("aliases rewrite names", "compat", "we_take", aliases_overlap,
         theirs=r"matches multiple fields|MISSING_UNION_BRANCH|location:/fields"),
    Rule("names must be equal", "java fastavro", "they_take", names_differ, ours=NAMES),
    Rule("decimals must be equal", "java fastavro", "they_take", decimals_differ,
         ours="decimals differ|no branch of the reader's union|not UTF-8|that ends can be read"),
    Rule("decimals must be equal", "java fastavro", "values", decimals_differ),
    Rule("decimals must be equal", "compat", "they_take", decimals_differ,
         ours="decimals differ|no branch of the reader's union"),
    Rule("strings are Unicode", "java", "they_take", bytes_to_string, ours="not UTF-8"),
    Rule("items must match", "java fastavro", "they_take", has_items, ours=r"\[\]|that ends can be read"),
    Rule("the exact type first", "fastavro", "values", unions_promote),
    Rule("the exact type first", "fastavro", "we_take", unions_promote, theirs="UnicodeDecodeError"),
    Rule("the full name first", "fastavro", "values", named_of_a_kind),
    Rule("the full name first", "fastavro", "they_take", named_of_a_kind, ours="no such field"),
    Rule("the full name first", "compat", "they_take", named_of_a_kind, ours=r"no such field|is not the reader's|lacks"),
    Rule("the full name first", "fastavro", "we_take", named_of_a_kind, theirs="SchemaResolutionError|No default"),
    Rule("any branch for a default", "java", "we_take", later_default,
         theirs="is not in the enum symbol set|Not an? |No default value|Unknown datum|Can't |NumberFormat|not a"),
    Rule("any branch for a default", "java", "values", later_default),
    Rule("any branch for a default", "fastavro", "we_take", later_default, theirs="Default value"),
    Rule("a default has an end", "java fastavro compat", "they_take", default_of_circle, ours="the default holds itself"),
    Rule("an integer is a real number", "fastavro", "we_take", integer_for_real, theirs="Default value"),
    Rule("java: default in a circle", "java compat", "we_take", default_of_circle, theirs="Schema fields not set yet"),
    Rule("java: an array for a union", "java", "we_take", array_for_union, theirs="Not an array"),
    Rule("java: circles", "java", "we_take", circle, theirs="StackOverflowError|NullPointerException"),
    Rule("java: aliases and the writer's defaults", "java", "we_take", has_field_aliases, theirs="Invalid default"),
    Rule("java: a moved name", "java", "values", lambda pair: spaces_differ(pair) and has_field_aliases(pair)),
    Rule("java: a moved name", "java", "we_take", spaces_differ,
         theirs="expecting union|missing required field|Found .*, expecting"),
]


def explain(who, how, pair, ours, theirs):
    """The name of the rule, or None."""
    for rule in RULES:
        if rule.explains(who, how, pair, ours, theirs):
            return rule.name
    return None
