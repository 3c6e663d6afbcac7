"""Decisions that are refused and why, edits, and what comes when the time is over."""

import pytest

import avrolib
import judge
import records
from acts import SECOND, pending, refused, resume
from records import by
from world import World

EDITS = {"config": {"VRAM_limit_gb": 8.0, "dry": True}, "action_arguments": '{"dry_run":true}'}


# ---- refused -------------------------------------------------------------------------------


@pytest.mark.parametrize("decision", ["APPROVE", "REJECT", "CANCEL"])
def test_wrong_digest(shared, decision):
    """A decision for another proposal counts for none."""
    sent = pending(shared)
    refused(shared, "wrong_digest", sent, decision=decision, checkpoint_digest=bytes(32))
    resume(shared, sent, "APPROVED", shared.decide(sent))


@pytest.mark.parametrize("decision", ["APPROVE", "REJECT", "CANCEL"])
def test_wrong_session(shared, decision):
    """When a session is stated it must match."""
    sent = pending(shared)
    other = sent.datum["session_id"] + "x"
    refused(shared, "wrong_session", sent, decision=decision, session_id=other)


def test_session_and_digest_may_be_left_out(shared):
    """Neither is required by default."""
    sent = pending(shared)
    resume(shared, sent, "APPROVED", shared.decide(sent, session_id="", checkpoint_digest=None))


def test_required_digest(make_world):
    """decisions.require_digest binds APPROVE, and nothing else."""
    world = make_world(settings={"decisions.require_digest": "true"})
    world.start_worker()
    sent = pending(world)
    refused(world, "no_digest", sent, checkpoint_digest=None)
    resume(world, sent, "APPROVED", world.decide(sent))
    rejected = pending(world)
    decision = world.decide(rejected, decision="REJECT", checkpoint_digest=None)
    resume(world, rejected, "REJECTED", decision)


APPROVERS = ["carol", "jira:dave", "a:b:c"]


@pytest.mark.parametrize(
    "who, allowed",
    [
        (by("carol", "jira"), True),
        (by("carol", "slack"), True),
        (by("dave", "jira"), True),
        (by("dave", "slack"), False),
        (by("jira:dave", "x"), True),
        (by("b:c", "a"), True),
        (by("c", "a:b"), True),
        (by("Carol", "jira"), False),
        (by("caro", "jira"), False),
        (by("", "carol"), False),
        (by("eve", "jira"), False),
    ],
)
@pytest.mark.parametrize("decision", ["APPROVE", "REJECT"])
def test_approvers(shared, who, allowed, decision):
    """An entry matches the subject, or issuer, colon, subject; nothing is parsed."""
    sent = pending(shared, gate={"approvers": APPROVERS})
    if allowed:
        decided = shared.decide(sent, decision=decision, decided_by=who)
        resume(shared, sent, judge.VERDICTS[decision], decided)
    else:
        refused(shared, "not_approver", sent, decision=decision, decided_by=who)


def test_anyone_may_cancel(shared):
    """CANCEL counts from anyone."""
    sent = pending(shared, gate={"approvers": APPROVERS})
    decision = shared.decide(sent, decision="CANCEL", decided_by=by("eve"))
    resume(shared, sent, "CANCELLED", decision)


def test_self(make_world):
    """decisions.forbid_self binds APPROVE and REJECT of the one who asked, not CANCEL."""
    world = make_world(settings={"decisions.forbid_self": "true"})
    world.start_worker()
    sent = pending(world, gate={"requested_by": "carol"})
    refused(world, "self", sent, decided_by=by("carol"))
    refused(world, "self", sent, decided_by=by("carol"), decision="REJECT")
    resume(world, sent, "APPROVED", world.decide(sent, decided_by=by("dave")))
    sent = pending(world, gate={"requested_by": "carol"})
    decision = world.decide(sent, decided_by=by("carol"), decision="CANCEL")
    resume(world, sent, "CANCELLED", decision)


def test_self_is_allowed_by_default(shared):
    """Without the setting whoever asked may approve."""
    sent = pending(shared, gate={"requested_by": "carol"})
    resume(shared, sent, "APPROVED", shared.decide(sent, decided_by=by("carol")))


# ---- edits ---------------------------------------------------------------------------------


def test_edits_are_refused_by_default(shared):
    """And the gate stays open for a decision without."""
    sent = pending(shared)
    refused(shared, "edits", sent, edits=EDITS)
    record = resume(shared, sent, "APPROVED", shared.decide(sent))
    assert record.datum["edits"] is None


@pytest.fixture(scope="module")
def editing(kafka, postgres, tmp_path_factory):
    """A world in which edits are allowed."""
    directory = tmp_path_factory.mktemp("editing")
    settings = {"decisions.allow_edits": "true"}
    with World("editing", directory, kafka, postgres, settings=settings) as built:
        built.start_worker()
        yield built


def test_edits_stand_beside_the_config(editing):
    """The session comes back as it was sent."""
    sent = pending(editing)
    record = resume(editing, sent, "APPROVED", editing.decide(sent, edits=EDITS))
    assert avrolib.same(record.datum["edits"], EDITS)


def test_the_first_approval_fixes_the_edits(editing):
    """Others, or none, are refused; the same count."""
    sent = pending(editing, gate={"required_approvals": 2})
    first = editing.decide(sent, edits=EDITS, partition=0)
    editing.wait_decision(first.decision_id, "counted")
    other = {"config": {"VRAM_limit_gb": 8}, "action_arguments": None}
    refused(editing, "edits", sent, edits=other, decided_by=by("bob"), partition=0)
    refused(editing, "edits", sent, edits=None, decided_by=by("bob"), partition=0)
    second = editing.decide(sent, edits=EDITS, decided_by=by("bob"), partition=0)
    record = resume(editing, sent, "APPROVED", first, second)
    assert avrolib.same(record.datum["edits"], EDITS)


def test_the_first_approval_fixes_that_there_are_none(editing):
    """The other way round."""
    sent = pending(editing, gate={"required_approvals": 2})
    first = editing.decide(sent, partition=0)
    editing.wait_decision(first.decision_id, "counted")
    refused(editing, "edits", sent, edits=EDITS, decided_by=by("bob"), partition=0)
    second = editing.decide(sent, decided_by=by("bob"), partition=0)
    assert resume(editing, sent, "APPROVED", first, second).datum["edits"] is None


def test_early_edits(editing):
    """Kept sealed until the suspend comes."""
    datum = records.make_suspend()
    decision = editing.send_approval(records.make_approval(datum, edits=EDITS))
    editing.wait_decision(decision.decision_id, "waiting")
    record = resume(editing, editing.send_suspend(datum), "APPROVED", decision)
    assert avrolib.same(record.datum["edits"], EDITS)


# ---- expiry --------------------------------------------------------------------------------


def expired(world, on_expiry, seconds=30, **gate):
    """A suspend whose gate ended some time ago."""
    end = records.now_us() - seconds * SECOND
    return world.suspend(gate={"expires_at": end, "on_expiry": on_expiry, **gate})


def own_expire(record):
    """The one decision in the resume of an expired gate."""
    (decision,) = record.datum["decisions"]
    assert decision["decision"] == "EXPIRE"
    return decision


def test_an_odd_expiry_holds_up_no_other(make_world):
    """Any 64-bit number may stand in expires_at, and suspends may be further on than approvals."""
    world = make_world(partitions=1)
    world.start_worker()
    for _ in range(3):
        world.suspend()
    odd = [-6 * SECOND, -(2**63) + 1, 0, 2**63 - 1]
    sent = [world.suspend(gate={"expires_at": each}) for each in odd]
    normal = expired(world, "REJECT", seconds=-1)
    for each in [*sent[:3], normal]:
        assert world.wait_resume(each.id).datum["verdict"] == "EXPIRED"
    assert world.state(sent[3].id) == "PENDING"


@pytest.mark.parametrize("on_expiry, verdict", [("REJECT", "EXPIRED"), ("APPROVE", "APPROVED")])
def test_expiry_by_itself(shared, on_expiry, verdict):
    """The worker says EXPIRE on the approvals topic, and it takes the way of any decision."""
    sent = expired(shared, on_expiry)
    record = shared.wait_resume(sent.id)
    assert record.datum["verdict"] == verdict
    decision = own_expire(record)
    approvals = [
        r.datum for r in shared.read("approvals") if r.value and r.value[:2] == b"\xc3\x01"
    ]
    mine = [a for a in approvals if a["checkpoint_id"] == sent.id]
    assert {a["decision_id"] for a in mine} == {decision["decision_id"]}
    assert decision["decision_id"][14] == "8"
    shared.wait_decision(decision["decision_id"], "counted")


def test_expiry_in_the_near_future(shared):
    """It waits until its time; an approval before that counts."""
    end = records.now_us() + 2 * SECOND
    approved = shared.suspend(gate={"expires_at": end})
    left = shared.suspend(gate={"expires_at": end})
    decision = shared.decide(approved)
    assert decision.ack.timestamp * 1000 < end
    resume(shared, approved, "APPROVED", decision)
    assert shared.state(left.id) == "PENDING"
    record = shared.wait_resume(left.id)
    assert record.datum["verdict"] == "EXPIRED" and record.datum["resumed_at"] >= end


@pytest.mark.parametrize("decision", ["APPROVE", "REJECT"])
def test_late(shared, decision):
    """LogAppendTime at or after expires_at."""
    sent = expired(shared, "REJECT", seconds=0)
    late = shared.decide(sent, decision=decision)
    found = shared.wait_decision(late.decision_id, "refused")
    assert found[1].startswith(("late", "already_decided")), found
    assert shared.wait_resume(sent.id).datum["verdict"] == "EXPIRED"


def test_too_early(shared):
    """EXPIRE counts only when it is late, whoever sent it."""
    sent = pending(shared, gate={"expires_at": records.now_us() + 3600 * SECOND})
    refused(shared, "too_early", sent, decision="EXPIRE")
    never = pending(shared)
    refused(shared, "too_early", never, decision="EXPIRE")
    resume(shared, sent, "APPROVED", shared.decide(sent))


def test_somebody_elses_expire(shared):
    """Late, it counts."""
    sent = expired(shared, "REJECT", seconds=0)
    decision = shared.decide(sent, decision="EXPIRE")
    record = shared.wait_resume(sent.id)
    assert record.datum["verdict"] == "EXPIRED"
    assert own_expire(record)["decision_id"] == decision.decision_id
    shared.wait_decision(decision.decision_id, "counted")


def test_hold(shared):
    """It stays PENDING, says so once, and later decisions count."""
    sent = expired(shared, "HOLD")
    gate = shared.wait_gate(sent.id, lambda gate: gate["reason"], "says that it is held")
    assert gate["state"] == "PENDING"
    assert shared.state(sent.id) == "PENDING"
    decision = shared.decide(sent)
    record = shared.wait_resume(sent.id)
    assert record.datum["verdict"] == "APPROVED"
    assert record.datum["decisions"][-1]["decision_id"] == decision.decision_id
