"""The records between our codec and an Avro implementation that is not ours, in both directions.

CONTRACT_TOOL names the program (tests/contract_tool of a build folder).
"""

import json
import math
import os
import random
import struct
import subprocess
import uuid
from pathlib import Path

import pytest

import make_golden
from make_golden import RECORDS, Record

HERE = Path(__file__).resolve().parent
TOOL = os.environ.get("CONTRACT_TOOL", HERE.parents[1] / "build" / "tests" / "contract_tool")
SCHEMAS = {name: Record(name) for name in RECORDS}


def tool(*arguments, lines=()):
    """The lines that the program prints."""
    text = "".join(f"{line}\n" for line in lines)
    done = subprocess.run(
        [str(TOOL), *arguments], input=text.encode(), stdout=subprocess.PIPE, timeout=200, check=True
    )
    return done.stdout.decode().rstrip("\n").split("\n")


def read(values):
    """What our codec makes of (record, value) pairs: a listing, or ["!", code, message]."""
    answers = tool("read", lines=[f"{name}\t{value.hex()}" for name, value in values])
    assert len(answers) == len(values)
    return [answer.split("\t") if answer.startswith("!") else json.loads(answer) for answer in answers]


def same(left, right):
    """Equal in type too: True is not 1, and 1 is not 1.0."""
    if type(left) is not type(right):
        return False
    if isinstance(left, dict):
        return list(left) == list(right) and all(same(left[key], right[key]) for key in left)
    if isinstance(left, list):
        return len(left) == len(right) and all(map(same, left, right))
    if isinstance(left, float):
        return struct.pack("<d", left) == struct.pack("<d", right)
    return left == right


@pytest.mark.parametrize("name", sorted(make_golden.files()))
def test_golden_files_are_what_python_writes(name):
    assert (make_golden.GOLDEN / name).read_bytes() == make_golden.files()[name]


@pytest.mark.parametrize("name", RECORDS)
def test_canonical_form_is_python_avros(name):
    record = SCHEMAS[name]
    assert record.avro.canonical_form == record.canonical


@pytest.mark.parametrize("seed", range(3))
def test_python_reads_what_we_write(seed):
    for line in tool("write", str(seed), "100"):
        name, value, listing = line.split("\t")
        datum = SCHEMAS[name].decode(bytes.fromhex(value))
        assert same(make_golden.listed(datum), json.loads(listing))


# -- random records made by Python --

TEXTS = ["", "a", "ü", "\0", "世界 🎼", "\u2028\n\"\\", "x" * 700, "\U0010ffff"]
CLEAR = [text for text in TEXTS if "\0" not in text and len(text) < 256]
JSON = ["null", "{}", "[1e400]", '"\\u0000"', " 0 ", '{"a":1,"a":2}', "1" * 40]
LONGS = [0, -1, 1, 2**63 - 1, -(2**63), 2**31, 63, 64, -64, -65, 1764486000123456]
DOUBLES = [0.0, -0.0, 16.0, 0.1, 1e300, -2.5e-7, math.nan, math.inf, -math.inf]
PLACES = {
    "checkpoint_id": lambda dice: str(uuid.UUID(int=dice.getrandbits(128))),
    "decision_id": lambda dice: str(uuid.UUID(int=dice.getrandbits(128))).upper(),
    "resume_id": lambda dice: str(uuid.UUID(int=dice.getrandbits(128))),
    "session_id": lambda dice: dice.choice(CLEAR) or "s",
    "suspend_seq": lambda dice: dice.choice([1, 2**63 - 1]),
    "node": lambda dice: dice.choice(TEXTS) or "n",
    "resume_at": lambda dice: dice.choice(TEXTS) or "r",
    "required_approvals": lambda dice: dice.choice([1, 2, 2**31 - 1]),
    "arguments": lambda dice: dice.choice(JSON),
    "action_arguments": lambda dice: dice.choice([None, *JSON]),
    "approvers": lambda dice: dice.sample(CLEAR, dice.randrange(3)),
    "labels": lambda dice: {key: dice.choice(CLEAR) for key in dice.sample(CLEAR, dice.randrange(3))},
    "reason": lambda dice: dice.choice([None, *CLEAR]),
    **{
        name: lambda dice: dice.choice(CLEAR)
        for name in (
            "tenant agent agent_version gate_id title requested_by issuer subject display system ref "
            "delivery_id key_id"
        ).split()
    },
}


def any_text(dice):
    return dice.choice(TEXTS)


def any_state(dice):
    if dice.random() < 0.5:
        return {"schema": "s", "encoding": "JSON", "fingerprint": None, "body": dice.choice(JSON).encode()}
    return {
        "schema": any_text(dice),
        "encoding": "AVRO",
        "fingerprint": dice.randbytes(8),
        "body": dice.randbytes(dice.randrange(200)),
    }


def make(schema, dice):
    """A value of a schema of python3-avro. What the contract binds further is in PLACES."""
    kind = schema.type
    if kind == "record":
        if schema.name == "AppState":
            return any_state(dice)
        return {
            field.name: PLACES[field.name](dice) if field.name in PLACES else make(field.type, dice)
            for field in schema.fields
        }
    if kind == "union":
        return make(dice.choice(schema.schemas), dice)
    if kind == "array":
        return [make(schema.items, dice) for _ in range(dice.randrange(4))]
    if kind == "map":
        return {key: make(schema.values, dice) for key in dice.sample(TEXTS, dice.randrange(4))}
    if kind == "enum":
        return dice.choice(schema.symbols)
    if kind in ("fixed", "bytes"):
        return dice.randbytes(schema.size if kind == "fixed" else dice.randrange(40))
    return {
        "null": lambda: None,
        "boolean": lambda: dice.random() < 0.5,
        "int": lambda: dice.choice([0, -1, 2**31 - 1, -(2**31)]),
        "long": lambda: dice.choice(LONGS),
        "double": lambda: dice.choice(DOUBLES),
        "string": lambda: any_text(dice),
    }[kind]()


def without_lowest_time(datum):
    """-2**63 in a time that may be null is the one number that a listing gives as the next."""
    if isinstance(datum, dict):
        return {
            key: -(2**63) + 1 if key in ("at", "expires_at") and each == -(2**63) else without_lowest_time(each)
            for key, each in datum.items()
        }
    return [without_lowest_time(each) for each in datum] if isinstance(datum, list) else datum


@pytest.mark.parametrize("name", RECORDS)
@pytest.mark.parametrize("seed", range(3))
def test_we_read_what_python_writes(name, seed):
    dice = random.Random(f"{name} {seed}")
    data = [without_lowest_time(make(SCHEMAS[name].avro, dice)) for _ in range(200)]
    for datum, listing in zip(data, read([(name, SCHEMAS[name].encode(datum)) for datum in data])):
        assert same(listing, make_golden.listed(datum))


def test_map_keys_with_nul_stay_apart():
    datum = {**make_golden.STORY, "config": {"a\0b": 1, "a\0c": 2, "a": 3}}
    (listing,) = read([("SuspendEvent", SCHEMAS["SuspendEvent"].encode(datum))])
    assert listing["config"] == datum["config"]


def test_blocks_with_byte_sizes_are_read():
    """The other spelling of arrays and maps: a negative count, then the size of the block."""
    record = SCHEMAS["SuspendEvent"]
    plain = record.encode({**make_golden.STORY, "config": {"k": "v"}})
    entry = b"\x02k" + b"\x08" + b"\x02v"
    spelt = plain.replace(b"\x02" + entry + b"\x00", b"\x01" + bytes([2 * len(entry)]) + entry + b"\x00")
    assert len(spelt) == len(plain) + 1
    first, second = read([("SuspendEvent", plain), ("SuspendEvent", spelt)])
    assert first == second


BAD = {
    "empty": (b"", "framing"),
    "no frame": (b"hello", "framing"),
    "json": (b'{"checkpoint_id":"x"}', "framing"),
    "confluent": (b"\x00\x00\x00\x00\x07" + b"x" * 40, "framing"),
    "confluent cut": (b"\x00\x00", "framing"),
    "marker alone": (b"\xc3\x01", "framing"),
    "unknown fingerprint": (b"\xc3\x01" + b"\x11" * 8 + b"x" * 40, "unknown_schema"),
}


@pytest.mark.parametrize("name", RECORDS)
@pytest.mark.parametrize("case", BAD)
def test_bad_frames(name, case):
    value, code = BAD[case]
    (answer,) = read([(name, value)])
    assert answer[:2] == ["!", code]


def bad_values():
    """(what is changed in the story, the code, the words that must be in the message)."""
    gate, step = make_golden.STORY["gate"], make_golden.STORY["step"]
    entry = make_golden._entry
    return [
        ({"checkpoint_id": "not a uuid"}, "invalid", "checkpoint_id"),
        ({"checkpoint_id": "0192d3a4-5b6c-7d8e-9f01-23456789abc\0"}, "invalid", "checkpoint_id"),
        ({"checkpoint_id": "0192d3a45b6c7d8e9f0123456789abcd"}, "invalid", "checkpoint_id"),
        ({"session_id": ""}, "invalid", "session_id"),
        ({"session_id": "x" * 256}, "invalid", "session_id"),
        ({"session_id": "a\0b"}, "invalid", "session_id"),
        ({"suspend_seq": 0}, "invalid", "suspend_seq"),
        ({"suspend_seq": -1}, "invalid", "suspend_seq"),
        ({"tenant": "ü" * 128}, "invalid", "tenant"),
        ({"agent": "\0"}, "invalid", "agent"),
        ({"agent_version": "x" * 256}, "invalid", "agent_version"),
        ({"step": {**step, "node": ""}}, "not_at_boundary", "step.node"),
        ({"step": {**step, "resume_at": ""}}, "not_at_boundary", "step.resume_at"),
        ({"gate": {**gate, "title": "x" * 1025}}, "invalid", "gate.title"),
        ({"gate": {**gate, "gate_id": "x" * 256}}, "invalid", "gate.gate_id"),
        ({"gate": {**gate, "required_approvals": 0}}, "invalid", "gate.required_approvals"),
        ({"gate": {**gate, "approvers": ["x" * 16385]}}, "invalid", "gate.approvers"),
        ({"gate": {**gate, "approvers": ["x" * 8192], "labels": {"k": "x" * 8192}}}, "invalid", "gate.labels"),
        ({"gate": {**gate, "labels": {"k": "\0"}}}, "invalid", "gate.labels"),
        (
            {"gate": {**gate, "action": {"tool": "t", "arguments": "", "risk": "LOW", "summary": ""}}},
            "invalid",
            "gate.action.arguments",
        ),
        (
            {"history": [entry("AGENT", "", tool_calls=[{"id": "i", "name": "n", "arguments": "{"}])]},
            "invalid",
            "history[0].tool_calls[0].arguments",
        ),
        (
            {"state": {"schema": "s", "encoding": "AVRO", "fingerprint": b"1234567", "body": b""}},
            "invalid",
            "state.fingerprint",
        ),
        (
            {"state": {"schema": "s", "encoding": "JSON", "fingerprint": None, "body": b"{"}},
            "invalid",
            "state.body",
        ),
    ]


def test_bad_values_name_their_field():
    record = SCHEMAS["SuspendEvent"]
    cases = bad_values()
    answers = read([("SuspendEvent", record.encode({**make_golden.STORY, **change})) for change, _, _ in cases])
    for (_, code, words), answer in zip(cases, answers):
        assert answer[0] == "!" and answer[1] == code and words in answer[2], (words, answer)


def test_bad_utf8_names_its_field():
    value = SCHEMAS["SuspendEvent"].encode(make_golden.STORY).replace(b"The script", b"The\xff\xffcript")
    (answer,) = read([("SuspendEvent", value)])
    assert answer[:2] == ["!", "malformed"]
    assert "history[2].content" in answer[2]


def test_no_content_in_messages():
    """Every byte of a record with a telling word in each text: whatever goes wrong, no word is told."""
    words = "PLUM"
    datum = json.loads(json.dumps(make_golden.listed(make_golden.STORY)).replace("The script", words))
    datum["salt"] = bytes(16)
    datum["config"] = {words: words, words + "2": [words]}
    datum["session_id"] = words
    value = SCHEMAS["SuspendEvent"].encode(datum)
    changed = [value[:i] + bytes([value[i] ^ 0x81]) + value[i + 1 :] for i in range(10, len(value))]
    for answer in read([("SuspendEvent", each) for each in changed]):
        assert not (isinstance(answer, list) and words in answer[2])
