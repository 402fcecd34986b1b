"""A control plane of its own process: an API server without kubelets and controllers, until its input ends.

    python -m tests.sandbox.foreign.plane KUBECONFIG FOLDER

FOLDER gets the authority's certificate and key, with which a test signs client certificates.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from volcano_py.sandbox.cluster import Sandbox


async def main(kubeconfig: Path, folder: Path) -> None:
    async with Sandbox(0, hollow=False, controllers=None, path=kubeconfig) as sandbox:
        (folder / "authority.pem").write_bytes(sandbox.identity.authority.certificate)
        (folder / "authority.key").write_bytes(sandbox.identity.authority.key)
        print(sandbox.url, flush=True)
        await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), Path(sys.argv[2])))
