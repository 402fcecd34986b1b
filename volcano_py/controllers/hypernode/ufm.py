"""HyperNodes from the ports in NVIDIA's UFM. Volcano: the ufm source of network topology discovery.

Leaf switches that share nodes, directly or indirectly, form a HyperNode of tier 1; all of these form one of tier 2.
"""

from __future__ import annotations

import asyncio
from base64 import b64encode
from collections.abc import Iterable, Mapping
from typing import Any

import aiohttp
import orjson
from yarl import URL

from volcano_py.api.topology import MEMBER_HYPERNODE, MEMBER_NODE
from volcano_py.controllers.hypernode.config import Source
from volcano_py.controllers.hypernode.labels import Manifest, manifest

SOURCE = "ufm"
PATH = "/ufmRest/resources/ports"
TIMEOUT_SECONDS = 30.0
LARGEST_ANSWER = 100 * 1024 * 1024
SPINE = "spine-hn"


class UfmError(Exception):
    """UFM cannot be reached, or its response is invalid."""


def endpoint(source: Source) -> str:
    """The address of UFM. Raises ValueError."""
    given = source.config.get("endpoint")
    if not given or not isinstance(given, str):
        raise ValueError("UFM endpoint is not configured: set config.endpoint")
    return given if "://" in given else f"https://{given}"


def login(secret: Mapping[str, str] | None) -> tuple[str, str]:
    """User and password from a Secret's (decoded) data. Raises ValueError."""
    found = (secret or {}).get("username", ""), (secret or {}).get("password", "")
    if not all(found):
        raise ValueError(
            "UFM authentication credentials are not configured: credentials.secretRef must refer to a Secret "
            "with the keys username and password"
        )
    return found


def leaf_switches(ports: Iterable[Mapping[str, Any]]) -> dict[str, set[str]]:
    """Leaf switch → its nodes, for the ports of computers."""
    found: dict[str, set[str]] = {}
    for port in ports:
        leaf, node = port.get("peer_node_name"), port.get("system_name")
        if "Computer" in str(port.get("description") or "") and leaf and node:
            found.setdefault(str(leaf), set()).add(str(node))
    return found


def leafs_of_nodes(leafs: Mapping[str, set[str]]) -> dict[str, set[str]]:
    """Node → the leaf switches that it is connected to."""
    found: dict[str, set[str]] = {}
    for leaf, nodes in leafs.items():
        for node in nodes:
            found.setdefault(node, set()).add(leaf)
    return found


def groups(leafs: Mapping[str, set[str]]) -> list[tuple[set[str], set[str]]]:
    """Connected components as (leaf switches, nodes), in the order of their first switch."""
    of_node = leafs_of_nodes(leafs)
    found: list[tuple[set[str], set[str]]] = []
    seen = set[str]()
    for first in sorted(leafs):
        if first in seen:
            continue
        together, nodes, waiting = {first}, set[str](), [first]
        while waiting:
            leaf = waiting.pop()
            for node in leafs[leaf] - nodes:
                nodes.add(node)
                fresh = of_node[node] - together
                together |= fresh
                waiting += fresh
        seen |= together
        found.append((together, nodes))
    return found


def discover(ports: Iterable[Mapping[str, Any]]) -> list[Manifest]:
    """The HyperNodes for these ports."""
    found = [nodes for _, nodes in groups(leaf_switches(ports))]
    names = [f"leaf-hn-{number}" for number in range(len(found))]
    made = [manifest(SOURCE, name, 1, MEMBER_NODE, sorted(nodes)) for name, nodes in zip(names, found, strict=True)]
    return [*made, manifest(SOURCE, SPINE, 2, MEMBER_HYPERNODE, names)] if made else []


async def fetch(source: Source, user: str, password: str) -> list[Mapping[str, Any]]:
    """Read the ports from UFM. Raises UfmError."""
    url = URL(endpoint(source).rstrip("/") + PATH)
    options: dict[str, Any] = {"ssl": False} if source.config.get("insecureSkipVerify") is True else {}
    headers = {"Authorization": "Basic " + b64encode(f"{user}:{password}".encode()).decode()}
    timeout = aiohttp.ClientTimeout(total=None)
    try:
        async with (
            asyncio.timeout(TIMEOUT_SECONDS),
            aiohttp.ClientSession(headers=headers, timeout=timeout) as session,
            session.get(url, allow_redirects=False, **options) as answer,
        ):
            if answer.status != 200:
                raise UfmError(f"GET {url}: HTTP {answer.status} {answer.reason}")
            body = bytearray()
            async for chunk in answer.content.iter_chunked(1 << 20):
                body += chunk
                if len(body) > LARGEST_ANSWER:
                    raise UfmError(f"GET {url}: the response is larger than {LARGEST_ANSWER >> 20} MiB")
    except (aiohttp.ClientError, OSError, TimeoutError) as error:
        raise UfmError(f"GET {url}: {str(error) or type(error).__name__}") from None
    return ports_of(bytes(body), f"GET {url}")


def ports_of(body: bytes, where: str) -> list[Mapping[str, Any]]:
    """The ports in a response. Raises UfmError."""
    try:
        ports = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise UfmError(f"{where}: the response is not JSON: {error}") from None
    if not isinstance(ports, list) or not all(isinstance(port, dict) for port in ports):
        raise UfmError(f"{where}: the response is not a list of ports")
    return ports
