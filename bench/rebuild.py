#!/usr/bin/python3
"""How long `fermata rebuild` takes, and whether the tables are the same before and after.

    bench/rebuild.py [--checkpoints 100000] [--size 2048] [--worker]

Starts a broker and a cluster (or takes FERMATA_TEST_KAFKA and FERMATA_TEST_DSN), has a worker of FERMATA_BIN
(default build/bin) take everything in and publish it, loses the database, rebuilds it, and prints what it
measured as JSON lines, with the load of the machine. --worker: then the same by a plain worker.
"""

import argparse
import json
import os
import random
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests" / "integration"))
sys.path.insert(0, str(ROOT / "tests" / "fault"))

import load  # noqa: E402
import rebuilding  # noqa: E402
import records  # noqa: E402
import servers  # noqa: E402
import world as worlds  # noqa: E402

PARTITIONS = 6
MODELS = 100
BATCH = 5000
SESSION = "bench-00000000"
HOUR = 3600
OUT_OF_TEN = ["APPROVE"] * 6 + ["REJECT"] + [None] * 3  # what is decided on ten checkpoints


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


def digest(world):
    """{table: (rows, digest over all columns but those that a rebuild may change)}."""
    result = {}
    for table, left_out in rebuilding.MAY_DIFFER.items():
        columns = "".join(f" - '{name}'" for name in left_out)
        rows = world.sql(
            f"SELECT count(*), md5(string_agg(md5((to_jsonb(t){columns})::text), '' ORDER BY {table}_id))"
            f" FROM fermata.{table} t"
        )
        result[table] = rows[0]
    rows = world.sql(
        "SELECT count(*), md5(string_agg(checkpoint_id::text || day || octet_length(body), ''"
        " ORDER BY checkpoint_id)) FROM fermata.payload"
    )
    result["payload"] = rows[0]
    return result


def templates(size):
    """Records whose ids and salt can be put in their place without encoding them again."""
    rng = random.Random(size)
    found = []
    for number in range(MODELS):
        datum = make_suspend(rng, number, size)
        datum.update(session_id=SESSION, salt=bytes(16))
        found.append((datum["checkpoint_id"].encode(), records.encode_suspend(datum)))
    return found


def send(world, count, size):
    """Puts all of it on the topics: suspends, then decisions."""
    models = templates(size)
    approvals = {}
    for kind in ("APPROVE", "REJECT"):
        datum = records.make_approval(checkpoint_id=records.uuid7(), session_id=SESSION, decision=kind)
        approvals[kind] = (datum, records.encode_approval(datum))
    for start in range(0, count, BATCH):
        suspends, decisions = [], []
        for number in range(start, min(count, start + BATCH)):
            key, session = records.uuid7().encode(), f"bench-{number:08d}".encode()
            old, value = models[number % MODELS]
            value = value.replace(old, key, 1).replace(SESSION.encode(), session, 1)
            suspends.append((world.topics["suspends"], value[:-16] + os.urandom(16), key))
            kind = OUT_OF_TEN[number % len(OUT_OF_TEN)]
            if kind is None:
                continue
            datum, value = approvals[kind]
            for name, new in (("decision_id", records.uuid7().encode()), ("checkpoint_id", key)):
                value = value.replace(datum[name].encode(), new, 1)
            value = value.replace(SESSION.encode(), session, 1)
            decisions.append((world.topics["approvals"], value, key))
        world.sender.send_all(suspends)
        world.sender.send_all(decisions)


def by_worker(world, what):
    """A worker takes in and publishes what is on the topics; returns the seconds."""
    began = time.monotonic()
    world.run("worker", "--drain", "-X", "log.level=warn", timeout=HOUR)
    seconds = time.monotonic() - began
    say(what=what, seconds=round(seconds, 1), load=os.getloadavg()[0])
    return seconds


def by_rebuild(world, count):
    """The database is lost, and rebuilt."""
    rebuilding.empty_database(world)
    began = time.monotonic()
    done = world.run("rebuild", "--json", timeout=HOUR)
    seconds = time.monotonic() - began
    say(
        what="fermata rebuild",
        checkpoints=count,
        seconds=round(seconds, 1),
        checkpoints_per_s=round(count / seconds),
        load=os.getloadavg()[0],
    )
    for line in done.json:
        if line.get("count"):
            print(json.dumps(line), flush=True)


def measure(world, options):
    """Everything, one after the other."""
    began = time.monotonic()
    send(world, options.checkpoints, options.size)
    say(what="records sent", seconds=round(time.monotonic() - began, 1))
    by_worker(world, "a worker takes all in, and publishes")
    before, published = digest(world), len(world.read("resumes")) if options.checkpoints < 20000 else None
    by_rebuild(world, options.checkpoints)
    after = digest(world)
    same = before == after
    say(what="digests before and after", same=same, before=before, after=after)
    if published is not None:
        same = same and published == len(world.read("resumes"))
    if options.worker:
        rebuilding.empty_database(world)
        by_worker(world, "a worker on the empty database")
        after = digest(world)
        say(what="digests before and after the worker's", same=before == after)
        same = same and before == after
    return 0 if same else 1


def main():
    """Reads the options, starts what is needed, measures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--checkpoints", type=int, default=100_000)
    parser.add_argument("--size", type=int, default=2048, help="bytes of a suspend")
    parser.add_argument("--worker", action="store_true", help="a plain worker's rebuild as well")
    options = parser.parse_args()
    directory = servers.work_directory()
    kafka = postgres = None
    try:
        kafka, postgres = servers.start_kafka(directory), servers.start_postgres(directory)
        with tempfile.TemporaryDirectory() as home:
            with worlds.World("bench-rebuild", Path(home), kafka, postgres, partitions=PARTITIONS) as world:
                return measure(world, options)
    finally:
        for server in (kafka, postgres):
            if server is not None:
                server.stop()
        servers.remove_directory(directory)


if __name__ == "__main__":
    sys.exit(main())
