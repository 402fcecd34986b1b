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
}
"""By the name of the image: the page, and words that it shows when it is complete."""


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
    if everything:
        sizes = ((1280, 1000), (390, 1600))
        wanted = [(name, f"{name}-{w}-{s}.png", w, h, s) for name in PAGES for w, h in sizes for s in ("light", "dark")]
    with tempfile.TemporaryDirectory() as folder_of_cluster:
        async with story(Path(folder_of_cluster)) as (_, _, served):
            with browser() as chromium:
                for name, file, width, height, scheme in wanted:
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
