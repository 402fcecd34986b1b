"""Record the answers of kube-apiserver to the requests of requests.yaml.

    KUBEBUILDER_ASSETS=<folder with kube-apiserver and etcd> python -m tests.sandbox.answers.record

Run it for each version of VERSIONS after requests.yaml has changed; test_answers.py compares the sandbox with the
result.
"""

from __future__ import annotations

import asyncio
import os
import ssl
import sys
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import orjson
import yaml

from tests.acceptance.envtest import Missing, Plane, assets, control_plane, install, version
from tests.sandbox.answers.playing import FOLDER, VERSIONS, Peer, scenarios
from volcano_py.kube.client import Client
from volcano_py.sandbox.apiserver.apimachinery import features

HEAD = "# Answers of kube-apiserver {version} to requests.yaml; written by record.py.\n"


@asynccontextmanager
async def peer(plane: Plane) -> AsyncIterator[Peer]:
    """A session of the administrator."""
    tls = ssl.create_default_context(cafile=str(plane.folder / "ca.pem"))
    tls.load_cert_chain(plane.folder / "client.pem", plane.folder / "client.key")
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=tls)) as session:
        yield Peer(session, f"https://127.0.0.1:{plane.port}", {})


async def record(programs: Path) -> str:
    """The path of the file that was written. Raises Missing."""
    found: dict[str, object] = {}
    whole, minor = "", version(programs)
    if minor not in VERSIONS:
        raise Missing(f"kube-apiserver {minor} is not one of {', '.join(VERSIONS)}")
    for gates, names in (("none", ()), ("all", features.OF_VERSION[minor])):
        with tempfile.TemporaryDirectory(prefix="volcano-answers-") as folder:
            async with control_plane(programs, Path(folder), gates=names) as plane:
                async with Client.from_kubeconfig(plane.kubeconfig) as client:
                    whole = orjson.loads(await client.raw("GET", "/version"))["gitVersion"].removeprefix("v")
                    await install(client)
                async with peer(plane) as server:
                    for scenario in scenarios(minor):
                        if scenario.gates == gates:
                            found[scenario.name] = await server.play(scenario)
    path = FOLDER / VERSIONS[minor]
    text = yaml.safe_dump(found, width=120, allow_unicode=True, sort_keys=False)
    path.write_text(HEAD.format(version=whole) + text)
    return str(path)


def main() -> None:
    try:
        print(asyncio.run(record(assets(dict(os.environ)))))
    except Missing as error:
        sys.exit(f"record: {error}")


if __name__ == "__main__":
    main()
