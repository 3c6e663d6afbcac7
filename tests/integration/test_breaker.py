"""When most records of a topic fail, the partition is stopped rather than emptied into the letters."""

import pytest

import evolution
import records
import world as worlds
from acts import one_line
from rebuilding import empty_database
from test_health import page
from waiting import wait_for

WINDOW = 10
SETTINGS = {"worker.breaker_records": str(WINDOW)}


# ---- what there is --------------------------------------------------------------------------


def send_bad(world, count, partition=0):
    """Records that nobody can understand; their Acks."""
    return [world.send("suspends", b"bad", b"key", partition=partition) for _ in range(count)]


def row(world, partition=0, kind="suspends"):
    """(next, waits) of a partition."""
    found = world.sql(
        "SELECT next, waits FROM fermata.kafka_offset WHERE topic = %s AND partition = %s",
        world.topics[kind],
        partition,
    )
    return found[0] if found else None


def wait_stopped(world, partition=0):
    """Its row says that it is stopped."""
    world.wait(
        lambda: (row(world, partition) or (0, None))[1] == "breaker",
        lambda: f"partition {partition} to be stopped: {row(world, partition)}",
    )


def letters(world):
    """The offsets of the records of partition 0 that have a dead letter."""
    found = [worlds.letter_place(record) for record in world.read("dead_letters")]
    return sorted(int(offset) for _, partition, offset in found if partition == "0")


def audits(world):
    """What operators did to intake."""
    return world.sql("SELECT reason, details FROM fermata.audit WHERE what = 'intake.let_through'")


@pytest.fixture(name="world")
def fixture_world(make_world):
    """A world whose worker looks at the last ten records of a partition."""
    return make_world(partitions=2, settings=SETTINGS)


# ---- stopped --------------------------------------------------------------------------------


def test_stopped_said_and_let_through(world):
    """No letter after it is clear; the others go on; an operator sends the next N on all the same."""
    worker = world.start_worker()
    good = [world.suspend(partition=0) for _ in range(WINDOW)]
    world.wait_state(good[-1].id, "PENDING")
    bad = send_bad(world, 30)
    behind = world.suspend(partition=0)
    wait_stopped(world)
    sent = letters(world)
    assert len(sent) <= WINDOW // 2 and row(world)[0] <= bad[WINDOW // 2].offset
    other = world.suspend(partition=1)
    world.wait_state(other.id, "PENDING")
    world.decide(other)
    world.wait_resume(other.id)
    assert world.state(behind.id) is None

    status, text = page(worker, "/ready")
    assert status == 503 and "become dead letters: 1 (" in text
    assert "fermata_intake_stopped_partitions 1\n" in worker.metrics()
    assert f"STOPPED {world.topics['suspends']} [0]" in worker.log and "framing" in worker.log
    assert "fermata intake let-through" in worker.log
    doctor = world.run("doctor").out
    assert f"{world.topics['suspends']} [0]" in doctor and "let-through" in doctor

    let = ["intake", "let-through", world.topics["suspends"]]
    done = world.run(*let, "0", "--until", str(bad[19].offset + 1), "--reason", "an old agent")
    assert "goes on at offset" in done.out
    for ack in bad[:20]:
        world.wait_letter(ack)
    wait_stopped(world)  # those behind are not meant, but for the few that it takes to see that they fail
    stands = row(world)[0]
    assert bad[20].offset <= stands < bad[20].offset + WINDOW
    assert letters(world) == [ack.offset for ack in bad if ack.offset < stands]
    (answer,) = world.run(*let, "0", "--count", "1000", "--json").json
    assert answer["next"] == stands and answer["until"] == stands + 1000
    world.wait_state(behind.id, "PENDING")
    assert letters(world) == [ack.offset for ack in bad]
    world.wait(lambda: row(world)[1] is None, lambda: f"its row to say so: {row(world)}")
    wait_for(lambda: page(worker, "/ready")[0] == 200, "the worker to be ready")
    assert "fermata_intake_stopped_partitions 0\n" in worker.metrics()
    first, second = audits(world)
    assert first[0] == "an old agent" and f"below {bad[19].offset + 1}" in first[1]
    assert second[0] is None and f"{world.topics['suspends']}:0 from" in second[1]
    assert "is not stopped" in one_line(world.run(*let, "0", "--count", "5", rc=1))


def test_a_restart_does_not_let_it_through(world):
    """Whoever gets the partition next tries once, and stops again before any letter."""
    worker = world.start_worker()
    send_bad(world, 30)
    wait_stopped(world)
    before = letters(world)
    for how in ("stop", "kill"):
        getattr(worker, how)()
        worker = world.start_worker()
        wait_for(lambda: "STOPPED" in worker.log, "it to be tried and stopped again")
        assert row(world)[1] == "breaker" and letters(world) == before


def test_a_new_partition(world):
    """All of its first records fail: there is a row that says so, and no letter at all."""
    bad = send_bad(world, 30)
    world.start_worker()
    wait_stopped(world)
    assert row(world)[0] <= bad[0].offset + 1 and len(letters(world)) <= WINDOW
    other = world.suspend(partition=1)
    world.wait_state(other.id, "PENDING")


def test_a_lone_bad_record(world):
    """Half of them may fail, in any order, and at the start: nothing is stopped."""
    world.start_worker()
    bad = send_bad(world, 1)
    for _ in range(2 * WINDOW):
        world.suspend(partition=0)
        bad += send_bad(world, 1)
    last = world.suspend(partition=0)
    world.wait_state(last.id, "PENDING")
    assert letters(world) == [ack.offset for ack in bad]
    assert row(world)[1] is None


# ---- mended ---------------------------------------------------------------------------------


def test_mended_it_goes_on_by_itself(make_world, tmp_path):
    """The schema of a newer agent is deployed: all that waited is taken in, none of it is a letter."""
    folder = evolution.Folder(tmp_path / "schemas")
    world = make_world(partitions=1, settings={**SETTINGS, "schemas.path": str(folder.path)})
    worker = world.start_worker()
    good = [world.suspend() for _ in range(WINDOW)]
    world.wait_state(good[-1].id, "PENDING")
    schema, code = evolution.of_another_version(
        "SuspendEvent",
        lambda s: s["fields"].insert(3, {"name": "mood", "type": "string", "default": ""}),
    )
    sent = []
    for _ in range(40):
        datum = records.make_suspend()
        sent.append(world.send_suspend(datum, value=code.encode({**datum, "mood": "calm"})))
    wait_stopped(world)
    lost = letters(world)
    assert len(lost) <= WINDOW // 2 and "unknown_schema" in worker.log
    folder.writer(schema, name="fermata.v1.SuspendEvent", file="next")
    for each in sent:
        if each.ack.offset not in lost:
            world.wait_state(each.id, "PENDING")
    world.wait(lambda: row(world)[1] is None, lambda: f"its row to say so: {row(world)}")
    assert letters(world) == lost
    assert "goes on at offset" in worker.log


@pytest.mark.slow
def test_tried_each_minute(world):
    """Still broken, it is stopped again after a minute, without a letter."""
    worker = world.start_worker()
    send_bad(world, 30)
    wait_stopped(world)
    before = letters(world)
    wait_for(lambda: worker.log.count("STOPPED") >= 2, "a second try", timeout=90)
    assert letters(world) == before and row(world)[1] == "breaker"


# ---- drain, rebuild ---------------------------------------------------------------------------


def test_drain_ends_and_says_why(world):
    """75 when all the others are done; 0 once it was let through."""
    bad = send_bad(world, 30)
    other = world.suspend(partition=1)
    world.decide(other)
    for _ in range(2):  # the second one finds it stopped
        done = world.run("worker", "--drain", rc=75, timeout=120)
        assert "a partition is stopped" in done.err, done
    world.wait_state(other.id, "RESUMED")
    world.run("intake", "let-through", world.topics["suspends"], "0", "--count", "30")
    world.run("worker", "--drain", timeout=120)
    assert letters(world) == [ack.offset for ack in bad]


def test_a_rebuild_is_not_stopped(world):
    """Its letters are known: that they are most of the records is no news."""
    worker = world.start_worker()
    bad = send_bad(world, 30)
    behind = world.suspend(partition=0)
    wait_stopped(world)
    world.run("intake", "let-through", world.topics["suspends"], "0", "--count", "30")
    world.wait_state(behind.id, "PENDING")
    worker.stop()
    before = letters(world)
    assert before == [ack.offset for ack in bad]
    empty_database(world)
    world.run("rebuild")
    assert world.state(behind.id) == "PENDING" and letters(world) == before
    assert row(world)[1] is None


# ---- words ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "rc", "said"),
    [
        (["t", "0"], 2, "how far?"),
        (["t", "0", "--count", "1", "--until", "2"], 2, "how far?"),
        (["t", "x", "--count", "1"], 2, "x is no partition"),
        (["t", "-1", "--count", "1"], 2, ""),
        (["t", "0", "--count", "0"], 2, "--count 0"),
        (["t", "0", "--count", "9223372036854775808"], 2, "--count"),
        (["t", "0", "--until", "5x"], 2, "--until 5x"),
        (["t", "0", "--count", "1"], 1, "no worker has ever read t [0]"),
    ],
)
def test_what_is_wrong_is_said(shared, words, rc, said):
    """One line, and the exit code."""
    assert said in one_line(shared.run("intake", "let-through", *words, rc=rc))
