"""The beginning of a partition goes away, as retention would take it: DeleteRecords, which this
version of python3-confluent-kafka cannot ask for, by librdkafka itself."""

import ctypes
import ctypes.util

PRODUCER = 0
EVENT_MS = 15000

_lib = ctypes.CDLL(ctypes.util.find_library("rdkafka") or "librdkafka.so.1")
_pointer = ctypes.c_void_p
for _name, _result, _arguments in [
    ("rd_kafka_conf_new", _pointer, []),
    (
        "rd_kafka_conf_set",
        ctypes.c_int,
        [_pointer, ctypes.c_char_p, ctypes.c_char_p, ctypes.c_char_p, ctypes.c_size_t],
    ),
    ("rd_kafka_new", _pointer, [ctypes.c_int, _pointer, ctypes.c_char_p, ctypes.c_size_t]),
    ("rd_kafka_destroy", None, [_pointer]),
    ("rd_kafka_queue_new", _pointer, [_pointer]),
    ("rd_kafka_queue_destroy", None, [_pointer]),
    ("rd_kafka_queue_poll", _pointer, [_pointer, ctypes.c_int]),
    ("rd_kafka_event_error", ctypes.c_int, [_pointer]),
    ("rd_kafka_event_error_string", ctypes.c_char_p, [_pointer]),
    ("rd_kafka_event_destroy", None, [_pointer]),
    ("rd_kafka_topic_partition_list_new", _pointer, [ctypes.c_int]),
    (
        "rd_kafka_topic_partition_list_add",
        _pointer,
        [_pointer, ctypes.c_char_p, ctypes.c_int32],
    ),
    (
        "rd_kafka_topic_partition_list_set_offset",
        ctypes.c_int,
        [_pointer, ctypes.c_char_p, ctypes.c_int32, ctypes.c_int64],
    ),
    ("rd_kafka_topic_partition_list_destroy", None, [_pointer]),
    ("rd_kafka_DeleteRecords_new", _pointer, [_pointer]),
    ("rd_kafka_DeleteRecords_destroy", None, [_pointer]),
    (
        "rd_kafka_DeleteRecords",
        None,
        [_pointer, ctypes.POINTER(_pointer), ctypes.c_size_t, _pointer, _pointer],
    ),
]:
    _function = getattr(_lib, _name)
    _function.restype, _function.argtypes = _result, _arguments


def _handle(bootstrap):
    conf, why = _lib.rd_kafka_conf_new(), ctypes.create_string_buffer(256)
    _lib.rd_kafka_conf_set(conf, b"bootstrap.servers", bootstrap.encode(), why, 256)
    handle = _lib.rd_kafka_new(PRODUCER, conf, why, 256)
    assert handle, why.value
    return handle


def delete_records(bootstrap, topic, before):
    """Delete what stands below an offset of each partition: before = {partition: offset}."""
    handle = _handle(bootstrap)
    queue = _lib.rd_kafka_queue_new(handle)
    places = _lib.rd_kafka_topic_partition_list_new(len(before))
    for partition, offset in before.items():
        _lib.rd_kafka_topic_partition_list_add(places, topic.encode(), partition)
        _lib.rd_kafka_topic_partition_list_set_offset(places, topic.encode(), partition, offset)
    request = _lib.rd_kafka_DeleteRecords_new(places)
    _lib.rd_kafka_topic_partition_list_destroy(places)
    _lib.rd_kafka_DeleteRecords(handle, (_pointer * 1)(request), 1, None, queue)
    event = _lib.rd_kafka_queue_poll(queue, EVENT_MS)
    assert event, f"no answer to DeleteRecords within {EVENT_MS} ms"
    assert _lib.rd_kafka_event_error(event) == 0, _lib.rd_kafka_event_error_string(event)
    _lib.rd_kafka_event_destroy(event)
    _lib.rd_kafka_DeleteRecords_destroy(request)
    _lib.rd_kafka_queue_destroy(queue)
    _lib.rd_kafka_destroy(handle)
