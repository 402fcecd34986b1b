"""The commands that log lines name for what is missing in a cluster."""

from volcano_py.api.kinds import NATIVE_PODGROUP, NATIVE_PODGROUP_BETA, PODGROUP
from volcano_py.api.resource_types import LEASE
from volcano_py.kube.errors import Forbidden, NotFound
from volcano_py.kube.remedies import for_denied, remedy

_ACCOUNT = 'leases is forbidden: User "system:serviceaccount:vs:sched" cannot get resource "leases" in API group "x"'


def test_a_permission_that_is_missing():
    error = Forbidden(403, "Forbidden", _ACCOUNT)
    assert remedy(error, LEASE, ("get", "update"), "vs") == (
        "grant it: kubectl create role volcano-get-update-leases-coordination-k8s-io -n vs --verb=get,update "
        "--resource=leases.coordination.k8s.io && "
        "kubectl create rolebinding volcano-get-update-leases-coordination-k8s-io -n vs "
        "--role=volcano-get-update-leases-coordination-k8s-io --serviceaccount=vs:sched"
    )
    error = Forbidden(403, "Forbidden", 'x is forbidden: User "jane" cannot list resource "x"')
    assert remedy(error, PODGROUP, ("list", "watch")) == (
        "grant it: kubectl create clusterrole volcano-list-watch-podgroups-scheduling-volcano-sh --verb=list,watch "
        "--resource=podgroups.scheduling.volcano.sh && "
        "kubectl create clusterrolebinding volcano-list-watch-podgroups-scheduling-volcano-sh "
        "--clusterrole=volcano-list-watch-podgroups-scheduling-volcano-sh --user=jane"
    )


def test_a_write_that_is_denied():
    message = (
        'pods "a" is forbidden: User "jane" cannot create resource "pods/binding" in API group "" in the namespace'
    )
    assert for_denied(message) == (
        "; grant it: kubectl create clusterrole volcano-create-pods-binding --verb=create --resource=pods/binding && "
        "kubectl create clusterrolebinding volcano-create-pods-binding --clusterrole=volcano-create-pods-binding "
        "--user=jane"
    )
    assert for_denied('pods "a" is forbidden: exceeded quota: few') == ""


def test_secrets_are_granted_in_one_namespace():
    message = 'secrets "a" is forbidden: User "jane" cannot get resource "secrets" in API group "" in the namespace "n"'
    assert for_denied(message) == (
        "; grant it: kubectl create role volcano-get-secrets -n n --verb=get --resource=secrets && "
        "kubectl create rolebinding volcano-get-secrets -n n --role=volcano-get-secrets --user=jane"
    )


def test_a_definition_that_is_missing():
    missing = NotFound(404, "NotFound", "the server could not find the requested resource")
    assert "podgroups.scheduling.volcano.sh" in remedy(missing, PODGROUP, ("list",))
    assert (
        remedy(missing, LEASE, ("get",))
        == "the API server does not serve coordination.k8s.io/v1; features that use it are off"
    )
    assert remedy(NotFound(404, "", "404 page not found\n"), LEASE, ("get",))
    versions = (NATIVE_PODGROUP_BETA, NATIVE_PODGROUP)
    assert remedy(missing, NATIVE_PODGROUP, ("list",), versions=versions) == (
        "an API server serves it with --runtime-config=scheduling.k8s.io/v1beta1=true or "
        "--runtime-config=scheduling.k8s.io/v1alpha2=true, and its feature gate"
    )
    assert remedy(NotFound(404, "NotFound", 'namespaces "n" not found'), LEASE, ("create",)) == ""
