"""Quarantine: what cannot be opened waits with its decision, and the two ways out of it."""

import json
import subprocess

import psycopg2
import pytest

import records
from acts import SECOND, one_line, pending, refused, resume
from world import clean_environment

# ---- breaking and mending ------------------------------------------------------------------

COLUMNS = {"payload": "body", "checkpoint": "wrapped_key"}


def flip(world, checkpoint_id, table="payload"):
    """Turn one bit of what is sealed; the same again mends it."""
    column = COLUMNS[table]
    world.sql(
        f"UPDATE fermata.{table} SET {column} = set_byte({column}, length({column}) / 2,"
        f" get_byte({column}, length({column}) / 2) # 1) WHERE checkpoint_id = %s",
        checkpoint_id,
    )


def quarantined(world, table="payload", decision=None, **over):
    """A suspend that was broken and then decided; (it, its decision)."""
    sent = pending(world, **over)
    flip(world, sent.id, table)
    decided = world.decide(sent, **(decision or {}))
    world.wait_state(sent.id, "QUARANTINED")
    return sent, decided


def listed(world, *options):
    """{checkpoint_id: row} of `quarantine list`."""
    done = world.run("quarantine", "list", "--json", *options)
    return {row["checkpoint_id"]: row for row in done.json}


def resumes_of(world, *ids):
    """How many resumes there are of each, in a fresh read of the whole topic."""
    found = [r.datum["checkpoint_id"] for r in world.read("resumes")]
    return [found.count(each) for each in ids]


def deeds(world, checkpoint_id):
    """What operators did to a checkpoint, as `history` tells it."""
    happenings = world.run("history", checkpoint_id, "--json").json
    return [each for each in happenings if "what" in each]


# ---- seeing it -----------------------------------------------------------------------------


@pytest.mark.parametrize("table", ["payload", "checkpoint"])
def test_it_is_listed_with_its_reason_and_its_decision(shared, table):
    """In the gate event, the list, by itself; and what to do is said."""
    sent, decision = quarantined(shared, table, {"reason": "looks good"})
    gate = shared.wait_gate(sent.id, lambda g: g["state"] == "QUARANTINED", "is QUARANTINED")
    shared.wait_decision(decision.decision_id, "counted")
    row = listed(shared)[sent.id]
    assert row["verdict"] == "APPROVED" and row["state"] == "QUARANTINED"
    assert row["reason"] and row["reason"] == gate["reason"]
    assert row["session_id"] == sent.datum["session_id"]

    text = shared.run("quarantine", "list").out
    assert sent.id in text and row["reason"][:20] in text and "APPROVED" in text
    text = shared.run("quarantine", "show", sent.id).out
    assert row["reason"] in text and "looks good" in text
    assert f"fermata quarantine retry {sent.id}" in text
    assert f"fermata quarantine drop {sent.id}" in text
    (shown,) = shared.run("quarantine", "show", sent.datum["session_id"], "--json").json
    assert [each["decision_id"] for each in shown["decisions"]] == [decision.decision_id]
    assert shown["audit"] == []
    assert sent.datum["history"][0]["content"] not in text + json.dumps(shown)
    shared.run("quarantine", "drop", sent.id, "--reason", "seen", "--yes")


# ---- retry ---------------------------------------------------------------------------------


@pytest.mark.parametrize("table", ["payload", "checkpoint"])
def test_mended_it_is_resumed_once_with_its_decision(shared, table):
    """Still broken, it comes back with the reason; mended, it goes on as it was decided."""
    sent, decision = quarantined(shared, table, {"reason": "looks good"})
    before = listed(shared)[sent.id]
    (answer,) = shared.run("quarantine", "retry", sent.id, "--json", "--reason", "try").json
    assert answer["state"] == "DECIDED" and answer["verdict"] == "APPROVED"
    assert answer["reason"] == "looks good"
    shared.wait(
        lambda: listed(shared).get(sent.id, before)["version"] > before["version"] + 1,
        "it to come back",
    )
    assert listed(shared)[sent.id]["reason"] == before["reason"]
    assert resumes_of(shared, sent.id) == [0]

    flip(shared, sent.id, table)
    done = shared.run("quarantine", "retry", sent.datum["session_id"])
    assert sent.id in done.out and "DECIDED, APPROVED" in done.out
    resume(shared, sent, "APPROVED", decision)
    shared.settle()
    assert resumes_of(shared, sent.id) == [1]
    gate = shared.wait_gate(sent.id, lambda g: g["state"] == "RESUMED", "is RESUMED")
    assert gate["reason"] == "looks good"
    versions = [each["version"] for each in shared.gates(sent.id)]
    assert versions == sorted(set(versions)) and gate["version"] == versions[-1]

    first, second = deeds(shared, sent.id)
    assert first["what"] == second["what"] == "quarantine.retry"
    assert first["reason"] == "try" and second["reason"] is None
    assert before["reason"] in first["details"] and "@" in first["who"]
    text = shared.run("history", sent.id).out
    assert text.count("quarantine.retry") == 2 and text.index("looks good") < text.index("try")
    assert "is not quarantined: it is RESUMED" in one_line(
        shared.run("quarantine", "retry", sent.id, rc=1)
    )
    assert resumes_of(shared, sent.id) == [1]


def test_retry_while_no_worker_runs(fermata):
    """It stands in the outbox, and the next worker publishes it."""
    worker = fermata.start_worker()
    sent, decision = quarantined(fermata)
    worker.stop()
    flip(fermata, sent.id)
    fermata.run("quarantine", "retry", sent.id)
    assert fermata.state(sent.id) == "DECIDED"
    assert fermata.sql("SELECT 1 FROM fermata.outbox WHERE checkpoint_id = %s", sent.id)
    fermata.start_worker()
    resume(fermata, sent, "APPROVED", decision)
    fermata.settle()
    assert resumes_of(fermata, sent.id) == [1]


def test_all_that_a_filter_lets_through(fermata):
    """--dry-run changes nothing; what is not meant stays."""
    fermata.start_worker()
    mine = [quarantined(fermata, agent="mine")[0] for _ in range(3)]
    other = quarantined(fermata, agent="other")[0]
    for sent in [*mine, other]:
        flip(fermata, sent.id)
    everything = ["quarantine", "retry", "--all", "--agent", "mine"]
    text = fermata.run(*everything, "--dry-run").out
    assert [line.split()[0] for line in text.splitlines()] == [sent.id for sent in mine]
    rows = fermata.run(*everything, "--dry-run", "--json").json
    assert all(row["dry_run"] and row["state"] == "QUARANTINED" for row in rows)
    assert len(listed(fermata)) == 4 and len(listed(fermata, "--agent", "mine")) == 3
    assert not fermata.sql("SELECT 1 FROM fermata.audit")

    assert len(fermata.run(*everything, "--limit", "1").lines) == 1
    fermata.run(*everything)
    fermata.settle()
    assert resumes_of(fermata, *(sent.id for sent in mine), other.id) == [1, 1, 1, 0]
    assert list(listed(fermata)) == [other.id]
    assert "nothing is quarantined that" in one_line(fermata.run(*everything, rc=1))
    session = other.datum["session_id"]
    fermata.run("quarantine", "retry", "--all", "--session", session, "--tenant", "default")
    fermata.wait_resume(other.id)


def test_many_operators_at_once(fermata):
    """Each is retried by one of them, and resumed once."""
    fermata.start_worker()
    sent = [quarantined(fermata)[0] for _ in range(12)]
    for each in sent:
        flip(fermata, each.id)
    argv = fermata.argv("quarantine", "retry", "--all")
    running = [
        subprocess.Popen(
            argv,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            encoding="utf-8",
            env=clean_environment(),
        )
        for _ in range(4)
    ]
    lines = []
    for process in running:
        out, err = process.communicate(timeout=60)
        assert process.returncode in (0, 1), err
        lines += out.splitlines()
    assert sorted(line.split()[0] for line in lines) == sorted(each.id for each in sent)
    for each in sent:
        fermata.wait_resume(each.id)
    fermata.settle()
    assert resumes_of(fermata, *(each.id for each in sent)) == [1] * len(sent)
    assert fermata.sql("SELECT count(*) FROM fermata.audit") == [(len(sent),)]


def test_a_rejection_may_end_without_a_resume(make_world):
    """on_reject = drop: settled by the retry, as intake would have; an approval is published."""
    world = make_world()
    worker = world.start_worker()
    rejection = {"decision": "REJECT"}
    rejected = quarantined(world, agent="quiet", decision=rejection)[0]
    approved = quarantined(world, agent="quiet")[0]
    loud, loud_decision = quarantined(world, agent="loud", decision=rejection)
    worker.stop()
    world.write_config(routes__quiet__agent="quiet", routes__quiet__on_reject="drop")
    world.start_worker()
    for sent in (rejected, approved, loud):
        flip(world, sent.id)
    (answer,) = world.run("quarantine", "retry", rejected.id, "--json").json
    assert answer["state"] == "RESUMED" and answer["verdict"] == "REJECTED"
    world.run("quarantine", "retry", approved.id, loud.id)
    resume(world, loud, "REJECTED", loud_decision)
    world.wait_gate(rejected.id, lambda g: g["state"] == "RESUMED", "is RESUMED")
    world.wait_resume(approved.id)
    world.settle()
    assert resumes_of(world, rejected.id, approved.id, loud.id) == [0, 1, 1]


# ---- what is not decided -------------------------------------------------------------------


def set_aside(world, checkpoint_id):
    """Quarantine what is PENDING, as a program that opens it before its decision would."""
    world.sql(
        "UPDATE fermata.checkpoint SET state = 'QUARANTINED', reason = 'by hand',"
        " version = version + 1 WHERE checkpoint_id = %s AND state = 'PENDING'",
        checkpoint_id,
    )
    assert world.state(checkpoint_id) == "QUARANTINED"


def test_what_is_open_waits_again(shared):
    """PENDING, and a decision leads to its resume."""
    sent = pending(shared)
    set_aside(shared, sent.id)
    assert listed(shared)[sent.id]["verdict"] is None
    done = shared.run("quarantine", "retry", sent.id)
    assert "PENDING: it waits for a decision again" in done.out
    shared.wait_gate(sent.id, lambda g: g["state"] == "PENDING" and not g["reason"], "waits")
    resume(shared, sent, "APPROVED", shared.decide(sent))


def test_a_decision_in_quarantine_counts(shared):
    """The verdict is kept, and the retry goes on with it; so does the clock."""
    sent = pending(shared)
    late = pending(shared, gate={"expires_at": records.now_us() + 3 * SECOND})
    set_aside(shared, sent.id)
    set_aside(shared, late.id)
    decision = shared.decide(sent)
    shared.wait_decision(decision.decision_id, "counted")
    assert shared.state(sent.id) == "QUARANTINED"
    refused(shared, "already_decided", sent, decision="CANCEL")
    shared.run("quarantine", "retry", sent.id)
    resume(shared, sent, "APPROVED", decision)

    shared.wait(lambda: listed(shared)[late.id]["verdict"] == "EXPIRED", "it to expire", 40)
    assert shared.state(late.id) == "QUARANTINED"
    shared.run("quarantine", "retry", late.id)
    assert shared.wait_resume(late.id).datum["verdict"] == "EXPIRED"


# ---- what rows stand on --------------------------------------------------------------------


def take_common(world):
    """The rows of fermata.common, taken away by somebody who stops at nothing; gives what puts them back."""
    rows = world.sql("SELECT id, suspend_topic, resumes_topic, kek_id, schema_sha256 FROM fermata.common")
    world.sql(
        "ALTER TABLE fermata.common DISABLE TRIGGER common_is_kept; DELETE FROM fermata.common;"
        "ALTER TABLE fermata.common ENABLE TRIGGER common_is_kept"
    )

    def put_back():
        for row in rows:
            world.sql(
                "INSERT INTO fermata.common VALUES (%s, %s, %s, %s, %s) ON CONFLICT (id) DO NOTHING", *row
            )

    return put_back


def test_nobody_takes_away_what_rows_stand_on(shared):
    """Not by an ordinary statement."""
    pending(shared)
    for deed in ("DELETE FROM", "TRUNCATE", "UPDATE"):
        with pytest.raises(psycopg2.Error, match="append-only"):
            shared.sql(f"{deed} fermata.common" + (" SET kek_id = ''" if deed == "UPDATE" else ""))


def test_decided_and_what_it_stands_on_is_gone(fermata):
    """It is set aside with the reason, comes back so while nothing is mended, and goes on when it is."""
    fermata.start_worker()
    sent, other = pending(fermata), pending(fermata)
    put_back = take_common(fermata)
    decision = fermata.decide(sent)
    fermata.wait_state(sent.id, "QUARANTINED")
    fermata.wait_decision(decision.decision_id, "counted")
    row = listed(fermata)[sent.id]
    assert "fermata.common" in row["reason"] and row["verdict"] == "APPROVED"
    done = fermata.run("quarantine", "retry", sent.id, rc=1)
    assert "is not there" in done.out
    assert "fermata.common" in listed(fermata)[sent.id]["reason"]
    assert not fermata.sql("SELECT 1 FROM fermata.outbox UNION ALL SELECT 1 FROM fermata.gate_outbox")

    put_back()
    fermata.run("quarantine", "retry", sent.id)
    resume(fermata, sent, "APPROVED", decision)
    resume(fermata, other, "APPROVED", fermata.decide(other))


def test_a_later_suspend_brings_it_back(fermata):
    """Each batch says what it stands on, and so do those of before."""
    fermata.start_worker()
    sent = pending(fermata)
    take_common(fermata)
    later = pending(fermata)
    resume(fermata, sent, "APPROVED", fermata.decide(sent))
    resume(fermata, later, "APPROVED", fermata.decide(later))


def test_in_the_outbox_and_what_it_stands_on_is_gone(fermata):
    """The relay sets it aside, by itself, and what is published already is still marked."""
    fermata.start_worker()
    sent, published, fine = pending(fermata), pending(fermata), pending(fermata)
    resume(fermata, published, "APPROVED", fermata.decide(published))
    (worker,) = fermata.workers
    worker.stop()
    topic, partition = fermata.sql(
        "SELECT s.resumes_topic, c.resumes_partition FROM fermata.checkpoint c JOIN fermata.common s"
        " ON s.id = c.common WHERE checkpoint_id = %s",
        sent.id,
    )[0]
    put_back = take_common(fermata)
    fermata.sql(
        "UPDATE fermata.checkpoint SET state = 'DECIDED', verdict = 'APPROVED', published = false,"
        " decided_at = appended_at WHERE checkpoint_id IN (%s, %s)",
        sent.id,
        published.id,
    )
    fermata.sql(
        "INSERT INTO fermata.outbox (topic, partition, checkpoint_id) VALUES (%s, %s, %s)",
        *(topic, partition, sent.id),
    )
    fermata.sql("UPDATE fermata.ledger_offset SET next = 0")
    fermata.start_worker()
    fermata.wait_state(published.id, "RESUMED")
    fermata.wait_state(sent.id, "QUARANTINED")
    put_back()
    resume(fermata, fine, "APPROVED", fermata.decide(fine))
    assert resumes_of(fermata, published.id, sent.id) == [1, 0]


# ---- drop ----------------------------------------------------------------------------------


def test_dropped_it_is_never_published(fermata):
    """No resume, whatever happens later; its decision stays, later ones are refused."""
    worker = fermata.start_worker()
    sent, decision = quarantined(fermata)
    gate = fermata.wait_gate(sent.id, lambda g: g["state"] == "QUARANTINED", "is QUARANTINED")
    drop = ["quarantine", "drop", sent.id]
    assert "--reason" in one_line(fermata.run(*drop, "--yes", rc=2))
    assert "--yes" in one_line(fermata.run(*drop, "--reason", "done by hand", rc=2))
    assert fermata.state(sent.id) == "QUARANTINED"
    (answer,) = fermata.run(*drop, "--reason", "done by hand", "--yes", "--json").json
    assert answer["state"] == "RESUMED" and answer["verdict"] == "APPROVED"

    told = fermata.wait_gate(
        sent.id, lambda g: g["version"] > gate["version"], "tells of the drop"
    )
    assert told["state"] == "RESUMED" and "done by hand" in told["reason"]
    assert "nothing left to approve" in one_line(fermata.run("approve", sent.id, rc=1))
    fermata.run("approve", sent.id, "--early")
    refused(fermata, "already_decided", sent)
    refused(fermata, "already_decided", sent, decision="CANCEL")
    assert fermata.decision(decision.decision_id)[0] == "counted"
    (deed,) = deeds(fermata, sent.id)
    assert deed["what"] == "quarantine.drop" and deed["reason"] == "done by hand"
    assert "not quarantined" in one_line(fermata.run("quarantine", "retry", sent.id, rc=1))
    assert "not quarantined" in one_line(
        fermata.run(*drop, "--reason", "again", "--yes", rc=1)
    )

    flip(fermata, sent.id)  # mended too late
    worker.kill()
    fermata.start_worker()
    other = pending(fermata)
    fermata.decide(other)
    fermata.wait_resume(other.id)
    fermata.settle()
    assert resumes_of(fermata, sent.id, other.id) == [0, 1]
    assert not listed(fermata)


# ---- what is meant -------------------------------------------------------------------------


def test_a_session_stands_for_the_one_that_is_quarantined(shared):
    """Several: they are named. None, or nothing at all: that is said."""
    session = f"session-{records.uuid7()}"
    gates = [{"gate_id": "first"}, {"gate_id": "second"}, {"gate_id": "third"}]
    broken = [
        quarantined(shared, session_id=session, gate=gate)[0] for gate in gates[:2]
    ]
    fine = pending(shared, session_id=session, gate=gates[2])
    for command in (["retry", session], ["drop", session, "--reason", "x", "--yes"]):
        line = one_line(shared.run("quarantine", *command, rc=1))
        assert "2 gates that are quarantined" in line
        assert all(sent.id in line for sent in broken) and fine.id not in line
    shown = shared.run("quarantine", "show", session, "--json").json
    assert [row["checkpoint_id"] for row in shown] == [sent.id for sent in broken]
    shared.run("quarantine", "drop", broken[0].id, "--reason", "x", "--yes")
    flip(shared, broken[1].id)
    shared.run("quarantine", "retry", session)
    shared.wait_resume(broken[1].id)
    for command in ("retry", "show"):
        line = one_line(shared.run("quarantine", command, session, rc=1))
        assert f"session {session} has no gate that is quarantined" in line
        line = one_line(shared.run("quarantine", command, fine.id, rc=1))
        assert "it is PENDING" in line
        assert "never saved" in one_line(shared.run("quarantine", command, "SESSION-0", rc=1))


def test_several_at_once_and_what_is_wrong_with_them(shared):
    """One that is not quarantined is exit 1, the others are retried all the same."""
    sent = [quarantined(shared)[0] for _ in range(2)]
    for each in sent:
        flip(shared, each.id)
    done = shared.run("quarantine", "retry", sent[0].id, "SESSION-0", sent[1].id, rc=1)
    assert "SESSION-0" in one_line(done) and len(done.lines) == 2
    for each in sent:
        shared.wait_resume(each.id)
    for words in (["--all", sent[0].id], [], [sent[0].id, "--agent", "x"], ["--all", "--limit", "0"]):
        one_line(shared.run("quarantine", "retry", *words, rc=2))
