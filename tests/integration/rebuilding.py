"""A world in which everything has happened that can, and its tables as something to compare."""

import json

import records
from acts import SECOND
from records import by

SETTINGS = {
    "decisions.allow_edits": "true",
    "routes.dropper.agent": "dropper",
    "routes.dropper.on_reject": "drop",
}

# What a rebuild may give another value, and why. Everything else is the same.
MAY_DIFFER = {
    "checkpoint": {
        "version": "grows with each change: on a rebuild there are fewer of them",
        "changed_at": "when this database changed it",
        "from_ledger": "the resume was read before the decisions",
        "ledger_decisions": "the same",
        "wrapped_key": "a new key for each sealing",
        "seal_commit": "the same",
    },
    "decision": {
        "seq": "order of judging in this database: between partitions another one",
        "edits_wrapped_key": "a new key for each sealing",
        "edits_commit": "the same",
        "edits_body": "the same; its length is compared",
    },
}


def _rows(world, table):
    left_out = "".join(f" - '{column}'" for column in MAY_DIFFER[table])
    extra = (
        ", 'edits_len', octet_length(edits_body)" if table == "decision" else ", 'sealed', payload.len"
    )
    join = (
        ""
        if table == "decision"
        else " LEFT JOIN (SELECT checkpoint_id, octet_length(body) + coalesce(octet_length(tail), 0) AS len"
        " FROM fermata.payload) payload"
        " USING (checkpoint_id)"
    )
    rows = world.sql(
        f"SELECT {table}_id::text, to_jsonb(t){left_out} || jsonb_build_object('x', 1{extra})"
        f" FROM fermata.{table} t{join}"
    )
    return {key: row for key, row in rows}


def _same_word_for_superseded(row):
    """By which one, or on arrival: that hangs on the order in which partitions are read."""
    if row["state"] == "SUPERSEDED":
        row["reason"] = "superseded"
    return row


def tables(world):
    """{table: {id: row}} of what a rebuild has to bring back, row by row."""
    checkpoints = _rows(world, "checkpoint")
    lists = {
        name: sorted(world.sql(f"SELECT {columns} FROM fermata.{name}"))
        for name, columns in {
            "expiry": "checkpoint_id::text, expires_at",
            "unclaimed": "checkpoint_id::text, since, decisions",
            "outbox": "checkpoint_id::text, topic, partition",
        }.items()
    }
    return {
        "checkpoint": {key: _same_word_for_superseded(row) for key, row in checkpoints.items()},
        "decision": _rows(world, "decision"),
        **lists,
    }


def differences(before, after):
    """What is not the same, in words."""
    found = []
    for table, rows in before.items():
        if isinstance(rows, list):
            if rows != after[table]:
                found.append(f"{table}: {rows} is now {after[table]}")
            continue
        for key in sorted(rows.keys() | after[table].keys()):
            old, new = rows.get(key), after[table].get(key)
            if old is None or new is None:
                found.append(f"{table} {key}: {'gone' if new is None else 'new'}")
                continue
            found += [
                f"{table} {key} {name}: {old.get(name)!r} is now {new.get(name)!r}"
                for name in sorted(old.keys() | new.keys())
                if old.get(name) != new.get(name)
            ]
    return found


def empty_database(world):
    """The database is lost; a new one is there, migrated."""
    world.disconnect()
    world.postgres.drop_database(world.name)
    world.postgres.create_database(world.name)
    world.run("migrate")


def rebuild(world, *args, **options):
    """Run `fermata rebuild --json`; returns {(what, name): count} and the other lines."""
    done = world.run("rebuild", "--json", *args, **options)
    lines = [json.loads(line) for line in done.lines]
    counts = {(line["what"], line["name"]): line["count"] for line in lines if "count" in line}
    return done, counts, [line for line in lines if "count" not in line]


# ---- everything that can happen --------------------------------------------------------------


def _waiting(world):
    """What nobody has decided yet."""
    world.suspend()
    world.suspend(gate={"expires_at": records.now_us() + 86_400 * SECOND})
    half = world.suspend(gate={"required_approvals": 2})
    world.decide(half)
    held = world.suspend(gate={"expires_at": records.now_us() - SECOND, "on_expiry": "HOLD"})
    world.decide(held, decision="EXPIRE", decided_by=by("clock"))
    world.suspend(session_id="ü" * 20, headers=[("traceparent", TRACE), ("tracestate", b"a=b")])


TRACE = b"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"


def _decided(world):
    """One of each verdict, with all the decisions that do not count around them."""
    approved = world.suspend(checkpoint_id=records.uuid7().upper())
    world.decide(approved, checkpoint_digest=bytes(32), decided_by=by("mallory"))
    world.decide(approved, session_id="another", decided_by=by("mallory"))
    world.decide(approved, reason="read the script")
    world.decide(approved, decision="REJECT", decided_by=by("bob"), reason="too late")
    for kind in ("REJECT", "CANCEL"):
        world.decide(world.suspend(), decision=kind, reason=f"a {kind}")
    quorum = world.suspend(gate={"required_approvals": 2, "approvers": ["ann", "test:bob"]})
    for who in ("ann", "ann", "eve", "bob", "ann"):
        world.decide(quorum, decided_by=by(who))
    edited = world.suspend()
    edits = {"config": {"VRAM_limit_gb": 24.0, "hosts": ["a"]}, "action_arguments": '{"dry_run":true}'}
    world.decide(edited, edits=edits)
    expired = world.suspend(gate={"expires_at": records.now_us() - SECOND})
    world.decide(expired)
    world.decide(expired, decision="EXPIRE", decided_by=by("clock"))
    held = world.suspend(gate={"expires_at": records.now_us() - SECOND, "on_expiry": "HOLD"})
    world.decide(held, decision="EXPIRE", decided_by=by("clock"))
    world.decide(held, reason="at last")
    dropped = world.suspend(agent="dropper")
    world.decide(dropped, decision="REJECT", reason="no")
    return dropped


def _superseded(world):
    first = world.suspend(session_id="line")
    world.wait_state(first.id, "PENDING")
    second = world.suspend(session_id="line", suspend_seq=2)
    world.wait_state(first.id, "SUPERSEDED")
    world.decide(first)
    late = world.suspend(session_id="line", suspend_seq=1)
    world.wait_state(late.id, "SUPERSEDED")
    world.wait_state(second.id, "PENDING")


def _early(world):
    datum = records.make_suspend()
    early = world.send_approval(records.make_approval(datum))
    world.wait_decision(early.decision_id, "waiting")
    world.send_suspend(datum)
    world.decide()  # of what never came


def _again_and_bad(world):
    """Doubles, conflicts and what cannot be read; returns the Acks of what becomes dead letters."""
    sent = world.suspend()
    world.send_suspend(sent.datum)
    decided = world.decide(sent)
    world.send_approval(decided.datum)
    other = dict(sent.datum, history=[records.entry("USER", "other")])
    conflict = world.send_suspend(other)
    contrary = world.send_approval(dict(decided.datum, decision="REJECT"))
    world.suspends.remove(conflict)
    world.approvals.remove(contrary)
    bad = [
        world.send("suspends", b"no record", b"key", [("x", b"y")]),
        world.send("suspends", None, b"key"),
        world.send("approvals", b"\xc3\x01nothing", b"key"),
    ]
    return [conflict.ack, contrary.ack, *bad]


def everything(world):
    """All of it, settled; returns the Acks of what became dead letters, and what was dropped."""
    _waiting(world)
    dropped = _decided(world)
    _superseded(world)
    _early(world)
    bad = _again_and_bad(world)
    world.settle()
    for ack in bad:
        world.wait_letter(ack)
    return bad, dropped
