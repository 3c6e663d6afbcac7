"""The database goes back, or goes away: nothing is lost, nothing is published twice."""

import pytest

import judge
from records import by


def backup_of(world):
    """A copy of the database as it is now; the worker must have stopped."""
    name = f"{world.name}-backup"
    world.disconnect()
    world.postgres.create_database(name, template=world.name)
    return name


def restore(world, backup):
    """Put the copy in the place of the database."""
    world.disconnect()
    world.postgres.drop_database(world.name)
    world.postgres.create_database(world.name, template=backup)
    world.postgres.drop_database(backup)


def states(world):
    """{checkpoint_id: state}."""
    return dict(world.sql("SELECT checkpoint_id::text, state::text FROM fermata.checkpoint"))


def outcomes(world):
    """{decision_id: outcome}."""
    return dict(world.sql("SELECT decision_id::text, outcome::text FROM fermata.decision"))


def some_work(world, count):
    """Suspends of every fate; returns them."""
    sent = [world.suspend(gate={"required_approvals": 1 + i % 2}) for i in range(count)]
    for index, each in enumerate(sent):
        if index % 5 == 4:
            continue  # stays pending
        world.decide(each, decision="REJECT" if index % 5 == 3 else "APPROVE")
        world.decide(each, decided_by=by("bob"))
    return sent


@pytest.mark.parametrize("when", ["before the decision", "after the decision"])
def test_restore_to_an_older_backup(make_world, when):
    """Positions, states and ledger go back together; the topics are read again; R2 marks."""
    world = make_world()
    worker = world.start_worker()
    some_work(world, 20)
    decided = world.suspend()
    if when == "after the decision":
        world.decide(decided)
        world.wait_resume(decided.id)
    world.settle()
    worker.stop()
    backup = backup_of(world)
    worker = world.start_worker()
    if when == "before the decision":
        world.decide(decided)
    some_work(world, 20)
    world.settle()
    worker.stop()
    before, known = states(world), outcomes(world)
    published = len(world.read("resumes"))
    restore(world, backup)
    world.start_worker()
    world.settle()
    world.wait(lambda: states(world) == before, lambda: f"{states(world)} to be {before}")
    assert outcomes(world) == known
    judge.check(world)
    assert len(world.read("resumes")) == published


def test_restore_without_a_stop(make_world):
    """A worker that runs on over a database that went back notices it."""
    world = make_world()
    worker = world.start_worker()
    some_work(world, 10)
    world.settle()
    worker.stop()
    backup = backup_of(world)
    world.start_worker()
    some_work(world, 10)
    world.settle()
    before = states(world)
    restore(world, backup)
    late = world.suspend()
    world.decide(late)
    world.wait_resume(late.id)
    world.settle()
    world.wait(lambda: before.items() <= states(world).items(), "the states of before")
    judge.check(world)


def test_the_database_lost_whole(make_world):
    """A plain worker on an empty database and whole topics rebuilds by itself."""
    world = make_world(partitions=3)
    worker = world.start_worker()
    some_work(world, 30)
    old = world.suspend(session_id="line")
    world.wait_state(old.id, "PENDING")
    world.suspend(session_id="line", suspend_seq=2)
    world.settle()
    worker.stop()
    before, known = states(world), outcomes(world)
    published = len(world.read("resumes"))
    world.disconnect()
    world.postgres.drop_database(world.name)
    world.postgres.create_database(world.name)
    world.run("migrate")
    worker = world.start_worker()
    world.settle()
    world.wait(lambda: states(world) == before, lambda: f"{states(world)} to be {before}")
    assert outcomes(world) == known
    fresh = world.suspend()
    world.decide(fresh)
    world.wait_resume(fresh.id)
    world.settle()
    judge.check(world)
    assert len(world.read("resumes")) == published + 1
    worker.stop()
