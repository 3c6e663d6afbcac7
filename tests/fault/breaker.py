"""Kills workers and puts others in their place.

Random kills alone prove little: the windows between two commits are short. Half of the kills are made at a
place that is armed (core/failpoint.h): the process ends itself there as by kill -9. The rest strike
anywhere, and some workers are stopped for longer than their session and go on afterwards as zombies.
"""

import contextlib
import random
import time
from collections import Counter

from waiting import TimedOut, wait_for

PLACES = [
    "intake.before_commit",
    "intake.after_commit",
    "relay.before_commit",
    "relay.after_commit",
    "relay.after_gates",
    "relay.after_mark",
    "relay.before_advance",
]
ZOMBIE_SECONDS = 3.0  # longer than the session timeout of the worlds, 2 s


class Breaker:
    """Keeps `count` workers running, and breaks them."""

    def __init__(self, world, directory, seed, count=2, places=None, env=None):
        self.world = world
        self.directory = directory
        self.random = random.Random(seed)
        self.places = places or PLACES
        self.env = dict(env or {}, FERMATA_FAILPOINT_DIR=str(directory))
        self.done = Counter()
        self.armed = 0
        directory.mkdir(parents=True, exist_ok=True)
        self.workers = [self._start() for _ in range(count)]

    def _start(self):
        return self.world.start_worker("-X", "log.level=info", env=self.env)

    def _replace(self, worker):
        worker.kill()
        self.workers[self.workers.index(worker)] = self._start()

    @property
    def kills(self):
        """How many workers were ended with kill -9, by whomever."""
        return sum(count for kind, count in self.done.items() if kind != "zombie")

    def kill_at_place(self, timeout=4.0):
        """Arm a place and wait until a worker has ended there; else strike anywhere."""
        place = self.places[self.armed % len(self.places)]  # each in turn
        self.armed += 1
        arm = self.directory / f"arm.{place}"
        draft = self.directory / "draft"
        draft.write_text("kill")
        draft.rename(arm)
        for worker in self.workers:
            worker.ended_by_us = True
        try:
            wait_for(lambda: any(not w.alive for w in self.workers), "a kill", timeout)
            self.done[place] += 1
        except TimedOut:
            with contextlib.suppress(FileNotFoundError):
                arm.unlink()
            self.kill_anywhere()
        for worker in list(self.workers):
            if worker.alive:
                worker.ended_by_us = False
            else:
                self._replace(worker)

    def kill_anywhere(self):
        """kill -9 at any moment."""
        worker = self.random.choice(self.workers)
        self._replace(worker)
        self.done["anywhere"] += 1

    def make_zombie(self):
        """Stopped for longer than its session; it goes on and finds its shards and partitions gone."""
        worker = self.random.choice(self.workers)
        worker.pause()
        time.sleep(ZOMBIE_SECONDS)  # the time itself is what is tested
        worker.go_on()
        self.done["zombie"] += 1

    def strike(self):
        """One of the three."""
        kind = self.random.random()
        if kind < 0.55:
            self.kill_at_place()
        elif kind < 0.9:
            self.kill_anywhere()
        else:
            self.make_zombie()
