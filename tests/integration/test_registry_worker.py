"""A worker with a schema registry that is not ours, and without it while it is away."""

import json
import subprocess
import time
import uuid

import pytest

import avrolib
import evolution
import rebuilding
import records
import registries
from acts import pending
from waiting import wait_for
from world import binaries

GUID = uuid.UUID("0192a3b4-c5d6-4e7f-8899-aabbccddeeff")


@pytest.fixture(name="client")
def fixture_client(registry):
    """The registry."""
    return registries.Client(registry.url)


@pytest.fixture(name="proxy")
def fixture_proxy(registry):
    """A way to the registry that can be cut."""
    proxy = registries.Proxy(registry.url)
    yield proxy
    proxy.close()


@pytest.fixture(name="world")
def fixture_world(make_world, proxy):
    """A world with a worker that has a registry."""
    world = make_world(settings={"registry.url": proxy.url, "registry.timeout": "2s"})
    world.start_worker()
    return world


def own_name(name=evolution.STATE):
    """A name that no other test has registered anything under."""
    return f"{name}{uuid.uuid4().hex[:10]}"


def renamed(schema, name):
    """A schema with another name for its root."""
    return {**schema, "name": name}


def suspend_id(world, client):
    """The id of SuspendEvent under this world's subject, as an agent would register it."""
    return client.register(
        f"{world.topics['suspends']}-value", avrolib.schema("SuspendEvent").json
    )


def framed(world, schema_id, name, datum):
    """A record in Confluent's framing."""
    return registries.confluent(schema_id, avrolib.schema(name).body(datum))


def raw(world, kind):
    """The values of a topic, undecoded."""
    found = []
    reader = world.reader(kind)
    reader.catch_up()
    found += [record.value for record in reader.records]
    return found


def decode(client, name, value):
    """A value in Confluent's framing by the registry's text of its id."""
    assert value[:1] == b"\0"
    schema = avrolib.Schema(json.dumps(client.text(int.from_bytes(value[1:5], "big"))))
    assert schema.fingerprint == avrolib.schema(name).fingerprint
    return schema.decode_body(value[5:])


@pytest.fixture(autouse=True)
def no_decoding(monkeypatch):
    """These records are not single objects: topics.Record is read as it is."""
    monkeypatch.setattr("world.KINDS", dict.fromkeys(("suspends", "approvals", "resumes", "gates", "dead_letters")))


def the_resume(world, client, checkpoint_id):
    """The resume of a checkpoint."""

    def find():
        for value in raw(world, "resumes"):
            datum = decode(client, "ResumeEvent", value)
            if datum["checkpoint_id"] == checkpoint_id:
                return datum
        return None

    return world.wait(find, lambda: f"the resume: {world.describe(checkpoint_id)}")


# ---- framings ------------------------------------------------------------------------------


def test_confluent_in_and_out(world, client):
    """What agents and approvers frame with ids is read, and what we write is framed so."""
    datum = records.make_suspend()
    schema_id = suspend_id(world, client)
    sent = world.send_suspend(datum, value=framed(world, schema_id, "SuspendEvent", datum))
    world.wait_state(sent.id, "PENDING")
    approval = records.make_approval(datum)
    approvals = client.register(
        f"{world.topics['approvals']}-value", avrolib.schema("ApprovalEvent").json
    )
    world.send_approval(approval, value=framed(world, approvals, "ApprovalEvent", approval))
    resume = the_resume(world, client, sent.id)
    for name, value in datum.items():
        assert avrolib.same(resume[name], value), name
    gates = [decode(client, "GateEvent", value) for value in raw(world, "gates")]
    mine = [gate for gate in gates if gate["checkpoint_id"] == sent.id]
    assert mine[0]["digest"] == records.digest(sent.value, frame=5)
    subjects = {name: f"{world.topics[name]}-value" for name in ("resumes", "gates")}
    for kind, subject in subjects.items():
        assert client.ask("GET", f"/subjects/{subject}/versions/latest"), kind


def test_single_objects_go_on(world, client):
    """Agents that know no registry."""
    sent = pending(world)
    world.run("approve", sent.id)  # framed with an id
    assert the_resume(world, client, sent.id)["verdict"] == "APPROVED"
    assert raw(world, "approvals")[-1][:1] == b"\0"
    shown = world.run("resumes", "--json").json
    assert [each["checkpoint_id"] for each in shown] == [sent.id]


def test_the_command_line_frames_with_ids(world, client):
    """`fermata suspend` registers, too."""
    datum = records.make_suspend()
    datum["salt"] = datum["salt"].decode("latin-1")
    done = world.run("suspend", stdin=datum)
    world.wait_state(done.out.strip(), "PENDING")
    assert raw(world, "suspends")[-1][:1] == b"\0"


def test_the_libraries_for_c(world, client, proxy):
    """The example agent and executor, told of the registry by the environment."""
    session = f"SESSION-{uuid.uuid4().hex[:8]}"
    env = {
        "PATH": "/usr/bin:/bin",
        "FERMATA_KAFKA_BOOTSTRAP_SERVERS": world.kafka.bootstrap,
        "FERMATA_TOPICS_SUSPENDS": world.topics["suspends"],
        "FERMATA_TOPICS_RESUMES": world.topics["resumes"],
        "FERMATA_REGISTRY_URL": proxy.url,
    }

    def agent(*args):
        argv = [binaries() / "fermata-example-agent", *args]
        done = subprocess.run(
            argv, env=env, capture_output=True, text=True, timeout=60, check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    said = agent("plan", session)
    checkpoint = said.split()[-1]
    assert raw(world, "suspends")[-1][:1] == b"\0"
    world.wait_state(checkpoint, "PENDING")
    world.run("approve", checkpoint)
    world.wait_state(checkpoint, "RESUMED")
    said = agent("resume", session, "30")
    assert f"session {session} is back: APPROVED" in said and "usr_99" in said
    assert the_resume(world, client, checkpoint)["session_id"] == session


def test_doctor_looks_at_the_registry(world, proxy):
    """Our schemas by their ids; or why it cannot be asked."""
    found = [each for each in world.run("doctor", "--json").json if each["check"] == "registry"]
    assert [each["result"] for each in found] == ["ok"] * 3
    proxy.cut()
    found = world.run("doctor", "--json", rc=1).json
    assert [each["result"] for each in found if each["check"] == "registry"] == ["wrong"]


def test_an_id_in_the_header(world, client):
    """A body without a frame, its id in __value_schema_id."""
    datum = records.make_suspend()
    schema_id = suspend_id(world, client)
    body = avrolib.schema("SuspendEvent").body(datum)
    header = ("__value_schema_id", b"\0" + schema_id.to_bytes(4, "big"))
    sent = world.send_suspend(datum, value=body, headers=[header])
    world.wait_state(sent.id, "PENDING")
    for bad in (b"", b"\0\0\0", b"\2" + bytes(4), b"\1" + bytes(3)):
        other = records.make_suspend()
        ack = world.send_suspend(other, value=body, headers=[("__value_schema_id", bad)]).ack
        assert world.wait_letter(ack).header("fermata.error.code") == "framing"


def test_ids_that_do_not_exist(world, client):
    """A dead letter that names the id; an id of something else likewise."""
    datum = records.make_suspend()
    body = avrolib.schema("SuspendEvent").body(datum)
    for schema_id in (99999999, 2**31):
        ack = world.send_suspend(datum, value=registries.confluent(schema_id, body)).ack
        letter = world.wait_letter(ack)
        assert letter.header("fermata.error.code") == "unknown_schema"
    name = own_name("com.example.Else")
    other = client.register(name, renamed(evolution.V1, name))
    value = registries.confluent(other, evolution.coder(evolution.V1).body(evolution.V1_DATUM))
    letter = world.wait_letter(world.send_suspend(datum, value=value).ack)
    assert letter.header("fermata.error.code") in ("unknown_schema", "invalid")


def test_a_newer_suspend_by_its_id(world, client):
    """A SuspendEvent with a field that this version does not know."""
    schema, code = evolution.of_another_version(
        "SuspendEvent",
        lambda s: s["fields"].append({"name": "mood", "type": "string", "default": "calm"}),
    )
    datum = {**records.make_suspend(), "mood": "sunny"}
    schema_id = client.register(f"{world.topics['suspends']}-value", schema)
    value = registries.confluent(schema_id, code.body(datum))
    sent = world.send_suspend(datum, value=value)
    world.wait_state(sent.id, "PENDING")
    world.run("approve", sent.id)
    assert the_resume(world, client, sent.id)["salt"] == datum["salt"]


# ---- outages -------------------------------------------------------------------------------


def waits(world):
    """(topic, partition) of those that wait for the registry."""
    return {
        (topic, partition)
        for topic, partition, why in world.sql(
            "SELECT topic, partition, waits FROM fermata.kafka_offset"
        )
        if why == "registry"
    }


def ready(world):
    """GET /ready of the worker."""
    return "\nfermata_ready 1\n" in world.workers[-1].metrics()


def test_an_outage_is_a_retry(world, client, proxy):
    """A partition waits at an id that was never seen; the other and what is known go on; then all is well."""
    known = suspend_id(world, client)
    first = records.make_suspend()
    sent = world.send_suspend(
        first, value=framed(world, known, "SuspendEvent", first), partition=0
    )
    world.wait_state(sent.id, "PENDING")
    schema, code = evolution.of_another_version(
        "SuspendEvent",
        lambda s: s["fields"].append({"name": "later", "type": "string", "default": ""}),
    )
    new_id = client.register(f"{world.topics['suspends']}-value", schema)
    proxy.cut()
    datum = {**records.make_suspend(), "later": "x"}
    waiting = world.send_suspend(
        datum, value=registries.confluent(new_id, code.body(datum)), partition=0
    )
    behind = world.suspend(partition=0)
    place = (world.topics["suspends"], 0)
    world.wait(lambda: place in waits(world), "the partition to wait for the registry")
    assert waits(world) == {place}
    world.wait(lambda: not ready(world), "readiness to say so")
    third = records.make_suspend()
    other = world.send_suspend(
        third, value=framed(world, known, "SuspendEvent", third), partition=1
    )
    world.wait_state(other.id, "PENDING")
    world.decide(other)
    world.wait_state(other.id, "RESUMED")
    assert world.state(waiting.id) is None and world.state(behind.id) is None
    assert not raw(world, "dead_letters")
    proxy.heal()
    for each in (waiting, behind):
        world.wait_state(each.id, "PENDING", timeout=60)
    world.wait(lambda: not waits(world) and ready(world), "nobody to wait any more")
    world.wait_intake()
    assert not raw(world, "dead_letters")


def test_a_start_without_the_registry(world, client, proxy):
    """Ids that were ever seen are enough to start, to read and to resume."""
    known = suspend_id(world, client)
    name = own_name()
    client.register(name, renamed(evolution.V1, name))
    old = renamed(evolution.V1, name)
    first = records.make_suspend(state=evolution.state(old, evolution.V1_DATUM))
    sent = world.send_suspend(first, value=framed(world, known, "SuspendEvent", first))
    world.wait_state(sent.id, "PENDING")
    client.register(name, renamed(evolution.field_added(), name))
    world.wait(
        lambda: len(
            world.sql(
                "SELECT 1 FROM fermata.registry_schema WHERE fact = 'reader' AND ref = %s", name
            )
        ),
        "the reader to be known",
    )
    world.wait(
        lambda: len(
            world.sql(
                "SELECT 1 FROM fermata.schema_text WHERE fingerprint = %s", first["state"]["fingerprint"]
            )
        ),
        "the writer, which is asked for after it, to be known",
    )
    world.workers[-1].stop()
    proxy.cut()
    world.start_worker()
    second = records.make_suspend(state=evolution.state(old, evolution.V1_DATUM))
    again = world.send_suspend(second, value=framed(world, known, "SuspendEvent", second))
    for each in (sent, again):
        world.wait_state(each.id, "PENDING")
        world.decide(each)
        world.wait_state(each.id, "RESUMED", timeout=60)


@pytest.fixture(name="elsewhere")
def fixture_elsewhere():
    """Another registry, where every id is that of something else."""
    stand_in = registries.StandIn()
    for schema_id in range(1, 3000):
        stand_in.answers[f"/schemas/ids/{schema_id}"] = (200, {"schema": '"int"'})
    yield stand_in
    stand_in.close()


@pytest.mark.parametrize("where", ["nowhere", "elsewhere"])
def test_the_ledger_needs_no_registry(world, elsewhere, where):
    """The database lost, the registry gone or another: nothing is published a second time."""
    sent = [world.suspend() for _ in range(4)]
    for each in sent:
        world.wait_state(each.id, "PENDING")
        world.decide(each)
        world.wait_state(each.id, "RESUMED")
    before = len(raw(world, "resumes"))
    assert before == 4
    world.workers[-1].stop()
    world.disconnect()
    world.postgres.drop_database(world.name)
    world.postgres.create_database(world.name)
    url = {"nowhere": "", "elsewhere": elsewhere.url}[where]
    world.write_config(registry__url=url)
    world.run("migrate")
    world.start_worker()
    for each in sent:
        world.wait_state(each.id, "RESUMED", timeout=60)
    world.settle()
    assert len(raw(world, "resumes")) == before


def test_what_may_be_a_resume_is_not_passed_over(world, client):
    """A record of the ledger that says it is ours and cannot be read stops its shard, and says how to go on."""
    sent = pending(world)
    header = ("fermata-checkpoint-id", sent.id.encode())
    for partition in (0, 1):
        world.send("resumes", b"\xc3\x01 of another version", b"key", [header], partition)
    world.workers[-1].stop()
    world.start_worker()
    world.decide(sent)
    world.wait_state(sent.id, "DECIDED")
    world.wait(lambda: "ALARM nothing is published here" in world.workers[-1].log, "the alarm")
    assert world.state(sent.id) == "DECIDED"


# ---- states --------------------------------------------------------------------------------


def reader_is(world, schema):
    """Whether the worker has learnt from the registry that this is the reader."""
    return world.sql(
        "SELECT 1 FROM fermata.registry_schema r JOIN fermata.schema_text t USING (text_sha256)"
        " WHERE r.fact = 'reader' AND t.fingerprint = %s",
        evolution.coder(schema).fingerprint,
    )


def test_states_by_the_registry(world, client):
    """The reader is the last version of the subject that has the state's name."""
    name = own_name()
    old, new = renamed(evolution.V1, name), renamed(evolution.field_renamed(), name)
    client.register(name, old)
    sent = pending(world, state=evolution.state(old, evolution.V1_DATUM))
    world.wait(lambda: reader_is(world, old), "the reader to be known")
    client.rule(name, "NONE")
    client.register(name, new)
    world.workers[-1].stop()
    world.start_worker()  # the readers are looked at anew, soon after the start
    world.wait(lambda: reader_is(world, new), "the new version of the reader")
    world.decide(sent)
    resume = the_resume(world, client, sent.id)
    code = evolution.coder(new)
    assert resume["state"]["fingerprint"] == code.fingerprint
    assert code.decode_body(resume["state"]["body"])["stage"] == "CHECK"
    assert resume["migrated_from"] == evolution.coder(old).fingerprint.hex()


def test_a_state_that_no_subject_has(world, client):
    """Passes as it is."""
    name = own_name()
    sent = pending(world, state=evolution.state(renamed(evolution.V1, name), evolution.V1_DATUM))
    world.decide(sent)
    resume = the_resume(world, client, sent.id)
    assert avrolib.same(resume["state"], sent.datum["state"]) and resume["migrated_from"] is None


def test_a_version_that_the_subject_lacks(world, client):
    """Set aside; registered, retried, resumed."""
    name = own_name()
    old, new = renamed(evolution.V1, name), renamed(evolution.field_added(), name)
    client.register(name, new)
    client.rule(name, "NONE")
    sent = pending(world, state=evolution.state(old, evolution.V1_DATUM))
    world.decide(sent)
    world.wait_state(sent.id, "QUARANTINED")
    client.register(name, old)
    newer = evolution.field_added()
    newer["fields"].append({"name": "owner", "type": "string", "default": "nobody"})
    client.register(name, renamed(newer, name))

    def retried():  # that there was no such schema is believed for some seconds
        world.run("quarantine", "retry", sent.id, rc=None)
        time.sleep(2)
        return world.state(sent.id) == "RESUMED"

    wait_for(retried, "it to be resumed", timeout=60)
    assert the_resume(world, client, sent.id)["migrated_from"]


# ---- what the real one does not have -------------------------------------------------------


@pytest.fixture(name="stand_in")
def fixture_stand_in():
    """A registry of a few answers."""
    stand_in = registries.StandIn()
    yield stand_in
    stand_in.close()


def test_a_guid_in_the_header(make_world, stand_in):
    """__value_schema_id with a GUID."""
    world = make_world(settings={"registry.url": stand_in.url})
    text = json.dumps(avrolib.schema("SuspendEvent").json)
    stand_in.answers[f"/schemas/guids/{GUID}"] = (200, {"schema": text, "schemaType": "AVRO"})
    world.start_worker()
    datum = records.make_suspend()
    body = avrolib.schema("SuspendEvent").body(datum)
    header = ("__value_schema_id", b"\1" + GUID.bytes)
    sent = world.send_suspend(datum, value=body, headers=[header])
    world.wait_state(sent.id, "PENDING")
    asked = stand_in.asked.count(f"/schemas/guids/{GUID}")
    more = records.make_suspend()
    again = world.send_suspend(
        more, value=avrolib.schema("SuspendEvent").body(more), headers=[header]
    )
    world.wait_state(again.id, "PENDING")
    assert stand_in.asked.count(f"/schemas/guids/{GUID}") == asked


def test_a_file_that_is_broken_beside_a_registry(make_world, stand_in, tmp_path):
    """What may stand in it is asked of the registry too, but not again and again, as fast as it answers."""
    name = own_name()
    folder = evolution.Folder(tmp_path / "schemas")
    folder.reader(evolution.field_added(), name=name)
    folder.writer("{", name=name)
    world = make_world(settings={"registry.url": stand_in.url, "schemas.path": str(folder.path)})
    worker = world.start_worker()
    state = {**evolution.state(evolution.V1, evolution.V1_DATUM), "schema": name}
    sent = pending(world, state=state)
    world.wait_decision(world.decide(sent).decision_id, "counted")
    said = "may be in a file of schemas.path"
    world.wait(lambda: worker.log.count(said) >= 2, "it to wait for the file")
    assert world.state(sent.id) == "DECIDED"
    asked = [path for path in stand_in.asked if name in path]
    assert 1 <= len(asked) < 12, asked
    folder.writer(evolution.V1, name=name)
    world.wait_state(sent.id, "RESUMED")


def test_a_record_beside_a_broken_file(make_world, stand_in, tmp_path):
    """Its partition waits, and goes on also when the registry has the schema later, of which nobody is told."""
    folder = evolution.Folder(tmp_path / "schemas")
    folder.writer("{", name="fermata.v1.SuspendEvent")
    world = make_world(settings={"registry.url": stand_in.url, "schemas.path": str(folder.path)})
    worker = world.start_worker()

    def without_tenant(schema):
        schema["fields"][:] = [field for field in schema["fields"] if field["name"] != "tenant"]

    schema, code = evolution.of_another_version("SuspendEvent", without_tenant)
    datum = records.make_suspend()
    sent = world.send_suspend(datum, value=code.lie(datum))
    world.wait(lambda: "may be in a file of schemas.path" in worker.log, "the partition to wait")
    subject = f"/subjects/{world.topics['suspends']}-value/versions"
    assert 1 <= stand_in.asked.count(subject) < 12
    stand_in.answers[subject] = (200, [1])
    version = {"subject": subject, "id": 77, "version": 1, "schema": json.dumps(schema)}
    stand_in.answers[f"{subject}/1"] = (200, version)
    world.wait_state(sent.id, "PENDING")
    assert not world.read("dead_letters")


def test_references_are_refused(make_world, stand_in):
    """A dead letter that says so."""
    world = make_world(settings={"registry.url": stand_in.url})
    stand_in.answers["/schemas/ids/7"] = (
        200,
        {
            "schema": '{"type":"record","name":"R","fields":[{"name":"o","type":"com.example.O"}]}',
            "references": [{"name": "com.example.O", "subject": "o", "version": 1}],
        },
    )
    world.start_worker()
    datum = records.make_suspend()
    body = avrolib.schema("SuspendEvent").body(datum)
    letter = world.wait_letter(world.send_suspend(datum, value=registries.confluent(7, body)).ack)
    assert letter.header("fermata.error.code") == "unknown_schema"
    assert "reference" in letter.header("fermata.error.reason")


def test_an_unknown_id_is_not_asked_for_again_and_again(make_world, stand_in):
    """A flood of one bad id costs one question."""
    world = make_world(settings={"registry.url": stand_in.url})
    world.start_worker()
    datum = records.make_suspend()
    value = registries.confluent(12345, avrolib.schema("SuspendEvent").body(datum))
    acks = [world.send_suspend(datum, value=value).ack for _ in range(50)]
    for ack in acks:
        world.wait_letter(ack)
    assert stand_in.asked.count("/schemas/ids/12345") == 1


# ---- recovery ------------------------------------------------------------------------------


def test_rebuild_and_replay(world, client, proxy):
    """What is framed with ids comes back from the topics; without the registry, 69 and nothing."""
    datum = records.make_suspend()
    schema_id = suspend_id(world, client)
    sent = world.send_suspend(datum, value=framed(world, schema_id, "SuspendEvent", datum))
    world.wait_state(sent.id, "PENDING")
    world.run("approve", sent.id)
    the_resume(world, client, sent.id)
    world.settle()
    world.workers[0].stop()
    before, published = rebuilding.tables(world), len(raw(world, "resumes"))
    for topic in ("suspends", "approvals", "resumes"):
        done = world.run("replay", "--topic", world.topics[topic], "--from", "0", "--json")
        totals = {line["name"]: line["count"] for line in done.json if "count" in line}
        assert totals["same"] == totals["records"] == 1, done
    rebuilding.empty_database(world)
    _, counts, others = rebuilding.rebuild(world, "--dry-run")
    assert [line["unreadable"] for line in others if line["what"] == "topic"] == [0, 0, 0]
    assert counts["checkpoints", "resumed"] == 1
    proxy.cut()
    assert "registry" in world.run("rebuild", "--dry-run", rc=69).err
    proxy.heal()
    rebuilding.rebuild(world)
    assert not rebuilding.differences(before, rebuilding.tables(world))
    assert len(raw(world, "resumes")) == published
