"""The pages of a worker: alive from the first moment, ready when it can do its work."""

import re
import urllib.error
import urllib.request

from waiting import wait_for


def page(worker, path):
    """(status, text) of a page; None while nobody listens."""
    url = f"http://127.0.0.1:{worker.metrics_port}{path}"
    try:
        with urllib.request.urlopen(url, timeout=5) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as refused:
        return refused.code, refused.read().decode()
    except OSError:
        return None


def test_a_worker_that_waits_is_alive_and_not_ready(make_world):
    """Before `fermata migrate`; it becomes ready without a restart."""
    world = make_world(migrate=False)
    world.run("keys", "generate")
    worker = world.start_worker()
    assert wait_for(lambda: page(worker, "/live"), "somebody to listen")[0] == 200
    assert page(worker, "/ready")[0] == 503
    world.run("migrate")
    wait_for(lambda: page(worker, "/ready")[0] == 200, "the worker to be ready")
    worker.stop()


def test_memory_goes_back_after_a_burst(make_world):
    """A worker that has nothing to do any more gives back what it needed, each time that it worked."""
    world = make_world()
    worker = world.start_worker()

    def rests():
        """How often it has given memory back."""
        return int(re.search(r"^fermata_rests_total (\d+)$", page(worker, "/metrics")[1], re.MULTILINE)[1])

    for count in (1, 2):
        world.suspend()
        world.settle()
        wait_for(lambda wanted=count: rests() >= wanted, "the worker to rest")


def test_unknown_pages(fermata):
    """404, and the metrics are in Prometheus' format."""
    worker = fermata.start_worker()
    wait_for(lambda: page(worker, "/live"), "somebody to listen")
    assert page(worker, "/nothing")[0] == 404
    status, text = page(worker, "/metrics")
    assert status == 200 and "# TYPE fermata_suspends_total counter" in text
