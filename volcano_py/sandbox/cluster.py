"""A cluster in one process: API server, hollow kubelets, Kubernetes' controllers, and Volcano's components.

    async with Sandbox(nodes=3, components=()) as sandbox:
        ...  # sandbox.kubeconfig, sandbox.url, sandbox.token

All parts except the components run in this process and its event loop.
"""

from __future__ import annotations

import asyncio
import contextlib
import ssl
import tempfile
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any

from volcano_py.kube import certificates
from volcano_py.sandbox import identity, kubeconfig, pod_credentials, shapes, volcano
from volcano_py.sandbox.apiserver.apiextensions.definitions import Definitions
from volcano_py.sandbox.apiserver.apimachinery import features
from volcano_py.sandbox.apiserver.assembly import new_api, new_server, put
from volcano_py.sandbox.apiserver.auth import authorization
from volcano_py.sandbox.apiserver.http.audit import AuditLog
from volcano_py.sandbox.apiserver.http.server import Server
from volcano_py.sandbox.apiserver.registry.api import Api
from volcano_py.sandbox.apiserver.registry.request import User
from volcano_py.sandbox.apiserver.schema import codec
from volcano_py.sandbox.apiserver.storage.database import Database, DataError
from volcano_py.sandbox.apiserver.storage.durable import Durable
from volcano_py.sandbox.components import Components
from volcano_py.sandbox.controllers.manager import ControllerManager, Options
from volcano_py.sandbox.devices import classes_of
from volcano_py.sandbox.identity import Identity
from volcano_py.sandbox.kubelet.clock import Clock, follow
from volcano_py.sandbox.kubelet.containers import BACKOFF_FIRST
from volcano_py.sandbox.kubelet.kubelet import Kubelets
from volcano_py.sandbox.kubelet.local import LocalCluster
from volcano_py.sandbox.kubelet.processes.runtime import Processes
from volcano_py.sandbox.prometheus import Prometheus
from volcano_py.sandbox.shapes import NodeShape
from volcano_py.sandbox.upgrades import check_version

Object = dict[str, Any]

POPULATED = "populated"  # the fact that all first objects of a folder's cluster are created
_CONTROLLERS = Options()
NO_CHECK_TIME = 0x200000
"""OpenSSL's X509_V_FLAG_NO_CHECK_TIME: as in kube-apiserver, certificates are checked at each request (401)."""
ADMIN = User("admin", ("system:masters", "system:authenticated"))


class SandboxError(Exception):
    """The sandbox cannot start; the text is one line with the remedy."""


class Sandbox:
    """An embedded cluster.

    nodes: the number of nodes, or complete Node objects. shapes: used in turn for the nodes. components: which of
    scheduler and controller-manager to start as child processes. path: where to write the kubeconfig (a temporary file
    when None). users: more tokens. crds: extra definitions, or False for none at all. volcano_admission: whether
    Volcano's rules for Jobs, PodGroups and Queues apply. first_queues: whether to create root, default and the
    scheduler's ConfigMap. hollow: whether
    kubelets run. controllers: which of Kubernetes' own run, and their time limits; None for none.
    backoff: seconds before a crashed container restarts. data: the folder for persistent data (None: nothing is
    persisted; the cluster of an existing folder is restored with its own nodes); fsync: whether the data also survives
    a power failure. audit: the file for the log of all requests. run_commands: whether containers' commands run as
    processes of this machine, with the permissions of this process; their folders are beside the kubeconfig. rbac:
    whether roles restrict users. feature_gates: of the API server, as for Kubernetes' --feature-gates; all are disabled
    by default. kubernetes_version: 1.33 to 1.37, the version that it reports and whose kinds it serves.
    """

    def __init__(
        self,
        nodes: int | Sequence[Object] = 3,
        *,
        node_shapes: Sequence[NodeShape] = (),
        components: Sequence[str] = (),
        component_arguments: Mapping[str, Sequence[str]] | None = None,
        host: str = "127.0.0.1",
        port: int = 0,
        path: Path | None = None,
        logs: Path | None = None,
        users: Mapping[str, User] | None = None,
        crds: Sequence[Object] | bool = True,
        volcano_admission: bool = True,
        hollow: bool = True,
        controllers: Options | None = _CONTROLLERS,
        first_queues: bool = True,
        backoff: float = BACKOFF_FIRST,
        data: Path | None = None,
        fsync: bool = False,
        audit: Path | None = None,
        run_commands: bool = False,
        rbac: bool = True,
        feature_gates: str = "",
        kubernetes_version: str = "1.36",
        prometheus_port: int | None = None,
    ) -> None:
        """Raises ValueError for invalid feature gates."""
        self.wanted_nodes = nodes
        self.node_shapes = list(node_shapes)
        self.wanted_components = tuple(components)
        self.component_arguments = dict(component_arguments or {})
        self.host, self.wanted_port = host, port
        self.path = path
        self.logs = logs
        self.users = dict(users or {})
        self.crds = crds
        self.volcano_admission = volcano_admission
        self.first_queues = first_queues
        self.hollow, self.backoff = hollow, backoff
        self.controller_options = controllers
        self.data, self.fsync = data, fsync
        self.audit = audit
        self.run_commands = run_commands
        self.rbac = rbac
        self.features = features.parse(feature_gates, kubernetes_version)
        self.kubernetes_version = kubernetes_version
        if any(shape.devices for shape in node_shapes) and not features.is_at_least(kubernetes_version, "1.34"):
            raise ValueError(
                f"--kubernetes-version {kubernetes_version} has no devices of DRA drivers (resource.k8s.io/v1): use "
                f"1.34 or newer, or shapes without devices"
            )
        self.prometheus_port = prometheus_port
        self.prometheus: Prometheus | None = None
        self.processes: Processes | None = None
        self.identity = Identity()
        self.restored = False  # whether the data folder had a cluster already
        self.durable: Durable | None = None
        self.api: Api
        self.server: Server
        self.components: Components | None = None
        self.kubelets: Kubelets | None = None
        self.controllers: ControllerManager | None = None
        self.authority = b""
        self._folder: tempfile.TemporaryDirectory[str] | None = None

    @property
    def url(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"https://{host}:{self.server.port}"

    @property
    def token(self) -> str:
        """The administrator's token."""
        return self.identity.token

    def admin(self, user: User) -> None:
        """Assign the sandbox's own token to another user."""
        self.users[self.token] = user
        self.api.extensions["authenticator"].tokens[self.token] = user

    @property
    def nodes(self) -> int:
        """The number of nodes."""
        return len(self.api.resource("", "nodes").collection.entries)

    @property
    def kubeconfig(self) -> str:
        """The path of the kubeconfig."""
        return str(self.path)

    async def __aenter__(self) -> Sandbox:
        try:
            await self.start()
        except BaseException:
            await self.stop()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()

    async def start(self) -> None:
        """Start all parts; SandboxError when that is not possible."""
        try:
            await self._start()
        except (DataError, volcano.NotInstalled) as error:
            raise SandboxError(str(error)) from None

    async def _start(self) -> None:
        self._open()
        hosts = tuple(dict.fromkeys((self.host, "127.0.0.1", "::1", "localhost", "kubernetes.default")))
        made = certificates.make(hosts, self.identity.authority)
        self.authority = made.authority
        self.api = new_api(self.durable, self.features, self.kubernetes_version)
        if self.durable is not None:
            check_version(self.api, self.durable.database, self.kubernetes_version)
        if not self.rbac:
            self.api.extensions["authorizers"].append(authorization.authenticated)
        tokens = {self.token: ADMIN, **self.users}
        self.server = new_server(self.api, tokens)
        self.server.authenticator.key = self.identity.key
        self.server.durable = self.durable
        if self.audit is not None:
            try:
                self.server.audit = AuditLog(self.audit)
            except OSError as error:
                why = error.strerror or error
                raise SandboxError(f"cannot write {self.audit} ({why}); choose another with --audit-log") from None
        put(self.api, "", "namespaces", self._namespace(volcano.SYSTEM_NAMESPACE))
        if self.first_queues:
            put(self.api, "", "configmaps", volcano.scheduler_configmap())
        if self.crds is not False:
            self._define()
        tls = made.context()
        tls.load_verify_locations(cadata=self.authority.decode())
        tls.verify_mode = ssl.CERT_OPTIONAL  # a client certificate is one of several credentials
        tls.verify_flags |= NO_CHECK_TIME
        await self._listen(tls)
        self._write_kubeconfig()
        if not self.restored:
            self._populate()
        await self._keep()
        if self.hollow:
            clock = Clock()
            cluster = LocalCluster(self.api)
            if self.run_commands:
                await self._start_processes(cluster)
            else:  # the duration of real processes is not simulated
                follow(clock, self.api.resource("", "configmaps").collection)
            self.kubelets = Kubelets(cluster, backoff=self.backoff, clock=clock, processes=self.processes)
            self.kubelets.start()
        if self.controller_options is not None:
            self.controllers = ControllerManager(self.api, self.controller_options, self.authority)
            self.controllers.start()
        if self.prometheus_port is not None:
            await self._serve_load(self.prometheus_port)
        await asyncio.sleep(0)
        if self.wanted_components:
            assert self.path is not None
            command = partial(volcano.component_command, kubeconfig=self.path, arguments=self.component_arguments)
            self.components = Components(command, self.logs)
            await self.components.start(self.wanted_components)

    async def _serve_load(self, port: int) -> None:
        self.prometheus = Prometheus(self.api)
        try:
            await self.prometheus.start(self.host, port)
        except OSError as error:
            why = f"cannot listen on {self.host}:{port} ({error.strerror or error})"
            raise SandboxError(f"{why}; choose another with --prometheus-port, or 0 for any free one") from None

    async def _start_processes(self, cluster: LocalCluster) -> None:
        assert self.path is not None
        path = self.path.absolute()
        folders = path.with_name(path.name + ".pods"), path.with_name(path.name + ".claims")
        account = partial(pod_credentials.document, self.api, self.url, self.authority)
        self.processes = Processes(*folders, cluster.lookup, account)
        self.api.extensions["log_files"] = self.processes.log_file
        for plural in ("configmaps", "secrets"):
            self.api.resource("", plural).collection.observers.append(partial(self.processes.refresh.observe, plural))
        pods = [(e.namespace, e.name, e.uid) for e in self.api.resource("", "pods").collection.select()]
        try:
            await self.processes.start(pods, cluster.pod_addresses())
        except OSError as error:
            raise SandboxError(
                f"cannot create the pods' folder {folders[0]} ({error.strerror or error}); choose another --kubeconfig"
            ) from None

    async def keep_only(self, fill: Callable[[Api], None]) -> None:
        """Store objects in the data folder without starting anything; SandboxError when that is not possible."""
        try:
            self._open()
            self.api = new_api(self.durable)
            fill(self.api)
            if self.crds is not False:
                self._define()
            await self._keep()
        except (DataError, volcano.NotInstalled) as error:
            raise SandboxError(str(error)) from None
        finally:
            await self.stop()

    def _open(self) -> None:
        """Open the data folder, and load the identity of its cluster."""
        if self.data is None:
            return
        database = Database(self.data, fsync=self.fsync)
        self.durable = Durable(database, fsync=self.fsync)
        self.identity = identity.load(database)
        with database.guarded():
            self.restored = database.fact(POPULATED) is not None
        identity.save(database, self.identity)

    async def _listen(self, tls: ssl.SSLContext) -> None:
        """Listen on the requested port; else on the cluster's former port, so that old kubeconfigs are valid; else on
        any port."""
        if not self.wanted_port and self.identity.port:
            try:
                await self.server.start(self.host, self.identity.port, tls)
                return
            except OSError:  # another process uses it now
                await self.server.stop()
        try:
            await self.server.start(self.host, self.wanted_port, tls)
        except OSError as error:
            raise SandboxError(
                f"cannot listen on {self.host}:{self.wanted_port} ({error.strerror or error}); "
                "choose another with --port, or 0 for any free one"
            ) from None

    async def _keep(self) -> None:
        """Record that all first objects are in the folder."""
        if self.durable is None:
            return
        await self.durable.settled()
        if hasattr(self, "server"):
            self.identity.port = self.server.port
        identity.save(self.durable.database, self.identity)
        with self.durable.database.guarded():
            self.durable.database.set_fact(POPULATED, "yes")

    async def stop(self) -> None:
        """Stop all parts, beginning with the children."""
        if self.components is not None:
            await self.components.stop()
        if self.kubelets is not None:
            self.kubelets.stop()
        if self.processes is not None:
            await self.processes.close()
        if self.controllers is not None:
            self.controllers.stop()
        if self.prometheus is not None:
            await self.prometheus.stop()
        if hasattr(self, "server"):
            await self.server.stop()
            for hook in self.api.hooks:
                await hook.close()
            if self.server.audit is not None:
                self.server.audit.close()
        if self.durable is not None:
            await self.durable.close()
        if self._folder is not None:
            with contextlib.suppress(OSError):
                self._folder.cleanup()

    # --- first objects -----------------------------------------------------------------------------------------------

    @staticmethod
    def _namespace(name: str) -> Object:
        labels = {"kubernetes.io/metadata.name": name}
        return {
            "metadata": {"name": name, "labels": labels},
            "spec": {"finalizers": ["kubernetes"]},
            "status": {"phase": "Active"},
        }

    def _define(self) -> None:
        """Install the CRDs, and Volcano's first queues and rules."""
        documents = [*volcano.definitions(), *(self.crds if isinstance(self.crds, Sequence) else ())]
        definitions: Definitions = self.api.extensions["definitions"]
        for document in documents:
            if document.get("kind") == "CustomResourceDefinition":
                put(self.api, "apiextensions.k8s.io", "customresourcedefinitions", definitions.established(document))
        # with a webhook manager, the rules are called over HTTPS
        if self.volcano_admission and volcano.WEBHOOK_MANAGER not in self.wanted_components:
            volcano.install_admission(self.api)
        if self.first_queues and not self.restored:
            volcano.put_first_queues(self.api)

    def _populate(self) -> None:
        """Create the nodes."""
        wanted = self.wanted_nodes
        nodes = shapes.numbered(wanted, self.node_shapes) if isinstance(wanted, int) else list(wanted)
        resource = self.api.resource("", "nodes")
        for node in nodes:
            body = {key: value for key, value in node.items() if key not in ("apiVersion", "kind")}
            made = codec.normalise(resource.type, body, codec.Unknown())
            put(self.api, "", "nodes", made)
        if isinstance(wanted, int):
            for made in shapes.published(nodes, self.node_shapes):
                put(self.api, "resource.k8s.io", "resourceslices", made)
            for made in classes_of([devices for shape in self.node_shapes for devices in shape.devices]):
                put(self.api, "resource.k8s.io", "deviceclasses", made)

    def _write_kubeconfig(self) -> None:
        if self.path is None:
            self._folder = tempfile.TemporaryDirectory(prefix="volcano-sandbox-")
            self.path = Path(self._folder.name) / "kubeconfig"
        try:
            kubeconfig.write(self.path, self.url, self.authority, self.token)
        except OSError as error:
            raise SandboxError(
                f"cannot write the kubeconfig {self.path} ({error.strerror or error}); choose another with --kubeconfig"
            ) from None
