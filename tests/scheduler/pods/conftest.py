import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "kube"))
sys.path.insert(0, str(Path(__file__).parents[1] / "loop"))

from fake_api import FakeApi


@pytest.fixture
async def api():
    server = await FakeApi().start()
    yield server
    await server.stop()
