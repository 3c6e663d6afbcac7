"""Records as an agent or an approver would make them, with sensible values everywhere.

`make_suspend(session_id="s", gate={"title": "t"})` changes what is named and keeps the rest; what
is named inside `step`, `gate` and the gate's `action` is merged, everything else is replaced.
"""

import base64
import copy
import hashlib
import os
import struct
import time
import uuid

import avrolib

STORY_HISTORY = [
    ("SYSTEM", "You are to update the schema of the API's database."),
    ("AGENT", "I will write the migration and run the safety checks."),
    ("AGENT", "The script is done. I wait for review before I run the deployment tool."),
]


def now_us():
    """Now, in microseconds since 1970."""
    return time.time_ns() // 1000


def when(at_us):
    """A time in microseconds as people write it."""
    seconds, us = divmod(at_us, 1_000_000)
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds)) + f".{us:06d}Z"


def uuid7(at_ms=None):
    """A UUID version 7 as text."""
    ms = time.time_ns() // 1_000_000 if at_ms is None else at_ms
    number = int.from_bytes(struct.pack(">Q", ms)[2:] + os.urandom(10), "big")
    number = number & ~(0xF << 76) | 7 << 76
    number = number & ~(0x3 << 62) | 2 << 62
    return str(uuid.UUID(int=number))


def entry(role, content, **over):
    """One HistoryEntry."""
    result = {
        "role": role,
        "content": content,
        "name": None,
        "tool_call_id": None,
        "tool_calls": [],
        "at": None,
    }
    result.update(over)
    return result


def _merge(base, over, inside=("step", "gate", "action")):
    for key, value in over.items():
        if key in inside and isinstance(value, dict) and isinstance(base.get(key), dict):
            _merge(base[key], value)
        else:
            base[key] = copy.deepcopy(value)
    return base


def noise(length):
    """Text of that many characters that hardly compresses."""
    return base64.b64encode(os.urandom(length)).decode()[:length]


def make_suspend(**over):
    """A SuspendEvent as a dict."""
    now = now_us()
    base = {
        "checkpoint_id": uuid7(),
        "session_id": f"session-{uuid.uuid4().hex[:12]}",
        "suspend_seq": 1,
        "tenant": "default",
        "agent": "schema-agent",
        "agent_version": "1.4.0",
        "suspended_at": now,
        "step": {
            "graph": "migration",
            "node": "AWAITING_HUMAN_APPROVAL",
            "resume_at": "DEPLOY",
            "path": ["PLAN", "WRITE", "CHECK"],
            "attempt": 1,
        },
        "history": [entry(role, content) for role, content in STORY_HISTORY],
        "config": {"VRAM_limit_gb": 16.0, "user_id": "usr_99"},
        "tool_permissions": {"deploy": "ASK", "read_schema": "ALLOW", "drop_table": "DENY"},
        "state": None,
        "gate": {
            "gate_id": "deploy",
            "title": "Run the migration",
            "action": {
                "tool": "deploy",
                "arguments": '{"script":"0042_add_index.sql","dry_run":false}',
                "risk": "HIGH",
                "summary": "Runs the migration on the API's database",
            },
            "requested_by": "schema-agent",
            "required_approvals": 1,
            "approvers": [],
            "expires_at": None,
            "on_expiry": "REJECT",
            "labels": {"team": "api"},
        },
        "salt": os.urandom(16),
    }
    return _merge(base, over)


def make_rich_suspend(**over):
    """A SuspendEvent that uses every field and every branch of every union."""
    history = [
        entry("SYSTEM", "Grüße, 世界 🎼 \u0000 NUL is legal here", at=1),
        entry("USER", "", name="reviewer", at=-1),
        entry(
            "AGENT",
            "calling",
            tool_calls=[
                {"id": "c1", "name": "plan", "arguments": '{"n":1e400,"n":2,"s":"\\u0000\\ud800"}'},
                {"id": "c2", "name": "plan", "arguments": "123456789012345678901234567890"},
            ],
        ),
        entry("TOOL", "ok", tool_call_id="c1", name="plan", at=now_us()),
        entry("TOOL", "null", tool_call_id="c2"),
    ]
    config = {
        "null": None,
        "true": True,
        "false": False,
        "long": 2**63 - 1,
        "small": -(2**63),
        "double": 16.0,
        "nan": float("nan"),
        "infinity": float("-inf"),
        "minus zero": -0.0,
        "string": "NUL \u0000 and ü",
        "array": ["", "a", "ü"],
        "": [],
    }
    state = {
        "schema": "example.State",
        "encoding": "AVRO",
        "fingerprint": bytes(range(8)),
        "body": bytes(range(256)),
    }
    base = make_suspend(
        history=history,
        config=config,
        state=state,
        gate={"labels": {"ü": "x", "": ""}, "expires_at": now_us() + 86_400_000_000},
    )
    return _merge(base, over)


def make_approval(suspend=None, **over):
    """An ApprovalEvent as a dict; for a suspend's dict it carries its ids and its digest."""
    base = {
        "decision_id": uuid7(),
        "checkpoint_id": suspend["checkpoint_id"] if suspend else uuid7(),
        "session_id": suspend["session_id"] if suspend else "",
        "decision": "APPROVE",
        "decided_by": {"issuer": "test", "subject": "alice", "display": "Alice"},
        "decided_at": now_us(),
        "reason": None,
        "edits": None,
        "checkpoint_digest": digest(encode_suspend(suspend)) if suspend else None,
        "source": {"system": "test", "ref": "T-1", "delivery_id": uuid7()},
        "signature": None,
    }
    return _merge(base, over)


def by(subject, issuer="test"):
    """An Approver."""
    return {"issuer": issuer, "subject": subject, "display": subject.title()}


def encode_suspend(datum):
    """The framed value of a SuspendEvent."""
    return avrolib.schema("SuspendEvent").encode(datum)


def encode_approval(datum):
    """The framed value of an ApprovalEvent."""
    return avrolib.schema("ApprovalEvent").encode(datum)


def digest(value, frame=10):
    """The digest of a checkpoint, from the framed value of its suspend record."""
    body = value[frame:]
    text = b"fermata/digest/v1" + struct.pack("<Q", len(body)) + body
    return hashlib.blake2b(text, digest_size=32).digest()
