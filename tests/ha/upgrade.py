"""Rolling upgrades with Jobs in flight: from the previous release to this one, and back."""

from __future__ import annotations

import asyncio
import subprocess
import tarfile
from io import BytesIO
from pathlib import Path

from tests.ha import cases
from tests.ha.replicas import CONTROLLERS, REPOSITORY, SCHEDULER, Times
from tests.ha.site import site

PREVIOUS = "2b2da072"
"""The commit that is upgraded from while no release has a tag."""
_PARTS = ("volcano_py", "conf", "crds")


class NoHistory(Exception):
    """The repository does not have the previous release: a shallow clone, or no clone at all."""


def previous() -> str:
    """The tag of the previous release, or PREVIOUS. Raises NoHistory."""
    described = _git("describe", "--tags", "--abbrev=0", "--match", "v*", "HEAD^")
    name = described.stdout.decode().strip() if described.returncode == 0 else PREVIOUS
    if _git("cat-file", "-e", f"{name}^{{commit}}").returncode:
        raise NoHistory(f"the history has no commit {name}; fetch it: git fetch --unshallow --tags")
    return name


def extract(name: str, folder: Path) -> Path:
    """The program of a commit, in a folder."""
    packed = _git("archive", name, *_PARTS)
    assert packed.returncode == 0, packed.stderr.decode()
    with tarfile.open(fileobj=BytesIO(packed.stdout)) as archive:
        archive.extractall(folder, filter="data")
    return folder


def _git(*arguments: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(["git", "-C", str(REPOSITORY), *arguments], capture_output=True, check=False)


async def run(folder: Path, times: Times) -> list[cases.Row]:
    """Both ways; one row for each. Raises NoHistory."""
    name = previous()
    old = extract(name, folder / "previous")
    rows = []
    async with site(folder, times, managers=2, source=old) as here:
        for way, source in ((f"rolling upgrade from {name}", REPOSITORY), (f"rolling downgrade to {name}", old)):
            replicas = [*here.replicas[SCHEDULER], *here.replicas[CONTROLLERS]]
            await here.begin()
            async with here.busy():
                began = asyncio.get_running_loop().time()
                for replica in replicas:
                    # As a Deployment does: a new pod that is ready, and then one of the old ones ends.
                    await replica.stop()
                    replica.source = source
                    await replica.start()
                    await here.leader(replica.program)
                    bound = len(here.pods.nodes)
                    await here.until(lambda bound=bound: len(here.pods.nodes) >= bound + 3, f"{way}: nothing is bound")
                took = asyncio.get_running_loop().time() - began
            await here.completed()
            rows.append(cases.measured(here, way, "all", None, took))
    return rows
