"""`fermata replay`: a topic read again beside a worker; what is missing comes back, nothing else."""

import json

import pytest

import judge
import records
import world as worlds
from rebuilding import SETTINGS, differences, everything, tables
from records import by


def replay(world, kind, *args, start="0", rc=0):
    """Run it; returns {(what, name): count} of the totals, and the findings."""
    done = world.run(
        "replay", "--topic", world.topics.get(kind, kind), "--from", start, "--json", *args, rc=rc
    )
    lines = [json.loads(line) for line in done.lines]
    totals = {(line["what"], line["name"]): line["count"] for line in lines if "name" in line}
    findings = [line for line in lines if "name" not in line]  # between partitions in any order
    return totals, sorted(findings, key=lambda each: (each["partition"], each["offset"], each["what"]))


def whats(findings):
    """What was found, sorted."""
    return sorted(finding["what"] for finding in findings)


def delete(world, sent, *tables_of):
    """Rows of a checkpoint go, by hand."""
    for table in tables_of or ("payload", "outbox", "expiry", "checkpoint"):
        world.sql(f"DELETE FROM fermata.{table} WHERE checkpoint_id = %s", sent.id)


def skip(world, ack):
    """Positions are moved on by hand over a record of approvals that no worker has read."""
    rows = world.sql(
        "UPDATE fermata.kafka_offset SET next = %s, last_offset = NULL"
        " WHERE topic = %s AND partition = %s RETURNING 1",
        ack.offset + 1,
        ack.topic,
        ack.partition,
    )
    assert rows


def wait_positions(world):
    """Wait until every partition has a position."""
    world.wait(lambda: len(world.positions()) == 2 * world.partitions, "all positions")


def decided(world):
    """A checkpoint that was approved and published, with its decision."""
    sent = world.suspend()
    decision = world.decide(sent, reason="good")
    world.wait_resume(sent.id)
    world.wait_state(sent.id, "RESUMED")
    return sent, decision


# ---- nothing is missing --------------------------------------------------------------------


def test_nothing_changes(make_world):
    """All topics from their beginnings, beside a running worker: not a row is another one."""
    world = make_world(partitions=3, settings=SETTINGS)
    world.start_worker()
    bad, _ = everything(world)
    before, published = tables(world), len(world.read("resumes"))
    for kind, conflicts, unreadable in (("suspends", 1, 2), ("approvals", 1, 1)):
        totals, findings = replay(world, kind)
        assert whats(findings) == ["differs"] * conflicts + ["unreadable"] * unreadable
        places = {(f["topic"], f["partition"], f["offset"]) for f in findings}
        assert places == {ack.place for ack in bad if ack.topic == world.topics[kind]}
        total = len([ack for ack in bad if ack.topic == world.topics[kind]])
        assert totals["read", "same"] == totals["read", "records"] - total
        assert not any(count for (what, _), count in totals.items() if what == "written")
    totals, findings = replay(world, "resumes")
    assert findings == [] and totals["read", "same"] == published
    assert not differences(before, tables(world))
    assert len(world.read("resumes")) == published
    assert len(world.read("dead_letters")) == len(bad)


def test_what_it_says(fermata):
    """For people: a line a finding, and what it comes to."""
    worker = fermata.start_worker()
    sent = fermata.suspend()
    fermata.wait_state(sent.id, "PENDING")
    worker.stop()
    delete(fermata, sent)
    argv = ["replay", "--topic", fermata.topics["suspends"], "--from", "1h"]
    done = fermata.run(*argv, "--dry-run")
    assert f"checkpoint {sent.id}: its checkpoint is not in the database" in done.out, done
    assert "nothing was written" in done.out and fermata.state(sent.id) is None
    done = fermata.run(*argv)
    assert "PENDING" in done.out and fermata.state(sent.id) == "PENDING", done


# ---- what is missing -----------------------------------------------------------------------


def test_a_pending_one_that_was_deleted(fermata):
    """The suspend comes back and can be decided as if nothing had happened."""
    fermata.start_worker()
    sent, kept = fermata.suspend(), fermata.suspend()
    fermata.settle()
    before = tables(fermata)
    delete(fermata, sent)
    totals, findings = replay(fermata, "suspends", "--dry-run")
    assert whats(findings) == ["missing"] and findings[0]["checkpoint_id"] == sent.id
    assert findings[0]["offset"] == sent.ack.offset
    assert fermata.state(sent.id) is None and totals["written", "PENDING"] == 0
    totals, again = replay(fermata, "suspends")
    assert again == findings and totals["written", "PENDING"] == 1
    assert not differences(before, tables(fermata))
    for each in (sent, kept):
        fermata.decide(each)
        fermata.wait_resume(each.id)
    fermata.settle()
    judge.check(fermata)


@pytest.mark.parametrize("kept", ["the decision", "nothing"])
def test_a_resumed_one_that_was_deleted(fermata, kept):
    """The ledger knows that it was published: it is not published again."""
    fermata.start_worker()
    sent, decision = decided(fermata)
    fermata.settle()
    before, published = tables(fermata), len(fermata.read("resumes"))
    delete(fermata, sent)
    if kept == "nothing":
        delete(fermata, sent, "decision")
    totals, findings = replay(fermata, "suspends")
    assert whats(findings) == ["missing"] and totals["written", "marked"] == 1
    assert totals["written", "RESUMED"] == 1
    totals, findings = replay(fermata, "approvals")
    assert whats(findings) == ([] if kept == "the decision" else ["missing"])
    assert not differences(before, tables(fermata))
    assert fermata.decision(decision.decision_id)[0] == "counted"
    fresh = fermata.suspend()
    fermata.decide(fresh)
    fermata.wait_resume(fresh.id)
    fermata.settle()
    assert len(fermata.read("resumes")) == published + 1


def test_a_decision_that_was_deleted(fermata):
    """It is judged now; where its checkpoint is missing as well, it is told and left."""
    fermata.start_worker()
    first = fermata.suspend(gate={"required_approvals": 2})
    half = fermata.decide(first)
    second, of_second = decided(fermata)
    third, of_third = decided(fermata)
    fermata.settle()
    before, published = tables(fermata), len(fermata.read("resumes"))
    for sent in (first, second, third):
        delete(fermata, sent, "decision")
    delete(fermata, third)
    fermata.sql("UPDATE fermata.checkpoint SET approvals = 0 WHERE checkpoint_id = %s", first.id)
    totals, findings = replay(fermata, "approvals")
    assert whats(findings) == ["missing", "missing", "no_checkpoint"]
    alone = next(finding for finding in findings if finding["what"] == "no_checkpoint")
    assert alone["decision_id"] == of_third.decision_id
    assert (totals["written", "counted"], totals["written", "refused"]) == (1, 1)
    assert fermata.decision(half.decision_id)[0] == "counted"
    # Decided without the ledger's words, and deleted by hand: it came too late.
    assert fermata.decision(of_second.decision_id)[1].startswith("already_decided")
    assert fermata.decision(of_third.decision_id) is None
    replay(fermata, "suspends")
    replay(fermata, "approvals")
    after = tables(fermata)
    assert after["checkpoint"] == before["checkpoint"]
    fermata.decide(first, decided_by=by("bob"))
    fermata.wait_resume(first.id)
    assert len(fermata.read("resumes")) == published + 1


def test_what_was_never_judged(fermata):
    """Positions that were moved on by hand over a decision: what it would decide now is in doubt
    only when its ledger has gone on for a minute; here it has not."""
    worker = fermata.start_worker()
    sent = fermata.suspend()
    wait_positions(fermata)
    fermata.settle()
    worker.stop()
    decision = fermata.decide(sent)
    skip(fermata, decision.ack)
    fermata.start_worker()
    fermata.wait_intake()
    totals, findings = replay(fermata, "approvals", "--partition", str(decision.ack.partition))
    assert whats(findings) == ["missing"] and totals["written", "DECIDED"] == 1
    fermata.wait_resume(sent.id)
    fermata.settle()
    judge.check(fermata)


def test_in_doubt(make_world):
    """Its ledger goes on for more than a minute and has no resume of it."""
    world = make_world(partitions=1)
    for kind in ("suspends", "approvals"):
        worlds.topics.alter_topic(
            world.kafka.bootstrap, world.topics[kind], {"message.timestamp.type": "CreateTime"}
        )
    worker = world.start_worker()
    datum = records.make_suspend()
    key, ago = datum["checkpoint_id"], records.now_us() // 1000 - 600_000
    old = (world.topics["suspends"], records.encode_suspend(datum), key, [], 0, ago)
    world.sender.send_all([old])
    world.wait_state(key, "PENDING")
    wait_positions(world)
    worker.stop()
    approval = records.make_approval(datum)
    late = (world.topics["approvals"], records.encode_approval(approval), key, [], 0, ago)
    skip(world, world.sender.send_all([late])[0])
    world.start_worker()
    decided(world)
    totals, findings = replay(world, "approvals")
    assert whats(findings) == ["missing"] and totals["written", "IN_DOUBT"] == 1
    assert world.state(key) == "IN_DOUBT"
    assert not world.sql("SELECT 1 FROM fermata.outbox")
    assert world.decision(approval["decision_id"])[0] == "counted"


def test_a_resume_that_is_not_marked(fermata):
    """The resumes topic: what it holds is RESUMED, and its decisions counted, whatever was said."""
    worker = fermata.start_worker()
    (first, _), (second, _), (third, of_third) = (decided(fermata) for _ in range(3))
    fermata.settle()
    worker.stop()
    published = len(fermata.read("resumes"))
    delete(fermata, first, "decision", "payload", "checkpoint")
    fermata.sql(
        "UPDATE fermata.checkpoint SET state = 'PENDING', published = false, verdict = NULL,"
        " decided_at = NULL, approvals = 0 WHERE checkpoint_id = %s",
        second.id,
    )
    fermata.sql(
        "UPDATE fermata.decision SET outcome = 'refused', reason = 'late: by hand'"
        " WHERE decision_id = %s",
        of_third.decision_id,
    )
    expected = {first.id: "missing", second.id: "not_marked", third.id: "outcome"}
    totals, findings = replay(fermata, "resumes", "--dry-run")
    assert {f["checkpoint_id"]: f["what"] for f in findings} == expected
    assert fermata.state(first.id) is None and totals["written", "marked"] == 0
    totals, again = replay(fermata, "resumes")
    assert again == findings and totals["written", "marked"] == 2
    assert [fermata.state(each.id) for each in (first, second, third)] == ["RESUMED"] * 3
    assert fermata.decision(of_third.decision_id)[0] == "refused"  # settled: it stays
    _, findings = replay(fermata, "resumes")
    assert whats(findings) == ["outcome"]
    fermata.start_worker()
    fermata.settle()
    assert len(fermata.read("resumes")) == published


# ---- what differs --------------------------------------------------------------------------


def test_a_changed_row(fermata):
    """A digest and an outcome that somebody has changed in the database: told, and left."""
    fermata.start_worker()
    sent = fermata.suspend()
    of_second = decided(fermata)[1]
    fermata.settle()
    fermata.sql(
        "UPDATE fermata.checkpoint SET digest = %s WHERE checkpoint_id = %s", bytes(32), sent.id
    )
    fermata.sql(
        "UPDATE fermata.decision SET outcome = 'refused', reason = 'late: by hand'"
        " WHERE decision_id = %s",
        of_second.decision_id,
    )
    before = tables(fermata)
    _, findings = replay(fermata, "suspends")
    assert whats(findings) == ["differs"] and findings[0]["checkpoint_id"] == sent.id
    _, findings = replay(fermata, "approvals")
    assert whats(findings) == ["outcome"] and findings[0]["decision_id"] == of_second.decision_id
    assert "would be counted today" in findings[0]["text"]
    assert not differences(before, tables(fermata))


def test_another_policy(make_world):
    """Decisions that would end otherwise under today's settings are told, and stay."""
    world = make_world()
    worker = world.start_worker()
    sent = world.suspend(gate={"requested_by": "alice"})
    counted = world.decide(sent)
    world.wait_resume(sent.id)
    world.settle()
    worker.stop()
    world.write_config(decisions__forbid_self="true")
    _, findings = replay(world, "approvals")
    assert whats(findings) == ["outcome"] and "refused, self today" in findings[0]["text"]
    assert world.decision(counted.decision_id)[0] == "counted"


# ---- from where to where -------------------------------------------------------------------


def test_bounds(make_world):
    """From an offset, from a time, of one partition; never past where the worker stands."""
    world = make_world(partitions=2)
    worker = world.start_worker()
    sent = [world.suspend(partition=index % 2) for index in range(6)]
    world.settle()
    worker.stop()
    beyond = world.suspend(partition=0)
    totals, _ = replay(world, "suspends")
    assert totals["read", "records"] == 6
    assert world.state(beyond.id) is None
    assert replay(world, "suspends", start="1")[0]["read", "records"] == 4
    assert replay(world, "suspends", "--partition", "1", start="2")[0]["read", "records"] == 1
    at = records.now_us() + 86_400_000_000
    assert replay(world, "suspends", start=records.when(at))[0]["read", "records"] == 0
    middle = min(each.ack.timestamp for each in sent) * 1000
    assert replay(world, "suspends", start=records.when(middle))[0]["read", "records"] == 6


@pytest.mark.parametrize(
    "args, says",
    [
        (["--topic", "nowhere", "--from", "0"], "none that can be replayed"),
        (["--from", "0"], "which topic?"),
        (["--topic", "{suspends}"], "from where?"),
        (["--topic", "{suspends}", "--from", "yesterday"], "from"),
        (["--topic", "{suspends}", "--from", "0", "--partition", "9"], "there is no 9"),
        (["--topic", "{suspends}", "--from", "0", "--partition", "x"], "--partition x"),
        (["--topic", "{suspends}", "--from", "99999999999999999999"], "no such offset"),
    ],
)
def test_usage(shared, args, says):
    """Exit 2, in one line."""
    shared.wait(lambda: shared.sql("SELECT 1 FROM fermata.installation"), "a worker")
    done = shared.run("replay", *(arg.format(**shared.topics) for arg in args), rc=2)
    assert says in done.err and done.err.count("\n") == 1, done


def test_where_no_worker_has_run(fermata):
    """There is nothing that a topic could be compared with."""
    done = fermata.run("replay", "--topic", fermata.topics["suspends"], "--from", "0", rc=2)
    assert "no worker has ever run" in done.err, done
