"""Judges a chaos run: the laws of tests/integration/judge.py, bucket by bucket of sessions, in two processes.

The resumes are read from the topic by an independent reader (python3-avro, read_committed) and spilled into the same
buckets as what was sent, by their key.
"""

import hashlib
import json
import multiprocessing
import pickle
from collections import Counter, defaultdict
from pathlib import Path

import chaos_load
import judge
import records
import topics
from world import Sent

PROCESSES = 2
SECOND_US = 1_000_000
GRACE_US = 30 * SECOND_US  # for what expired at the very end
SETTLED = ("PENDING", "RESUMED", "SUPERSEDED", "UNCLAIMED")
LOST, DOUBLED, UNDECIDED = ("L1", "L3"), ("L2",), ("L4",)

_shared = {}  # what the processes inherit


def spill_resumes(world, directory):
    """Every committed resume into the file of its key's bucket; returns how many there are."""
    files = [open(Path(directory) / f"resumes-{i:02d}", "wb") for i in range(chaos_load.BUCKETS)]
    reader = topics.Reader(world.kafka.bootstrap, world.topics["resumes"], "ResumeEvent")
    count = 0
    try:
        for record in reader.drain():
            bucket = chaos_load.bucket_of(record.key.decode("utf-8", "replace"))
            pickle.dump(record, files[bucket], pickle.HIGHEST_PROTOCOL)
            count += 1
    finally:
        reader.close()
        for each in files:
            each.close()
    return count


def resumes_of(directory, bucket):
    """The resumes of a bucket."""
    with open(Path(directory) / f"resumes-{bucket:02d}", "rb") as file:
        while True:
            try:
                yield pickle.load(file)
            except EOFError:
                return


def find_places(world, directory):
    """{(bucket, index): Ack} of what was acknowledged without saying where.

    A record that was sent again because its answer was lost is there already, and Kafka says no more than that.
    The topics themselves say where it is.
    """
    known, unknown = set(), []
    for bucket in range(chaos_load.BUCKETS):
        for index, (_, datum, value, ack) in enumerate(chaos_load.sent_of(directory, bucket)):
            if ack.offset is None:
                unknown.append((bucket, index, (ack.topic, datum["checkpoint_id"], digest(value))))
            else:
                known.add(ack.place)
    there = defaultdict(list)
    for kind in ("suspends", "approvals") if unknown else ():
        reader = topics.Reader(world.kafka.bootstrap, world.topics[kind])
        for record in reader.drain():
            if record.place not in known:
                place = topics.Ack(record.topic, record.partition, record.offset, record.timestamp)
                there[record.topic, record.key.decode(), digest(record.value)].append(place)
        reader.close()
    return {(bucket, index): there[name].pop(0) for bucket, index, name in unknown}


def digest(value):
    """Enough to know a value by."""
    return hashlib.blake2b(value, digest_size=16).digest()


def evidence_of(bucket):
    """All that is known of the sessions of a bucket."""
    suspends, approvals, bad = [], [], set()
    for index, entry in enumerate(chaos_load.sent_of(_shared["directory"], bucket)):
        kind, datum, value, ack = entry
        ack = _shared["places"].get((bucket, index), ack)
        sent = Sent(datum, value, ack)
        (approvals if kind == "approvals" else suspends).append(sent)
        if kind == "bad":
            bad.add(ack.place)
    return judge.Evidence(
        suspends=suspends,
        approvals=approvals,
        resumes=list(resumes_of(_shared["directory"], bucket)),
        letters=_shared["letters"],
        states=_shared["states"],
        decisions=_shared["decisions"],
        bad=frozenset(bad),
    )


def law_3_time(evidence):
    """A gate whose end has passed does not wait for ever."""
    resumed = {judge.canonical(record.datum["checkpoint_id"]) for record in evidence.resumes}
    for name, sent in evidence.stand.items():
        gate = sent.datum["gate"]
        if gate["expires_at"] is None or gate["on_expiry"] == "HOLD" or name in resumed:
            continue
        passed = gate["expires_at"] < _shared["now"] - GRACE_US
        if passed and evidence.states.get(name) != "SUPERSEDED":
            yield judge.Finding("L3", name, f"its end has passed, its state is {evidence.states.get(name)}")


def law_states(evidence):
    """Nothing is left in between, and nothing is set aside that was whole."""
    for name in evidence.stand:
        state = evidence.states.get(name)
        if state not in SETTLED:
            yield judge.Finding("L3", name, f"its state is {state}")


def judge_bucket(bucket):
    """The findings of a bucket, and figures."""
    evidence = evidence_of(bucket)
    found = [*judge.findings(evidence), *law_3_time(evidence), *law_states(evidence)]
    figures = Counter(
        sessions=len({sent.datum["session_id"] for sent in evidence.suspends}),
        suspends=len(evidence.suspends),
        checkpoints=len(evidence.stand),
        decisions=len(evidence.approvals),
        resumes=len(evidence.resumes),
    )
    figures.update(f"resumed {record.datum['verdict']}" for record in evidence.resumes)
    return found, figures


def rows(world, statement):
    """What a statement on the world's database answers."""
    connection = world.postgres.connect(world.name)
    try:
        with connection.cursor() as cursor:
            cursor.execute(statement)
            return cursor.fetchall()
    finally:
        connection.close()


def check(world, directory):
    """Judge a world that has settled. Returns the findings and figures."""
    spill_resumes(world, directory)
    decisions = rows(
        world, "SELECT decision_id::text, checkpoint_id::text, outcome::text, reason FROM fermata.decision"
    )
    _shared.update(
        directory=directory,
        places=find_places(world, directory),
        letters=world.read("dead_letters"),
        states=dict(rows(world, "SELECT checkpoint_id::text, state::text FROM fermata.checkpoint")),
        decisions={row[0]: row[1:] for row in decisions},
        now=records.now_us(),
    )
    found, figures = [], Counter()
    with multiprocessing.get_context("fork").Pool(PROCESSES) as pool:
        for more, counted in pool.imap_unordered(judge_bucket, range(chaos_load.BUCKETS)):
            found += more
            figures.update(counted)
    figures["dead letters"] = len(_shared["letters"])
    figures.update(f"state {state}" for state in _shared["states"].values())
    return found, figures


def verdict(found):
    """How many were lost, doubled, resumed without a decision, and what else there is."""
    laws = Counter(each.law for each in found)
    return {
        "lost": sum(laws[law] for law in LOST),
        "doubled": sum(laws[law] for law in DOUBLED),
        "without_decision": sum(laws[law] for law in UNDECIDED),
        "other": sum(
            count for law, count in laws.items() if law not in (*LOST, *DOUBLED, *UNDECIDED)
        ),
    }


def write_findings(found, path):
    """One JSON object a line."""
    with open(path, "w", encoding="utf-8") as file:
        for each in found:
            file.write(json.dumps(each._asdict()) + "\n")
