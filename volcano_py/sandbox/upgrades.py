"""A data folder that is opened with another version of Kubernetes than the last time.

v1alpha2 of scheduling.k8s.io is gone in 1.37, and an API server of 1.37 cannot read its objects. Kubernetes requires
that they are deleted before the upgrade; kube-apiserver itself would start, and fail each list of them.
"""

from __future__ import annotations

from typing import Final

from volcano_py.sandbox.apiserver.registry.api import Api
from volcano_py.sandbox.apiserver.storage.database import Database, DataError

VERSION: Final = "kubernetes"
"""The fact of the folder: the version with which it was opened last."""
_FIRST: Final = "1.36"
"""Of folders without that fact."""
_GONE: Final = ("podgroups", "workloads")


def check_version(api: Api, database: Database, new: str) -> None:
    """Record the version of the folder. Raises DataError if it has objects that this version cannot read."""
    with database.guarded():
        old = database.fact(VERSION) or _FIRST
    if old != new:
        left = [f"{_count(api, plural)} {plural}.scheduling.k8s.io" for plural in _GONE if _count(api, plural)]
        if left:
            raise DataError(
                f"the data has {' and '.join(left)} of Kubernetes {old}, which Kubernetes {new} cannot read; start it "
                f"with --kubernetes-version {old} and delete them first (docs/native-gangs.md#upgrade-from-136-to-137)"
            )
    with database.guarded():
        database.set_fact(VERSION, new)


def _count(api: Api, plural: str) -> int:
    return sum(1 for _ in api.store.collection(f"{plural}.scheduling.k8s.io").select())
