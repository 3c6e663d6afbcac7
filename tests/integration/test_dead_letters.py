"""Bad input ends as a dead letter that names the field, and harms nobody around it.

Every bad record goes between two good ones on the same partition. The dead letter must carry the
bytes, the key and the headers as they came, and say where they came from and what was wrong. The
marker below stands in the state of every record here; it must not come back in any header.
"""

import pytest

import records
import world as worlds
from avrolib import Raw, Text, long
from letters import (
    APPROVAL,
    MARKER,
    SUSPEND,
    between_good_ones,
    check_letter,
    marked,
    tool_call,
)

SHAPE = {"malformed"}
VALUE = {"invalid"}
EITHER = SHAPE | VALUE
TOO_LONG = long(2**40)


# ---- frames --------------------------------------------------------------------------------

FRAMES = {
    "null value": (None, EITHER | {"framing"}),
    "empty value": (b"", EITHER | {"framing"}),
    "text": (b"hello", {"framing"}),
    "json": (b'{"checkpoint_id":"x"}', {"framing"}),
    "only the marker": (b"\xc3\x01", {"framing"}),
    "half a fingerprint": (SUSPEND.frame[:6], {"framing"}),
    "a frame and nothing": (SUSPEND.frame, SHAPE),
    "the old marker": (b"\xc3\x00" + SUSPEND.frame[2:] + b"x", {"framing"}),
    "unknown fingerprint": (
        b"\xc3\x01\1\2\3\4\5\6\7\x08" + SUSPEND.body(marked()),
        {"unknown_schema"},
    ),
    "no frame": (SUSPEND.body(marked()), {"framing"}),
    "another record's frame": (
        records.encode_approval(records.make_approval()),
        {"unknown_schema", "framing", "invalid"},
    ),
}


@pytest.mark.parametrize("name", FRAMES)
def test_frame(shared, name):
    """What does not begin as it must."""
    value, codes = FRAMES[name]
    between_good_ones(shared, "suspends", value, codes, [""])


@pytest.mark.parametrize("value", [None, b"", b"hello", APPROVAL.frame, SUSPEND.encode(marked())])
def test_frame_of_a_decision(shared, value):
    """The same on the approvals topic."""
    codes = EITHER | {"framing", "unknown_schema"}
    between_good_ones(shared, "approvals", value, codes, [""])


@pytest.mark.parametrize("key", [None, b"", b"\x00\x01"])
def test_key_and_headers_stay_as_they_were(shared, key):
    """No key, an empty key, no headers at all: the letter has the same."""
    between_good_ones(shared, "suspends", b"", EITHER | {"framing"}, [""], key=key, headers=[])


@pytest.mark.parametrize("kind", ["suspends", "approvals"])
def test_registry_framing_without_a_registry(shared, kind):
    """The letter says that no registry is configured."""
    schema = SUSPEND if kind == "suspends" else APPROVAL
    body = schema.body(marked() if kind == "suspends" else records.make_approval())
    value = b"\0\0\0\0\7" + body
    between_good_ones(shared, kind, value, {"framing", "unknown_schema"}, ["registry"])


def test_registry_header_without_a_registry(shared):
    """The same when the schema id stands in a header before an unframed body."""
    headers = [("__value_schema_id", b"\0\0\0\0\7")]
    value = SUSPEND.body(marked())
    codes = {"framing", "unknown_schema"}
    between_good_ones(shared, "suspends", value, codes, ["registry"], headers=headers)


# ---- shapes --------------------------------------------------------------------------------


def names_at(schema, datum):
    """For each length of the body: the names, one of which a truncation there must be told by."""
    result = []
    for field in schema.json["fields"]:
        part = bytearray()
        schema._write(field["type"], datum[field["name"]], part, "fermata.v1")
        result += [{field["name"], *names_inside(field["type"])}] * len(part)
    return result


def names_inside(schema):
    """All names of fields below a type."""
    if isinstance(schema, list):
        return {name for branch in schema for name in names_inside(branch)}
    if not isinstance(schema, dict):
        return set()
    found = {f["name"] for f in schema.get("fields", [])}
    for part in [schema.get("items"), schema.get("values"), schema.get("type")]:
        found |= names_inside(part)
    for field in schema.get("fields", []):
        found |= names_inside(field["type"])
    return found


@pytest.mark.parametrize("kind", ["suspends", "approvals"])
def test_truncated_at_every_length(shared, kind):
    """Each prefix of a good value is a dead letter that names the field where it ends."""
    if kind == "suspends":
        schema, datum = SUSPEND, marked()
    else:
        schema, datum = APPROVAL, records.make_approval(reason="fine")
    whole = schema.encode(datum)
    names = names_at(schema, datum)
    assert len(names) == len(whole) - len(schema.frame)
    topic = shared.topics[kind]
    acks = shared.sender.send_all(
        [(topic, whole[:length], b"k", None, 1) for length in range(1, len(whole))]
    )
    after = shared.suspend(partition=1)
    for length, ack in enumerate(acks, 1):
        letter = shared.wait_letter(ack)
        if length < len(schema.frame):
            check_letter(letter, ack, whole[:length], b"k", [], {"framing"}, [""])
        else:
            wanted = names[length - len(schema.frame)]
            check_letter(letter, ack, whole[:length], b"k", [], SHAPE, wanted)
    shared.wait_state(after.id, "PENDING")


SHAPES = {
    "trailing byte": (lambda: SUSPEND.encode(marked()) + b"\0", [""]),
    "trailing record": (lambda: SUSPEND.encode(marked()) + SUSPEND.encode(marked()), [""]),
    "string longer than the rest": (dict(session_id=Raw(long(1000) + b"x")), ["session_id"]),
    "string of 2^40 bytes": (dict(session_id=Raw(TOO_LONG)), ["session_id"]),
    "string of 2^62 bytes": (dict(agent=Raw(long(2**62))), ["agent"]),
    "string of -1 bytes": (dict(session_id=Raw(long(-1))), ["session_id"]),
    "string of INT64_MIN bytes": (dict(tenant=Raw(long(-(2**63)))), ["tenant"]),
    "bad UTF-8": (dict(session_id=Text(b"\xff\xfe")), ["session_id"]),
    "overlong UTF-8": (dict(agent=Text(b"\xc0\x80")), ["agent"]),
    "surrogate in UTF-8": (dict(tenant=Text(b"\xed\xa0\x80")), ["tenant"]),
    "UTF-8 beyond the last plane": (dict(agent=Text(b"\xf4\x90\x80\x80")), ["agent"]),
    "half a character at the end": (dict(agent_version=Text(b"a\xe2\x82")), ["agent_version"]),
    "bad UTF-8 in the history": (
        dict(history=[records.entry("USER", Text(b"\xff" + MARKER.encode()))]),
        ["history", "content"],
    ),
    "bad UTF-8 in a map's key": (dict(config=Raw(long(1) + b"\x02\xff\x00\x00")), ["config"]),
    "bad UTF-8 in a map's value": (dict(config={"k": Text(b"\xff")}), ["config"]),
    "2^40 entries": (dict(history=Raw(TOO_LONG)), ["history"]),
    "2^62 map entries": (dict(config=Raw(long(2**62))), ["config"]),
    "-2^40 entries": (dict(history=Raw(long(-(2**40)) + long(8))), ["history"]),
    "INT64_MIN entries": (dict(history=Raw(long(-(2**63)) + long(8))), ["history"]),
    "block of 2^40 bytes": (dict(history=Raw(long(-1) + TOO_LONG)), ["history"]),
    "block of -1 bytes": (dict(history=Raw(long(-1) + long(-1))), ["history"]),
    "2^30 nulls": (
        dict(config=Raw(long(2**30) + b"\x00\x00" * 100)),
        ["config"],
    ),
    "varint of 11 bytes": (dict(suspend_seq=Raw(b"\x80" * 10 + b"\x01")), ["suspend_seq"]),
    "varint beyond 64 bits": (dict(suspend_seq=Raw(b"\xff" * 9 + b"\x7f")), ["suspend_seq"]),
    "int beyond 32 bits": (dict(gate={"required_approvals": 2**40}), ["required_approvals"]),
    "attempt beyond 32 bits": (dict(step={"attempt": -(2**31) - 1}), ["attempt"]),
    "enum index 1000000": (dict(gate={"on_expiry": Raw(long(1000000))}), ["on_expiry"]),
    "enum index -1": (dict(gate={"on_expiry": Raw(long(-1))}), ["on_expiry"]),
    "enum index in a map": (
        dict(tool_permissions=Raw(long(1) + b"\x02k" + long(3) + b"\x00")),
        ["tool_permissions"],
    ),
    "union branch 2 of 2": (dict(state=Raw(long(2))), ["state"]),
    "union branch -1": (dict(state=Raw(long(-1))), ["state"]),
    "union branch 6 in config": (dict(config=Raw(long(1) + b"\x02k" + long(6))), ["config"]),
    "boolean 7": (dict(config=Raw(long(1) + b"\x02k" + long(1) + b"\x07\x00")), ["config"]),
}


@pytest.mark.parametrize("name", SHAPES)
def test_shape(shared, name):
    """What Avro does not allow."""
    over, names = SHAPES[name]
    value = over() if callable(over) else SUSPEND.lie(marked(**over))
    codes = EITHER if "UTF-8" in name else SHAPE
    between_good_ones(shared, "suspends", value, codes, names)


DECISION_SHAPES = {
    "trailing byte": (lambda: APPROVAL.encode(records.make_approval()) + b"\0", [""]),
    "huge string": (dict(session_id=Raw(TOO_LONG)), ["session_id"]),
    "bad UTF-8": (
        dict(decided_by={"issuer": "i", "subject": Text(b"\xff"), "display": ""}),
        ["subject"],
    ),
    "enum index 4": (dict(decision=Raw(long(4))), ["decision"]),
    "union branch": (dict(reason=Raw(long(2))), ["reason"]),
    "huge map": (
        dict(edits={"config": Raw(TOO_LONG), "action_arguments": None}),
        ["edits", "config"],
    ),
    "huge bytes": (
        dict(signature={"key_id": "k", "body": Raw(TOO_LONG), "value": b""}),
        ["signature", "body"],
    ),
}


@pytest.mark.parametrize("name", DECISION_SHAPES)
def test_shape_of_a_decision(shared, name):
    """The same on the approvals topic."""
    over, names = DECISION_SHAPES[name]
    value = over() if callable(over) else APPROVAL.lie(records.make_approval(**over))
    codes = EITHER if "UTF-8" in name else SHAPE
    between_good_ones(shared, "approvals", value, codes, names)


# ---- values --------------------------------------------------------------------------------

BAD_UUIDS = [
    "",
    "not-a-uuid",
    "0190f5a4-7b1c-7def-8abc-0123456789a",
    "0190f5a4-7b1c-7def-8abc-0123456789abc",
    "0190f5a47b1c7def8abc0123456789ab",
    "{0190f5a4-7b1c-7def-8abc-0123456789ab}",
    "0190f5a4-7b1c-7def-8abc-0123456789ag",
    "0190f5a4-7b1c-7def-8abc_0123456789ab",
    " 190f5a4-7b1c-7def-8abc-0123456789ab",
    "0190f5a4-7b1c-7def-8abc-0123456789a\0",
    "+190f5a4-7b1c-7def-8abc-0123456789ab",
    "urn:uuid:0190f5a4-7b1c-7def-8abc-0123456789ab",
]
BAD_JSON = [
    "",
    " ",
    "{",
    "{'a':1}",
    "[1,]",
    '{"a":1,}',
    '{"a"}',
    "01",
    "1.",
    ".5",
    "+1",
    "-",
    "1e",
    "nul",
    "NaN",
    "Infinity",
    "True",
    "undefined",
    '"unterminated',
    '"bad \\x escape"',
    '"half \\u12"',
    '"a raw \n newline"',
    '"a raw \0 NUL"',
    "{} {}",
    "[1 2]",
    "{} // comment",
    "]",
    "[}",
    "\0",
    "\u00a01",
]


@pytest.mark.parametrize("text", BAD_UUIDS)
def test_bad_uuid(shared, text):
    """A uuid is 36 characters of hex and hyphens."""
    value = SUSPEND.lie(marked(checkpoint_id=text))
    between_good_ones(shared, "suspends", value, VALUE, ["checkpoint_id"])


@pytest.mark.parametrize("field", ["decision_id", "checkpoint_id"])
@pytest.mark.parametrize("text", BAD_UUIDS[:3])
def test_bad_uuid_in_a_decision(shared, field, text):
    """The same on the approvals topic."""
    value = APPROVAL.lie(records.make_approval(**{field: text}))
    between_good_ones(shared, "approvals", value, VALUE, [field])


@pytest.mark.parametrize("text", BAD_JSON)
def test_bad_json_in_a_tool_call(shared, text):
    """`arguments` is JSON, and the empty string is not; the reason does not repeat it."""
    value = SUSPEND.lie(marked(history=tool_call(text)))
    between_good_ones(shared, "suspends", value, VALUE, ["arguments"])


@pytest.mark.parametrize("text", ["", "{", MARKER, f'{{"a": {MARKER}}}'])
def test_bad_json_in_the_action(shared, text):
    """The same in the proposed action."""
    value = SUSPEND.lie(marked(gate={"action": {"arguments": text}}))
    between_good_ones(shared, "suspends", value, VALUE, ["arguments"])


@pytest.mark.parametrize("text", ["", "{", MARKER])
def test_bad_json_in_edits(shared, text):
    """The same in a decision's edits."""
    edits = {"config": {}, "action_arguments": text}
    value = APPROVAL.lie(records.make_approval(edits=edits))
    between_good_ones(shared, "approvals", value, VALUE, ["action_arguments"])


LONG_UE = "ü" * 127 + "aa"  # 256 bytes, fewer characters
VALUES = {
    "empty session_id": (dict(session_id=""), ["session_id"]),
    "long session_id": (dict(session_id=LONG_UE), ["session_id"]),
    "suspend_seq 0": (dict(suspend_seq=0), ["suspend_seq"]),
    "suspend_seq -1": (dict(suspend_seq=-1), ["suspend_seq"]),
    "long tenant": (dict(tenant=LONG_UE), ["tenant"]),
    "long agent": (dict(agent=LONG_UE), ["agent"]),
    "long agent_version": (dict(agent_version=LONG_UE), ["agent_version"]),
    "long gate_id": (dict(gate={"gate_id": LONG_UE}), ["gate_id"]),
    "long requested_by": (dict(gate={"requested_by": LONG_UE}), ["requested_by"]),
    "long title": (dict(gate={"title": "x" * 1025}), ["title"]),
    "long approvers": (
        dict(gate={"approvers": ["a" * 255] * 70, "labels": {}}),
        ["approvers", "labels"],
    ),
    "long labels": (
        dict(gate={"labels": {str(i): "a" * 255 for i in range(70)}}),
        ["labels", "approvers"],
    ),
    "long approvers and labels": (
        dict(
            gate={
                "approvers": ["a" * 255] * 35,
                "labels": {str(i): "a" * 255 for i in range(35)},
            }
        ),
        ["labels", "approvers"],
    ),
    "required_approvals 0": (dict(gate={"required_approvals": 0}), ["required_approvals"]),
    "required_approvals -1": (dict(gate={"required_approvals": -1}), ["required_approvals"]),
    "NUL in session_id": (dict(session_id="a\0b"), ["session_id"]),
    "NUL in tenant": (dict(tenant="\0"), ["tenant"]),
    "NUL in agent": (dict(agent="a\0"), ["agent"]),
    "NUL in agent_version": (dict(agent_version="\0a"), ["agent_version"]),
    "NUL in gate_id": (dict(gate={"gate_id": "a\0"}), ["gate_id"]),
    "NUL in title": (dict(gate={"title": "a\0"}), ["title"]),
    "NUL in requested_by": (dict(gate={"requested_by": "a\0"}), ["requested_by"]),
    "NUL in approvers": (dict(gate={"approvers": ["a", "b\0"]}), ["approvers"]),
    "NUL in a label": (dict(gate={"labels": {"a": "b\0"}}), ["labels"]),
    "NUL in a label's key": (dict(gate={"labels": {"a\0": "b"}}), ["labels"]),
}


@pytest.mark.parametrize("name", VALUES)
def test_value(shared, name):
    """What the contract does not allow."""
    over, names = VALUES[name]
    between_good_ones(shared, "suspends", SUSPEND.lie(marked(**over)), VALUE, names)


@pytest.mark.parametrize("field", ["node", "resume_at"])
def test_not_at_a_boundary(shared, field):
    """State is saved only at a boundary of the graph."""
    value = SUSPEND.lie(marked(step={field: ""}))
    between_good_ones(shared, "suspends", value, {"not_at_boundary"}, [field])


DECISION_VALUES = {
    "long issuer": (dict(decided_by=records.by("s", LONG_UE)), ["issuer"]),
    "long subject": (dict(decided_by=records.by(LONG_UE)), ["subject"]),
    "long reason": (dict(reason="r" * 4097), ["reason"]),
    "long key_id": (dict(signature={"key_id": LONG_UE, "body": b"", "value": b""}), ["key_id"]),
    "NUL in issuer": (dict(decided_by=records.by("s", "i\0")), ["issuer"]),
    "NUL in subject": (dict(decided_by=records.by("s\0")), ["subject"]),
    "NUL in reason": (dict(reason="r\0"), ["reason"]),
}


@pytest.mark.parametrize("name", DECISION_VALUES)
def test_value_of_a_decision(shared, name):
    """The same on the approvals topic."""
    over, names = DECISION_VALUES[name]
    value = APPROVAL.lie(records.make_approval(**over))
    between_good_ones(shared, "approvals", value, VALUE, names)


# ---- at the end ----------------------------------------------------------------------------


def test_every_letter_once_and_no_word_of_the_state_in_the_log(shared):
    """Last: each bad record has one letter, and the debug log has none of the marked words."""
    shared.wait_intake()
    places = [worlds.letter_place(r) for r in shared.read("dead_letters")]
    assert len(places) == len(set(places))
    worker = shared.workers[0]
    assert worker.log and MARKER not in worker.log
    assert MARKER not in worker.metrics()
