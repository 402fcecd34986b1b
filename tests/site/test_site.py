"""The documentation site: it is built without a warning, links lead somewhere, and no page is wider than a phone."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
import yaml

from tests.dashboard.browser import CHROMIUM, DRIVER, Browser, browser

ROOT = Path(__file__).parents[2]
PROGRAM = Path(sys.executable).with_name("zensical")
BUILDS = pytest.mark.skipif(not PROGRAM.exists(), reason="NOT RUN: pip install -e '.[docs]' installs the generator")
SHOWS = pytest.mark.skipif(not (CHROMIUM and DRIVER), reason="NOT RUN: the site is not looked at without Chromium")
PHONE, DESK = (360, 740), (1280, 900)
WIDER = """
const wide = [];
const edge = document.documentElement.clientWidth;
for (const one of document.querySelectorAll('.md-content table, .md-content pre, .md-content img, .md-content h1')) {
  let box = one, hidden = false;
  while (box && box !== document.body) {
    if (['auto', 'scroll'].includes(getComputedStyle(box).overflowX)) { hidden = true; break; }
    box = box.parentElement;
  }
  if (!hidden && one.getBoundingClientRect().right > edge + 1) wide.push(one.outerHTML.slice(0, 80));
}
return [document.documentElement.scrollWidth - edge, wide];
"""


class Loader(yaml.SafeLoader):
    """Reads mkdocs.yml, whose tags name Python objects."""


Loader.add_multi_constructor("tag:yaml.org,2002:python/", lambda loader, suffix, node: suffix)


def navigation() -> set[str]:
    """The pages that the navigation contains."""

    def pages(entry: object) -> Iterator[str]:
        if isinstance(entry, str):
            yield entry
        elif isinstance(entry, dict):
            for inner in entry.values():
                yield from pages(inner)
        elif isinstance(entry, list):
            for inner in entry:
                yield from pages(inner)

    return set(pages(yaml.load((ROOT / "mkdocs.yml").read_text(), Loader)["nav"]))


def test_every_page_is_in_the_navigation() -> None:
    pages = {str(path.relative_to(ROOT / "docs")) for path in (ROOT / "docs").rglob("*.md")}
    assert navigation() == pages


def test_twenty_questions_lead_to_an_answer() -> None:
    rows = re.findall(r"^\| ([^|]+\?[^|]*) \|([^|]+)\|([^|]+)\|$", (ROOT / "docs/faq.md").read_text(), re.MULTILINE)
    assert len(rows) == 20 and all("](" in page for _, _, page in rows)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    for name in ("docs", "mkdocs.yml"):
        path = ROOT / name
        (shutil.copytree if path.is_dir() else shutil.copy)(path, folder / name)
    env = {**os.environ, "NO_COLOR": "1"}
    done = subprocess.run(
        [PROGRAM, "build", "--strict", "--clean"], cwd=folder, env=env, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return folder / "site"


class Page(HTMLParser):
    """The links and anchors of a page."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.links: list[str] = []
        self.anchors: set[str] = set()
        self.feed(path.read_text())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        if found.get("id"):
            self.anchors.add(str(found["id"]))
        for key in ("href", "src"):
            if found.get(key):
                self.links.append(str(found[key]))


@pytest.mark.slow
@BUILDS
def test_links_and_anchors_of_the_site(site: Path) -> None:
    pages = {path: Page(path) for path in site.rglob("*.html") if path.name != "404.html"}
    assert len(pages) == len(navigation())
    broken = []
    for path, page in pages.items():
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or link.startswith("//"):
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            target = target / "index.html" if target.is_dir() else target
            known = target.exists() and (
                not parts.fragment or target not in pages or unquote(parts.fragment) in pages[target].anchors
            )
            if not known and not parts.fragment.startswith("__"):
                broken.append(f"{path.relative_to(site)}: {link}")
    assert broken == []


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    with browser() as one:
        yield one


@pytest.mark.slow
@BUILDS
@SHOWS
def test_no_page_is_wider_than_the_window(site: Path, chromium: Browser) -> None:
    wide = []
    for width, height in (PHONE, DESK):
        chromium.size(width, height)
        for path in sorted(site.rglob("*.html")):
            chromium.open(path.as_uri())
            beyond, elements = chromium.run(WIDER)
            if beyond > 1 or elements:
                wide.append(f"{path.relative_to(site)} at {width}: {beyond} px, {elements[:2]}")
    assert wide == []


@pytest.mark.slow
@BUILDS
@SHOWS
def test_light_and_dark_and_search_work_from_a_file(site: Path, chromium: Browser) -> None:
    colors = {}
    for scheme in ("light", "dark"):
        chromium.prefer(scheme)
        chromium.open((site / "index.html").as_uri())
        assert (
            chromium.run("return document.body.dataset.mdColorScheme") == {"light": "default", "dark": "slate"}[scheme]
        )
        colors[scheme] = chromium.run("return getComputedStyle(document.body).backgroundColor")
    assert colors["light"] != colors["dark"]
    assert chromium.run("return [...document.images].every(image => image.naturalWidth > 0)"), "the diagram, offline"
    assert chromium.run("return typeof __search_index !== 'undefined' || typeof __index !== 'undefined'"), (
        "from file://"
    )


@pytest.mark.slow
@SHOWS
def test_the_check_finds_what_is_cut(tmp_path: Path, chromium: Browser) -> None:
    chromium.size(*PHONE)
    for style, found in (("", 1), ("overflow-x: auto; display: block", 0)):
        box = f"<div class='md-content' style='overflow: hidden'><div style='{style}'>"
        text = f"<body style='margin: 0'>{box}<table style='width: 900px'><tr><td>wide</td></tr></table></div></div>"
        (tmp_path / "page.html").write_text(text)
        chromium.open((tmp_path / "page.html").as_uri())
        assert len(chromium.run(WIDER)[1]) == found
