"""Profiles decide as kube-scheduler of the cluster's version, unless --kubernetes-version names another."""

import pytest

from tests.scheduler.loop.live_scheduler import kubeconfig
from volcano_py.scheduler.configuration.options import Options
from volcano_py.scheduler.runtime.cluster_version import with_cluster_version


def options(tmp_path, api, **given):
    file = tmp_path / "profiles.yaml"
    file.write_text(
        "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
        "profiles: [{schedulerName: pods}]\n"
    )
    return Options(config=str(file), kubeconfig=kubeconfig(tmp_path, api), **given)


@pytest.mark.parametrize(
    ("cluster", "expected"), [("v1.36.1", "1.36"), ("v1.37.2-gke.1", "1.37"), ("v1.33.0", "1.36"), ("v1.40.0", "1.37")]
)
async def test_the_version_is_that_of_the_cluster_and_the_log_states_it(tmp_path, api, caplog, cluster, expected):
    api.version = cluster
    with caplog.at_level("INFO"):
        found = await with_cluster_version(options(tmp_path, api))
    assert found.kubernetes_version == expected
    line = f"the cluster is Kubernetes {cluster}: profiles decide as kube-scheduler {expected}"
    assert line in [record.getMessage() for record in caplog.records]


async def test_a_version_that_is_given_is_kept(tmp_path, api):
    api.version = "v1.37.2"
    found = await with_cluster_version(options(tmp_path, api, kubernetes_version="1.36"))
    assert found.kubernetes_version == "1.36" and not api.log


async def test_without_profiles_nothing_is_read(tmp_path, api):
    assert await with_cluster_version(Options(kubeconfig=kubeconfig(tmp_path, api))) == Options(
        kubeconfig=kubeconfig(tmp_path, api)
    )
    assert not api.log


@pytest.mark.parametrize("version", ["no version", None])
async def test_a_version_that_cannot_be_read_is_1_36_with_a_warning(tmp_path, api, caplog, version):
    given = options(tmp_path, api)
    api.version = version
    if version is None:
        await api.stop()
    found = await with_cluster_version(given)
    assert found.kubernetes_version == "1.36"
    (warning,) = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    assert "profiles decide as kube-scheduler 1.36; set --kubernetes-version" in warning
