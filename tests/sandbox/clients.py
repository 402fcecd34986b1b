"""Clients of a sandbox for tests: a small HTTP one, and the real kubectl."""

from __future__ import annotations

import asyncio
import json
import os
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
from multidict import CIMultiDict

from tests import kubectl, waiting
from volcano_py.sandbox.cluster import Sandbox

PODS = "/api/v1/namespaces/default/pods"
CONFIGMAPS = "/api/v1/namespaces/default/configmaps"
MERGE = "application/merge-patch+json"
JSON_PATCH = "application/json-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
APPLY = "application/apply-patch+yaml"


def pod(name: str, **spec: Any) -> dict[str, Any]:
    """A pod with one container, its spec changed by the keywords."""
    containers = [{"name": "c", "image": "busybox:1"}]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {"containers": containers, **spec},
    }


class Http:
    """Requests to a sandbox as its administrator."""

    def __init__(self, sandbox: Sandbox, session: aiohttp.ClientSession) -> None:
        self.sandbox = sandbox
        self.session = session
        waiting.observe(sandbox)

    async def call(
        self,
        method: str,
        path: str,
        body: Any = None,
        kind: str = "application/json",
        token: str | None = None,
        **headers: str | list[str],
    ) -> tuple[int, Any]:
        """(status, decoded JSON or text)."""
        status, value, _ = await self.full(method, path, body, kind, token, **headers)
        return status, value

    async def full(
        self,
        method: str,
        path: str,
        body: Any = None,
        kind: str = "application/json",
        token: str | None = None,
        **headers: str | list[str],
    ) -> tuple[int, Any, Any]:
        """(status, decoded JSON or text, headers); a header with a list of values is sent once for each."""
        sent = CIMultiDict({"Authorization": f"Bearer {token or self.sandbox.token}", "Content-Type": kind})
        for header, value in headers.items():
            sent.popall(header, None)
            for one in [value] if isinstance(value, str) else value:
                sent.add(header, one)
        data = body if isinstance(body, bytes | str) or body is None else json.dumps(body)
        async with self.session.request(method, self.sandbox.url + path, data=data, headers=sent) as answer:
            text = await answer.text()
            value = json.loads(text) if "json" in answer.headers.get("Content-Type", "") and text else text
            return answer.status, value, answer.headers

    async def ok(self, method: str, path: str, body: Any = None, kind: str = "application/json") -> Any:
        """The answer, which must be a success."""
        status, value = await self.call(method, path, body, kind)
        assert status < 300, value
        return value

    async def events(self, path: str, count: int) -> list[dict[str, Any]]:
        """The first events of a watch."""
        out: list[dict[str, Any]] = []
        async with waiting.limit(f"{path} did not give {count} events"), self.stream(path) as lines:
            async for line in lines:
                out.append(line)
                if len(out) >= count:
                    break
        return out

    @asynccontextmanager
    async def stream(self, path: str) -> AsyncIterator[AsyncIterator[dict[str, Any]]]:
        """An open watch."""
        headers = {"Authorization": f"Bearer {self.sandbox.token}"}
        async with self.session.get(self.sandbox.url + path, headers=headers) as answer:

            async def lines() -> AsyncIterator[dict[str, Any]]:
                async for line in answer.content:
                    if line.strip():
                        yield json.loads(line)

            yield lines()

    async def until(self, path: str, test: Callable[[Any], Any]) -> Any:
        """GET until the answer passes a test."""
        value: Any = None

        async def look() -> Any:
            nonlocal value
            _, value = await self.call("GET", path)
            return test(value)

        try:
            await waiting.until(look, f"{path} did not become what the test waits for")
        except AssertionError as error:
            raise AssertionError(f"{error}\nlast answer: {value}") from None
        return value


@asynccontextmanager
async def http(sandbox: Sandbox) -> AsyncIterator[Http]:
    """A session that trusts the sandbox's certificate."""
    context = ssl.create_default_context(cadata=sandbox.authority.decode())
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=context, limit=0)) as session:
        yield Http(sandbox, session)


class Kubectl:
    """The real kubectl, with a home of its own."""

    def __init__(self, sandbox: Sandbox, home: Path, program: str | None = None) -> None:
        self.program = program or kubectl.find()
        self.environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(home),
            "KUBECACHEDIR": str(home / "cache"),
            "KUBECONFIG": sandbox.kubeconfig,
        }

    async def run(self, *arguments: str, stdin: str = "", **environment: str) -> tuple[int, str, str]:
        """(exit code, stdout, stderr)."""
        assert self.program is not None, "no kubectl: install it, or run python -m tests.kubectl"
        process = await asyncio.create_subprocess_exec(
            self.program,
            *arguments,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env={**self.environment, **environment},
        )
        out, err = await waiting.within(process.communicate(stdin.encode()), f"kubectl {arguments} has not ended", 2)
        return process.returncode or 0, out.decode(), err.decode()

    async def __call__(self, *arguments: str, stdin: str = "", **environment: str) -> str:
        """stdout of a command that must succeed."""
        code, out, err = await self.run(*arguments, stdin=stdin, **environment)
        assert code == 0, f"kubectl {' '.join(arguments)}: {err}"
        return out
