"""A worker's memory is bounded by its settings, whatever lies on the topics: a backlog of the largest records, of records of
very many values, of tiny ones, and of the resumes of all of them. deploy/README.md has the bound that operators reckon with. And
what a record took goes back when it is over."""

import re
from pathlib import Path

import pytest

import records
from avrolib import Raw, long
from letters import SUSPEND
from waiting import wait_for

MIB = 1 << 20
PARTITIONS = 4
SETTINGS = {key: f"{MIB}" for key in ("limits.record_bytes", "worker.batch_bytes", "worker.relay_bytes")}


def ceiling(size, shards):
    """The bound in MiB, as deploy/README.md says, where all three settings are `size` MiB."""
    return 40 + 5 * size + 10 * size + shards * (3 + 9) * size + min(30 + 56 * size, 600)


CEILING = ceiling(1, PARTITIONS)
BACKLOG_SECONDS = 240
ENTRY = b"\x02\x20" + b"x" * 16 + b"\0\0\0\0"  # USER and 16 letters: of fewer bytes there would be too many values
MOST_ENTRIES = 40_000

pytestmark = pytest.mark.slow


def memory_mib(worker, name):
    """A line of what the kernel counts: VmHWM is the most memory that it ever had, VmRSS what it has."""
    status = Path(f"/proc/{worker.pid}/status").read_text(encoding="ascii")
    return int(re.search(name + r":\s+(\d+) kB", status).group(1)) / 1024


def largest():
    """A record of all the bytes that are allowed, which compression makes no smaller than base 64 is."""
    datum = records.make_suspend(history=[records.entry("USER", "")])
    room = MIB - len(SUSPEND.encode(datum)) - 2  # the length of the text takes 2 bytes more
    datum["history"][0]["content"] = records.noise(room)
    return datum, SUSPEND.encode(datum)


def fullest():
    """A record of very many values."""
    datum = records.make_suspend()
    history = Raw(long(MOST_ENTRIES) + ENTRY * MOST_ENTRIES + long(0))
    return datum, SUSPEND.lie(dict(datum, history=history))


def smallest():
    """A record of hardly anything."""
    datum = records.make_suspend(history=[], config={}, tool_permissions={})
    return datum, SUSPEND.encode(datum)


BACKLOGS = {"largest": (largest, 96), "fullest": (fullest, 32), "smallest": (smallest, 3000)}


def put(world, kind, values):
    """On all partitions in turn."""
    topic = world.topics[kind]
    rows = [(topic, value, b"k", None, i % PARTITIONS) for i, value in enumerate(values)]
    for at in range(0, len(rows), 16):
        world.sender.send_all(rows[at : at + 16])


def peak_until(world, state, count):
    """The most memory of a worker that has nothing but a backlog before it."""
    worker = world.start_worker()
    sql = "SELECT count(*) FROM fermata.checkpoint WHERE state::text = %s"
    wait_for(
        lambda: world.sql(sql, state)[0][0] == count, f"{count} {state}", timeout=BACKLOG_SECONDS
    )
    peak = memory_mib(worker, "VmHWM")
    worker.stop(30)
    return peak


@pytest.mark.parametrize("what", BACKLOGS)
def test_a_backlog_is_no_question_of_memory(make_world, what):
    """Tens of times the bound stand on the topics, first to be taken in, then to be resumed."""
    make, count = BACKLOGS[what]
    world = make_world(partitions=PARTITIONS, settings=SETTINGS)
    made = [make() for _ in range(count)]
    assert len(made[0][1]) == MIB or what != "largest"
    put(world, "suspends", [value for _, value in made])
    asleep = peak_until(world, "PENDING", count)
    approvals = [records.make_approval(datum, checkpoint_digest=None) for datum, _ in made]
    put(world, "approvals", [records.encode_approval(each) for each in approvals])
    resumed = peak_until(world, "RESUMED", count)
    print(f"{what}: {asleep:.0f} and {resumed:.0f} MiB, at most {CEILING}")
    assert max(asleep, resumed) < CEILING


# ---- one record ----------------------------------------------------------------------------

DEFAULT_SIZE = 8  # MiB: of all three settings
VALUES_MOST = 1_999_000  # and a few that every record has
LABELS = 1_390_000  # as many as there is room for
LEFT_MIB = 50  # the room of so many values is 130 to 180


def many_texts(datum):
    """A record that is taken in: of no more values can it be, and each of them is a byte."""
    datum["step"]["path"] = Raw(long(VALUES_MOST) + bytes(VALUES_MOST) + long(0))
    datum["history"] = [records.entry("USER", "x" * 5_500_000)]  # the number hangs on the length


def many_labels(datum):
    """One that becomes a dead letter, once it is decoded: nothing takes more for a value."""
    letters = (b"%c%c%c%c" % tuple(48 + (i >> 6 * n & 63) for n in range(4)) for i in range(LABELS))
    datum["gate"]["labels"] = Raw(long(LABELS) + b"".join(long(4) + each + b"\0" for each in letters) + long(0))


@pytest.mark.parametrize("fill", [many_texts, many_labels])
def test_one_record_of_very_many_values(make_world, fill):
    """It may take hundreds of MiB while it is decoded. They go back, and are not kept for the next one."""
    world = make_world(partitions=1)
    worker = world.start_worker()
    datum = records.make_suspend()
    fill(datum)
    put(world, "suspends", [SUSPEND.lie(datum)])
    taken = "SELECT 1 FROM fermata.checkpoint WHERE state::text = 'PENDING'"
    wait_for(lambda: world.sql(taken) or world.read("dead_letters"), "it to be taken in", timeout=BACKLOG_SECONDS)
    assert bool(world.read("dead_letters")) == (fill is many_labels)
    wait_for(
        lambda: memory_mib(worker, "VmRSS") < LEFT_MIB,
        lambda: f"it to give back its memory: {memory_mib(worker, 'VmRSS'):.0f} MiB",
        timeout=60,
    )
    peak = memory_mib(worker, "VmHWM")
    print(f"{fill.__name__}: {memory_mib(worker, 'VmRSS'):.0f} MiB after {peak:.0f}, at most {ceiling(DEFAULT_SIZE, 1)}")
    assert peak < ceiling(DEFAULT_SIZE, 1)
