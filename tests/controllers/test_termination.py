"""SIGTERM: a program of controllers releases its Lease and exits with code 0, so that the next one leads at once."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path

import pytest
import yaml

from tests.controllers.small_api import SmallApi
from tests.faults.controlling import until
from tests.waiting import budget
from volcano_py.api import kinds

LEASES = {
    "controller-manager": "vc-controller-manager",
    "hypernode-controller": "vc-hypernode-controller-manager",
}


@pytest.mark.parametrize("program", LEASES)
async def test_sigterm_releases_the_lease(program: str, tmp_path: Path) -> None:
    api = await SmallApi().start()
    kubeconfig = tmp_path / "kubeconfig"
    document = {
        "clusters": [{"name": "c", "cluster": {"server": api.url}}],
        "users": [{"name": "u", "user": {}}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "x",
    }
    kubeconfig.write_text(yaml.safe_dump(document))
    command = [sys.executable, "-m", "volcano_py.cli.main", program, f"--kubeconfig={kubeconfig}"]
    with (tmp_path / "log").open("wb") as log:
        process = await asyncio.create_subprocess_exec(*command, stdout=log, stderr=log)

    def holder() -> str | None:
        leases = [one for one in api.all(kinds.LEASE) if one["metadata"]["name"] == LEASES[program]]
        found: str | None = leases[0]["spec"]["holderIdentity"] if leases else None
        return found

    try:
        await until(holder, lambda: (tmp_path / "log").read_text())
        os.kill(process.pid, signal.SIGTERM)
        assert await asyncio.wait_for(process.wait(), budget()) == 0, (tmp_path / "log").read_text()
        assert holder() == ""
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
        await api.stop()
