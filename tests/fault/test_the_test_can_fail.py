"""Builds that break a rule of the protocol on purpose: the same judge must find the fault.

A suite that has never caught anything proves nothing. These are the two rules that everything stands on:
the ledger is read before anything is published (R2), and positions move in the transaction of their batch.
"""

import breaker
import judge
import load

SESSIONS = 200


def broken_world(make_world, tmp_path, rule, places):
    """A world whose workers break a rule, and are killed where that shows."""
    world = make_world(partitions=2, settings={"log.level": "info"})
    env = {"FERMATA_SABOTAGE": rule} if rule else {}
    strikes = breaker.Breaker(world, tmp_path / "failpoints", 7, count=1, places=places, env=env)
    for round_number in range(6):
        load.send(world, load.make_plan(100 + round_number, SESSIONS // 6, undecided=0.0))
        strikes.kill_at_place(timeout=10.0)
    world.settle()
    return world


def laws_broken(world):
    """The names of the laws that the judge finds broken."""
    return {finding.law for finding in judge.findings(judge.collect(world))}


def test_without_the_ledger_there_are_doubles(make_world, failpoint_bin, tmp_path):
    """R2 switched off: what was published and not marked is published again."""
    del failpoint_bin
    world = broken_world(make_world, tmp_path, "no_ledger", ["relay.after_commit"])
    assert "L2" in laws_broken(world)


def test_with_positions_ahead_there_are_losses(make_world, failpoint_bin, tmp_path):
    """The position committed before the batch: what was between is never read again."""
    del failpoint_bin
    world = broken_world(make_world, tmp_path, "position_ahead", ["intake.position_ahead"])
    assert "L1" in laws_broken(world)


def test_with_the_rules_kept_there_is_nothing(make_world, failpoint_bin, tmp_path):
    """The same kills without the sabotage."""
    del failpoint_bin
    world = broken_world(make_world, tmp_path, None, ["relay.after_commit", "intake.before_commit"])
    assert not laws_broken(world)
