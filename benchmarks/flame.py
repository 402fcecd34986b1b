"""Flame graphs of a benchmark's process, drawn by py-spy, which samples it from outside."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import click

SAMPLES_PER_SECOND = 250


def sampled(command: list[str], data: bytes, drawing: Path) -> None:
    """Run a command with `data` as its standard input, and write the flame graph of its process to `drawing`.

    The process stops for each sample, because samples of a running one miss most of the time in numpy; it is slower by
    a tenth. Raises click.ClickException without py-spy, or when py-spy may not read the process.
    """
    program = shutil.which("py-spy", path=str(Path(sys.executable).parent)) or shutil.which("py-spy")
    if program is None:
        raise click.ClickException("py-spy is not installed; pip install 'volcano-py[profile]'")
    options = ["--function", "--rate", str(SAMPLES_PER_SECOND), "--output", str(drawing)]
    done = subprocess.run(
        [program, "record", *options, "--", *command], input=data, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    if done.returncode or not drawing.exists():
        raise click.ClickException(f"py-spy wrote no {drawing}: {done.stdout.decode(errors='replace').strip()}")
