"""The database is lost: `fermata rebuild` brings it back out of the topics, and so does a worker."""

import json
import signal
import time

import pytest

import judge
import records
import world as worlds
from cutting import delete_records
from rebuilding import SETTINGS, differences, empty_database, everything, rebuild, tables

MINUTE_MS = 60_000


def same(before, after):
    """Nothing differs, or what does is said."""
    found = differences(before, after)
    assert not found, "\n".join(found)


def wait_same(world, before):
    """A worker that has taken everything in may not have read all of its ledgers yet."""

    def differ():
        return differences(before, tables(world))

    world.wait(lambda: not differ(), lambda: "\n".join(differ()))


def letters(world):
    """The places of all dead letters, sorted."""
    return sorted(map(worlds.letter_place, world.read("dead_letters")))


# ---- everything comes back -----------------------------------------------------------------


def test_everything_comes_back(make_world):
    """By rebuild and by a plain worker: the same rows, no resume and no letter a second time."""
    world = make_world(partitions=3, settings=SETTINGS)
    worker = world.start_worker()
    bad, dropped = everything(world)
    worker.stop()
    before, known = tables(world), letters(world)
    published = len(world.read("resumes"))
    assert len(known) == len(bad)

    empty_database(world)
    done, counts, _ = rebuild(world)
    same(before, tables(world))
    assert len(world.read("resumes")) == published
    assert letters(world) == known
    for name in ("PENDING", "RESUMED", "SUPERSEDED", "UNCLAIMED"):
        found = sum(row["state"] == name for row in before["checkpoint"].values())
        assert found > 0 and counts["state", name] == found, (name, done)
    for name in ("counted", "refused", "waiting"):
        found = sum(row["outcome"] == name for row in before["decision"].values())
        assert found > 0 and counts["outcome", name] == found, (name, done)
    assert counts["letters", "found"] == len(bad) and counts["letters", "sent"] == 0

    worker = world.start_worker()  # and all goes on from there
    fresh = world.suspend()
    world.decide(fresh)
    world.wait_resume(fresh.id)
    world.settle()
    judge.check(
        world,
        dropped={dropped.id},
        policy=judge.Policy(allow_edits=True),
        bad=frozenset(ack.place for ack in bad),
    )
    worker.stop()
    before = tables(world)
    assert len(world.read("resumes")) == published + 1

    empty_database(world)
    worker = world.start_worker()
    world.settle()
    wait_same(world, before)
    assert len(world.read("resumes")) == published + 1
    worker.stop()


def test_nothing_at_all(fermata):
    """Topics without a record, a new database: that is rebuilt in no time."""
    done, counts, others = rebuild(fermata)
    assert set(counts.values()) == {0} and others == [], done
    fermata.start_worker()
    fresh = fermata.suspend()
    fermata.decide(fresh)
    fermata.wait_resume(fresh.id)


def test_what_it_says(fermata):
    """For people: a line with how far it is, and a table; nothing but that."""
    worker = fermata.start_worker()
    sent = fermata.suspend()
    fermata.decide(sent)
    fermata.suspend()
    fermata.wait_resume(sent.id)
    fermata.settle()
    worker.stop()
    empty_database(fermata)
    done = fermata.run("rebuild")
    assert "resumes " in done.err and "suspends 2" in done.err and "approvals 1" in done.err, done
    lines = done.out.splitlines()
    assert lines[0].startswith("rebuilt out of "), done
    assert "RESUMED" in done.out and "PENDING" in done.out and "counted" in done.out, done
    again = fermata.run("rebuild", rc=1)
    assert "not empty: 2 checkpoints, 1 decisions" in again.err, again


def test_a_letter_that_was_never_sent(fermata):
    """The worker had not got so far when the database was lost: the letter is sent now."""
    ack = fermata.send("suspends", b"bad", b"key")
    _, counts, _ = rebuild(fermata)
    assert (counts["letters", "found"], counts["letters", "sent"]) == (0, 1)
    fermata.wait_letter(ack)
    empty_database(fermata)
    _, counts, _ = rebuild(fermata)
    assert (counts["letters", "found"], counts["letters", "sent"]) == (1, 0)
    assert len(letters(fermata)) == 1


def test_what_was_decided_and_not_published(fermata):
    """Decided when no worker ran: it comes back DECIDED, and the next worker publishes it."""
    sent = fermata.suspend()
    fermata.decide(sent)
    _, counts, _ = rebuild(fermata)
    assert counts["state", "DECIDED"] == 1 and fermata.read("resumes") == []
    fermata.start_worker()
    fermata.wait_resume(sent.id)


def test_no_resumes_at_all(fermata):
    """Nothing was published, or its topic was made anew: that cannot be told apart, so it is said."""
    fermata.decide(fermata.suspend())
    done = fermata.run("rebuild")
    assert "DECIDED" in done.out and "No resumes topic holds a record" in done.out, done


def test_early_decisions_whose_time_is_over(make_world):
    """They end as the reaper ends them: refused, no_suspend."""
    world = make_world(settings={"worker.unclaimed_ttl": "1s"})
    early = world.decide()
    late = early.ack.timestamp / 1000 + 1.1
    world.wait(lambda: time.time() > late, "a second to be over")
    rebuild(world)
    assert world.decision(early.decision_id)[0] == "refused"
    assert world.decision(early.decision_id)[1].startswith("no_suspend")
    assert world.state(early.id) is None


# ---- not now -------------------------------------------------------------------------------


def test_while_a_worker_runs(fermata):
    """It is refused, and says who is there."""
    worker = fermata.start_worker()
    fermata.wait(lambda: "the group gave this worker" in worker.log, "the worker to be in its groups")
    done = fermata.run("rebuild", rc=1)
    assert "stop its workers first" in done.err, done
    worker.stop()
    done = fermata.run("rebuild", rc=1)  # it has begun there: that is not empty any more
    assert "A worker goes on from there" in done.err, done
    empty_database(fermata)
    fermata.run("rebuild")


def test_without_the_servers(fermata):
    """69, in one line that names what is away."""
    fermata.write_config(kafka__bootstrap__servers=f"127.0.0.1:{worlds.free_port()}")
    assert "127.0.0.1" in fermata.run("rebuild", rc=69).err
    fermata.write_config(
        kafka__bootstrap__servers=fermata.kafka.bootstrap,
        postgres__dsn=f"host=127.0.0.1 port={worlds.free_port()} dbname=x user=x",
    )
    done = fermata.run("rebuild", rc=69)
    assert "PostgreSQL" in done.err and done.err.count("\n") == 1, done


# ---- interrupted ---------------------------------------------------------------------------


def a_crowd(world, count):
    """Many suspends, half of them approved, published by a worker."""
    sent = [world.suspend() for _ in range(count)]
    for each in sent[::2]:
        world.decide(each)
    worker = world.start_worker()
    world.settle(timeout=120)
    worker.stop()


@pytest.mark.slow
def test_interrupted_and_started_again(make_world):
    """kill -9 in the ledger, among suspends and among approvals; a plain worker goes on as well."""
    world = make_world(partitions=2)
    a_crowd(world, 4000)
    before, published = tables(world), len(world.read("resumes"))

    def killed_when(statement):
        process = world.start("rebuild", log="rebuild.log")
        world.wait(lambda: not process.alive or world.sql(statement)[0][0], f"{statement}")
        process.kill()
        return world.sql("SELECT count(*) FROM fermata.checkpoint")[0][0]

    empty_database(world)
    killed_when("SELECT count(*) > 0 FROM fermata.ledger_offset")
    killed_when("SELECT count(*) > 0 FROM fermata.kafka_offset")
    some = killed_when(
        f"SELECT sum(next) > 2000 FROM fermata.kafka_offset WHERE topic = '{world.topics['suspends']}'"
    )
    assert some > 0
    done, _, _ = rebuild(world)
    assert "it goes on from there" in done.err or '"went_on":true' in done.err, done
    same(before, tables(world))

    empty_database(world)
    killed_when("SELECT count(*) > 0 FROM fermata.kafka_offset")
    world.start_worker()
    world.settle(timeout=120)
    wait_same(world, before)
    assert len(world.read("resumes")) == published


@pytest.mark.slow
def test_asked_to_stop(make_world):
    """SIGTERM: 75, says that it can be started again, and it can."""
    world = make_world()
    a_crowd(world, 3000)
    before = tables(world)
    empty_database(world)
    process = world.start("rebuild", log="rebuild.log")
    process.ended_by_us = True
    world.wait(lambda: world.sql("SELECT count(*) > 0 FROM fermata.kafka_offset")[0][0], "a start")
    process._signal(signal.SIGTERM)
    assert process.wait(worlds.STOP_SECONDS) == 75, process.log
    assert "start `fermata rebuild` again" in process.log
    rebuild(world)
    same(before, tables(world))


# ---- what cannot be known ------------------------------------------------------------------


def test_the_beginnings_are_gone(make_world):
    """It says how far back the topics reach; what they still have comes back."""
    world = make_world(partitions=1)
    worker = world.start_worker()
    first, second, third = (world.suspend() for _ in range(3))
    for each in (first, second):
        world.decide(each)
        world.wait_resume(each.id)
    world.settle()
    worker.stop()
    published = len(world.read("resumes"))
    delete_records(world.kafka.bootstrap, world.topics["suspends"], {0: second.ack.offset})
    delete_records(world.kafka.bootstrap, world.topics["approvals"], {0: 1})
    empty_database(world)
    done, counts, others = rebuild(world)
    assert (counts["state", "RESUMED"], counts["state", "PENDING"]) == (2, 1), done
    places = {line["topic"]: line for line in others if line["what"] == "place"}
    place = places[world.topics["suspends"]]
    assert place["first_offset"] == second.ack.offset and place["waits"] is False
    assert place["first_at"] == second.ack.timestamp * 1000
    assert world.topics["approvals"] in places and world.topics["resumes"] not in places
    rows = dict(world.sql("SELECT checkpoint_id::text, filled FROM fermata.checkpoint"))
    assert rows == {first.id: False, second.id: True, third.id: True}
    world.start_worker()
    world.decide(third)
    world.wait_resume(third.id)
    assert len(world.read("resumes")) == published + 1


def test_resumes_that_are_gone(make_world):
    """The beginning of the ledger is gone: what was decided before is IN_DOUBT, the rest is not."""
    world = make_world(partitions=1)
    worker = world.start_worker()
    old, kept = world.suspend(), world.suspend()
    world.decide(old)
    world.wait_resume(old.id)
    world.decide(kept)
    place = world.wait_resume(kept.id)
    world.settle()
    worker.stop()
    delete_records(world.kafka.bootstrap, world.topics["resumes"], {0: place.offset})
    undecided = world.suspend()
    world.decide(undecided)
    empty_database(world)
    done = world.run("rebuild")
    assert (world.state(old.id), world.state(kept.id)) == ("IN_DOUBT", "RESUMED"), done
    assert world.state(undecided.id) == "DECIDED"
    assert "fermata in-doubt list" in done.out and world.topics["resumes"] in done.out, done
    assert world.sql("SELECT checkpoint_id::text FROM fermata.outbox") == [(undecided.id,)]
    world.start_worker()
    world.wait_resume(undecided.id)
    world.settle()
    assert world.state(old.id) == "IN_DOUBT"
    ids = [record.datum["checkpoint_id"] for record in world.read("resumes")]
    assert ids == [kept.id, undecided.id]


@pytest.mark.parametrize("how", ["rebuild", "worker"])
def test_decided_now_and_not_then(make_world, how):
    """What would be decided now and is not in a ledger that goes on for more than a minute."""
    world = make_world(partitions=1)
    for kind in ("suspends", "approvals"):
        worlds.topics.alter_topic(
            world.kafka.bootstrap, world.topics[kind], {"message.timestamp.type": "CreateTime"}
        )
    worker = world.start_worker()
    published = world.suspend()
    world.decide(published)
    world.wait_resume(published.id)
    world.settle()
    worker.stop()
    now = time.time_ns() // 1_000_000
    ids = {}
    for name, ago_ms in {"old": 10 * MINUTE_MS, "fresh": MINUTE_MS // 6}.items():
        datum = records.make_suspend()
        approval = records.make_approval(datum)
        key = datum["checkpoint_id"]
        world.sender.send_all(
            [
                (world.topics["suspends"], records.encode_suspend(datum), key, [], 0, now - ago_ms),
                (world.topics["approvals"], records.encode_approval(approval), key, [], 0, now - ago_ms),
            ]
        )
        ids[name] = key
    empty_database(world)
    if how == "rebuild":
        world.run("rebuild")
        assert world.state(ids["old"]) == "IN_DOUBT" and world.state(ids["fresh"]) == "DECIDED"
    world.start_worker()
    world.wait_resume(ids["fresh"])
    world.wait_state(ids["old"], "IN_DOUBT")
    world.settle()
    resumed = [record.datum["checkpoint_id"] for record in world.read("resumes")]
    assert resumed == [published.id, ids["fresh"]]


def test_a_topic_of_earlier_routes(make_world):
    """Resumes went elsewhere once: with --resumes that is known, and nothing is published again."""
    world = make_world(partitions=1)
    elsewhere = f"{world.name}.resumes-old"
    worlds.topics.create_topics(
        world.kafka.bootstrap,
        {elsewhere: 1},
        {elsewhere: {"message.timestamp.type": "LogAppendTime"}},
    )
    try:
        world.write_config(topics__resumes=elsewhere)
        worker = world.start_worker()
        sent = world.suspend()
        world.decide(sent)
        world.wait_state(sent.id, "RESUMED")
        worker.stop()
        world.write_config(topics__resumes=world.topics["resumes"])
        empty_database(world)
        world.run("rebuild", "--resumes", elsewhere)
        assert world.state(sent.id) == "RESUMED"
        worker = world.start_worker()
        fresh = world.suspend()
        world.decide(fresh)
        world.wait_resume(fresh.id)
        assert [r.datum["checkpoint_id"] for r in world.read("resumes")] == [fresh.id]
        worker.stop()
    finally:
        worlds.topics.delete_topics(world.kafka.bootstrap, [elsewhere])


def test_what_is_refused_changes_nothing(fermata):
    """Neither beside what is there nor with a topic that holds no resumes: the installation knows what it knew."""
    for kind in ("suspends", "approvals", "gates", "dead_letters"):
        said = fermata.run("rebuild", "--resumes", fermata.topics[kind], rc=2).err
        assert fermata.topics[kind] in said and f"topics.{kind}" in said, said
    fermata.run("worker", "--drain")
    known = fermata.sql("SELECT topic FROM fermata.resumes_topic")
    said = fermata.run("rebuild", "--resumes", "elsewhere", rc=1).err
    assert "is not empty" in said or "has" in said, said
    assert fermata.sql("SELECT topic FROM fermata.resumes_topic") == known


# ---- what would come back ------------------------------------------------------------------


def test_dry_run(make_world):
    """Counts what the topics hold, writes nothing, and needs no database."""
    world = make_world(partitions=2, settings=SETTINGS)
    worker = world.start_worker()
    bad, _ = everything(world)
    worker.stop()
    before = tables(world)
    states = [row["state"] for row in before["checkpoint"].values()]
    done, counts, others = rebuild(world, "--dry-run")
    assert "not empty" in done.err, done
    topics = {line["name"]: line for line in others if line["what"] == "topic"}
    assert topics["suspends"]["distinct"] == len(world.suspends) - 1  # one was sent twice
    assert topics["suspends"]["doubled"] == 1 and topics["suspends"]["conflicting"] == 1
    assert topics["suspends"]["unreadable"] == 2 and topics["approvals"]["unreadable"] == 1
    assert topics["approvals"]["doubled"] == 1 and topics["approvals"]["conflicting"] == 1
    found = sum(topics[name]["letters_found"] for name in ("suspends", "approvals"))
    assert found == len(bad) - 2  # those of conflicts are found by judging alone
    resumes = len(world.read("resumes"))
    assert topics["resumes"]["records"] == counts["checkpoints", "resumed"] == resumes
    assert counts["checkpoints", "superseded"] == states.count("SUPERSEDED")
    undecided = states.count("PENDING") - 2  # one has half of its approvals, one is held
    assert counts["checkpoints", "undecided"] == undecided
    assert counts["checkpoints", "judged"] == 3  # these two, and what was dropped
    assert counts["checkpoints", "early"] == 1
    same(before, tables(world))

    empty_database(world)
    assert rebuild(world, "--dry-run")[1] == counts
    assert world.sql("SELECT count(*) FROM fermata.checkpoint, fermata.installation") == [(0,)]
    world.write_config(postgres__dsn=f"host=127.0.0.1 port={worlds.free_port()} dbname=x user=x")
    done, again, _ = rebuild(world, "--dry-run")
    assert again == counts and "the database was not looked at" in done.err, done
    text = world.run("rebuild", "--dry-run").out
    assert "nothing was written" in text and "RESUMED" in text, text


def test_progress_for_programs(fermata):
    """With --json what is on stderr are objects too."""
    for _ in range(20):
        fermata.suspend()
    done = fermata.run("rebuild", "--json")
    lines = [json.loads(line) for line in done.err.splitlines()]
    assert lines and lines[-1]["suspends"] == {"read": 20, "of": 20}, done
    assert lines[-1]["went_on"] is False
