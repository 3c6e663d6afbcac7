"""`fermata schema check`, `fingerprint` and `resolve` from outside, as contract.md has them."""

import base64
import hashlib
import json
import os
import subprocess

import pytest

BIN = os.environ.get("FERMATA_BIN")

pytestmark = pytest.mark.skipif(not BIN, reason="FERMATA_BIN does not say where the programs are")

FOO = '{"fields":[], "type":"record", "name":"foo", "namespace":"x.y", "doc":"Useful info"}'

CANONICAL = b'{"name":"x.y.foo","type":"record","fields":[]}'


def fermata(*words, given=b""):
    """A command's exit code, stdout and stderr."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("FERMATA_")}
    done = subprocess.run([f"{BIN}/fermata", *words], input=given, capture_output=True, timeout=60, check=False,
                          env=clean)
    return done.returncode, done.stdout.decode(), done.stderr.decode()


def write(folder, name, schema):
    """A file with a schema; its path."""
    path = folder / name
    path.write_text(schema if isinstance(schema, str) else json.dumps(schema))
    return str(path)


def test_fingerprint_of_a_vector(tmp_path):
    code, said, _ = fermata("schema", "fingerprint", write(tmp_path, "foo.avsc", FOO), "--json")
    assert code == 0
    assert json.loads(said) == {
        "canonical": CANONICAL.decode(),
        "crc64": (5916914534497305771).to_bytes(8, "little").hex(),
        "md5": hashlib.md5(CANONICAL).hexdigest(),
        "sha256": hashlib.sha256(CANONICAL).hexdigest(),
    }


@pytest.mark.parametrize("schema", ['"null"', "[  ]", '{"name":"PigValue","type":"record","fields":[{"name":"value",'
                                    '"type":["null","int","long","PigValue"]}]}'])
def test_check_takes_vectors(tmp_path, schema):
    assert fermata("schema", "check", write(tmp_path, "s.avsc", schema))[0] == 0


@pytest.mark.parametrize("schema", ["", "{", '"innt"', '{"type":"fixed","name":"F","size":-2}', "[" * 100000],
                         ids=["empty", "cut", "unknown", "size", "deep"])
def test_check_refuses_in_one_line(tmp_path, schema):
    code, said, why = fermata("schema", "check", write(tmp_path, "s.avsc", schema))
    assert (code, said) == (1, "")
    assert len(why.splitlines()) == 1 and "s.avsc" in why


def test_resolve_prints_the_json_encoding(tmp_path):
    writer = write(tmp_path, "w.avsc", {"type": "record", "name": "U", "fields": [{"name": "a", "type": "int"}]})
    reader = write(tmp_path, "r.avsc", {"type": "record", "name": "U", "fields": [
        {"name": "b", "type": ["null", "double"], "aliases": ["a"]},
        {"name": "c", "type": "bytes", "default": "\u00ff"}]})
    code, said, _ = fermata("schema", "resolve", "--writer", writer, "--reader", reader, given=b"\x04")
    assert code == 0
    assert json.loads(said) == {"b": {"double": 2.0}, "c": "\u00ff"}


@pytest.mark.parametrize("reader, given, when", [
    ({"type": "record", "name": "U", "fields": [{"name": "x", "type": "int"}]}, b"\x04", "U.x: .*(always)"),
    ({"type": "record", "name": "U", "fields": [{"name": "a", "type": "int"}]}, b"", "U.a: .*(only this value)"),
], ids=["never", "value"])
def test_resolve_says_where_and_when(tmp_path, reader, given, when):
    writer = write(tmp_path, "w.avsc", {"type": "record", "name": "U", "fields": [{"name": "a", "type": "int"}]})
    code, said, why = fermata("schema", "resolve", "--writer", writer, "--reader",
                              write(tmp_path, "r.avsc", reader), given=given)
    path, _, end = when.partition(".*")
    assert (code, said) == (1, "")
    assert len(why.splitlines()) == 1 and path in why and end in why


def test_a_batch_is_answered_in_order():
    lines = [
        {"id": 1, "writer": "int", "reader": "long", "body": "BA=="},
        {"id": 2, "writer": json.dumps(["null", "int"]), "reader": "int", "body": "AA=="},
        {"id": 3, "writer": {"type": "int"}, "reader": "string", "body": "AA=="},
        {"id": "four", "writer": "string", "reader": ["bytes", "string"],
         "body": base64.b64encode(b"\x02x").decode()},
    ]
    code, said, _ = fermata("schema", "resolve", "--batch", given="\n".join(map(json.dumps, lines)).encode())
    answers = [json.loads(line) for line in said.splitlines()]
    assert code == 0
    assert [(a["id"], a["ok"], a.get("when")) for a in answers] == [
        (1, True, None), (2, False, "value"), (3, False, "never"), ("four", True, None)]
    assert base64.b64decode(answers[0]["body"]) == b"\x04"
    assert base64.b64decode(answers[3]["body"]) == b"\x02\x02x"


def test_usage():
    assert fermata("schema", "resolve")[0] == 2
    assert fermata("schema", "resolve", "--writer", "x.avsc")[0] == 2
    assert fermata("schema", "resolve", "--batch", "--writer", "x.avsc")[0] == 2
    assert fermata("schema", "resolve", "--writer", "/nowhere.avsc", "--reader", "/nowhere.avsc")[0] == 2
