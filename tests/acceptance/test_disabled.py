"""Cases fail when the behavior that they test is disabled: without a plugin, an action, a controller or admission."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
import yaml

from tests import waiting
from tests.acceptance import site as sites
from tests.acceptance import test_admission, test_lifecycle
from tests.acceptance.site import MARKS, Site
from tests.acceptance.test_scheduling import TABLE, Case, play
from volcano_py.sandbox.cluster import Sandbox

pytestmark = [
    *MARKS,
    pytest.mark.skipif(bool(sites.KUBECONFIG), reason="it disables behaviors of the sandbox's programs"),
]

PATIENCE = 4.0
"""Seconds until a wait fails that must fail."""

PARTS: list[tuple[str, set[str]]] = [
    ("no narrow domain has room", {"network-topology-aware"}),
    ("a gang that cannot fit evicts nothing", {"gang"}),
    ("anti-affinity to the only node", {"predicates"}),
    ("one host port per node", {"predicates"}),
    ("taints keep a job away until they go", {"predicates", "proportion", "overcommit"}),
    ("a tolerating job runs on tainted nodes", {"predicates"}),
    ("the whole cluster is guaranteed to another queue", {"proportion", "overcommit"}),
    ("a part is guaranteed to another queue", {"proportion", "overcommit"}),
    ("an important job takes half", {"preempt"}),
    ("a job preempts in its own queue", {"preempt"}),
    ("new queues get their shares", {"reclaim"}),
    ("reclaim inside a hierarchy", {"reclaim"}),
    ("what a gang can spare", {"gangpreempt"}),
    ("both gangs fall", {"gangpreempt"}),
    ("a tight gang of four falls", {"gangpreempt"}),
    ("one partition is evicted", {"gangpreempt"}),
    ("no wider domain has room", {"network-topology-aware"}),
    ("what a queue holds beyond its share", {"gangreclaim"}),
    ("one of two tight gangs is reclaimed", {"gangreclaim"}),
]
"""A case of scheduling.yaml, and the plugins and actions that are taken out of its configuration."""
ADMISSION = ("one event in two policies", "two tasks of one name", "unknown plugin", "a missing queue")
"""Cases of admission.yaml, without webhooks and policies."""


def without(conf: str, names: set[str]) -> str:
    """A scheduler configuration without some actions and plugins."""
    document = yaml.safe_load(conf)
    kept = [action.strip() for action in document["actions"].split(",") if action.strip() not in names]
    document["actions"] = ", ".join(kept)
    for tier in document["tiers"]:
        tier["plugins"] = [plugin for plugin in tier["plugins"] if plugin["name"] not in names]
    return yaml.safe_dump(document)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def cluster(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Sandbox]:
    """A sandbox without nodes and admission, whose controllers leave queues and plain pods alone."""
    async with sites.cluster(tmp_path_factory.mktemp("cluster"), nodes=0) as sandbox:
        yield sandbox


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Waits for what a case expects are short; those before it are not."""
    settled = Case.settled

    async def soon(self: Case, counts: dict[str, int], *, least: bool = False) -> None:
        with monkeypatch.context() as short:
            short.setattr(waiting, "BUDGET", PATIENCE)
            await settled(self, counts, least=least)

    monkeypatch.setattr(Case, "settled", soon)


@pytest.mark.parametrize(("name", "names"), [pytest.param(*row, id=row[0]) for row in PARTS])
async def test_without_a_plugin_or_action(at: Site, name: str, names: set[str], impatient: None) -> None:
    [row] = [row for row in TABLE["cases"] if row["name"] == name]
    run = Case(at, row)
    run.conf = without(run.conf, names)
    with pytest.raises(AssertionError):
        await play(run)


async def test_without_admission_and_controllers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Cases of admission without webhooks and policies; others without the PodGroup and queue controllers."""
    rows = {row["name"]: (kind, row) for kind, row in (case.values for case in test_admission.CASES)}
    arguments = {"controller-manager": ("--controllers=*,-pg-controller,-queue-controller",)}
    folder = tmp_path / "cluster"
    folder.mkdir()
    async with (
        sites.cluster(folder, nodes=1, volcano_admission=False, component_arguments=arguments) as sandbox,
        sites.site(sandbox, sandbox.kubeconfig) as at,
    ):
        for name in ADMISSION:
            kind, row = rows[name]
            with pytest.raises(AssertionError):
                await test_admission.submit(at, kind, row)
        monkeypatch.setattr(waiting, "BUDGET", PATIENCE)
        with pytest.raises(AssertionError):
            await test_lifecycle.test_a_plain_pod_gets_a_podgroup(at)
        with pytest.raises(AssertionError):
            await test_lifecycle.test_queues_close_and_open_with_their_parents(at)
