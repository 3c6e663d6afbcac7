"""Takes the beginning of partitions away, as retention does, only at once (DeleteRecords of the broker).

python3-confluent-kafka cannot, librdkafka can: it is called as a C library.
"""

import ctypes

PRODUCER = 0
SECONDS = 30
BUFFER = 512


class _Partition(ctypes.Structure):
    _fields_ = [
        ("topic", ctypes.c_char_p),
        ("partition", ctypes.c_int32),
        ("offset", ctypes.c_int64),
        ("metadata", ctypes.c_void_p),
        ("metadata_size", ctypes.c_size_t),
        ("opaque", ctypes.c_void_p),
        ("err", ctypes.c_int),
        ("private", ctypes.c_void_p),
    ]


class _List(ctypes.Structure):
    _fields_ = [
        ("cnt", ctypes.c_int),
        ("size", ctypes.c_int),
        ("elems", ctypes.POINTER(_Partition)),
    ]


def _library():
    library = ctypes.CDLL("librdkafka.so.1")
    pointer = ctypes.c_void_p
    returns = {
        "rd_kafka_conf_new": pointer,
        "rd_kafka_new": pointer,
        "rd_kafka_queue_new": pointer,
        "rd_kafka_queue_poll": pointer,
        "rd_kafka_topic_partition_list_new": ctypes.POINTER(_List),
        "rd_kafka_topic_partition_list_add": ctypes.POINTER(_Partition),
        "rd_kafka_DeleteRecords_new": pointer,
        "rd_kafka_event_DeleteRecords_result": pointer,
        "rd_kafka_DeleteRecords_result_offsets": ctypes.POINTER(_List),
        "rd_kafka_event_error_string": ctypes.c_char_p,
    }
    for name, kind in returns.items():
        getattr(library, name).restype = kind
    return library


def _open(library, bootstrap):
    conf = library.rd_kafka_conf_new()
    text = ctypes.create_string_buffer(BUFFER)
    set_ = library.rd_kafka_conf_set
    set_(ctypes.c_void_p(conf), b"bootstrap.servers", bootstrap.encode(), text, BUFFER)
    handle = library.rd_kafka_new(PRODUCER, ctypes.c_void_p(conf), text, BUFFER)
    assert handle, text.value
    return ctypes.c_void_p(handle)


def _wanted(library, before):
    wanted = library.rd_kafka_topic_partition_list_new(len(before))
    for (topic, partition), offset in before.items():
        added = library.rd_kafka_topic_partition_list_add(wanted, topic.encode(), partition)
        added.contents.offset = offset
    return wanted


def _check(library, event):
    failed = library.rd_kafka_event_error(event)
    assert failed == 0, library.rd_kafka_event_error_string(event)
    result = library.rd_kafka_event_DeleteRecords_result(event)
    answered = library.rd_kafka_DeleteRecords_result_offsets(ctypes.c_void_p(result)).contents
    for i in range(answered.cnt):
        assert answered.elems[i].err == 0, f"partition {i}: error {answered.elems[i].err}"


def cut(bootstrap, before):
    """{(topic, partition): the first offset that stays}; -1: nothing of it does."""
    library = _library()
    handle = _open(library, bootstrap)
    queue = ctypes.c_void_p(library.rd_kafka_queue_new(handle))
    wanted = _wanted(library, before)
    request = ctypes.c_void_p(library.rd_kafka_DeleteRecords_new(wanted))
    requests = (ctypes.c_void_p * 1)(request)
    library.rd_kafka_DeleteRecords(handle, requests, ctypes.c_size_t(1), None, queue)
    event = ctypes.c_void_p(library.rd_kafka_queue_poll(queue, SECONDS * 1000))
    try:
        assert event, f"no answer within {SECONDS} s"
        _check(library, event)
    finally:
        library.rd_kafka_event_destroy(event)
        library.rd_kafka_DeleteRecords_destroy(request)
        library.rd_kafka_topic_partition_list_destroy(wanted)
        library.rd_kafka_queue_destroy(queue)
        library.rd_kafka_destroy(handle)
