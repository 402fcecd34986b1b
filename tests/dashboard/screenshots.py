"""`make screenshots`: the images of the README and of docs/dashboard.md, in headless Chromium.

`python -m tests.dashboard.screenshots FOLDER --all` takes every page, light and dark, wide and narrow, to look at.
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import tempfile
from pathlib import Path

from tests.dashboard.browser import CHROMIUM, DRIVER, Browser, browser
from tests.dashboard.reserved import reserved
from tests.dashboard.serving import Served
from tests.dashboard.story import story

ROOT = Path(__file__).parents[2]
PAGES = {
    "queues": ("", "deserved by weight"),
    "jobs": ("/jobs", "segment"),
    "job": ("/jobs/default/segment", "Why it waits"),
    "running": ("/jobs/default/train-resnet", "train-resnet-worker-7"),
    "nodes": ("/nodes?resource=nvidia.com/gpu", "rack-2"),
    "node": ("/nodes/node-00", "Pods"),
    "evictions": ("/evictions", "No pod"),
    "cycles": ("/cycles", "allocate"),
    "reservations": ("/reservations", "pretrain-large"),
}
"""By the name of the image: the page, and words that it shows when it is complete."""
Shot = tuple[str, str, int, int, str]
"""The page, the file, width, height, and light or dark."""


def _look(chromium: Browser, served: Served, name: str, file: Path, width: int, height: int, scheme: str) -> None:
    chromium.prefer(scheme)
    chromium.size(width, height)
    path, words = PAGES[name]
    chromium.open(served.at(path or "/"))
    chromium.shows(words, "live")
    if name == "job":
        chromium.click("What would unblock it?")
        chromium.shows("would let it start")
    # the image ends where the page does
    content = "return Math.ceil(document.querySelector('.content').getBoundingClientRect().bottom)"
    chromium.size(width, min(height, int(chromium.run(content))))
    if file.suffix == ".png":
        chromium.driver.save_screenshot(str(file))
        return
    taken = chromium.driver.execute_cdp_cmd("Page.captureScreenshot", {"format": "webp", "quality": 80})
    file.write_bytes(base64.b64decode(taken["data"]))


async def take(folder: Path, everything: bool) -> None:
    """Write the images into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    wanted = [(name, f"dashboard-{name}.webp", 1160, 900, "light") for name in ("queues", "job")]
    wanted.append(("nodes", "dashboard-nodes.webp", 1160, 900, "dark"))
    future = [("reservations", "dashboard-reservations.webp", 1160, 900, "light")]
    if everything:
        sizes = ((1280, 1000), (390, 1600))
        every = [(name, f"{name}-{w}-{s}.png", w, h, s) for name in PAGES for w, h in sizes for s in ("light", "dark")]
        future = [shot for shot in every if shot[0] == "reservations"]
        wanted = [shot for shot in every if shot[0] != "reservations"]
    with tempfile.TemporaryDirectory() as of_story, tempfile.TemporaryDirectory() as of_future, browser() as chromium:
        async with story(Path(of_story)) as (_, _, served):
            await _shoot(chromium, served, folder, wanted)
        async with reserved(Path(of_future)) as served:
            await _shoot(chromium, served, folder, future)


async def _shoot(chromium: Browser, served: Served, folder: Path, shots: list[Shot]) -> None:
    for name, file, width, height, scheme in shots:
        await asyncio.to_thread(_look, chromium, served, name, folder / file, width, height, scheme)
        print(folder / file)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", nargs="?", type=Path, default=ROOT / "docs" / "images")
    parser.add_argument("--all", action="store_true")
    options = parser.parse_args()
    if not (CHROMIUM and DRIVER):
        parser.exit(2, "make screenshots needs chromium and chromedriver on PATH\n")
    asyncio.run(take(options.folder, options.all))


if __name__ == "__main__":
    main()
