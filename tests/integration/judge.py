"""The independent judge: were the laws kept, given what was sent and what can be read?

It holds a small model of its own of how a decision is judged without a policy, and compares. It
says nothing where the outcome depends on an order that cannot be known: approvals of a checkpoint
on several partitions, a suspend that a later one may or may not have superseded in time.

L1 every acknowledged suspend is a checkpoint, or a dead letter     L4 no resume without decisions
L2 at most one resume of a checkpoint                                 that sufficed
L3 everything decided is resumed, with the content sent             L6 every decision is recorded;
L5 (part of L3: decisions sent before their suspend count)            the first decisive one stands
"""

import time
import uuid
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from typing import NamedTuple

import avrolib
import world as worlds

VERDICTS = {"APPROVE": "APPROVED", "REJECT": "REJECTED", "CANCEL": "CANCELLED"}
ON_EXPIRY = {"REJECT": "EXPIRED", "APPROVE": "APPROVED", "HOLD": None}
SHOWN = 20
STAYS_SECONDS = 5.0


class Finding(NamedTuple):
    """A law that was broken, by what, and how."""

    law: str
    subject: str
    text: str


@dataclass
class Policy:
    """The settings decisions.* under which the worker judged."""

    forbid_self: bool = False
    require_digest: bool = False
    allow_edits: bool = False


@dataclass
class Evidence:
    """All that the judge looks at. Ids are compared as uuids, whatever their case."""

    suspends: list
    approvals: list
    resumes: list
    letters: list
    states: dict
    decisions: dict  # decision_id: (checkpoint_id, outcome, reason)
    policy: Policy = field(default_factory=Policy)
    # Places of records that the test expects as dead letters; conflicts need not be named.
    bad: frozenset = frozenset()

    def __post_init__(self):
        self.lettered = {
            (topic, int(partition), int(offset))
            for topic, partition, offset in map(worlds.letter_place, self.letters)
        }
        self.stand = {}  # the suspend that stands for each checkpoint
        for sent in in_order(self.suspends):
            if sent.ack.place not in self.lettered:
                self.stand.setdefault(canonical(sent.id), sent)
        self.decided_on = defaultdict(list)
        for sent in in_order(self.approvals):
            self.decided_on[canonical(sent.id)].append(sent)


def canonical(text):
    """A uuid as lower-case text."""
    return str(uuid.UUID(text))


def in_order(sent):
    """By partition and offset."""
    return sorted(sent, key=lambda each: each.ack.place)


def collect(world, **more):
    """The evidence of a world as of now, read afresh."""
    states = world.sql("SELECT checkpoint_id::text, state::text FROM fermata.checkpoint")
    decisions = world.sql(
        "SELECT decision_id::text, checkpoint_id::text, outcome::text, reason FROM fermata.decision"
    )
    return Evidence(
        suspends=world.suspends,
        approvals=world.approvals,
        resumes=world.read("resumes"),
        letters=world.read("dead_letters"),
        states=dict(states),
        decisions={row[0]: row[1:] for row in decisions},
        **more,
    )


# ---- the model -----------------------------------------------------------------------------


@dataclass
class Judgement:
    """What the model thinks: the verdict (None: still open) and each decision's outcome."""

    verdict: str = None
    outcomes: dict = field(default_factory=dict)  # decision_id: reason of the refusal, "" = counted
    counted: list = field(default_factory=list)


def is_late(gate, sent):
    """Whether Kafka took it in at or after the gate's end."""
    return gate["expires_at"] is not None and sent.ack.timestamp * 1000 >= gate["expires_at"]


def refusal(suspend, sent, so_far, policy):
    """Why a decision may not count, by the first reason; "" when it may."""
    gate, decision = suspend.datum["gate"], sent.datum
    kind = decision["decision"]
    who = (decision["decided_by"]["issuer"], decision["decided_by"]["subject"])
    digest = decision["checkpoint_digest"]
    approvers = gate["approvers"]
    late = is_late(gate, sent)
    held = gate["on_expiry"] == "HOLD"
    checks = [
        ("wrong_session", decision["session_id"] not in ("", suspend.datum["session_id"])),
        ("already_decided", so_far.verdict is not None),
        ("wrong_digest", digest is not None and digest != suspend.digest),
        ("no_digest", policy.require_digest and kind == "APPROVE" and digest is None),
        ("too_early", kind == "EXPIRE" and not late),
        ("late", late and kind != "EXPIRE" and not held),
        (
            "not_approver",
            kind in ("APPROVE", "REJECT")
            and approvers
            and who[1] not in approvers
            and ":".join(who) not in approvers,
        ),
        (
            "self",
            policy.forbid_self
            and kind in ("APPROVE", "REJECT")
            and gate["requested_by"] in (who[1], ":".join(who)),
        ),
        (
            "same_approver",
            kind == "APPROVE"
            and any(approver(each) == who for each in so_far.counted if is_approve(each)),
        ),
        ("edits", not edits_fit(decision["edits"], so_far, policy)),
    ]
    return next((name for name, applies in checks if applies), "")


def approver(sent):
    """Who decided, as (issuer, subject)."""
    return sent.datum["decided_by"]["issuer"], sent.datum["decided_by"]["subject"]


def is_approve(sent):
    """Whether it says APPROVE."""
    return sent.datum["decision"] == "APPROVE"


def edits_fit(edits, so_far, policy):
    """Edits are allowed at all, and are those of the first APPROVE that counted."""
    if edits is not None and not policy.allow_edits:
        return False
    first = next((each for each in so_far.counted if is_approve(each)), None)
    return first is None or avrolib.same(edits, first.datum["edits"])


def predict(suspend, approvals, policy):
    """Judge the approvals of one checkpoint in the order given."""
    result = Judgement()
    gate = suspend.datum["gate"]
    for sent in approvals:
        name = canonical(sent.decision_id)
        if name in result.outcomes:
            continue  # a duplicate changes nothing
        result.outcomes[name] = refusal(suspend, sent, result, policy)
        if result.outcomes[name]:
            continue
        result.counted.append(sent)
        kind = sent.datum["decision"]
        if kind == "EXPIRE":
            result.verdict = ON_EXPIRY[gate["on_expiry"]]
        elif kind != "APPROVE" or enough(gate, result.counted):
            result.verdict = VERDICTS[kind]
    return result


def enough(gate, counted):
    """Whether the distinct approvers suffice."""
    approvers = {approver(each) for each in counted if is_approve(each)}
    return len(approvers) >= gate["required_approvals"]


def certain(approvals):
    """Whether their order is known: all on one partition."""
    return len({(each.ack.topic, each.ack.partition) for each in approvals}) <= 1


def maybe_superseded(evidence):
    """Ids of checkpoints for which a later suspend of the same session and gate was sent."""
    groups = defaultdict(list)
    for name, sent in evidence.stand.items():
        datum = sent.datum
        groups[datum["tenant"], datum["session_id"], datum["gate"]["gate_id"]].append(
            (datum["suspend_seq"], name)
        )
    highest = {key: max(seq for seq, _ in group) for key, group in groups.items()}
    return {
        name
        for key, group in groups.items()
        for seq, name in group
        if seq < highest[key] or sum(other == seq for other, _ in group) > 1
    }


# ---- the laws ------------------------------------------------------------------------------


def law_1(evidence):
    """Every acknowledged suspend is a checkpoint or a dead letter."""
    for sent in evidence.suspends:
        name, place = canonical(sent.id), sent.ack.place
        stands = evidence.stand.get(name)
        if place in evidence.lettered:
            if place not in evidence.bad and (stands is None or stands.value == sent.value):
                yield Finding("L1", name, f"a dead letter for the good record at {place}")
        elif place in evidence.bad:
            yield Finding("L1", name, f"no dead letter for the bad record at {place}")
        elif name not in evidence.states:
            yield Finding("L1", name, f"lost: acknowledged at {place}, neither row nor dead letter")
        elif evidence.states[name] == "UNCLAIMED":
            yield Finding("L1", name, f"lost: acknowledged at {place}, still UNCLAIMED")
        elif stands.value != sent.value:
            yield Finding("L1", name, f"no dead letter for the conflicting record at {place}")


def law_2(evidence):
    """At most one resume of a checkpoint, and only of what was sent."""
    count = Counter(canonical(r.datum["checkpoint_id"]) for r in evidence.resumes)
    for name, times in count.items():
        if times > 1:
            yield Finding("L2", name, f"resumed {times} times")
        if name not in evidence.stand:
            yield Finding("L2", name, "resumed, and never sent")
    for record in evidence.resumes:
        datum = record.datum
        if canonical(datum["resume_id"]) != canonical(datum["checkpoint_id"]):
            yield Finding("L2", datum["checkpoint_id"], f"resume_id is {datum['resume_id']}")


def law_3(evidence, dropped=()):
    """What was decided is resumed with its verdict; what was not is still open."""
    resumed = {canonical(r.datum["checkpoint_id"]): r.datum["verdict"] for r in evidence.resumes}
    open_to_doubt = maybe_superseded(evidence)
    for name, sent in evidence.stand.items():
        approvals = evidence.decided_on[name]
        if not certain(approvals):
            continue
        wanted = predict(sent, approvals, evidence.policy).verdict
        got, state = resumed.get(name), evidence.states.get(name)
        expires = sent.datum["gate"]["expires_at"] is not None
        if got is None and (name in open_to_doubt and state == "SUPERSEDED" or name in dropped):
            continue
        if got is None and wanted is not None:
            yield Finding("L3", name, f"lost: decided {wanted}, state {state}, no resume")
        elif got != wanted and not (expires and wanted is None):
            yield Finding("L3", name, f"resumed as {got}, the decisions say {wanted}")
        elif got is not None and state != "RESUMED":
            yield Finding("L3", name, f"resumed, but its state is {state}")


def law_3_content(evidence):
    """The resumed session is the one that was sent, field by field."""
    for record in evidence.resumes:
        sent = evidence.stand.get(canonical(record.datum["checkpoint_id"]))
        if sent is None:
            continue
        if record.key != sent.datum["session_id"].encode():
            yield Finding("L3", sent.id, f"the resume's key is {record.key!r}")
        for name, value in sent.datum.items():
            if not avrolib.same(record.datum[name], value):
                got = repr(record.datum[name])[:200]
                yield Finding("L3", sent.id, f"{name} came back as {got}, not {value!r:.200}")


def law_4(evidence):
    """Each resume names decisions that were sent, match its digest, and suffice."""
    sent_by_id = {canonical(s.decision_id): s for s in evidence.approvals}
    for record in evidence.resumes:
        datum = record.datum
        name = canonical(datum["checkpoint_id"])
        suspend = evidence.stand.get(name)
        if suspend is None:
            continue
        if not datum["decisions"]:
            yield Finding("L4", name, "resumed without any decision")
            continue
        for decision in datum["decisions"]:
            sent = sent_by_id.get(canonical(decision["decision_id"]))
            if decision["decision"] == "EXPIRE" and sent is None:
                continue  # made by the worker itself
            yield from law_4_decision(name, suspend, decision, sent)
        approvers = {
            (d["decided_by"]["issuer"], d["decided_by"]["subject"])
            for d in datum["decisions"]
            if d["decision"] == "APPROVE"
        }
        needed = suspend.datum["gate"]["required_approvals"]
        expired = datum["decisions"][-1]["decision"] == "EXPIRE"
        if datum["verdict"] == "APPROVED" and len(approvers) < needed and not expired:
            yield Finding("L4", name, f"approved by {len(approvers)} of {needed}")


def law_4_decision(name, suspend, decision, sent):
    """One decision in a resume."""
    if sent is None or canonical(sent.id) != name:
        yield Finding("L4", name, f"decision {decision['decision_id']} was not sent for it")
        return
    for part in decision:
        if not avrolib.same(decision[part], sent.datum[part]):
            yield Finding("L4", name, f"{part} of decision {sent.decision_id} was changed")
    digest = sent.datum["checkpoint_digest"]
    if digest is not None and digest != suspend.digest:
        yield Finding("L4", name, f"decision {sent.decision_id} was for another proposal")


def law_6(evidence):
    """Every decision is recorded with the outcome that its order gives it."""
    open_to_doubt = maybe_superseded(evidence)
    for name, approvals in evidence.decided_on.items():
        good = [s for s in approvals if s.ack.place not in evidence.lettered]
        suspend = evidence.stand.get(name)
        expected = {}
        if suspend is not None and certain(approvals) and name not in open_to_doubt:
            expected = predict(suspend, good, evidence.policy).outcomes
        for sent in good:
            decision_id = canonical(sent.decision_id)
            yield from law_6_decision(name, suspend, decision_id, expected, evidence)


def law_6_decision(name, suspend, decision_id, expected, evidence):
    """One decision's row."""
    row = evidence.decisions.get(decision_id)
    if row is None:
        yield Finding("L6", name, f"decision {decision_id} is recorded nowhere")
        return
    outcome = row[1]
    settled = ("counted", "refused") if suspend is not None else ("waiting", "refused")
    if outcome not in settled:
        yield Finding("L6", name, f"decision {decision_id} is {outcome}")
    elif decision_id in expected:
        refused = expected[decision_id]
        if (outcome == "refused") != bool(refused):
            text = f"decision {decision_id} is {row[1:]}, not '{refused or 'counted'}'"
            yield Finding("L6", name, text)


def law_6_resumes(evidence):
    """The decisions in a resume are those that counted, in the order of their partition."""
    open_to_doubt = maybe_superseded(evidence)
    for record in evidence.resumes:
        name = canonical(record.datum["checkpoint_id"])
        suspend, approvals = evidence.stand.get(name), evidence.decided_on[name]
        if suspend is None or not certain(approvals) or name in open_to_doubt:
            continue
        good = [s for s in approvals if s.ack.place not in evidence.lettered]
        wanted = [canonical(s.decision_id) for s in predict(suspend, good, evidence.policy).counted]
        got = [canonical(d["decision_id"]) for d in record.datum["decisions"]]
        if (
            got != wanted
            and record.datum["decisions"][-1:]
            and "EXPIRE" not in (d["decision"] for d in record.datum["decisions"])
        ):
            yield Finding("L6", name, f"the resume's decisions are {got}, not {wanted}")


def findings(evidence, dropped=()):
    """Everything that breaks a law; `dropped` are ids whose resume on_reject = drop keeps back."""
    dropped = {canonical(name) for name in dropped}
    return [
        *law_1(evidence),
        *law_2(evidence),
        *law_3(evidence, dropped),
        *law_3_content(evidence),
        *law_4(evidence),
        *law_6(evidence),
        *law_6_resumes(evidence),
    ]


def check(world, dropped=(), **more):
    """Judge a world that has settled; fails with what was found. Returns the evidence.

    The tables are read before the topics, so what went on meanwhile can look like a fault. A fault stays: it is looked
    at again for a while, and each finding says what the database knows by then.
    """
    until = time.monotonic() + STAYS_SECONDS
    while True:
        evidence = collect(world, **more)
        found = findings(evidence, dropped)
        if not found or time.monotonic() > until:
            break
        time.sleep(0.5)
    if found:
        count = Counter(each.law for each in found)
        shown = "\n".join(
            f"{each.law} {each.subject}: {each.text}; {world.describe(each.subject)}" for each in found[:SHOWN]
        )
        raise AssertionError(f"{len(found)} findings {dict(count)}:\n{shown}")
    return evidence
