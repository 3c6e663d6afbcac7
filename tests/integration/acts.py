"""What tests of decisions do again and again."""

import avrolib
import records
import topics

SECOND = 1_000_000  # microseconds


def check_resume(world, record, sent, verdict, counted):
    """All that the contract says of a resume."""
    datum = record.datum
    assert datum["verdict"] == verdict
    assert datum["resume_id"].lower() == sent.id.lower()
    for name, value in sent.datum.items():
        assert avrolib.same(datum[name], value), name
    for got, decision in zip(datum["decisions"], counted, strict=True):
        for part, value in got.items():
            assert value == decision.datum[part], part
    assert datum["migrated_from"] is None and datum["expires_at"] is None
    assert abs(datum["resumed_at"] - records.now_us()) < 300 * SECOND
    key = sent.datum["session_id"].encode()
    assert record.key == key
    assert record.partition == topics.partition_of(key, world.partitions)


def resume(world, sent, verdict, *counted):
    """Wait for the resume of a suspend and check it; returns it."""
    record = world.wait_resume(sent.id)
    check_resume(world, record, sent, verdict, counted)
    world.wait_state(sent.id, "RESUMED")
    return record


def refused(world, reason, sent, **over):
    """Send a decision that must be refused; the suspend stays as it is."""
    before = world.state(sent.id)
    decision = world.decide(sent, **over)
    world.wait_decision(decision.decision_id, "refused", reason)
    assert world.state(sent.id) == before
    return decision


def pending(world, **over):
    """A suspend that has arrived."""
    sent = world.suspend(**over)
    world.wait_state(sent.id, "PENDING")
    return sent


def one_line(done):
    """An error is one line that ends the story."""
    lines = done.err.strip().splitlines()
    assert len(lines) == 1, done
    return lines[0]


def json_suspend(**over):
    """A SuspendEvent for `fermata suspend`, times and ids left out."""
    datum = records.make_suspend(**over)
    for name in ("checkpoint_id", "suspended_at", "salt", "suspend_seq"):
        if name not in over:
            del datum[name]
    if "salt" in datum:
        datum["salt"] = datum["salt"].decode("latin-1")
    return datum
