"""`fermata bench` measures, and leaves nothing behind: neither at its end nor when it is interrupted."""

import os
import re
import signal
import subprocess

import pytest
from confluent_kafka.admin import AdminClient

from test_demo import hear_interrupts
from waiting import wait_for

SECONDS = 400
QUICK = ("--quick", "--sessions", "1500", "--asleep", "1500", "--seconds", "2", "--size", "2KiB")
FIGURES = {
    ("suspend", "suspends, waiting on the topic", "COPY of the same rows"),
    ("suspend", "suspends, waiting on the topic", "COPY, unsealed, uncompressed"),
    ("suspend", "suspends, waiting on the topic", "plain consumption"),
    ("asleep", "memory of the worker, at once", None),
    ("asleep", "memory of the worker, after a rest", None),
    ("asleep", "memory of the worker, after a rest", "with few asleep"),
    ("asleep", "stored for a session asleep", "zstd -3 of the same, and 700"),
    ("restart", "ready again, once it was stopped", None),
    ("decide", "resumes, decisions waiting on the topic", None),
    ("outbox", "resumes, from a full outbox", "bare transactional produce"),
    ("together", "sessions, suspend and resume at once", "the two apart, in turn"),
    ("latency", "decision to resume, p50", "its parts, each alone"),
    ("latency", "decision to resume, p99", "p50"),
    ("latency", "decision to resume, max", None),
}


class Around:
    """What is in the servers that a measurement made."""

    def __init__(self, world):
        self.world = world
        self.admin = AdminClient({"bootstrap.servers": world.kafka.bootstrap})

    def left(self):
        """The names of topics, groups and databases of measurements."""
        databases = self.world.sql("SELECT datname FROM pg_database WHERE datname LIKE 'fermata_bench_%%'")
        topics = [name for name in self.admin.list_topics(timeout=10).topics if "fermata-bench" in name]
        groups = [each.id for each in self.admin.list_groups(timeout=10) if "fermata-bench" in each.id]
        return [row[0] for row in databases] + topics + groups


def find(figures, phase, what, limit_of=None):
    """The one figure."""
    found = [
        each
        for each in figures
        if (each["phase"], each["what"], each.get("limit_of")) == (phase, what, limit_of)
    ]
    assert len(found) == 1, (phase, what, limit_of, figures)
    return found[0]


@pytest.mark.slow
def test_quick_run(shared):
    """All figures are there, and can be; nothing is left."""
    around = Around(shared)
    before = set(around.left())
    done = shared.run("bench", *QUICK, "--json", timeout=SECONDS)
    figures = done.json
    assert FIGURES <= {(each["phase"], each["what"], each.get("limit_of")) for each in figures}
    for each in figures:
        assert each["size"] == 2048 and each["value"] > 0, each
        if "limit" in each:
            assert each["ratio"] == pytest.approx(each["value"] / each["limit"], rel=0.02, abs=0.001)
        if "goal" in each:
            measured = each[each["goal_of"]]
            met = measured <= each["goal"] if each["goal_is"] == "at_most" else measured >= each["goal"]
            assert each["met"] == met or measured == pytest.approx(each["goal"], rel=0.01), each
    copied = find(figures, "suspend", "suspends, waiting on the topic", "COPY of the same rows")
    assert 10 < copied["value"] < copied["limit"] * 20 and copied["count"] > 100
    memory = find(figures, "asleep", "memory of the worker, at once")
    assert 5 < memory["value"] < 512
    stored = find(figures, "asleep", "stored for a session asleep", "zstd -3 of the same, and 700")
    assert 700 < stored["limit"] < 2048 + 700 and 1000 < stored["value"] < 10000
    p50, p99, most = (find(figures, "latency", f"decision to resume, {what}", limit) for what, limit in (
        ("p50", "its parts, each alone"), ("p99", "p50"), ("max", None)))
    assert 0.5 < p50["value"] <= p99["value"] <= most["value"]
    assert set(around.left()) <= before


@pytest.mark.slow
def test_rounds_and_settled(shared):
    """Every round has its figures, and what is measured among settled rows stands beside the same without."""
    around = Around(shared)
    before = set(around.left())
    words = ("--rounds", "2", "--settled", "3000", "--phase", "outbox", "--json")
    figures = shared.run("bench", *QUICK, *words, timeout=SECONDS).json
    shape = [(each["round"], each["settled"], each["limit_of"]) for each in figures]
    bare, empty = "bare transactional produce", "on empty tables"
    assert shape == [(n, rows, of) for n in (1, 2) for rows, of in ((0, bare), (3000, bare), (3000, empty))]
    for number in (0, 3):
        assert figures[number + 2]["value"] == figures[number + 1]["value"]
        assert figures[number + 2]["limit"] == figures[number]["value"]
    assert set(around.left()) <= before


@pytest.mark.slow
@pytest.mark.parametrize(
    "number, moment, phase",
    [
        (signal.SIGTERM, "making databases", "outbox"),
        (signal.SIGINT, "filling the outbox", "outbox"),
        (signal.SIGINT, "the tables are vacuumed", "growth"),
    ],
)
def test_interrupted(shared, number, moment, phase):
    """It says so by its exit code, and nothing is left."""
    around = Around(shared)
    before = set(around.left())
    argv = shared.argv("bench", *QUICK, "--phase", phase)
    with subprocess.Popen(
        argv, env=os.environ, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, preexec_fn=hear_interrupts
    ) as process:
        for line in process.stderr:
            if moment in line:
                process.send_signal(number)
                break
        rest = process.stderr.read()
        assert process.wait(SECONDS) == 128 + number, rest
    assert not re.search("could not be removed", rest)
    assert set(around.left()) <= before


def test_phases_by_name(shared):
    """A phase that is none is a mistake of usage, and nothing is made."""
    done = shared.run("bench", "--phase", "sleeping", rc=2)
    assert "latency" in done.err and done.out == ""
    done = shared.run("bench", "--size", "1", rc=2)
    assert "1KiB" in done.err


def test_servers_away(shared):
    """A broker that is away, and a right that is missing: what is wrong, and what to do."""
    done = shared.run("bench", "--quick", "-X", "kafka.bootstrap.servers=127.0.0.1:1", rc=69)
    assert "127.0.0.1:1" in done.err and "bootstrap.servers" in done.err


def test_right_to_make_databases(shared, postgres):
    """Whose user may not make databases is told so, and what to do."""
    role = f"bench_{os.getpid()}"
    shared.sql(f"CREATE ROLE {role} LOGIN PASSWORD 'secret' NOCREATEDB")
    try:
        dsn = re.sub(r"user=\S+", f"user={role}", postgres.dsn_of(shared.name))
        dsn = re.sub(r"password=\S+", "password=secret", dsn)
        done = shared.run("bench", "--quick", "-X", f"postgres.dsn={dsn}", rc=2)
        assert "CREATEDB" in done.err and "--dev" in done.err
    finally:
        shared.sql(f"DROP ROLE {role}")
