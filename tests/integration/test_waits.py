"""Records that Kafka keeps for a shorter time than what came of them waits.

What has been taken in goes on without its record. What had not been is an alarm that says what is lost. What only the
database has is said before somebody needs the topics.
"""

import json

import judge
import records
import topics
from acts import SECOND, pending, resume
from cutting import delete_records
from rebuilding import empty_database
from test_operator_faults import wait_not_ready, wait_ready
from waiting import wait_for

DAY_MS = 86_400_000
APPENDED = {"message.timestamp.type": "LogAppendTime"}
KEPT_FOR_EVER = {**APPENDED, "retention.ms": "-1"}


def let_go(world, *kinds):
    """Retention takes all that stands on these topics."""
    for kind in kinds:
        delete_records(world.kafka.bootstrap, world.topics[kind], {p: -1 for p in range(world.partitions)})


def doctor(world, check, rc=0):
    """{result: [(detail, mend)]} of one check."""
    found = {}
    for each in world.run("doctor", "--json", rc=rc).json:
        if each["check"] == check:
            found.setdefault(each["result"], []).append((each["detail"], each["mend"]))
    return found


def keep(world, kind, **settings):
    """Give a topic settings; the names have underscores for dots."""
    given = {name.replace("_", "."): str(value) for name, value in settings.items()}
    topics.alter_topic(world.kafka.bootstrap, world.topics[kind], {**APPENDED, **given})


# ---- it was taken in -----------------------------------------------------------------------


def test_a_checkpoint_outlives_its_record(make_world):
    """PENDING, its record gone: decided and resumed, by the worker that took it in and by one that comes later."""
    world = make_world()
    worker = world.start_worker()
    now, later = [pending(world, partition=p) for p in (0, 1)], [pending(world, partition=p) for p in (0, 1)]
    let_go(world, "suspends")
    for sent in now:
        resume(world, sent, "APPROVED", world.decide(sent))
    worker.stop()
    let_go(world, "suspends", "approvals")
    again = world.start_worker()
    wait_ready(world, again)
    for sent in later:
        resume(world, sent, "APPROVED", world.decide(sent))
    fresh = pending(world)
    resume(world, fresh, "APPROVED", world.decide(fresh))
    world.settle()
    assert "ALARM" not in worker.log + again.log
    assert not world.read("dead_letters") and len(world.read("resumes")) == 5
    assert world.sql("SELECT DISTINCT state::text FROM fermata.checkpoint") == [("RESUMED",)]


MANY_SETTLED = (  # like the one that is there, and older
    "INSERT INTO fermata.checkpoint SELECT (jsonb_populate_record(c, jsonb_build_object("
    "'checkpoint_id', gen_random_uuid(), 'appended_at', c.appended_at - 1000 * n))).*"
    " FROM fermata.checkpoint c, generate_series(1, %s) n WHERE checkpoint_id = %s"
)


def test_what_waits_is_found_among_what_is_settled(make_world):
    """However many rows are kept: a worker looks at all of them, a page after the other."""
    world = make_world(partitions=1)
    worker = world.start_worker()
    settled = pending(world)
    resume(world, settled, "APPROVED", world.decide(settled))
    waiting = pending(world)
    early = world.send_approval(records.make_approval(records.make_suspend()))
    world.wait_decision(early.decision_id, "waiting")
    let_go(world, "suspends", "approvals")
    worker.stop()
    world.sql(MANY_SETTLED, 20_500, settled.id)
    again = world.start_worker()
    wait_for(lambda: "1 of 1 checkpoints that wait have no record" in again.log, lambda: again.log[-2000:])
    wait_for(lambda: "1 of 1 decisions that wait" in again.log, lambda: again.log[-2000:])
    resume(world, waiting, "APPROVED", world.decide(waiting))


def test_a_decision_outlives_its_record(make_world):
    """UNCLAIMED, and one of two of a quorum: they count when their suspend, or the other, has come."""
    world = make_world()
    worker = world.start_worker()
    datum = records.make_suspend()
    early = world.send_approval(records.make_approval(datum))
    world.wait_decision(early.decision_id, "waiting")
    half = pending(world, gate={"required_approvals": 2})
    first = world.decide(half)
    world.wait_decision(first.decision_id, "counted")
    let_go(world, "approvals", "suspends")
    (said,) = [each for each in doctor(world, "waits")["warning"] if world.topics["approvals"] in each[0]]
    assert "2 of 2 decisions that wait" in said[0] and "would not bring them back" in said[0], said
    resume(world, world.send_suspend(datum), "APPROVED", early)
    resume(world, half, "APPROVED", first, world.decide(half, decided_by=records.by("bob")))
    world.settle()
    assert "ALARM" not in worker.log and not world.read("dead_letters")


# ---- only the database has it --------------------------------------------------------------


def test_what_only_the_database_has(make_world):
    """The doctor and a worker's start say so; what is settled, or still on the topic, is not meant."""
    world = make_world()
    for kind in ("suspends", "approvals"):
        keep(world, kind, retention_ms=-1)
    worker = world.start_worker()
    settled, waits = pending(world), pending(world)
    resume(world, settled, "APPROVED", world.decide(settled))
    assert "1 checkpoints wait" in doctor(world, "waits")["ok"][0][0]
    let_go(world, "suspends")
    pending(world)
    (said,) = doctor(world, "waits")["warning"]
    assert "1 of 2 checkpoints that wait have no record" in said[0] and world.topics["suspends"] in said[0], said
    assert "would not bring them back" in said[0] and "retention.ms" in said[1], said
    worker.stop()
    again = world.start_worker()
    wait_for(lambda: "1 of 2 checkpoints that wait have no record" in again.log, lambda: again.log[-2000:])
    again.stop()
    let_go(world, "approvals", "resumes")
    empty_database(world)
    world.run("worker", "--drain")
    assert world.state(waits.id) is None  # as it was said


def test_retention_is_shorter_than_what_may_wait(make_world):
    """An open gate's expires_at and worker.unclaimed_ttl, beside retention.ms: before anything has gone."""
    world = make_world()
    keep(world, "suspends", retention_ms=30 * DAY_MS)
    keep(world, "approvals", retention_ms=3 * DAY_MS)
    worker = world.start_worker()
    wait_for(lambda: "a decision may wait 7 d for its suspend event" in worker.log, lambda: worker.log[-2000:])
    sent = pending(world, gate={"expires_at": records.now_us() + 29 * 86_400 * SECOND})
    assert len(doctor(world, "waits")["warning"]) == 1
    late = pending(world, gate={"expires_at": records.now_us() + 45 * 86_400 * SECOND + SECOND * 600})
    said = doctor(world, "waits")["warning"]
    assert len(said) == 2, said
    assert "expires in 45 d" in said[0][0] and "keeps records for 30 d" in said[0][0], said
    assert world.topics["suspends"] in said[0][0] and "would not bring it back" in said[0][0], said
    assert "worker.unclaimed_ttl" in said[1][0] and "keeps records for 3 d" in said[1][0], said
    assert world.topics["approvals"] in said[1][0] and "lower worker.unclaimed_ttl" in said[1][1], said
    worker.stop()
    again = world.start_worker()
    wait_for(lambda: "a gate that waits expires in 4" in again.log, lambda: again.log[-2000:])
    keep(world, "suspends", retention_ms=60 * DAY_MS)
    keep(world, "approvals", retention_ms=-1)
    assert list(doctor(world, "waits")) == ["ok"]
    for each in (sent, late):
        resume(world, each, "APPROVED", world.decide(each))


# ---- it was not taken in -------------------------------------------------------------------


def test_what_nobody_took_in(make_world):
    """A worker that was away for too long says what is lost, of either topic; so does the doctor, before it comes back."""
    world = make_world()
    worker = world.start_worker()
    known = pending(world, partition=0)
    world.wait(lambda: len(world.positions()) == 4, "a position of each partition")
    worker.stop()
    lost = [world.suspend(partition=0) for _ in range(3)]
    world.decide(known, partition=1)
    let_go(world, "suspends", "approvals")
    wanted = [f"{world.topics['suspends']} [0]", "from offset 1 to 3"], [
        f"{world.topics['approvals']} [1]",
        "from offset 0 to 0",
    ]
    said = doctor(world, "positions")["warning"]
    for words in wanted:
        assert any(all(word in detail for word in words) for detail, _ in said), (words, said)
    assert all("was never taken in" in detail and "docs/recovery.md" in mend for detail, mend in said), said
    worker = world.start_worker()
    wait_for(lambda: worker.log.count("ALARM") == 2, lambda: f"two alarms: {worker.log[-3000:]}")
    alarms = [line for line in worker.log.splitlines() if "ALARM" in line]
    for words in wanted:
        assert any(all(word in line for word in words) for line in alarms), (words, alarms)
    assert all("are gone, and were never taken in" in line and "fermata rebuild" in line for line in alarms), alarms
    assert "the suspends from" in "".join(alarms) and "the decisions from" in "".join(alarms), alarms
    wait_not_ready(worker, "partitions that are left alone", "2", "fermata doctor", "docs/recovery.md")
    fresh = pending(world, partition=1)
    resume(world, fresh, "APPROVED", world.decide(fresh, partition=0))
    worker.stop()
    world.sql("DELETE FROM fermata.kafka_offset WHERE topic = %s AND partition = 0", world.topics["suspends"])
    world.sql("DELETE FROM fermata.kafka_offset WHERE topic = %s AND partition = 1", world.topics["approvals"])
    world.start_worker()
    resume(world, known, "APPROVED", world.decide(known, partition=1))
    assert {world.state(sent.id) for sent in lost} == {None}
    assert not any("from offset" in detail for detail, _ in doctor(world, "positions").get("warning", []))


# ---- the ledger ----------------------------------------------------------------------------


def test_a_backup_is_older_than_the_resumes(make_world):
    """What was published since, and is gone: in doubt, with words, and not published again."""
    world = make_world(partitions=1)
    keep(world, "resumes", retention_ms=DAY_MS, segment_ms=DAY_MS)
    (said,) = [each for each in doctor(world, "topics")["warning"] if world.topics["resumes"] in each[0]]
    assert "resumes may be gone while their decisions are not" in said[0] and "fermata in-doubt" in said[0], said
    worker = world.start_worker()
    sent = pending(world)
    world.settle()
    worker.stop()
    backup = world.name + "-backup"
    world.disconnect()
    world.postgres.execute(f'CREATE DATABASE "{backup}" TEMPLATE "{world.name}"')
    worker = world.start_worker()
    resume(world, sent, "APPROVED", world.decide(sent))
    world.settle()
    worker.stop()
    let_go(world, "resumes")
    world.disconnect()
    world.postgres.drop_database(world.name)
    world.postgres.execute(f'ALTER DATABASE "{backup}" RENAME TO "{world.name}"')
    worker = world.start_worker()
    world.wait_state(sent.id, "IN_DOUBT")
    wait_for(lambda: "are gone before the database has read them" in worker.log, lambda: worker.log[-2000:])
    line = next(line for line in worker.log.splitlines() if "are gone before the database" in line)
    assert f"{world.topics['resumes']} [0]" in line and "from offset 0 to 1" in line and "IN_DOUBT" in line, line
    (row,) = world.run("in-doubt", "list", "--json").json
    assert row["checkpoint_id"] == sent.id and "whether it was published cannot be known" in row["reason"]
    assert "1 checkpoints are in doubt" in json.dumps(doctor(world, "set aside"))
    fresh = pending(world)
    world.decide(fresh)
    world.wait_resume(fresh.id)
    world.settle()
    assert len(world.read("resumes")) == 1 and world.state(sent.id) == "IN_DOUBT"
