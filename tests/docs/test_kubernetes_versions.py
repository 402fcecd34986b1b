"""docs/kubernetes-versions.md: the schemas of each version, and no field that no version has."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from volcano_py.api.kinds import NATIVE_PODGROUP, NATIVE_PODGROUP_BETA, POD, ResourceType
from volcano_py.sandbox.apiserver.apimachinery.features import OF_VERSION
from volcano_py.sandbox.apiserver.registry.builtin import GATED, TABLE, is_served
from volcano_py.scheduler.profiles.release import RELEASES

sys.path.insert(0, str(Path(__file__).parents[2] / "docs"))
import kubernetes_versions as versions

SHARED = {
    # one struct for the sources of volumes of pods and of PersistentVolumes, whose names differ
    *(
        f"{kind}.{source}.{field}"
        for kind in ("PersistentVolume: spec", "Pod: spec.volumes")
        for source, fields in {
            "azureDisk": ("volumeID", "volumePath"),
            "cinder": ("diskURI", "volumePath"),
            "portworxVolume": ("diskURI", "volumePath"),
            "vsphereVolume": ("diskURI", "volumeID"),
        }.items()
        for field in fields
    ),
    "Pod: spec.volumes.csi.volumeHandle",
    # one struct for the requests of containers and of claims for volumes
    "PersistentVolumeClaim: spec.resources.claims",
    # one struct for all sets of pods
    "ReplicaSet: spec.podManagementPolicy",
    "ResourceClaim: spec.devices.requests.firstAvailable.adminAccess",
    # one struct for the status of both kinds of groups
    "CompositePodGroup: status.resourceClaimStatuses",
}
"""Fields that no version has, because several kinds share a struct."""


def test_each_field_that_is_read_exists_in_some_version() -> None:
    assert set(versions.unknown_fields()) == SHARED


def test_the_versions_are_those_of_the_workflow() -> None:
    assert {"1.33", "1.34", "1.35", "1.36", "1.37"} <= set(versions.tested())
    assert set(RELEASES) <= set(versions.tested()), "profiles have rules of a version that the workflow does not run"
    assert all(versions.schema_of(version, POD) is not None for version in versions.tested())


@pytest.mark.parametrize(("version", "kind"), [("1.36", NATIVE_PODGROUP), ("1.37", NATIVE_PODGROUP_BETA)])
def test_the_kinds_of_groups_follow_the_schemas(version: str, kind: object) -> None:
    (entry,) = (e for e in versions.read_kinds() if NATIVE_PODGROUP in e.versions)
    assert versions.served_as(version, entry) == kind
    assert versions.served_as("1.35", entry) is None


def test_the_sandbox_serves_what_its_version_has() -> None:
    for version in OF_VERSION:
        gated = (table for table in GATED.get(version, {}).values())
        for api_version, row in ((v, row) for table in (TABLE, *gated) for v, rows in table.items() for row in rows):
            group, _, short = api_version.rpartition("/")
            rt = ResourceType(group, short, row.plural, row.kind, row.namespaced)
            in_schemas = versions.document(version, versions.schema_name(rt)) is not None
            assert is_served(api_version, row.kind, version) == in_schemas, f"{api_version} {row.kind} in {version}"
