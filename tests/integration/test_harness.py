"""Tests of the harness itself, without the product: a judge that cannot fail proves nothing."""

import copy
import hashlib
import json
import socket
import threading

import pytest
from confluent_kafka import Producer

import avrolib
import judge
import records
import servers
import topics
import world as worlds
from waiting import TimedOut, wait_for

TABLES = """
CREATE SCHEMA fermata;
CREATE TABLE fermata.checkpoint (checkpoint_id uuid PRIMARY KEY, state text);
CREATE TABLE fermata.decision
    (decision_id uuid PRIMARY KEY, checkpoint_id uuid, outcome text, reason text);
"""


# ---- Avro ----------------------------------------------------------------------------------


def test_fingerprints_are_those_of_the_specification():
    """Values from the Avro project's own test data."""
    assert avrolib.crc64_avro(b'"null"') == 7195948357588979594
    assert avrolib.crc64_avro(b'"int"') == 8247732601305521295


@pytest.mark.parametrize("name", avrolib.NAMES)
def test_canonical_form_agrees_with_the_other_implementation(name):
    """Ours, from the specification's text, and python3-avro's."""
    schema = avrolib.schema(name)
    assert avrolib.canonical_form(schema.json) == schema.avro.canonical_form
    assert schema.frame[:2] == b"\xc3\x01" and len(schema.frame) == 10


@pytest.mark.parametrize("make", [records.make_suspend, records.make_rich_suspend])
def test_both_encoders_agree(make):
    """The encoder that can lie tells the truth when it is given the truth."""
    schema = avrolib.schema("SuspendEvent")
    datum = make()
    assert schema.lie(datum) == schema.encode(datum)
    assert avrolib.same(schema.decode(schema.encode(datum)), datum)


def test_lies_stand_where_they_were_put():
    """A Raw value is written as it is."""
    schema = avrolib.schema("ApprovalEvent")
    datum = records.make_approval(reason=avrolib.Raw(b"\x02\x09"))
    assert b"\x02\x09" in schema.lie(datum)
    assert len(schema.lie(datum)) == len(schema.encode(dict(datum, reason=None))) + 1


def test_same_sees_the_bits_of_doubles():
    """NaN equals NaN, minus zero is not zero, and true is not 1."""
    assert avrolib.same({"a": [float("nan")]}, {"a": [float("nan")]})
    assert not avrolib.same(0.0, -0.0)
    assert not avrolib.same(True, 1)
    assert not avrolib.same(1, 1.0)


def test_murmur2_is_that_of_kafkas_own_clients():
    """Values from Kafka's own test of it."""
    known = {b"21": -973932308, b"abc": 479470107, b"a-little-bit-longer-string": -1486304829}
    for key, number in known.items():
        assert topics.murmur2(key) == number & 0xFFFFFFFF


def test_digest():
    """The digest is over the label, the length and the body without its frame."""
    value = b"F" * 10 + b"body"
    text = b"fermata/digest/v1" + b"\4\0\0\0\0\0\0\0" + b"body"
    assert records.digest(value) == hashlib.blake2b(text, digest_size=32).digest()


def test_uuid7_has_its_version():
    """Version and variant bits, and it grows with time."""
    first, second = records.uuid7(at_ms=1), records.uuid7(at_ms=2)
    assert first[14] == "7" and first[19] in "89ab" and first < second


def test_waiting_ends():
    """A condition that never comes fails with its words."""
    with pytest.raises(TimedOut, match="the moon"):
        wait_for(lambda: False, "the moon", timeout=0.05)


# ---- the judge, in memory ------------------------------------------------------------------


class Case:
    """A run with nothing wrong in it, to plant faults in."""

    def __init__(self):
        self.suspends, self.approvals, self.resumes, self.letters = [], [], [], []
        self.states, self.decisions = {}, {}

    def ack(self, topic, sent):
        """The next place of a topic with one partition."""
        return topics.Ack(topic, 0, len(sent), 1_000_000 + len(sent))

    def suspend(self, state="PENDING", **over):
        """One that arrived."""
        datum = records.make_suspend(**over)
        value = records.encode_suspend(datum)
        sent = worlds.Sent(datum, value, self.ack("suspends", self.suspends))
        self.suspends.append(sent)
        self.states[sent.id] = state
        return sent

    def decide(self, suspend, outcome="counted", reason=None, **over):
        """One that was judged."""
        datum = records.make_approval(suspend.datum, **over)
        value = records.encode_approval(datum)
        sent = worlds.Sent(datum, value, self.ack("approvals", self.approvals))
        self.approvals.append(sent)
        self.decisions[sent.decision_id] = (suspend.id, outcome, reason)
        return sent

    def resume(self, suspend, decisions, verdict="APPROVED", **over):
        """One that was published."""
        datum = make_resume(suspend, decisions, verdict, **over)
        self.resumes.append(as_record(datum, len(self.resumes)))
        self.states[suspend.id] = "RESUMED"

    def letter(self, sent):
        """A dead letter for a record."""
        place = dict(zip(("topic", "partition", "offset"), sent.ack.place))
        headers = [(f"fermata.error.{key}", str(value).encode()) for key, value in place.items()]
        self.letters.append(topics.Record("letters", 0, 0, None, sent.value, headers, 0))

    def laws(self, **more):
        """The laws that the judge finds broken."""
        parts = (self.suspends, self.approvals, self.resumes, self.letters)
        evidence = judge.Evidence(*parts, self.states, self.decisions, **more)
        return [finding.law for finding in judge.findings(evidence)]


def make_resume(suspend, decisions, verdict="APPROVED", **over):
    """The ResumeEvent that should come of it."""
    kept = ("decision_id", "decided_by", "decided_at", "decision", "reason", "source")
    datum = {
        "resume_id": suspend.id,
        "verdict": verdict,
        "decisions": [{part: each.datum[part] for part in kept} for each in decisions],
        "edits": None,
        **copy.deepcopy(suspend.datum),
        "migrated_from": None,
        "resumed_at": records.now_us(),
        "expires_at": None,
        "signature": None,
    }
    datum.update(over)
    return datum


def as_record(datum, offset=0):
    """A resume as a reader would see it."""
    value = avrolib.schema("ResumeEvent").encode(datum)
    key = datum["session_id"].encode()
    return topics.Record("resumes", 0, offset, key, value, [], 0, "ResumeEvent")


@pytest.fixture
def case():
    """One approved and resumed, one rejected, one by quorum, one pending, one refused decision."""
    case = Case()
    case.first = case.suspend()
    case.first_decision = case.decide(case.first)
    case.resume(case.first, [case.first_decision])
    rejected = case.suspend()
    case.resume(rejected, [case.decide(rejected, decision="REJECT")], "REJECTED")
    case.both = case.suspend(gate={"required_approvals": 2})
    two = [case.decide(case.both, decided_by=records.by(who)) for who in ("ann", "bob")]
    case.resume(case.both, two)
    case.pending = case.suspend()
    case.decide(case.pending, "refused", "wrong_digest", checkpoint_digest=bytes(32))
    return case


def test_judge_finds_nothing_where_nothing_is_wrong(case):
    """The clean run."""
    assert case.laws() == []


def test_judge_finds_a_double(case):
    """L2."""
    case.resumes.append(case.resumes[0])
    assert case.laws() == ["L2"]


def test_judge_finds_a_lost_resume(case):
    """L3."""
    del case.resumes[0]
    assert case.laws() == ["L3"]


def test_judge_finds_a_lost_suspend(case):
    """L1."""
    del case.states[case.pending.id]
    assert case.laws() == ["L1"]


def test_judge_finds_a_letter_for_a_good_record(case):
    """L1, the other way round."""
    case.letter(case.pending)
    assert "L1" in case.laws()


def test_judge_wants_a_letter_for_a_bad_record(case):
    """L1: what the test says is bad must not become a checkpoint."""
    assert case.laws(bad=frozenset([case.pending.ack.place])) == ["L1"]


def test_judge_finds_changed_content(case):
    """L3: one word of the history."""
    datum = copy.deepcopy(case.resumes[0].datum)
    datum["history"][1]["content"] += "!"
    case.resumes[0] = as_record(datum)
    assert case.laws() == ["L3"]


def test_judge_finds_a_resume_without_a_decision(case):
    """L4, and it was never decided, which L3 says."""
    case.resume(case.pending, [])
    assert sorted(case.laws()) == ["L3", "L4"]


def test_judge_finds_a_quorum_of_one(case):
    """L4: two were needed."""
    datum = copy.deepcopy(case.resumes[2].datum)
    del datum["decisions"][1]
    case.resumes[2] = as_record(datum)
    assert case.laws() == ["L4", "L6"]


def test_judge_finds_a_wrong_verdict(case):
    """L3: the first decisive decision stands."""
    case.resumes[0] = as_record(dict(case.resumes[0].datum, verdict="REJECTED"))
    assert case.laws() == ["L3"]


def test_judge_finds_a_decision_recorded_nowhere(case):
    """L6."""
    del case.decisions[case.first_decision.decision_id]
    assert case.laws() == ["L6"]


def test_judge_finds_a_late_change_of_mind_that_counted(case):
    """L6: already decided."""
    case.decide(case.first, "counted", decision="REJECT")
    assert case.laws() == ["L6"]


def test_judge_knows_conflicts(case):
    """Other bytes under the same id want a dead letter; then all is well."""
    other = records.encode_suspend(dict(case.pending.datum, agent_version="other"))
    ack = case.ack("suspends", case.suspends)
    case.suspends.append(worlds.Sent(case.pending.datum, other, ack))
    assert case.laws() == ["L1"]
    case.letter(case.suspends[-1])
    assert case.laws() == []


def test_judge_allows_supersession(case):
    """A decided checkpoint may have been superseded before, but not by an earlier one."""
    old = case.suspend("SUPERSEDED", session_id="twice")
    case.decide(old, "refused", "superseded")
    new = case.suspend(session_id="twice", suspend_seq=2)
    assert case.laws() == []
    case.decide(new, "counted")
    assert case.laws() == ["L3"]


# ---- the real servers ----------------------------------------------------------------------


def fabricate(world, committed, aborted=(), group="t"):
    """Publish resumes in one transaction that commits, after one that aborts."""
    producer = Producer(
        {
            "bootstrap.servers": world.kafka.bootstrap,
            "transactional.id": f"{world.name}-{group}",
            "partitioner": "murmur2_random",
        }
    )
    producer.init_transactions()
    producer.list_topics(world.topics["resumes"])
    for resumes, end in (
        (aborted, producer.abort_transaction),
        (committed, producer.commit_transaction),
    ):
        if resumes:
            producer.begin_transaction()
            for datum in resumes:
                value = avrolib.schema("ResumeEvent").encode(datum)
                producer.produce(world.topics["resumes"], value, key=datum["session_id"])
            producer.flush()
            end()


def test_judge_on_real_servers(make_world):
    """An aborted double is not seen; a committed one and a missing resume are."""
    world = make_world(migrate=False, partitions=3)
    world.sql(TABLES)
    suspends = [world.suspend() for _ in range(20)]
    approvals = [world.decide(each) for each in suspends]
    for suspend, approval in zip(suspends, approvals):
        world.sql("INSERT INTO fermata.checkpoint VALUES (%s, 'RESUMED')", suspend.id)
        world.sql(
            "INSERT INTO fermata.decision VALUES (%s, %s, 'counted', NULL)",
            approval.decision_id,
            suspend.id,
        )
    resumes = [make_resume(s, [a]) for s, a in zip(suspends, approvals)]
    fabricate(world, committed=resumes[1:], aborted=resumes[:5])
    with pytest.raises(AssertionError, match=f"1 findings.*\n?L3 {suspends[0].id}: lost"):
        judge.check(world)
    assert len(world.read("resumes", "read_uncommitted")) == 24
    fabricate(world, committed=resumes[:1])
    judge.check(world)
    fabricate(world, committed=resumes[7:8])
    double = f"1 findings.*\n?L2 {suspends[7].id}: resumed 2 times"
    with pytest.raises(AssertionError, match=double):
        judge.check(world)


def test_reader_stops_before_an_open_transaction(make_world):
    """ "To the end as of now" means the last stable offset."""
    world = make_world(migrate=False, partitions=1)
    producer = Producer(
        {"bootstrap.servers": world.kafka.bootstrap, "transactional.id": world.name}
    )
    producer.init_transactions()
    producer.list_topics(world.topics["dead_letters"])
    producer.begin_transaction()
    producer.produce(world.topics["dead_letters"], b"x", headers=[("a", b"1"), ("b", None)])
    producer.flush()
    assert world.read("dead_letters") == []
    reader = world.reader("dead_letters")
    assert reader.catch_up() == []
    producer.commit_transaction()
    record = reader.wait(lambda found: found, "the record")[0]
    assert record.headers == [("a", b"1"), ("b", None)]
    assert record.header("a") == "1" and record.header("b") is None
    assert reader.catch_up() == [record]


def test_null_and_empty_are_told_apart(make_world):
    """Values and keys come back as they went."""
    world = make_world(migrate=False)
    acks = [world.send("suspends", v, k) for v, k in ((None, b""), (b"", None), (b"v", b"\xff"))]
    read = {r.place: (r.value, r.key) for r in world.read("suspends")}
    assert [read[ack.place] for ack in acks] == [(None, b""), (b"", None), (b"v", b"\xff")]


def test_topics_have_log_append_time(make_world):
    """The time that the sender gives does not count."""
    world = make_world(migrate=False)
    ack = world.sender.send(world.topics["suspends"], b"v", timestamp=1)
    assert ack.timestamp > 1_600_000_000_000
    assert world.read("suspends")[0].timestamp == ack.timestamp


class Forwarder:
    """A TCP proxy of 20 lines, to show that the second listener works through one."""

    def __init__(self):
        self.server = socket.create_server(("127.0.0.1", 0))
        self.port = self.server.getsockname()[1]

    def run(self, upstream):
        """Pass every connection on to "host:port", until the server socket is closed."""
        host, port = upstream.split(":")
        threading.Thread(target=self._accept, args=((host, int(port)),), daemon=True).start()

    def _accept(self, upstream):
        while True:
            try:
                near = self.server.accept()[0]
            except OSError:
                return
            try:
                far = socket.create_connection(upstream)
            except OSError:
                near.close()
                continue
            for source, sink in ((near, far), (far, near)):
                threading.Thread(target=self._pump, args=(source, sink), daemon=True).start()

    @staticmethod
    def _pump(source, sink):
        try:
            while data := source.recv(65536):
                sink.sendall(data)
        except OSError:
            pass
        for each in (source, sink):
            try:
                each.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass


def test_broker_survives_kill_and_listens_for_a_proxy(private_directory, kafka):
    """The same port and data after kill -9; a client of the proxied listener stays behind it."""
    assert kafka.bootstrap
    forwarder = Forwarder()
    broker = servers.Kafka(private_directory / "kafka", proxy_port=forwarder.port).start()
    try:
        forwarder.run(broker.upstream)
        topics.create_topics(broker.bootstrap, {"t": 1})
        before = broker.bootstrap
        sender = topics.Sender(f"127.0.0.1:{forwarder.port}")
        sender.send("t", b"one")
        assert sender.brokers == [f"127.0.0.1:{forwarder.port}"], "the client goes round the proxy"
        broker.kill()
        broker.start()
        assert broker.bootstrap == before
        sender.send("t", b"two")
        reader = topics.Reader(broker.bootstrap, "t")
        assert [r.value for r in reader.catch_up()] == [b"one", b"two"]
        reader.close()
    finally:
        forwarder.server.close()
        broker.stop()


def test_database_survives_kill(private_postgres):
    """The same address and data after kill -9 and after an immediate stop."""
    before = private_postgres.dsn
    private_postgres.execute("CREATE TABLE t AS SELECT 1 AS one")
    private_postgres.kill()
    private_postgres.start()
    private_postgres.stop(immediate=True)
    private_postgres.start()
    assert private_postgres.dsn == before
    with private_postgres.connect() as connection, connection.cursor() as cursor:
        cursor.execute("SELECT one FROM t")
        assert cursor.fetchall() == [(1,)]
    assert (private_postgres.data / "PG_VERSION").exists()


def test_schemas_are_complete_in_themselves():
    """Every file is read alone, and a default stands wherever a field may be null."""
    for name in avrolib.NAMES:
        text = (avrolib.SCHEMAS / f"{name}.avsc").read_text(encoding="utf-8")
        assert json.loads(text)["namespace"] == "fermata.v1"
        for field in avrolib.schema(name).json["fields"]:
            if isinstance(field["type"], list) and "null" in field["type"]:
                assert field["type"][0] == "null" and field["default"] is None, field["name"]
