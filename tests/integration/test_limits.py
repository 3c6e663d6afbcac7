"""What is just within the limits, what is just beyond, and the same id again."""

import pytest

import records
import world as worlds
from avrolib import Raw, long
from letters import (
    APPROVAL,
    BINARY_KEY,
    HEADERS,
    MARKER,
    SUSPEND,
    between_good_ones,
    check_letter,
    marked,
    tool_call,
)
from waiting import wait_for

# ---- what is allowed -----------------------------------------------------------------------

GOOD_JSON = [
    "null",
    "-0",
    '"x"',
    " [ ] ",
    "1e400",
    "123456789012345678901234567890",
    '{"a":1,"a":2}',
    '"\\u0000\\ud800"',
    "[" * 3000 + "]" * 3000,
    '{"' + "\\u0000" + '":"ü 🎼"}',
]
LIMITS = {
    "255 bytes everywhere": dict(
        session_id="ü" * 127 + "s",
        tenant="t" * 255,
        agent="a" * 255,
        agent_version="v" * 255,
        gate={"gate_id": "g" * 255, "requested_by": "r" * 255, "title": "t" * 1024},
    ),
    "15 KiB of approvers and labels": dict(
        gate={"approvers": ["a" * 250] * 30, "labels": {str(i): "a" * 250 for i in range(30)}}
    ),
    "largest seq": dict(suspend_seq=2**63 - 1),
    "upper-case uuid": dict(checkpoint_id=records.uuid7().upper()),
    "uuid of version 4": dict(checkpoint_id="7a0e8a3e-3b0b-4c8e-9b0a-6b1f0a3c5d11"),
    "NUL in content and config": dict(
        history=[records.entry("USER", "a\0b")], config={"k\0": "v\0", "l": ["\0"]}
    ),
    "no action": dict(gate={"action": None}),
    "empty history": dict(history=[], config={}, tool_permissions={}),
    "open tool call": dict(history=tool_call("{}") + [records.entry("AGENT", "and on")]),
    "negative times": dict(suspended_at=-1),
    "blocks with sizes": dict(
        history=Raw(long(-1) + long(7) + b"\x02" + long(1) + b"x" + b"\0\0\0\0" + long(0))
    ),
}


@pytest.mark.parametrize("name", LIMITS)
def test_allowed(shared, name):
    """What lies just within the limits becomes a checkpoint."""
    datum = records.make_suspend(**LIMITS[name])
    sent = shared.send_suspend(datum, value=SUSPEND.lie(datum))
    shared.wait_state(sent.id, "PENDING")


def test_allowed_json(shared):
    """Any JSON text is carried, whatever other parsers think of it."""
    sent = [shared.suspend(gate={"action": {"arguments": text}}) for text in GOOD_JSON]
    sent += [shared.suspend(history=tool_call(text)) for text in GOOD_JSON]
    for each in sent:
        shared.wait_state(each.id, "PENDING")


def test_allowed_reason(shared):
    """A reason of 4 KiB, and a display name of any kind."""
    sent = shared.suspend()
    decision = shared.decide(sent, reason="r" * 4096, decided_by=records.by("s" * 255, "i" * 255))
    shared.wait_decision(decision.decision_id, "counted")


# ---- the same id again ---------------------------------------------------------------------


def test_the_same_bytes_again_change_nothing(shared):
    """No letter, one row."""
    sent = shared.suspend(partition=0)
    again = shared.send("suspends", sent.value, partition=0)
    other = shared.send("suspends", sent.value, partition=1)
    shared.wait_intake()
    lettered = {worlds.letter_place(r) for r in shared.reader("dead_letters").catch_up()}
    assert not lettered & {tuple(map(str, ack.place)) for ack in (sent.ack, again, other)}
    assert shared.state(sent.id) == "PENDING"


@pytest.mark.parametrize("change", ["salt", "upper case"])
def test_other_bytes_under_the_same_id(shared, change):
    """Dead letter `conflict`; the first stands, and is what comes back."""
    first = shared.suspend(partition=0, config={"which": "first", "marker": MARKER})
    other = dict(first.datum, config={"which": "second", "marker": MARKER})
    if change == "upper case":
        other["checkpoint_id"] = other["checkpoint_id"].upper()
    value = records.encode_suspend(other)
    between_good_ones(shared, "suspends", value, {"conflict"}, [""])
    shared.decide(first)
    assert shared.wait_resume(first.id).datum["config"]["which"] == "first"


def test_a_conflict_within_a_batch(shared):
    """The same when both come in one breath, many times over."""
    pairs = []
    for _ in range(20):
        datum = marked()
        pairs += [datum, dict(datum, agent_version="other")]
    values = [records.encode_suspend(datum) for datum in pairs]
    acks = shared.sender.send_all([(shared.topics["suspends"], v, b"k", None, 0) for v in values])
    for datum, value, ack in list(zip(pairs, values, acks))[1::2]:
        letter = shared.wait_letter(ack)
        check_letter(letter, ack, value, b"k", [], {"conflict"}, [""])
        shared.wait_state(datum["checkpoint_id"], "PENDING")
    lettered = {worlds.letter_place(r) for r in shared.reader("dead_letters").records}
    assert not lettered & {tuple(map(str, ack.place)) for ack in acks[0::2]}


def test_the_same_decision_id_with_other_bytes(shared):
    """Dead letter `conflict`; the first decision stands. The same bytes again: nothing."""
    sent = shared.suspend()
    decision = shared.decide(sent, partition=0, reason="first")
    shared.send("approvals", decision.value, partition=0)
    other = records.encode_approval(dict(decision.datum, decision="REJECT"))
    between_good_ones(shared, "approvals", other, {"conflict"}, [""])
    assert shared.decision(decision.decision_id)[0] == "counted"
    assert shared.wait_resume(sent.id).datum["verdict"] == "APPROVED"


# ---- worlds of their own -------------------------------------------------------------------


def test_too_large(make_world):
    """The limit is on the whole value; what is above it is kept untouched as a letter."""
    world = make_world(settings={"limits.record_bytes": "65536"})
    world.start_worker()
    frame_and_rest = len(SUSPEND.encode(marked(history=[records.entry("USER", "x" * 60000)])))
    fitting = marked(history=[records.entry("USER", "x" * (60000 + 65536 - frame_and_rest))])
    assert len(SUSPEND.encode(fitting)) == 65536
    larger = marked(history=[records.entry("USER", "x" * (60001 + 65536 - frame_and_rest))])
    value = SUSPEND.encode(larger)
    good = world.send_suspend(fitting)
    between_good_ones(world, "suspends", value, {"too_large"}, ["65536"])
    world.wait_state(good.id, "PENDING")
    approval = APPROVAL.lie(records.make_approval(edits={"config": {"k": "v" * 70000}}))
    between_good_ones(world, "approvals", approval, {"too_large"}, [""])


def test_a_letter_too_large_for_its_topic(make_world):
    """It goes without its value, and says so."""
    world = make_world(dead_letter_bytes=100_000)
    worker = world.start_worker()
    before = world.suspend(partition=0)
    ack = world.send("suspends", b"no frame " * 40_000, BINARY_KEY, HEADERS, 0)
    after = world.suspend(partition=0)
    letter = world.wait_letter(ack)
    check_letter(letter, ack, b"", BINARY_KEY, HEADERS, {"too_large"}, [""])
    world.wait_state(before.id, "PENDING")
    world.wait_state(after.id, "PENDING")
    wait_for(lambda: "too large" in worker.log.replace("_", " "), "a line about it in the log")


ANSWER = records.entry("TOOL", "done", tool_call_id="c")
STRICT = {
    "answered": (tool_call("{}") + [ANSWER, records.entry("AGENT", "on")], True),
    "open in the last AGENT entry": (tool_call("{}"), True),
    "open in the last AGENT entry, a user after it": (
        tool_call("{}") + [records.entry("USER", "hm")],
        True,
    ),
    "open before the last AGENT entry": (tool_call("{}") + [records.entry("AGENT", "on")], False),
    "another call's answer": (
        tool_call("{}")
        + [records.entry("TOOL", "x", tool_call_id="d"), records.entry("AGENT", "on")],
        False,
    ),
    "no calls": ([records.entry("AGENT", "on"), records.entry("AGENT", "on")], True),
}


def test_strict_boundary(make_world):
    """No tool is caught in mid-execution."""
    world = make_world(settings={"limits.boundary": "strict"})
    world.start_worker()
    for name, (history, allowed) in STRICT.items():
        if allowed:
            sent = world.suspend(history=history)
            world.wait_state(sent.id, "PENDING")
        else:
            value = SUSPEND.encode(marked(history=history))
            codes = {"not_at_boundary"}
            assert between_good_ones(world, "suspends", value, codes, ["history", "tool"]), name


def test_too_many_early_decisions(make_world):
    """Above worker.unclaimed_max a decision without a suspend is a dead letter."""
    world = make_world(settings={"worker.unclaimed_max": "3"})
    world.start_worker()
    early = [world.decide(partition=0, session_id="s") for _ in range(5)]
    for sent in early[3:]:
        letter = world.wait_letter(sent.ack)
        key = sent.id.encode()
        check_letter(letter, sent.ack, sent.value, key, [], {"unclaimed_full"}, [""])
    for sent in early[:3]:
        world.wait_decision(sent.decision_id, "waiting")  # letters leave before the commit
    assert len(world.read("dead_letters")) == 2
