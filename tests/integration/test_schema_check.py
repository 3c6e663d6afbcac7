"""`fermata schema check --pending`: would what waits load under a schema that is not deployed yet?"""

import copy
import json
import shutil

import pytest

import avrolib
import evolution
import records
from acts import one_line, pending

SECRET = evolution.V1_DATUM["step"]  # of the states; no output may hold it
V1 = evolution.V1
V2 = evolution.field_added()
V2_DATUM = {**evolution.V1_DATUM, "budget": 2.5}


def v3(default=True):
    """Both the field of V2 and one more."""
    schema = copy.deepcopy(V2)
    schema["fields"].append({"name": "owner", "type": "string", **({"default": "nobody"} if default else {})})
    return schema


def v3_wants_budget():
    """The field of V2, without its default: what V1 wrote does not load."""
    schema = copy.deepcopy(V2)
    del schema["fields"][-1]["default"]
    return schema


@pytest.fixture(name="folder")
def fixture_folder(tmp_path):
    """A folder of schemas that has what V1 and V2 wrote, and no reader."""
    folder = evolution.Folder(tmp_path / "schemas")
    folder.writer(V1, file="v1")
    folder.writer(V2, file="v2")
    return folder


@pytest.fixture(name="world")
def fixture_world(make_world, folder):
    """A world with a worker."""
    world = make_world(settings={"schemas.path": str(folder.path)})
    world.start_worker()
    return world


def waiting(world, *states, **over):
    """Suspends with these states, all arrived; each of a session of its own."""
    sent = [world.suspend(state=state, **over) for state in states]
    for each in sent:
        world.wait_state(each.id, "PENDING")
    return sent


def of_v1():
    """A state."""
    return evolution.state(V1, evolution.V1_DATUM)


def of_v2():
    """A state."""
    return evolution.state(V2, V2_DATUM)


def check(world, schema, *words, rc=0, name="new.avsc"):
    """The command with --json: those that would not load, and the summary."""
    path = world.directory / name
    path.write_text(schema if isinstance(schema, str) else json.dumps(schema))
    done = world.run("schema", "check", path, "--pending", "--json", *words, rc=rc)
    assert SECRET not in done.out + done.err
    first, *failed, summary = done.json
    assert first["check"] == "schema" and summary["summary"] is True
    assert summary["would_not_load"] == len(failed)
    assert summary["would_load"] == summary["unchanged"] + summary["migrated"] + summary["json"]
    assert summary["waiting"] == summary["would_load"] + summary["would_not_load"]
    return failed, summary


def say(world, schema, *words, rc=0):
    """The command for people: its lines after the first."""
    path = world.directory / "new.avsc"
    path.write_text(json.dumps(schema))
    done = world.run("schema", "check", path, "--pending", *words, rc=rc)
    assert SECRET not in done.out + done.err and done.err == ""
    return done.lines[1:]


def test_a_schema_that_loads_all(world):
    """Of every kind one; what is settled and what another schema is for is not counted."""
    other = json.loads(json.dumps(V1).replace(evolution.STATE, "com.example.Other"))
    sent = waiting(world, of_v1(), of_v2(), of_v2(), evolution.state(v3(), {**V2_DATUM, "owner": "me"}),
                   evolution.json_state(b'{"a": 1}'), evolution.state(other, evolution.V1_DATUM), None)
    done = pending(world, state=of_v1())
    world.decide(done)
    world.wait_state(done.id, "RESUMED")
    failed, summary = check(world, v3())
    assert not failed
    assert {key: summary[key] for key in ("waiting", "unchanged", "migrated", "json", "unopened", "of_other_schemas",
                                          "without_state")} == {
        "waiting": 5, "unchanged": 1, "migrated": 3, "json": 1, "unopened": 0, "of_other_schemas": 1,
        "without_state": 1}
    lines = say(world, v3())
    assert lines[0].startswith("ok") and "5 wait" in lines[0] and "5 would load" in lines[0]
    assert all(line.startswith("ok") for line in lines)
    assert [world.state(each.id) for each in sent] == ["PENDING"] * 7


def test_a_schema_that_loads_none(world):
    """Grouped by what they were written with; the path of the field is said."""
    first, second, third = waiting(world, of_v1(), of_v2(), of_v2())
    failed, summary = check(world, v3(default=False), rc=1)
    assert summary["waiting"] == summary["would_not_load"] == 3
    by_id = {each["checkpoint_id"]: each for each in failed}
    assert set(by_id) == {first.id, second.id, third.id}
    for sent, schema in ((first, V1), (second, V2), (third, V2)):
        each = by_id[sent.id]
        assert each["fingerprint"] == evolution.coder(schema).fingerprint.hex()
        assert each["session_id"] == sent.datum["session_id"] and each["state"] == "PENDING"
        assert "owner" in each["why"] and "default" in each["why"]
    lines = say(world, v3(default=False), rc=1)
    assert lines[0].startswith("wrong") and "3 would not" in lines[0]
    assert len(lines) == 3 and lines[1].split()[1] == "2:" and lines[2].split()[1] == "1:"
    assert evolution.coder(V2).fingerprint.hex() in lines[1] and second.id in lines[1] and third.id in lines[1]
    assert evolution.coder(V1).fingerprint.hex() in lines[2] and first.id in lines[2]


def test_a_schema_that_loads_some(world):
    """Those of V2 load, and of V1 none; a symbol that has no place hangs on the value."""
    old, new = waiting(world, of_v1(), of_v2())
    failed, summary = check(world, v3_wants_budget(), rc=1)
    assert [each["checkpoint_id"] for each in failed] == [old.id]
    assert (summary["waiting"], summary["would_load"]) == (2, 1)
    calm = waiting(world, evolution.state(V2, {**V2_DATUM, "mood": "CALM"}))[0]
    strict = copy.deepcopy(V2)
    del strict["fields"][2]["type"]["default"]
    strict["fields"][2]["type"]["symbols"] = ["CALM", "EAGER"]
    failed, summary = check(world, strict, rc=1)
    assert {each["checkpoint_id"] for each in failed} == {old.id, new.id}
    assert all("only this value" in each["why"] for each in failed)
    assert summary["would_load"] == 1 and calm.id not in {each["checkpoint_id"] for each in failed}


def test_an_alias_of_the_root(world):
    """A state under its old name is the new schema's when that has the name as an alias."""
    waiting(world, of_v1())
    renamed = {**v3(), "name": "com.example.review.NewState", "aliases": ["State"]}
    assert check(world, renamed)[1]["migrated"] == 1
    del renamed["aliases"]
    summary = check(world, renamed)[1]
    assert (summary["waiting"], summary["of_other_schemas"]) == (0, 1)


def test_decided_and_set_aside_are_read_too(world, folder):
    """One that today's schema has quarantined would load under the mended one."""
    folder.reader(v3(default=False))
    world.wait(lambda: world.sql("SELECT 1 FROM fermata.schema_text WHERE fingerprint = %s",
                                 evolution.coder(v3(default=False)).fingerprint), "the folder to be read")
    sent = pending(world, state=of_v1())
    world.decide(sent)
    world.wait_state(sent.id, "QUARANTINED")
    failed, _ = check(world, v3(default=False), rc=1)
    assert [each["state"] for each in failed] == ["QUARANTINED"]
    assert check(world, v3())[1]["migrated"] == 1


def test_a_key_that_is_gone(world):
    """What cannot be opened would not load, and it is said that nobody knows what it holds."""
    lost = waiting(world, of_v1())[0]
    world.workers[-1].stop()
    keyring = world.directory / "keyring"
    shutil.move(keyring, world.directory / "keyring.old")
    world.run("keys", "generate")
    world.start_worker()
    waiting(world, of_v1())
    failed, summary = check(world, v3(), rc=1)
    assert [each["checkpoint_id"] for each in failed] == [lost.id]
    assert failed[0]["why"].startswith("it cannot be opened") and failed[0]["fingerprint"] is None
    assert (summary["waiting"], summary["migrated"], summary["unopened"]) == (2, 1, 1)
    lines = say(world, v3(), rc=1)
    assert any(line.startswith("warning") and "another schema" in line for line in lines)


def test_a_state_that_is_not_what_it_says(world):
    """Bytes that are cut off do not load, and JSON does: it needs no schema."""
    cut = {**of_v1(), "body": of_v1()["body"][:-1]}
    sent = waiting(world, evolution.json_state(b"[]"), cut)[1]
    failed, summary = check(world, v3(), rc=1)
    assert [each["checkpoint_id"] for each in failed] == [sent.id] and summary["json"] == 1
    assert failed[0]["code"] == "malformed" and "mood" in failed[0]["why"]


def test_an_unknown_writer(world, folder):
    """Nobody has what it was written with: the fingerprint is said. What the folder once held is in the database."""
    never = copy.deepcopy(V1)
    never["fields"].append({"name": "unseen", "type": "int"})
    sent = waiting(world, evolution.state(never, {**evolution.V1_DATUM, "unseen": 1}), of_v1())[0]
    (folder.path / evolution.STATE / "v1.avsc").unlink()
    failed, summary = check(world, v3(), rc=1)
    assert [each["checkpoint_id"] for each in failed] == [sent.id]
    assert failed[0]["code"] == "unknown_schema"
    assert failed[0]["fingerprint"] == evolution.coder(never).fingerprint.hex()
    assert summary["migrated"] == 1


def test_the_envelope_itself(world, folder):
    """A SuspendEvent's schema is judged by all that waits, of older versions too."""
    today = json.loads((avrolib.SCHEMAS / "SuspendEvent.avsc").read_text())
    waiting(world, of_v1(), None)
    summary = check(world, today)[1]
    assert (summary["waiting"], summary["unchanged"], summary["without_state"]) == (2, 2, 0)
    more = copy.deepcopy(today)
    more["fields"].append({"name": "colour", "type": ["null", "string"], "default": None})
    assert check(world, more)[1]["migrated"] == 2
    del more["fields"][-1]["default"]
    failed, _ = check(world, more, rc=1)
    assert len(failed) == 2 and all("colour" in each["why"] for each in failed)
    own = avrolib.schema("SuspendEvent").fingerprint.hex()
    assert {each["fingerprint"] for each in failed} == {own}


def test_pages_and_the_worker_beside_it(world):
    """More than a page, while the worker goes on; each is read once."""
    count = 1200
    states = [of_v1(), of_v2(), None]
    for i in range(count):
        world.send_suspend(records.make_suspend(state=states[i % 3], session_id=f"many-{i}"))
    world.wait(lambda: world.sql("SELECT count(*) FROM fermata.checkpoint")[0][0] == count, "all to be there")
    failed, summary = check(world, v3_wants_budget(), rc=1)
    assert len({each["checkpoint_id"] for each in failed}) == len(failed) == count // 3
    assert (summary["would_load"], summary["without_state"]) == (count // 3, count // 3)
    sent = world.suspends[0]
    world.decide(sent)
    world.wait_resume(sent.id)
    lines = say(world, v3_wants_budget(), rc=1)
    assert f" {count // 3 - 1}: " in lines[1] and lines[1].endswith(", ...")


def test_who_is_away(world, make_world):
    """No database: 69; no keys: 2. One line each."""
    (world.directory / "v3.avsc").write_text(json.dumps(v3()))
    words = ("schema", "check", world.directory / "v3.avsc", "--pending")
    done = world.run(*words, "-X", "postgres.dsn=host=127.0.0.1 port=1 connect_timeout=2", rc=69)
    assert "postgres.dsn" in one_line(done)
    done = world.run(*words, "-X", f"vault.keyring_file={world.directory}/none", rc=2)
    assert "none" in one_line(done)
