"""Many sessions of mixed sizes over several partitions and workers: exactly once, whatever happens.

FERMATA_TEST_SESSIONS (default 10000) and FERMATA_TEST_KILLS (default 40) make it shorter or longer;
FERMATA_TEST_SEED makes the same load and the same choices again.
"""

import os
import threading
import time

import pytest

import breaker
import gates_judge
import judge
import load

SESSIONS = int(os.environ.get("FERMATA_TEST_SESSIONS", "10000"))
KILLS = int(os.environ.get("FERMATA_TEST_KILLS", "40"))
SEED = int(os.environ.get("FERMATA_TEST_SEED", "808"))
PARTITIONS = 6
PATIENCE = 300.0


def tell(text):
    """A line for whoever reads the log of a long run."""
    print(f"  {text}", flush=True)


def report(evidence, plan, began):
    """What was judged."""
    tell(
        f"seed {SEED}: {plan.suspends} suspends, {len(evidence.approvals)} decisions"
        f" ({plan.early} early, {plan.doubled} doubled, {plan.conflicting} conflicting),"
        f" {len(evidence.resumes)} resumes, {time.monotonic() - began:.0f} s"
    )


@pytest.mark.slow
def test_many_sessions(make_world):
    """Every approved session is resumed exactly once, and equals what was sent."""
    began = time.monotonic()
    world = make_world(partitions=PARTITIONS, settings={"log.level": "info"})
    world.start_worker()
    world.start_worker()
    plan = load.make_plan(SEED, SESSIONS)
    load.send(world, plan)
    world.settle(PATIENCE)
    gates_judge.check(world, PATIENCE)
    report(judge.check(world), plan, began)


@pytest.mark.slow
def test_many_sessions_while_workers_are_killed(make_world, failpoint_bin, tmp_path):
    """The same, while workers are killed at every step and others come back as zombies."""
    del failpoint_bin
    began = time.monotonic()
    world = make_world(partitions=PARTITIONS, settings={"log.level": "info"})
    strikes = breaker.Breaker(world, tmp_path / "failpoints", SEED)
    plan = load.make_plan(SEED + 1, SESSIONS)
    sender = threading.Thread(target=load.send, args=(world, plan, pacer(strikes)), daemon=True)
    sender.start()
    while sender.is_alive() or strikes.kills < KILLS:
        strikes.strike()
        if not sender.is_alive() and strikes.kills < KILLS:
            keep_busy(world, plan)
    sender.join()
    world.settle(PATIENCE)
    tell(f"{strikes.kills} kills: {dict(strikes.done)}")
    gates_judge.check(world, PATIENCE)
    report(judge.check(world), plan, began)


def pacer(strikes):
    """Slows the sender down, so that the load lasts as long as the kills do."""

    def pace(sent, of):
        while sent / of > (strikes.kills + 1) / (KILLS + 1):
            time.sleep(0.1)

    return pace


def keep_busy(world, plan):
    """A few more sessions, so that there are commits to strike at."""
    more = load.make_plan(SEED + plan.suspends, 20)
    load.send(world, more)
    plan.suspends += more.suspends
