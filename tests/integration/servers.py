"""The real broker, the real database and the real schema registry that the tests run against.

Each is started once a run by scripts/kafka, scripts/postgres and scripts/apicurio, in a directory of
its own, when a test asks for it, and stopped at the end. FERMATA_TEST_KAFKA (bootstrap.servers),
FERMATA_TEST_DSN (libpq connection string of a role that may create databases) and
FERMATA_TEST_REGISTRY (base address) name servers that are there already; those are left as they are. FERMATA_TEST_KEEP=1 keeps the directory and says where it is.
"""

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import psycopg2
import psycopg2.extensions
from confluent_kafka.admin import AdminClient

from waiting import wait_for

ROOT = Path(__file__).resolve().parents[2]
KAFKA = ROOT / "scripts" / "kafka"
POSTGRES = ROOT / "scripts" / "postgres"
APICURIO = ROOT / "scripts" / "apicurio"
NOT_TO_BE_HAD = 69
SCRIPT_SECONDS = 600  # the first fetch of the broker goes over the network


class Unavailable(Exception):
    """A server cannot be had on this machine; the message is one line."""


def work_directory(prefix="fermata-test-"):
    """A fresh directory that the database's user can enter, whatever TMPDIR's mode."""
    path = Path(tempfile.mkdtemp(prefix=prefix))
    path.chmod(0o755)
    return path


def remove_directory(path):
    """Remove it, unless FERMATA_TEST_KEEP asks for it to stay."""
    if os.environ.get("FERMATA_TEST_KEEP"):
        print(f"kept: {path}")
    else:
        shutil.rmtree(path, ignore_errors=True)


def _script(*argv):
    done = subprocess.run(
        [str(each) for each in argv],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        timeout=SCRIPT_SECONDS,
        check=False,
    )
    if done.returncode == NOT_TO_BE_HAD:
        raise Unavailable(done.stderr.strip().splitlines()[-1])
    if done.returncode != 0:
        raise RuntimeError(f"{argv} ended with {done.returncode}: {done.stderr.strip()}")
    return done.stdout.strip()


class Kafka:
    """A broker of ours in a directory, or a foreign one that can only be used."""

    def __init__(self, directory=None, bootstrap=None, proxy_port=None):
        self.directory = directory
        self.bootstrap = bootstrap
        self.proxy_port = proxy_port
        self.running = bootstrap is not None

    @property
    def ours(self):
        """Whether it may be stopped and killed."""
        return self.directory is not None

    @property
    def upstream(self):
        """Where a proxy on proxy_port passes connections on to: "host:port"."""
        return (self.directory / "kafka.upstream").read_text().strip()

    def start(self):
        """Start, or start again on the same port and data; waits until it answers."""
        argv = [KAFKA, "start", self.directory]
        if self.proxy_port is not None:
            argv += ["--proxy-port", self.proxy_port]
        self.bootstrap = _script(*argv)
        self.running = True
        self.wait_until_ready()
        return self

    def wait_until_ready(self):
        """Wait until clients get the broker's metadata."""
        admin = AdminClient({"bootstrap.servers": self.bootstrap})
        wait_for(lambda: admin.list_topics(timeout=30).brokers, f"a broker at {self.bootstrap}")

    def stop(self):
        """A clean stop."""
        if self.ours:
            self.running = False
            _script(KAFKA, "stop", self.directory)

    def kill(self):
        """kill -9."""
        self.running = False
        _script(KAFKA, "kill", self.directory)


class Postgres:
    """A cluster of ours in a directory, or a foreign one that can only be used."""

    def __init__(self, directory=None, dsn=None):
        self.directory = directory
        self.dsn = dsn

    @property
    def ours(self):
        """Whether it may be stopped and killed."""
        return self.directory is not None

    @property
    def data(self):
        """The data directory; None when it is not on this machine or not ours to read."""
        if self.ours:
            return self.directory / "pgdata"
        connection = self.connect()
        try:
            with connection.cursor() as cursor:
                cursor.execute("SHOW data_directory")
                path = Path(cursor.fetchone()[0])
        except psycopg2.Error:
            return None
        finally:
            connection.close()
        return path if os.access(path / "base", os.R_OK) else None

    def start(self):
        """Start, or start again on the same port and data; waits until it answers."""
        self.dsn = _script(POSTGRES, "start", self.directory)
        return self

    def stop(self, immediate=False):
        """A fast stop; an immediate one leaves recovery to the next start."""
        if self.ours:
            _script(POSTGRES, "stop", self.directory, *(["--immediate"] if immediate else []))

    def kill(self):
        """kill -9 of the postmaster and its children."""
        _script(POSTGRES, "kill", self.directory)

    def dsn_of(self, database):
        """The connection string of another database of the cluster."""
        return psycopg2.extensions.make_dsn(self.dsn, dbname=database)

    def connect(self, database=None):
        """An autocommit connection."""
        connection = psycopg2.connect(self.dsn_of(database) if database else self.dsn)
        connection.autocommit = True
        return connection

    def execute(self, statement, database=None):
        """One statement on a connection of its own."""
        connection = self.connect(database)
        try:
            with connection.cursor() as cursor:
                cursor.execute(statement)
        finally:
            connection.close()

    def create_database(self, name, template="template0"):
        """A new database for one test."""
        self.execute(f'CREATE DATABASE "{name}" TEMPLATE "{template}"')

    def drop_database(self, name):
        """Drop it, whoever is still connected."""
        self.execute(f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)')


class Registry:
    """A schema registry of ours in a directory, or a foreign one that can only be used."""

    def __init__(self, directory=None, url=None):
        self.directory = directory
        self.url = url

    @property
    def ours(self):
        """Whether it may be stopped and killed."""
        return self.directory is not None

    def start(self):
        """Start, or start again on the same port and data; waits until it answers."""
        self.url = _script(APICURIO, "start", self.directory)
        return self

    def stop(self):
        """A clean stop."""
        if self.ours:
            _script(APICURIO, "stop", self.directory)

    def kill(self):
        """kill -9."""
        _script(APICURIO, "kill", self.directory)


def start_kafka(directory):
    """The broker of the run: a foreign one when the environment names it, else ours."""
    given = os.environ.get("FERMATA_TEST_KAFKA")
    if given:
        broker = Kafka(bootstrap=given)
        broker.wait_until_ready()
        return broker
    return Kafka(directory / "kafka").start()


def start_postgres(directory):
    """The cluster of the run: a foreign one when the environment names it, else ours."""
    given = os.environ.get("FERMATA_TEST_DSN")
    if given:
        return Postgres(dsn=given)
    return Postgres(directory / "postgres").start()


def start_registry(directory):
    """The schema registry of the run: a foreign one when the environment names it, else ours."""
    given = os.environ.get("FERMATA_TEST_REGISTRY")
    if given:
        return Registry(url=given)
    return Registry(directory / "registry").start()
