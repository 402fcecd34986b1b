"""A part of the suite on each version of Kubernetes: the kinds that it serves, and objects that fit its schemas."""

from __future__ import annotations

from collections.abc import AsyncIterator
from functools import partial
from typing import Any

import kubernetes_validate
import pytest
import pytest_asyncio

from docs.kubernetes_versions import document
from tests.acceptance import site as sites
from tests.acceptance.site import Manifest
from tests.acceptance.versions import CASES, GATES, VERSIONS, VersionCase
from volcano_py.sandbox.apiserver.registry.resources import Resource
from volcano_py.sandbox.apiserver.storage.store import DELETED, Event
from volcano_py.sandbox.cluster import Sandbox

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(bool(sites.KUBECONFIG), reason="it starts sandboxes of several versions"),
]


class VersionSite:
    """A sandbox of a version, with the objects that are written there."""

    def __init__(self, version: str, sandbox: Sandbox) -> None:
        self.version = version
        self.sandbox = sandbox
        self._written: dict[tuple[str, str], Manifest] = {}
        """The last state of each object, by resource and key."""
        for resource in sandbox.api.registry:
            # Events are stored in one form for both groups.
            has_schema = document(version, _file_of(resource)) is not None and resource.group != "events.k8s.io"
            if has_schema and not resource.group.endswith("volcano.sh"):
                resource.collection.observers.append(partial(self._note, resource))

    def _note(self, resource: Resource, event: Event) -> None:
        if event.type != DELETED:
            head = {"apiVersion": resource.api_version, "kind": resource.kind}
            self._written[resource.qualified, event.entry.key] = {**head, **event.entry.load()}

    def check(self) -> set[str]:
        """Check what was written since the last call against the schemas of the version: no field is unknown there.
        Returns the kinds."""
        written, self._written = self._written, {}
        for made in written.values():
            kubernetes_validate.validate(_without_null(made), self.version, strict=True)
        return {made["kind"] for made in written.values()}


def _without_null(value: Any) -> Any:
    """A field that is null is none, for the API server."""
    if isinstance(value, dict):
        return {key: _without_null(each) for key, each in value.items() if each is not None}
    return [_without_null(each) for each in value] if isinstance(value, list) else value


def _file_of(resource: Resource) -> str:
    group = f"-{resource.group.partition('.')[0]}" if resource.group else ""
    return f"{resource.kind.lower()}{group}-{resource.version}"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def of_version(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[VersionSite]:
    version = request.param
    gates = GATES.get(version, "")
    folder = tmp_path_factory.mktemp("cluster")
    async with sites.cluster(folder, nodes=0, kubernetes_version=version, feature_gates=gates) as sandbox:
        yield VersionSite(version, sandbox)


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize(
    ("of_version", "case"),
    [pytest.param(v, case, id=f"{v}-{case.name}") for v in VERSIONS for case in CASES if case.runs_on(v)],
    indirect=["of_version"],
)
async def test_case(of_version: VersionSite, case: VersionCase) -> None:
    sandbox = of_version.sandbox
    async with sites.site(sandbox, sandbox.kubeconfig) as at:
        await case.run(at, of_version.version)
        kinds = of_version.check()
    assert kinds, "no object was written"
