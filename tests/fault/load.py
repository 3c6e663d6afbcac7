"""A load of sessions with decisions of every kind, made from a seed."""

import base64
import random
import uuid
from dataclasses import dataclass, field

import records
from records import by

WORDS = (
    "the migration adds an index to the table of accounts and keeps the old column until the next "
    "release so that both versions of the service can run side by side while the data is copied "
    "in batches review checks locks vacuum rollback deploy approve wait script constraint foreign key"
).split()
KIB = 1024


def text(rng, length):
    """Prose of about `length` bytes, which compresses as prose does."""
    out = []
    size = 0
    while size < length:
        word = rng.choice(WORDS)
        out.append(word)
        size += len(word) + 1
    return " ".join(out)[:length]


def noise(rng, length):
    """Text that does not compress."""
    return base64.b64encode(rng.randbytes(length * 3 // 4)).decode()


def size_of(rng):
    """1 KiB to 512 KiB, most of them small."""
    kind = rng.random()
    if kind < 0.80:
        return rng.randint(1 * KIB, 4 * KIB)
    if kind < 0.98:
        return rng.randint(4 * KIB, 64 * KIB)
    return rng.randint(64 * KIB, 512 * KIB)


def history(rng, size):
    """Entries of every role that make up about `size` bytes."""
    make = noise if rng.random() < 0.2 else text
    parts = rng.randint(2, 6)
    entries = [records.entry("SYSTEM", text(rng, 60), at=records.now_us())]
    for i in range(parts):
        role = rng.choice(["USER", "AGENT", "TOOL"])
        calls = []
        if role == "AGENT":
            calls = [{"id": f"c{i}", "name": "run", "arguments": '{"n":%d,"big":1e400}' % i}]
        entries.append(
            records.entry(role, make(rng, max(1, size // parts)), name=None, tool_calls=calls)
        )
    return entries


@dataclass
class Step:
    """One thing to send: a suspend (decision None) or a decision on it."""

    suspend: dict
    decision: dict = None


@dataclass
class Plan:
    """Everything that is to be sent, in order."""

    steps: list = field(default_factory=list)
    suspends: int = 0
    early: int = 0
    doubled: int = 0
    conflicting: int = 0


def make_suspend(rng, number):
    """A suspend of the load."""
    quorum = 2 if rng.random() < 0.1 else 1
    return records.make_suspend(
        session_id=f"load-{number:06d}",
        history=history(rng, size_of(rng)),
        config={"n": number, "ratio": rng.random(), "flags": ["a", "b"], "none": None},
        gate={"required_approvals": quorum, "title": f"gate of {number}"},
        state=(
            {"schema": "load.State", "encoding": "JSON", "fingerprint": None, "body": b"{}"}
            if rng.random() < 0.3
            else None
        ),
    )


def decisions_on(rng, suspend, plan):
    """The decisions on one suspend, in the order in which they are to be sent."""
    kind = rng.choices(["APPROVE", "REJECT", "CANCEL"], [80, 15, 5])[0]
    first = records.make_approval(suspend, decision=kind, decided_by=by("alice"))
    result = [first]
    if kind == "APPROVE" and suspend["gate"]["required_approvals"] == 2:
        result.append(records.make_approval(suspend, decided_by=by("bob")))
    if rng.random() < 0.1:
        plan.conflicting += 1
        other = "REJECT" if kind == "APPROVE" else "APPROVE"
        result.append(records.make_approval(suspend, decision=other, decided_by=by("carol")))
    if rng.random() < 0.2:
        plan.doubled += 1
        result.append(dict(result[0]))
    return result


def make_plan(seed, count, undecided=0.05):
    """A tenth of the decisions come before their suspend, a fifth are sent twice, some conflict."""
    rng = random.Random(seed)
    plan = Plan(suspends=count)
    timeline = []
    for number in range(count):
        suspend = make_suspend(rng, number)
        at = rng.random() * 0.8
        timeline.append((at, uuid.uuid4().hex, Step(suspend)))
        if rng.random() < undecided:
            continue
        early = rng.random() < 0.1
        plan.early += early
        decided_at = at - rng.random() * 0.05 if early else at + rng.random() * 0.2
        for offset, decision in enumerate(decisions_on(rng, suspend, plan)):
            place = (decided_at + offset * 1e-6, uuid.uuid4().hex, Step(suspend, decision))
            timeline.append(place)
    plan.steps = [step for _, _, step in sorted(timeline, key=lambda each: each[:2])]
    return plan


def send(world, plan, pace=None, chunk=200):
    """Send a plan; `pace` is called between chunks. Everything is acknowledged when it returns."""
    for start in range(0, len(plan.steps), chunk):
        send_chunk(world, plan.steps[start : start + chunk])
        if pace is not None:
            pace(start + chunk, len(plan.steps))


def send_chunk(world, steps):
    """Send some steps at once, in order for each topic."""
    from world import Sent  # pylint: disable=import-outside-toplevel

    batch = []
    for step in steps:
        is_suspend = step.decision is None
        datum = step.suspend if is_suspend else step.decision
        encode = records.encode_suspend if is_suspend else records.encode_approval
        kind = "suspends" if is_suspend else "approvals"
        key = datum["checkpoint_id"]
        batch.append((kind, datum, (world.topics[kind], encode(datum), key)))
    acks = world.sender.send_all([record for _, _, record in batch])
    for (kind, datum, record), ack in zip(batch, acks, strict=True):
        kept = world.suspends if kind == "suspends" else world.approvals
        kept.append(Sent(datum, record[1], ack))
