"""Pictures of every page, to be looked at one by one, and what a program can see of their faults.

    python benchmarks/pages/screenshots.py FOLDER                      the demo, 300 tools, nothing
    python benchmarks/pages/screenshots.py FOLDER --transcripts DIR    and each folder in DIR
    python benchmarks/pages/screenshots.py FOLDER --database-url sqlite:///FILE --projects NAME ...

Each page of each project is opened at 1280 and 390 pixels, light and dark. FOLDER gets one picture
of each, in pieces of 1,600 pixels, as PROJECT.PAGE.WIDTH.THEME.N.png. Printed is what is wrong: a
page wider than its window, a text that its box cuts, a complaint of the browser; and what the first
load of each page weighs (all files, compressed, with an empty cache).
"""

from __future__ import annotations

import argparse
import re
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

import httpx2
from pages import opened, said, serving
from playwright.sync_api import Browser, BrowserContext, Page, sync_playwright
from tests.dashboard.addresses import LISTS
from tests.e2e.browsing import chromium_path, launched, lived_through, send, signed_in
from tests.factories import failure, success

WIDTHS: Final = (1280, 390)
THEMES: Final = ("light", "dark")
PIECE: Final = 1600  # pixels of height
MORE: Final = (
    "/failures?group=kind",
    "/failures?group=kind&state=all",
    "/breakdown?by=model&by=tool",
    "/compare?before=since:14d+until:7d&after=since:7d",
    "/failures?q=code:",
    "/docs/api",
    "/no-such-page",
)
"""Pages that the table of who may see what does not name."""

DETAILS: Final = {
    "failure": r"/failures/[0-9a-f-]{36}[^\"#]*",
    "chain": r"/chains/[0-9a-f-]{36}[^\"#]*",
    "tool": r"/tool\?[^\"#]*",
    "conversation": r"/conversation\?[^\"#]*",
    "change": r"/changes/[0-9a-f-]{36}[^\"#]*",
    "experiment": r"/experiment\?[^\"#]*",
    "alert": r"/alert\?[^\"#]*",
}
"""Pages of one thing: the first link to one that any other page has."""

CUT: Final = """() => {
  const found = [];
  for (const each of document.querySelectorAll("main *, header *, nav *")) {
    if (!each.checkVisibility() || each.closest("svg, .visually-hidden, .sr-only")) continue;
    const style = getComputedStyle(each);
    const clips = style.overflowX === "hidden" || style.overflowX === "clip";
    const over = each.scrollWidth - each.clientWidth;
    if (each.clientWidth > 1 && over > 1 && clips)
      found.push(`cut by ${over} px: ${each.tagName}.${each.className} ${each.innerText}`);
    if (each.tagName === "PRE" && over > 1)
      found.push(`code scrolls by ${over} px: ${each.innerText}`);
    if (each.tagName === "SELECT" && each.selectedOptions.length) {
      const pen = document.createElement("canvas").getContext("2d");
      pen.font = style.font;
      const wide = pen.measureText(each.selectedOptions[0].text).width;
      const padding = parseFloat(style.paddingLeft) + parseFloat(style.paddingRight);
      const room = each.clientWidth - padding;
      if (wide > room + 1 && style.appearance !== "auto")
        found.push(`choice cut by ${Math.round(wide - room)} px: ${each.selectedOptions[0].text}`);
    }
  }
  const page = document.documentElement;
  if (page.scrollWidth > page.clientWidth)
    found.push(`page too wide by ${page.scrollWidth - page.clientWidth} px`);
  return found.map(each => each.replace(/\\s+/g, " ").slice(0, 160));
}"""


def wide_project(dsn: str) -> None:
    """Send failures of 300 tools of 20 servers, with names as MCP clients write them."""
    events = []
    for tool in range(300):
        name = f"mcp__server_{tool % 20}__tool_number_{tool}_with_a_name_that_is_rather_long"
        for call in range(2 + tool % 7):
            make = failure if call % 3 == 0 else success
            events.append(make(tool=name, session_id=f"c{tool % 40}", model=f"model-{tool % 5}"))
    for start in range(0, len(events), 500):
        send(dsn, *events[start : start + 500])


def addresses(address: str, project: str, cookies: Mapping[str, str]) -> dict[str, str]:
    """Return the address of every page of *project*, by a short name."""
    own = f"project={quote(project)}&window=all"
    found = {}
    for path in (*LISTS, *MORE):
        joint = "&" if "?" in path else "?"
        found[re.sub(r"\W+", "-", path).strip("-") or "overview"] = f"{path}{joint}{own}"
    with httpx2.Client(
        base_url=address, cookies=dict(cookies), trust_env=False, timeout=120
    ) as web:
        paths = list(found.values())
        for path in paths:  # which grows: only the page of a failure leads to its conversation
            text = web.get(path).text.replace("&amp;", "&")
            for name, pattern in DETAILS.items():
                link = re.search(rf'href="({pattern})["#]', text)
                if link and name not in found:
                    found[name] = link[1]
                    paths.append(link[1])
    return found


def pictured(page: Page, path: Path) -> None:
    """Save *page* in pieces that can be looked at."""
    width, height = page.evaluate("[innerWidth, document.documentElement.scrollHeight]")
    for number, top in enumerate(range(0, height, PIECE)):
        piece: Any = {"x": 0, "y": top, "width": width, "height": min(PIECE, height - top)}
        name = f"{path}.{number}.png"
        page.screenshot(path=name, full_page=True, clip=piece, animations="disabled")


def looked_at(
    browser: Browser, address: str, link: str, project: str, folder: Path, only: str
) -> Iterator[str]:
    """Save every page of *project*; yield what is wrong, one fault a line."""
    cookies = signed_in(browser, link)
    paths = addresses(address, project, {each["name"]: each["value"] for each in cookies})
    paths = {name: path for name, path in paths.items() if re.search(only, name)}
    for width in WIDTHS:
        for theme in THEMES:
            size = {"width": width, "height": 900 if width > 600 else 844}
            context = browser.new_context(viewport=size, color_scheme=theme, timezone_id="UTC")
            context.add_cookies(cookies)
            for name, path in paths.items():
                for fault in _of_one(
                    context, address + path, folder / f"{project}.{name}.{width}.{theme}"
                ):
                    if theme == "light" or not fault.startswith(("cut", "code", "choice")):
                        yield f"{project}.{name}.{width}.{theme}: {fault}"
            context.close()
    for name, path in paths.items():
        fresh = browser.new_context()
        fresh.add_cookies(cookies)
        yield f"{project}.{name}: first load {opened(fresh, address + path)[0] / 1000:.1f} KB"
        fresh.close()


def _of_one(context: BrowserContext, url: str, path: Path) -> Iterator[str]:
    page = context.new_page()
    complaints: list[str] = []
    page.on("console", lambda each: complaints.append(f"console: {each.text}"))
    page.on("pageerror", lambda error: complaints.append(f"error: {error}"))
    page.goto(url, wait_until="load")
    page.wait_for_timeout(150)
    yield from page.evaluate(CUT)
    pictured(page, path)
    page.close()
    yield from complaints


def main() -> None:
    """Fill a server, or take a filled one; look at it."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("folder", type=Path, help="where the pictures go")
    parser.add_argument("--transcripts", type=Path, help="a folder of folders to import")
    parser.add_argument("--database-url", default="", help="an existing database")
    parser.add_argument("--projects", nargs="*", default=["demo", "wide", "empty"])
    parser.add_argument("--only", default="", help="pages whose name matches this expression")
    given = parser.parse_args()
    chromium = chromium_path()
    if chromium is None:
        raise SystemExit("No Chromium found; set TOOLFAULT_CHROMIUM to its path.")
    given.folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as made, sync_playwright() as playwright:
        browser = launched(playwright, chromium)
        url = given.database_url or f"sqlite:///{made}/toolfault.db"
        with serving(url, Path(made)) as address:
            if not given.database_url:
                key = {
                    name: said(url, "keys", "create", "--project", name, "--kind", "ingest")
                    for name in given.projects
                }
                dsn = {name: address.replace("http://", f"http://{key[name]}@") for name in key}
                lived_through(dsn["demo"], days=14)
                wide_project(dsn["wide"])
                for folder in sorted(given.transcripts.iterdir()) if given.transcripts else ():
                    if folder.is_dir():
                        said(url, "import", str(folder), "--project", folder.name)
                        given.projects.append(folder.name)
            link = said(url, "sign-in-link", "--url", address)
            for project in given.projects:
                for line in looked_at(browser, address, link, project, given.folder, given.only):
                    print(line, flush=True)
                link = said(url, "sign-in-link", "--url", address)
        browser.close()


if __name__ == "__main__":
    main()
