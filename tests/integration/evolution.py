"""Schemas that change: an application's state in its versions, and records of other versions."""

import copy
import json

import avrolib

STATE = "com.example.review.State"

# What last year's agent wrote.
V1 = {
    "type": "record",
    "name": STATE,
    "fields": [
        {"name": "step", "type": "string"},
        {"name": "tries", "type": "int"},
        {
            "name": "mood",
            "type": {
                "type": "enum",
                "name": "Mood",
                "symbols": ["CALM", "EAGER", "GRUMPY"],
                "default": "CALM",
            },
        },
    ],
}
V1_DATUM = {"step": "CHECK", "tries": 3, "mood": "GRUMPY"}


def changed(change):
    """V1 with its fields changed in place by change(fields)."""
    schema = copy.deepcopy(V1)
    change(schema["fields"])
    return schema


def field_added():
    """A field with a default."""
    return changed(
        lambda fields: fields.append({"name": "budget", "type": "double", "default": 1.5})
    )


def field_renamed():
    """A field under a new name, the old one its alias."""
    return changed(lambda fields: fields[0].update(name="stage", aliases=["step"]))


def symbol_retired():
    """A symbol taken away; the enum has a default."""
    return changed(lambda fields: fields[2]["type"].update(symbols=["CALM", "EAGER"]))


def field_required():
    """A new field without a default: nothing that is older can be read."""
    return changed(lambda fields: fields.append({"name": "owner", "type": "string"}))


class Folder:
    """A folder for schemas.path."""

    def __init__(self, path):
        self.path = path
        path.mkdir(parents=True, exist_ok=True)

    def reader(self, schema, name=STATE):
        """What today's application reads."""
        self._put(self.path / f"{name}.avsc", schema)

    def writer(self, schema, name=STATE, file="v1"):
        """What an older one wrote."""
        (self.path / name).mkdir(exist_ok=True)
        self._put(self.path / name / f"{file}.avsc", schema)

    @staticmethod
    def _put(path, schema):
        text = schema if isinstance(schema, str) else json.dumps(schema)
        hidden = path.with_name(f".{path.name}.new")
        hidden.write_text(text, encoding="utf-8")
        hidden.replace(path)


def coder(schema):
    """The encoder and decoder of a schema, without the product."""
    return avrolib.Schema(json.dumps(schema))


def state(schema, datum):
    """An AppState in Avro."""
    code = coder(schema)
    return {
        "schema": schema["name"],
        "encoding": "AVRO",
        "fingerprint": code.fingerprint,
        "body": code.body(datum),
    }


def json_state(body, schema=STATE):
    """An AppState in JSON."""
    return {"schema": schema, "encoding": "JSON", "fingerprint": None, "body": body}


def of_another_version(name, change):
    """The encoder of one of the four records with its schema changed by change(schema)."""
    schema = copy.deepcopy(avrolib.schema(name).json)
    change(schema)
    return schema, coder(schema)
