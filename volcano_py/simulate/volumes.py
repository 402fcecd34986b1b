"""Completes described volumes with the defaults of the API server and of the PersistentVolume controller."""

from __future__ import annotations

from volcano_py.api import storage
from volcano_py.simulate.manifests import Manifest


def complete_volume(manifest: Manifest) -> None:
    """Set the defaults of a StorageClass, a volume or a claim. Other kinds are not changed."""
    spec = manifest.get("spec") or {}
    match manifest["kind"]:
        case "StorageClass":
            manifest.setdefault("volumeBindingMode", "Immediate")
        case "PersistentVolume":
            spec.setdefault("volumeMode", "Filesystem")
            phase = "Bound" if (spec.get("claimRef") or {}).get("uid") else "Available"
            manifest.setdefault("status", {}).setdefault("phase", phase)
        case "PersistentVolumeClaim":
            spec.setdefault("volumeMode", "Filesystem")
            if spec.get("volumeName"):
                annotations = manifest["metadata"].setdefault("annotations", {})
                annotations.setdefault(storage.BIND_COMPLETED, "yes")
            manifest.setdefault("status", {}).setdefault("phase", "Bound" if spec.get("volumeName") else "Pending")
