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


def test_a_database_without_tables(make_world):
    """It names the command that mends it."""
    world = make_world(migrate=False)
    world.run("keys", "generate")
    done = world.run("doctor", rc=1)
    assert "fermata migrate" in done.out
