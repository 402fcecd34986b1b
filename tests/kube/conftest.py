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
async def client(api):
    async with Client(Credentials(server=api.url)) as connected:
        yield connected
