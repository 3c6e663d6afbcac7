"""The harness of tests/integration, for tests that break things on purpose."""

import os
import sys
from pathlib import Path

import pytest

INTEGRATION = Path(__file__).resolve().parent.parent / "integration"
sys.path.insert(0, str(INTEGRATION))
sys.path.insert(0, str(Path(__file__).resolve().parent))

# Its fixtures, by their own names: servers, worlds and the logs of what failed.
from importlib import util  # noqa: E402

_spec = util.spec_from_file_location("integration_conftest", INTEGRATION / "conftest.py")
_harness = util.module_from_spec(_spec)
_spec.loader.exec_module(_harness)

work_directory = _harness.work_directory
kafka = _harness.kafka
postgres = _harness.postgres
private_directory = _harness.private_directory
private_kafka = _harness.private_kafka
private_postgres = _harness.private_postgres
make_world = _harness.make_world
pytest_configure = _harness.pytest_configure
pytest_terminal_summary = _harness.pytest_terminal_summary
pytest_runtest_makereport = _harness.pytest_runtest_makereport

ROOT = INTEGRATION.parent.parent


@pytest.fixture
def failpoint_bin(monkeypatch):
    """The programs built with -DFERMATA_FAILPOINTS=ON become those that the worlds use."""
    directory = Path(os.environ.get("FERMATA_BIN_FAILPOINTS", ROOT / "build-failpoints" / "bin"))
    if not (directory / "fermata").exists():
        if os.environ.get("FERMATA_TEST_REQUIRE"):
            raise FileNotFoundError(f"{directory}/fermata is not built")
        pytest.skip(f"{directory}/fermata is not built: cmake -DFERMATA_FAILPOINTS=ON")
    monkeypatch.setenv("FERMATA_BIN", str(directory))
    return directory
