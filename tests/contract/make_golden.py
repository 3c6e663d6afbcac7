"""Makes tests/contract/golden with an Avro implementation that is not ours (Debian's python3-avro).

For every case NAME.bin, the framed value, and NAME.json, what the value says: the fields as the command
line lists them (unions plain, times as integers, a code point a byte, NaN as a string). Run it once when a
record gets a new version; test_contract.py holds the files against what it would write.

    /usr/bin/python3 tests/contract/make_golden.py
"""

import hashlib
import io
import json
import math
import struct
from pathlib import Path

import avro.io
import avro.schema

HERE = Path(__file__).resolve().parent
GOLDEN = HERE / "golden"
SCHEMAS = HERE.parents[1] / "schemas"
RECORDS = ("SuspendEvent", "ApprovalEvent", "ResumeEvent", "GateEvent")


def crc64_avro(data):
    """The specification's fingerprint, from its text: bit by bit, no table."""
    empty = 0xC15D213AA4D7A795
    crc = empty
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (empty if crc & 1 else 0)
    return crc


def canonical(schema, seen=None, space=""):
    """Parsing canonical form, from the specification's list of transformations."""
    seen = set() if seen is None else seen
    primitives = {"null", "boolean", "int", "long", "float", "double", "bytes", "string"}
    if isinstance(schema, str):
        return f'"{schema if schema in primitives or "." in schema or not space else space + "." + schema}"'
    if isinstance(schema, list):
        return "[" + ",".join(canonical(each, seen, space) for each in schema) + "]"
    kind = schema["type"]
    if not isinstance(kind, str):
        return canonical(kind, seen, space)
    if kind == "array":
        return '{"type":"array","items":' + canonical(schema["items"], seen, space) + "}"
    if kind == "map":
        return '{"type":"map","values":' + canonical(schema["values"], seen, space) + "}"
    if kind not in ("record", "enum", "fixed"):
        return canonical(kind, seen, space)
    space = schema.get("namespace", space)
    head = f'{{"name":"{space}.{schema["name"]}","type":"{kind}"'
    if kind == "fixed":
        return f'{head},"size":{schema["size"]}}}'
    if kind == "enum":
        return head + ',"symbols":[' + ",".join(f'"{each}"' for each in schema["symbols"]) + "]}"
    fields = (
        f'{{"name":"{field["name"]}","type":{canonical(field["type"], seen, space)}}}'
        for field in schema["fields"]
    )
    return head + ',"fields":[' + ",".join(fields) + "]}"


def without_logical_types(schema):
    """Times stay integers and ids stay the strings that were on the wire."""
    if isinstance(schema, list):
        return [without_logical_types(each) for each in schema]
    if isinstance(schema, dict):
        return {
            key: value if key == "default" else without_logical_types(value)
            for key, value in schema.items()
            if key != "logicalType"
        }
    return schema


class Writer(avro.io.DatumWriter):
    """python3-avro 1.11 lets the last branch that fits win, and a number or a boolean fits a double."""

    def write_union(self, writers_schema, datum, encoder):
        """Writes the first branch whose type is the datum's own."""
        kinds = {bool: "boolean", int: "long", float: "double", list: "array", type(None): "null"}
        for index, branch in enumerate(writers_schema.schemas):
            kind = kinds.get(type(datum), branch.type)
            if branch.type == kind and branch.validate(datum):
                encoder.write_long(index)
                self.write_data(branch, datum, encoder)
                return
        raise TypeError("no branch of the union is of the datum's type")


class Record:
    """One of RECORDS: its schema and how its values are written and read."""

    def __init__(self, name):
        self.json = json.loads((SCHEMAS / f"{name}.avsc").read_text(encoding="utf-8"))
        self.canonical = canonical(self.json)
        self.crc64 = struct.pack("<Q", crc64_avro(self.canonical.encode()))
        self.avro = avro.schema.parse(json.dumps(without_logical_types(self.json)))

    def encode(self, datum):
        """The framed value."""
        out = io.BytesIO()
        Writer(self.avro).write(datum, avro.io.BinaryEncoder(out))
        return b"\xc3\x01" + self.crc64 + out.getvalue()

    def decode(self, value):
        """The datum; every byte must belong to it."""
        assert value[:10] == b"\xc3\x01" + self.crc64
        source = io.BytesIO(value[10:])
        datum = avro.io.DatumReader(self.avro).read(avro.io.BinaryDecoder(source))
        assert source.read(1) == b""
        return datum


def listed(value):
    """A datum as a listing shows it."""
    if isinstance(value, bytes):
        return value.decode("latin-1")
    if isinstance(value, float) and math.isnan(value):
        return "NaN"
    if isinstance(value, float) and math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    if isinstance(value, dict):
        return {key: listed(each) for key, each in value.items()}
    if isinstance(value, list):
        return [listed(each) for each in value]
    return value


def listing(value):
    """One line of JSON without spaces."""
    return json.dumps(listed(value), ensure_ascii=False, separators=(",", ":"))


def _entry(role, content, **over):
    entry = {"role": role, "content": content, "name": None, "tool_call_id": None, "tool_calls": [], "at": None}
    return {**entry, **over}


STORY = {
    "checkpoint_id": "0192d3a4-5b6c-7d8e-9f01-23456789abcd",
    "session_id": "SESSION-808",
    "suspend_seq": 1,
    "tenant": "default",
    "agent": "schema-agent",
    "agent_version": "1.4.0",
    "suspended_at": 1764486000123456,
    "step": {
        "graph": "migration",
        "node": "AWAITING_HUMAN_APPROVAL",
        "resume_at": "run_deployment_tool",
        "path": ["plan", "write_migration", "AWAITING_HUMAN_APPROVAL"],
        "attempt": 0,
    },
    "history": [
        _entry("SYSTEM", "You are to update the schema of the API's database."),
        _entry("AGENT", "I will write the migration and run the safety checks."),
        _entry("AGENT", "The script is done. I wait for review before I run the deployment tool."),
    ],
    "config": {"VRAM_limit_gb": 16.0, "user_id": "usr_99"},
    "tool_permissions": {"deployment_tool": "ASK"},
    "state": None,
    "gate": {
        "gate_id": "deploy",
        "title": "Run the migration",
        "action": None,
        "requested_by": "usr_99",
        "required_approvals": 1,
        "approvers": [],
        "expires_at": None,
        "on_expiry": "REJECT",
        "labels": {},
    },
    "salt": bytes(range(16)),
}

RICH = {
    "checkpoint_id": "FFFFFFFF-0000-4000-8000-00000000000a",
    "session_id": "Grüße/世界/🎼",
    "suspend_seq": 2**63 - 1,
    "tenant": "",
    "agent": "a",
    "agent_version": "",
    "suspended_at": -(2**63),
    "step": {"graph": "", "node": "n\0", "resume_at": "r", "path": ["", "\0", "ü"], "attempt": -(2**31)},
    "history": [
        _entry("SYSTEM", "NUL \0 stands here\u2028 and \U0010ffff", at=1),
        _entry("USER", "", name="", at=-(2**63) + 1),
        _entry(
            "AGENT",
            '"\\\b\f\n\r\t\x01\x1f\x7f/',
            tool_calls=[
                {"id": "c1", "name": "plan", "arguments": '{"n":1e400,"n":2,"s":"\\u0000\\ud800"}'},
                {"id": "c2", "name": "", "arguments": " 123456789012345678901234567890 "},
            ],
        ),
        _entry("TOOL", "x" * 300, name="plan", tool_call_id="c1", at=2**63 - 1),
        _entry("TOOL", "null", tool_call_id="c2"),
    ],
    "config": {
        "null": None,
        "true": True,
        "false": False,
        "long": 2**63 - 1,
        "small": -(2**63),
        "double": 0.1,
        "tiny": 2.2250738585072014e-308,
        "huge": 1.7976931348623157e308,
        "nan": math.nan,
        "infinity": math.inf,
        "minus infinity": -math.inf,
        "minus zero": -0.0,
        "string": "NUL \0 and ü",
        "array": ["", "a", "\0", "ü"],
        "": [],
        "a\0b": "a key with NUL",
        "a\0c": "and another",
    },
    "tool_permissions": {"a": "ALLOW", "d": "DENY", "": "ASK"},
    "state": {
        "schema": "example.State",
        "encoding": "AVRO",
        "fingerprint": bytes([0, 1, 2, 3, 252, 253, 254, 255]),
        "body": bytes(range(256)),
    },
    "gate": {
        "gate_id": "",
        "title": "t" * 1024,
        "action": {"tool": "deploy", "arguments": '{"x":[true,null]}', "risk": "CRITICAL", "summary": "s"},
        "requested_by": "b" * 255,
        "required_approvals": 2**31 - 1,
        "approvers": ["alice", "jira:bob", ""],
        "expires_at": 0,
        "on_expiry": "HOLD",
        "labels": {"ü": "x", "": ""},
    },
    "salt": bytes(range(240, 256)),
}

JSON_STATE = {
    **STORY,
    "state": {"schema": "s", "encoding": "JSON", "fingerprint": None, "body": '{"ü":[1]}'.encode()},
}

_SOURCE = {"system": "jira", "ref": "OPS-1", "delivery_id": "d-1"}
_ALICE = {"issuer": "jira", "subject": "alice", "display": "Alice"}

APPROVE = {
    "decision_id": "0192d3a4-5b6c-7d8e-9f01-000000000001",
    "checkpoint_id": STORY["checkpoint_id"],
    "session_id": "",
    "decision": "APPROVE",
    "decided_by": _ALICE,
    "decided_at": 1764489600000000,
    "reason": None,
    "edits": None,
    "checkpoint_digest": None,
    "source": _SOURCE,
    "signature": None,
}

RICH_APPROVAL = {
    "decision_id": "ABCDEFAB-CDEF-8BCD-9FAB-CDEFABCDEFAB",
    "checkpoint_id": RICH["checkpoint_id"],
    "session_id": RICH["session_id"],
    "decision": "EXPIRE",
    "decided_by": {"issuer": "", "subject": "", "display": "ü"},
    "decided_at": -1,
    "reason": "r" * 4096,
    "edits": {"config": RICH["config"], "action_arguments": "[1e400]"},
    "checkpoint_digest": bytes(range(200, 232)),
    "source": {"system": "", "ref": "", "delivery_id": ""},
    "signature": {"key_id": "k", "body": bytes(256), "value": b"\xff\x00"},
}

_DECISION = {
    "decision_id": APPROVE["decision_id"],
    "decided_by": _ALICE,
    "decided_at": APPROVE["decided_at"],
    "decision": "APPROVE",
    "reason": "looks good",
    "source": _SOURCE,
}

RESUME = {
    "resume_id": STORY["checkpoint_id"],
    "verdict": "APPROVED",
    "decisions": [_DECISION],
    "edits": None,
    **STORY,
    "migrated_from": None,
    "resumed_at": 1764489600004000,
    "expires_at": None,
    "signature": None,
}

RICH_RESUME = {
    "resume_id": RICH["checkpoint_id"],
    "verdict": "CANCELLED",
    "decisions": [_DECISION, {**_DECISION, "decision_id": RICH_APPROVAL["decision_id"], "reason": None}],
    "edits": {"config": {}, "action_arguments": None},
    **RICH,
    "migrated_from": "0123456789abcdef",
    "resumed_at": 2**63 - 1,
    "expires_at": -(2**63) + 1,
    "signature": {"key_id": "", "body": b"", "value": b""},
}

GATE = {
    "checkpoint_id": STORY["checkpoint_id"],
    "session_id": "SESSION-808",
    "gate_id": "deploy",
    "tenant": "default",
    "agent": "schema-agent",
    "state": "PENDING",
    "title": "Run the migration",
    "risk": None,
    "action": None,
    "requested_by": "usr_99",
    "required_approvals": 1,
    "approvals": 0,
    "digest": bytes(range(32)),
    "at": 1764486000200000,
    "expires_at": None,
    "reason": None,
    "version": 1764486000200000,
}

RICH_GATE = {
    **GATE,
    "state": "UNCLAIMED",
    "risk": "LOW",
    "action": RICH["gate"]["action"],
    "expires_at": 1,
    "reason": "why",
    "version": 2**63 - 1,
}

CASES = {
    "suspend_story": ("SuspendEvent", STORY),
    "suspend_rich": ("SuspendEvent", RICH),
    "suspend_json_state": ("SuspendEvent", JSON_STATE),
    "approval_plain": ("ApprovalEvent", APPROVE),
    "approval_rich": ("ApprovalEvent", RICH_APPROVAL),
    "resume_story": ("ResumeEvent", RESUME),
    "resume_rich": ("ResumeEvent", RICH_RESUME),
    "gate_plain": ("GateEvent", GATE),
    "gate_rich": ("GateEvent", RICH_GATE),
}


def fingerprints():
    """What schemas/*.avsc come to, by this file's own reading of the specification."""
    lines = {}
    for name in RECORDS:
        record = Record(name)
        text = record.canonical.encode()
        lines[name] = {
            "canonical": record.canonical,
            "crc64": record.crc64.hex(),
            "md5": hashlib.md5(text).hexdigest(),
            "sha256": hashlib.sha256(text).hexdigest(),
        }
    return json.dumps(lines, indent=1) + "\n"


def files():
    """Every golden file and its bytes."""
    made = {"fingerprints.json": fingerprints().encode()}
    for case, (name, datum) in CASES.items():
        made[f"{case}.bin"] = Record(name).encode(datum)
        made[f"{case}.json"] = (listing(datum) + "\n").encode()
    return made


if __name__ == "__main__":
    GOLDEN.mkdir(exist_ok=True)
    for file, data in files().items():
        (GOLDEN / file).write_bytes(data)
