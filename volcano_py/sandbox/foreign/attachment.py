"""Attaches hollow nodes to a foreign control plane, and detaches them.

The nodes have a label with the attachment's name; only they, their pods and their Leases are served. A node with
the label that another client creates is served, too.
"""

from __future__ import annotations

import asyncio
import ssl
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from volcano_py.api.meta import parse_time
from volcano_py.api.resource_types import DEVICECLASS, LEASE, NODE, POD, RESOURCESLICE, ResourceType
from volcano_py.kube.client import Client
from volcano_py.kube.errors import AlreadyExists, Forbidden, KubeError, NotFound
from volcano_py.sandbox import shapes
from volcano_py.sandbox.apiserver.registry.resources import Resource
from volcano_py.sandbox.controllers.manager import ControllerManager, Options
from volcano_py.sandbox.controllers.runtime.client import VERBS
from volcano_py.sandbox.devices import classes_of
from volcano_py.sandbox.foreign.mirror import Mirror
from volcano_py.sandbox.foreign.verbs import ForeignVerbs
from volcano_py.sandbox.kubelet import nodes as node_status
from volcano_py.sandbox.kubelet.clock import Clock, follow
from volcano_py.sandbox.kubelet.kubelet import Kubelets
from volcano_py.sandbox.kubelet.local import LEASE_NAMESPACE, LEASE_SECONDS, LocalCluster
from volcano_py.sandbox.shapes import NodeShape

Object = dict[str, Any]

LABEL = "sandbox.volcano.sh/attached"
"""The label of attached nodes; its value is the name of the attachment."""
AT_ONCE = 32
_NOT_COPIED = ("events", "events.events.k8s.io")
_OF_KUBELETS = (
    ("", "persistentvolumeclaims"),
    ("", "persistentvolumes"),
    ("resource.k8s.io", "resourceclaims"),
)
"""The kinds that kubelets read in addition to pods and nodes."""

_ROLE = "volcano-sandbox-nodes"
GRANT = (
    f"volcano-py sandbox nodes --print-role | kubectl apply -f - && kubectl create clusterrolebinding {_ROLE} "
    f"--clusterrole={_ROLE} --user=USER"
)
_RULES = (
    ("", ("nodes",), ("create", "delete", "get", "list", "patch", "watch")),
    ("", ("nodes/status", "pods/status"), ("patch",)),
    ("", ("pods",), ("delete", "list", "watch")),
    ("", ("configmaps", "persistentvolumeclaims", "persistentvolumes"), ("list", "watch")),
    ("", ("events",), ("create", "patch")),
    ("coordination.k8s.io", ("leases",), ("create", "delete", "get", "patch")),
    ("resource.k8s.io", ("resourceclaims",), ("list", "watch")),
    ("resource.k8s.io", ("deviceclasses", "resourceslices"), ("create", "delete")),
)


def role() -> Object:
    """The rules that hollow nodes require without `controllers`, which require all permissions."""
    rows = [{"apiGroups": [group], "resources": list(names), "verbs": list(verbs)} for group, names, verbs in _RULES]
    return {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {"name": _ROLE},
        "rules": rows,
    }


class AttachError(Exception):
    """The nodes cannot be attached; the text is one line with the remedy."""


class Attachment:
    """Hollow nodes `<name>-0`, `<name>-1`, … of a foreign control plane.

    controllers: whether to run Kubernetes' controllers, too, for a control plane without them. keep: whether the Node
    objects are kept when the attachment ends.
    """

    def __init__(
        self,
        client: Client,
        count: int,
        node_shapes: Sequence[NodeShape] = (),
        *,
        name: str = "hollow",
        controllers: bool = False,
        keep: bool = False,
    ) -> None:
        self.client = client
        self.name = name
        self.keep = keep
        self.node_shapes = list(node_shapes)
        self.manifests = [self._manifest(number) for number in range(count)]
        self.with_controllers = controllers
        self.mirror = Mirror(client, self._accepts)
        self.kubelets = Kubelets(LocalCluster(self.mirror), clock=Clock(), serves=self.serves)
        self.controllers: ControllerManager | None = None

    @property
    def _selector(self) -> str:
        return f"{LABEL}={self.name}"

    def serves(self, node: Object) -> bool:
        """Whether a node has the attachment's label."""
        return (node["metadata"].get("labels") or {}).get(LABEL) == self.name

    async def __aenter__(self) -> Attachment:
        try:
            await self.attach()
        except BaseException:
            self._stop()
            raise
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.detach()

    async def attach(self) -> None:
        """Create the nodes and start their kubelets. Raises AttachError, and KubeError if the server is unreachable."""
        await self._require_no_other_attachment()
        for rt, row in self._devices():
            await self._ensure(rt, row)
        await _each(self.manifests, lambda manifest: self._create(manifest))
        try:
            await self._copy()
        except TimeoutError:
            raise AttachError(
                "a list of nodes, pods or volumes is not complete; check with `kubectl auth can-i --list` that "
                "the user may list and watch them"
            ) from None
        configmaps = self.mirror.resource("", "configmaps")
        follow(self.kubelets.clock, configmaps.collection)
        self.kubelets.start()
        if self.with_controllers:
            self.mirror.extensions[VERBS] = ForeignVerbs(self.mirror)
            authority = _authority(self.client.credentials.ssl)
            options = Options(service_accounts=bool(authority))
            self.controllers = ControllerManager(self.mirror, options, authority)
            self.controllers.start()

    async def detach(self) -> None:
        """Stop the kubelets; delete nodes, their pods and Leases, unless the nodes are kept."""
        self._stop()
        ours = {node["metadata"]["name"] for node in await self.client.list(NODE, label_selector=self._selector)}
        await _each(sorted(ours), lambda name: self._delete(LEASE, name, LEASE_NAMESPACE))
        if self.keep:
            return
        await _each(sorted(ours), lambda name: self._delete(NODE, name))
        pods = [pod["metadata"] for pod in await self.client.list(POD) if pod["spec"].get("nodeName") in ours]
        await _each(pods, lambda meta: self._delete(POD, meta["name"], meta["namespace"], meta["uid"]))
        slices = [row for rt, row in self._devices() if rt is RESOURCESLICE]
        await _each(slices, lambda row: self._delete(RESOURCESLICE, row["metadata"]["name"]))

    def _stop(self) -> None:
        if self.controllers is not None:
            self.controllers.stop()
        self.kubelets.stop()
        self.mirror.stop()

    def _accepts(self, resource: Resource, obj: Object) -> bool:
        """Copy only the kinds that kubelets read, unless controllers run."""
        if self.with_controllers or resource.plural != "pods":
            return True
        node = obj["spec"].get("nodeName", "")
        return node in self.kubelets.nodes or self.mirror.resource("", "nodes").collection.get("", node) is not None

    async def _copy(self) -> None:
        if self.with_controllers:
            await self.mirror.follow_all(except_for=_NOT_COPIED)
            return
        find = self.mirror.resource
        await self.mirror.follow(find("", "nodes"), label_selector=self._selector)
        await self.mirror.follow(find("", "configmaps"), namespace="kube-system")
        await asyncio.gather(*(self.mirror.follow(find(*where)) for where in _OF_KUBELETS))
        await self.mirror.follow(find("", "pods"), field_selector="spec.nodeName!=")

    def _manifest(self, number: int) -> Object:
        chosen = self.node_shapes or [NodeShape()]
        manifest = shapes.manifest(f"{self.name}-{number}", chosen[number % len(chosen)])
        manifest["metadata"]["labels"][LABEL] = self.name
        # a sandbox as the control plane has its own kubelets
        manifest["metadata"].setdefault("annotations", {})[node_status.HOLLOW] = "false"
        node_status.register(manifest, number + 1)
        return manifest

    def _devices(self) -> list[tuple[ResourceType, Object]]:
        classes = classes_of([devices for shape in self.node_shapes for devices in shape.devices])
        slices = shapes.published(self.manifests, self.node_shapes)
        return [*((DEVICECLASS, row) for row in classes), *((RESOURCESLICE, row) for row in slices)]

    async def _require_no_other_attachment(self) -> None:
        """Check the Leases: one process serves the nodes of a name, so a recent Lease is that of another process."""
        if not self.manifests:
            return
        name = self.manifests[0]["metadata"]["name"]
        try:
            lease = await self.client.get(LEASE, name, LEASE_NAMESPACE)
        except (NotFound, Forbidden):
            return
        if time.time() - parse_time(lease["spec"]["renewTime"]) < LEASE_SECONDS:
            raise AttachError(
                f"nodes {self.name}-… have a kubelet already; choose another --name, or wait {LEASE_SECONDS} s "
                "if it ended without detaching"
            )

    async def _create(self, manifest: Object) -> None:
        name = manifest["metadata"]["name"]
        try:
            await self.client.create(NODE, manifest)
        except AlreadyExists:
            if not self.serves(await self.client.get(NODE, name)):
                raise AttachError(f"node {name} exists without the label; choose another --name") from None
        except Forbidden as error:
            raise AttachError(f"{error}; grant the permissions of hollow nodes: {GRANT}") from None

    async def _ensure(self, rt: ResourceType, row: Object) -> None:
        try:
            await self.client.create(rt, row)
        except AlreadyExists:
            pass
        except NotFound:
            raise AttachError(
                f"the server has no {rt.api_version} {rt.kind}; leave out devices of --node-shape, or use Kubernetes "
                "1.34 or newer"
            ) from None

    async def _delete(self, rt: ResourceType, name: str, namespace: str = "", uid: str = "") -> None:
        grace = 0 if rt is POD else None
        try:
            await self.client.delete(rt, name, namespace or None, uid=uid or None, grace_period_seconds=grace)
        except NotFound:
            pass
        except KubeError as error:
            raise AttachError(
                f"{rt.kind} {name} cannot be deleted: {error}; clean up with `kubectl delete nodes -l {self._selector}`"
            ) from None


async def _each(rows: Sequence[Any], work: Callable[[Any], Awaitable[None]]) -> None:
    """Call a function for all rows, some at the same time."""
    slots = asyncio.Semaphore(AT_ONCE)

    async def one(row: Any) -> None:
        async with slots:
            await work(row)

    await asyncio.gather(*map(one, rows))


def _authority(context: ssl.SSLContext | None) -> bytes:
    """The certificates that the kubeconfig trusts, as PEM."""
    found = context.get_ca_certs(binary_form=True) if context is not None else []
    return "".join(map(ssl.DER_cert_to_PEM_cert, found)).encode()
