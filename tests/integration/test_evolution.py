"""State that last year's agent wrote, and records of other versions, from the topic to the resume."""

import json

import pytest

import avrolib
import evolution
import records
from acts import pending
from test_operator_faults import wait_not_ready, wait_ready

SUSPEND = "fermata.v1.SuspendEvent"


@pytest.fixture(name="folder")
def fixture_folder(tmp_path):
    """A folder of schemas."""
    return evolution.Folder(tmp_path / "schemas")


@pytest.fixture(name="world")
def fixture_world(make_world, folder):
    """A world with a worker that looks into the folder."""
    world = make_world(settings={"schemas.path": str(folder.path)})
    world.start_worker()
    return world


def resumed_state(world, sent):
    """The datum of the resume of a suspend, and its state."""
    datum = world.wait_resume(sent.id).datum
    return datum, datum["state"]


# ---- the three changes that people make ----------------------------------------------------


@pytest.mark.parametrize(
    "change, wanted",
    [
        (evolution.field_added, {**evolution.V1_DATUM, "budget": 1.5}),
        (evolution.field_renamed, {"stage": "CHECK", "tries": 3, "mood": "GRUMPY"}),
        (evolution.symbol_retired, {**evolution.V1_DATUM, "mood": "CALM"}),
    ],
    ids=["added", "renamed", "retired"],
)
def test_the_changes_that_people_make(world, folder, change, wanted):
    """The session that waits loads under the schema of a deployment that came after it slept."""
    folder.reader(evolution.V1)
    old = evolution.coder(evolution.V1)
    sent = pending(world, state=evolution.state(evolution.V1, evolution.V1_DATUM))
    folder.writer(evolution.V1)
    folder.reader(change())
    new = evolution.coder(change())
    world.wait(
        lambda: world.sql(
            "SELECT 1 FROM fermata.schema_text WHERE fingerprint = %s", new.fingerprint
        ),
        "the folder to be read again",
    )
    world.decide(sent)
    datum, state = resumed_state(world, sent)
    assert state["schema"] == evolution.STATE and state["fingerprint"] == new.fingerprint
    assert new.decode_body(state["body"]) == wanted
    assert datum["migrated_from"] == old.fingerprint.hex()
    for name, value in sent.datum.items():
        if name != "state":
            assert avrolib.same(datum[name], value), name


def test_the_file_of_an_old_schema_may_go(world, folder):
    """What the folder ever held is kept in the database."""
    folder.writer(evolution.V1)
    folder.reader(evolution.field_added())
    code = evolution.coder(evolution.V1)
    world.wait(
        lambda: world.sql(
            "SELECT 1 FROM fermata.schema_text WHERE fingerprint = %s", code.fingerprint
        ),
        "the folder to be read",
    )
    world.workers[-1].stop()
    (folder.path / evolution.STATE / "v1.avsc").unlink()
    world.start_worker()
    sent = pending(world, state=evolution.state(evolution.V1, evolution.V1_DATUM))
    world.decide(sent)
    datum, state = resumed_state(world, sent)
    assert datum["migrated_from"] == code.fingerprint.hex()
    assert evolution.coder(evolution.field_added()).decode_body(state["body"])["budget"] == 1.5


def test_a_change_that_a_relay_sees_first(world, folder):
    """A relay that misses a schema looks into the folder by itself: what it finds there is said, and kept, as well."""
    worker = world.workers[-1]

    def read(times):
        world.wait(lambda: worker.log.count("schemas.path was read again") == times, f"{times} lines on the folder")

    wait_ready(world, worker)
    folder.reader(evolution.field_added())
    read(1)
    sent = pending(world, state=evolution.state(evolution.V1, evolution.V1_DATUM))
    folder.writer(evolution.V1)
    world.decide(sent)
    assert resumed_state(world, sent)[0]["migrated_from"] is not None
    read(2)
    code = evolution.coder(evolution.V1)
    world.wait(
        lambda: world.sql("SELECT 1 FROM fermata.schema_text WHERE fingerprint = %s", code.fingerprint),
        "the schema to be kept",
    )


def test_unchanged(world, folder):
    """A state in the reader's own schema, one that nobody reads here, JSON, and none."""
    folder.reader(evolution.V1)
    other = json.loads(json.dumps(evolution.V1).replace(evolution.STATE, "com.example.Other"))
    states = [
        evolution.state(evolution.V1, evolution.V1_DATUM),
        evolution.state(other, evolution.V1_DATUM),
        evolution.json_state(b'{"step": [1e400, "\\u0000"], "step": 2}'),
        None,
    ]
    for state in states:
        sent = pending(world, state=state)
        world.decide(sent)
        datum, got = resumed_state(world, sent)
        assert avrolib.same(got, state) and datum["migrated_from"] is None


# ---- the one that must be refused ----------------------------------------------------------


def quarantined(world, sent, *words):
    """The checkpoint is set aside, and row and gate event say why."""
    world.wait_state(sent.id, "QUARANTINED")
    reason = world.sql(
        "SELECT reason FROM fermata.checkpoint WHERE checkpoint_id = %s", sent.id
    )[0][0]
    for word in words:
        assert word in reason, reason
    event = world.wait_gate(sent.id, lambda e: e["state"] == "QUARANTINED", "is QUARANTINED")
    assert event["reason"] == reason
    assert evolution.V1_DATUM["step"] not in reason
    return reason


def test_a_required_field_and_how_it_is_mended(world, folder):
    """Set aside with its decision; the schema mended, retried, resumed with the same decision."""
    folder.reader(evolution.field_required())
    folder.writer(evolution.V1)
    sent = pending(world, state=evolution.state(evolution.V1, evolution.V1_DATUM))
    decision = world.decide(sent)
    quarantined(world, sent, "owner", "default")
    assert not world.read("resumes")
    other = pending(world)  # nobody else waits for it
    world.decide(other)
    world.wait_resume(other.id)

    listed = world.run("quarantine", "list", "--json").json
    assert [each["checkpoint_id"] for each in listed] == [sent.id]
    assert "owner" in world.run("quarantine", "show", sent.id).out
    world.run("quarantine", "retry", sent.id)  # nothing has been mended yet
    world.wait(
        lambda: any(
            event["state"] == "QUARANTINED"
            for event in world.gates(sent.id)[2:]
        ),
        "it to be set aside once more",
    )
    mended = evolution.field_required()
    mended["fields"][-1]["default"] = "nobody"
    folder.reader(mended)
    world.run("quarantine", "retry", sent.id)
    datum, state = resumed_state(world, sent)
    assert evolution.coder(mended).decode_body(state["body"])["owner"] == "nobody"
    assert [d["decision_id"] for d in datum["decisions"]] == [decision.decision_id]
    world.wait_state(sent.id, "RESUMED")
    assert len([r for r in world.read("resumes") if r.datum["checkpoint_id"] == sent.id]) == 1


def test_an_unknown_writer_and_how_it_is_mended(world, folder):
    """Nobody has the schema that the state was written with: add it, retry."""
    folder.reader(evolution.field_added())
    sent = pending(world, state=evolution.state(evolution.V1, evolution.V1_DATUM))
    world.decide(sent)
    code = evolution.coder(evolution.V1)
    quarantined(world, sent, code.fingerprint.hex(), "schemas.path")
    folder.writer(evolution.V1)
    world.run("quarantine", "retry", "--all")
    datum, _ = resumed_state(world, sent)
    assert datum["migrated_from"] == code.fingerprint.hex()


def test_a_state_that_is_cut_off(world, folder):
    """Set aside when it is to be loaded, and says why."""
    folder.reader(evolution.V1)
    sent = pending(
        world, state={**evolution.state(evolution.V1, evolution.V1_DATUM), "body": b"\x02a"}
    )
    world.decide(sent)
    quarantined(world, sent, "state")


def test_a_state_that_grows_too_large(world, folder):
    """Set aside, and not tried again for ever: 5 MB that a default makes 40 of."""
    items = 600_000

    def schema(*more):
        fields = [{"name": "n", "type": "long"}, *more]
        item = {"type": "record", "name": "Item", "fields": fields}
        return {
            "type": "record",
            "name": evolution.STATE,
            "fields": [{"name": "items", "type": {"type": "array", "items": item}}],
        }

    old = schema()
    folder.writer(old)
    folder.reader(schema({"name": "text", "type": "string", "default": "x" * 60}))
    state = {
        "schema": evolution.STATE,
        "encoding": "AVRO",
        "fingerprint": evolution.coder(old).fingerprint,
        "body": bytes(avrolib.long(items) + avrolib.long(2**60) * items + avrolib.long(0)),
    }
    sent = pending(world, state=state)
    world.decide(sent)
    world.wait_state(sent.id, "QUARANTINED")
    quarantined(world, sent, "large")


@pytest.mark.parametrize(
    "state, word",
    [
        (evolution.json_state(b'{"a": 1,}'), "JSON"),
        ({**evolution.state(evolution.V1, evolution.V1_DATUM), "fingerprint": b"123"}, "8"),
    ],
    ids=["no-json", "fingerprint"],
)
def test_a_state_that_is_not_what_it_says(world, state, word):
    """What can be seen without its schema is seen before anything waits."""
    sent = world.suspend(state=state)
    letter = world.wait_letter(sent.ack)
    assert letter.header("fermata.error.code") == "invalid"
    assert word in letter.header("fermata.error.reason")


BROKEN = "com.example.Broken"


def state_of(name):
    """V1's state under another name."""
    return {**evolution.state(evolution.V1, evolution.V1_DATUM), "schema": name}


def decided(world, state):
    """A suspend with that state, and its approval, taken in."""
    sent = pending(world, state=state)
    world.wait_decision(world.decide(sent).decision_id, "counted")
    return sent


def test_a_broken_file_stops_nobody(world, folder):
    """It alone is not used: other names load, what is new is taken in; what may need it waits, and goes on by itself."""
    folder.reader(evolution.field_added())
    folder.writer(evolution.V1)
    wait_ready(world, world.workers[-1])
    folder.reader('{"type": "recrod"}', name=BROKEN)
    world.workers[-1].stop()
    worker = world.start_worker()  # with it, too
    wait_not_ready(worker, "files of schemas.path that cannot be used: 1", "fermata doctor")
    line = next(line for line in worker.log.splitlines() if f"{BROKEN}.avsc" in line)
    assert "of schemas.path cannot be used" in line and "recrod" in line and "waits" in line, line
    assert "fermata_schema_files_broken 1" in worker.metrics()
    held = decided(world, state_of(BROKEN))
    sent = decided(world, evolution.state(evolution.V1, evolution.V1_DATUM))
    assert resumed_state(world, sent)[0]["migrated_from"] is not None
    unnamed = decided(world, state_of("com.example.Unnamed"))  # no reader, and the broken one does not claim it
    assert resumed_state(world, unnamed)[0]["migrated_from"] is None
    folder.reader(evolution.field_renamed())
    world.wait(lambda: "was read again" in worker.log, "the folder to be read")
    again = decided(world, evolution.state(evolution.V1, evolution.V1_DATUM))
    assert evolution.coder(evolution.field_renamed()).decode_body(resumed_state(world, again)[1]["body"])["stage"] == "CHECK"
    world.wait(lambda: f"the reader of {BROKEN} may be in a file of schemas.path" in worker.log, "a line on what waits")
    assert world.state(held.id) == "DECIDED"
    done = world.run("doctor", rc=1).out
    assert f"{BROKEN}.avsc cannot be used" in done and f"states of {BROKEN} wait" in done, done
    (row,) = [each for each in world.run("schema", "list", "--json").json if each["fault"]]
    assert row["name"] == BROKEN and f"{BROKEN}.avsc cannot be used" in row["fault"] and row["sha256"] is None
    assert worker.log.count(f"{BROKEN}.avsc of schemas.path cannot be used") <= 2  # at the start, and with the change
    folder.reader(evolution.field_added(), name=BROKEN)
    folder.writer(evolution.V1, name=BROKEN)
    assert resumed_state(world, held)[0]["migrated_from"] is not None
    wait_ready(world, worker)
    world.wait(  # a resume can be read before it is marked
        lambda: {row[0] for row in world.sql("SELECT state::text FROM fermata.checkpoint")} == {"RESUMED"}, "all to be RESUMED"
    )


def test_half_a_file(world, folder):
    """Whose states it reads cannot be told: no state without a reader passes unchanged meanwhile."""
    worker = world.workers[-1]
    folder.reader(json.dumps(evolution.field_added())[:-20], name="com.example.Half")
    wait_not_ready(worker, "files of schemas.path that cannot be used: 1")
    sent = decided(world, evolution.state(evolution.V1, evolution.V1_DATUM))
    world.wait(lambda: "com.example.Half.avsc cannot be used" in worker.log, "a line on what waits")
    plain = decided(world, evolution.json_state(b'{"a": 1}'))
    assert resumed_state(world, plain)[0]["migrated_from"] is None
    assert world.state(sent.id) == "DECIDED"
    schema = dict(evolution.field_added(), aliases=[evolution.STATE], name="com.example.Half")
    folder.writer(evolution.V1, name="com.example.Half")
    folder.reader(schema, name="com.example.Half")
    assert resumed_state(world, sent)[0]["migrated_from"] is not None


def test_a_broken_file_of_what_was_written(world, folder):
    """A suspend of another version waits for it at its place on the topic, instead of becoming a dead letter."""
    worker = world.workers[-1]
    schema, code = old_suspend()
    folder.writer("{", name=SUSPEND)
    wait_not_ready(worker, "files of schemas.path that cannot be used: 1")
    datum = records.make_suspend()
    sent = send_as(world, code, datum)
    world.wait(
        lambda: world.sql("SELECT 1 FROM fermata.kafka_offset WHERE waits = 'registry'"), "the partition to wait"
    )
    assert "for a schema that may be in a file of schemas.path" in worker.log
    world.wait(lambda: "waits for a schema" in world.run("doctor", rc=1).out, "doctor to name the partition")
    folder.writer(schema, name=SUSPEND)
    world.wait_state(sent.id, "PENDING")
    assert not world.read("dead_letters")


@pytest.mark.slow
def test_a_drain_and_a_broken_file(world, folder):
    """What does not need it is done; for what does nobody waits for ever. Commands that run once do not begin."""
    wait_ready(world, world.workers[-1])
    world.workers[-1].stop()
    folder.reader("{", name=evolution.STATE)
    world.suspend()
    world.run("worker", "--drain")
    sent = world.suspend(state=evolution.state(evolution.V1, evolution.V1_DATUM))
    world.decide(sent)
    said = world.run("worker", "--drain", rc=75, timeout=150).err
    assert "may need a file of schemas.path that cannot be used" in said and "fermata doctor" in said, said
    assert world.state(sent.id) == "DECIDED"
    for command in (("replay", "--topic", world.topics["suspends"], "--from", "0"), ("rebuild",)):
        assert f"{evolution.STATE}.avsc of schemas.path cannot be used" in world.run(*command, rc=2).err
    folder.reader(evolution.V1, name=evolution.STATE)
    world.run("worker", "--drain")
    assert world.state(sent.id) == "RESUMED"


# ---- the records themselves ----------------------------------------------------------------


def old_suspend():
    """SuspendEvent as a version wrote it that knew no tenants and no labels."""

    def change(schema):
        fields = schema["fields"]
        fields[:] = [field for field in fields if field["name"] != "tenant"]
        gate = next(field for field in fields if field["name"] == "gate")["type"]
        gate["fields"] = [field for field in gate["fields"] if field["name"] != "expires_at"]

    return evolution.of_another_version("SuspendEvent", change)


def new_suspend():
    """SuspendEvent of a version to come, with a field that nobody here knows."""
    return evolution.of_another_version(
        "SuspendEvent",
        lambda schema: schema["fields"].insert(
            3, {"name": "mood", "type": ["null", "string"], "default": None}
        ),
    )


def send_as(world, code, datum):
    """Produce a suspend in another version's schema."""
    return world.send_suspend(datum, value=code.lie(datum))


@pytest.mark.parametrize("version, extra", [(old_suspend, {}), (new_suspend, {"mood": "calm"})])
def test_suspends_of_other_versions(world, folder, version, extra):
    """An old SuspendEvent and a new one, by this worker; the digest is of what was sent."""
    schema, code = version()
    folder.writer(schema, name=SUSPEND, file="other")
    datum = records.make_suspend(state=evolution.json_state(b"[]"))
    sent = send_as(world, code, {**datum, **extra})
    world.wait_state(sent.id, "PENDING")
    event = world.wait_gate(sent.id, lambda e: True, "is the first")
    assert event["digest"] == sent.digest and event["action"] == datum["gate"]["action"]
    shown = world.run("show", sent.id, "--state", "--json").json[0]
    assert json.dumps(shown).count(records.STORY_HISTORY[0][1]) == 1
    (folder.path / SUSPEND / "other.avsc").unlink()
    world.workers[-1].stop()
    world.start_worker()
    world.run("approve", sent.id)
    datum["tenant"] = "default"
    got = world.wait_resume(sent.id).datum
    for name, value in datum.items():
        assert avrolib.same(got[name], value), name
    assert got["migrated_from"] is None


def test_an_approval_of_another_version(world, folder):
    """A decision with a field more."""
    schema, code = evolution.of_another_version(
        "ApprovalEvent",
        lambda s: s["fields"].append({"name": "mood", "type": "string", "default": ""}),
    )
    folder.writer(schema, name="fermata.v1.ApprovalEvent", file="next")
    sent = pending(world)
    decision = records.make_approval(sent.datum)
    world.send_approval(decision, value=code.encode({**decision, "mood": "sunny"}))
    datum, _ = resumed_state(world, sent)
    assert [d["decision_id"] for d in datum["decisions"]] == [decision["decision_id"]]


def test_a_version_that_nobody_knows(world):
    """A dead letter, as long as its schema is nowhere."""
    _, code = new_suspend()
    sent = send_as(world, code, {**records.make_suspend(), "mood": None})
    letter = world.wait_letter(sent.ack)
    assert letter.header("fermata.error.code") == "unknown_schema"
    assert code.fingerprint.hex() in letter.header("fermata.error.reason")
    assert letter.value == sent.value


def test_a_schema_of_another_record(world, folder):
    """A known schema in the wrong place is no way in."""
    folder.writer(evolution.V1, name=SUSPEND, file="wrong")
    code = evolution.coder(evolution.V1)
    value = code.encode(evolution.V1_DATUM)
    ack = world.send("suspends", value, b"key")
    letter = world.wait_letter(ack)
    assert letter.header("fermata.error.code") in ("unknown_schema", "invalid")
