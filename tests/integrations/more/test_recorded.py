"""The table of the documentation is what was recorded."""

from __future__ import annotations

import json

from tests.integrations.more.scenes import MODES, SCENARIOS
from tests.integrations.more.table import COLUMNS, PAGE, RECORDED, written

STORED = json.loads(RECORDED.read_text(encoding="utf-8"))


def test_the_page_says_what_was_recorded() -> None:
    """The table of docs/frameworks.md is the one that the stored results make."""
    page = PAGE.read_text(encoding="utf-8")

    assert STORED.keys() == COLUMNS.keys()
    assert page == written(page, STORED)


def test_no_row_is_left_out_in_silence() -> None:
    """Every scenario is played in every mode, or the reason is given why it is not."""
    for driver, of in STORED.items():
        assert {*of["modes"], *(of["lacks"].keys() & set(MODES))} == set(MODES), driver
        for name in SCENARIOS.keys() - of["lacks"].keys():
            missing = {mode for mode in of["modes"] if f"{name}, {mode}" in of["lacks"]}
            assert of["rows"][name].keys() | missing == set(of["modes"]), (driver, name)
