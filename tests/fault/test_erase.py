"""A session is erased while a relay holds it opened."""

from acts import pending
from waiting import wait_for

PLACES = ["relay.before_commit", "relay.after_commit"]


def keys(world, session_id):
    """How many keys and payloads a session has."""
    return world.sql(
        "SELECT count(*) FILTER (WHERE c.wrapped_key IS NOT NULL) + count(p.body)"
        " FROM fermata.checkpoint c LEFT JOIN fermata.payload p USING (checkpoint_id)"
        " WHERE c.session_id = %s",
        session_id,
    )[0][0]


def hold(directory, place, action):
    """Arm a place."""
    draft = directory / "draft"
    draft.write_text(action)
    draft.rename(directory / f"arm.{place}")


def check(world, sent, others):
    """Published once at most; nothing of it is in the database; its gate is taken back; the others go on."""
    for other in others:
        world.wait_resume(other.id)
        world.wait_state(other.id, "RESUMED")
    world.settle()
    assert world.state(sent.id) == "RESUMED"
    assert keys(world, "SESSION-808") == 0
    assert [r.datum["checkpoint_id"] for r in world.read("resumes")].count(sent.id) <= 1
    world.wait_records(
        "gates",
        lambda found: [r.value for r in found if r.key == sent.id.encode()][-1:] == [None],
        "a tombstone at the end",
    )


def test_erased_while_it_is_published(make_world, failpoint_bin, tmp_path):
    """The relay is held before and after its commit, or dies there, while the session is erased."""
    assert failpoint_bin
    for place in PLACES:
        for action in ("delay:2000", "kill"):
            world = make_world()
            directory = tmp_path / f"{place}-{action[:4]}"
            directory.mkdir()
            env = {"FERMATA_FAILPOINT_DIR": str(directory)}
            worker = world.start_worker(env=env)
            sent = pending(world, session_id="SESSION-808")
            others = [pending(world) for _ in range(3)]
            worker.ended_by_us = action == "kill"
            # What is held is to be the transaction of the resumes, not one that tells of the suspends.
            world.wait(lambda: not world.sql("SELECT 1 FROM fermata.gate_outbox"), "the suspends to be told of")
            hold(directory, place, action)
            # In one partition of the approvals, so that one batch decides all of them.
            for each in (sent, *others):
                world.decide(each, partition=0)
            reached = f"{place}.{worker.pid}"
            wait_for(lambda at=directory / reached: at.exists(), f"{reached} to be reached")
            world.run("erase", "SESSION-808", "--yes")
            if action == "kill":
                worker.wait()
                world.start_worker()
            check(world, sent, others)
            if action != "kill":  # its mark stood
                assert sum(r.datum["checkpoint_id"] == sent.id for r in world.read("resumes")) == 1
                assert "went back" not in worker.log
