"""Cases A16 and A17: the shared validators inside a tool."""

from __future__ import annotations

import pytest
from tests.sdk.acceptance.expecting import Expect

from toolfault import ToolError, tool
from toolfault.validators import validate_context_limit, validate_unified_diff


def test_a_token_limit(expect: Expect) -> None:
    """[A16][P-13][P-14] A value above the limit; the number is shown although it says token."""

    @tool
    def ask_model(max_tokens: int) -> int:
        validate_context_limit(tool="ask_model", field="max_tokens", value=max_tokens, max=4096)
        return max_tokens

    expect("A16", ask_model.call(max_tokens=9000))
    assert ask_model.call(max_tokens=4096).value == 4096


def test_a_unified_diff(expect: Expect) -> None:
    """[A17][P-15][C27] The tool adds a hint and its context to what the validator raises."""

    @tool
    def apply_patch(diff: str) -> str:
        try:
            return validate_unified_diff(tool="apply_patch", field="diff", diff=diff)
        except ToolError as error:
            raise error.with_(
                retry_hint="Provide a unified diff with ---/+++ headers and @@ hunks.",
                retry_context={"patch_index": 0, "field": "diff"},
            ) from None

    expect("A17", apply_patch.call(diff="not a diff"))


def test_a_long_diff_is_shown_by_both_ends() -> None:
    """[A17][T10] A snippet is at most 520 characters, counted in characters and never torn."""
    for size, kept in ((1000, 520), (513, 520), (512, 512)):
        diff = ("äöü€" * 250)[:size]

        with pytest.raises(ToolError) as caught:
            validate_unified_diff(tool="apply_patch", field="diff", diff=diff)

        snippet = caught.value.to_llm_payload()["snippet"]
        assert isinstance(snippet, str)
        assert len(snippet) == kept
        assert snippet == (diff if size <= 512 else f"{diff[:312]}…<snip>…{diff[-200:]}")
