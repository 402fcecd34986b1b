"""The file of --config: settings of the process, and errors."""

import pytest

from volcano_py.scheduler.configuration.options import Options
from volcano_py.scheduler.framework.config import ConfigurationError
from volcano_py.scheduler.pods.document import ProfilesFile, with_file

HEAD = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"


def options(tmp_path, text, **given):
    file = tmp_path / "profiles.yaml"
    file.write_text(HEAD + text)
    return Options(config=str(file), **given)


def test_connection_and_leader_election_are_those_of_the_process(tmp_path):
    text = """\
clientConnection: {kubeconfig: /etc/kubeconfig, qps: 50, burst: 100}
leaderElection: {leaderElect: true, leaseDuration: 30s, renewDeadline: 20s, retryPeriod: 5s, resourceName: pods}
"""
    found = with_file(options(tmp_path, text))
    assert (found.kubeconfig, found.kube_api_qps, found.kube_api_burst) == ("/etc/kubeconfig", 50.0, 100)
    assert (found.lease_duration, found.renew_deadline, found.retry_period) == (30.0, 20.0, 5.0)
    assert (found.lease_name, found.lease_namespace) == ("pods", Options().lease_namespace)


def test_the_command_line_overrides_the_file(tmp_path):
    given = options(tmp_path, "clientConnection: {qps: 50}\n", kube_api_qps=7.0, given=frozenset({"kube_api_qps"}))
    assert with_file(given).kube_api_qps == 7.0


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("profiles: [{schedulerName: volcano}]", "profile volcano: the session schedules pods of this schedulerName"),
        ("profiles: [{plugins: {filter: {enabled: [{name: NodePort}]}}}]", "filter: unknown plugin 'NodePort'"),
        ("profiles: {", "line "),
        ("- a", "line "),
    ],
)
def test_errors_contain_the_file_and_the_field(tmp_path, text, message):
    with pytest.raises(ConfigurationError, match=r"profiles\.yaml: ") as error:
        ProfilesFile(options(tmp_path, text))
    assert message in str(error.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("leaderElection: {leaseDuration: soon}", "leaderElection, lease_duration: invalid duration 'soon'"),
        ("leaderElection: {leaderElect: true, leaseDuration: 1s}", "leaseDuration > renewDeadline"),
        ("clientConnection: {qps: many}", "clientConnection.qps"),
    ],
)
def test_invalid_settings_of_the_process(tmp_path, text, message):
    with pytest.raises(ConfigurationError) as error:
        with_file(options(tmp_path, text))
    assert message in str(error.value)


def test_the_version_of_kubernetes_selects_gates_and_order(tmp_path):
    given = options(tmp_path, "profiles: [{schedulerName: pods}]", kubernetes_version="1.37")
    found = ProfilesFile(given)
    assert found.configuration.release.name == "1.37" and "StorageCapacityScoring" in found.features
    filters = found.configuration.profiles[0].points["filter"]
    assert filters.index("NodeName") < filters.index("NodeUnschedulable")
    earlier = ProfilesFile(options(tmp_path, "profiles: [{schedulerName: pods}]"))
    assert "StorageCapacityScoring" not in earlier.features
    with pytest.raises(ConfigurationError, match="--kubernetes-version: Kubernetes version 'new': write it as one of"):
        ProfilesFile(options(tmp_path, "profiles: []", kubernetes_version="new"))
