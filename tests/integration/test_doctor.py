"""`fermata doctor` says what is wrong with a set-up."""

import topics

DAY_MS = 86_400_000


def lines(done):
    """The lines of the answer, by what they begin with."""
    return [line for line in done.out.splitlines() if line]


def test_a_good_one(fermata):
    """Everything that a worker needs is there."""
    done = fermata.run("doctor", "--json")
    found = {each["check"]: each for each in done.json if "check" in each}
    assert found, done
    assert all(each["result"] in ("ok", "warning") for each in found.values()), done


def test_the_group_of_the_installation(fermata):
    """Another worker.group on a database that has one is found before a worker is started."""
    fermata.run("worker", "--drain")
    done = fermata.run("doctor", "-X", "worker.group=somebody-else", rc=1)
    assert fermata.name in done.out


def test_another_partition_count(make_world):
    """A worker does not start where a resumes topic has grown, and the doctor knows."""
    world = make_world()
    world.run("worker", "--drain")
    world.run("doctor")
    world.sql("UPDATE fermata.resumes_topic SET partitions = partitions + 1")
    world.run("worker", "--drain", rc=2)
    done = world.run("doctor", rc=1)
    assert world.topics["resumes"] in done.out and "a worker can start" not in done.out


def test_another_cluster(make_world):
    """A database of another cluster: a worker does not start."""
    world = make_world()
    world.run("worker", "--drain")
    world.sql("UPDATE fermata.installation SET cluster_id = 'elsewhere'")
    world.run("worker", "--drain", rc=2)
    assert "elsewhere" in world.run("doctor", rc=1).out


def test_days_that_should_be_gone(make_world):
    """Sealed states that nobody drops are a warning."""
    world = make_world()
    world.sql("SELECT fermata.payload_day_make(current_date - 32)")
    assert "should be gone" not in world.run("doctor").out
    world.sql("SELECT fermata.payload_day_make(current_date - 40)")
    assert "1 days of sealed states should be gone" in world.run("doctor").out


def test_a_database_without_tables(make_world):
    """It names the command that mends it."""
    world = make_world(migrate=False)
    world.run("keys", "generate")
    done = world.run("doctor", rc=1)
    assert "fermata migrate" in done.out


def test_topics_that_break_promises(make_world):
    """Records that go too soon are a warning; dead letters that Kafka would refuse are wrong."""
    world = make_world()
    suspends, letters = f"{world.name}.short", f"{world.name}.compacted"
    options = ["-X", f"topics.suspends={suspends}", "-X", f"topics.dead_letters={letters}"]
    settings = {
        suspends: {"message.timestamp.type": "LogAppendTime", "retention.ms": str(29 * DAY_MS)},
        letters: {"cleanup.policy": "compact"},
    }
    topics.create_topics(world.kafka.bootstrap, {suspends: 2, letters: 2}, settings)
    created = world.run("topics", "create", *options).err.splitlines()
    done = world.run("doctor", "--json", *options, rc=1)
    found = {each["result"]: [] for each in done.json}
    for each in done.json:
        found[each["result"]].append(each["detail"])
    for lines in (created, found["warning"]):
        assert any(suspends in line and "topics.retention" in line for line in lines), lines
    for lines in (created, found["wrong"]):
        assert any(letters in line and "without a key" in line for line in lines), lines
    topics.delete_topics(world.kafka.bootstrap, [suspends, letters])
