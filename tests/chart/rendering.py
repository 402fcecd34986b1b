"""The chart as helm renders it, without a cluster."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from tests import helm
from tests.chart.cluster import CHART, NAMESPACE, RELEASE
from volcano_py.api.yaml_documents import FAST_LOADER

Manifest = dict[str, Any]
VALUES = sorted((Path(__file__).parent / "values").glob("*.yaml"))


def run_helm(*arguments: str) -> subprocess.CompletedProcess[str]:
    """A helm command that needs no cluster."""
    program = helm.find()
    assert program is not None, "no helm: run python -m tests.kubectl, or put helm v4 on PATH"
    with tempfile.TemporaryDirectory() as home:
        environment = {"PATH": os.environ["PATH"], "HOME": home}
        return subprocess.run([program, *arguments], capture_output=True, text=True, env=environment)


@cache
def rendered(values: Path, *more: str, version: str = "1.36.0") -> tuple[Manifest, ...]:
    """All documents but the CRDs."""
    done = run_helm(
        "template", RELEASE, str(CHART), "-n", NAMESPACE, "-f", str(values), "--kube-version", version, *more
    )
    assert done.returncode == 0, done.stderr
    parts = done.stdout.split("\n---\n")
    kept = [part for part in parts if "kind: CustomResourceDefinition" not in part]
    return tuple(document for part in kept for document in yaml.load_all(part, Loader=FAST_LOADER) if document)


def of_kind(documents: tuple[Manifest, ...], *kinds: str) -> Iterator[Manifest]:
    return (document for document in documents if document["kind"] in kinds)


def named(documents: tuple[Manifest, ...], kind: str, name: str) -> Manifest:
    [found] = [document for document in of_kind(documents, kind) if document["metadata"]["name"] == name]
    return found
