"""SESSION-808 from end to end with the command line, and its words nowhere at rest.

The session's text holds a word made up for the run. After the story it must not be found in any
file of the database, nor in what the programs say about it; the title of the gate, which stands
in clear, holds another such word that must be found, which shows that the search finds things.
"""

import json
import secrets

import pytest

import records
import world as worlds

SEALED = f"sealed{secrets.token_hex(8)}"
CLEAR = f"clear{secrets.token_hex(8)}"
NODE = "AWAITING_HUMAN_APPROVAL"
HISTORY = [
    ("SYSTEM", f"You are to update the schema of the API's database. {SEALED}"),
    ("AGENT", f"I will write the migration and run the safety checks. {SEALED}"),
    ("AGENT", "The script is done. I wait for review before I run the deployment tool."),
]


def story(session="SESSION-808", **over):
    """The suspend event as an agent that speaks JSON would print it: no ids, no times."""
    result = {
        "session_id": session,
        "agent": "schema-agent",
        "agent_version": "1.0",
        "step": {
            "graph": "migration",
            "node": NODE,
            "resume_at": f"DEPLOY {SEALED}",
            "path": ["PLAN", SEALED],
            "attempt": 1,
        },
        "history": [
            {"role": role, "content": content, "tool_calls": []} for role, content in HISTORY
        ],
        "config": {"VRAM_limit_gb": 16.0, "user_id": "usr_99", "word": SEALED},
        "tool_permissions": {"deploy": "ASK"},
        "gate": {
            "gate_id": "deploy",
            "title": f"Run the migration {CLEAR}",
            "action": {
                "tool": "deploy",
                "arguments": json.dumps({"script": "0042.sql", "word": SEALED}),
                "risk": "HIGH",
                "summary": f"Runs the migration {SEALED}",
            },
            "requested_by": "schema-agent",
            "labels": {},
        },
    }
    result.update(over)
    return result


def search(directory, words):
    """The words (bytes) that are found in any file below a directory."""
    found = set()
    for path in sorted(directory.rglob("*")):
        if path.is_file():
            data = path.read_bytes()
            found |= {word for word in words if word in data}
    return found


@pytest.fixture(scope="module")
def told(kafka, postgres, tmp_path_factory):
    """A world in which the story has been told."""
    directory = tmp_path_factory.mktemp("story")
    with worlds.World("story", directory, kafka, postgres) as world:
        tell(world)
        yield world


def tell(world):
    """The whole story; what was said on the way is kept in world.said."""
    world.said = []

    def run(*args, **options):
        done = world.run(*args, **options)
        world.said.append(done)
        return done

    worker = world.start_worker()
    world.id = run("suspend", stdin=story()).out.strip()
    world.wait_state(world.id, "PENDING")
    run("pending")
    run("pending", "--json")
    run("show", "SESSION-808")
    world.decision_id = run(
        "approve", "SESSION-808", "--as", "reviewer", "--reason", "looks good"
    ).out.strip()
    world.wait_state(world.id, "RESUMED")
    run("history", world.id)
    worker.stop()
    world.start_worker()  # a new process knows as much


def test_what_the_commands_print(told):
    """`suspend` prints the id of the checkpoint, `approve` that of the decision."""
    assert len(told.id) == 36 and told.id[14] == "7"
    assert told.decision(told.decision_id)[0] == "counted"


def test_the_session_comes_back_whole(told):
    """In the records and in the command line's JSON."""
    (record,) = [r for r in told.read("resumes") if r.datum["checkpoint_id"] == told.id]
    (line,) = [
        line
        for line in told.run("resumes", "--json").lines
        if json.loads(line)["checkpoint_id"] == told.id
    ]
    shown = json.loads(line)
    for datum in (record.datum, shown):
        assert datum["session_id"] == "SESSION-808"
        assert datum["verdict"] == "APPROVED"
        assert [(e["role"], e["content"]) for e in datum["history"]] == HISTORY
        assert datum["step"] == story()["step"]
        assert datum["config"] == story()["config"]
        assert datum["gate"]["action"] == story()["gate"]["action"]
        assert datum["suspend_seq"] == datum["suspended_at"]
        assert datum["tenant"] == "default"
        (decision,) = datum["decisions"]
        assert decision["decision_id"] == told.decision_id
        assert decision["decided_by"]["subject"] == "reviewer"
        assert decision["decided_by"]["issuer"] == "local"
        assert decision["reason"] == "looks good"
    assert isinstance(record.datum["config"]["VRAM_limit_gb"], float)
    assert '"VRAM_limit_gb":16.0' in line.replace(" ", ""), "a double stays a double"


def test_the_decision_carried_the_digest(told):
    """Of the very bytes that went through Kafka."""
    (suspend,) = told.read("suspends")
    (approval,) = told.read("approvals")
    assert approval.datum["checkpoint_digest"] == records.digest(suspend.value)
    assert approval.datum["checkpoint_id"] == told.id
    assert approval.key == told.id.encode()
    assert suspend.key == told.id.encode()


def test_an_unknown_session_is_an_error_that_names_it(told):
    """For those who ask and for those who decide."""
    for command in ("show", "history", "approve", "reject", "cancel"):
        done = told.run(command, "SESSION-809", rc=1)
        assert "SESSION-809" in done.err and done.out == ""
        assert len(done.err.strip().splitlines()) == 1


def test_show_opens_the_state_only_when_asked(told):
    """`show` without --state says nothing that is sealed."""
    assert SEALED not in told.run("show", told.id).out
    assert SEALED not in told.run("show", told.id, "--json").out
    assert HISTORY[0][1] in told.run("show", told.id, "--state").out


def test_the_words_are_in_no_file_of_the_database(told):
    """Sealed: not in tables, WAL, logs; the title, which is in clear, is found."""
    if told.postgres.data is None:
        pytest.skip("the files of this PostgreSQL cannot be read")
    told.postgres.execute("CHECKPOINT")
    words = [SEALED.encode(), CLEAR.encode(), b"run the deployment tool"]
    found = search(told.postgres.data, words)
    assert found == {CLEAR.encode()}


def test_the_words_are_in_nothing_that_is_said(told):
    """Logs at debug level, metrics, what commands print without --state, errors, dead letters."""
    assert SEALED not in told.workers[-1].metrics()
    for worker in told.workers:
        assert worker.log and SEALED not in worker.log
    for done in told.said:
        assert SEALED not in done.out + done.err, done.argv
    if told.postgres.ours:
        assert SEALED not in (told.postgres.directory / "postgres.log").read_text()
    for record in told.read("resumes") + [r for r in told.read("gates") if r.value]:
        assert all(SEALED.encode() not in (value or b"") for _, value in record.headers)


BAD = {
    "arguments": dict(
        history=[
            {
                "role": "AGENT",
                "content": SEALED,
                "tool_calls": [{"id": "1", "name": "n", "arguments": f"{{{SEALED}"}],
            }
        ]
    ),
    "role": dict(history=[{"role": SEALED, "content": SEALED, "tool_calls": []}]),
    "config": dict(config={"k": {SEALED: SEALED}}),
    "session_id": dict(session_id=""),
}


@pytest.mark.parametrize("field", BAD)
def test_errors_about_the_state_do_not_repeat_it(told, field):
    """`suspend` refuses what the worker would refuse; it names the field, not the content."""
    done = told.run("suspend", stdin=story(**BAD[field]), rc=None)
    assert done.rc in (1, 2), done
    assert field in done.err and SEALED not in done.err + done.out
    assert len(done.err.strip().splitlines()) == 1


def test_dead_letters_do_not_repeat_it(told):
    """A bad record with the word in it."""
    datum = records.make_suspend(
        session_id="", history=[records.entry("USER", SEALED)], config={SEALED: SEALED}
    )
    letter = told.wait_letter(told.send("suspends", records.encode_suspend(datum)))
    assert letter.header("fermata.error.code") == "invalid"
    assert all(SEALED.encode() not in (value or b"") for _, value in letter.headers)
    assert SEALED not in told.workers[-1].log
