"""`fermata dead-letters list | show | redrive`: what became a dead letter, why, and back again."""

import json
import os
import time

import pytest

import records
import world as worlds
from cut import cut
from letters import HEADERS, MARKER, SUSPEND, marked, tool_call

COUNT = "fermata.redrive.count"
STRICT = {"limits.boundary": "strict"}


def unanswered(**over):
    """A suspend that limits.boundary = strict refuses, and step takes."""
    history = [*tool_call("{}"), records.entry("AGENT", MARKER)]
    return marked(history=history, **over)


def place(record):
    """How the commands name a letter."""
    return f"{record.partition}:{record.offset}"


def letter_headers(topic, partition, offset, code="malformed", stage="suspend", timestamp="1"):
    """The headers of a letter, as the worker would have written them."""
    values = {
        "code": code,
        "reason": "made by a test",
        "topic": topic,
        "partition": str(partition),
        "offset": str(offset),
        "timestamp": timestamp,
        "stage": stage,
    }
    return [(f"fermata.error.{name}", value.encode()) for name, value in values.items()]


def fabricate(world, value, offset, headers=(), **over):
    """Write a letter without a worker."""
    name = over.pop("topic", world.topics["suspends"])
    own = letter_headers(name, over.pop("partition", 0), offset, **over)
    return world.send("dead_letters", value, b"k", [*headers, *own], 0)


def listed(world, *args):
    """The letters that list shows, as JSON."""
    return world.run("dead-letters", "list", "--json", *args).json


def redrive(world, *args, rc=0):
    """What redrive says of each letter, as JSON."""
    return world.run("dead-letters", "redrive", "--json", *args, rc=rc).json


def values_of(world, kind="suspends"):
    """The values on a topic, in the order of partitions and offsets."""
    return [r.value for r in sorted(world.read(kind), key=lambda r: (r.partition, r.offset))]


# ---- list ----------------------------------------------------------------------------------


def test_list_says_where_and_why(fermata):
    """One letter with all its fields; the state is nowhere."""
    fermata.start_worker()
    ack = fermata.send("suspends", SUSPEND.encode(marked()) + b"\0", b"key", HEADERS, 1)
    letter = fermata.wait_letter(ack)
    (found,) = listed(fermata)
    assert found == {
        "place": place(letter),
        "at": letter.timestamp * 1000,
        "code": "malformed",
        "reason": letter.header("fermata.error.reason"),
        "stage": "suspend",
        "topic": ack.topic,
        "partition": 1,
        "offset": ack.offset,
        "timestamp": ack.timestamp * 1000,
        "redrive_count": 0,
        "value_bytes": len(letter.value),
    }
    table = fermata.run("dead-letters", "list").out
    assert place(letter) in table and "malformed" in table and f"{ack.topic}:1:{ack.offset}" in table
    assert MARKER not in table


def test_list_filters(fermata):
    """By code, topic and time; limit; second letters of a record only when they are asked for."""
    fabricate(fermata, b"a", 1)
    fabricate(fermata, b"b", 2, code="conflict")
    fabricate(fermata, b"c", 3, topic=fermata.topics["approvals"], stage="approval")
    fabricate(fermata, b"a", 1)  # a double
    fabricate(fermata, b"z", 1, timestamp="2")  # the same place in a topic that was made anew

    def offsets(*args):
        return [each["offset"] for each in listed(fermata, *args)]

    assert offsets() == [1, 2, 3, 1]
    assert offsets("--all") == [1, 2, 3, 1, 1]
    assert offsets("--code", "conflict") == [2]
    assert offsets("--topic", fermata.topics["approvals"]) == [3]
    assert offsets("--limit", "2") == [1, 2]
    assert offsets("--since", "1h") == [1, 2, 3, 1]
    assert offsets("--until", "1h") == []
    later = fabricate(fermata, b"d", 9).timestamp
    assert later >= 0
    at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(later // 1000 + 2))
    assert offsets("--since", at) == []
    assert 9 in offsets("--until", at)
    done = fermata.run("dead-letters", "list", "--code", "conflcit", rc=2)
    assert "conflict" in done.err
    assert fermata.run("dead-letters", "list", "--since", "yesterday", rc=2).err.count("\n") == 1


def test_list_shows_what_somebody_else_wrote(fermata):
    """A record without our headers, or with broken ones, is listed and has no code."""
    fermata.send("dead_letters", b"x", None, [], 0)
    headers = letter_headers("no/topic", 0, 1)
    fermata.send("dead_letters", b"y", None, headers, 0)
    fermata.send("dead_letters", None, None, letter_headers("t", "-1", 1), 0)
    found = listed(fermata)
    assert [each["code"] for each in found] == [None] * 3
    assert [each["value_bytes"] for each in found] == [1, 1, None]
    assert listed(fermata, "--code", "malformed") == []


def test_list_of_nothing(fermata):
    """An empty topic is no fault; a missing one is."""
    assert fermata.run("dead-letters", "list").out == ""
    done = fermata.run("dead-letters", "list", "-X", "topics.dead_letters=nowhere", rc=2)
    assert "topics create" in done.err


# ---- show ----------------------------------------------------------------------------------


def test_show(make_world):
    """Headers, framing, ids, whether it could be read now; and nothing of the state."""
    world = make_world(settings=STRICT)
    world.start_worker()
    datum = unanswered()
    value = SUSPEND.encode(datum)
    ack = world.send("suspends", value, b"key", HEADERS, 0)
    letter = world.wait_letter(ack)
    done = world.run("dead-letters", "show", place(letter))
    assert MARKER not in done.out
    for wanted in ("not_at_boundary", "single object", f"{len(value)} bytes", "would be refused", "twice"):
        assert wanted in done.out, done
    (shown,) = world.run("dead-letters", "show", place(letter), "--json").json
    assert shown["now_refused"] and "limits.boundary" in shown["change_first"]
    assert shown["framing"].startswith("single object, fingerprint ")
    assert ["twice", "twice"] == [h["name"] for h in shown["headers"] if h["name"] == "twice"]
    assert MARKER not in json.dumps(shown)
    (now,) = world.run("dead-letters", "show", place(letter), "--json", "-X", "limits.boundary=step").json
    assert now["now_refused"] is None
    assert now["checkpoint_id"] == datum["checkpoint_id"]
    assert now["session_id"] == datum["session_id"]


def test_show_writes_the_value(fermata):
    """Byte for byte, for its owner alone, and never over a file."""
    value = bytes(range(256)) * 40
    ack = fabricate(fermata, value, 1)
    name = f"{ack.partition}:{ack.offset}"
    path = fermata.directory / "value.bin"
    fermata.run("dead-letters", "show", name, "--value", path)
    assert path.read_bytes() == value
    assert os.stat(path).st_mode & 0o777 == 0o600
    path.write_bytes(b"mine")
    done = fermata.run("dead-letters", "show", name, "--value", path, rc=None)
    assert done.rc != 0 and str(path) in done.err
    assert path.read_bytes() == b"mine"


def test_show_of_what_is_not_there(fermata):
    """Exit 1 and the reason; a place that is none is a fault of usage."""
    fabricate(fermata, b"x", 1)
    assert "ends before" in fermata.run("dead-letters", "show", "0:1", rc=1).err
    assert "partitions" in fermata.run("dead-letters", "show", "9:0", rc=1).err
    for name in ("x", "0", "0:", ":0", "-1:0", "0:-1", "0:1x", "99999999999:0"):
        fermata.run("dead-letters", "show", "--", name, rc=2)
    cut(fermata.kafka.bootstrap, {(fermata.topics["dead_letters"], 0): 1})
    assert "retention" in fermata.run("dead-letters", "show", "0:0", rc=1).err


# ---- redrive -------------------------------------------------------------------------------


def test_redrive_and_it_is_taken(make_world):
    """The same bytes, key and headers to the same partition; then it is a checkpoint like any other."""
    world = make_world(settings=STRICT)
    worker = world.start_worker()
    datum = unanswered()
    value = SUSPEND.encode(datum)
    ack = world.send("suspends", value, b"\xffkey", HEADERS, 1)
    letter = world.wait_letter(ack)
    worker.stop()
    world.write_config(limits__boundary="step")
    (said,) = redrive(world, place(letter))
    assert (said["action"], said["code"], said["to"]) == ("sent", "not_at_boundary", ack.topic)
    (again,) = [r for r in world.read("suspends") if r.offset != ack.offset]
    assert (again.partition, again.key, again.value) == (1, b"\xffkey", value)
    assert (again.partition, again.offset) == (said["to_partition"], said["to_offset"])
    assert again.headers == [*HEADERS, (COUNT, b"1")]
    world.start_worker()
    world.wait_state(datum["checkpoint_id"], "PENDING")
    assert redrive(world, "--all") == []  # it went already
    assert redrive(world, place(letter), rc=1)[0]["action"] == "done"
    assert len(world.read("suspends")) == 2
    redrive(world, place(letter), "--again")
    world.wait_intake()
    assert len(world.read("suspends")) == 3
    assert world.state(datum["checkpoint_id"]) == "PENDING"
    assert len(world.read("dead_letters")) == 1


def test_redrive_of_a_decision(make_world):
    """What came too early when there was no room for it counts after all."""
    world = make_world(settings={"worker.unclaimed_max": "1"})
    world.start_worker()
    datum = records.make_suspend()
    first = world.decide(partition=0)
    world.wait_decision(first.decision_id, "waiting")
    early = world.send_approval(records.make_approval(datum), partition=0)
    letter = world.wait_letter(early.ack)
    world.send_suspend(datum)
    world.wait_state(datum["checkpoint_id"], "PENDING")
    (dry,) = redrive(world, "--all", "--dry-run")
    assert (dry["action"], dry["code"], dry["now_refused"]) == ("send", "unclaimed_full", None)
    assert "worker.unclaimed_max" in dry["change_first"]
    redrive(world, place(letter))
    world.wait_resume(datum["checkpoint_id"])


def test_redrive_is_guarded_against_loops(fermata):
    """What comes back is counted, each of its letters goes once, and at the third time it is over."""
    fermata.start_worker()
    fermata.send("suspends", b"garbage", b"k", [], 0)
    for number in range(1, 4):
        fermata.wait_records("dead_letters", lambda r, n=number: len(r) == n, f"letter {number}")
        done = fermata.run("dead-letters", "redrive", "--all")
        assert "1 sent, 0 left alone" in done.out, done
        newest = max(fermata.read("suspends"), key=lambda r: r.offset)
        assert newest.value == b"garbage" and newest.header(COUNT) == str(number)
    fermata.wait_records("dead_letters", lambda r: len(r) == 4, "the last letter")
    for _ in range(2):
        done = fermata.run("dead-letters", "redrive", "--all", rc=1)
        assert "0 sent, 1 left alone, 3 redriven before" in done.out, done
        assert "3 times" in done.out
    (left,) = redrive(fermata, "--all", rc=1)
    assert left["action"] == "left" and "3 times" in left["why"]
    assert values_of(fermata) == [b"garbage"] * 4
    assert redrive(fermata, left["place"], "--max-redrives", "4")[0]["action"] == "sent"


def test_dry_run_tells_and_changes_nothing(make_world):
    """What would go, whether it would be taken, and what would have to change first."""
    world = make_world(settings={"limits.record_bytes": "4KiB"})
    good = SUSPEND.encode(marked())
    fabricate(world, good + b"\0", 1)
    fabricate(world, good, 2, code="conflict")
    fabricate(world, good[:2] + b"\1" * 8 + good[10:], 3, code="unknown_schema")
    fabricate(world, good + b"\0" * 5000, 4, code="too_large")
    fabricate(world, b"", 5, code="too_large")
    fabricate(world, good, 6, code="code_of_tomorrow")
    found = redrive(world, "--all", "--dry-run", rc=1)
    assert [each["action"] for each in found] == ["send"] * 3 + ["left"] * 2 + ["send"]
    assert found[0]["now_refused"] and not found[1]["now_refused"] and found[2]["now_refused"]
    assert "schemas.path" in found[2]["change_first"] and "id of its own" in found[1]["change_first"]
    assert "limits.record_bytes" in found[3]["why"]
    assert "left out" in found[4]["why"]
    text = world.run("dead-letters", "redrive", "--all", "--dry-run", rc=1).out
    assert "4 would be sent, 2 left alone, 0 redriven before" in text
    assert MARKER not in text
    assert world.read("suspends") == []
    assert world.sql("SELECT 1 FROM fermata.audit") == []
    assert redrive(world, "--all", "--code", "conflict", "--dry-run")[0]["place"] == "0:1"


def test_an_emptied_letter_stays(make_world):
    """What the dead-letters topic did not take is not in its letter: there is nothing to send."""
    world = make_world(dead_letter_bytes=4096)
    world.start_worker()
    ack = world.send("suspends", SUSPEND.encode(marked(session_id="s", agent="x" * 200)) + b"\0" * 8000, b"k")
    letter = world.wait_letter(ack)
    assert letter.value == b"" and letter.header("fermata.error.code") == "too_large"
    (left,) = redrive(world, "--all", rc=1)
    assert left["action"] == "left" and "left out" in left["why"]
    assert "left out" in world.run("dead-letters", "show", place(letter)).out
    assert len(world.read("suspends")) == 1


def test_doubles_are_sent_once(fermata):
    """The second letter that a crash left; and the whole one where the first has no value."""
    fabricate(fermata, b"one", 1)
    fabricate(fermata, b"one", 1)
    fabricate(fermata, b"", 2, code="too_large")
    fabricate(fermata, b"two", 2)
    done = redrive(fermata, "--all", rc=1)
    assert [(each["place"], each["action"]) for each in done] == [
        ("0:2", "left"),
        ("0:0", "sent"),
        ("0:3", "sent"),
    ]
    assert sorted(values_of(fermata)) == [b"one", b"two"]
    assert redrive(fermata, "0:1", rc=1)[0]["action"] == "done"


def test_redrive_goes_nowhere_else(fermata):
    """A letter names the topic that it came from, and is not believed when that is none of ours."""
    resumes = fermata.topics["resumes"]
    fabricate(fermata, b"x", 1, topic=resumes)
    fabricate(fermata, b"x", 2, topic="somewhere")
    fermata.send("dead_letters", b"x", None, [], 0)
    headers = [(COUNT, b"-1")]
    fabricate(fermata, b"x", 3, headers=headers)
    left = redrive(fermata, "--all", rc=1)
    assert [each["action"] for each in left] == ["left"] * 4
    assert "--to" in left[0]["why"] and COUNT in left[3]["why"]
    for name in (resumes, fermata.topics["gates"], fermata.topics["dead_letters"]):
        fermata.run("dead-letters", "redrive", "0:0", "--to", name, rc=2)
    assert fermata.read("resumes") == []
    assert "does not exist" in fermata.run("dead-letters", "redrive", "0:1", "--to", "nope", rc=2).err
    (sent,) = redrive(fermata, "0:1", "--to", fermata.topics["suspends"])
    assert sent["to"] == fermata.topics["suspends"]
    assert values_of(fermata) == [b"x"]


def test_redrive_wants_to_be_told_what(fermata):
    """Nothing, both, and nonsense are faults of usage; nothing that matches is exit 1."""
    fermata.run("dead-letters", "redrive", rc=2)
    fermata.run("dead-letters", "redrive", "--code", "conflict", rc=2)
    fermata.run("dead-letters", "redrive", "0:1", "--all", rc=2)
    fermata.run("dead-letters", "redrive", "0:1", "--rate", "0", rc=2)
    assert "no dead letter" in fermata.run("dead-letters", "redrive", "--all", rc=1).err
    assert "0:7" in fermata.run("dead-letters", "redrive", "0:7", rc=1).err


def test_redrive_keeps_a_rate(fermata):
    """At most so many a second."""
    for offset in range(8):
        fabricate(fermata, b"x", offset)
    redrive(fermata, "--all", "--rate", "4")
    times = sorted(r.timestamp for r in fermata.read("suspends"))
    assert len(times) == 8
    assert times[-1] - times[0] >= 1600, times


def test_two_at_once_send_each_letter_once(fermata):
    """Whoever is second finds what the first has sent."""
    acks = [
        (fermata.topics["dead_letters"], b"%d" % i, b"k", letter_headers(fermata.topics["suspends"], 0, i), 0)
        for i in range(300)
    ]
    fermata.sender.send_all(acks)
    argv = ("dead-letters", "redrive", "--all", "--rate", "1000")
    runs = [fermata.start(*argv, log=f"redrive-{i}.log") for i in range(3)]
    for each in runs:
        each.ended_by_us = True
        assert each.wait() in (0, 1), each.log
    sent = values_of(fermata)
    assert sorted(sent, key=int) == [b"%d" % i for i in range(300)]
    assert fermata.sql("SELECT count(*), count(DISTINCT details) FROM fermata.audit")[0] == (300, 300)


@pytest.mark.parametrize("headers", [[], [("fermata.error.code", b"old"), (COUNT, b"1"), (COUNT, b"2")]])
def test_headers_of_an_earlier_life(fermata, headers):
    """What stands there from before does not add up: one count, no fermata.error headers."""
    fabricate(fermata, b"x", 1, headers=[*HEADERS, *headers])
    redrive(fermata, "--all")
    (record,) = fermata.read("suspends")
    assert record.headers == [*HEADERS, (COUNT, b"3" if headers else b"1")]


def test_who_redrove_is_recorded(fermata):
    """A row in fermata.audit for each, with the letter's origin and where it went."""
    name = fermata.topics["suspends"]
    fabricate(fermata, b"x", 7)
    redrive(fermata, "--all")
    ((who, what, checkpoint, details),) = fermata.sql(
        "SELECT who, what, checkpoint_id, details FROM fermata.audit"
    )
    assert "@" in who and what == "dead-letters.redrive" and checkpoint is None
    assert details == f"{name}:0:7@1 to {name}"
    assert worlds.letter_place(fermata.read("dead_letters")[0]) == (name, "0", "7")
