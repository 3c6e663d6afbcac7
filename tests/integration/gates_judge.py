"""What people were told in the end is what the database has: the newest gate event of each checkpoint."""

from waiting import TIMEOUT

ROWS = (
    "SELECT checkpoint_id::text, state::text, version, approvals, wrapped_key IS NULL"
    " FROM fermata.checkpoint WHERE filled"
)


def differences(world):
    """(id, what is wrong) of each checkpoint whose last gate event does not say what its row says."""
    told, newest = {}, {}
    for record in world.read("gates"):
        name = record.key.decode()
        told[name] = record.datum if record.value is not None else None
        if record.value is not None:
            newest[name] = max(newest.get(name, 0), record.datum["version"])
    for name, state, version, approvals, gone in world.sql(ROWS):
        last = told.get(name)
        if gone:
            if last is not None:
                yield name, "it is gone, and has no tombstone"
        elif last is None:
            yield name, f"it is {state} in version {version}, and nobody was told"
        elif (last["state"], last["version"], last["approvals"]) != (state, version, approvals):
            said = (last["state"], last["version"], last["approvals"])
            yield name, f"its row says {(state, version, approvals)}, people were told {said}"
        elif newest[name] != version:
            yield name, f"it is in version {version}, and version {newest[name]} was told before"


def check(world, timeout=TIMEOUT):
    """Waits for what is still to be told, then fails with what was told wrong."""
    world.wait(
        lambda: not world.sql("SELECT 1 FROM fermata.gate_outbox LIMIT 1"),
        "an empty gate_outbox",
        timeout,
    )
    wrong = list(differences(world))
    assert not wrong, f"{len(wrong)} gate events: {wrong[:10]}"


def check_action(world, sent, include=True):
    """The first event of a suspend has all that is told of it, whoever has encoded it."""
    first = world.wait_gate(sent.id, lambda event: True, "is the first")
    datum, gate = sent.datum, sent.datum["gate"]
    wanted = {name: datum[name] for name in ("session_id", "tenant", "agent")}
    wanted |= {
        name: gate[name]
        for name in ("gate_id", "title", "requested_by", "required_approvals", "expires_at")
    }
    wanted |= {"digest": sent.digest, "action": gate["action"] if include else None}
    assert {name: first[name] for name in wanted} == wanted
    record = next(r for r in world.reader("gates").records if r.datum == first)
    assert record.key == sent.id.lower().encode()
    assert record.header("ce_id") == f"{sent.id.lower()}/{first['version']}"
    return record


def metric(worker, name="fermata_gate_events_handed_total"):
    """The value of a metric."""
    line = next(line for line in worker.metrics().splitlines() if line.startswith(name + " "))
    return int(line.split()[1])

