"""`fermata schema check --against` from outside: modes as Confluent names them, one line a reason, exit 0 or 1."""

import json
import os
import subprocess

import pytest

BIN = os.environ.get("FERMATA_BIN")

pytestmark = pytest.mark.skipif(not BIN, reason="FERMATA_BIN does not say where the programs are")


def fermata(*words, given=b""):
    """A command's exit code, stdout and stderr."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("FERMATA_")}
    done = subprocess.run([f"{BIN}/fermata", *words], input=given, capture_output=True, timeout=60, check=False,
                          env=clean)
    return done.returncode, done.stdout.decode(), done.stderr.decode()


def state(*fields, **more):
    """A record."""
    return {"type": "record", "name": "State", "namespace": "app", "fields": list(fields), **more}


A = {"name": "a", "type": "int"}
B = {"name": "b", "type": "string"}
B_DEFAULT = {"name": "b", "type": "string", "default": ""}
A_LONG = {"name": "a", "type": "long"}

# Each reads what the one before it wrote, and not the other way round.
V1 = state(A)
V2 = state(A_LONG)
V3 = state(A_LONG, B_DEFAULT)


@pytest.fixture(name="files")
def fixture_files(tmp_path):
    """Paths of schemas by name."""

    def write(**schemas):
        for name, schema in schemas.items():
            (tmp_path / f"{name}.avsc").write_text(json.dumps(schema))
        return {name: str(tmp_path / f"{name}.avsc") for name in schemas}

    return write


def against(new, *old, mode=None, more=()):
    """The command."""
    words = [word for path in old for word in ("--against", path)]
    return fermata("schema", "check", new, *words, *(["--mode", mode] if mode else []), *more)


def test_backward_is_the_default(files):
    paths = files(v1=V1, v2=V2)
    code, said, why = against(paths["v2"], paths["v1"])
    assert (code, why) == (0, "")
    assert said.splitlines()[0].endswith("v2.avsc: a schema")
    assert len(said.splitlines()) == 2 and "v2.avsc reads all that" in said and "BACKWARD" in said
    assert against(paths["v1"], paths["v2"])[0] == 1


@pytest.mark.parametrize("mode, codes", [
    ("NONE", (0, 0)), ("BACKWARD", (0, 1)), ("FORWARD", (1, 0)), ("FULL", (1, 1)), ("full", (1, 1)), ("Backward", (0, 1)),
])
def test_modes(files, mode, codes):
    paths = files(v1=V1, v2=V2)
    assert against(paths["v2"], paths["v1"], mode=mode)[0] == codes[0]
    assert against(paths["v1"], paths["v2"], mode=mode)[0] == codes[1]


def test_transitive_looks_beyond_the_last(files):
    """The last version has the field again, which the first did not have."""
    old, last, new = state(A), state(A, B), state(A, B)
    paths = files(old=old, last=last, new=new)
    both = (paths["old"], paths["last"])
    assert against(paths["new"], *both, mode="BACKWARD")[0] == 0
    code, said, _ = against(paths["new"], *both, mode="BACKWARD_TRANSITIVE")
    wrong = [line for line in said.splitlines() if line.startswith("wrong")]
    assert code == 1 and len(wrong) == 1 and "old.avsc" in wrong[0] and "State.b: " in wrong[0]
    assert against(paths["new"], *both, mode="FORWARD_TRANSITIVE")[0] == 0
    assert against(paths["new"], *both, mode="FULL_TRANSITIVE")[0] == 1
    assert against(paths["new"], *reversed(both), mode="BACKWARD")[0] == 1


def test_a_line_for_each_reason(files):
    paths = files(old=state(A, {"name": "u", "type": ["null", "int"]}),
                  new=state(B, {"name": "u", "type": "int"}, {"name": "a", "type": "string"}))
    code, said, why = against(paths["new"], paths["old"])
    wrong = [line for line in said.splitlines() if line.startswith("wrong")]
    assert (code, why, len(wrong)) == (1, "", 3)
    for line, path in zip(wrong, ("State.b", "State.a", "State.u")):
        assert f" reads nothing of {paths['old']}: {path}: " in line


def test_what_hangs_on_the_value_is_a_warning(files):
    paths = files(old=state({"name": "b", "type": "bytes"}), new=state(B))
    code, said, _ = against(paths["new"], paths["old"])
    assert code == 0
    assert [line.split()[0] for line in said.splitlines()[1:]] == ["ok", "warning"]
    assert "UTF-8" in said


def test_many_reasons_are_counted(files):
    fields = [{"name": f"f{i}", "type": "int"} for i in range(50)]
    paths = files(old=state(), new=state(*fields))
    said = against(paths["new"], paths["old"])[1].splitlines()
    assert len(said) == 22 and said[-1].endswith("and 30 reasons more")
    report = json.loads(against(paths["new"], paths["old"], more=["--json"])[1].splitlines()[1])
    assert (report["reasons_count"], len(report["reasons"])) == (50, 20)


def test_json(files):
    paths = files(v1=V1, v3=V3)
    code, said, _ = against(paths["v3"], paths["v1"], mode="full", more=["--json"])
    first, back, forth = [json.loads(line) for line in said.splitlines()]
    assert code == 1
    assert first == {"check": "schema", "file": paths["v3"], "name": "app.State", "crc64": first["crc64"]}
    assert json.loads(fermata("schema", "fingerprint", paths["v3"], "--json")[1])["crc64"] == first["crc64"]
    assert back == {"check": "against", "mode": "FULL", "direction": "BACKWARD", "reader": paths["v3"],
                    "writer": paths["v1"], "compatible": True, "never": False, "reasons_count": 0, "warnings_count": 0,
                    "reasons": [], "warnings": []}
    assert (forth["direction"], forth["reader"], forth["writer"]) == ("FORWARD", paths["v1"], paths["v3"])
    assert (forth["compatible"], forth["never"], forth["reasons_count"]) == (False, True, 1)
    assert forth["reasons"] == [{"path": "State.a", "why": "the writer's long is not the reader's int"}]


@pytest.mark.parametrize("words", [["--mode", "sideways"], ["--mode", "FULL"]], ids=["no mode", "nothing to compare"])
def test_usage(files, words):
    paths = files(v1=V1)
    more = ["--against", paths["v1"]] if words[1] == "sideways" else []
    code, said, why = fermata("schema", "check", paths["v1"], *more, *words)
    assert (code, said, len(why.splitlines())) == (2, "", 1)


def test_an_old_one_that_is_none(files, tmp_path):
    paths = files(v1=V1)
    (tmp_path / "bad.avsc").write_text("{")
    code, _, why = against(paths["v1"], str(tmp_path / "bad.avsc"))
    assert code == 1 and len(why.splitlines()) == 1 and "bad.avsc" in why
    code, _, why = against(paths["v1"], str(tmp_path / "none.avsc"))
    assert code == 2 and len(why.splitlines()) == 1 and "none.avsc" in why
