"""Decisions that count: verdicts, order, quorum, and what a later suspend does to them."""

import re

import pytest

import judge
import records
from acts import pending, refused, resume
from records import by

TRACE = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
RFC3339 = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)")


# ---- verdicts ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "decision, verdict",
    [("APPROVE", "APPROVED"), ("REJECT", "REJECTED"), ("CANCEL", "CANCELLED")],
)
def test_verdict(shared, decision, verdict):
    """Each comes back as a resume with the session and the decision."""
    sent = shared.send_suspend(records.make_rich_suspend())
    decided = shared.decide(sent, decision=decision, reason="because ü")
    resume(shared, sent, verdict, decided)
    assert shared.decision(decided.decision_id)[0] == "counted"


def test_headers_of_a_resume(shared):
    """CloudEvents, the checkpoint's id, and the trace carried through the wait."""
    headers = [("traceparent", TRACE.encode()), ("tracestate", b"vendor=1,other=2"), ("x", b"y")]
    sent = shared.suspend(headers=headers)
    record = resume(shared, sent, "APPROVED", shared.decide(sent))
    assert record.header("ce_specversion") == "1.0"
    assert record.header("ce_id") == record.datum["resume_id"]
    assert record.header("ce_source")
    assert record.header("ce_type") == "fermata.v1.ResumeEvent"
    assert RFC3339.fullmatch(record.header("ce_time"))
    assert record.header("content-type") == "application/avro"
    assert record.header("fermata-checkpoint-id") == sent.id
    assert record.header("traceparent")[:36] == TRACE[:36]
    assert record.header("tracestate") == "vendor=1,other=2"


def test_without_a_trace_there_is_none(shared):
    """No header is required on input."""
    sent = shared.suspend()
    record = resume(shared, sent, "APPROVED", shared.decide(sent))
    assert record.header("tracestate") is None


@pytest.mark.parametrize("case", [str.upper, str.lower])
def test_ids_are_compared_as_uuids(shared, case):
    """They come back as they were sent; keys that Fermata writes are lower case."""
    sent = shared.suspend(checkpoint_id=records.uuid7().upper())
    decision = shared.decide(sent, checkpoint_id=case(sent.id), decision_id=records.uuid7().upper())
    record = shared.wait_resume(sent.id)
    assert record.datum["decisions"][0]["decision_id"] == decision.decision_id
    shared.wait_gate(sent.id, lambda gate: gate["state"] == "RESUMED", "is RESUMED")
    keys = {
        r.key
        for r in shared.reader("gates").records
        if r.value and r.datum["checkpoint_id"] == sent.id
    }
    assert keys == {sent.id.lower().encode()}


def test_partitions_are_those_of_kafkas_own_clients(make_world):
    """murmur2 of the session_id, whatever its length."""
    world = make_world(partitions=5)
    world.start_worker()
    for length in range(1, 12):
        sent = world.suspend(session_id="sessionsession"[:length])
        resume(world, sent, "APPROVED", world.decide(sent))
    judge.check(world)


# ---- order ---------------------------------------------------------------------------------


def test_early_decision(shared):
    """A decision that comes before its suspend counts when the suspend comes."""
    datum = records.make_suspend()
    decision = shared.send_approval(records.make_approval(datum))
    shared.wait_decision(decision.decision_id, "waiting")
    assert shared.state(datum["checkpoint_id"]) == "UNCLAIMED"
    assert shared.gates(datum["checkpoint_id"]) == []
    sent = shared.send_suspend(datum)
    resume(shared, sent, "APPROVED", decision)
    shared.wait_decision(decision.decision_id, "counted")


def test_early_decisions_are_judged_in_their_order(shared):
    """A quorum of two, one for another proposal, one doubled, one too many, all early."""
    datum = records.make_suspend(gate={"required_approvals": 2})
    early = [
        dict(decided_by=by("mallory"), checkpoint_digest=bytes(32)),
        dict(decided_by=by("ann")),
        dict(decided_by=by("ann")),
        dict(decided_by=by("bob")),
        dict(decided_by=by("cyd"), decision="REJECT"),
    ]
    sent = [
        shared.send_approval(records.make_approval(datum, **over), partition=1) for over in early
    ]
    shared.wait_decision(sent[-1].decision_id, "waiting")
    suspend = shared.send_suspend(datum)
    resume(shared, suspend, "APPROVED", sent[1], sent[3])
    for decision, reason in zip(
        sent, ["wrong_digest", None, "same_approver", None, "already_decided"]
    ):
        outcome = "refused" if reason else "counted"
        shared.wait_decision(decision.decision_id, outcome, reason)


def test_before_the_first_worker(make_world):
    """Everything was sent before any worker ran, the decisions to the other partition."""
    world = make_world()
    early = records.make_suspend()
    world.send_approval(records.make_approval(early), partition=1)
    pairs = [world.suspend(partition=0) for _ in range(20)]
    for sent in pairs:
        world.decide(sent, partition=1)
    world.send_suspend(early, partition=1)
    world.start_worker()
    world.wait_intake()
    world.settle()
    evidence = judge.check(world)
    assert len(evidence.resumes) == 21


def test_doubled_decision(shared):
    """The same record three times: one row, one resume."""
    sent = pending(shared)
    decision = shared.decide(sent)
    for partition in (0, 1, -1):
        shared.send("approvals", decision.value, partition=partition)
    resume(shared, sent, "APPROVED", decision)
    shared.settle()
    assert len(shared.decisions(sent.id)) == 1
    found = [r for r in shared.read("resumes") if r.datum["checkpoint_id"] == sent.id]
    assert len(found) == 1


@pytest.mark.parametrize(
    "first, second",
    [("APPROVE", "REJECT"), ("REJECT", "APPROVE"), ("CANCEL", "APPROVE"), ("APPROVE", "CANCEL")],
)
def test_the_first_decisive_decision_stands(shared, first, second):
    """The second is recorded: already_decided."""
    sent = pending(shared)
    decided = shared.decide(sent, decision=first, partition=0)
    later = shared.decide(sent, decision=second, partition=0, decided_by=by("bob"))
    verdict = judge.VERDICTS[first]
    resume(shared, sent, verdict, decided)
    shared.wait_decision(later.decision_id, "refused", "already_decided")


# ---- quorum --------------------------------------------------------------------------------


def test_quorum_of_distinct_approvers(shared):
    """The same approver twice is one; the same subject of another issuer is another."""
    sent = pending(shared, gate={"required_approvals": 3})
    first = shared.decide(sent, partition=0)
    shared.wait_decision(first.decision_id, "counted")
    refused(shared, "same_approver", sent, partition=0)
    second = shared.decide(sent, decided_by=by("alice", "other"), partition=0)
    shared.wait_decision(second.decision_id, "counted")
    gate = shared.wait_gate(sent.id, lambda gate: gate["approvals"] == 2, "counts two")
    assert gate["state"] == "PENDING" and gate["required_approvals"] == 3
    third = shared.decide(sent, decided_by=by("bob"), partition=0)
    resume(shared, sent, "APPROVED", first, second, third)


def test_quorum_at_once(shared):
    """Both halves of many quorums in one batch."""
    sent = [shared.suspend(gate={"required_approvals": 2}) for _ in range(30)]
    values = []
    for each in sent:
        for who in ("ann", "bob"):
            datum = records.make_approval(each.datum, decided_by=by(who))
            values.append(
                (shared.topics["approvals"], records.encode_approval(datum), b"", None, 0)
            )
    shared.sender.send_all(values)
    for each in sent:
        record = shared.wait_resume(each.id)
        who = [d["decided_by"]["subject"] for d in record.datum["decisions"]]
        assert who == ["ann", "bob"]


def test_quorum_over_two_partitions(make_world):
    """Two workers, the two halves of each quorum on different partitions."""
    world = make_world()
    world.start_worker()
    world.start_worker()
    sent = [world.suspend(gate={"required_approvals": 2}) for _ in range(50)]
    for each in sent:
        world.decide(each, decided_by=by("ann"), partition=0)
        world.decide(each, decided_by=by("bob"), partition=1)
    for each in sent:
        world.wait_resume(each.id)
    world.settle()
    judge.check(world)


def test_a_rejection_is_decisive(shared):
    """One of a quorum of two is enough to reject, even by someone who approved before."""
    sent = pending(shared, gate={"required_approvals": 2})
    first = shared.decide(sent, partition=0)
    second = shared.decide(sent, decision="REJECT", partition=0)
    resume(shared, sent, "REJECTED", first, second)


# ---- supersede -----------------------------------------------------------------------------


def line(**over):
    """Fields that put suspends on one line (tenant, session, gate)."""
    return dict(session_id=f"line-{records.uuid7()}", **over)


def test_a_later_suspend_supersedes(shared):
    """The earlier one takes no decision any more; the later one does."""
    same = line()
    old = pending(shared, **same)
    new = pending(shared, **same, suspend_seq=2)
    shared.wait_state(old.id, "SUPERSEDED")
    refused(shared, "superseded", old)
    refused(shared, "superseded", old, decision="CANCEL")
    resume(shared, new, "APPROVED", shared.decide(new))
    shared.wait_gate(old.id, lambda gate: gate["state"] == "SUPERSEDED", "is SUPERSEDED")


@pytest.mark.parametrize("seq", [3, 5])
def test_by_number_and_never_by_arrival(shared, seq):
    """One that is not above the highest ever seen is superseded on arrival."""
    same = line()
    new = pending(shared, **same, suspend_seq=5)
    old = shared.suspend(**same, suspend_seq=seq)
    shared.wait_state(old.id, "SUPERSEDED")
    assert shared.state(new.id) == "PENDING"


def test_above_the_highest_ever_seen(shared):
    """The highest was settled long ago; a lower one is superseded all the same."""
    same = line()
    high = shared.suspend(**same, suspend_seq=7)
    resume(shared, high, "APPROVED", shared.decide(high))
    low = shared.suspend(**same, suspend_seq=6)
    shared.wait_state(low.id, "SUPERSEDED")
    pending(shared, **same, suspend_seq=8)


def test_within_a_batch(shared):
    """Five of a line in one breath, out of order: the highest is left."""
    same = line()
    sent = [records.make_suspend(**same, suspend_seq=seq) for seq in (3, 1, 5, 2, 4)]
    name = shared.topics["suspends"]
    shared.sender.send_all([(name, records.encode_suspend(d), b"k", None, 0) for d in sent])
    for datum in sent:
        state = "PENDING" if datum["suspend_seq"] == 5 else "SUPERSEDED"
        shared.wait_state(datum["checkpoint_id"], state)


@pytest.mark.parametrize(
    "other", [dict(tenant="other"), dict(gate={"gate_id": "other"}), dict(session_id="else")]
)
def test_other_lines_are_left_alone(shared, other):
    """Another tenant, another gate, another session."""
    same = line()
    first = pending(shared, **same)
    pending(shared, **{**same, **other, "suspend_seq": 2})
    assert shared.state(first.id) == "PENDING"


def test_what_is_decided_is_not_superseded(shared):
    """It was resumed, and stays so."""
    same = line()
    old = shared.suspend(**same)
    resume(shared, old, "APPROVED", shared.decide(old))
    pending(shared, **same, suspend_seq=2)
    assert shared.state(old.id) == "RESUMED"


def test_early_decision_of_a_superseded_suspend(shared):
    """Refused, superseded."""
    same = line()
    pending(shared, **same, suspend_seq=2)
    datum = records.make_suspend(**same)
    decision = shared.send_approval(records.make_approval(datum))
    shared.wait_decision(decision.decision_id, "waiting")
    sent = shared.send_suspend(datum)
    shared.wait_decision(decision.decision_id, "refused", "superseded")
    assert shared.state(sent.id) == "SUPERSEDED"


# ---- all together ---------------------------------------------------------------------------


def test_laws_over_the_whole_module(make_world):
    """A mixed crowd on two workers, judged by the model."""
    world = make_world(partitions=3)
    world.start_worker()
    world.start_worker()
    kinds = ["APPROVE", "APPROVE", "REJECT", "CANCEL"]
    for index in range(120):
        datum = records.make_suspend(
            gate={
                "required_approvals": 1 + index % 3,
                "approvers": ["ann", "bob", "cyd"][: index % 4],
            }
        )
        decisions = [
            records.make_approval(
                datum,
                decision=kinds[(index * 7 + turn * 3) % 4],
                decided_by=by(("ann", "bob", "cyd", "dan")[(index + turn) % 4]),
                **({"checkpoint_digest": bytes(32)} if (index + turn) % 11 == 0 else {}),
            )
            for turn in range(4)
        ]
        early = index % 10 == 0
        if not early:
            world.send_suspend(datum)
        for decision in decisions:
            sent = world.send_approval(decision)
            if index % 5 == 0:
                world.send("approvals", sent.value, sent.id, partition=sent.ack.partition)
        if early:
            world.send_suspend(datum)
    world.settle()
    evidence = judge.check(world)
    assert len(evidence.resumes) > 80
