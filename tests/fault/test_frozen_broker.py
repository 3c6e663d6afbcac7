"""A broker that is stopped (SIGSTOP) holds its connections open, and answers nothing: a rebuild notices, and ends."""

import contextlib
import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from waiting import wait_for

BOUND_S = 60  # thirty seconds of silence, and the time that clients take to let go


@contextlib.contextmanager
def frozen(broker):
    """The broker's process is stopped."""
    pid = int((Path(broker.directory) / "kafka.pid").read_text(encoding="utf-8"))
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


@pytest.mark.slow
@pytest.mark.parametrize("place", [None, "relay.planned", "intake.fetched"], ids=["start", "ledgers", "suspends"])
def test_a_frozen_broker(failpoint_bin, make_world, private_kafka, tmp_path, place):
    """Before anything, while resumes are read, while suspends are: it ends with 69 in bounded time, and goes on later."""
    assert failpoint_bin.is_dir()
    world = make_world(kafka=private_kafka, partitions=1)
    for _ in range(20):
        world.decide(world.suspend())
    marks = tmp_path / "marks"
    marks.mkdir()
    environment = {"FERMATA_FAILPOINT_DIR": str(marks)}
    if place is not None:
        environment["FERMATA_FAILPOINT"] = f"{place}=delay:200"
    with contextlib.ExitStack() as stack:
        if place is None:
            stack.enter_context(frozen(private_kafka))
        process = world.start("rebuild", env=environment)
        process.ended_by_us = True
        if place is not None:
            wait_for(lambda: list(marks.glob(f"{place}.*")), f"the rebuild to get to {place}")
            stack.enter_context(frozen(private_kafka))
        began = time.monotonic()
        try:
            code = process.wait(300)
        except subprocess.TimeoutExpired:
            raise AssertionError(process.log) from None
        took = time.monotonic() - began
        assert code == 69 and "Kafka" in process.log, process.log
        assert took < BOUND_S, took
    private_kafka.wait_until_ready()
    wait_for(lambda: world.run("rebuild", rc=None, timeout=120).rc == 0, "the rebuild to go on", 120)
    assert len(world.sql("SELECT 1 FROM fermata.checkpoint WHERE state = 'DECIDED'")) == 20
