"""`fermata schema check --against-registry`, against a registry that is not ours."""

import json
import subprocess
import urllib.parse
import urllib.request
import uuid

import pytest

import avrolib
import world as worlds
from acts import one_line

CONTENT = "application/vnd.schemaregistry.v1+json"

A = {"name": "a", "type": "int"}
A_LONG = {"name": "a", "type": "long"}
B = {"name": "b", "type": "string"}
B_DEFAULT = {"name": "b", "type": "string", "default": ""}


class Subject:
    """A record's name that nobody else has, as a subject of the registry."""

    def __init__(self, url, folder):
        self.url = url
        self.folder = folder
        self.name = f"app.State{uuid.uuid4().hex[:12]}"

    def schema(self, *fields):
        """The record of that name."""
        return {"type": "record", "name": self.name, "fields": list(fields)}

    def _send(self, method, path, body):
        data = json.dumps(body).encode()
        request = urllib.request.Request(f"{self.url}{path}", data, {"Content-Type": CONTENT}, method=method)
        with urllib.request.urlopen(request, timeout=30) as answer:
            assert answer.status == 200

    def register(self, *versions, subject=None):
        """Versions of it."""
        path = f"/subjects/{urllib.parse.quote(subject or self.name, safe='')}/versions"
        for version in versions:
            self._send("POST", path, {"schema": json.dumps(version), "schemaType": "AVRO"})

    def rule(self, rule):
        """Its compatibility rule."""
        self._send("PUT", f"/config/{self.name}", {"compatibility": rule})

    def check(self, schema, *words, url=None):
        """The command, with --json: exit code, what the registry said, and our own judgements."""
        done = self.run(schema, "--json", *words, url=url)
        lines = [json.loads(line) for line in done.lines]
        assert lines[0]["check"] == "schema" and all(line["check"] == "registry" for line in lines[1:]), done
        return done.rc, lines[1], lines[2:]

    def run(self, schema, *words, url=None):
        """The command."""
        path = self.folder / "new.avsc"
        path.write_text(json.dumps(schema))
        setting = [] if url == "" else ["-X", f"registry.url={url or self.url}"]
        argv = [str(worlds.binaries() / "fermata"), *setting, "schema", "check", str(path), "--against-registry", *words]
        done = subprocess.run(argv, capture_output=True, encoding="utf-8", timeout=60, check=False, cwd=self.folder,
                              env=worlds.clean_environment())
        return worlds.Done(argv, done.returncode, done.stdout, done.stderr)


@pytest.fixture(name="subject")
def fixture_subject(registry, tmp_path):
    """A subject that is not there yet."""
    return Subject(registry.url, tmp_path)


def test_both_agree(subject):
    """The registry's rule is asked for and held by our own resolution too."""
    subject.register(subject.schema(A))
    subject.rule("BACKWARD")
    code, said, ours = subject.check(subject.schema(A_LONG, B_DEFAULT))
    assert (code, said["rule"], said["compatible"], said["versions"]) == (0, "BACKWARD", True, 1)
    assert said["subject"] == subject.name
    assert [(each["direction"], each["compatible"]) for each in ours] == [("BACKWARD", True)]
    code, said, ours = subject.check(subject.schema(A_LONG, B))
    assert (code, said["compatible"]) == (1, False) and said["why"]
    assert [each["path"].rpartition(".")[2] for each in ours[0]["reasons"]] == ["b"]
    subject.rule("FULL")
    code, said, ours = subject.check(subject.schema(A_LONG, B_DEFAULT))
    assert (code, said["rule"], said["compatible"]) == (1, "FULL", False)
    assert [(each["direction"], each["compatible"]) for each in ours] == [("BACKWARD", True), ("FORWARD", False)]


def test_where_the_two_differ(subject):
    """Decimals of another scale: the registry takes them, and they would not load."""

    def price(scale):
        return {"name": "price", "type": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": scale}}

    subject.register(subject.schema(price(2)))
    subject.rule("BACKWARD")
    code, said, ours = subject.check(subject.schema(price(0)))
    assert (code, said["compatible"], ours[0]["compatible"]) == (1, True, False)
    assert "decimals differ" in ours[0]["reasons"][0]["why"]


def test_all_versions(subject):
    """A transitive rule, and --mode in its place."""
    subject.register(subject.schema(A), subject.schema(A, B_DEFAULT))
    subject.rule("BACKWARD")
    new = subject.schema(A, B)
    ours = subject.check(new)[2]  # what this registry says is about all versions in any case
    assert len(ours) == 1 and ours[0]["compatible"] and "version 2" in ours[0]["writer"]
    code, _, ours = subject.check(new, "--mode", "backward_transitive")
    assert code == 1
    assert [(each["writer"].split()[1], each["compatible"]) for each in ours] == [("1", False), ("2", True)]
    subject.rule("BACKWARD_TRANSITIVE")
    code, said, ours = subject.check(new)
    assert (code, said["rule"], said["compatible"], len(ours)) == (1, "BACKWARD_TRANSITIVE", False, 2)


def test_a_subject_without_a_rule_of_its_own(subject):
    """This registry calls that NONE and holds the subject to the global rule, which is BACKWARD."""
    subject.register(subject.schema(A))
    code, said, ours = subject.check(subject.schema(A, B))
    assert (code, said["rule"], said["compatible"], ours[0]["compatible"]) == (1, "BACKWARD", False, False)
    assert any(line.startswith("warning") and "NONE" in line for line in subject.run(subject.schema(A)).lines)


def test_which_subject(subject):
    """One that is named; a first version; our own records by the topic."""
    other = f"{subject.name}-value"
    subject.register(subject.schema(A), subject=other)
    code, said, ours = subject.check(subject.schema(A, B), "--subject", other)
    assert (code, said["subject"], len(ours)) == (1, other, 1)
    code, said, ours = subject.check(subject.schema(A, B))
    assert (code, said["versions"], ours) == (0, 0, [])
    suspend = json.loads((avrolib.SCHEMAS / "SuspendEvent.avsc").read_text())
    topic = f"t-{subject.name}"
    assert subject.check(suspend, "-X", f"topics.suspends={topic}")[1]["subject"] == f"{topic}-value"
    named = subject.check(suspend, "-X", f"topics.suspends={topic}", "-X", "registry.subject_name_strategy=record")
    assert named[1]["subject"] == "fermata.v1.SuspendEvent"
    state = subject.check(subject.schema(A), "-X", "registry.state_subject=of-{schema}-x")
    assert state[1]["subject"] == f"of-{subject.name}-x"


def test_who_is_away(subject):
    """No registry: 69; none configured, or words without sense: 2."""
    done = subject.run(subject.schema(A), url="http://127.0.0.1:1")
    assert done.rc == 69 and "127.0.0.1:1" in one_line(done)
    done = subject.run(subject.schema(A), url="")
    assert done.rc == 2 and "registry.url" in one_line(done)
