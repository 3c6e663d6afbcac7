"""Sessions with everything that may happen to them, sent at a pace, and remembered on disk.

What was acknowledged is written to one of some files, chosen by the session, so that a long run needs little memory
and can be judged file by file.
"""

import heapq
import pickle
import random
import threading
import time
import zlib
from collections import Counter
from pathlib import Path

from confluent_kafka import Producer

import load
import records
import topics
from records import by

BUCKETS = 16
MOST_PENDING = 3000  # records on their way: the broker may be away for long
SECOND_US = 1_000_000


def bucket_of(session_id):
    """Which file a session belongs to."""
    return zlib.crc32(session_id.encode()) % BUCKETS


def size_of(rng):
    """Most sessions are small, some are not."""
    kind = rng.random()
    if kind < 0.85:
        return rng.randint(300, 2000)
    if kind < 0.98:
        return rng.randint(2000, 16000)
    return rng.randint(16000, 128000)


def make_suspend(rng, number):
    """A suspend of the load; some have an end, some want two approvals."""
    now = records.now_us()
    expires = now + rng.randint(2, 45) * SECOND_US if rng.random() < 0.08 else None
    return records.make_suspend(
        session_id=f"chaos-{number:07d}",
        history=load.history(rng, size_of(rng)),
        config={"n": number, "ratio": rng.random(), "flags": ["a", "b"], "none": None},
        gate={
            "required_approvals": 2 if rng.random() < 0.1 else 1,
            "title": f"gate of {number}",
            "expires_at": expires,
            "on_expiry": rng.choice(["REJECT", "REJECT", "APPROVE", "HOLD"]),
        },
    )


class Load:
    """A thread that sends `sessions` sessions within `seconds`, and what belongs to them."""

    def __init__(self, bootstrap, names, directory, seed, sessions, seconds):
        self.names = names
        self.random = random.Random(seed)
        self.sessions = sessions
        self.seconds = seconds
        self.begun = 0  # sessions
        self.counts = Counter()
        self.fault = None
        self.stop = threading.Event()
        self._queue = []  # (when, number, kind, datum, value)
        self._number = 0
        self._pending = 0
        self._directory = Path(directory)
        self._directory.mkdir()
        self._files = [open(self._directory / f"sent-{i:02d}", "wb") for i in range(BUCKETS)]
        self._producer = Producer(
            {
                "bootstrap.servers": bootstrap,
                "acks": "all",
                "enable.idempotence": True,
                "partitioner": "murmur2_random",
                "message.max.bytes": topics.LARGEST,
                "message.timeout.ms": 0,
                "linger.ms": 5,
                "reconnect.backoff.max.ms": 500,
                "log_level": 3,
            }
        )
        self._thread = threading.Thread(target=self._run, daemon=True)

    # -- what is sent when --

    def _plan(self, when, kind, datum, value=None):
        self._number += 1
        heapq.heappush(self._queue, (when, self._number, kind, datum, value))

    def _plan_session(self, now):
        rng = self.random
        self.begun += 1
        suspend = make_suspend(rng, self.begun)
        self._plan(now, "suspends", suspend)
        odd = rng.random()
        if odd < 0.02:
            self._plan(now + rng.random() * 5, "suspends", suspend)  # sent twice, the same bytes
            self.counts["suspends twice"] += 1
        elif odd < 0.03:
            other = dict(suspend, agent_version="another")
            self._plan(now + 0.5 + rng.random() * 5, "suspends", other)  # a conflict
            self.counts["suspends in conflict"] += 1
        elif odd < 0.05:
            later = records.make_suspend(session_id=suspend["session_id"], suspend_seq=2)
            self._plan(now + rng.random() * 20, "suspends", later)
            self._plan_decisions(now + rng.random() * 30, later)
            self.counts["suspends superseding"] += 1
        elif odd < 0.055:
            broken = records.make_suspend(session_id=suspend["session_id"])
            self._plan(now, "bad", broken, b"\xc3\x01nothing that Avro knows")
            self.counts["bad records"] += 1
        elif odd < 0.06:
            orphan = dict(suspend, checkpoint_id=records.uuid7())
            self._plan(now, "approvals", dict(records.make_approval(orphan), checkpoint_digest=None))
            self.counts["decisions about nothing"] += 1
        if rng.random() >= 0.04:
            self._plan_decisions(now, suspend)

    def _plan_decisions(self, now, suspend):
        """Most come within seconds, some before their suspend, some when others have long been restored."""
        rng = self.random
        kind = rng.random()
        if kind < 0.1:
            at = now - 1.0 - rng.random()
            self.counts["decided early"] += 1
        elif kind < 0.9:
            at = now + rng.expovariate(1 / 4.0)
        else:
            at = now + rng.random() * 60.0
        plan = load.Plan()
        for offset, decision in enumerate(load.decisions_on(rng, suspend, plan)):
            self._plan(at + offset * 0.01, "approvals", decision)
        if rng.random() < 0.02:
            self._plan(at + rng.random(), "approvals", self._wrong(suspend))
            self.counts["for another proposal"] += 1
        self.counts["decided twice"] += plan.doubled
        self.counts["decided in conflict"] += plan.conflicting

    def _wrong(self, suspend):
        wrong = records.make_approval(suspend, decided_by=by("mallory"))
        return dict(wrong, checkpoint_digest=self.random.randbytes(32))

    # -- sending --

    def start(self):
        """Begin."""
        self._thread.start()

    @property
    def alive(self):
        """Whether it still sends."""
        return self._thread.is_alive()

    @property
    def pending(self):
        """How many records have not been acknowledged."""
        return self._pending

    def join(self, timeout):
        """Everything is sent and acknowledged."""
        self._thread.join(timeout)
        if self.fault is not None:
            raise self.fault
        if self._thread.is_alive():
            raise AssertionError(f"{self._pending} records were not acknowledged in {timeout:.0f} s")

    def _run(self):
        try:
            self._send_all()
        except Exception as fault:  # pylint: disable=broad-except  # shown by join()
            self.fault = fault
        finally:
            for each in self._files:
                each.close()

    def _send_all(self):
        began = time.monotonic()
        ahead = 3.0  # sessions are planned so long before they begin: decisions may be early
        while not self.stop.is_set():
            now = time.monotonic()
            due = (now - began) / self.seconds * self.sessions
            while self.begun < min(due, self.sessions):
                self._plan_session(now + ahead)
            while self._queue and self._queue[0][0] <= now and self._pending < MOST_PENDING:
                self._send(*heapq.heappop(self._queue)[2:])
            if self.begun >= self.sessions and not self._queue:
                break
            self._producer.poll(0.01)
        while self._pending and self.fault is None:
            self._producer.poll(0.5)

    def _send(self, kind, datum, value):
        if value is None:
            suspend = kind == "suspends"
            value = records.encode_suspend(datum) if suspend else records.encode_approval(datum)
        topic = self.names["approvals" if kind == "approvals" else "suspends"]
        key = datum["checkpoint_id"]

        def acked(error, message):
            self._pending -= 1
            if error is not None:
                self.fault = self.fault or AssertionError(f"Kafka refused a record of ours: {error}")
                return
            place = topics.Ack(
                message.topic(), message.partition(), message.offset(), message.timestamp()[1]
            )
            file = self._files[bucket_of(datum["session_id"])]
            pickle.dump((kind, datum, value, place), file, pickle.HIGHEST_PROTOCOL)
            self.counts[kind] += 1

        self._pending += 1
        self._producer.produce(topic, value=value, key=key, on_delivery=acked)
        self._producer.poll(0)


def sent_of(directory, bucket):
    """(kind, datum, value, ack) of all that a load has sent for the sessions of a bucket."""
    with open(Path(directory) / f"sent-{bucket:02d}", "rb") as file:
        while True:
            try:
                yield pickle.load(file)
            except EOFError:
                return
