"""`fermata schema list`: what the program, schemas.path and the database know."""

import hashlib
import json

from acts import one_line, pending

RECORDS = ["ApprovalEvent", "GateEvent", "ResumeEvent", "SuspendEvent"]
STATE = "com.example.State"


def state_schema(*fields):
    """The text of a schema of an application's state."""
    namespace, name = STATE.rsplit(".", 1)
    listed = [{"name": field, "type": "long", "default": 0} for field in fields]
    return json.dumps({"type": "record", "name": name, "namespace": namespace, "fields": listed})


def known(world, text):
    """What a schema's text is known by."""
    path = world.directory / "known.avsc"
    path.write_text(text)
    (prints,) = world.run("schema", "fingerprint", path, "--json").json
    return prints


def keep(world, text, fact=None, registry_id=None, sha256=None):
    """Put a text into the database, as whoever has seen it does; the reader of STATE, or an id."""
    prints = known(world, text) if sha256 is None else {"crc64": "00" * 8, "sha256": sha256}
    digest = hashlib.sha256(text.encode()).hexdigest()
    world.sql(
        "INSERT INTO fermata.schema_text (text_sha256, sha256, fingerprint, text, seen_at) VALUES"
        " (decode(%s, 'hex'), decode(%s, 'hex'), decode(%s, 'hex'), %s, 1700000000000000)",
        digest,
        prints["sha256"],
        prints["crc64"],
        text,
    )
    if fact:
        world.sql(
            "INSERT INTO fermata.registry_schema (registry, fact, ref, id, text_sha256, seen_at)"
            " VALUES ('http://registry', %s, %s, %s, decode(%s, 'hex'), 1)",
            fact,
            STATE if fact == "reader" else str(registry_id),
            registry_id,
            digest,
        )
    return prints


def listed(world, *options):
    """The rows of `schema list`."""
    return world.run("schema", "list", "--json", *options).json


def test_the_records_and_how_many_wait(shared):
    """What suspend events were written with is counted while they wait."""
    rows = {row["name"]: row for row in listed(shared)}
    assert sorted(rows) == [f"fermata.v1.{name}" for name in RECORDS]
    assert all(row["reader"] and row["from"][0] == "program" for row in rows.values())
    assert all(row["registry_id"] is None and row["fault"] is None for row in rows.values())
    suspends = [pending(shared) for _ in range(3)]
    counts = {row["name"]: row["waiting"] for row in listed(shared)}
    assert counts.pop("fermata.v1.SuspendEvent") == 3 and set(counts.values()) == {0}
    shared.decide(suspends[0])
    shared.wait_state(suspends[0].id, "RESUMED")
    assert sum(row["waiting"] for row in listed(shared)) == 2
    text = shared.run("schema", "list").out
    print_of = rows["fermata.v1.SuspendEvent"]["fingerprint"]
    line = next(line for line in text.splitlines() if "SuspendEvent" in line).split()
    assert line[1:4] == ["reader", print_of, "-"] and line[4].startswith("program")
    assert line[-1] == "2"

    # A schema that is nowhere, though something that waits was written with it.
    shared.sql(
        "UPDATE fermata.checkpoint SET common = NULL, own_resumes_topic = 'resumes',"
        " own_schema_sha256 = decode(repeat('ab', 32), 'hex')"
        " WHERE checkpoint_id = %s",
        suspends[1].id,
    )
    lost = listed(shared)[-1]
    assert lost["name"] is None and lost["from"] == [] and lost["waiting"] == 1
    assert lost["sha256"] == "ab" * 32 and "schemas.path" in lost["fault"]
    assert sum(row["waiting"] for row in listed(shared)) == 2


def test_the_folder_and_the_database(make_world):
    """One row a text, with all that is known of it; the reader first, then as they were seen."""
    world = make_world()
    folder = world.directory / "schemas"
    (folder / STATE).mkdir(parents=True)
    today, older, oldest, ahead = (
        state_schema(*"abc"),
        state_schema(*"ab"),
        state_schema("a"),
        state_schema(*"abcd"),
    )
    (folder / f"{STATE}.avsc").write_text(today)
    (folder / STATE / "2.avsc").write_text(older)
    prints = {text: known(world, text) for text in (today, older)}
    prints[oldest] = keep(world, oldest, "id", 7)
    prints[ahead] = keep(world, ahead, "reader", 9)
    keep(world, older, "id", 8)
    world.write_config(schemas__path=str(folder))

    rows = [row for row in listed(world) if row["name"] == STATE]
    by_print = {row["fingerprint"]: row for row in rows}
    assert len(rows) == len(by_print) == 4
    for text, reader, places, registry_id in (
        (today, True, ["folder"], None),
        (older, False, ["folder", "database"], 8),
        (oldest, False, ["database"], 7),
        (ahead, True, ["database"], 9),
    ):
        row = by_print[prints[text]["crc64"]]
        assert row["reader"] is reader and row["from"] == places, row
        assert row["registry_id"] == registry_id and row["fault"] is None
        assert row["sha256"] == prints[text]["sha256"]
        assert row["registry"] == ("http://registry" if registry_id else None)
    assert [row["reader"] for row in rows] == [True, True, False, False]
    assert len(listed(world, "-X", "schemas.path=")) == len(RECORDS) + 3


def test_what_is_not_what_it_says_it_is(make_world):
    """A row that was changed, or is no schema, is named, and so is a file; a folder that is not there ends it."""
    world = make_world()
    keep(world, state_schema("a"), sha256="cd" * 32)
    keep(world, '{"type": "recrod"}', sha256="ce" * 32)
    faults = [row for row in listed(world) if row["fault"]]
    assert [row["name"] for row in faults] == [STATE, None]
    assert "digests of another text" in faults[0]["fault"] and "recrod" in faults[1]["fault"]
    assert "recrod" in world.run("schema", "list").out
    folder = world.directory / "schemas"
    folder.mkdir()
    (folder / "broken.avsc").write_text("{")
    (fault,) = [row for row in listed(world, "-X", f"schemas.path={folder}") if row["name"] == "broken"]
    assert "broken.avsc cannot be used" in fault["fault"] and fault["reader"] and fault["fingerprint"] is None
    line = one_line(world.run("schema", "list", "-X", f"schemas.path={folder}/nowhere", rc=2))
    assert "nowhere" in line
