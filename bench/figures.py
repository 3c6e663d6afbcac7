#!/usr/bin/python3
"""Throughput and latency of this machine, with a COPY of the same rows beside it.

    bench/figures.py [--sessions 20000] [--asleep 100000] [--latency-seconds 20]

Starts a broker and a cluster (or takes FERMATA_TEST_KAFKA and FERMATA_TEST_DSN), runs the worker of
FERMATA_BIN (default build/bin), and prints what it measured, as JSON lines. Figures of a shared machine are
worth only as ratios: suspends and COPY are measured in one run, one after the other.
"""

import argparse
import io
import json
import os
import random
import sys
import tempfile
import threading
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests" / "integration"))
sys.path.insert(0, str(ROOT / "tests" / "fault"))

import load  # noqa: E402
import records  # noqa: E402
import servers  # noqa: E402
import topics  # noqa: E402
import world as worlds  # noqa: E402

PARTITIONS = 6
COPY_ROWS = 256
RATE = 50  # decisions a second, for the latency


def say(**figures):
    """One line."""
    print(json.dumps(figures), flush=True)


def make_suspend(rng, number, size):
    """A session whose history compresses as chat does."""
    entries = [records.entry("SYSTEM", load.text(rng, 80))]
    left = size - 700  # the rest of the record
    while left > 0:
        role = rng.choice(["USER", "AGENT"])
        length = min(left, rng.randint(150, 600))
        entries.append(records.entry(role, f"{rng.getrandbits(64):x} {load.text(rng, length)}"))
        left -= length + 24
    return records.make_suspend(session_id=f"bench-{number}", history=entries)


def send_suspends(world, count, size, first=0):
    """Puts suspends on the topic; returns their data and values."""
    rng = random.Random(size)
    models = [make_suspend(rng, i, size) for i in range(200)]
    sent = []
    for start in range(0, count, 2000):
        batch = []
        for number in range(start, min(count, start + 2000)):
            datum = dict(models[number % len(models)])
            datum["checkpoint_id"] = records.uuid7()
            datum["session_id"] = f"bench-{first + number}"
            datum["salt"] = os.urandom(16)
            value = records.encode_suspend(datum)
            batch.append((world.topics["suspends"], value, datum["checkpoint_id"]))
            sent.append((datum["checkpoint_id"], datum["session_id"]))
        world.sender.send_all(batch)
    return sent


def send_approvals(world, sent):
    """Approves everything."""
    for start in range(0, len(sent), 2000):
        batch = []
        for checkpoint_id, session_id in sent[start : start + 2000]:
            datum = records.make_approval(checkpoint_id=checkpoint_id, session_id=session_id)
            value = records.encode_approval(datum)
            batch.append((world.topics["approvals"], value, checkpoint_id))
        world.sender.send_all(batch)


def taken_in(world, kind):
    """Records of a topic that the positions are past."""
    topic = world.topics[kind]
    rows = world.sql("SELECT sum(next)::bigint FROM fermata.kafka_offset WHERE topic = %s", topic)
    return rows[0][0] or 0


def timed(start_value, target, look):
    """Seconds and amount between the first progress seen and the target."""
    while look() <= start_value:
        time.sleep(0.002)
    began, at = time.monotonic(), look()
    while look() < target:
        time.sleep(0.005)
    return time.monotonic() - began, target - at


def copy_again(world, count):
    """A binary COPY of the same rows into tables of the same make, a commit every 256 rows."""
    connection = world.postgres.connect(world.name)
    cursor = connection.cursor()
    cursor.execute("CREATE TABLE copy_checkpoint (LIKE fermata.checkpoint INCLUDING ALL)")
    cursor.execute("CREATE TABLE copy_payload (LIKE fermata.payload INCLUDING ALL)")
    cursor.execute("ALTER TABLE copy_payload ALTER COLUMN body SET STORAGE EXTERNAL")
    connection.commit()
    cursor.execute("SELECT checkpoint_id FROM fermata.checkpoint ORDER BY appended_at DESC LIMIT %s", (count,))
    ids = [row[0] for row in cursor.fetchall()]
    chunks = []
    for start in range(0, len(ids), COPY_ROWS):
        some = ",".join(f"'{each}'" for each in ids[start : start + COPY_ROWS])
        pair = []
        for table in ("checkpoint", "payload"):
            out = io.BytesIO()
            cursor.copy_expert(
                f"COPY (SELECT * FROM fermata.{table} WHERE checkpoint_id IN ({some}))"
                " TO STDOUT (FORMAT binary)",
                out,
            )
            pair.append(out.getvalue())
        chunks.append(pair)
    connection.commit()
    began = time.monotonic()
    for pair in chunks:
        for table, data in zip(("copy_checkpoint", "copy_payload"), pair):
            cursor.copy_expert(f"COPY {table} FROM STDIN (FORMAT binary)", io.BytesIO(data))
        connection.commit()
    seconds = time.monotonic() - began
    cursor.execute("DROP TABLE copy_checkpoint, copy_payload")
    connection.commit()
    connection.close()
    return len(ids) / seconds


def rss_mib(pid):
    """Resident memory of a process."""
    for line in Path(f"/proc/{pid}/status").read_text(encoding="utf-8").splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1024
    return 0.0


def throughput(world, count, size):
    """Suspends waiting on the topic, then their approvals waiting on theirs."""
    before = taken_in(world, "suspends")
    sent = send_suspends(world, count, size, first=size * 100_000)
    worker = world.start_worker("-X", "log.level=warn")
    seconds, amount = timed(before, before + count, lambda: taken_in(world, "suspends"))
    suspends = amount / seconds
    worker.stop()
    copied = copy_again(world, min(count, 20000))
    say(what="suspends/s", size=size, value=round(suspends), copy=round(copied), ratio=round(suspends / copied, 2))
    send_approvals(world, sent)
    resumed = "SELECT count(*) FROM fermata.checkpoint WHERE published"
    already = world.sql(resumed)[0][0]
    worker = world.start_worker("-X", "log.level=warn")
    seconds, amount = timed(already, already + count, lambda: world.sql(resumed)[0][0])
    say(what="resumes/s from decisions waiting on the topic", size=size, value=round(amount / seconds))
    worker.stop()


class Latency:
    """From the produce call of a decision to its resume, readable by a read_committed reader."""

    def __init__(self, world, seconds):
        self.world = world
        self.sent_at = {}
        self.latencies = []
        self.count = RATE * seconds

    def read(self):
        """Until every resume has come."""
        reader = topics.Reader(self.world.kafka.bootstrap, self.world.topics["resumes"], "ResumeEvent")
        reader.catch_up()
        self.ready.set()
        seen = len(reader.records)
        while len(self.latencies) < self.count:
            reader.poll(0.5)
            now = time.monotonic()
            for record in reader.records[seen:]:
                sent = self.sent_at.get(record.header("fermata-checkpoint-id"))
                if sent is not None:
                    self.latencies.append((now - sent) * 1000)
            seen = len(reader.records)
        reader.close()

    def run(self):
        """Paced decisions; returns (p50, p99) in ms."""
        sent = send_suspends(self.world, self.count, 2048, first=10_000_000)
        worker = self.world.start_worker("-X", "log.level=warn")
        self.world.settle(120)
        self.ready = threading.Event()
        thread = threading.Thread(target=self.read, daemon=True)
        thread.start()
        self.ready.wait(30)
        due = time.monotonic()
        for checkpoint_id, session_id in sent:
            due += 1 / RATE
            time.sleep(max(0.0, due - time.monotonic()))
            datum = records.make_approval(checkpoint_id=checkpoint_id, session_id=session_id)
            value = records.encode_approval(datum)
            self.sent_at[checkpoint_id] = time.monotonic()
            self.world.send("approvals", value, checkpoint_id)
        thread.join(60)
        worker.stop()
        ordered = sorted(self.latencies)
        return ordered[len(ordered) // 2], ordered[len(ordered) * 99 // 100]


def memory(world, count):
    """A worker's memory with many sessions asleep."""
    worker = world.start_worker("-X", "log.level=warn")
    target = taken_in(world, "suspends") + count
    send_suspends(world, count, 2048, first=20_000_000)
    world.wait(lambda: taken_in(world, "suspends") >= target, "the suspends to be in", 600)
    world.wait(lambda: not world.sql("SELECT 1 FROM fermata.gate_outbox LIMIT 1"), "gates to be out", 600)
    peak = rss_mib(worker.pid)
    time.sleep(20)  # what the allocators give back by themselves
    asleep = world.sql("SELECT count(*) FROM fermata.checkpoint WHERE state = 'PENDING'")[0][0]
    say(what="worker RSS, MiB", sessions_asleep=asleep, at_once=round(peak, 1), later=round(rss_mib(worker.pid), 1))
    worker.stop()


def main():
    """All of it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sessions", type=int, default=20000)
    parser.add_argument("--asleep", type=int, default=100000)
    parser.add_argument("--latency-seconds", type=int, default=20)
    options = parser.parse_args()
    directory = Path(tempfile.mkdtemp(prefix="fermata-bench."))
    directory.chmod(0o755)
    kafka, postgres = servers.start_kafka(directory), servers.start_postgres(directory)
    try:
        with worlds.World("bench", directory / "world", kafka, postgres, partitions=PARTITIONS) as world:
            throughput(world, options.sessions, 2048)
            throughput(world, options.sessions // 8, 32768)
            p50, p99 = Latency(world, options.latency_seconds).run()
            say(what="decision to resume readable at 50/s, ms", p50=round(p50, 1), p99=round(p99, 1))
            memory(world, options.asleep)
    finally:
        kafka.stop()
        postgres.stop()
        servers.remove_directory(directory)


if __name__ == "__main__":
    main()
