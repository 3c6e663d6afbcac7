"""Bad records between good ones, and everything that is asked of a dead letter."""

import avrolib
import records
import world as worlds

MARKER = "heron-quartz-7141"  # stands in the state of every bad record
SUSPEND = avrolib.schema("SuspendEvent")
APPROVAL = avrolib.schema("ApprovalEvent")
BINARY_KEY = b"\xff\x00key"
HEADERS = [("trace", b"\x00\xff"), ("twice", b"1"), ("twice", b"2"), ("null", None), ("", b"x")]


def marked(**over):
    """A suspend that holds the marker wherever state is kept sealed."""
    step = {"node": f"NODE {MARKER}", "path": [MARKER]}
    step.update(over.pop("step", {}))
    base = {
        "history": [records.entry("USER", f"content {MARKER}")],
        "config": {"secret": MARKER},
        "step": step,
    }
    base.update(over)
    return records.make_suspend(**base)


def tool_call(arguments):
    """A history with one tool call."""
    call = {"id": "c", "name": "n", "arguments": arguments}
    return [records.entry("AGENT", MARKER, tool_calls=[call])]


def check_letter(letter, ack, value, key, headers, codes, names):
    """All that the contract says of a dead letter; `names`: one of them is in the reason."""
    assert letter.value == value
    assert letter.key == key
    kept = [each for each in letter.headers if each in headers]
    assert kept == headers, f"original headers {headers}, kept {letter.headers}"
    assert letter.header("fermata.error.code") in codes, letter.headers
    reason = letter.header("fermata.error.reason")
    assert reason and "\n" not in reason
    assert any(name in reason for name in names), f"{reason!r} names none of {names}"
    assert worlds.letter_place(letter) == (ack.topic, str(ack.partition), str(ack.offset))
    assert letter.header("fermata.error.timestamp") == str(ack.timestamp)
    assert letter.header("fermata.error.stage")
    for name, text in letter.headers:
        assert MARKER.encode() not in (text or b""), f"header {name} repeats the state: {text}"


def between_good_ones(world, kind, value, codes, names, key=BINARY_KEY, headers=None):
    """Send a bad value between two good suspends or decisions; check its letter and them."""
    headers = HEADERS if headers is None else headers
    if kind == "suspends":
        before = world.suspend(partition=0)
        ack = world.send(kind, value, key, headers, 0)
        after = world.suspend(partition=0)
    else:
        first, second = world.suspend(), world.suspend()
        before = world.decide(first, partition=0)
        ack = world.send(kind, value, key, headers, 0)
        after = world.decide(second, partition=0)
    letter = world.wait_letter(ack)
    check_letter(letter, ack, value, key, headers, codes, names)
    if kind == "suspends":
        world.wait_state(before.id, "PENDING")
        world.wait_state(after.id, "PENDING")
    else:
        world.wait_decision(before.decision_id, "counted")
        world.wait_decision(after.decision_id, "counted")
    lettered = {worlds.letter_place(r) for r in world.reader("dead_letters").records}
    for good in (before, after):
        assert tuple(map(str, good.ack.place)) not in lettered
    return letter
