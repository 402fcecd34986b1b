"""ColocationConfigurations: the annotations of pods."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.conformance.controllers.comparing import Data, existing, same
from volcano_py.api.codec import from_manifest
from volcano_py.api.config import ColocationConfiguration
from volcano_py.api.core import Pod
from volcano_py.controllers import colocation
from volcano_py.controllers.instructions import Patch


def colocationconfig(case: Data) -> str:
    given, output = case["input"], case["output"]
    configurations = [from_manifest(ColocationConfiguration, one) for one in existing(case, "ColocationConfiguration")]
    match case["operation"]:
        case "syncPod":
            (pod,) = (one for one in existing(case, "Pod") if _key(one) == given["key"])
            made = _annotated(pod, colocation.find(from_manifest(Pod, pod), configurations))
            return same(made, _written(case))
        case "getModifiedPod":
            made = _annotated(given["pod"], from_manifest(ColocationConfiguration, given["coloConfig"]))
            return same(made, output["r0"]["metadata"].get("annotations") if output["r1"] else None)
        case "resetColocationConfigForPod":
            return same(_annotated(given["pod"], None), _written(case))
    return f"operation {case['operation']} is not known"


def _key(pod: Data) -> str:
    return f"{pod['metadata']['namespace']}/{pod['metadata']['name']}"


def _annotated(pod: Data, configuration: ColocationConfiguration | None) -> Any:
    """The pod's annotations afterwards; None if nothing is written."""
    made = colocation.reconcile(from_manifest(Pod, pod), configuration)
    if not made:
        return None
    (patch,) = made
    assert isinstance(patch, Patch)
    merged = {**(pod["metadata"].get("annotations") or {}), **patch.body["metadata"]["annotations"]}
    return {key: value for key, value in merged.items() if value is not None}


def _written(case: Data) -> Any:
    writes = case.get("writes") or []
    return writes[0]["object"]["metadata"]["annotations"] if writes else None


RUNNERS: dict[str, Callable[[Data], str]] = {"colocationconfig": colocationconfig}
