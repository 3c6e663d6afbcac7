"""Kafka as the tests see it: make topics, produce and know that it is durable, read to the end."""

import ctypes
import threading
import time
from dataclasses import dataclass, field

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, ConfigResource, NewPartitions, NewTopic

import avrolib
from waiting import TIMEOUT, TimedOut, wait_for

LARGEST = 16 * 1024 * 1024


@dataclass
class Record:
    """One record as it was read; headers is a list of (name, bytes or None)."""

    topic: str
    partition: int
    offset: int
    key: bytes
    value: bytes
    headers: list
    timestamp: int
    schema: str = None
    _datum: dict = field(default=None, repr=False)

    @property
    def datum(self):
        """The decoded value; None stays None."""
        if self._datum is None and self.value is not None:
            self._datum = avrolib.schema(self.schema).decode(self.value)
        return self._datum

    @property
    def place(self):
        """(topic, partition, offset)."""
        return self.topic, self.partition, self.offset

    def header(self, name):
        """The text of the one header of that name, or None."""
        found = [value for key, value in self.headers if key == name]
        if len(found) > 1:
            raise AssertionError(f"header {name} is there {len(found)} times")
        return found[0].decode() if found and found[0] is not None else None


@dataclass(frozen=True)
class Ack:
    """Where Kafka put a record: its coordinates and its time in ms."""

    topic: str
    partition: int
    offset: int
    timestamp: int

    @property
    def place(self):
        """(topic, partition, offset)."""
        return self.topic, self.partition, self.offset


def create_topics(bootstrap, partitions_by_name, configs=None):
    """Make topics and wait until each partition has a leader."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    wanted = [
        NewTopic(name, count, 1, config=(configs or {}).get(name, {}))
        for name, count in partitions_by_name.items()
    ]
    for future in admin.create_topics(wanted, operation_timeout=30).values():
        future.result()

    def all_led():
        known = admin.list_topics(timeout=30).topics
        return all(
            name in known
            and len(known[name].partitions) == count
            and all(p.leader >= 0 for p in known[name].partitions.values())
            for name, count in partitions_by_name.items()
        )

    wait_for(all_led, f"topics {sorted(partitions_by_name)}")


def alter_topic(bootstrap, name, config):
    """Give a topic these settings; those that are not named get their defaults."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    resource = ConfigResource(ConfigResource.Type.TOPIC, name, set_config=config)
    for future in admin.alter_configs([resource]).values():
        future.result()


def add_partitions(bootstrap, name, count):
    """Grow a topic to so many partitions."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    for future in admin.create_partitions([NewPartitions(name, count)]).values():
        future.result()
    wait_for(
        lambda: len(admin.list_topics(name, timeout=30).topics[name].partitions) == count,
        f"{name} to have {count} partitions",
    )


def delete_records(bootstrap, before):
    """Take records out of topics as retention would: before is {(topic, partition): offset}.

    confluent_kafka 1.7 cannot do it; librdkafka, which it has loaded, can.
    """
    rd = ctypes.CDLL("librdkafka.so.1")
    for name in ("conf_new", "new", "topic_partition_list_new", "topic_partition_list_add"):
        getattr(rd, f"rd_kafka_{name}").restype = ctypes.c_void_p
    for name in ("DeleteRecords_new", "queue_new", "queue_poll", "event_error_string"):
        getattr(rd, f"rd_kafka_{name}").restype = ctypes.c_void_p
    why = ctypes.create_string_buffer(512)
    conf = ctypes.c_void_p(rd.rd_kafka_conf_new())
    rd.rd_kafka_conf_set(conf, b"bootstrap.servers", bootstrap.encode(), why, len(why))
    client = ctypes.c_void_p(rd.rd_kafka_new(0, conf, why, len(why)))
    parts = ctypes.c_void_p(rd.rd_kafka_topic_partition_list_new(len(before)))
    for (topic, partition), offset in before.items():
        rd.rd_kafka_topic_partition_list_add(parts, topic.encode(), partition)
        rd.rd_kafka_topic_partition_list_set_offset(
            parts, topic.encode(), partition, ctypes.c_int64(offset)
        )
    wish = ctypes.c_void_p(rd.rd_kafka_DeleteRecords_new(parts))
    queue = ctypes.c_void_p(rd.rd_kafka_queue_new(client))
    rd.rd_kafka_DeleteRecords(client, ctypes.byref(wish), ctypes.c_size_t(1), None, queue)
    event = ctypes.c_void_p(rd.rd_kafka_queue_poll(queue, int(TIMEOUT * 1000)))
    failed = not event or rd.rd_kafka_event_error(event)
    rd.rd_kafka_event_destroy(event)
    rd.rd_kafka_DeleteRecords_destroy(wish)
    rd.rd_kafka_topic_partition_list_destroy(parts)
    rd.rd_kafka_queue_destroy(queue)
    rd.rd_kafka_destroy(client)
    if failed:
        raise AssertionError(f"records were not deleted: {before}")

    def all_gone():
        lows = low_watermarks(bootstrap, {topic for topic, _ in before})
        return all(lows[place] >= offset for place, offset in before.items())

    wait_for(all_gone, f"the first offsets to be {before}")


def delete_topics(bootstrap, names):
    """Delete topics; what is not there is left alone."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    for future in admin.delete_topics(list(names), operation_timeout=10).values():
        if future.exception() is not None:
            error = future.exception().args[0]
            if error.code() != KafkaError.UNKNOWN_TOPIC_OR_PART:
                raise future.exception()


class Sender:
    """A plain producer, acks=all. Every send is known to be durable when it returns."""

    def __init__(self, bootstrap, **properties):
        self._lock = threading.Lock()
        settings = {
            "bootstrap.servers": bootstrap,
            "acks": "all",
            "enable.idempotence": True,
            "partitioner": "murmur2_random",
            "message.max.bytes": LARGEST,
            "linger.ms": 0,
            "reconnect.backoff.max.ms": 500,
        }
        settings.update({key.replace("_", "."): value for key, value in properties.items()})
        self._producer = Producer(settings)

    def prime(self, *names):
        """Learn of topics that were made just now; a first send that finds them out takes 1 s."""
        for name in names:
            self._producer.list_topics(name, timeout=TIMEOUT)

    @property
    def brokers(self):
        """["host:port"] of the brokers as they are advertised to this producer."""
        known = self._producer.list_topics(timeout=TIMEOUT).brokers.values()
        return [f"{broker.host}:{broker.port}" for broker in known]

    def send(self, topic, value, key=None, headers=None, partition=-1, timestamp=0):
        """Produce one record; returns its Ack."""
        return self.send_all([(topic, value, key, headers, partition, timestamp)])[0]

    def send_all(self, records):
        """Produce (topic, value, key, headers, partition, timestamp) in order; returns the Acks.

        The last four may be left out.
        """
        acks = []
        with self._lock:
            for index, record in enumerate(records):
                acks.append(None)
                self._enqueue(index, acks, *record)
            left = self._producer.flush(TIMEOUT)
        if left:
            raise TimedOut(f"{left} records were not acknowledged within {TIMEOUT:.0f} s")
        for ack in acks:
            if isinstance(ack, KafkaError):
                raise AssertionError(f"Kafka refused a record: {ack}")
        return acks

    def _enqueue(self, index, acks, topic, value, key=None, headers=None, partition=-1, at=0):
        def acked(error, message):
            acks[index] = error or Ack(
                message.topic(), message.partition(), message.offset(), message.timestamp()[1]
            )

        while True:
            try:
                self._producer.produce(
                    topic,
                    value=value,
                    key=key,
                    headers=headers,
                    partition=partition,
                    timestamp=at,
                    on_delivery=acked,
                )
                self._producer.poll(0)
                return
            except BufferError:
                self._producer.poll(0.1)


class Reader:
    """Reads a topic from its beginning, read_committed unless told otherwise, and remembers all."""

    def __init__(self, bootstrap, topic, schema=None, isolation="read_committed"):
        self.topic = topic
        self.schema = schema
        self.records = []
        self._consumer = Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": "fermata-test-reader",
                "enable.auto.commit": False,
                "enable.partition.eof": True,
                "isolation.level": isolation,
                "auto.offset.reset": "error",
                "fetch.wait.max.ms": 20,
                "fetch.message.max.bytes": LARGEST,
                "receive.message.max.bytes": 4 * LARGEST,
                "queued.max.messages.kbytes": 65536,
            }
        )
        metadata = self._consumer.list_topics(topic, timeout=TIMEOUT).topics[topic]
        if not metadata.partitions:
            raise AssertionError(f"there is no topic {topic}")
        self._position = {partition: 0 for partition in metadata.partitions}
        self._consumer.assign([TopicPartition(topic, p, OFFSET_BEGINNING) for p in self._position])

    def close(self):
        """Leave the broker."""
        self._consumer.close()

    def poll(self, seconds):
        """Take in what is there, wait that long for the first; returns whether any record came."""
        first = self._consumer.poll(seconds)
        came = False
        for message in [first, *self._consumer.consume(500, 0)] if first is not None else []:
            error = message.error()
            if error is not None and error.code() == KafkaError._PARTITION_EOF:
                self._advance(message.partition(), message.offset())
            elif error is not None:
                raise AssertionError(f"reading {self.topic}: {error}")
            else:
                came = True
                self._advance(message.partition(), message.offset() + 1)
                self.records.append(self._record(message))
        return came

    def _advance(self, partition, offset):
        self._position[partition] = max(self._position[partition], offset)

    def _record(self, message):
        return Record(
            message.topic(),
            message.partition(),
            message.offset(),
            message.key(),
            message.value(),
            message.headers() or [],
            message.timestamp()[1],
            self.schema,
        )

    def _ends(self, timeout):
        return {
            p: self._consumer.get_watermark_offsets(TopicPartition(self.topic, p), timeout)[1]
            for p in self._position
        }

    def drain(self, timeout=TIMEOUT):
        """Yields each record up to what is the end now and keeps none, for topics that are long."""
        ends = self._ends(timeout)
        moved = time.monotonic()
        while any(self._position[p] < end for p, end in ends.items()):
            if self.poll(0.05):
                moved = time.monotonic()
            yield from self.records
            self.records.clear()
            if time.monotonic() - moved > timeout:
                raise TimedOut(f"{self.topic}: at {self._position}, the end is {ends}")

    def catch_up(self, timeout=TIMEOUT):
        """Read on to what is the end now (the last stable offset); returns all records."""
        ends = self._ends(timeout)
        deadline = time.monotonic() + timeout
        while any(self._position[p] < end for p, end in ends.items()):
            self.poll(0.05)
            if time.monotonic() > deadline:
                raise TimedOut(f"{self.topic}: at {self._position}, the end is {ends}")
        return self.records

    def wait(self, condition, what, timeout=TIMEOUT, meanwhile=None):
        """Read on until condition(records) is true; returns what it returned."""
        deadline = time.monotonic() + timeout
        while True:
            result = condition(self.records)
            if result:
                return result
            if meanwhile is not None:
                meanwhile()
            if time.monotonic() > deadline:
                text = what() if callable(what) else what
                raise TimedOut(
                    f"waited {timeout:.0f} s in vain for {text} among the {len(self.records)} "
                    f"records of {self.topic}"
                )
            self.poll(0.05)


# What a client may say of a partition that is there, while it asks for its leader anew.
LEADER_SOUGHT = (
    KafkaError._UNKNOWN_PARTITION,  # pylint: disable=protected-access  # so it is called
    KafkaError.LEADER_NOT_AVAILABLE,
    KafkaError.NOT_LEADER_FOR_PARTITION,
)


def _marks_of(consumer, topic, partition):
    """(First offset, high watermark), or None while its leader is not known."""
    try:
        return consumer.get_watermark_offsets(TopicPartition(topic, partition), timeout=TIMEOUT)
    except KafkaException as fault:
        if fault.args[0].code() in LEADER_SOUGHT:
            return None
        raise


def _watermarks(bootstrap, topics):
    """{(topic, partition): (first offset, high watermark)}."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "fermata-test-reader",
            "isolation.level": "read_uncommitted",
        }
    )
    try:
        known = consumer.list_topics(timeout=TIMEOUT).topics
        return {
            (topic, p): wait_for(
                lambda topic=topic, p=p: _marks_of(consumer, topic, p), f"a leader of {topic} [{p}]"
            )
            for topic in topics
            for p in known[topic].partitions
        }
    finally:
        consumer.close()


def high_watermarks(bootstrap, topics):
    """{(topic, partition): high watermark}, open transactions and markers counted in."""
    return {place: marks[1] for place, marks in _watermarks(bootstrap, topics).items()}


def low_watermarks(bootstrap, topics):
    """{(topic, partition): the first offset that is there}."""
    return {place: marks[0] for place, marks in _watermarks(bootstrap, topics).items()}


def murmur2(key):
    """The hash of Kafka's own partitioner."""
    mask = 0xFFFFFFFF
    mix = 0x5BD1E995
    value = (0x9747B28C ^ len(key)) & mask
    whole = len(key) & ~3
    for at in range(0, whole, 4):
        k = int.from_bytes(key[at : at + 4], "little") * mix & mask
        k = (k ^ k >> 24) * mix & mask
        value = (value * mix & mask) ^ k
    if len(key) > whole:
        value = (value ^ int.from_bytes(key[whole:], "little")) * mix & mask
    value = (value ^ value >> 13) * mix & mask
    return value ^ value >> 15


def partition_of(key, count):
    """The partition that Kafka's own clients give a key."""
    return (murmur2(key) & 0x7FFFFFFF) % count
