"""A client certificate that expires while the programs run: each reports it, and continues when it is replaced."""

from __future__ import annotations

import os
import re
from datetime import timedelta
from pathlib import Path

import pytest
import yaml

from tests import waiting
from tests.acceptance.site import task
from volcano_py.api.kinds import JOB
from volcano_py.kube.certificates import make_client
from volcano_py.kube.client import Client
from volcano_py.sandbox import volcano
from volcano_py.sandbox.cluster import Sandbox
from volcano_py.sandbox.components import Components

pytestmark = pytest.mark.slow

LIFETIME = timedelta(seconds=10)
PROGRAMS = ("scheduler", "controller-manager", "webhook-manager")


def put(folder: Path, sandbox: Sandbox, lifetime: timedelta) -> None:
    """Make the files of an administrator's certificate, or replace them."""
    pair = make_client("admin", ("system:masters",), sandbox.identity.authority, lifetime)
    for name, content in zip(("client.crt", "client.key"), pair, strict=True):
        (folder / "new").write_bytes(content)
        os.replace(folder / "new", folder / name)


async def test_a_certificate_that_is_replaced_after_it_expired(tmp_path: Path) -> None:
    async with (
        Sandbox(2, path=tmp_path / "kubeconfig", volcano_admission=False) as sandbox,
        Client.from_kubeconfig(sandbox.kubeconfig) as client,
    ):
        document = yaml.safe_load(Path(sandbox.kubeconfig).read_text())
        document["users"][0]["user"] = {"client-certificate": "client.crt", "client-key": "client.key"}
        short = tmp_path / "short"
        short.write_text(yaml.safe_dump(document))
        put(tmp_path, sandbox, LIFETIME)
        logs = tmp_path / "logs"
        programs = Components(lambda name: volcano.component_command(name, short, {}), logs)

        def text(name: str) -> str:
            return (logs / f"{name}.log").read_text(errors="replace")

        async def expired() -> bool:
            assert not programs.ended(), "a program ended instead of waiting"
            return all(re.search(r"client certificate \S+client.crt expired at", text(name)) for name in PROGRAMS)

        async def completed() -> bool:
            assert not programs.ended(), "a program ended instead of waiting"
            found = await client.get(JOB, "late", "default")
            return bool((found.get("status") or {}).get("state", {}).get("phase") == "Completed")

        try:
            await programs.start(PROGRAMS)
            await waiting.until(expired, "a program does not report the expired certificate")
            quick = task("main", 1, command=["sleep", "0"])
            spec = {"schedulerName": "volcano", "queue": "default", "minAvailable": 1, "tasks": [quick]}
            await client.create(JOB, {"metadata": {"name": "late", "namespace": "default"}, "spec": spec})
            put(tmp_path, sandbox, timedelta(hours=1))
            await waiting.until(completed, "the Job does not complete with the new certificate")
        except AssertionError as error:
            raise AssertionError("\n".join([str(error), *(text(name)[-3000:] for name in PROGRAMS)])) from None
        finally:
            await programs.stop()
        for name in PROGRAMS:
            assert len(re.findall("expired at", text(name))) <= 2, "once for each process; the scheduler has two"
