"""Fixtures: one broker and one cluster a run, a world of its own for each test."""

import contextlib
import os
import re
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))

import servers  # noqa: E402  (the path above makes it importable from anywhere)
import world  # noqa: E402

LEFT_OUT = []


def _have(start, directory, what):
    try:
        return start(directory)
    except servers.Unavailable as reason:
        LEFT_OUT.append(f"{what}: {reason}")
        if os.environ.get("FERMATA_TEST_REQUIRE"):
            raise
        pytest.skip(LEFT_OUT[-1])


def pytest_terminal_summary(terminalreporter):
    """Say in one line each what was left out, and why."""
    for line in LEFT_OUT:
        terminalreporter.write_line(f"LEFT OUT, everything that needs a real {line}")


def pytest_configure(config):
    """The marker that `check --quick` leaves out."""
    config.addinivalue_line("markers", "slow: takes more than a few seconds")


@pytest.fixture(scope="session")
def work_directory():
    """The directory of the run, removed at its end."""
    directory = servers.work_directory()
    yield directory
    servers.remove_directory(directory)


@pytest.fixture(scope="session")
def kafka(work_directory):
    """The broker of the run. Tests that break the broker use private_kafka."""
    broker = _have(servers.start_kafka, work_directory, "Kafka")
    yield broker
    broker.stop()


@pytest.fixture(scope="session")
def postgres(work_directory):
    """The cluster of the run. Tests that break the cluster use private_postgres."""
    cluster = _have(servers.start_postgres, work_directory, "PostgreSQL")
    yield cluster
    cluster.stop()


@pytest.fixture(scope="session")
def registry(work_directory):
    """The schema registry of the run, for the few tests that need one: it takes 200 MB."""
    server = _have(servers.start_registry, work_directory, "schema registry")
    yield server
    server.stop()


@pytest.fixture
def private_directory():
    """A directory for servers of this test alone."""
    directory = servers.work_directory()
    yield directory
    servers.remove_directory(directory)


@pytest.fixture
def private_kafka(private_directory):
    """A broker that this test may stop, kill and start again."""
    broker = servers.Kafka(private_directory / "kafka")
    _have(lambda _: broker.start(), private_directory, "Kafka")
    yield broker
    broker.stop()


@pytest.fixture
def private_postgres(private_directory):
    """A cluster that this test may stop, kill and start again."""
    cluster = servers.Postgres(private_directory / "postgres")
    _have(lambda _: cluster.start(), private_directory, "PostgreSQL")
    yield cluster
    cluster.stop()


@pytest.fixture
def private_registry(private_directory):
    """A schema registry that this test may stop, kill and start again."""
    server = servers.Registry(private_directory / "registry")
    _have(lambda _: server.start(), private_directory, "schema registry")
    yield server
    server.stop()


@pytest.fixture
def make_world(kafka, postgres, tmp_path, request):
    """Builds worlds: make_world(partitions=2, settings={"limits.boundary": "strict"})."""
    with contextlib.ExitStack() as stack:
        count = 0

        def build(**options):
            nonlocal count
            count += 1
            name = re.sub(r"[^a-z0-9]+", "-", request.node.name.lower()).strip("-")[:40]
            options.setdefault("kafka", kafka)
            options.setdefault("postgres", postgres)
            directory = tmp_path / f"world-{count}"
            return stack.enter_context(world.World(name, directory, **options))

        yield build


@pytest.fixture(scope="module")
def shared(kafka, postgres, tmp_path_factory, request):
    """One world with a running worker for all tests of a module that do not disturb each other."""
    name = request.module.__name__.replace("_", "-")
    with world.World(name, tmp_path_factory.mktemp(name), kafka, postgres) as built:
        built.start_worker()
        yield built


@pytest.fixture
def fermata(make_world):
    """A world with topics, a database that is migrated and a keyring; no worker runs yet."""
    return make_world()


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    """Show the end of the workers' logs with every failure."""
    outcome = yield
    report = outcome.get_result()
    if report.when == "call" and report.failed:
        for name, text in world.logs_of_open_worlds():
            report.sections.append((f"end of {name}", text))
