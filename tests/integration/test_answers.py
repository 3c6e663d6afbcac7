"""Exit codes and words: a rehearsal answers as the deed does, what is held by somebody is to be tried again, and nothing that
was asked for in vain is answered with silence."""

import contextlib
import threading

import pytest

from acts import one_line, pending, resume
from test_in_doubt import doubted
from records import by


# ---- rehearsals ----------------------------------------------------------------------------


@pytest.mark.parametrize("options", [(), ("--dry-run",)], ids=["deed", "rehearsal"])
def test_a_rebuild_without_its_topics(make_world, options):
    """A missing topic is configuration, with a dry run and without; so is one of ours that is called one of resumes."""
    world = make_world()
    for key in ("topics.suspends", "topics.approvals", "topics.resumes"):
        line = one_line(world.run("rebuild", *options, "-X", f"{key}=no-such-topic", rc=2))
        assert "topic no-such-topic does not exist: run `fermata topics create`" in line, line
    line = one_line(world.run("rebuild", *options, "--resumes", "no-such-topic", rc=2))
    assert "topic no-such-topic does not exist" in line, line
    for kind in ("suspends", "approvals", "gates", "dead_letters"):
        line = one_line(world.run("rebuild", *options, "--resumes", world.topics[kind], rc=2))
        assert f"that is topics.{kind} of the configuration, no topic of resumes" in line, line
    assert not world.sql("SELECT 1 FROM fermata.resumes_topic")


@pytest.mark.parametrize("options", [(), ("--dry-run",)], ids=["deed", "rehearsal"])
def test_letters_to_a_topic_that_is_missing(make_world, options):
    """Nothing is sent there, and a dry run says so as well."""
    world = make_world()
    world.send("suspends", b"no record", b"key")
    world.run("worker", "--drain")
    line = one_line(world.run("dead-letters", "redrive", "--all", *options, "--to", "no-such-topic", rc=2))
    assert "topic no-such-topic does not exist" in line, line
    assert "1 would be sent" in world.run("dead-letters", "redrive", "--all", "--dry-run").out


# ---- what somebody holds -------------------------------------------------------------------


@contextlib.contextmanager
def held(world):
    """Somebody has the rows of all checkpoints."""
    world.disconnect()
    connection = world.postgres.connect(world.name)
    connection.autocommit = False
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1 FROM fermata.checkpoint FOR UPDATE")
            yield
    finally:
        connection.rollback()
        connection.close()


def all_at_once(world, commands):
    """Runs them side by side; each waits for 40 s, or for twice that when it stands in a queue."""
    done = [None] * len(commands)

    def run(index):
        done[index] = world.run(*commands[index], rc=None, timeout=150)

    threads = [threading.Thread(target=run, args=(index,)) for index in range(len(commands))]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    return done


@pytest.mark.slow
def test_a_lock_is_held(make_world):
    """The database can be reached: it is to be tried again."""
    world = make_world(partitions=1)
    (doubt,) = doubted(world, 1)
    session = doubt.datum["session_id"]
    with held(world):
        answers = all_at_once(
            world,
            [
                ("erase", session, "--yes"),
                ("in-doubt", "resume", doubt.id),
                ("in-doubt", "drop", doubt.id, "--reason", "it ran", "--yes"),
            ],
        )
    for done in answers:
        assert done.rc == 75, done
        assert "a lock was not to be had in time, for somebody else has it" in one_line(done), done
    assert world.state(doubt.id) == "IN_DOUBT"
    world.run("erase", session, "--yes")


# ---- nothing to say ------------------------------------------------------------------------


def test_nothing_to_read(fermata):
    """A replay of nothing, a rebuild of nothing: said, without headings over nothing."""
    fermata.run("worker", "--drain")
    for options in ((), ("--dry-run",)):
        out = fermata.run("replay", "--topic", fermata.topics["resumes"], "--from", "1000000", *options).out
        assert "nothing was read" in out, out


def test_headings_stand_over_something(make_world):
    """Empty topics have no verdicts, decisions or checkpoints to list."""
    world = make_world()
    out = world.run("rebuild", "--dry-run").out
    assert "suspends             0 records" in out
    for title in ("resumes:", "decisions:", "checkpoints:"):
        assert title not in out.splitlines(), out
    assert "checkpoints:" not in world.run("rebuild").out.splitlines()


@pytest.mark.parametrize(
    "command",
    [
        ("erase",),
        ("show",),
        ("history",),
        ("approve",),
        ("reject",),
        ("cancel",),
        ("quarantine", "show"),
        ("quarantine", "retry"),
        ("in-doubt", "resume"),
        ("dead-letters", "show"),
        ("schema", "check"),
    ],
    ids="-".join,
)
def test_an_empty_argument(fermata, command):
    """A variable of a script was empty: nothing is looked for under no name."""
    line = one_line(fermata.run(*command, "", rc=2))
    assert f"argument 1 of `fermata {' '.join(command)}`" in line and "is empty" in line, line


# ---- what an operator settled --------------------------------------------------------------


def test_a_replay_of_what_was_erased(make_world):
    """A decision that came after it would not be counted today either, and a replay does not say so."""
    world = make_world()
    world.start_worker()
    sent, good = pending(world), pending(world)
    refused = world.decide(good, checkpoint_digest=bytes(32), decided_by=by("eve"))
    world.wait_decision(refused.decision_id, "refused", "wrong_digest")
    resume(world, good, "APPROVED", world.decide(good))
    world.run("erase", sent.datum["session_id"], "--yes")
    late = world.decide(sent)
    world.wait_decision(late.decision_id, "refused", "already_decided")
    world.settle()
    for options in (("--dry-run",), ()):
        out = world.run("replay", "--topic", world.topics["approvals"], "--from", "0", *options).out
        assert "it would be" not in out and "same                   3" in out, out
    world.sql("UPDATE fermata.decision SET outcome = 'counted', reason = NULL WHERE decision_id = %s", refused.decision_id)
    out = world.run("replay", "--topic", world.topics["approvals"], "--from", "0", "--dry-run").out
    assert "it would be refused, wrong_digest today" in out, out  # what is different is told
