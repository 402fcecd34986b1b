"""Real processes for kubelets: addresses and folders for pods, runs of their containers, and their end."""

from __future__ import annotations

import asyncio
import contextlib
import re
import signal
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import yaml

from volcano_py.sandbox import private_files
from volcano_py.sandbox.kubelet.behaviour import EXIT_CODE, RUN_SECONDS, Run
from volcano_py.sandbox.kubelet.processes import environment, logs, termination, volumes
from volcano_py.sandbox.kubelet.processes.addresses import Addresses
from volcano_py.sandbox.kubelet.processes.connection import Connection, Ended
from volcano_py.sandbox.kubelet.processes.limits import process_limits
from volcano_py.sandbox.kubelet.processes.problem import NotReady
from volcano_py.sandbox.kubelet.processes.references import Lookup
from volcano_py.sandbox.kubelet.processes.refresh import Refresh
from volcano_py.sandbox.kubelet.processes.rewriting import Rewrite, host_names, inside, mount_paths
from volcano_py.sandbox.kubelet.processes.siblings import is_sibling

Object = dict[str, Any]
Over = Callable[[Run], None]
Gone = Callable[[dict[str, Run]], None]

CLOSE_SECONDS = 3.0  # for processes to end by themselves when the sandbox stops
FOLDER = re.compile(r"[a-z0-9-]+_[a-z0-9.-]+_[0-9a-f-]{36}")  # a pod's: namespace, name, uid
KUBECONFIG = "kubeconfig"  # in a pod's folder
LOST = Run(0.0, 137, (), "ContainerStatusUnknown", "The container could not be located: its process has ended")


@dataclass(slots=True)
class _Running:
    """A container's process, and its arguments."""

    id: str
    container: Object
    what: dict[str, Any]


@dataclass(slots=True)
class _Pod:
    """A pod's processes."""

    namespace: str
    subdomain: str
    address: str
    running: dict[str, _Running] = field(default_factory=dict)
    ended: dict[str, Run] = field(default_factory=dict)
    gone: list[Gone] = field(default_factory=list)  # called with the results when a stopped pod has ended
    timer: asyncio.TimerHandle | None = None


class Processes:
    """All processes of all pods. `root` is the folder of the pods' folders, `claims` that of PersistentVolumeClaims.

    `account` returns the kubeconfig of a pod's service account, None for a pod without one.
    """

    def __init__(self, root: Path, claims: Path, lookup: Lookup, account: Callable[[Object], Object | None]) -> None:
        self.root = root
        self.claims = claims
        self.lookup = lookup
        self.account = account
        self.addresses = Addresses()
        self.connection = Connection()
        self.refresh = Refresh(self._set_up_again)
        self._pods: dict[str, _Pod] = {}
        self._numbers = count()

    async def start(self, pods: Iterable[tuple[str, str, str]], taken: Iterable[str]) -> None:
        """Start the supervisor; folders of pods that do not exist are removed."""
        keep = {self.folder(*pod).name for pod in pods}
        self.addresses.skip(taken)
        self.root.mkdir(parents=True, exist_ok=True)
        self.root.chmod(0o700)  # it will contain Secrets
        for folder in self.root.iterdir():
            if folder.name not in keep and FOLDER.fullmatch(folder.name):
                await asyncio.to_thread(volumes.remove, folder)
        await self.connection.start()

    async def close(self) -> None:
        """End all processes."""
        for pod in self._pods.values():
            if pod.timer is not None:
                pod.timer.cancel()
        self._pods.clear()
        await self.connection.close(CLOSE_SECONDS)

    def folder(self, namespace: str, name: str, uid: str) -> Path:
        """The folder of a pod."""
        return self.root / f"{namespace}_{name}_{uid}"

    def log_file(self, namespace: str, name: str, uid: str, container: str, index: int) -> Path | None:
        """The log of a container's latest run (-1) or the one before (-2)."""
        return logs.find(self.folder(namespace, name, uid), container, index)

    @staticmethod
    def runs(pod: Object, container: Object) -> bool:
        """Whether a container is a process: its command is known, and no annotation sets its run time."""
        annotations = pod["metadata"].get("annotations") or {}
        return bool(container.get("command")) and RUN_SECONDS not in annotations and EXIT_CODE not in annotations

    # --- start -------------------------------------------------------------------------------------------------------

    def address(self, pod: Object) -> str:
        """An address for a new pod."""
        return self._register(pod, self.addresses.take(pod)).address

    def adopt(self, pod: Object) -> None:
        """Continue a pod that was started before this sandbox."""
        address = pod["status"]["podIP"]
        self.addresses.adopt(pod, address)
        self._register(pod, address)

    def _register(self, pod: Object, address: str) -> _Pod:
        meta = pod["metadata"]
        known = _Pod(meta["namespace"], pod["spec"].get("subdomain") or "", address)
        self._pods[meta["uid"]] = known
        return known

    def set_up(self, pod: Object) -> None:
        """Create a pod's folders; NotReady when a volume is missing."""
        folder = self._folder_of(pod)
        made = volumes.Volumes(folder, self.claims, pod, self.lookup, self._allocatable(pod))
        made.set_up(self._hosts(pod))
        if (document := self.account(pod)) is not None:
            with private_files.replacing(folder / KUBECONFIG) as file:
                yaml.safe_dump(document, file, sort_keys=False)
        self.refresh.add(pod)

    def _set_up_again(self, where: tuple[str, str, str]) -> None:
        namespace, name, uid = where
        pod = self.lookup("pods", namespace, name)
        if uid in self._pods and pod is not None and pod["metadata"]["uid"] == uid:
            # a source that no longer exists is kept as it was mounted
            with contextlib.suppress(NotReady):
                self.set_up(pod)

    def launch(self, pod: Object, container: Object, over: Over) -> None:
        """Start a container; `over` is called when it has ended, unless the pod is being stopped. Raises NotReady."""
        known = self._pods[pod["metadata"]["uid"]]
        folder, name = self._folder_of(pod), container["name"]
        root = folder / "containers" / name
        variables = environment.variables(pod, container, self.lookup, self._allocatable(pod))
        paths = [mount["mountPath"] for mount in container.get("volumeMounts") or []]
        in_place = mount_paths(root, [*paths, termination.path_of(container)])
        hosts = self._hosts(pod)

        def local(text: str) -> str:
            return hosts(in_place(text))

        own = {"HOSTNAME": pod["spec"].get("hostname") or pod["metadata"]["name"]}
        if (folder / KUBECONFIG).exists():
            own["KUBECONFIG"] = str(folder / KUBECONFIG)
        words = [*(container.get("command") or ()), *(container.get("args") or ())]
        directory = container.get("workingDir") or "/"
        cwd = inside(root, directory)
        try:
            termination.prepare(root, container)
            cwd.mkdir(parents=True, exist_ok=True)
            log = logs.path_for(folder, name)
        except OSError as error:
            raise NotReady("CreateContainerError", "Failed", f"{error.filename}: {error.strerror}") from None
        what = {
            "argv": [local(environment.expand(word, variables)) for word in words],
            "env": environment.base() | own | {key: local(value) for key, value in variables.items()},
            "cwd": str(cwd),
            "limits": process_limits(pod, container),
        }
        id_ = f"{pod['metadata']['uid']}/{name}/{next(self._numbers)}"
        known.running[name] = _Running(id_, container, what)
        ended = partial(self._ended, known, container, root, log, over)
        self.connection.run(id_, ended, log=str(log), **what)

    def _ended(self, pod: _Pod, container: Object, root: Path, log: Path, over: Over, ended: Ended) -> None:
        name = container["name"]
        pod.running.pop(name, None)
        message = ended.message or termination.message(root, container, log, ended.code)
        run = Run(0.0, ended.code, (), "StartError" if ended.failed else "", message)
        if not pod.gone:
            over(run)
            return
        pod.ended[name] = run
        self._check_gone(pod)

    # --- the end -----------------------------------------------------------------------------------------------------

    def stop(self, uid: str, seconds: float, gone: Gone) -> None:
        """End a pod's processes within `seconds`, then call `gone` with their results; a later call may be shorter."""
        pod = self._pods.get(uid)
        if pod is None:
            gone({})
            return
        loop = asyncio.get_running_loop()
        due = loop.time() + seconds
        pod.gone.append(gone)
        if len(pod.gone) == 1:
            for running in list(pod.running.values()):
                self._terminate(running)
        if pod.timer is None or due < pod.timer.when():
            if pod.timer is not None:
                pod.timer.cancel()
            pod.timer = loop.call_at(due, self._signal_all, pod, signal.SIGKILL)
        self._check_gone(pod)

    def _terminate(self, running: _Running) -> None:
        """Send SIGTERM, after the preStop hook if there is one; the pod's deadline includes the hook."""
        hook = (running.container.get("lifecycle") or {}).get("preStop") or {}

        def send(_: Ended | None = None) -> None:
            self.connection.signal(running.id, signal.SIGTERM)

        if hook.get("exec"):
            what = {**running.what, "argv": hook["exec"].get("command") or ["true"], "log": None}
            self.connection.run(f"{running.id}/preStop", send, **what)
        elif hook.get("sleep"):
            asyncio.get_running_loop().call_later(hook["sleep"].get("seconds") or 0, send)
        else:
            send()

    def kill(self, uid: str) -> None:
        """Kill a pod's processes at once, without results."""
        pod = self._pods.pop(uid, None)
        if pod is None:
            return
        self.refresh.remove(uid)
        if pod.timer is not None:
            pod.timer.cancel()
        pod.gone = [lambda _: None]
        self._signal_all(pod, signal.SIGKILL)
        self.addresses.release(uid, pod.namespace, pod.subdomain, pod.address)

    def forget(self, namespace: str, name: str, uid: str) -> None:
        """Remove the processes and the folder of a deleted pod."""
        self.kill(uid)
        folder = self.folder(namespace, name, uid)
        asyncio.get_running_loop().run_in_executor(None, volumes.remove, folder)

    def _signal_all(self, pod: _Pod, number: int) -> None:
        for running in pod.running.values():
            self.connection.signal(running.id, number)
            if number == signal.SIGKILL:
                self.connection.signal(f"{running.id}/preStop", number)

    @staticmethod
    def _check_gone(pod: _Pod) -> None:
        if pod.running:
            return
        if pod.timer is not None:
            pod.timer.cancel()
            pod.timer = None
        callbacks, pod.gone = pod.gone, []
        for gone in callbacks:
            gone(pod.ended)

    # --- content of pods ---------------------------------------------------------------------------------------------

    def _folder_of(self, pod: Object) -> Path:
        meta = pod["metadata"]
        return self.folder(meta["namespace"], meta["name"], meta["uid"])

    def _allocatable(self, pod: Object) -> Object:
        node = self.lookup("nodes", "", pod["spec"].get("nodeName") or "")
        found: Object = ((node or {}).get("status") or {}).get("allocatable") or {}
        return found

    def _hosts(self, pod: Object) -> Rewrite:
        """Replace the names of pods with the same subdomain by their addresses."""
        namespace, subdomain = pod["metadata"]["namespace"], pod["spec"].get("subdomain") or ""
        if not subdomain:
            return lambda text: text
        sibling = is_sibling(pod, self.lookup)

        def address(host: str) -> str | None:
            known = self.addresses.has(namespace, subdomain, host) or sibling(host)
            return self.addresses.reserve(namespace, subdomain, host) if known else None

        return host_names(namespace, subdomain, address)
