"""What goes wrong around a worker by somebody's hand: it holds what it can, and says in words what to do.

A second group on the database and wrong brokers are in test_commands and test_doctor, records that are kept for too short
a time in test_waits and test_doctor, a database before `fermata migrate` in test_health.
"""

import contextlib
import re
import threading

import pytest
from confluent_kafka import KafkaException, Producer

import judge
import topics
from acts import pending
from test_health import page
from waiting import wait_for


def wait_ready(world, worker):
    """Until it can do its work."""
    world.wait(lambda: (page(worker, "/ready") or (0,))[0] == 200, "the worker to be ready", 60)


def wait_not_ready(worker, *words, meanwhile=None):
    """Until readiness says so; other workers may have ended."""
    wait_for(
        lambda: all(word in (page(worker, "/ready") or (0, ""))[1] for word in words),
        lambda: f"readiness to say {words}, not {page(worker, '/ready')}",
        60,
        meanwhile=meanwhile,
    )
    assert page(worker, "/ready")[0] == 503


# ---- PostgreSQL ----------------------------------------------------------------------------


def read_only(world, on):
    """As a standby would be, for every connection that comes from now on; those that are there end."""
    world.postgres.execute(
        f'ALTER DATABASE "{world.name}" SET default_transaction_read_only = {"on" if on else "off"}'
    )
    world.disconnect()
    world.postgres.execute(
        f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{world.name}'"
    )


def test_postgres_is_read_only(make_world):
    """In the middle of work and at the start: it waits, says what to do, and goes on by itself."""
    world = make_world()
    worker = world.start_worker()
    first = pending(world)
    wait_ready(world, worker)
    read_only(world, True)
    sent = world.suspend()
    world.decide(sent)
    wait_not_ready(worker, "intake waits for PostgreSQL: PostgreSQL is read-only", "postgres.dsn")
    assert "PostgreSQL is read-only" in worker.log
    late = world.start_worker()
    wait_not_ready(late, "the start waits", "PostgreSQL is read-only")
    for command in (("pending",), ("approve", first.id), ("erase", "nobody")):
        said = world.run(*command, rc=69).err
        assert "PostgreSQL is read-only" in said and "postgres.dsn" in said, said
    done = world.run("doctor", rc=1)
    assert "PostgreSQL is read-only" in done.out and "mend: point postgres.dsn to the primary" in done.out
    read_only(world, False)
    wait_ready(world, worker)
    wait_ready(world, late)
    world.decide(first)
    world.settle(60)
    assert len(judge.check(world).resumes) == 2


def test_a_newer_schema(make_world):
    """The database was brought up to date by a newer program: this one ends, and says so."""
    world = make_world()
    world.run("worker", "--drain")
    world.sql("INSERT INTO fermata.schema_version (version, name) SELECT max(version) + 1, 'later'"
        " FROM fermata.schema_version")
    for command in (("worker", "--drain"), ("pending",), ("migrate",)):
        said = world.run(*command, rc=2).err
        assert "newer fermata" in said, said
    assert "newer fermata" in world.run("doctor", rc=1).out


# ---- a second installation -----------------------------------------------------------------


def second_installation(first, make_world):
    """Another database, the same cluster, group and topics: a copied fermata.conf."""
    return make_world(
        settings={"worker.group": first.name, **{f"topics.{kind}": name for kind, name in first.topics.items()}}
    )


def test_a_second_installation_waits(make_world):
    """It does not join the group of the first one, and says why; it goes on when that has gone."""
    first = make_world()
    worker = first.start_worker()
    wait_ready(first, worker)
    second = second_installation(first, make_world)
    late = second.start_worker()
    wait_not_ready(late, "the start waits", "workers on another database are in this group")
    wait_for(lambda: "is that of another installation too" in late.log, "the log to say so")
    done = second.run("doctor", rc=1)
    assert "work on another database" in done.out and "mend: give each installation a worker.group" in done.out
    sent = first.suspend()
    first.decide(sent)
    first.wait_resume(sent.id)
    assert page(worker, "/ready")[0] == 200
    worker.stop()
    wait_ready(second, late)


@pytest.mark.slow
def test_two_installations_that_met(make_world):
    """Where both are in the group each says so, for as long as it lasts; nothing is published twice."""
    first = make_world()
    worker = first.start_worker()
    wait_ready(first, worker)
    second = second_installation(first, make_world)
    worker.pause()
    late = second.start_worker()
    wait_ready(second, late)  # once the first one's session is over
    worker.go_on()
    wait_not_ready(worker, "the group is shared with another installation", "worker.group")
    wait_not_ready(late, "the group is shared with another installation", "worker.group")
    assert "fermata_rival_members 1" in worker.metrics()
    sent = [first.suspend() for _ in range(10)]
    for each in sent:
        first.decide(each)
    late.stop()
    wait_ready(first, worker)
    assert "fermata_rival_members 0" in worker.metrics()
    first.settle(60)
    assert len(judge.check(first).resumes) == 10


@contextlib.contextmanager
def somebody_else(world, partition):
    """A producer with a relay's transactional id takes it over, again and again."""
    over = threading.Event()

    def run():
        while not over.wait(0.05):
            producer = Producer(
                {
                    "bootstrap.servers": world.kafka.bootstrap,
                    "transactional.id": f"{world.name}.{world.topics['resumes']}.{partition}",
                }
            )
            with contextlib.suppress(KafkaException):
                producer.init_transactions(10)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


@pytest.mark.slow
def test_somebody_else_fences_a_relay(make_world):
    """It is told from a relay of the group, said, and not fought; all is published when it has gone."""
    world = make_world(partitions=1)
    worker = world.start_worker()
    wait_ready(world, worker)
    with somebody_else(world, 0):
        wait_not_ready(
            worker,
            "1 shards are taken away",
            "second installation with this worker.group",
            meanwhile=lambda: world.decide(world.suspend()),
        )
        assert "fermata_relays_fenced 1" in worker.metrics()
        wait_for(lambda: "has fenced it" in worker.log, "the log to say so")
        assert f"{world.name}.{world.topics['resumes']}.0" in worker.log
    world.settle(60)
    wait_ready(world, worker)
    assert "fermata_relays_fenced 0" in worker.metrics()
    assert len(judge.check(world).resumes) == len(world.suspends)


# ---- topics --------------------------------------------------------------------------------


@pytest.mark.parametrize("grown", [False, True], ids=["short", "grown"])
def test_a_topic_that_was_made_anew(make_world, grown):
    """Its partition is left alone, shorter than before or longer; the other goes on."""
    world = make_world()
    worker = world.start_worker()
    for number in range(6):
        pending(world, partition=number % 2)
    worker.stop()
    name = world.topics["approvals"]
    world.decide(world.suspends[0], partition=0)
    world.start_worker()
    world.wait_resume(world.suspends[0].id)
    world.settle()
    world.workers[-1].stop()
    topics.delete_topics(world.kafka.bootstrap, [name])
    topics.create_topics(world.kafka.bootstrap, {name: 2}, {name: {"message.timestamp.type": "LogAppendTime"}})
    world.sender.prime(name)
    if grown:
        for _ in range(4):
            world.decide(world.suspends[1], partition=0)
    worker = world.start_worker()
    wait_for(lambda: "ALARM" in worker.log and "made anew" in worker.log, lambda: worker.log[-2000:])
    alarm = next(line for line in worker.log.splitlines() if "ALARM" in line)
    assert f"{name} [0]" in alarm and "fermata rebuild" in alarm, alarm
    decided = world.decide(world.suspends[2], partition=1)
    world.wait_resume(world.suspends[2].id)
    assert decided.decision_id
    assert world.state(world.suspends[1].id) == "PENDING"


def test_offsets_that_are_gone(make_world):
    """Records were deleted that nobody had read: an alarm, not a jump."""
    world = make_world()
    worker = world.start_worker()
    pending(world, partition=0)
    worker.stop()
    for _ in range(4):
        world.suspend(partition=0)
    name = world.topics["suspends"]
    ends = topics.high_watermarks(world.kafka.bootstrap, [name])
    topics.delete_records(world.kafka.bootstrap, {(name, 0): ends[(name, 0)] - 1})
    worker = world.start_worker()
    wait_for(lambda: "ALARM" in worker.log, lambda: f"an alarm: {worker.log[-2000:]}")
    alarm = next(line for line in worker.log.splitlines() if "ALARM" in line)
    assert f"{name} [0]" in alarm and "from offset 1 to 3 are gone, and were never taken in" in alarm and "fermata rebuild" in alarm, alarm
    pending(world, partition=1)
    wait_not_ready(worker, "partitions that are left alone", "1", "docs/recovery.md")
    assert "fermata_intake_alarmed_partitions 1" in worker.metrics()
    worker.stop()
    said = world.run("worker", "--drain", rc=75).err
    assert "a partition is left alone" in said and "drained: everything" not in said, said
    world.sql("DELETE FROM fermata.kafka_offset WHERE topic = %s AND partition = 0", name)  # docs/recovery.md
    world.run("worker", "--drain")
    assert len(world.sql("SELECT 1 FROM fermata.checkpoint")) == 3


def test_a_topic_is_made_anew_under_a_worker(make_world):
    """Nothing of the new one is read before it is compared with the old one, so nothing of it is lost without a word."""
    world = make_world(partitions=1)
    worker = world.start_worker()
    old = [pending(world) for _ in range(4)]
    wait_ready(world, worker)
    name = world.topics["suspends"]
    topics.delete_topics(world.kafka.bootstrap, [name])
    wait_for(
        lambda: re.search(r"warn intake: .*fermata topics create", worker.log),
        lambda: f"it to be missed: {worker.log[-2000:]}",
    )
    topics.create_topics(world.kafka.bootstrap, {name: 1}, {name: {"message.timestamp.type": "LogAppendTime"}})
    world.sender.prime(name)
    for _ in range(10):
        world.suspend()
    wait_for(lambda: "ALARM" in worker.log and "made anew" in worker.log, lambda: worker.log[-2000:])
    wait_not_ready(worker, "partitions that are left alone")
    assert len(world.sql("SELECT 1 FROM fermata.checkpoint")) == len(old)


def test_partitions_were_added(make_world):
    """To the resumes topic: the worker ends by itself, and does not start again, before anything goes astray."""
    world = make_world(partitions=2)
    worker = world.start_worker()
    sent = pending(world)
    world.decide(sent)
    world.wait_resume(sent.id)
    worker.stop()
    topics.add_partitions(world.kafka.bootstrap, world.topics["resumes"], 3)
    said = world.run("worker", "--drain", rc=2).err
    assert world.topics["resumes"] in said and "has 3 partitions and had 2" in said and "new topic" in said, said
    assert "route to a new topic" in world.run("doctor", rc=1).out
