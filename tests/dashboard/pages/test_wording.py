"""One text against another: the parts make up both, and what is alike is told apart."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from toolfault_dashboard.pages._wording import MOST_WORDS, word_changes


@given(
    st.lists(st.sampled_from(["port", "must", "be", "an", "integer", "\n", "'80'"]), max_size=20),
    st.lists(st.sampled_from(["port", "must", "be", "a", "boolean", "\n", "'yes'"]), max_size=20),
)
def test_the_parts_make_up_both_texts(old: list[str], new: list[str]):
    """Leaving out what is new gives the old text and the other way round; something is shared."""
    before, after = " ".join(old), " ".join(new)
    found = word_changes(before, after)
    if found:
        assert "".join(text for mark, text in found if mark != "+") == before
        assert "".join(text for mark, text in found if mark != "-") == after
        assert any(mark == "=" for mark, _ in found)


def test_a_changed_value_is_all_that_is_marked():
    """Two messages that differ in one value differ in that value alone."""
    assert word_changes("port must be at most 10, got 80", "port must be at most 10, got 90") == (
        ("=", "port must be at most 10, got "),
        ("-", "80"),
        ("+", "90"),
    )


def test_texts_too_long_or_too_different_are_not_compared():
    """A comparison that would cost too much, or say nothing, is left out."""
    assert word_changes("a " * MOST_WORDS, "a b") == ()
    assert word_changes("one", "two") == ()
