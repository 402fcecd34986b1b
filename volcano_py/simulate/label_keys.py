"""Terms of affinity between pods as the API server stores them: it writes `matchLabelKeys` and `mismatchLabelKeys` into
the selector when a pod is created, and schedulers read only the selector. Kubernetes: MatchLabelKeysInPodAffinity.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from volcano_py.api.affinity import Affinity
from volcano_py.simulate.manifests import Manifest


def merge_label_keys(pod: Manifest) -> None:
    """Write the pod's values of these keys into the selectors of its terms, in place. A key that the pod does not have
    has no effect, and a term without a selector selects no pod. Affinity that cannot be decoded is not changed."""
    labels = pod["metadata"].get("labels") or {}
    affinity = (pod.get("spec") or {}).get("affinity") or {}
    try:
        msgspec.convert(affinity, Affinity)
    except msgspec.ValidationError:
        return
    for term in _terms(affinity):
        selector = term.get("labelSelector")
        if selector is None:
            continue
        expressions = list(selector.get("matchExpressions") or ())
        for field, operator in (("matchLabelKeys", "In"), ("mismatchLabelKeys", "NotIn")):
            for key in term.get(field) or ():
                expression = {"key": key, "operator": operator, "values": [labels.get(key)]}
                if key in labels and expression not in expressions:
                    expressions.append(expression)
        if expressions:
            term["labelSelector"] = {**selector, "matchExpressions": expressions}


def _terms(affinity: Manifest) -> Iterator[Manifest]:
    for kind in ("podAffinity", "podAntiAffinity"):
        of = affinity.get(kind) or {}
        yield from of.get("requiredDuringSchedulingIgnoredDuringExecution") or ()
        for weighted in of.get("preferredDuringSchedulingIgnoredDuringExecution") or ():
            yield weighted.get("podAffinityTerm") or {}
