"""`make e2e-envtest`: the acceptance suite on a real kube-apiserver and etcd, with our hollow nodes and controllers.

    KUBEBUILDER_ASSETS=<folder with kube-apiserver and etcd> python -m tests.acceptance.envtest [pytest arguments]

No container runs, so every case that needs none does. The suite has four parts: admission by policies, cases on four
nodes, the cases of scheduling.yaml, each of which creates its own nodes, and groups of scheduling.k8s.io, on an API
server with their feature gates.
"""

from __future__ import annotations

import asyncio
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import orjson
import yaml

from tests.acceptance.site import POLICIES, VALIDATING_POLICIES, WEBHOOKS
from tests.sandbox.test_policy_documents import resource
from volcano_py.api.kinds import CONFIGMAP, NAMESPACE, QUEUE
from volcano_py.api.resource_types import CUSTOMRESOURCEDEFINITION
from volcano_py.kube import certificates
from volcano_py.kube.client import Client
from volcano_py.kube.errors import AlreadyExists, KubeError, NotFound
from volcano_py.sandbox import volcano
from volcano_py.sandbox.apiserver.apimachinery import features
from volcano_py.sandbox.apiserver.registry.builtin import GATED
from volcano_py.sandbox.components import Components
from volcano_py.webhooks.paths import PATHS
from volcano_py.webhooks.policy_documents import documents

START_SECONDS = 90.0
"""For each part of the control plane, and for the first state of the default queue."""
REMEDY = (
    "install them with `go run sigs.k8s.io/controller-runtime/tools/setup-envtest@latest use 1.36.x --bin-dir FOLDER "
    "-p path`, and set KUBEBUILDER_ASSETS to the folder that it prints"
)
ATTACHMENT = "envtest"
PROGRAMS = ("etcd", "kube-apiserver")
_SUITE = "tests/acceptance"
NODES = ("--nodes", "4", "--node-shape", "cpu=4,memory=8Gi")


@dataclass(frozen=True)
class Part:
    """Tests, the nodes that they need, whether policies are in force instead of webhooks, and whether the API server
    has the feature gates of groups."""

    nodes: Sequence[str]
    tests: Sequence[str]
    policies: bool = False
    gates: bool = False


# test_envtest.py tests this program: it would start a second control plane on the same ports.
PARTS = (
    Part(("--nodes", "0"), (f"{_SUITE}/test_policies.py",), policies=True),  # before webhooks are registered
    Part(
        NODES,
        (_SUITE, *(f"--ignore={_SUITE}/test_{name}.py" for name in ("policies", "scheduling", "envtest", "native"))),
    ),
    Part(("--nodes", "0"), (f"{_SUITE}/test_scheduling.py",)),
    Part(("--nodes", "0"), (f"{_SUITE}/test_native.py",), gates=True),
)


class Missing(Exception):
    """Something is not installed or does not start; the text is one line with the remedy."""


def assets(environment: dict[str, str]) -> Path:
    """The folder with the programs. Raises Missing."""
    text = environment.get("KUBEBUILDER_ASSETS", "")
    if not text:
        raise Missing(f"KUBEBUILDER_ASSETS is not set: it names the folder with {' and '.join(PROGRAMS)}; {REMEDY}")
    folder = Path(text)
    absent = [name for name in PROGRAMS if not os.access(folder / name, os.X_OK)]
    if absent:
        raise Missing(f"KUBEBUILDER_ASSETS is {folder}, which has no executable {' and no '.join(absent)}; {REMEDY}")
    return folder


def version(programs: Path) -> str:
    """The minor version of kube-apiserver, for example 1.37; empty if it prints none."""
    answer = subprocess.run([programs / "kube-apiserver", "--version"], capture_output=True, text=True, check=False)
    found = re.search(r"v(\d+\.\d+)\.", answer.stdout)
    return found[1] if found else ""


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@dataclass
class Plane:
    """A control plane below a folder; `kubeconfig` is its administrator's, with a client certificate."""

    programs: Path
    folder: Path
    flags: Sequence[str] = ()
    """Further ones of kube-apiserver."""
    gates: Collection[str] = ()
    """Feature gates of kube-apiserver that are enabled, with the versions of scheduling.k8s.io that need them."""

    @property
    def kubeconfig(self) -> Path:
        return self.folder / "kubeconfig"

    def prepare(self) -> None:
        """Write keys, certificates and the kubeconfig."""
        self.etcd, self.etcd_peer, self.port = free_port(), free_port(), free_port()
        authority = certificates.new_authority()
        server = certificates.make(authority=authority)
        accounts = certificates.new_authority()
        client, key = certificates.make_client("admin", ("system:masters",), authority)
        files = {
            "ca.pem": authority.certificate,
            "server.pem": server.certificate,
            "server.key": server.key,
            "accounts.pem": accounts.certificate,
            "accounts.key": accounts.key,
            "client.pem": client,
            "client.key": key,
        }
        for name, content in files.items():
            path = self.folder / name
            path.touch(0o600)
            path.write_bytes(content)
        document = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [
                {
                    "name": "envtest",
                    "cluster": {
                        "server": f"https://127.0.0.1:{self.port}",
                        "certificate-authority": str(self.folder / "ca.pem"),
                    },
                }
            ],
            "users": [
                {
                    "name": "admin",
                    "user": {
                        "client-certificate": str(self.folder / "client.pem"),
                        "client-key": str(self.folder / "client.key"),
                    },
                }
            ],
            "contexts": [{"name": "envtest", "context": {"cluster": "envtest", "user": "admin"}}],
            "current-context": "envtest",
        }
        self.kubeconfig.write_text(yaml.safe_dump(document))

    def commands(self) -> list[list[str]]:
        """The command lines of etcd and kube-apiserver."""
        etcd, peer = f"http://127.0.0.1:{self.etcd}", f"http://127.0.0.1:{self.etcd_peer}"
        return [
            [
                str(self.programs / "etcd"),
                f"--data-dir={self.folder / 'etcd'}",
                f"--listen-client-urls={etcd}",
                f"--advertise-client-urls={etcd}",
                f"--listen-peer-urls={peer}",
                f"--initial-advertise-peer-urls={peer}",
                f"--initial-cluster=default={peer}",
                "--unsafe-no-fsync",
            ],
            [
                str(self.programs / "kube-apiserver"),
                f"--etcd-servers={etcd}",
                "--bind-address=127.0.0.1",
                f"--secure-port={self.port}",
                f"--cert-dir={self.folder}",
                f"--tls-cert-file={self.folder / 'server.pem'}",
                f"--tls-private-key-file={self.folder / 'server.key'}",
                f"--client-ca-file={self.folder / 'ca.pem'}",
                "--service-account-issuer=https://127.0.0.1",
                f"--service-account-key-file={self.folder / 'accounts.pem'}",
                f"--service-account-signing-key-file={self.folder / 'accounts.key'}",
                "--service-cluster-ip-range=10.96.0.0/16",
                "--authorization-mode=RBAC",
                "--allow-privileged=true",
                "--disable-admission-plugins=ServiceAccount",  # its tokens are of no use without containers
                *self._gate_flags(),
                *self.flags,
            ],
        ]

    def _gate_flags(self) -> list[str]:
        if not self.gates:
            return []
        of_gates = GATED.get(version(self.programs), {})
        served = sorted({name for gate in self.gates for name in of_gates.get(gate, ())})
        return [
            f"--feature-gates={','.join(f'{gate}=true' for gate in self.gates)}",
            f"--runtime-config={','.join(f'{version}=true' for version in served)}",
        ]


@asynccontextmanager
async def control_plane(programs: Path, folder: Path, *flags: str, gates: Collection[str] = ()) -> AsyncIterator[Plane]:
    """Start etcd and kube-apiserver, and end them afterwards. Raises Missing with the end of their log."""
    plane = Plane(programs, folder, flags, gates)
    plane.prepare()
    running: list[asyncio.subprocess.Process] = []
    try:
        for command in plane.commands():
            with (folder / f"{Path(command[0]).name}.log").open("wb") as log:
                running.append(await asyncio.create_subprocess_exec(*command, stdout=log, stderr=log))
        async with Client.from_kubeconfig(plane.kubeconfig) as client:
            deadline = time.monotonic() + START_SECONDS
            while not await _ready(client):
                ended = [
                    name for name, process in zip(PROGRAMS, running, strict=True) if process.returncode is not None
                ]
                if ended or time.monotonic() > deadline:
                    name = ended[0] if ended else PROGRAMS[-1]
                    last = (folder / f"{name}.log").read_text(errors="replace").splitlines()[-3:]
                    what = "has ended" if ended else f"is not ready after {START_SECONDS:g} s"
                    raise Missing(f"{name} {what}: {' / '.join(last) or 'it printed nothing'}")
                await asyncio.sleep(0.1)
        yield plane
    finally:
        for process in reversed(running):
            if process.returncode is None:
                process.send_signal(signal.SIGTERM)
                await process.wait()


async def _ready(client: Client) -> bool:
    try:
        return await client.raw("GET", "/readyz") == b"ok"
    except KubeError:
        return False


async def install(client: Client) -> None:
    """The CRDs, the namespace and the ConfigMap that our chart would create, and wait until the kinds are served."""
    with suppress(AlreadyExists):
        await client.create(NAMESPACE, {"metadata": {"name": volcano.SYSTEM_NAMESPACE}})
    await client.create(CONFIGMAP, volcano.scheduler_configmap())
    names = []
    for document in volcano.definitions():
        names.append((await client.create(CUSTOMRESOURCEDEFINITION, document))["metadata"]["name"])

    async def established() -> bool:
        for name in names:
            found = await client.get(CUSTOMRESOURCEDEFINITION, name)
            rows = (found.get("status") or {}).get("conditions") or ()
            if not any(row["type"] == "Established" and row["status"] == "True" for row in rows):
                return False
        return True

    await _until(established, "the CRDs are not established")


async def _until(holds: Callable[[], Awaitable[bool]], otherwise: str) -> None:
    deadline = time.monotonic() + START_SECONDS
    while not await holds():
        if time.monotonic() > deadline:
            raise Missing(f"{otherwise} after {START_SECONDS:g} s")
        await asyncio.sleep(0.1)


@asynccontextmanager
async def policies(client: Client) -> AsyncIterator[str]:
    """Our admission policies; mutating ones where the server has them. Gives which of the two are in force."""
    made = []
    version = await mutating_version(client)
    for document in documents(mutating=version):
        made.append((resource(document), document["metadata"]["name"]))
        await client.create(made[-1][0], document)
    yield POLICIES if version else VALIDATING_POLICIES
    for rt, name in reversed(made):
        await client.delete(rt, name)


async def mutating_version(client: Client) -> str:
    """The version in which the server has MutatingAdmissionPolicies, empty if it has none."""
    for version in ("v1", "v1beta1"):
        with suppress(NotFound):
            found = orjson.loads(await client.raw("GET", f"/apis/admissionregistration.k8s.io/{version}"))
            if any(row["name"] == "mutatingadmissionpolicies" for row in found["resources"]):
                return version
    return ""


@asynccontextmanager
async def components(plane: Plane, nodes: Sequence[str], *, webhooks: bool = True) -> AsyncIterator[None]:
    """Hollow nodes with Kubernetes' controllers, and our scheduler, controllers and webhooks; no case needs the
    dashboard."""
    more = {
        "controller-manager": ("--controllers=*", "--pod-groups-of-single-pods"),
        volcano.WEBHOOK_MANAGER: (f"--enabled-admission={','.join(PATHS)}",),
    }

    def command(name: str) -> list[str]:
        if name == "nodes":
            where = ("--kubeconfig", str(plane.kubeconfig), "--name", ATTACHMENT, "--controllers")
            return [volcano.PROGRAM, "sandbox", "nodes", *where, *nodes]
        return volcano.component_command(name, plane.kubeconfig, more)

    started = Components(command, plane.folder / "logs")
    try:
        left_out = {volcano.DASHBOARD} if webhooks else {volcano.DASHBOARD, volcano.WEBHOOK_MANAGER}
        await started.start(("nodes", *(name for name in volcano.COMPONENTS if name not in left_out)))
        async with Client.from_kubeconfig(plane.kubeconfig) as client:

            async def opened() -> bool:
                _alive(started)
                try:
                    status = (await client.get(QUEUE, "default")).get("status") or {}
                except KubeError:
                    return False
                return {"state", "allocated"} <= status.keys()

            await _until(opened, "the default queue is not open")
        yield
        _alive(started)
    finally:
        await started.stop()


def _alive(started: Components) -> None:
    """Raises Missing with the end of the log of a component that has ended."""
    assert started.logs is not None
    for name in started.ended():
        last = (started.logs / f"{name}.log").read_text(errors="replace").splitlines()[-3:]
        raise Missing(f"{name} has ended: {' / '.join(last) or 'it printed nothing'}")


async def run(arguments: Sequence[str]) -> int:
    """Run the suite; the exit code of pytest."""
    programs = assets(dict(os.environ))
    gates = features.OF_VERSION.get(version(programs), ())
    worst = 0
    for gated in (False, True) if gates else (False,):
        with tempfile.TemporaryDirectory(prefix="volcano-envtest-") as folder:
            async with (
                control_plane(programs, Path(folder), gates=gates if gated else ()) as plane,
                Client.from_kubeconfig(plane.kubeconfig) as client,
            ):
                found = orjson.loads(await client.raw("GET", "/version"))["gitVersion"]
                with_gates = " with the gates of groups" if gated else ""
                print(f"kube-apiserver {found}{with_gates} runs at {client.credentials.server}", flush=True)
                await install(client)
                for part in PARTS:
                    if part.gates == gated:
                        worst = max(worst, await _run(part, plane, client, arguments))
    if not gates:
        print(f"kube-apiserver {found} has no groups of scheduling.k8s.io: their cases do not run", flush=True)
    return worst


async def _run(part: Part, plane: Plane, client: Client, arguments: Sequence[str]) -> int:
    async with AsyncExitStack() as surroundings:
        admission = WEBHOOKS
        if part.policies:
            admission = await surroundings.enter_async_context(policies(client))
        await surroundings.enter_async_context(components(plane, part.nodes, webhooks=not part.policies))
        environment = {**os.environ, "CLUSTER": str(plane.kubeconfig), "HOLLOW": ATTACHMENT, "ADMISSION": admission}
        return await _pytest((*part.tests, *arguments), environment)


async def _pytest(arguments: Sequence[str], environment: dict[str, str]) -> int:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "pytest", *arguments), env=environment, stdin=subprocess.DEVNULL
    )
    code = await process.wait()
    return 0 if code == 5 else code  # 5: the arguments choose none of these tests


def main() -> None:
    try:
        sys.exit(asyncio.run(run(sys.argv[1:])))
    except Missing as error:
        sys.exit(f"e2e-envtest: {error}")


if __name__ == "__main__":
    main()
