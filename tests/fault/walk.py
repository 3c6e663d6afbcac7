"""What a walk through all failpoints needs: the table of places, traffic that leads to each of them, and workers.

The traffic has everything in it that takes a step of its own: dead letters, early decisions, gates whose end has
passed, decisions about nothing, and state that cannot be opened any more.
"""

import contextlib
import random
import re
import signal
import threading
import time
from pathlib import Path

import records
from records import by
from waiting import TimedOut, wait_for

TABLE = Path(__file__).resolve().parents[2] / "core" / "failpoint.def"
SECOND_US = 1_000_000
NUDGE_SECONDS = 1.5  # without a hit: somebody's term is to end, for many places lie at its beginning
PATIENCE = 40.0  # for one place
LOST_SECONDS = 5.0  # an order that is taken is carried out within
SLOW = ("reaper.before_sweep", "reaper.sweep_open")  # reached every few seconds: armed beside the others
ZOMBIE_SECONDS = 1.6  # a stopped worker stands so long: longer than the session timeout
RUNNING = 2  # workers that are to run
MOST = 4  # with those that were zombies


def all_places():
    """The names of all places, in the order of the table; those of sabotage are left out."""
    found = re.findall(r'^FAILPOINT\(\w+, "([a-z_.]+)"', TABLE.read_text(encoding="utf-8"), re.MULTILINE)
    assert len(found) == len(set(found)) > 30, found
    return found


def places():
    """Those that traffic leads to."""
    return [name for name in all_places() if not name.startswith("retention.")]


def retention_places():
    """Those that only time leads to: test_retention_places.py has it go by."""
    return [name for name in all_places() if name.startswith("retention.")]


class Traffic:
    """Small rounds of every kind of record, sent by a thread of its own until it is paused."""

    def __init__(self, world, spoils=True):
        self.world = world
        self.spoils = spoils
        self.bad = set()  # places of records that are no suspends
        self.spoiled = set()  # ids of checkpoints that cannot be opened
        self.passed = []  # ids of checkpoints whose end lies in the past
        self.fault = None
        self._open = []
        self._round = 0
        self._go = threading.Event()
        self._idle = threading.Event()
        self._ended = False
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def go_on(self):
        """Send."""
        self._idle.clear()
        self._go.set()

    def pause(self):
        """Stop sending; everything that was sent is acknowledged when it returns."""
        self._go.clear()
        wait_for(self._idle.is_set, "the traffic to pause")
        if self.fault is not None:
            raise self.fault

    def end(self):
        """Stop for good."""
        self._ended = True
        self._go.set()
        self._thread.join()

    def _run(self):
        while not self._ended:
            if not self._go.wait(0.1):
                self._idle.set()
                continue
            if self._ended:
                return
            try:
                self._send_round()
            except Exception as fault:  # pylint: disable=broad-except  # shown by pause()
                self.fault = fault
                self._idle.set()
                return
            time.sleep(1.0 if self._round % 40 == 0 else 0.1)  # now and then intake stands at the end

    def _send_round(self):
        self._round += 1
        self._decide_older()
        for _ in range(3):
            self._open.append(self.world.suspend())
        self._send_early()
        if self._round % 3 == 0:
            self._send_odd()
        if self.spoils and self._round % 5 == 0:
            self._spoil(self.world.suspend())

    def _decide_older(self):
        while len(self._open) > 3:
            sent = self._open.pop(0)
            kind = random.Random(sent.id).choice(["APPROVE", "APPROVE", "APPROVE", "REJECT", "CANCEL"])
            decision = self.world.decide(sent, decision=kind)
            if kind != "APPROVE":
                self.world.decide(sent, decided_by=by("late"))
            else:
                self.world.send_approval(decision.datum)  # twice the same

    def _send_early(self):
        datum = records.make_suspend(gate={"required_approvals": 2})
        for who in ("alice", "bob"):
            self.world.send_approval(records.make_approval(datum, decided_by=by(who)))
        self.world.send_suspend(datum)

    def _send_odd(self):
        broken = self.world.send_suspend(records.make_suspend(), value=b"\xc3\x01no suspend")
        self.bad.add(broken.ack.place)
        past = records.now_us() - 10 * SECOND_US
        self.passed.append(self.world.suspend(gate={"expires_at": past}).id)
        self.world.decide(None)  # about nothing: swept some time

    def _spoil(self, sent):
        """Its sealed state is changed as a failing disk would, and then it is decided."""
        found = None
        connection = self.world.postgres.connect(self.world.name)
        try:
            with connection.cursor() as cursor:
                for _ in range(100):
                    cursor.execute(
                        "UPDATE fermata.payload SET body = set_byte(body, 30, get_byte(body, 30) # 255)"
                        " WHERE checkpoint_id = %s",
                        (sent.id,),
                    )
                    found = cursor.rowcount
                    if found or self._ended:
                        break
                    time.sleep(0.05)
        finally:
            connection.close()
        if found:
            self.spoiled.add(sent.id)
        self.world.decide(sent)


def quick_of(armed):
    """Those that are reached at once, or after a nudge."""
    return [place for place in armed if place not in SLOW]


class Walk:
    """Goes through places: arms some of them, and sees to it that they are reached."""

    def __init__(self, world, directory):
        self.world = world
        self.directory = directory
        self.random = random.Random(808)
        self.env = {"FERMATA_FAILPOINT_DIR": str(directory)}
        self.zombies = []  # (worker, when it is to go on)
        directory.mkdir()
        self.workers = [self._start() for _ in range(RUNNING)]
        self.traffic = Traffic(world)

    def _start(self):
        worker = self.world.start_worker("-X", "log.level=info", env=self.env)
        worker.ended_by_us = True  # how it ended is looked at here
        return worker

    def _arm(self, place, action):
        draft = self.directory / "draft"
        draft.write_text(action)
        draft.rename(self.directory / f"arm.{place}")

    def _arm_again(self, place, action, since):
        """Where a worker was killed just after it had taken the order, another one gets it."""
        taken = not (self.directory / f"arm.{place}").exists()
        if taken and time.monotonic() - since > LOST_SECONDS:
            self._arm(place, action)

    def _hit(self, place):
        """The pid of who was at the place since it was armed, None when nobody was."""
        for mark in self.directory.glob(f"{place}.[0-9]*"):
            pid = int(mark.suffix[1:])
            mark.unlink()
            return pid
        return None

    def _tend(self):
        """Puts others in the place of those that are gone, lets zombies go on, ends those that are too many."""
        for worker in [w for w in self.workers if not w.alive]:
            assert worker.rc == -signal.SIGKILL, f"it ended with {worker.rc}: {worker.log[-4000:]}"
            self.workers.remove(worker)
        now = time.monotonic()
        for worker, until in [z for z in self.zombies if z[1] <= now]:
            self.zombies.remove((worker, until))
            worker.go_on()
        standing = [worker for worker, _ in self.zombies]
        running = [w for w in self.workers if w not in standing]
        if len(running) > RUNNING and len(self.workers) >= MOST:
            self.workers.remove(running[0])
            running[0].kill()
        elif len(running) < RUNNING:
            self.workers.append(self._start())

    def _nudge(self):
        standing = [worker for worker, _ in self.zombies]
        running = [w for w in self.workers if w not in standing]
        self.random.choice(running).kill()

    def _counts(self, pid, action):
        """Whether a hit is one: a worker that we have killed since was not stopped for long."""
        if action != "stop":
            return True
        stopped = [worker for worker in self.workers if worker.pid == pid]
        self.zombies += [(worker, time.monotonic() + ZOMBIE_SECONDS) for worker in stopped]
        return bool(stopped)

    def through(self, names, action, width):
        """Each place once, `width` of them armed at a time. Returns how long each took."""
        armed, took = {}, {}
        left = sorted(names, key=lambda name: name not in SLOW)
        last_hit = nudged = time.monotonic()
        while left or armed:
            while left and len(quick_of(armed)) < width:
                self._arm(left[0], action)
                armed[left.pop(0)] = time.monotonic()
            self._tend()
            waits = quick_of(armed) or armed  # while the quick ones are at work, the slow ones have time
            for place in list(armed):
                pid = self._hit(place)
                if pid is not None:
                    last_hit = time.monotonic()
                    began = armed.pop(place)
                    if self._counts(pid, action):
                        took[place] = last_hit - began
                    else:
                        left.insert(0, place)
                    continue
                self._arm_again(place, action, armed[place])
                if place in waits and time.monotonic() - max(armed[place], last_hit) > PATIENCE:
                    raise TimedOut(f"nobody reached {place} to {action} there within {PATIENCE:.0f} s")
            if quick_of(armed) and not self.zombies and time.monotonic() - max(nudged, last_hit) > NUDGE_SECONDS:
                nudged = time.monotonic()
                self._nudge()
            time.sleep(0.02)
        return took

    def settle(self):
        """Everybody runs again."""
        wait_for(lambda: not self.zombies, "the zombies to go on", meanwhile=self._tend)
        self._tend()

    def close(self):
        """Away with all of it."""
        self.traffic.end()
        for worker in self.workers:
            with contextlib.suppress(ProcessLookupError):
                worker.go_on()
            worker.kill()
