"""A world for one test: topics, a database, a keyring, a configuration, and the programs in it.

Nothing here knows how the product works inside; it uses the command line, the topics and the
tables that the contract names. FERMATA_BIN is the directory with the binaries (default
build/bin).
"""

import contextlib
import json
import os
import signal
import socket
import subprocess
import urllib.error
import urllib.request
import uuid
from dataclasses import dataclass
from pathlib import Path

import psycopg2

import avrolib
import records
import topics
from servers import ROOT
from waiting import TIMEOUT, wait_for

KINDS = {
    "suspends": "SuspendEvent",
    "approvals": "ApprovalEvent",
    "resumes": "ResumeEvent",
    "gates": "GateEvent",
    "dead_letters": None,
}
COMMAND_SECONDS = 60
STOP_SECONDS = 10  # the contract's promise for SIGTERM
LOG_TAIL = 6000

_open_worlds = []
_senders = {}


def binaries():
    """The directory with the product's binaries."""
    return Path(os.environ.get("FERMATA_BIN", ROOT / "build" / "bin"))


def logs_of_open_worlds():
    """(name, end of the text) of each worker's log."""
    for each in list(_open_worlds):
        for worker in each.workers:
            yield f"{worker.log_path.parent.name}/{worker.log_path.name}", worker.log[-LOG_TAIL:]


def sender_for(bootstrap):
    """The one plain producer of this process for a broker."""
    if bootstrap not in _senders:
        _senders[bootstrap] = topics.Sender(bootstrap)
    return _senders[bootstrap]


def free_port():
    """A loopback port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def clean_environment(**extra):
    """Our environment without any FERMATA_ variable but those given."""
    result = {key: value for key, value in os.environ.items() if not key.startswith("FERMATA_")}
    result.update(extra)
    return result


@dataclass
class Sent:
    """A suspend or an approval that Kafka acknowledged."""

    datum: dict
    value: bytes
    ack: topics.Ack

    @property
    def id(self):
        """The checkpoint_id."""
        return self.datum["checkpoint_id"]

    @property
    def decision_id(self):
        """The decision_id of an approval."""
        return self.datum["decision_id"]

    @property
    def digest(self):
        """The digest of a suspend."""
        return records.digest(self.value)


@dataclass
class Done:
    """A command that has ended."""

    argv: list
    rc: int
    out: str
    err: str

    @property
    def lines(self):
        """The lines on stdout (splitlines would also split at U+0085 inside JSON)."""
        return [line for line in self.out.split("\n") if line]

    @property
    def json(self):
        """One object for each line on stdout."""
        return [json.loads(line) for line in self.lines]

    def __str__(self):
        return f"{' '.join(self.argv)}: exit {self.rc}\nstdout: {self.out}\nstderr: {self.err}"


class Process:
    """A long-running program with its output in a file and a process group of its own."""

    def __init__(self, argv, log_path, env):
        self.log_path = log_path
        self.ended_by_us = False
        with open(log_path, "ab") as log:
            self._process = subprocess.Popen(
                argv,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=env,
                start_new_session=True,
            )
        self.pid = self._process.pid

    @property
    def alive(self):
        """Whether it still runs."""
        return self._process.poll() is None

    @property
    def rc(self):
        """Its exit code; negative for a signal, None while it runs."""
        return self._process.poll()

    @property
    def log(self):
        """All that it has written."""
        return self.log_path.read_text(encoding="utf-8", errors="replace")

    def _signal(self, number):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, number)

    def kill(self):
        """kill -9, and wait until it is gone."""
        self.ended_by_us = True
        self._signal(signal.SIGKILL)
        self._process.wait(TIMEOUT)

    def pause(self):
        """SIGSTOP."""
        self._signal(signal.SIGSTOP)

    def go_on(self):
        """SIGCONT."""
        self._signal(signal.SIGCONT)

    def hang_up(self):
        """SIGHUP."""
        self._signal(signal.SIGHUP)

    def stop(self, timeout=STOP_SECONDS):
        """SIGTERM; it must end with 0 within the time."""
        self.ended_by_us = True
        self._process.terminate()
        rc = self.wait(timeout)
        assert rc == 0, f"SIGTERM ended it with {rc}: {self.log[-LOG_TAIL:]}"

    def wait(self, timeout=TIMEOUT):
        """Wait for its end; returns the exit code."""
        try:
            return self._process.wait(timeout)
        except subprocess.TimeoutExpired:
            self.kill()
            raise AssertionError(
                f"pid {self.pid} did not end within {timeout} s: {self.log[-LOG_TAIL:]}"
            ) from None

    def end(self):
        """At the end of a test: away with it."""
        self.go_on()
        if not self.alive:
            return
        if os.environ.get("FERMATA_TEST_CLEAN_STOP"):
            self.stop()
        else:
            self.kill()


class Worker(Process):
    """A worker, with a metrics page of its own."""

    def __init__(self, argv, log_path, env, metrics_port):
        super().__init__(argv, log_path, env)
        self.metrics_port = metrics_port

    def _ask_metrics(self):
        url = f"http://127.0.0.1:{self.metrics_port}/metrics"
        try:
            with urllib.request.urlopen(url, timeout=10) as answer:
                return answer.read().decode()
        except urllib.error.URLError:
            return None

    def metrics(self):
        """The text of GET /metrics, once the worker listens."""
        return wait_for(self._ask_metrics, f"http://127.0.0.1:{self.metrics_port}/metrics")


class World:
    """Everything that one test needs, apart from every other test's."""

    def __init__(
        self,
        name,
        directory,
        kafka,
        postgres,
        partitions=2,
        settings=None,
        migrate=True,
        dead_letter_bytes=None,
    ):
        self.name = f"{name}-{uuid.uuid4().hex[:8]}"
        self.directory = Path(directory)
        self.kafka = kafka
        self.postgres = postgres
        self.partitions = partitions
        self.dead_letter_bytes = dead_letter_bytes
        self.topics = {kind: f"{self.name}.{kind.replace('_', '-')}" for kind in KINDS}
        self.settings = self._settings(settings or {})
        self.config_path = self.directory / "fermata.conf"
        self.workers = []
        self.suspends = []
        self.approvals = []
        self._migrate = migrate
        self._readers = {}
        self._connection = None

    def _settings(self, over):
        result = {
            "kafka.bootstrap.servers": self.kafka.bootstrap,
            "kafka.consumer.session.timeout.ms": "2000",
            "kafka.consumer.heartbeat.interval.ms": "400",
            "postgres.dsn": self.postgres.dsn_of(self.name),
            "vault.keyring_file": str(self.directory / "keyring"),
            "worker.group": self.name,
            "log.level": "debug",
        }
        result.update({f"topics.{kind}": topic for kind, topic in self.topics.items()})
        result.update(over)
        return result

    # -- coming and going --

    def __enter__(self):
        self.directory.mkdir(parents=True, exist_ok=True)
        self.write_config()
        _open_worlds.append(self)
        try:
            self.create_topics()
            self.postgres.create_database(self.name)
            if self._migrate:
                self.run("migrate")
                self.run("keys", "generate")
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, kind, value, traceback):
        unexpected = [w for w in self.workers if not w.alive and not w.ended_by_us]
        self.close()
        if kind is None and unexpected:
            raise AssertionError(
                f"a worker ended by itself with {unexpected[0].rc}: {unexpected[0].log[-LOG_TAIL:]}"
            )

    def close(self):
        """End what runs, and take away what was made."""
        for process in self.workers:
            process.end()
        for reader in self._readers.values():
            reader.close()
        self._readers.clear()
        if self._connection is not None:
            self._connection.close()
        with contextlib.suppress(Exception):  # the server may be what the test has broken
            self.postgres.drop_database(self.name)
        if self.kafka.running:
            with contextlib.suppress(Exception):
                topics.delete_topics(self.kafka.bootstrap, self.topics.values())
        _open_worlds.remove(self)

    def write_config(self, **over):
        """Write fermata.conf, with settings changed: write_config(limits__boundary="strict")."""
        self.settings.update({key.replace("__", "."): value for key, value in over.items()})
        lines = [f"{key} = {value}" for key, value in self.settings.items() if value is not None]
        self.config_path.write_text("\n".join(lines) + "\n", encoding="utf-8")

    def create_topics(self):
        """Make the topics as the contract wants them, without the product's help."""
        appended = {"message.timestamp.type": "LogAppendTime"}
        configs = {topic: dict(appended) for topic in self.topics.values()}
        configs[self.topics["gates"]] = {"cleanup.policy": "compact"}
        largest = self.dead_letter_bytes or topics.LARGEST
        configs[self.topics["dead_letters"]] = {"max.message.bytes": str(largest)}
        counts = {topic: self.partitions for topic in self.topics.values()}
        topics.create_topics(self.kafka.bootstrap, counts, configs)
        self.sender.prime(*self.topics.values())

    # -- the programs --

    def argv(self, *args, program="fermata", config=True):
        """The command line of a program with this world's configuration."""
        named = ["--config", str(self.config_path)] if config else []
        return [str(binaries() / program), *named, *map(str, args)]

    def run(self, *args, rc=0, stdin=None, env=None, timeout=COMMAND_SECONDS, config=True):
        """Run a command of the command line to its end. `rc` None takes any exit code."""
        argv = self.argv(*args, config=config)
        data = json.dumps(stdin) if isinstance(stdin, dict) else stdin
        done = subprocess.run(
            argv,
            input=data if data is not None else "",
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            encoding="utf-8",
            env=clean_environment(**(env or {})),
            cwd=self.directory,
            timeout=timeout,
            check=False,
        )
        result = Done(argv, done.returncode, done.stdout, done.stderr)
        assert rc is None or result.rc == rc, f"wanted exit {rc}: {result}"
        return result

    def start_worker(self, *args, env=None, program="fermata"):
        """Start a worker; it runs until the test ends it."""
        port = free_port()
        metrics = f"worker.metrics.listen=127.0.0.1:{port}"
        command = ["worker"] if program == "fermata" else []
        argv = self.argv(*command, "-X", metrics, *args, program=program)
        log_path = self.directory / f"worker-{len(self.workers) + 1}.log"
        worker = Worker(argv, log_path, clean_environment(**(env or {})), port)
        self.workers.append(worker)
        return worker

    def start(self, *args, log="process.log", env=None):
        """Start any long-running command; it is ended with the test at the latest."""
        process = Process(self.argv(*args), self.directory / log, clean_environment(**(env or {})))
        self.workers.append(process)
        return process

    def _alive(self):
        for worker in self.workers:
            if not worker.alive and not worker.ended_by_us:
                raise AssertionError(f"a worker ended with {worker.rc}: {worker.log[-LOG_TAIL:]}")

    # -- sending --

    @property
    def sender(self):
        """The producer for this world's broker."""
        return sender_for(self.kafka.bootstrap)

    def send(self, kind, value, key=None, headers=None, partition=-1):
        """Produce bytes to one of this world's topics; returns the Ack."""
        return self.sender.send(self.topics[kind], value, key, headers, partition)

    def send_suspend(self, datum, headers=None, partition=-1, value=None):
        """Produce a SuspendEvent; returns it as Sent and remembers it."""
        value = records.encode_suspend(datum) if value is None else value
        key = datum["checkpoint_id"].lower()
        sent = Sent(datum, value, self.send("suspends", value, key, headers, partition))
        self.suspends.append(sent)
        return sent

    def suspend(self, partition=-1, headers=None, **over):
        """Make and produce a SuspendEvent."""
        return self.send_suspend(records.make_suspend(**over), headers, partition)

    def send_approval(self, datum, headers=None, partition=-1, value=None):
        """Produce an ApprovalEvent; returns it as Sent and remembers it."""
        value = records.encode_approval(datum) if value is None else value
        key = datum["checkpoint_id"].lower()
        sent = Sent(datum, value, self.send("approvals", value, key, headers, partition))
        self.approvals.append(sent)
        return sent

    def decide(self, suspend=None, partition=-1, headers=None, **over):
        """Make and produce an ApprovalEvent on a Sent suspend (APPROVE when nothing is said)."""
        datum = records.make_approval(suspend.datum if suspend else None, **over)
        return self.send_approval(datum, headers, partition)

    # -- reading topics --

    def reader(self, kind):
        """The reader of this world for a topic; it keeps what it has read."""
        if kind not in self._readers:
            name = self.topics[kind]
            self._readers[kind] = topics.Reader(self.kafka.bootstrap, name, KINDS[kind])
        return self._readers[kind]

    def read(self, kind, isolation="read_committed"):
        """All records of a topic as of now, by a new reader."""
        reader = topics.Reader(self.kafka.bootstrap, self.topics[kind], KINDS[kind], isolation)
        try:
            return list(reader.catch_up())
        finally:
            reader.close()

    def wait_records(self, kind, condition, what, timeout=TIMEOUT):
        """Read a topic on until condition(records) is true; returns what it returned."""
        return self.reader(kind).wait(condition, what, timeout, self._alive)

    def wait_resume(self, checkpoint_id, timeout=TIMEOUT):
        """Wait for the resume of a checkpoint; returns the Record."""
        return self.wait_records(
            "resumes",
            lambda found: next(
                (r for r in found if r.datum["checkpoint_id"] == checkpoint_id), None
            ),
            lambda: f"the resume of {checkpoint_id} ({self.describe(checkpoint_id)})",
            timeout,
        )

    def wait_letter(self, ack, timeout=TIMEOUT):
        """Wait for the dead letter of the record that an Ack stands for; returns the Record."""
        wanted = (ack.topic, str(ack.partition), str(ack.offset))
        return self.wait_records(
            "dead_letters",
            lambda found: next((r for r in found if letter_place(r) == wanted), None),
            f"the dead letter of {wanted}",
            timeout,
        )

    def gates(self, checkpoint_id):
        """The gate events of a checkpoint read so far, by version; tombstones left out."""
        events = [r.datum for r in self.reader("gates").catch_up() if r.value is not None]
        mine = [e for e in events if e["checkpoint_id"] == checkpoint_id]
        return sorted(mine, key=lambda event: event["version"])

    def wait_gate(self, checkpoint_id, condition, what, timeout=TIMEOUT):
        """Wait for a gate event of a checkpoint for which condition(event) is true."""
        return self.wait_records(
            "gates",
            lambda found: next(
                (
                    r.datum
                    for r in found
                    if r.value is not None
                    and r.datum["checkpoint_id"] == checkpoint_id
                    and condition(r.datum)
                ),
                None,
            ),
            f"a gate event of {checkpoint_id} that {what}",
            timeout,
        )

    # -- the database --

    def sql(self, statement, *params):
        """Run a statement on this world's database; returns the rows."""
        if self._connection is None or self._connection.closed:
            self._connection = self.postgres.connect(self.name)
        try:
            with self._connection.cursor() as cursor:
                cursor.execute(statement, params or None)
                return cursor.fetchall() if cursor.description else []
        except psycopg2.OperationalError:
            self._connection.close()
            raise

    def disconnect(self):
        """Give up our own connection, so that the database can be copied or dropped."""
        if self._connection is not None:
            self._connection.close()

    def state(self, checkpoint_id):
        """The state of a checkpoint, None when there is no row."""
        rows = self.sql(
            "SELECT state::text FROM fermata.checkpoint WHERE checkpoint_id = %s", checkpoint_id
        )
        return rows[0][0] if rows else None

    def decision(self, decision_id):
        """(outcome, reason) of a decision, None when there is no row."""
        rows = self.sql(
            "SELECT outcome::text, reason FROM fermata.decision WHERE decision_id = %s", decision_id
        )
        return rows[0] if rows else None

    def decisions(self, checkpoint_id):
        """{decision_id: (outcome, reason)} of a checkpoint."""
        rows = self.sql(
            "SELECT decision_id::text, outcome::text, reason FROM fermata.decision"
            " WHERE checkpoint_id = %s",
            checkpoint_id,
        )
        return {row[0]: row[1:] for row in rows}

    def positions(self):
        """{(topic, partition): next} of intake."""
        rows = self.sql("SELECT topic, partition, next FROM fermata.kafka_offset")
        return {(topic, partition): offset for topic, partition, offset in rows}

    def describe(self, checkpoint_id):
        """What the database knows of a checkpoint, for messages."""
        return f"state {self.state(checkpoint_id)}, decisions {self.decisions(checkpoint_id)}"

    # -- waiting --

    def wait(self, condition, what, timeout=TIMEOUT):
        """Wait for any condition; ends at once when a worker has died."""
        return wait_for(condition, what, timeout, meanwhile=self._alive)

    def wait_state(self, checkpoint_id, *states, timeout=TIMEOUT):
        """Wait until a checkpoint is in one of the states."""
        return self.wait(
            lambda: self.state(checkpoint_id) in states,
            lambda: f"{checkpoint_id} to be {states}; {self.describe(checkpoint_id)}",
            timeout,
        )

    def wait_decision(self, decision_id, outcome, reason=None, timeout=TIMEOUT):
        """Wait for the outcome of a decision; `reason` is what the reason begins with."""

        def judged():
            found = self.decision(decision_id)
            return found is not None and found[0] != "waiting" or outcome == "waiting" and found

        what = f"decision {decision_id} to be {outcome}"
        self.wait(judged, lambda: f"{what}, it is {self.decision(decision_id)}", timeout)
        found = self.decision(decision_id)
        assert found[0] == outcome, f"{what} {reason or ''}: {found}"
        if reason is not None:
            assert (found[1] or "").startswith(reason), f"{what} {reason}: {found}"
        return found

    def wait_intake(self, timeout=TIMEOUT):
        """Wait until intake stands behind every record that is in its two topics now."""
        names = [self.topics["suspends"], self.topics["approvals"]]
        ends = topics.high_watermarks(self.kafka.bootstrap, names)

        def behind():
            at = self.positions()
            return all(end == 0 or at.get(place, -1) >= end for place, end in ends.items())

        self.wait(behind, lambda: f"intake to reach {ends}, it is at {self.positions()}", timeout)

    def settle(self, timeout=TIMEOUT):
        """Wait until all that was sent is taken in, and all that was decided is published."""
        self.wait_intake(timeout)
        self.wait(
            lambda: not self.sql("SELECT 1 FROM fermata.outbox LIMIT 1"),
            lambda: f"an empty outbox, it holds {self.sql('SELECT * FROM fermata.outbox')[:5]}",
            timeout,
        )


def letter_place(record):
    """(topic, partition, offset) of the record that a dead letter tells of, as text."""
    parts = ("topic", "partition", "offset")
    return tuple(record.header(f"fermata.error.{part}") for part in parts)


def resume_as_suspend(resume):
    """The fields of a ResumeEvent's datum that a SuspendEvent has too."""
    return {name: resume[name] for name in avrolib.schema("SuspendEvent").fields}
