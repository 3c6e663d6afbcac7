"""`fermata doctor` says what is wrong with a set-up."""


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


def test_a_database_without_tables(make_world):
    """It names the command that mends it."""
    world = make_world(migrate=False)
    world.run("keys", "generate")
    done = world.run("doctor", rc=1)
    assert "fermata migrate" in done.out
