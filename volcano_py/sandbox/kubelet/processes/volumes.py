"""A pod's volumes as folders, and its containers' mounts as links to them. Kubernetes: the kubelet's volume plugins.

    <pod>/volumes/<volume>       emptyDir, ConfigMap, Secret, projected, downwardAPI
    <pod>/containers/<name>      a container's root and working directory, with its mounts
    <claims>/<namespace>_<…>     a PersistentVolumeClaim; it outlives its pods

hostPath is the real path. Types of volumes that a single machine does not have are rejected.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from volcano_py.sandbox.kubelet.processes import references
from volcano_py.sandbox.kubelet.processes.problem import NotReady, failed_mount
from volcano_py.sandbox.kubelet.processes.references import Lookup
from volcano_py.sandbox.kubelet.processes.rewriting import Rewrite, inside

Object = dict[str, Any]
Files = dict[str, tuple[bytes, int]]  # relative path to content and mode

_KINDS = {"configMap": ("configmaps", "configmap"), "secret": ("secrets", "secret")}


class Volumes:
    """Creates the folders of one pod."""

    def __init__(self, folder: Path, claims: Path, pod: Object, lookup: Lookup, allocatable: Object) -> None:
        self.folder = folder
        self.claims = claims
        self.pod = pod
        self.lookup = lookup
        self.allocatable = allocatable
        self.namespace: str = pod["metadata"]["namespace"]

    def set_up(self, rewrite: Rewrite) -> None:
        """Create all volumes, then all mounts; NotReady when something is missing. `rewrite` is for lists of hosts."""
        spec = self.pod["spec"]
        roots: dict[str, Path] = {}
        for volume in spec.get("volumes") or []:
            try:
                roots[volume["name"]] = self._volume(volume, rewrite)
            except OSError as error:
                raise failed_mount(volume["name"], f"{error.filename}: {error.strerror}") from None
        for container in (*(spec.get("initContainers") or []), *spec["containers"]):
            root = self.folder / "containers" / container["name"]
            root.mkdir(parents=True, exist_ok=True)
            # outer mounts first: an inner one is in the folder of the outer
            for mount in sorted(container.get("volumeMounts") or [], key=lambda row: len(row["mountPath"])):
                try:
                    self._mount(root, mount, roots)
                except OSError as error:
                    raise failed_mount(mount["name"], f"{error.filename}: {error.strerror}") from None

    def _mount(self, root: Path, mount: Object, roots: dict[str, Path]) -> None:
        source = roots.get(mount["name"])
        target = inside(root, mount["mountPath"])
        if source is None or target == root:
            raise failed_mount(mount["name"], f"nothing can be mounted at {mount['mountPath']} of a local process")
        part = mount.get("subPath") or mount.get("subPathExpr")
        if part:
            source = inside(source, part)
            if not source.exists():
                source.mkdir(parents=True)
        target.parent.mkdir(parents=True, exist_ok=True)
        if target.is_symlink():
            return
        if target.is_dir() and not any(target.iterdir()):
            target.rmdir()
        target.symlink_to(source)

    def _volume(self, volume: Object, rewrite: Rewrite) -> Path:
        folder = self.folder / "volumes" / str(volume["name"])
        if "hostPath" in volume:
            path = Path(volume["hostPath"]["path"])
            if volume["hostPath"].get("type") == "DirectoryOrCreate":
                path.mkdir(parents=True, exist_ok=True)
            if not path.exists():
                raise failed_mount(volume["name"], f"hostPath {path} does not exist on this machine")
            return path
        if "persistentVolumeClaim" in volume:
            return self._claim(volume)
        folder.mkdir(parents=True, exist_ok=True)
        if "emptyDir" in volume:
            return folder
        source = volume.get("projected")
        if source is not None:
            mode = source.get("defaultMode") or 0o644
            parts = [self._files(volume, part, mode) for part in source.get("sources") or []]
        else:
            parts = [self._files(volume, volume, 0)]
        for files in parts:
            _write(folder, files, rewrite)
        return folder

    def _claim(self, volume: Object) -> Path:
        name = volume["persistentVolumeClaim"]["claimName"]
        claim = self.lookup("persistentvolumeclaims", self.namespace, name)
        if claim is None:
            raise failed_mount(volume["name"], f'persistentvolumeclaim "{name}" not found')
        found = self.lookup("persistentvolumes", "", claim["spec"].get("volumeName") or "")
        local = ((found or {}).get("spec") or {}).get("local") or ((found or {}).get("spec") or {}).get("hostPath")
        path = Path(local["path"]) if local else self.claims / f"{self.namespace}_{name}_{claim['metadata']['uid']}"
        path.mkdir(parents=True, exist_ok=True)
        return path

    def _files(self, volume: Object, source: Object, mode: int) -> Files:
        for what, (collection, shown) in _KINDS.items():
            given = source.get(what)
            if given is not None:
                name = given.get("name") or given.get("secretName") or ""
                found = self.lookup(collection, self.namespace, name)
                if found is None:
                    if given.get("optional"):
                        return {}
                    raise failed_mount(volume["name"], f'{shown} "{name}" not found')
                chosen = _chosen(references.data(collection, found), given, mode or given.get("defaultMode") or 0o644)
                missing = [key for key, row in chosen.items() if row is None]
                if missing and not given.get("optional"):
                    raise failed_mount(volume["name"], f"references non-existent config key: {missing[0]}")
                return {path: row for path, row in chosen.items() if row is not None}
        given = source.get("downwardAPI")
        if given is not None:
            return dict(self._downward(given, mode or given.get("defaultMode") or 0o644))
        if "serviceAccountToken" in source or "clusterTrustBundle" in source:
            return {}
        kind = next((key for key in volume if key != "name"), "unknown")
        raise failed_mount(volume["name"], f"volumes of type {kind} are not available to local processes")

    def _downward(self, given: Object, mode: int) -> Iterator[tuple[str, tuple[bytes, int]]]:
        for item in given.get("items") or []:
            if item.get("fieldRef"):
                value = references.field(self.pod, item["fieldRef"]["fieldPath"])
            else:
                value = references.resource(self.pod, {}, item["resourceFieldRef"], self.allocatable)
            yield item["path"], (value.encode(), item.get("mode") or mode)


def _chosen(rows: dict[str, bytes], given: Object, mode: int) -> dict[str, tuple[bytes, int] | None]:
    items = given.get("items")
    if not items:
        return {key: (value, mode) for key, value in rows.items()}
    return {
        item["path"]: (rows[item["key"]], item.get("mode") or mode) if item["key"] in rows else None for item in items
    }


def _write(folder: Path, files: Files, rewrite: Rewrite) -> None:
    """Write files atomically, so that no reader reads half of the new content."""
    for name, (content, mode) in files.items():
        path = inside(folder, name)
        path.parent.mkdir(parents=True, exist_ok=True)
        shown = rewrite(content.decode()).encode() if name.endswith((".host", "_HOSTS")) else content
        if path.is_file() and path.read_bytes() == shown:
            continue
        part = path.with_name(f".{path.name}.new")
        part.write_bytes(shown)
        part.chmod(mode | 0o600)
        os.replace(part, path)


def remove(folder: Path) -> None:
    """Remove a pod's folder; links are removed, not followed."""
    shutil.rmtree(folder, ignore_errors=True)


__all__ = ["NotReady", "Volumes", "remove"]
