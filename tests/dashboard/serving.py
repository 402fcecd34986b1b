"""The dashboard as a program beside a sandbox, for tests over HTTP and in a browser."""

from __future__ import annotations

import importlib.util
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit, urlunsplit

import yaml

from tests.cli.conftest import line_of, started


def require_extra() -> None:
    """Fail, and never skip, where the extra is missing: the UI must be tested."""
    assert importlib.util.find_spec("nicegui") is not None, "pip install -e '.[dashboard-dev]' (make test does it)"


class Served(NamedTuple):
    """A dashboard that runs: the address that it prints, with its token, and its process."""

    address: str
    pid: int

    def at(self, path: str = "/") -> str:
        """The address of a page, with the token."""
        base, query = urlsplit(self.address), urlsplit(path).query
        return urlunsplit(base._replace(path=urlsplit(path).path, query="&".join(filter(None, (query, base.query)))))


@asynccontextmanager
async def serving(kubeconfig: Path, *arguments: str) -> AsyncIterator[Served]:
    """A dashboard with the rights of a kubeconfig."""
    require_extra()
    async with started("main", "dashboard", "--kubeconfig", str(kubeconfig), "--port=0", *arguments) as process:
        line = await line_of(process)
        found = re.search(r"http://\S+", line)
        assert found, line
        yield Served(found[0], process.pid)


def kubeconfig_of(kubeconfig: Path, token: str) -> Path:
    """The kubeconfig of another user of a sandbox, beside that of its administrator."""
    document = yaml.safe_load(kubeconfig.read_text())
    document["users"][0]["user"] = {"token": token}
    path = kubeconfig.with_name(f"kubeconfig-{token}")
    path.write_text(yaml.safe_dump(document))
    return path
