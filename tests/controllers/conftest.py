import pytest

from tests.controllers.small_api import SmallApi
from tests.controllers.world import World, queue


@pytest.fixture
async def world():
    api = await SmallApi().start()
    for name in ("root", "default"):
        api.put(queue(name))
    made = World(api)
    await made.start()
    yield made
    await made.kill()
    await api.stop()
