"""How hypothesis draws its examples, how much is logged, when garbage is collected, and that Ctrl-C reaches programs.

By default the same ones in every run, so that a change is judged by what it changed. `HYPOTHESIS_PROFILE=explore` draws
new ones (`make explore`); what that finds is replayed for ever by an `@example` or a file beside its test.
"""

from __future__ import annotations

import gc
import logging
import os
import signal
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

# How long anything takes decides nothing: a busy machine must not fail a test.
settings.register_profile("untimed", deadline=None, suppress_health_check=[HealthCheck.too_slow], print_blob=True)
settings.register_profile("steady", settings.get_profile("untimed"), derandomize=True, database=None)
settings.register_profile("explore", settings.get_profile("untimed"))
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "steady"))

# A shell starts `make test &` with SIGINT ignored, and so would be all programs, which then never end.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_finish() -> None:
    """Exclude what the collection has made from garbage collection: it would be visited in every full collection."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def log_level() -> Iterator[None]:
    """Restores the level of the root logger: a scheduler that a test starts in this process sets its own."""
    root = logging.getLogger()
    before = root.level
    yield
    root.setLevel(before)
