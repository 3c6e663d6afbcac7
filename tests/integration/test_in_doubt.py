"""After a rebuild, what cannot be known waits for an operator: `in-doubt list`, `resume` and `drop`."""

import pytest

from acts import one_line, pending, refused
from cutting import delete_records
from rebuilding import empty_database, rebuild

# ---- getting into doubt --------------------------------------------------------------------


def decided(world, **over):
    """A suspend and its approval, both taken in."""
    sent = pending(world, **over)
    world.decide(sent, reason="looks good")
    return sent


def delete_all(world):
    """All resumes of the one partition, up to its end."""
    delete_records(world.kafka.bootstrap, world.topics["resumes"], {0: -1})


def lose(world):
    """Retention takes all resumes that there are, and the database is lost. No worker runs."""
    delete_all(world)
    empty_database(world)


def doubted(world, count, **over):
    """So many checkpoints in doubt, published and gone from the topic; no worker runs."""
    worker = world.start_worker()
    sent = [decided(world, **over) for _ in range(count)]
    for each in sent:
        world.wait_resume(each.id)
    world.settle()
    worker.stop()
    lose(world)
    _, counts, _ = rebuild(world)
    assert counts["state", "IN_DOUBT"] == count
    return sent


def listed(world, *options):
    """{checkpoint_id: row} of `in-doubt list`."""
    done = world.run("in-doubt", "list", "--json", *options)
    return {row["checkpoint_id"]: row for row in done.json}


def resumed(world):
    """The checkpoints whose resume a fresh read of the whole topic finds, sorted."""
    return sorted(record.datum["checkpoint_id"] for record in world.read("resumes"))


def deeds(world, checkpoint_id):
    """What operators did to a checkpoint, as `history` tells it."""
    return [each for each in world.run("history", checkpoint_id, "--json").json if "what" in each]


DROP = ("--reason", "it ran on Friday", "--yes")


# ---- the ways out --------------------------------------------------------------------------


def test_listed_resumed_and_dropped(make_world):
    """Each is as the operator says; the answer outlives restarts and another rebuild."""
    world = make_world(partitions=1)
    wanted, ran, left = doubted(world, 3)
    rows = listed(world)
    assert set(rows) == {wanted.id, ran.id, left.id}
    assert rows[ran.id]["state"] == "IN_DOUBT" and rows[ran.id]["verdict"] == "APPROVED"
    assert "whether it was published cannot be known" in rows[ran.id]["reason"]
    text = world.run("in-doubt", "list").out
    assert wanted.id in text and world.topics["resumes"] in text
    doctor = world.run("doctor").out
    assert "3 checkpoints are in doubt" in doctor and "fermata in-doubt list" in doctor

    done = world.run("in-doubt", "resume", wanted.id, "--reason", "its executor never ran")
    assert "DECIDED, APPROVED: a worker publishes its resume" in done.out
    (answer,) = world.run("in-doubt", "drop", ran.datum["session_id"], *DROP, "--json").json
    assert answer["state"] == "RESUMED" and "it ran on Friday" in answer["reason"]
    assert set(listed(world)) == {left.id}

    worker = world.start_worker()
    world.wait_resume(wanted.id)
    world.wait_gate(ran.id, lambda g: g["state"] == "RESUMED" and "Friday" in g["reason"], "is told")
    worker.kill()
    worker = world.start_worker()  # R1, R2, R3 again: with the same doubt
    world.settle()
    assert resumed(world) == [wanted.id] and set(listed(world)) == {left.id}
    refused(world, "already_decided", ran)
    assert "is not in doubt: it is RESUMED" in one_line(
        world.run("in-doubt", "resume", wanted.id, rc=1)
    )
    assert "is not in doubt: it is RESUMED" in one_line(
        world.run("in-doubt", "drop", ran.id, *DROP, rc=1)
    )
    (deed,) = deeds(world, wanted.id)
    assert deed["what"] == "in_doubt.resume" and deed["reason"] == "its executor never ran"
    (deed,) = deeds(world, ran.id)
    assert deed["what"] == "in_doubt.drop" and "it was in doubt" in deed["details"]
    worker.stop()

    empty_database(world)  # what was published is known now; what was dropped only this database knew
    rebuild(world)
    assert (world.state(wanted.id), world.state(ran.id)) == ("RESUMED", "IN_DOUBT")
    assert set(listed(world)) == {ran.id, left.id}
    world.run("in-doubt", "drop", "--all", *DROP)
    world.start_worker()
    fresh = decided(world)
    world.wait_resume(fresh.id)
    world.settle()
    assert resumed(world) == sorted([wanted.id, fresh.id])


def test_while_a_worker_runs(make_world):
    """The relay is told, and publishes at once; it does not ask the same again."""
    world = make_world(partitions=1)
    sent = doubted(world, 4)
    world.start_worker()
    world.settle()
    assert set(listed(world)) == {each.id for each in sent}
    world.run("in-doubt", "resume", sent[0].id)
    world.wait_resume(sent[0].id)
    world.run("in-doubt", "resume", sent[1].id, sent[2].id)
    world.wait_resume(sent[2].id)
    world.settle()
    assert resumed(world) == sorted(each.id for each in sent[:3])
    assert set(listed(world)) == {sent[3].id}


def test_answered_and_then_more_is_gone(make_world):
    """A backup of before the resume was published, and retention again: that is asked once more."""
    world = make_world(partitions=1)
    (sent,) = doubted(world, 1)
    world.run("in-doubt", "resume", sent.id)
    settled = world.sql("SELECT doubt_settled FROM fermata.checkpoint")
    (ledger,) = world.sql("SELECT next, doubt_before, doubt_below FROM fermata.ledger_offset")
    worker = world.start_worker()
    world.wait_resume(sent.id)
    world.settle()
    worker.stop()
    delete_all(world)
    # The database of right after the answer.
    world.sql("UPDATE fermata.checkpoint SET state = 'DECIDED', published = false")
    world.sql(
        "INSERT INTO fermata.outbox (checkpoint_id, topic, partition)"
        " SELECT c.checkpoint_id, s.resumes_topic, c.resumes_partition FROM fermata.checkpoint c"
        " JOIN fermata.common s ON s.id = c.common"
    )
    world.sql(
        "UPDATE fermata.ledger_offset SET next = %s, doubt_before = %s, doubt_below = %s", *ledger
    )
    assert world.sql("SELECT doubt_settled FROM fermata.checkpoint") == settled
    world.start_worker()
    world.wait_state(sent.id, "IN_DOUBT")
    world.settle()
    assert resumed(world) == []
    world.run("in-doubt", "drop", sent.id, *DROP)
    world.settle()
    assert resumed(world) == [] and world.state(sent.id) == "RESUMED"


def test_found_after_all(make_world):
    """A backup in which it was in doubt, and was resumed since: answered again, it is found, not doubled."""
    world = make_world(partitions=1)
    (sent,) = doubted(world, 1)
    (ledger,) = world.sql("SELECT next, doubt_before, doubt_below FROM fermata.ledger_offset")
    world.run("in-doubt", "resume", sent.id)
    worker = world.start_worker()
    world.wait_resume(sent.id)
    world.settle()
    worker.kill()
    world.sql(
        "UPDATE fermata.checkpoint SET state = 'IN_DOUBT', published = false, doubt_settled = NULL"
    )
    world.sql(
        "UPDATE fermata.ledger_offset SET next = %s, doubt_before = %s, doubt_below = %s", *ledger
    )
    world.run("in-doubt", "resume", sent.id)
    world.start_worker()
    world.wait_state(sent.id, "RESUMED")
    world.settle()
    assert resumed(world) == [sent.id]


# ---- which -----------------------------------------------------------------------------------


def test_all_that_a_filter_lets_through(make_world):
    """--dry-run changes nothing and asks nothing; what is not meant stays."""
    world = make_world(partitions=1)
    worker = world.start_worker()
    mine = [decided(world, agent="mine") for _ in range(3)]
    other = decided(world, agent="other")
    for each in [*mine, other]:
        world.wait_resume(each.id)
    world.settle()
    worker.stop()
    lose(world)
    world.run("rebuild")
    everything = ["in-doubt", "resume", "--all", "--agent", "mine"]
    text = world.run(*everything, "--dry-run").out
    assert [line.split()[0] for line in text.splitlines()] == [each.id for each in mine]
    assert text.count("would be resumed") == 3
    dropped = world.run("in-doubt", "drop", "--all", "--dry-run", "--json").json
    assert len(dropped) == 4 and all(row["dry_run"] and row["state"] == "IN_DOUBT" for row in dropped)
    assert len(listed(world)) == 4 and not world.sql("SELECT 1 FROM fermata.audit")
    assert len(world.run(*everything, "--limit", "1").lines) == 1
    world.run(*everything)
    assert set(listed(world)) == {other.id}
    assert "nothing is in doubt that" in one_line(world.run(*everything, rc=1))
    world.start_worker()
    for each in mine:
        world.wait_resume(each.id)
    world.settle()
    assert resumed(world) == sorted(each.id for each in mine)


@pytest.mark.parametrize(
    ("words", "rc", "said"),
    [
        (["resume"], 2, "which are to be resumed?"),
        (["resume", "--all", "x"], 2, "one or the other"),
        (["resume", "x", "--agent", "y"], 2, "narrows --all"),
        (["resume", "--all"], 1, "nothing is in doubt"),
        (["resume", "SESSION-0"], 1, "never saved"),
        (["drop", "--all"], 2, "--reason"),
        (["drop", "--all", "--reason", "x"], 2, "--yes"),
        (["drop", "SESSION-0", *DROP], 1, "never saved"),
    ],
)
def test_what_is_wrong_is_said(shared, words, rc, said):
    """One line, and the exit code."""
    assert said in one_line(shared.run("in-doubt", *words, rc=rc))


def test_what_is_not_in_doubt_stays(shared):
    """By its id and by its session; nothing of it changes."""
    sent = pending(shared)
    for way in (["resume"], ["drop", *DROP]):
        line = one_line(shared.run("in-doubt", way[0], sent.id, *way[1:], rc=1))
        assert "is not in doubt: it is PENDING" in line
        line = one_line(shared.run("in-doubt", way[0], sent.datum["session_id"], *way[1:], rc=1))
        assert "has no gate that is in doubt" in line
    assert shared.state(sent.id) == "PENDING"
