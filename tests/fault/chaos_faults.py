"""What is done to workers, network and servers: three lanes of faults, chosen by a seed.

Each lane is a thread that carries out one fault after the other, with pauses; faults of different lanes overlap.
The choice of faults and of their parameters depends on the seed alone, what they meet does not.
"""

import contextlib
import random
import signal
import threading
import time
from collections import Counter

import walk

MOST_WORKERS = 6
STOP_GRACE = 20  # the contract says 10 s for SIGTERM; here everything is slow on purpose
LOG_TAIL = 3000
BACKUP_SECONDS = 60.0


class Crew:
    """The workers. One that ends by itself is replaced, and is a finding."""

    def __init__(self, world, count, env=None):
        self.world = world
        self.wanted = count
        self.env = env or {}
        self.lock = threading.RLock()
        self.frozen = False  # nobody is put in the place of another
        self.unexpected = []
        self.ended_at_places = 0
        self.workers = []
        self.tend()

    def _start(self):
        worker = self.world.start_worker("-X", "log.level=info", env=self.env)
        worker.ended_by_us = True  # how it ended is looked at here
        self.workers.append(worker)

    def tend(self):
        """As many as are wanted; called again and again."""
        with self.lock:
            for worker in [w for w in self.workers if not w.alive]:
                self.workers.remove(worker)
                if worker.rc == -signal.SIGKILL and self.env:
                    self.ended_at_places += 1
                else:
                    self._note(worker, "ended by itself")
            while len(self.workers) < self.wanted and not self.frozen:
                self._start()

    def _note(self, worker, how):
        text = f"{worker.log_path.name} {how} with {worker.rc}"
        self.unexpected.append(f"{text}: {worker.log[-LOG_TAIL:].strip().splitlines()[-1:]}")

    def kill(self, rng):
        """kill -9 of one; another one takes its place."""
        with self.lock:
            worker = rng.choice(self.workers)
            self.workers.remove(worker)
            worker.kill()
            self.tend()

    def kill_all(self):
        """kill -9 of all of them at once."""
        with self.lock:
            ended, self.workers = self.workers, []
            for worker in ended:
                worker.kill()
            self.tend()

    def zombie(self, rng, seconds):
        """One is stopped and goes on later."""
        with self.lock:
            worker = rng.choice(self.workers)
            worker.pause()
        time.sleep(seconds)
        worker.go_on()

    def grow(self):
        """One more."""
        with self.lock:
            self.wanted = min(self.wanted + 1, MOST_WORKERS)
            self.tend()

    def shrink(self, rng):
        """SIGTERM for one; it is to end with 0 within its time."""
        with self.lock:
            self.wanted = max(self.wanted - 1, 1)
            worker = rng.choice(self.workers)
            self.workers.remove(worker)
        began = time.monotonic()
        worker.go_on()
        with contextlib.suppress(AssertionError):
            worker.stop(STOP_GRACE)
        took = time.monotonic() - began
        killed_at_a_place = self.env and worker.rc == -signal.SIGKILL and took < STOP_GRACE
        if worker.rc != 0 and not killed_at_a_place:
            self._note(worker, f"was told to end, and ended after {took:.0f} s")
        with self.lock:
            self.tend()

    def go_on(self):
        """None of them stands."""
        with self.lock:
            for worker in self.workers:
                worker.go_on()

    def close(self):
        """Away with them."""
        with self.lock:
            self.frozen = True
            for worker in self.workers:
                worker.go_on()
                worker.kill()
            self.workers = []


class Lane(threading.Thread):
    """One fault after the other, until it is told to end."""

    def __init__(self, name, chaos, seed, pause):
        super().__init__(daemon=True, name=name)
        self.chaos = chaos
        self.random = random.Random(f"{seed}/{name}")
        self.pause = pause
        self.counts = Counter()
        self.fault = None
        self.ending = threading.Event()

    def kinds(self):
        """[(weight, name, function)]."""
        raise NotImplementedError

    def heal(self):
        """All is well again, whatever was done last."""

    def between(self):
        """Before the next fault."""

    def hold(self, low, high):
        """A time within which the fault lasts."""
        seconds = self.random.uniform(low, high)
        self.ending.wait(seconds)
        return f"{seconds:.1f} s"

    def run(self):
        kinds = self.kinds()
        while not self.ending.wait(self.random.uniform(0.3, 1.7) * self.pause):
            try:
                self.between()
                kind = self.random.choices(kinds, [weight for weight, _, _ in kinds])[0]
                began = time.monotonic()
                self.counts[kind[1]] += 1
                said = kind[2]()
                self.chaos.tell(
                    f"{self.name}: {kind[1]} {said or ''} ({time.monotonic() - began:.1f} s)".replace("  ", " ")
                )
            except Exception as fault:  # pylint: disable=broad-except  # shown at the end
                self.fault = fault
                self.chaos.tell(f"{self.name}: CANNOT GO ON: {type(fault).__name__}: {fault}")
                return

    def end(self):
        """No more faults; what was broken is mended."""
        self.ending.set()
        self.join()
        self.heal()
        if self.fault is not None:
            raise self.fault


class WorkerLane(Lane):
    """Workers are killed, stopped, added and taken away."""

    def kinds(self):
        crew, rng = self.chaos.crew, self.random
        found = [
            (24, "kill -9", lambda: crew.kill(rng)),
            (3, "kill -9 of all", crew.kill_all),
            (9, "stop past the session", lambda: self._stand(2.5, 6.0)),
            (4, "stop for a moment", lambda: self._stand(0.2, 1.0)),
            (6, "one more", crew.grow),
            (6, "one less", lambda: crew.shrink(rng)),
        ]
        if self.chaos.failpoints is not None:
            found.append((24, "at a place", self._at_place))
        return found

    def _stand(self, low, high):
        seconds = self.random.uniform(low, high)
        self.chaos.crew.zombie(self.random, seconds)
        return f"{seconds:.1f} s"

    def _at_place(self):
        """Something happens to whoever comes first to a place between two steps."""
        place = self.random.choice(walk.places())
        action = self.random.choice(["kill", "kill", "kill", "error", "delay:3000", "stop"])
        draft = self.chaos.failpoints / "draft"
        draft.write_text(action)
        draft.rename(self.chaos.failpoints / f"arm.{place}")
        if action == "stop":
            self._let_go_on(place)
        return f"{action} {place}"

    def _let_go_on(self, place):
        deadline = time.monotonic() + 3.0
        while time.monotonic() < deadline and not self.ending.wait(0.05):
            if list(self.chaos.failpoints.glob(f"{place}.[0-9]*")):
                self.ending.wait(3.0)
                break
        with contextlib.suppress(FileNotFoundError):
            (self.chaos.failpoints / f"arm.{place}").unlink()
        self.heal()

    def heal(self):
        if self.chaos.failpoints is not None and self.ending.is_set():
            for arm in self.chaos.failpoints.glob("arm.*"):
                arm.unlink(missing_ok=True)
        self.chaos.crew.go_on()


class NetworkLane(Lane):
    """What lies between the workers and a server."""

    def kinds(self):
        return [
            (weight, f"{name} {server}", lambda server=server, fault=fault: fault(server))
            for server in ("kafka", "postgres")
            for weight, name, fault in [
                (6, "reset", self._reset),
                (5, "cut", self._cut),
                (5, "silence", self._silence),
                (4, "slowness", self._slow),
                (7, "lost answers", self._lose),
            ]
        ]

    def _order(self, server, *order):
        return self.chaos.network.order(server, *order)

    def _reset(self, server):
        return f"{self._order(server, 'reset')} connections"

    def _cut(self, server):
        self._order(server, "cut")
        said = self.hold(0.5, 6.0)
        self._order(server, "heal", True)
        return said

    def _silence(self, server):
        share = self.random.choice([0.5, 1.0])
        self._order(server, "hold", share, "up", "down")
        said = self.hold(1.0, 9.0)
        self._order(server, "heal", self.random.random() < 0.5)
        return f"of {share:.0%}, {said}"

    def _slow(self, server):
        delay = self.random.choice([0.02, 0.1, 0.3])
        self._order(server, "slow", delay, 200_000)
        said = self.hold(3.0, 10.0)
        self._order(server, "heal", False)
        return f"by {delay * 1000:.0f} ms, {said}"

    def _lose(self, server):
        """What is asked arrives and is done; the answer never comes."""
        share = self.random.choice([0.3, 1.0])
        self._order(server, "hold", share, "down")
        said = self.hold(0.2, 3.0)
        self._order(server, "heal", True)
        return f"of {share:.0%}, {said}"

    def heal(self):
        for server in ("kafka", "postgres"):
            self._order(server, "heal", True)


class ServerLane(Lane):
    """The broker and the database, and the database's disk."""

    def kinds(self):
        broker, database = self.chaos.broker, self.chaos.database
        found = [
            (8, "broker killed", lambda: self._again(broker.kill, broker.start)),
            (4, "broker restarted", lambda: self._again(broker.stop, broker.start)),
            (4, "broker stands still", self._broker_stands),
            (9, "PostgreSQL killed", lambda: self._again(database.kill, database.start)),
            (5, "PostgreSQL restarted", lambda: self._again(database.stop, database.start)),
            (5, "PostgreSQL stopped at once", self._database_stopped),
            (4, "PostgreSQL stands still", self._database_stands),
            (8, "PostgreSQL set back", self._restore),
        ]
        if database.disk.mounted:
            found.append((9, "PostgreSQL's disk full", self._fill))
        return found

    def between(self):
        """A base backup now and then, to go back to."""
        backups = self.chaos.database.backups
        if not backups or time.monotonic() - backups[-1][0] > BACKUP_SECONDS:
            began = time.monotonic()
            self.chaos.database.backup()
            self.chaos.tell(f"{self.name}: a base backup is taken ({time.monotonic() - began:.1f} s)")

    def _again(self, end, start):
        end()
        said = self.hold(0.0, 3.0)
        start()
        return f"for {said}"

    def _database_stopped(self):
        self.chaos.database.stop(immediate=True)
        said = self.hold(0.0, 8.0)
        self.chaos.database.start()
        return f"for {said}"

    def _broker_stands(self):
        self.chaos.broker.pause()
        said = self.hold(1.0, 7.0)
        self.chaos.broker.go_on()
        return said

    def _database_stands(self):
        self.chaos.database.signal_all(signal.SIGSTOP)
        said = self.hold(1.0, 7.0)
        self.chaos.database.signal_all(signal.SIGCONT)
        return said

    def _fill(self):
        database = self.chaos.database
        database.disk.fill()
        said = self.hold(2.0, 8.0)
        database.disk.free()
        fell = ""
        if not database.answers():
            fell = ", it fell over it"
            with contextlib.suppress(RuntimeError):
                database.stop(immediate=True)
            database.start()
        return said + fell

    def _restore(self):
        age = self.chaos.database.restore(self.random.randrange(6))
        return f"by {age:.0f} s"
