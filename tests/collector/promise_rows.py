"""What the server promises, row by row, and the tests that hold it to that.

The rows are those of the project's reliability reference: the promises of the collector (C) and of
access (A), the answers of section 2 by status, and its limits. `test_bad_input_rows.py` holds this
table, too, against the tests it names.
"""

from __future__ import annotations

from typing import Final

from tests.collector.bad_input_rows import Elsewhere, Row

__all__ = ["PROMISES"]

INPUT: Final = "tests/collector/test_bad_input.py"
EDGES: Final = "tests/collector/test_limit_edges.py"
KILL: Final = "tests/collector/test_kill.py"
OUTAGE: Final = "tests/collector/test_outage.py"
LIMITS: Final = "tests/collector/test_limits.py"
WRITER: Final = "tests/collector/test_writer.py"
FUZZ: Final = "tests/collector/test_fuzz.py"
SECURITY: Final = "tests/dashboard/pages/test_security.py"
POLICY: Final = "tests/dashboard/pages/test_policy.py"


def _row(what: str, *tests: str) -> Row:
    return Row(what, tests)


PROMISES: Final[dict[str, Row | Elsewhere]] = {
    "C1": _row("an answer of 2xx means committed", f"{KILL}::test_killed_at_point"),
    "C2": _row(
        "survives kill -9",
        f"{KILL}::test_killed_twenty_times",
        f"{KILL}::test_killed_two_hundred_times",
        f"{KILL}::test_killed_at_point_under_load",
    ),
    "C3": _row("a commit is on the disk", f"{EDGES}::test_every_commit_is_synced"),
    "C4": _row(
        "sending again changes nothing",
        "tests/collector/test_golden.py::test_resend_is_duplicate",
        "tests/collector/test_any_arrival.py::test_any_arrival_stores_the_same",
        f"{INPUT}::test_same_id_other_body",
    ),
    "C5": _row(
        "the database goes away and comes back",
        f"{OUTAGE}::test_postgres_gone_and_back",
        f"{OUTAGE}::test_agents_outlast_an_outage",
        f"{OUTAGE}::test_agents_without_a_disk_count_what_they_drop",
        f"{OUTAGE}::test_locked_sqlite_over_http",
    ),
    "C6": _row(
        "the disk is full",
        "tests/collector/test_disk.py::test_full_disk_loses_nothing",
        "tests/collector/test_disk.py::test_agents_outlast_a_full_disk",
        "tests/collector/test_disk.py::test_killed_on_a_full_disk",
        f"{WRITER}::test_full_disk_is_said_and_passes",
    ),
    "C7": _row("more than can be stored", f"{WRITER}::test_full_queue_is_refused"),
    "C8": _row(
        "a noisy project starves no other",
        f"{LIMITS}::test_projects_take_turns",
        f"{LIMITS}::test_one_project_fills_half_at_most",
        f"{LIMITS}::test_quota_over_http",
    ),
    "C9": _row(
        "limits hold while a body streams, and for members only",
        "tests/collector/test_bombs.py::test_decompression_bomb",
        "tests/collector/test_bombs.py::test_bombs_are_for_members_only",
    ),
    "C10": _row(
        "one bad event spoils no batch",
        f"{INPUT}::test_one_bad_of_a_thousand",
        "tests/collector/test_rejects.py::test_what_is_kept_is_json_without_secrets",
    ),
    "C11": _row("no event is poison", f"{WRITER}::test_poison_event_is_left_out"),
    "C12": _row(
        "any bytes are answered below 500",
        f"{FUZZ}::test_mutated_bodies",
        f"{FUZZ}::test_memory_stays_where_it_is",
        "tests/e2e/test_openapi.py::test_generated_requests",
        "tests/e2e/test_openapi.py::test_many_generated_requests",
    ),
    "C13": _row(
        "clocks are off and jump",
        "tests/collector/test_clock_jumps.py::test_clock_of_the_server_jumps",
        "tests/collector/test_clock_jumps.py::test_clock_of_a_client_is_off",
    ),
    "C14": _row(
        "out of order and late",
        "tests/collector/test_any_arrival.py::test_any_arrival_stores_the_same",
        "tests/collector/test_chain_store.py::test_any_arrival_gives_the_same_chains",
    ),
    "C15": _row(
        "upgrade and back with data in place",
        "tests/migrations/test_migrations.py::test_upgrade_keeps_every_row",
        "tests/migrations/test_migrations.py::test_every_revision_goes_down_one_and_up_again",
        "tests/migrations/test_migrations.py::test_rebuilding_a_parent_keeps_its_children",
    ),
    "C16": _row(
        "a backup of a busy database restores",
        "tests/collector/test_backup.py::test_backup_under_load_holds_what_was_acknowledged",
        "tests/collector/test_backup.py::test_restore_drill",
    ),
    "C17": _row(
        "retention may be killed",
        f"{KILL}::test_killed_in_retention",
        "tests/collector/test_partitions.py::test_killed_while_dropping",
        "tests/collector/test_partitions.py::test_dropping_leaves_what_deleting_leaves",
        "tests/collector/test_retention.py::test_writers_go_on_while_old_conversations_go",
    ),
    "C18": _row(
        "nobody hears that a database is locked, and the log ends",
        "tests/collector/test_contention.py::test_everything_at_once",
        "tests/collector/test_wal.py::test_readers_that_overlap_do_not_let_it_grow",
        "tests/dashboard/exports/test_streams.py::test_a_reader_that_stalls_is_cut_off",
    ),
    "C19": Elsewhere("a day without a leak", "takes a day; the fuzz test watches the memory"),
    "C20": _row(
        "a graceful end",
        "tests/collector/test_stop.py::test_rolling_restarts_under_load",
        "tests/collector/test_stop.py::test_slow_question_does_not_hold_up_the_end",
        f"{OUTAGE}::test_clean_stop_and_restart",
    ),
    "A1": _row(
        "closed when fresh",
        f"{SECURITY}::test_a_public_address_needs_somebody_who_can_sign_in",
        f"{SECURITY}::test_the_server_itself_refuses_to_start_open",
    ),
    "A2": _row(
        "every route is in the policy table",
        f"{POLICY}::test_every_route_is_in_the_policy_table",
        f"{POLICY}::test_the_table_is_what_happens",
    ),
    "A3": _row(
        "no id of another project",
        "tests/dashboard/api/test_api.py::test_a_key_reads_its_own_project_alone",
    ),
    "A7": _row(
        "keys are hashed, shown once, of one kind",
        "tests/collector/test_keys.py::test_key_is_known_by_its_digest",
        f"{INPUT}::test_read_key_cannot_write",
        f"{INPUT}::test_revoked_key",
    ),
    "A14": _row(
        "logs without secrets, lines that nobody forges",
        "tests/collector/test_logs.py::test_no_secret_is_logged",
        "tests/collector/test_logs.py::test_no_text_forges_a_line",
    ),
    "200": _row("stored, duplicate, some bad", f"{INPUT}::test_one_bad_of_a_thousand"),
    "400": _row("not JSON, bad gzip, bad UTF-8", f"{INPUT}::test_unreadable_batch"),
    "401": _row("no key or a bad one", f"{INPUT}::test_bad_key"),
    "403": _row("a key of another kind", f"{INPUT}::test_read_key_cannot_write"),
    "405": _row("another method", f"{INPUT}::test_wrong_method"),
    "408": _row("a slow body", "tests/collector/test_bad_connections.py::test_short_body"),
    "413": _row("too large", f"{EDGES}::test_a_body_at_its_limits"),
    "415": _row(
        "another type or coding",
        f"{INPUT}::test_type_and_coding",
        f"{EDGES}::test_what_would_be_read_is_said",
    ),
    "422": _row("another shape", f"{INPUT}::test_unreadable_batch"),
    "429": _row("over the quota", f"{LIMITS}::test_quota_over_http"),
    "500": _row("a bug", f"{EDGES}::test_a_fault_says_nothing_but_its_id"),
    "503": _row("busy, down, stopping", f"{OUTAGE}::test_locked_sqlite_over_http"),
    "507": _row("disk full", "tests/collector/test_disk.py::test_full_disk_loses_nothing"),
    "wire body": _row("5 MiB", f"{EDGES}::test_a_body_at_its_limits"),
    "decompressed": _row("20 MiB", f"{EDGES}::test_a_body_at_its_limits"),
    "one event": _row("256 KiB", f"{EDGES}::test_an_event_at_its_limits"),
    "events": _row("1,000", f"{EDGES}::test_a_batch_at_its_limit"),
    "depth": _row("32", f"{EDGES}::test_an_event_at_its_limits"),
    "keys": _row("200", f"{EDGES}::test_an_event_at_its_limits"),
    "tags": _row("100, the rest is cut off", f"{EDGES}::test_tags_at_their_limit"),
    "text": _row("cut with a marker", f"{EDGES}::test_a_text_at_its_limit"),
    "numbers": _row("64 bits, finite", f"{INPUT}::test_bad_event_is_rejected_alone"),
    "frames": Elsewhere("100 kept", "the SDK makes the text of a traceback"),
    "header block": _row("16 KiB", f"{EDGES}::test_headers_at_their_limit"),
    "SDK queue, flush": Elsewhere("10,000 events, 2 s", "the SDK holds them"),
    "client clock": _row("-30 d to +60 s", f"{INPUT}::test_client_clock"),
}
