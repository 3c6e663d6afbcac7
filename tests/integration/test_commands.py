"""The commands at work: suspend, decide, list, follow, and the worker's own life."""

import getpass
import json
import os
import re
import subprocess

import pytest

import judge
import records
import topics
import world as worlds
from acts import json_suspend, one_line, pending
from test_harness import fabricate, make_resume
from waiting import TIMEOUT, wait_for

# ---- suspend -------------------------------------------------------------------------------


def sent_suspends(world, ids):
    """The SuspendEvents with these ids, in that order."""
    found = {r.datum["checkpoint_id"]: r.datum for r in world.read("suspends") if r.value}
    return [found[each] for each in ids]


def test_suspend_reads_lines(shared):
    """From stdin or a file; prints an id for each, in order, and fills in what is missing."""
    lines = "".join(json.dumps(json_suspend(session_id=f"s{i}")) + "\n" for i in range(3))
    ids = shared.run("suspend", stdin=lines).lines
    path = shared.directory / "suspends.jsonl"
    path.write_text(lines)
    ids += shared.run("suspend", path).lines
    assert len(set(ids)) == 6
    found = sent_suspends(shared, ids)
    assert [datum["session_id"] for datum in found] == ["s0", "s1", "s2"] * 2
    for datum in found:
        assert datum["checkpoint_id"][14] == "7"
        assert datum["suspend_seq"] == datum["suspended_at"]
        assert abs(datum["suspended_at"] - records.now_us()) < 300_000_000
    assert len({datum["salt"] for datum in found}) == 6


def test_suspend_takes_plain_and_tagged_unions(shared):
    """Avro's own JSON, and JSON as people write it."""
    plain = json_suspend(config={"d": 16.0, "l": 3, "s": "x", "n": None, "b": True, "a": ["y"]})
    tagged = json.loads(json.dumps(plain))
    tagged["config"] = {
        "d": {"double": 16.0},
        "l": {"long": 3},
        "s": {"string": "x"},
        "n": None,
        "b": {"boolean": True},
        "a": {"array": ["y"]},
    }
    tagged["gate"]["action"] = {"fermata.v1.Action": plain["gate"]["action"]}
    ids = shared.run("suspend", stdin=json.dumps(plain) + "\n" + json.dumps(tagged)).lines
    first, second = sent_suspends(shared, ids)
    assert first["config"] == second["config"] == plain["config"]
    assert isinstance(second["config"]["d"], float)
    assert first["gate"] == second["gate"]


def test_suspend_warns_where_a_retry_would_be_a_conflict(shared):
    """A checkpoint_id without salt and suspended_at."""
    done = shared.run("suspend", stdin=json_suspend(checkpoint_id=records.uuid7()))
    assert "conflict" in done.err
    whole = json_suspend(
        checkpoint_id=records.uuid7(), salt=b"0123456789abcdef", suspended_at=records.now_us()
    )
    assert shared.run("suspend", stdin=whole).err == ""


@pytest.mark.parametrize(
    "line, word",
    [
        ("{", ""),
        ("[]", ""),
        ("{}", "session_id"),
        (json.dumps(json_suspend(session_id="")), "session_id"),
        (json.dumps(dict(json_suspend(), suspend_seq=0)), "suspend_seq"),
        (json.dumps(dict(json_suspend(), colour="red")), "colour"),
        (json.dumps(json_suspend(checkpoint_id="x")), "checkpoint_id"),
        (json.dumps(json_suspend(gate={"action": {"arguments": "{"}})), "arguments"),
        (json.dumps(json_suspend(step={"node": ""})), "node"),
    ],
)
def test_suspend_refuses(shared, line, word):
    """Names the field, sends nothing."""
    before = len(shared.read("suspends"))
    done = shared.run("suspend", stdin=line, rc=None)
    assert done.rc in (1, 2) and done.out == "", done
    assert word in one_line(done)
    assert len(shared.read("suspends")) == before


def test_suspend_of_a_directory(shared):
    """Exit 2, as for a file that is not there."""
    done = shared.run("suspend", shared.directory, rc=2)
    assert "directory" in one_line(done) and done.out == ""


# ---- decide --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "command, verdict", [("approve", "APPROVED"), ("reject", "REJECTED"), ("cancel", "CANCELLED")]
)
def test_decide(shared, command, verdict):
    """By id, with who and why; the digest is the one that the database shows."""
    sent = pending(shared)
    argv = [command, sent.id, "--as", "Zoë", "--issuer", "desk", "--reason", "it is ü"]
    decision_id = shared.run(*argv).out.strip()
    datum = shared.wait_resume(sent.id).datum
    assert datum["verdict"] == verdict
    (decision,) = datum["decisions"]
    assert decision["decision_id"] == decision_id
    assert decision["decided_by"]["subject"] == "Zoë"
    assert decision["decided_by"]["issuer"] == "desk"
    assert decision["reason"] == "it is ü"
    (approval,) = [r for r in shared.read("approvals") if r.datum["decision_id"] == decision_id]
    assert approval.datum["checkpoint_digest"] == sent.digest
    assert approval.key == sent.id.encode()
    assert approval.partition == topics.partition_of(approval.key, shared.partitions)


def test_decide_by_session_and_by_default(shared):
    """The session's one pending gate; the login name of issuer `local`."""
    sent = pending(shared)
    shared.run("approve", sent.datum["session_id"])
    (decision,) = shared.wait_resume(sent.id).datum["decisions"]
    assert decision["decided_by"]["issuer"] == "local"
    assert decision["decided_by"]["subject"] == getpass.getuser()


def test_decide_an_ambiguous_session(shared):
    """Two gates of it are pending: exit 1, and nothing is sent."""
    session = f"two-{records.uuid7()}"
    ids = [pending(shared, session_id=session, gate={"gate_id": g}).id for g in ("a", "b")]
    done = shared.run("approve", session, rc=1)
    assert session in one_line(done)
    shared.run("approve", ids[0])
    shared.wait_state(ids[0], "RESUMED")
    shared.run("approve", session)
    shared.wait_state(ids[1], "RESUMED")


def test_decide_what_is_settled_or_unknown(shared):
    """Exit 1 and says so; --early sends it all the same."""
    sent = pending(shared)
    shared.run("approve", sent.id)
    shared.wait_state(sent.id, "RESUMED")
    assert sent.id in one_line(shared.run("reject", sent.id, rc=1))
    decision = shared.run("reject", sent.id, "--early").out.strip()
    shared.wait_decision(decision, "refused", "already_decided")
    unknown = records.uuid7()
    assert unknown in one_line(shared.run("approve", unknown, rc=1))
    decision = shared.run("approve", unknown, "--early").out.strip()
    shared.wait_decision(decision, "waiting")


def test_decide_with_edits(make_world):
    """--edit takes JSON, else a string."""
    world = make_world(settings={"decisions.allow_edits": "true"})
    world.start_worker()
    sent = pending(world)
    edits = ["d=2.5", "l=3", "s=plain words", 'q="3"', "n=null", "b=false", 'a=["x","y"]', "e="]
    world.run("approve", sent.id, *[part for each in edits for part in ("--edit", each)])
    config = world.wait_resume(sent.id).datum["edits"]["config"]
    wanted = {
        "d": 2.5,
        "l": 3,
        "s": "plain words",
        "q": "3",
        "n": None,
        "b": False,
        "a": ["x", "y"],
    }
    assert config == {**wanted, "e": ""}
    assert isinstance(config["d"], float) and isinstance(config["l"], int)


def full_disk():
    """A file that takes nothing."""
    return os.open("/dev/full", os.O_WRONLY)


def closed_pipe():
    """The end to write to of a pipe that nobody reads."""
    reader, writer = os.pipe()
    os.close(reader)
    return writer


def run_into(output, world, *argv, data=""):
    """Standard output is that file, which is closed then: the exit code, and what was said."""
    with open(output, "wb") as stdout:
        done = subprocess.run(
            world.argv(*argv),
            input=data,
            stdout=stdout,
            stderr=subprocess.PIPE,
            encoding="utf-8",
            env=worlds.clean_environment(),
            timeout=TIMEOUT,
            check=False,
        )
    return done.returncode, done.stderr


@pytest.mark.parametrize("form", [[], ["--json"]], ids=["text", "json"])
@pytest.mark.parametrize("output", [full_disk, closed_pipe])
def test_sent_and_not_said(shared, form, output):
    """What Kafka has is not to be sent again for want of its id: exit 1, and the id."""
    before = len(shared.read("suspends"))
    data = "".join(json.dumps(json_suspend()) + "\n" for _ in range(2))
    code, told = run_into(output(), shared, "suspend", *form, data=data)
    ids = re.findall(r"checkpoint (\S+) WAS sent", told)
    assert code == 1 and len(ids) == 2 == len(told.splitlines()), told
    assert len(sent_suspends(shared, ids)) == 2 == len(shared.read("suspends")) - before
    shared.wait_state(ids[0], "PENDING")
    code, told = run_into(output(), shared, "approve", ids[0], *form)
    (decision_id,) = re.findall(r"decision (\S+) WAS sent", told)
    assert code == 1 and len(told.splitlines()) == 1, told
    shared.wait_decision(decision_id, "counted")


# ---- listings ------------------------------------------------------------------------------


def test_pending(make_world):
    """What waits, and nothing else; one object a line."""
    world = make_world()
    assert world.run("pending", "--json").out == ""
    world.start_worker()
    sent = pending(world, gate={"required_approvals": 2})
    done = pending(world)
    world.run("cancel", done.id)
    world.wait_state(done.id, "RESUMED")
    (row,) = world.run("pending", "--json").json
    gate = sent.datum["gate"]
    wanted = {
        "checkpoint_id": sent.id,
        "session_id": sent.datum["session_id"],
        "gate_id": gate["gate_id"],
        "tenant": "default",
        "agent": sent.datum["agent"],
        "title": gate["title"],
        "requested_by": gate["requested_by"],
        "required_approvals": 2,
    }
    assert {name: row.get(name) for name in wanted} == wanted
    out = world.run("pending").out
    assert gate["title"] in out and sent.datum["session_id"] in out and done.id not in out


def test_show_and_history(shared):
    """The row, the decisions with outcome and reason, and the state only when asked."""
    sent = pending(shared)
    wrong = shared.decide(sent, checkpoint_digest=bytes(32), reason="looks fine")
    right = shared.decide(sent, partition=wrong.ack.partition)
    shared.wait_state(sent.id, "RESUMED")
    (row,) = shared.run("show", sent.id, "--json").json
    assert row["checkpoint_id"] == sent.id and row["state"] == "RESUMED"
    assert row["session_id"] == sent.datum["session_id"]
    assert "history" not in row and "config" not in row
    (whole,) = shared.run("show", sent.id, "--state", "--json").json
    text = json.dumps(whole, ensure_ascii=False)
    for entry in sent.datum["history"]:
        assert entry["content"] in text
    rows = shared.run("history", sent.id, "--json").json
    outcomes = {row["decision_id"]: row for row in rows if row.get("decision_id")}
    assert outcomes[right.decision_id]["outcome"] == "counted"
    assert outcomes[wrong.decision_id]["outcome"] == "refused"
    assert outcomes[wrong.decision_id]["outcome_reason"].startswith("wrong_digest")
    for decision in (wrong, right):
        given, shown = decision.datum, outcomes[decision.decision_id]
        for name in ("decision", "decided_by", "decided_at", "reason", "source"):
            assert shown[name] == given[name], name
        assert shown["checkpoint_digest"] == given["checkpoint_digest"].decode("latin-1")
        assert shown["has_edits"] is False and "edits" not in shown
        assert shown in row["decisions"]
    shown = shared.run("history", sent.id).out
    assert "wrong_digest" in shown and "alice" in shown


def test_resumes_json(shared):
    """Field names as in the records; unions plain, times integers, bytes a code point each."""
    datum = records.make_rich_suspend()
    sent = shared.send_suspend(datum)
    shared.decide(sent)
    record = shared.wait_resume(sent.id)
    rows = [row for row in shared.run("resumes", "--json").json if row["checkpoint_id"] == sent.id]
    (row,) = rows
    assert set(row) >= set(record.datum)
    assert row["suspended_at"] == datum["suspended_at"]
    assert row["salt"] == datum["salt"].decode("latin-1")
    assert row["state"]["body"] == datum["state"]["body"].decode("latin-1")
    assert row["config"]["nan"] == "NaN" and row["config"]["infinity"] == "-Infinity"
    assert row["config"]["null"] is None and row["config"]["long"] == 2**63 - 1
    assert [entry["content"] for entry in row["history"]] == [
        entry["content"] for entry in datum["history"]
    ]


def test_resumes_are_read_committed(shared):
    """What was aborted is not shown."""
    ghost = worlds.Sent(records.make_suspend(session_id="ghost"), b"", None)
    fabricate(shared, committed=[], aborted=[make_resume(ghost, [])], group="ghost")
    assert "ghost" not in {row["session_id"] for row in shared.run("resumes", "--json").json}


@pytest.mark.parametrize("argv", [["resumes", "--follow", "--json"], ["watch", "--json"]])
def test_following(shared, argv):
    """It goes on until it is told to stop. (Where `watch` begins is when it is ready.)"""
    process = shared.start(*argv, log=f"{argv[0]}.log")
    ids = []

    def shown():
        sent = pending(shared)
        shared.decide(sent)
        shared.wait_state(sent.id, "RESUMED")
        ids.append(sent.id)
        return any(each in process.log for each in ids)

    wait_for(shown, lambda: f"one of {ids} in {process.log}", tick=0.2)
    assert process.alive
    process.kill()
    for line in process.log.split("\n")[:-1]:
        json.loads(line)


# ---- worker --------------------------------------------------------------------------------


def test_drain(make_world):
    """Ends with 0 when all that stood in the topics is done, and when there is nothing."""
    world = make_world(partitions=3)
    world.run("worker", "--drain")
    sent = [world.suspend() for _ in range(30)]
    for each in sent[:20]:
        world.decide(each)
    world.run("worker", "--drain")
    assert len(world.read("resumes")) == 20
    states = [world.state(each.id) for each in sent]
    assert states == ["RESUMED"] * 20 + ["PENDING"] * 10
    world.run("worker", "--drain")
    assert len(world.read("resumes")) == 20


def test_sigterm_loses_nothing(make_world):
    """Exit 0 within 10 s, in the middle of work; the next worker goes on."""
    world = make_world()
    pairs = [world.suspend() for _ in range(100)]
    for each in pairs:
        world.decide(each)
    for _ in range(2):
        before = len(world.reader("resumes").catch_up())
        worker = world.start_worker()
        world.wait(lambda w=worker: w.log, "the worker's first line")
        if before < len(pairs):
            world.wait_records("resumes", lambda r, n=before: len(r) > n, "the next resume")
        worker.stop()
    world.start_worker()
    world.settle()
    assert len(judge.check(world).resumes) == 100


def test_worker_and_its_own_program(make_world):
    """fermata-worker is the same as `fermata worker`."""
    world = make_world()
    worker = world.start_worker(program="fermata-worker")
    pending(world)
    worker.stop()


def test_another_group_on_the_same_database(make_world):
    """Two groups would not fence each other: exit 2."""
    world = make_world()
    world.run("worker", "--drain")
    done = world.run("worker", "--drain", "-X", "worker.group=another", rc=2)
    assert "another" in done.err


def test_json_log(make_world):
    """log.format = json: one object a line."""
    world = make_world(settings={"log.format": "json"})
    worker = world.start_worker()
    pending(world)
    worker.stop()
    lines = worker.log.splitlines()
    assert lines
    for line in lines:
        assert isinstance(json.loads(line), dict)


def test_metrics(shared):
    """Prometheus text; every sample is a name, labels and a number."""
    sample = re.compile(r"[a-zA-Z_:][\w:]*(\{[^}]*\})? [-+0-9.eEInfNa]+( \d+)?")
    lines = [line for line in shared.workers[0].metrics().splitlines() if line]
    assert any(line.startswith("# TYPE fermata_") for line in lines)
    for line in lines:
        assert line.startswith("#") or sample.fullmatch(line), line
