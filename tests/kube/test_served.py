"""The version of a kind that the API server serves: for informers, snapshots and Events."""

import pytest
from fake_api import NATIVE_GROUPS, status

from volcano_py.api.kinds import NATIVE_PODGROUP, NATIVE_PODGROUP_BETA, NATIVE_PODGROUPS
from volcano_py.kube.served import PERIOD, ServedKind, served
from volcano_py.scheduler.model.jobs.group_names import NATIVE
from volcano_py.simulate.capture import capture

DISCOVERY = "GET /apis/scheduling.k8s.io"


@pytest.mark.parametrize("version", [rt.version for rt in NATIVE_PODGROUPS])
async def test_the_version_is_that_of_the_server(api, client, version):
    api.native_gangs, api.native_version = True, version
    found = await served(client, NATIVE_PODGROUPS)
    assert found is not None and found.version == version


async def test_a_kind_that_is_not_served_has_no_version(api, client):
    assert await served(client, NATIVE_PODGROUPS) is None
    api.fault(DISCOVERY, status(403, "Forbidden", "no"))
    assert await served(client, NATIVE_PODGROUPS) is None


async def test_the_version_is_read_again_after_an_upgrade(api, client):
    api.native_gangs = True
    kind = ServedKind(client, NATIVE_PODGROUPS)
    assert await kind.at(0.0) == NATIVE_PODGROUP
    api.native_version = "v1beta1"
    assert await kind.at(PERIOD - 1) == NATIVE_PODGROUP
    api.fault(DISCOVERY, status(503, "ServiceUnavailable", "again"), times=9)
    assert await kind.at(PERIOD) == NATIVE_PODGROUP
    api.faults.clear()
    assert await kind.at(PERIOD) == NATIVE_PODGROUP_BETA


@pytest.mark.parametrize("version", [rt.version for rt in NATIVE_PODGROUPS])
async def test_a_snapshot_has_native_groups_in_the_version_of_the_cluster(api, client, version):
    api.native_gangs, api.native_version = True, version
    policy = {"schedulingPolicy": {"gang": {"minCount": 2}}}
    api.put(NATIVE_GROUPS, {"metadata": {"name": "g", "namespace": "default"}, "spec": policy})
    (group,) = (await capture(client, 0.0)).of(NATIVE)
    assert (group.metadata.name, group.api_version) == ("g", f"scheduling.k8s.io/{version}")
