"""A base backup that is taken while everybody works, more traffic, and back: to the backup, or to a point in time after it.

The topics stay as they are. Workers run on over it, or are started afterwards.
"""

import contextlib

import pytest

import chaos_services
import judge
import walk
from waiting import wait_for

PATIENCE = 90.0
SESSIONS = 40  # before each step


@pytest.fixture(name="cluster")
def make_cluster(private_directory):
    """A cluster that archives its WAL."""
    archive = private_directory / "archive"
    archive.mkdir()
    archive.chmod(0o777)
    database = chaos_services.Database(private_directory / "postgres", private_directory / "backups")
    database.archive = archive
    database.first_start(archive_mode="on", archive_command=f"cp %p {archive}/%f")
    yield database
    with contextlib.suppress(RuntimeError):
        database.kill()


def more(traffic):
    """Wait until more sessions have been sent."""
    count = len(traffic.world.suspends) + SESSIONS
    wait_for(lambda: len(traffic.world.suspends) >= count or traffic.fault, "more sessions", PATIENCE)


def ask(cluster, question):
    """The one value that the cluster answers."""
    connection = cluster.connect()
    try:
        with connection.cursor() as cursor:
            cursor.execute(question)
            return cursor.fetchone()[0]
    finally:
        connection.close()


def archive_all(cluster):
    """All WAL that there is now is in the archive."""
    segment = ask(cluster, "SELECT pg_walfile_name(pg_switch_wal())")
    wait_for((cluster.archive / segment).exists, f"WAL segment {segment} in the archive", PATIENCE)


def go_back(cluster, moment):
    """To the backup, or to a moment after it."""
    if moment is None:
        return cluster.restore(0)
    return cluster.restore(
        0,
        restore_command=f"cp {cluster.archive}/%f %p",
        recovery_target_time=moment,
        recovery_target_action="promote",
        archive_mode="off",
    )


def states(world):
    """{checkpoint_id: state}."""
    return dict(world.sql("SELECT checkpoint_id::text, state::text FROM fermata.checkpoint"))


@pytest.mark.slow
@pytest.mark.parametrize(
    "to, workers",
    [
        ("the backup", "run on"),
        ("a point in time", "are started afterwards"),
    ],
)
def test_back(make_world, cluster, to, workers):
    """Nothing is lost, nothing is published twice, and what was published before is not published again."""
    world = make_world(postgres=cluster, settings={"log.level": "info"})
    running = [world.start_worker(), world.start_worker()]
    traffic = walk.Traffic(world, spoils=False)
    traffic.go_on()
    more(traffic)
    cluster.backup()
    more(traffic)
    moment = ask(cluster, "SELECT clock_timestamp()::text") if to == "a point in time" else None
    more(traffic)
    archive_all(cluster)
    if workers != "run on":
        traffic.pause()
        world.settle(PATIENCE)
        for worker in running:
            worker.stop()
    before = states(world)
    published = len(world.read("resumes"))
    world.disconnect()
    go_back(cluster, moment)
    if workers != "run on":  # who runs on has read it all again before anybody can look
        assert len(states(world)) < len(before), "it did not go back"
        world.start_worker()
        traffic.go_on()
    more(traffic)
    traffic.pause()
    world.wait(lambda: not world.sql("SELECT 1 FROM fermata.expiry LIMIT 1"), "all to have expired", PATIENCE)
    world.settle(PATIENCE)
    evidence = judge.check(world, bad=frozenset(traffic.bad))
    assert len(evidence.resumes) > published
    after = states(world)
    final = {name for name, state in before.items() if state in ("RESUMED", "SUPERSEDED")}
    assert {after.get(name) for name in final} <= {"RESUMED", "SUPERSEDED"}
    traffic.end()
