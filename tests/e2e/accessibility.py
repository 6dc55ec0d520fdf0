"""What axe says about a page: all its rules, and those of colours once for each look.

The rules of colours ask for every text what lies behind it, which takes longer than all others.
"""

from __future__ import annotations

from typing import Any, Final

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page

__all__ = ["all_violations", "bring_axe", "off_colours", "violations"]

_AXE: Final = Axe()
_OF_COLOURS: Final = ("color-contrast", "link-in-text-block")
# One element of each look: what has text, with its own style and the styles of all around it.
_LOOKS: Final = """() => {
  const found = new Map();
  for (const each of document.body.querySelectorAll("*")) {
    if (![...each.childNodes].some(one => one.nodeType == 3 && one.data.trim())) continue;
    if (!each.checkVisibility({visibilityProperty: true})) continue;
    const own = getComputedStyle(each);
    const look = [each.localName, own.fontSize, own.fontWeight, own.textDecorationLine,
      own.color, getComputedStyle(each.parentElement).color, each.getAttribute("aria-disabled")];
    for (let one = each; one; one = one.parentElement) {
      const {backgroundColor, backgroundImage, opacity} = getComputedStyle(one);
      const behind = [backgroundColor, backgroundImage, opacity].join();
      if (behind !== "rgba(0, 0, 0, 0),none,1") look.push(behind);
    }
    const key = look.join();
    found.has(key) || found.set(key, each);
  }
  return [...found.values()];
}"""


def bring_axe(page: Page) -> None:
    """Let every address that *page* goes to have axe: half a megabyte is sent once, not for each.

    For a window of one test alone.
    """
    page.add_init_script(_AXE.axe_script)


def violations(page: Page) -> list[str]:
    """The rules that the page breaks, without those of colours, with the first places where."""
    return _broken(page, {"rules": {rule: {"enabled": False} for rule in _OF_COLOURS}})


def off_colours(page: Page) -> list[str]:
    """The rules of colours that a look of the page breaks."""
    return _broken(page, {"runOnly": {"type": "rule", "values": _OF_COLOURS}}, where=_LOOKS)


def all_violations(page: Page) -> list[str]:
    """Every rule that anything of the page breaks."""
    return _broken(page, {})


def _broken(page: Page, rules: dict[str, Any], where: str = "() => document") -> list[str]:
    options = {"resultTypes": ["violations"], **rules}
    if not page.evaluate("'axe' in window"):  # half a megabyte, once for a page
        page.evaluate(_AXE.axe_script)
    found = page.evaluate(f"rules => axe.run(({where})(), rules)", options)["violations"]
    return [
        f"{rule['id']}: {rule['help']}: {[str(node['target']) for node in rule['nodes'][:3]]}"
        for rule in found
    ]
