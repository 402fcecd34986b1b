"""The plugin of kubectl for krew: `python -m charts.krew OUTPUT` writes its archive and its manifest.

The archive has a script that runs `vcctl`, which has no programs of its own to build for each platform.
"""

from __future__ import annotations

import hashlib
import io
import sys
import tarfile
from pathlib import Path

import yaml

from volcano_py import __version__

ROOT = Path(__file__).parents[1]
SCRIPT = ROOT / "packaging" / "krew" / "kubectl-volcano"
HOME = "https://github.com/volcano-py/volcano-py"


def archive(version: str) -> bytes:
    """The archive: the same bytes for the same version."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:") as tar:
        for name, text, mode in (
            ("kubectl-volcano", SCRIPT.read_text().replace("@VERSION@", version), 0o755),
            ("LICENSE", (ROOT / "LICENSE").read_text(), 0o644),
        ):
            data = text.encode()
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode = len(data), mode
            tar.addfile(entry, io.BytesIO(data))
    return buffer.getvalue()


def manifest(version: str, content: bytes, home: str = HOME) -> dict[str, object]:
    """The manifest that krew-index accepts."""
    platform = {
        "selector": {"matchExpressions": [{"key": "os", "operator": "In", "values": ["linux", "darwin"]}]},
        "uri": f"{home}/releases/download/v{version}/kubectl-volcano.tar",
        "sha256": hashlib.sha256(content).hexdigest(),
        "bin": "kubectl-volcano",
        "files": [{"from": "kubectl-volcano", "to": "."}, {"from": "LICENSE", "to": "."}],
    }
    return {
        "apiVersion": "krew.googlecontainertools.github.com/v1alpha2",
        "kind": "Plugin",
        "metadata": {"name": "volcano"},
        "spec": {
            "version": f"v{version}",
            "homepage": home,
            "shortDescription": "Explain and manage batch jobs of Volcano",
            "description": "Runs vcctl of volcano-py: kubectl volcano explain job NAME shows why a job waits and what\n"
            "would help; kubectl volcano top, job, queue and podgroup manage Volcano's objects.\n",
            "caveats": "Requires Python 3.11 with volcano-py, or uv, which fetches it: https://docs.astral.sh/uv\n",
            "platforms": [platform],
        },
    }


def main(output: Path) -> None:
    """Write both files."""
    output.mkdir(parents=True, exist_ok=True)
    content = archive(__version__)
    (output / "kubectl-volcano.tar").write_bytes(content)
    (output / "volcano.yaml").write_text(yaml.safe_dump(manifest(__version__, content), sort_keys=False))


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "dist"))
