"""Gate events that intake hands over to a relay of its process say what those say that a relay reads."""

import gates_judge
import judge
import records
from gates_judge import check_action, metric

TRACE = "00-0af7651916cd43dd8448eb211c80319c-{:016x}-01"


def traced(world, number, **over):
    """A suspend with a trace of its own; (it, its trace)."""
    trace = TRACE.format(number + 1)
    headers = [("traceparent", trace.encode()), ("tracestate", b"vendor=1")]
    return world.suspend(headers=headers, **over), trace


def check_traced(world, sent, trace, include=True):
    """All that is told of it, and its trace."""
    record = check_action(world, sent, include)
    assert record.header("traceparent") == trace
    assert record.header("tracestate") == "vendor=1"


def test_what_is_handed_over_is_the_same(make_world):
    """A worker alone hands over; each first gate event has all of it. (A relay that is not past its R2, or
    is looking just then, reads it.)"""
    world = make_world()
    worker = world.start_worker()
    sent = []

    def many_were_handed_over():
        sent.append(traced(world, len(sent)))
        check_traced(world, *sent[-1])
        return metric(worker) >= 15

    world.wait(many_were_handed_over, "gate events that were handed over")
    gates_judge.check(world)
    judge.check(world)


def test_what_another_process_has_is_read(make_world):
    """Two workers: some suspends are taken in by the one and told by the other."""
    world = make_world(partitions=4)
    workers = [world.start_worker(), world.start_worker()]
    sent = []

    def told_by_both():
        sent.append(traced(world, len(sent)))
        check_traced(world, *sent[-1])
        handed = [metric(worker) for worker in workers]
        told = [metric(worker, "fermata_gate_events_total") for worker in workers]
        return all(handed) and all(a < b for a, b in zip(handed, told))

    world.wait(told_by_both, "gate events that were handed over, and others, of both workers")
    gates_judge.check(world)
    judge.check(world)


def test_the_action_stays_back(make_world):
    """gates.include_action = false holds for what is handed over, too."""
    world = make_world(settings={"gates.include_action": "false"})
    worker = world.start_worker()
    for number in range(10):
        check_traced(world, *traced(world, number), include=False)
    assert metric(worker) > 0


def test_what_changes_at_once_is_told_as_it_is_then(make_world):
    """Superseded, decided and counted in the batch of the suspend or the next one: the last of it is told last."""
    world = make_world()
    worker = world.start_worker()
    check_action(world, world.suspend())
    for number in range(15):
        same = {"session_id": f"session-{number}", "gate": {"gate_id": "one"}}
        for seq in (1, 2, 3):
            world.suspend(**same, suspend_seq=seq)
        world.decide(world.suspend(session_id=f"decided-{number}"))
        world.decide(world.suspend(gate={"required_approvals": 2}))
        early = records.make_suspend()
        world.send_approval(records.make_approval(early))
        world.send_suspend(early)
    world.settle()
    gates_judge.check(world)
    judge.check(world)
    assert metric(worker) > 0
    assert world.sql("SELECT 1 FROM fermata.checkpoint WHERE state = 'SUPERSEDED'")


def test_what_cannot_be_opened_was_told_with_its_action(make_world):
    """The relay does not open what was handed over; what becomes of it later is told without it."""
    world = make_world()
    world.start_worker()
    check_action(world, world.suspend())
    sent = world.suspend()
    check_action(world, sent)
    world.sql("UPDATE fermata.payload SET body = set_byte(body, 40, 255 - get_byte(body, 40)) WHERE checkpoint_id = %s", sent.id)
    world.decide(sent)
    world.wait_state(sent.id, "QUARANTINED")
    last = world.wait_gate(sent.id, lambda event: event["state"] == "QUARANTINED", "is QUARANTINED")
    assert last["action"] is None
    gates_judge.check(world)


def test_a_worker_that_dies_hands_nothing_on(make_world):
    """What the next one finds in gate_outbox it reads."""
    world = make_world()
    for number in range(3):
        worker = world.start_worker()
        check_action(world, world.suspend())
        sent = [traced(world, number * 100 + i) for i in range(30)]
        worker.kill()
    world.start_worker()
    for each in sent:
        check_traced(world, *each)
    world.settle()
    gates_judge.check(world)
    judge.check(world)
