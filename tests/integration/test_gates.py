"""Gate events, routes, and what happens to a checkpoint that cannot be opened."""

import pytest

import judge
import topics
from acts import SECOND, pending, resume
from records import by

# ---- gate events ---------------------------------------------------------------------------


def test_gate_events(shared):
    """What is proposed, for those who decide, in growing versions."""
    sent = shared.suspend(gate={"required_approvals": 2})
    datum, gate = sent.datum, sent.datum["gate"]
    first = shared.wait_gate(sent.id, lambda event: True, "is the first")
    wanted = {
        "checkpoint_id": sent.id,
        "session_id": datum["session_id"],
        "gate_id": gate["gate_id"],
        "tenant": datum["tenant"],
        "agent": datum["agent"],
        "state": "PENDING",
        "title": gate["title"],
        "risk": gate["action"]["risk"],
        "action": gate["action"],
        "requested_by": gate["requested_by"],
        "required_approvals": 2,
        "approvals": 0,
        "digest": sent.digest,
        "expires_at": None,
    }
    assert {name: first[name] for name in wanted} == wanted
    shared.decide(sent, partition=0)
    shared.wait_gate(sent.id, lambda event: event["approvals"] == 1, "counts one")
    shared.decide(sent, partition=0, decided_by=by("bob"))
    shared.wait_gate(sent.id, lambda event: event["state"] == "RESUMED", "is RESUMED")
    versions = [event["version"] for event in shared.gates(sent.id)]
    assert versions == sorted(set(versions))
    last = shared.gates(sent.id)[-1]
    assert (last["state"], last["approvals"]) == ("RESUMED", 2)
    for record in shared.reader("gates").records:
        if record.value and record.datum["checkpoint_id"] == sent.id:
            assert record.key == sent.id.lower().encode()
            assert record.partition == topics.partition_of(record.key, shared.partitions)
            assert record.header("ce_type") == "fermata.v1.GateEvent"
            assert record.header("content-type") == "application/avro"


def test_decided_while_nothing_can_be_resumed(make_world):
    """What is decided is told as RESUMED, and by itself where a ledger is unread: also what was decided before."""
    world = make_world()
    world.start_worker()
    before = world.suspend()
    world.decide(before)
    world.wait_resume(before.id)  # every ledger has been read
    first = world.suspend()
    world.decide(first)
    world.wait_gate(first.id, lambda event: event["state"] == "RESUMED", "is RESUMED")
    assert "DECIDED" not in [event["state"] for event in world.gates(first.id)]

    held, late = world.suspend(), world.suspend()
    for sent in (held, late):
        world.wait_gate(sent.id, lambda event: event["state"] == "PENDING", "is PENDING")
    world.sql("INSERT INTO fermata.resumes_topic VALUES ('unread', 1)")
    world.decide(held)
    world.wait_gate(held.id, lambda event: event["state"] == "DECIDED", "is DECIDED")
    world.decide(late)
    world.wait_gate(late.id, lambda event: event["state"] == "DECIDED", "is DECIDED")
    assert {r.datum["checkpoint_id"] for r in world.read("resumes")} == {before.id, first.id}

    world.sql("DELETE FROM fermata.resumes_topic WHERE topic = 'unread'")
    for sent in (held, late):
        world.wait_gate(sent.id, lambda event: event["state"] == "RESUMED", "is RESUMED")
        versions = [event["version"] for event in world.gates(sent.id)]
        assert versions == sorted(set(versions))
    world.settle()
    judge.check(world)


def test_a_worker_that_stops_has_told_of_what_it_resumed(make_world):
    """A few resumes leave without their gate events, which follow soon: at the end of a worker, too."""
    world = make_world()
    for _ in range(4):
        worker = world.start_worker()
        sent = world.suspend()
        world.wait_gate(sent.id, lambda event: event["state"] == "PENDING", "is PENDING")
        world.decide(sent)
        world.wait_resume(sent.id)
        world.wait_state(sent.id, "RESUMED")  # R5: before it there is nothing that could be told
        worker.stop()
        assert world.sql("SELECT checkpoint_id FROM fermata.gate_outbox") == []
        assert [event["state"] for event in world.gates(sent.id)] == ["PENDING", "RESUMED"]
    judge.check(world)


def test_a_killed_worker_leaves_it_to_the_next_to_tell(make_world):
    """kill -9 between a resume and its gate event: the row that R5 left is there."""
    world = make_world()
    worker = world.start_worker()
    for _ in range(3):
        sent = world.suspend()
        world.wait_gate(sent.id, lambda event: event["state"] == "PENDING", "is PENDING")
        world.decide(sent)
        world.wait_state(sent.id, "RESUMED")
        worker.kill()
        worker = world.start_worker()
        world.wait_gate(sent.id, lambda event: event["state"] == "RESUMED", "is RESUMED")
        versions = [event["version"] for event in world.gates(sent.id)]
        assert versions == sorted(versions)
    world.settle()
    judge.check(world)


def test_gate_without_an_action(shared):
    """No action, no risk."""
    sent = shared.suspend(gate={"action": None})
    gate = shared.wait_gate(sent.id, lambda event: True, "is the first")
    assert gate["action"] is None and gate["risk"] is None


def test_gates_without_the_action(make_world):
    """gates.include_action = false keeps the proposal back; the risk stays."""
    world = make_world(settings={"gates.include_action": "false"})
    world.start_worker()
    sent = world.suspend()
    gate = world.wait_gate(sent.id, lambda event: True, "is the first")
    assert gate["action"] is None and gate["risk"] == "HIGH"


# ---- routes --------------------------------------------------------------------------------


def test_on_reject_drop(make_world):
    """Settled, and kept from the topic; an approval is still published."""
    world = make_world(
        settings={"routes.quiet.agent": "quiet-agent", "routes.quiet.on_reject": "drop"}
    )
    world.start_worker()
    dropped = []
    for decision in ("REJECT", "CANCEL"):
        sent = world.suspend(agent="quiet-agent")
        world.decide(sent, decision=decision)
        dropped.append(sent)
    dropped.append(world.suspend(agent="quiet-agent", gate={"expires_at": 1}))
    approved = world.suspend(agent="quiet-agent")
    world.decide(approved)
    loud = world.suspend(agent="loud-agent")
    world.decide(loud, decision="REJECT")
    for sent in dropped:
        world.wait_state(sent.id, "RESUMED")
    assert world.wait_resume(approved.id).datum["verdict"] == "APPROVED"
    assert world.wait_resume(loud.id).datum["verdict"] == "REJECTED"
    world.settle()
    assert {r.datum["checkpoint_id"] for r in world.read("resumes")} == {approved.id, loud.id}
    judge.check(world, dropped=[sent.id for sent in dropped])


def test_resume_ttl(make_world):
    """expires_at of the resume, after which an executor should not run it any more."""
    world = make_world(settings={"routes.all.resume_ttl": "1h"})
    world.start_worker()
    sent = world.suspend()
    world.decide(sent)
    datum = world.wait_resume(sent.id).datum
    assert datum["expires_at"] - datum["resumed_at"] == 3600 * SECOND


def test_a_topic_of_its_own(make_world):
    """The resumes of some agents go elsewhere."""
    world = make_world()
    own = f"{world.name}.own"
    topics.create_topics(
        world.kafka.bootstrap, {own: 3}, {own: {"message.timestamp.type": "LogAppendTime"}}
    )
    world.write_config(routes__own__agent="special*", routes__own__topic=own)
    world.start_worker()
    special, usual = world.suspend(agent="special-agent"), world.suspend()
    world.decide(special)
    world.decide(usual)
    assert world.wait_resume(usual.id)
    reader = topics.Reader(world.kafka.bootstrap, own, "ResumeEvent")
    record = reader.wait(lambda found: found, "the resume")[0]
    assert record.datum["checkpoint_id"] == special.id
    assert record.partition == topics.partition_of(special.datum["session_id"].encode(), 3)
    world.settle()
    assert [r.datum["checkpoint_id"] for r in world.read("resumes")] == [usual.id]
    reader.close()


# ---- quarantine ----------------------------------------------------------------------------


def flip(world, table, checkpoint_id):
    """Flip a bit in every bytea column of a row that holds sealed bytes."""
    columns = ["wrapped_key"]
    if table == "payload":
        columns = [
            row[0]
            for row in world.sql(
                "SELECT column_name FROM information_schema.columns WHERE table_schema = 'fermata'"
                " AND table_name = 'payload' AND data_type = 'bytea'"
            )
        ]
    for column in columns:
        world.sql(
            f"UPDATE fermata.{table} SET {column} = set_byte({column}, length({column}) / 2,"
            f" get_byte({column}, length({column}) / 2) # 1) WHERE checkpoint_id = %s",
            checkpoint_id,
        )


@pytest.mark.parametrize("table", ["payload", "checkpoint"])
def test_what_cannot_be_opened_is_quarantined(shared, table):
    """With its decision; the others go on."""
    broken, good = pending(shared), pending(shared)
    flip(shared, table, broken.id)
    decision = shared.decide(broken)
    other = shared.decide(good)
    resume(shared, good, "APPROVED", other)
    shared.wait_state(broken.id, "QUARANTINED")
    shared.wait_decision(decision.decision_id, "counted")
    shared.wait_gate(broken.id, lambda gate: gate["state"] == "QUARANTINED", "is QUARANTINED")
    assert not shared.sql("SELECT 1 FROM fermata.outbox WHERE checkpoint_id = %s", broken.id)
