"""What is settled goes in the end: sealed states, whole days of them, rows; and sessions are erased."""

import re

import pytest

import judge
import records
import topics
from acts import SECOND, check_resume, pending

DAY = 86400 * SECOND
SHORT = {"retention.payload": "1m"}
SHORT_ROWS = {"retention.payload": "1m", "retention.rows": "1m"}


def payloads(world):
    """{checkpoint_id: bytes} of the sealed states that there are."""
    return dict(
        world.sql("SELECT checkpoint_id::text, octet_length(body) + coalesce(octet_length(tail), 0) FROM fermata.payload")
    )


def rows(world):
    """The ids of the checkpoints that there are."""
    return {row[0] for row in world.sql("SELECT checkpoint_id::text FROM fermata.checkpoint")}


def age(world, by=DAY):
    """Let time go by, for the database."""
    world.sql(
        "UPDATE fermata.checkpoint SET changed_at = changed_at - %s, decided_at = decided_at - %s,"
        " suspended_at = suspended_at - %s, appended_at = appended_at - %s",
        by,
        by,
        by,
        by,
    )
    world.sql("UPDATE fermata.decision SET appended_at = appended_at - %s", by)
    world.sql("UPDATE fermata.installation SET sweep_at = 0")


def metric(worker, name):
    """The value of a counter."""
    return int(re.search(rf"^{name} (\d+)", worker.metrics(), re.MULTILINE).group(1))


def growing_session(world, name, count):
    """A session that suspends again and again, with one message more each time."""
    history, sent = [], []
    for number in range(1, count + 1):
        history.append(records.entry("AGENT", f"message {number}: " + records.uuid7() * 20))
        sent.append(world.suspend(session_id=name, suspend_seq=number, history=history))
        world.wait_state(sent[-1].id, "PENDING")
    return sent


# ---- sealed states -------------------------------------------------------------------------


def test_what_is_settled_is_not_kept_for_ever(make_world):
    """A session that suspended 20 times costs no more than its last suspend, and goes on whole."""
    world = make_world(settings=SHORT)
    worker = world.start_worker()
    sent = growing_session(world, "growing", 20)
    alone = pending(world, history=sent[-1].datum["history"])
    done = pending(world)
    world.decide(done)
    world.wait_resume(done.id)
    world.wait_state(done.id, "RESUMED")
    assert len(payloads(world)) == 22
    age(world)
    world.wait(lambda: len(payloads(world)) == 2, lambda: f"two to stay, of {payloads(world)}")
    left = payloads(world)
    assert left[sent[-1].id] <= 1.3 * left[alone.id]
    assert len(rows(world)) == 22
    world.wait(lambda: metric(worker, "fermata_payloads_purged_total") == 20, "20 to be counted")
    shown = world.run("show", done.id, "--state", rc=1)
    assert "retention.payload" in shown.err
    decision = world.decide(sent[-1])
    check_resume(world, world.wait_resume(sent[-1].id), sent[-1], "APPROVED", [decision])
    world.settle()
    judge.check(world)


def to_an_old_day(world, days):
    """Put all sealed states into the partition of a day that long ago; returns its name."""
    day = world.sql("SELECT current_date - %s::int", days)[0][0]
    world.sql("SELECT fermata.payload_day_make(%s)", day)
    world.sql("UPDATE fermata.payload SET day = %s", day)
    world.sql("UPDATE fermata.checkpoint SET payload_day = %s WHERE filled", day)
    age(world, days * DAY)
    return f"payload_{day:%Y%m%d}"


def test_a_day_is_dropped_whole(make_world):
    """By one of two workers; what still waits is moved out of it before, and goes on whole."""
    world = make_world()
    worker = world.start_worker()
    waiting = [pending(world) for _ in range(5)]
    done = [pending(world) for _ in range(20)]
    for sent in done:
        world.decide(sent)
    world.settle()
    worker.stop()
    name = to_an_old_day(world, 40)
    first, second = world.start_worker(), world.start_worker()
    world.wait(
        lambda: world.sql("SELECT to_regclass(%s) IS NULL", f"fermata.{name}")[0][0],
        f"{name} to be dropped",
    )
    assert set(payloads(world)) == {sent.id for sent in waiting}
    for name, count in (
        ("fermata_payload_days_dropped_total", 1),
        ("fermata_payloads_moved_total", 5),
        ("fermata_payloads_purged_total", 20),
    ):
        world.wait(
            lambda name=name, count=count: metric(first, name) + metric(second, name) == count,
            f"{name} to be {count}",
        )
    for sent in waiting:
        decision = world.decide(sent)
        check_resume(world, world.wait_resume(sent.id), sent, "APPROVED", [decision])
    world.settle()
    judge.check(world)


def test_a_day_is_dropped_under_load(make_world):
    """Decided and published while its payloads are moved: nothing is quarantined, none is lost."""
    world = make_world(settings={"worker.relay_batch": "5"})
    worker = world.start_worker()
    sent = [pending(world) for _ in range(60)]
    worker.stop()
    name = to_an_old_day(world, 40)
    for each in sent:
        world.decide(each)
    world.start_worker()
    world.start_worker()
    world.settle()
    world.wait(
        lambda: world.sql("SELECT to_regclass(%s) IS NULL", f"fermata.{name}")[0][0],
        f"{name} to be dropped",
    )
    for each in sent:
        assert world.state(each.id) == "RESUMED"
    judge.check(world)


# ---- rows ----------------------------------------------------------------------------------


def twice(world, count):
    """Decided sessions whose records stand in Kafka twice, as agents and bridges send again.

    Returns the suspends and the offsets that lie between the first records and the copies.
    """
    sent = [world.suspend(partition=i % 2) for i in range(count)]
    decisions = [world.decide(each, partition=i % 2) for i, each in enumerate(sent)]
    world.settle()
    names = [world.topics["suspends"], world.topics["approvals"]]
    between = topics.high_watermarks(world.kafka.bootstrap, names)
    for i, each in enumerate(sent):
        world.send("suspends", each.value, each.id, partition=i % 2)
    for i, each in enumerate(decisions):
        world.send("approvals", each.value, each.id, partition=i % 2)
    world.settle()
    return sent, between


def set_back(world, how):
    """Positions back to the first record that is there, by hand; the worker has stopped."""
    if how == "removed":
        world.sql("DELETE FROM fermata.kafka_offset")
    else:
        names = [world.topics["suspends"], world.topics["approvals"]]
        for (topic, partition), low in topics.low_watermarks(world.kafka.bootstrap, names).items():
            world.sql(
                "UPDATE fermata.kafka_offset SET next = %s, last_offset = NULL WHERE topic = %s"
                " AND partition = %s",
                low,
                topic,
                partition,
            )
    # The relays read their ledgers from the beginning, too.
    world.sql("UPDATE fermata.ledger_offset SET next = 0")


@pytest.mark.parametrize("how", ["set back", "removed"])
def test_a_replay_after_a_purge_brings_nothing_back(make_world, how):
    """Rows go when Kafka has let go of their records; copies of these are known for what they are."""
    world = make_world(settings=SHORT_ROWS)
    worker = world.start_worker()
    sent, between = twice(world, 12)
    kept = pending(world)
    age(world)
    world.wait(lambda: set(payloads(world)) == {kept.id}, "the sealed states to go")
    assert len(rows(world)) == 13  # Kafka has all of them yet
    topics.delete_records(world.kafka.bootstrap, between)
    world.sql("UPDATE fermata.installation SET sweep_at = 0")
    world.wait(lambda: rows(world) == {kept.id}, lambda: f"the rows to go, of {rows(world)}")
    world.wait(lambda: metric(worker, "fermata_checkpoints_purged_total") == 12, "12 to be counted")
    assert world.sql("SELECT count(*) FROM fermata.decision")[0][0] == 0
    gone = {each.id.encode() for each in sent}
    world.wait_records(
        "gates",
        lambda found: gone <= {r.key for r in found if r.value is None},
        "a tombstone of each",
    )
    published = len(world.read("resumes"))
    worker.stop()
    set_back(world, how)
    worker = world.start_worker()
    world.settle()
    fresh = pending(world)
    world.decide(fresh)
    world.wait_resume(fresh.id)
    world.settle()
    assert rows(world) == {kept.id, fresh.id}
    assert world.state(kept.id) == "PENDING"
    assert world.sql("SELECT count(*) FROM fermata.decision")[0][0] == 1
    assert len(world.read("resumes")) == published + 1
    assert len(world.read("dead_letters")) == 0
    assert metric(worker, "fermata_suspend_duplicates_total") >= 12
    # Somebody decides about one of them once more: it is not known, and stays so.
    late = world.decide(sent[0])
    world.wait_decision(late.decision_id, "waiting")
    worker.stop()
    set_back(world, how)
    world.start_worker()
    world.settle()
    assert world.state(sent[0].id) == "UNCLAIMED"
    assert len(world.read("resumes")) == published + 1


def test_rows_stay_where_nothing_is_said(make_world):
    """retention.rows is off by default: who decided what is kept."""
    world = make_world(settings=SHORT)
    world.start_worker()
    sent, between = twice(world, 2)
    age(world)
    topics.delete_records(world.kafka.bootstrap, between)
    world.sql("UPDATE fermata.installation SET sweep_at = 0")
    world.wait(lambda: not payloads(world), "the sealed states to go")
    assert rows(world) == {each.id for each in sent}
    assert not world.sql("SELECT 1 FROM fermata.horizon")


def orphan(world):
    """A decision whose suspend never comes; world has worker.unclaimed_ttl = 1s, and a worker."""
    early = world.decide(partition=0, session_id="s")
    world.wait_decision(early.decision_id, "refused", "no_suspend")
    return early


def test_decisions_without_a_checkpoint_go_too(make_world):
    """Refused for want of a suspend: they go as rows do, and a copy read again brings none back."""
    world = make_world(settings={**SHORT_ROWS, "worker.unclaimed_ttl": "1s"})
    worker = world.start_worker()
    early = orphan(world)
    between = topics.high_watermarks(world.kafka.bootstrap, [world.topics["approvals"]])
    world.send("approvals", early.value, early.id, partition=0)
    young = orphan(world)
    world.settle()
    age(world)
    world.sql("UPDATE fermata.installation SET sweep_at = 0")
    world.settle()
    assert len(world.sql("SELECT 1 FROM fermata.decision")) == 2  # Kafka has both
    topics.delete_records(world.kafka.bootstrap, between)
    world.sql("UPDATE fermata.installation SET sweep_at = 0")
    world.wait(
        lambda: world.sql("SELECT decision_id::text FROM fermata.decision") == [(young.decision_id,)],
        "the one to go that Kafka has no more",
    )
    world.wait(lambda: metric(worker, "fermata_orphans_purged_total") == 1, "one to be counted")
    worker.stop()
    set_back(world, "removed")
    worker = world.start_worker()
    world.settle()
    assert world.sql("SELECT decision_id::text FROM fermata.decision") == [(young.decision_id,)]
    assert not rows(world)


MANY_EARLY = 5000


def test_early_decisions_are_given_up_however_many(make_world):
    """Thousands at once: a sweep goes on until none is left."""
    world = make_world(settings={"worker.unclaimed_ttl": "1h"})
    ids = [records.uuid7() for _ in range(MANY_EARLY)]
    world.sql(
        "INSERT INTO fermata.checkpoint (checkpoint_id, state, filled, changed_at)"
        " SELECT id, 'UNCLAIMED', false, 1 FROM unnest(%s::uuid[]) id",
        ids,
    )
    world.sql(
        "INSERT INTO fermata.unclaimed (checkpoint_id, since, decisions)"
        " SELECT id, 1, 1 FROM unnest(%s::uuid[]) id",
        ids,
    )
    world.start_worker()
    world.wait(lambda: not rows(world), lambda: f"all to go, of {len(rows(world))}")


# ---- erasure -------------------------------------------------------------------------------


def keys(world, session_id):
    """How many keys there are that open something of a session."""
    return world.sql(
        "SELECT (SELECT count(*) FROM fermata.checkpoint c WHERE session_id = %s"
        " AND wrapped_key IS NOT NULL) + (SELECT count(*) FROM fermata.payload p"
        " JOIN fermata.checkpoint c USING (checkpoint_id) WHERE session_id = %s)"
        " + (SELECT count(*) FROM fermata.decision d JOIN fermata.checkpoint c USING (checkpoint_id)"
        " WHERE session_id = %s AND (edits_wrapped_key IS NOT NULL OR edits_body IS NOT NULL))",
        session_id,
        session_id,
        session_id,
    )[0][0]


def wait_tombstone(world, sent):
    """The last word about a gate is null."""
    world.wait_records(
        "gates",
        lambda found: [r.value for r in found if r.key == sent.id.lower().encode()][-1:] == [None],
        f"a tombstone of {sent.id}",
    )


EDITS = {"config": {"VRAM_limit_gb": 24.0}, "action_arguments": None}


def test_erase_while_it_waits(make_world):
    """It is settled, never published; decisions and suspends that come later change nothing."""
    world = make_world(settings={"decisions.allow_edits": "true"})
    worker = world.start_worker()
    other = pending(world)
    sent = pending(world, session_id="SESSION-808", gate={"required_approvals": 2})
    first = world.decide(sent, edits=EDITS)
    world.wait_decision(first.decision_id, "counted")
    assert keys(world, "SESSION-808") == 3
    tried = world.run("erase", "SESSION-808", "--dry-run", "--json")
    assert [(line["was"], line["erased"]) for line in tried.json] == [("PENDING", False)]
    assert keys(world, "SESSION-808") == 3
    done = world.run("erase", "SESSION-808", "--reason", "request 4711")
    assert "never be published" in done.out and "age out" in done.out
    assert keys(world, "SESSION-808") == 0
    assert world.state(sent.id) == "RESUMED"
    wait_tombstone(world, sent)
    shown = world.run("show", sent.id)
    assert "erased" in shown.out and "request 4711" in shown.out
    assert world.run("show", sent.id, "--json").json[0]["erased"] is True
    assert "erased" in world.run("show", sent.id, "--state", rc=1).err
    late = world.decide(sent, decided_by=records.by("bob"), edits=EDITS)
    world.wait_decision(late.decision_id, "refused", "already_decided")
    world.send("suspends", sent.value, sent.id)
    world.send("approvals", first.value, sent.id)
    world.settle()
    assert keys(world, "SESSION-808") == 0
    assert world.sql("SELECT what, reason FROM fermata.audit") == [("erase", "request 4711")]
    assert world.run("approve", sent.id, rc=1)
    worker.stop()
    world.start_worker()
    world.decide(other)
    world.wait_resume(other.id)
    assert len(world.read("resumes")) == 1
    assert not world.sql("SELECT 1 FROM fermata.gate_outbox WHERE checkpoint_id = %s", sent.id)


def test_erase_of_every_fate(make_world):
    """Decided and not published yet, published, superseded, in quarantine; once more is no harm."""
    world = make_world()
    worker = world.start_worker()
    done = pending(world, session_id="s", gate={"gate_id": "done"})
    world.decide(done)
    world.wait_resume(done.id)
    old = pending(world, session_id="s", gate={"gate_id": "line"})
    pending(world, session_id="s", gate={"gate_id": "line"}, suspend_seq=2)
    broken = pending(world, session_id="s", gate={"gate_id": "broken"})
    world.sql(
        "UPDATE fermata.checkpoint SET seal_commit = sha256(seal_commit) WHERE checkpoint_id = %s",
        broken.id,
    )
    world.decide(broken)
    world.wait_state(broken.id, "QUARANTINED")
    worker.stop()
    decided = world.suspend(session_id="s", gate={"gate_id": "decided"})
    world.decide(decided)
    world.start_worker()
    world.wait_resume(decided.id)
    lines = world.run("erase", "s", "--json").json
    was = {line["gate_id"]: line["was"] for line in lines if line["checkpoint_id"] != old.id}
    assert was == {
        "done": "RESUMED",
        "line": "PENDING",
        "broken": "QUARANTINED",
        "decided": "RESUMED",
    }
    assert keys(world, "s") == 0
    assert world.state(old.id) == "SUPERSEDED"
    again = world.run("erase", "s", "--json").json
    assert all(line["was_erased"] for line in again)
    assert world.sql("SELECT count(*) FROM fermata.audit")[0][0] == 5
    for sent in (done, old, broken, decided):
        wait_tombstone(world, sent)
    world.settle()
    judge.check(world, dropped=[broken.id, lines[0]["checkpoint_id"]])


def test_erase_knows_whose(make_world):
    """One that was never saved is named; of two tenants neither is taken for the other."""
    world = make_world()
    world.start_worker()
    for tenant in ("acme", "umbrella"):
        pending(world, session_id="same", tenant=tenant)
    unknown = world.run("erase", "SESSION-404", rc=1)
    assert "SESSION-404" in unknown.err and not unknown.out
    several = world.run("erase", "same", rc=1)
    assert "acme, umbrella" in several.err
    world.run("erase", "same", "--tenant", "nobody", rc=1)
    assert keys(world, "same") == 4
    world.run("erase", "same", "--tenant", "acme", "--yes")
    assert keys(world, "same") == 2
    assert len(world.run("pending", "--json").json) == 1
