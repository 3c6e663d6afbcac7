#!/usr/bin/env python3
"""Decides on a waiting session, as a program in any language can.

    approve.py SESSION [--reject] [--as WHO] [--reason TEXT]

Reads the gates topic for the session's pending gate, shows what is proposed, and writes an ApprovalEvent that
carries the digest of what was shown, so that the decision counts for that proposal and no other.
FERMATA_KAFKA_BOOTSTRAP_SERVERS says where Kafka is.
"""
import argparse
import getpass
import io
import json
import os
import pathlib
import sys
import time
import uuid

import avro.io
import avro.schema
from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition

SCHEMAS = pathlib.Path(__file__).resolve().parent.parent / "schemas"
SERVERS = os.environ.get("FERMATA_KAFKA_BOOTSTRAP_SERVERS", "127.0.0.1:9092")
GATES = os.environ.get("FERMATA_TOPICS_GATES", "fermata.gates")
APPROVALS = os.environ.get("FERMATA_TOPICS_APPROVALS", "fermata.approvals")


def schema(name):
    """Without the logical types, so that ids are texts and times are numbers, as Fermata gives them."""
    plain = json.loads((SCHEMAS / f"{name}.avsc").read_text(),
                       object_hook=lambda each: {k: v for k, v in each.items() if k != "logicalType"})
    return avro.schema.parse(json.dumps(plain))


def crc64(canonical):
    """CRC-64-AVRO, as the Avro specification gives it ("Schema Fingerprints")."""
    empty = 0xC15D213AA4D7A795
    table = []
    for i in range(256):
        for _ in range(8):
            i = (i >> 1) ^ (empty & -(i & 1))
        table.append(i)
    value = empty
    for byte in canonical:
        value = (value >> 8) ^ table[(value ^ byte) & 0xFF]
    return value.to_bytes(8, "little")


def decode(value, reader):
    if value[:2] != b"\xc3\x01":
        raise ValueError("not a single-object encoding")
    return avro.io.DatumReader(reader, reader).read(avro.io.BinaryDecoder(io.BytesIO(value[10:])))


def encode(datum, writer):
    out = io.BytesIO(b"\xc3\x01" + crc64(writer.canonical_form.encode()))
    out.seek(0, io.SEEK_END)
    avro.io.DatumWriter(writer).write(datum, avro.io.BinaryEncoder(out))
    return out.getvalue()


def pending_gate(session):
    """The newest state of the session's gates; versions grow, and an older one is ignored."""
    consumer = Consumer({"bootstrap.servers": SERVERS, "group.id": "none", "enable.auto.commit": False,
                         "enable.partition.eof": True, "isolation.level": "read_committed"})
    topic = consumer.list_topics(GATES, timeout=10).topics[GATES]
    if topic.error:
        sys.exit(f"approve.py: {GATES}: {topic.error}")
    consumer.assign([TopicPartition(GATES, p, 0) for p in topic.partitions])
    reader, newest, open_ends = schema("GateEvent"), {}, len(topic.partitions)
    while open_ends:
        message = consumer.poll(10)
        if message is None:
            sys.exit(f"approve.py: no answer from Kafka at {SERVERS}")
        if message.error():
            open_ends -= message.error().code() == KafkaError._PARTITION_EOF
        elif message.value():
            gate = decode(message.value(), reader)
            seen = newest.get(gate["checkpoint_id"])
            if gate["session_id"] == session and (not seen or gate["version"] > seen["version"]):
                newest[gate["checkpoint_id"]] = gate
    consumer.close()
    return [gate for gate in newest.values() if gate["state"] == "PENDING"]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("session")
    parser.add_argument("--reject", action="store_true")
    parser.add_argument("--as", dest="who", default=getpass.getuser())
    parser.add_argument("--reason")
    options = parser.parse_args()
    gates = pending_gate(options.session)
    if len(gates) != 1:
        sys.exit(f"approve.py: {len(gates)} gates of session {options.session} are waiting")
    gate = gates[0]
    print(f"{gate['agent']} asks: {gate['title']} (risk {gate['risk']}, requested by {gate['requested_by']})")
    if gate["action"]:
        print(f"  {gate['action']['tool']} {gate['action']['arguments']}\n  {gate['action']['summary']}")
    decision = {
        "decision_id": str(uuid.uuid4()),
        "checkpoint_id": gate["checkpoint_id"],
        "session_id": options.session,
        "decision": "REJECT" if options.reject else "APPROVE",
        "decided_by": {"issuer": "local", "subject": options.who, "display": options.who},
        "decided_at": int(time.time() * 1000000),
        "reason": options.reason,
        "edits": None,
        "checkpoint_digest": gate["digest"],
        "source": {"system": "approve.py", "ref": "", "delivery_id": ""},
        "signature": None,
    }
    failures = []
    producer = Producer({"bootstrap.servers": SERVERS, "acks": "all", "enable.idempotence": True,
                         "partitioner": "murmur2_random"})
    producer.produce(APPROVALS, encode(decision, schema("ApprovalEvent")), gate["checkpoint_id"],
                     on_delivery=lambda error, _: failures.append(error) if error else None)
    if producer.flush(10) or failures:
        sys.exit(f"approve.py: Kafka did not take the decision: {failures or 'no answer'}")
    print(f"{decision['decision']} {decision['decision_id']}")


if __name__ == "__main__":
    main()
