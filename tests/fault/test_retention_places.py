"""A worker that clears away what is settled is killed, gets an error and is stopped at every place of retention.

At each place, once each: then everything that was to go is gone, what waits is whole, and a replay of what Kafka still has
brings nothing back and publishes nothing. The other places are walked through by test_failpoints.py.
"""

import os
import signal
import time

import pytest

import topics
import walk
from acts import pending
from test_retention import SHORT_ROWS, orphan, payloads, rows, set_back, to_an_old_day, twice
from waiting import wait_for

CHOSEN = os.environ.get("FERMATA_TEST_PLACES")
PLACES = [name for name in walk.retention_places() if not CHOSEN or name in CHOSEN.split(",")]
ACTIONS = ("kill", "error", "stop")
ONCE = ("retention.after_rows", "retention.after_orphans")  # then there is nothing left to get there with
CASES = [(name, ACTIONS) for name in PLACES if name not in ONCE] + [
    (name, (action,)) for name in PLACES if name in ONCE for action in ACTIONS
]
PATIENCE = 60.0


class Sweeper:
    """Workers of one world, with orders for one place at a time."""

    def __init__(self, world, directory):
        self.world = world
        self.directory = directory
        directory.mkdir()

    def start(self, armed=True):
        """A worker; it takes orders or takes none."""
        env = {"FERMATA_FAILPOINT_DIR": str(self.directory)} if armed else {}
        worker = self.world.start_worker("-X", "log.level=info", env=env)
        worker.ended_by_us = True  # how it ended is looked at here
        return worker

    def nudge(self):
        """A sweep is due, whoever has been at it."""
        self.world.sql("UPDATE fermata.installation SET sweep_at = 0")

    def arm(self, place, action):
        """An order for whoever gets there first."""
        draft = self.directory / "draft"
        draft.write_text(action)
        draft.rename(self.directory / f"arm.{place}")

    def wait_hit(self, place, action):
        """Until somebody has got there."""
        wait_for(
            lambda: list(self.directory.glob(f"{place}.[0-9]*")),
            f"somebody to reach {place} to {action} there",
            PATIENCE,
            meanwhile=self.nudge,
        )
        for mark in self.directory.glob(f"{place}.[0-9]*"):
            mark.unlink()


def break_at(sweeper, place, actions):
    """In turn: each time the next worker begins where the last one left off. Returns those that are left."""
    for action in actions:
        sweeper.arm(place, action)
        worker = sweeper.start()
        sweeper.wait_hit(place, action)
        if action == "kill":
            wait_for(lambda worker=worker: not worker.alive, "the worker to be gone")
            assert worker.rc == -signal.SIGKILL, worker.log[-4000:]
        elif action == "error":
            worker.kill()
    other = sweeper.start(armed=False)
    if actions[-1] != "stop":
        return [other]
    until = time.monotonic() + walk.ZOMBIE_SECONDS
    wait_for(lambda: time.monotonic() > until, "the stopped one's session to be over", meanwhile=sweeper.nudge)
    worker.go_on()
    return [worker, other]


@pytest.mark.slow
@pytest.mark.parametrize("place, actions", CASES, ids=[f"{place}-{actions[0]}" for place, actions in CASES])
def test_at_a_place_of_retention(make_world, failpoint_bin, tmp_path, place, actions):
    """What was settled goes, once; nothing comes back."""
    del failpoint_bin
    world = make_world(
        settings={
            **SHORT_ROWS,
            "worker.unclaimed_ttl": "1s",
            "kafka.consumer.session.timeout.ms": "1000",
            "kafka.consumer.heartbeat.interval.ms": "250",
        }
    )
    sweeper = Sweeper(world, tmp_path / "failpoints")
    worker = sweeper.start(armed=False)
    orphan(world)
    sent, between = twice(world, 8)
    kept = pending(world)
    worker.stop()
    published = len(world.read("resumes"))
    day = to_an_old_day(world, 40)
    topics.delete_records(world.kafka.bootstrap, between)
    workers = break_at(sweeper, place, actions)
    wait_for(lambda: rows(world) == {kept.id}, lambda: f"the rows to go, of {rows(world)}", PATIENCE, meanwhile=sweeper.nudge)
    assert set(payloads(world)) == {kept.id}
    assert world.sql("SELECT to_regclass(%s) IS NULL", f"fermata.{day}")[0][0]
    wait_for(
        lambda: not world.sql("SELECT 1 FROM fermata.decision"),
        "the decisions to go, with that of no checkpoint",
        PATIENCE,
        meanwhile=sweeper.nudge,
    )
    gone = {each.id.encode() for each in sent}
    world.wait_records("gates", lambda found: gone <= {r.key for r in found if r.value is None}, "tombstones")
    for each in workers:
        each.stop()
    set_back(world, "removed")
    sweeper.start(armed=False)
    decision = world.decide(kept)
    world.wait_resume(kept.id)
    world.settle()
    assert decision.decision_id and rows(world) == {kept.id}
    assert len(world.read("resumes")) == published + 1
    assert not world.read("dead_letters")
