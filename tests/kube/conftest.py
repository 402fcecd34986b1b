import pytest
from fake_api import FakeApi

from volcano_py.kube import Client
from volcano_py.kube.credentials import Credentials


@pytest.fixture
async def api():
    server = await FakeApi().start()
    yield server
    await server.stop()


@pytest.fixture
def lean():
    """Whether the client uses its own HTTP; tests of the client set it to both."""
    return False


@pytest.fixture
async def client(api, lean):
    async with Client(Credentials(server=api.url), lean=lean) as connected:
        yield connected
