"""What users submit: defaults that are stored, and reasons of rejections. The cases are in admission.yaml.

Everything is a dry run, so the cases run on any cluster; without webhooks those of policies and schemas pass.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson
import pytest

from tests.acceptance.covers import covers
from tests.acceptance.site import MARKS, Manifest, Site, table
from volcano_py.api.kinds import BY_KIND, NAMESPACE, PODGROUP
from volcano_py.kube.errors import ApiError

pytestmark = MARKS
TABLE = table(Path(__file__).with_name("admission.yaml"))


def merged(base: Any, change: Any) -> Any:
    """A JSON merge patch applied to a value."""
    if not isinstance(change, dict) or not isinstance(base, dict):
        return change
    found = {key: merged(base.get(key), value) for key, value in change.items() if value is not None}
    return {key: value for key, value in base.items() if key not in change} | found


def field(document: Any, path: str) -> Any:
    """The value at a path such as spec.tasks.0.name, None where there is none."""
    for part in path.split("."):
        document = document[int(part)] if isinstance(document, list) else (document or {}).get(part)
    return document


def _case(row: Manifest) -> Any:
    [kind] = [kind for kind in TABLE["bases"] if kind in row]
    return pytest.param(kind, row, id=f"{kind}: {row['name']}")


CASES = [_case(row) for row in TABLE["cases"]]


@pytest.mark.parametrize(("kind", "row"), CASES)
async def test_admission(at: Site, kind: str, row: Manifest) -> None:
    await submit(at, kind, row)


async def submit(at: Site, kind: str, row: Manifest) -> None:
    """Submit the object of a row, and check what is stored or why it is rejected."""
    document = merged(TABLE["bases"][kind], row[kind])
    rt = BY_KIND[document["apiVersion"], document["kind"]]
    if not rt.namespaced:
        document["metadata"]["name"] = at.name("sample")
    try:
        if "then" in row:
            await at.create(document)
            path = rt.path(at.namespace if rt.namespaced else None, document["metadata"]["name"])
            body, method = row["then"], "PATCH"
            content = f"application/{'json' if isinstance(body, list) else 'merge'}-patch+json"
        else:
            path, content = rt.path(at.namespace if rt.namespaced else None), "application/json"
            body, method = document, "POST"
        answer = await at.client.raw(
            method, path, params={"dryRun": "All"}, body=orjson.dumps(body), content_type=content
        )
    except ApiError as error:
        assert "error" in row, f"it is rejected: {error}"
        assert row["error"] in str(error)
        return
    assert "error" not in row, "it is accepted"
    stored = orjson.loads(answer)
    assert {path: field(stored, path) for path in row["stored"]} == row["stored"]


@covers("AD-GM2", "AD-GM3", "AD-GM4")
async def test_a_namespaces_queue_replaces_the_default_queue(at: Site) -> None:
    async def queue(name: str) -> Any:
        spec = {"minMember": 1, "queue": "default"}
        group = {"apiVersion": PODGROUP.api_version, "kind": "PodGroup", "metadata": {"name": name}, "spec": spec}
        return (await at.create(group))["spec"]["queue"]

    assert await queue("before") == "default"
    team = await at.queue("team")
    annotations = {"scheduling.volcano.sh/queue-name": team}
    await at.client.patch(NAMESPACE, at.namespace, {"metadata": {"annotations": annotations}})
    assert [await queue("one"), await queue("two")] == [team, team]
