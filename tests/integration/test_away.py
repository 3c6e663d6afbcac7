"""Kafka or PostgreSQL goes away, at the start or in the middle of work, and comes back."""

import pytest

import judge
import topics
from waiting import wait_for


def work(world, count):
    """Suspends and their approvals, acknowledged by Kafka."""
    sent = [world.suspend() for _ in range(count)]
    for each in sent:
        world.decide(each)
    return sent


def finish(world, count):
    """All that was sent is resumed, once."""
    world.settle(timeout=90)
    assert len(judge.check(world).resumes) == count


def wait_log(world, worker, what):
    """Wait until the worker has written something since; it must stay alive meanwhile."""
    before = len(worker.log)
    world.wait(lambda: len(worker.log) > before, f"the worker to speak of {what}")


# ---- PostgreSQL ----------------------------------------------------------------------------


def test_postgres_away_at_the_start(make_world, private_postgres):
    """A worker waits for it."""
    world = make_world(postgres=private_postgres)
    work(world, 5)
    private_postgres.stop()
    worker = world.start_worker()
    wait_log(world, worker, "PostgreSQL")
    private_postgres.start()
    finish(world, 5)


def test_sigterm_while_postgres_is_away(make_world, private_postgres):
    """Exit 0 within 10 s, whether it went before the start or after it."""
    world = make_world(postgres=private_postgres)
    worker = world.start_worker()
    world.wait_resume(work(world, 1)[0].id)
    private_postgres.kill()
    work(world, 3)
    wait_log(world, worker, "PostgreSQL")
    worker.stop()
    late = world.start_worker()
    wait_log(world, late, "PostgreSQL")
    late.stop()
    private_postgres.start()
    world.start_worker()
    finish(world, 4)


@pytest.mark.parametrize("how", ["kill", "immediate", "fast"])
def test_postgres_goes_in_the_middle_of_work(make_world, private_postgres, how):
    """Three times; what was taken in stays, what was not is read again."""
    world = make_world(postgres=private_postgres)
    world.start_worker()
    total = 0
    for _ in range(3):
        work(world, 20)
        total += 20
        if how == "kill":
            private_postgres.kill()
        else:
            private_postgres.stop(immediate=how == "immediate")
        work(world, 10)
        total += 10
        private_postgres.start()
    finish(world, total)


def test_connections_are_cut(make_world):
    """Every connection of the worker is ended by the server, over and over, while it works."""
    world = make_world()
    world.start_worker()
    for _ in range(15):
        work(world, 4)
        world.sql(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )
    finish(world, 60)


# ---- Kafka ---------------------------------------------------------------------------------


@pytest.mark.slow
def test_kafka_away(make_world, private_kafka):
    """At the start, in the middle of work, and at SIGTERM."""
    world = make_world(kafka=private_kafka)
    work(world, 5)
    private_kafka.stop()
    waiting = world.start_worker()
    wait_log(world, waiting, "Kafka")
    waiting.stop()
    worker = world.start_worker()
    wait_log(world, worker, "Kafka")
    private_kafka.start()
    world.wait_records("resumes", lambda found: len(found) >= 5, "five resumes", timeout=60)
    work(world, 20)
    private_kafka.kill()
    wait_log(world, worker, "Kafka")
    private_kafka.start()
    work(world, 5)
    world.settle(timeout=90)
    private_kafka.kill()
    worker.stop()
    private_kafka.start()
    world.start_worker()
    finish(world, 30)


@pytest.mark.slow
def test_a_stopped_worker_is_replaced(make_world):
    """SIGSTOP past the session timeout, SIGCONT when another has taken over: nothing twice."""
    world = make_world()
    first = world.start_worker()
    sent = work(world, 10)
    world.wait_resume(sent[-1].id)
    first.pause()
    second = world.start_worker()
    work(world, 20)
    world.settle(timeout=60)
    first.go_on()
    work(world, 20)
    world.settle(timeout=60)
    finish(world, 50)
    second.stop()
    first.stop()


def test_a_topic_that_is_not_there_yet(make_world):
    """The worker waits for its topics, and says which."""
    world = make_world()
    missing = f"{world.name}.later"
    world.write_config(topics__suspends=missing)
    world.topics["suspends"] = missing
    worker = world.start_worker()
    wait_for(lambda: missing in worker.log, "a line about the topic")
    topics.create_topics(
        world.kafka.bootstrap, {missing: 1}, {missing: {"message.timestamp.type": "LogAppendTime"}}
    )
    world.sender.prime(missing)
    work(world, 3)
    finish(world, 3)
