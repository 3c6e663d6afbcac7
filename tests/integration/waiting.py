"""Waiting for conditions, with a deadline and never for a time alone."""

import time

TIMEOUT = 30.0  # seconds; long enough for a loaded machine with two cores
TICK = 0.02


class TimedOut(AssertionError):
    """What was waited for did not come about."""


def wait_for(condition, what, timeout=TIMEOUT, tick=TICK, meanwhile=None):
    """Call condition until it returns something true, and return that.

    `what` says in words what is waited for, or is a function that does and is called at the end.
    `meanwhile` is called between trials and may raise to end the wait at once.
    """
    deadline = time.monotonic() + timeout
    while True:
        result = condition()
        if result:
            return result
        if meanwhile is not None:
            meanwhile()
        if time.monotonic() > deadline:
            text = what() if callable(what) else what
            raise TimedOut(f"waited {timeout:.0f} s in vain: {text}")
        time.sleep(tick)
