"""What the README says in code is true."""

import re
import subprocess
import sys

from servers import ROOT


def snippet(text):
    """The Python of the README."""
    return re.search(r"```python\n(.*?)```", text, re.DOTALL).group(1)


def test_the_python_example(make_world):
    """It suspends a session that can then be approved and comes back."""
    world = make_world()
    world.start_worker()
    code = snippet((ROOT / "README.md").read_text(encoding="utf-8"))
    code = code.replace("localhost:9092", world.kafka.bootstrap)
    code = code.replace("fermata.suspends", world.topics["suspends"])
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True, timeout=60)
    world.wait(
        lambda: world.sql("SELECT 1 FROM fermata.checkpoint WHERE session_id = 'SESSION-808'"),
        "the checkpoint of the example",
    )
    world.run("approve", "SESSION-808")
    world.wait_records("resumes", lambda found: found, "its resume")
    assert "SESSION-808" in world.run("resumes", "--json").out


def test_the_session_that_the_readme_suspends(fermata):
    """`fermata suspend examples/session.jsonl`, as it stands there."""
    assert "suspend examples/session.jsonl" in (ROOT / "README.md").read_text(encoding="utf-8")
    fermata.start_worker()
    checkpoint_id = fermata.run("suspend", ROOT / "examples" / "session.jsonl").lines[0]
    fermata.wait_state(checkpoint_id, "PENDING")
    fermata.run("approve", "SESSION-808", "--as", "maria", "--reason", "read the script")
    fermata.wait_resume(checkpoint_id)
