"""Breaks a worker between any two steps, at every place of core/failpoint.def, and looks whether the laws hold.

At each place a process is killed, gets an error, is held up, and is stopped for longer than its session (it goes on
as a zombie). A place that is never reached fails the test: what leads to it belongs into walk.Traffic.
FERMATA_TEST_PLACES (names, with commas between) chooses among them.
"""

import os

import pytest

import judge
import walk

CHOSEN = os.environ.get("FERMATA_TEST_PLACES")
PATIENCE = 90.0
# action, and how many places are armed at a time
ACTIONS = [("kill", 2), ("error", 4), ("delay:1500", 8), ("stop", 2)]


@pytest.fixture(name="walker")
def make_walker(make_world, failpoint_bin, tmp_path):
    """A world with two workers and traffic."""
    del failpoint_bin
    world = make_world(
        partitions=2,
        settings={
            "log.level": "info",
            "kafka.consumer.session.timeout.ms": "1000",
            "kafka.consumer.heartbeat.interval.ms": "250",
            "worker.unclaimed_ttl": "8s",
        },
    )
    walker = walk.Walk(world, tmp_path / "failpoints")
    yield walker
    walker.close()


def check_laws(walker):
    """All that was sent has settled, and no law is broken."""
    world, traffic = walker.world, walker.traffic
    traffic.pause()
    walker.settle()
    world.wait_intake(PATIENCE)  # what has expired has its row only then
    world.wait(
        lambda: not world.sql("SELECT 1 FROM fermata.expiry LIMIT 1"),
        lambda: f"no gate to be left whose end has passed: {world.sql('SELECT * FROM fermata.expiry')[:5]}",
        PATIENCE,
    )
    world.settle(PATIENCE)  # only now: what has expired is published as well
    evidence = judge.check(world, dropped=traffic.spoiled, bad=frozenset(traffic.bad))
    expired = {judge.canonical(r.datum["checkpoint_id"]) for r in evidence.resumes}
    assert not [name for name in traffic.passed if name not in expired]
    assert traffic.spoiled and all(evidence.states[name] == "QUARANTINED" for name in traffic.spoiled)
    return evidence


@pytest.mark.slow
def test_at_every_place(walker):
    """Killed, in error, held up, stopped: the laws hold after each."""
    names = CHOSEN.split(",") if CHOSEN else walk.places()
    for action, width in ACTIONS:
        walker.traffic.go_on()
        took = walker.through(names, action, width)
        assert sorted(took) == sorted(names)
        slowest = sorted(took, key=took.get)[-3:]
        evidence = check_laws(walker)
        print(
            f"  {action}: {len(took)} places in {sum(took.values()):.0f} s, the slowest"
            f" {[(name, round(took[name], 1)) for name in slowest]};"
            f" {len(evidence.suspends)} suspends, {len(evidence.resumes)} resumes so far",
            flush=True,
        )
