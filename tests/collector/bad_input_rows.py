"""Every row of the table of bad inputs: what arrives, and the tests that say what happens to it.

The numbers are those of the project's reliability reference, section 3. `test_bad_input_rows.py`
holds this table against the tests it names, so a row cannot lose its proof unnoticed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

__all__ = ["ROWS", "Elsewhere", "Row"]

INPUT: Final = "tests/collector/test_bad_input.py"
CONNECTIONS: Final = "tests/collector/test_bad_connections.py"
HOSTILE: Final = "tests/dashboard/pages/test_hostile.py"
API: Final = "tests/dashboard/api/test_api.py"


@dataclass(frozen=True)
class Row:
    """An input the server must answer as promised, and the tests that send it."""

    what: str
    tests: tuple[str, ...]


@dataclass(frozen=True)
class Elsewhere:
    """An input that never reaches the server, and why."""

    what: str
    why: str


def _row(what: str, *tests: str) -> Row:
    return Row(what, tests)


ROWS: Final[dict[int, Row | Elsewhere]] = {
    1: _row("empty body", f"{INPUT}::test_unreadable_batch", f"{INPUT}::test_empty_batch_is_fine"),
    2: _row("a document that is no object", f"{INPUT}::test_unreadable_batch"),
    3: _row("truncated JSON", f"{INPUT}::test_unreadable_batch"),
    4: _row("two documents, trailing junk", f"{INPUT}::test_unreadable_batch"),
    5: _row("invalid UTF-8", f"{INPUT}::test_unreadable_batch"),
    6: _row("UTF-16", f"{INPUT}::test_unreadable_batch"),
    7: _row("byte order mark: taken away", f"{INPUT}::test_empty_batch_is_fine"),
    8: _row("NaN", f"{INPUT}::test_bad_event_is_rejected_alone"),
    9: _row("Infinity, 1e400", f"{INPUT}::test_bad_event_is_rejected_alone"),
    10: _row("NaN where an integer is due", f"{INPUT}::test_bad_event_is_rejected_alone"),
    11: _row("lone surrogate in an id", f"{INPUT}::test_bad_event_is_rejected_alone"),
    12: _row("lone surrogate in a text", f"{INPUT}::test_repaired_event_is_flagged"),
    13: _row("U+0000 in a text", f"{INPUT}::test_repaired_event_is_flagged"),
    14: _row("100,000 nested arrays", f"{INPUT}::test_unreadable_batch"),
    15: _row("900 nested arrays", f"{INPUT}::test_bad_event_is_rejected_alone"),
    16: _row("integer of 5,000 digits", f"{INPUT}::test_unreadable_batch"),
    17: _row("integer beyond 64 bits", f"{INPUT}::test_bad_event_is_rejected_alone"),
    18: _row("-0, 1.0, text, true for an integer", f"{INPUT}::test_bad_event_is_rejected_alone"),
    19: _row("a key given twice", f"{INPUT}::test_repaired_event_is_flagged"),
    20: _row("a million keys", f"{INPUT}::test_million_keys"),
    21: _row("keys that mean something to Python", f"{INPUT}::test_unknown_members_are_kept"),
    22: _row("keys that hash alike", f"{INPUT}::test_colliding_keys"),
    23: _row("one text of 30 MiB", f"{INPUT}::test_unreadable_batch"),
    24: _row(
        "a secret in a rejected event", f"{INPUT}::test_secret_of_a_rejected_event_is_nowhere"
    ),
    25: _row("one bad event of a thousand", f"{INPUT}::test_one_bad_of_a_thousand"),
    26: _row("an event twice in a batch", f"{INPUT}::test_same_event_twice_in_a_batch"),
    27: _row("an id with another body", f"{INPUT}::test_same_id_other_body"),
    28: _row("an id in another project", f"{INPUT}::test_same_id_in_another_project"),
    29: _row(
        "an id that is a path",
        f"{INPUT}::test_bad_event_is_rejected_alone",
        f"{INPUT}::test_event_ids_may_be_ulids",
    ),
    30: _row("year 0, 9999, 1e30", f"{INPUT}::test_bad_event_is_rejected_alone"),
    31: _row(
        "a clock ten years off",
        f"{INPUT}::test_repaired_event_is_flagged",
        f"{INPUT}::test_client_clock",
    ),
    32: _row(
        "a time without zone, with +14:00, a leap second, nanoseconds",
        f"{INPUT}::test_bad_event_is_rejected_alone",
        f"{INPUT}::test_times_are_normalised",
    ),
    33: _row("an impossible duration", f"{INPUT}::test_repaired_event_is_flagged"),
    34: _row("an unknown audience", f"{INPUT}::test_repaired_event_is_flagged"),
    35: _row("unknown members", f"{INPUT}::test_unknown_members_are_kept"),
    36: _row("a newer protocol", f"{INPUT}::test_newer_schema"),
    37: _row("a gzip bomb", "tests/collector/test_bombs.py::test_decompression_bomb"),
    38: _row("damaged gzip", "tests/collector/test_bombs.py::test_decompression_bomb"),
    39: _row("br, zstd, gzip twice, identity", f"{INPUT}::test_type_and_coding"),
    40: _row("a coding that is not true", f"{INPUT}::test_type_and_coding"),
    41: _row(
        "a length that is not true",
        f"{CONNECTIONS}::test_broken_head",
        f"{CONNECTIONS}::test_short_body",
        f"{CONNECTIONS}::test_more_body_than_said",
    ),
    42: _row(
        "one byte now and then",
        f"{CONNECTIONS}::test_slow_head",
        f"{CONNECTIONS}::test_slow_head_after_a_request",
        f"{CONNECTIONS}::test_short_body",
    ),
    43: _row(
        "a client that leaves",
        f"{CONNECTIONS}::test_client_gone",
        f"{CONNECTIONS}::test_client_gone_before_the_answer",
    ),
    44: _row("another media type", f"{INPUT}::test_type_and_coding"),
    45: _row("another method", f"{INPUT}::test_wrong_method"),
    46: _row("huge and odd headers", f"{CONNECTIONS}::test_broken_head", f"{INPUT}::test_bad_key"),
    47: _row("a Host that is none", f"{CONNECTIONS}::test_bad_host"),
    48: _row("a key in the URL", f"{INPUT}::test_key_in_the_url"),
    49: _row(
        "a revoked key, a key of another kind; keys do not expire, and the key is the project",
        f"{INPUT}::test_revoked_key",
        f"{INPUT}::test_read_key_cannot_write",
    ),
    50: _row(
        "markup in any field",
        f"{INPUT}::test_text_is_kept_as_it_is",
        f"{HOSTILE}::test_no_stored_text_becomes_markup",
    ),
    51: _row(
        "templates and format strings",
        f"{INPUT}::test_text_is_kept_as_it_is",
        f"{HOSTILE}::test_no_stored_text_becomes_markup",
    ),
    52: _row(
        "formulas",
        "tests/dashboard/exports/test_csv.py::test_no_cell_begins_a_formula",
        "tests/dashboard/exports/test_csv.py::test_numbers_survive",
    ),
    53: _row(
        "control, bidirectional and invisible characters",
        f"{INPUT}::test_log_line_cannot_be_forged",
        f"{HOSTILE}::test_hidden_characters_are_shown",
    ),
    54: _row(
        "a text of a megabyte, of 100,000 lines",
        f"{INPUT}::test_huge_text",
        f"{HOSTILE}::test_long_text_is_cut_and_reachable",
    ),
    55: _row("instructions to a model", f"{API}::test_texts_of_agents_are_marked_as_untrusted"),
    56: _row(
        "secrets: cleaned by the SDK, and a second time here",
        "tests/collector/test_redaction.py::test_no_secret_is_stored",
        f"{INPUT}::test_secret_of_a_rejected_event_is_nowhere",
    ),
    57: _row(
        "what only looks like a secret",
        "tests/collector/test_redaction.py::test_ordinary_text_is_left_alone",
    ),
    58: Elsewhere("an object whose repr raises", "the SDK makes text before anything is sent"),
    59: Elsewhere("arguments that hold locks", "the SDK makes text before anything is sent"),
    60: Elsewhere("cyclic and endless exceptions", "the SDK makes text before anything is sent"),
    61: Elsewhere("calls at odd moments", "the SDK is what is called"),
    62: Elsewhere("an answer that is no acknowledgement", "the SDK reads answers"),
    63: Elsewhere("an odd Retry-After", "the SDK reads answers"),
    64: _row(
        "hostile filters",
        "tests/dashboard/search/test_parse.py::test_any_text_is_a_query_or_an_explained_error",
        "tests/dashboard/search/test_parse.py::test_what_is_too_large_is_refused",
        "tests/dashboard/search/test_where.py::test_sql_and_naive_reading_agree",
    ),
    65: _row(
        "odd pages, cursors and columns",
        f"{API}::test_errors_are_problem_documents",
        f"{API}::test_limits_beyond_the_most_are_cut",
        f"{API}::test_a_key_reads_its_own_project_alone",
    ),
    66: _row(
        "huge exports, many at once",
        f"{API}::test_two_exports_at_a_time",
        "tests/dashboard/exports/test_csv.py::test_memory_stays_flat",
    ),
    67: Elsewhere("a webhook to an inner address", "the server sends no webhooks"),
    68: _row(
        "a database that cannot be used",
        "tests/collector/test_bad_database.py::test_server_says_what_is_wrong",
        "tests/migrations/test_migrations.py::test_newer_schema_is_refused",
        "tests/collector/test_doctor.py::test_network_file_system",
    ),
    69: _row(
        "a clock that jumps",
        "tests/collector/test_retention.py::test_clock_that_jumped_removes_nothing",
    ),
    70: _row(
        "ten thousand names",
        "tests/collector/test_limits.py::test_names_beyond_the_limit_are_other",
        "tests/collector/test_limits.py::test_names_are_remembered_across_processes",
    ),
}
