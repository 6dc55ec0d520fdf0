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
QUEUE: Final = "tests/collector/test_fair_queue.py"
WRITER: Final = "tests/collector/test_writer.py"
FUZZ: Final = "tests/collector/test_fuzz.py"
SECURITY: Final = "tests/dashboard/pages/test_security.py"
MIGRATIONS: Final = "tests/migrations/test_migrations.py"
RUNNING: Final = "tests/migrations/test_running_collectors.py"
ISOLATION: Final = "tests/dashboard/pages/test_isolation.py"
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
    "C3": _row(
        "a commit is on the disk",
        f"{EDGES}::test_every_commit_is_synced",
        "tests/collector/test_power_loss.py::test_power_is_lost",
    ),
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
        f"{OUTAGE}::test_full_disk_of_postgres",
        "tests/collector/test_disk.py::test_migration_without_room",
        "tests/collector/test_disk.py::test_readers_are_served_on_a_full_disk",
    ),
    "C7": _row(
        "more than can be stored",
        f"{WRITER}::test_full_queue_is_refused",
        "tests/collector/test_overload.py::test_what_the_queue_has_no_room_for_is_refused",
    ),
    "C8": _row(
        "a noisy project starves no other",
        f"{QUEUE}::test_projects_take_turns",
        f"{QUEUE}::test_one_project_fills_half_at_most",
        f"{LIMITS}::test_quota_over_http",
        "tests/collector/test_fairness.py::test_noisy_project_does_not_starve_a_quiet_one",
    ),
    "C9": _row(
        "limits hold while a body streams, and for members only",
        "tests/collector/test_bombs.py::test_decompression_bomb",
        "tests/collector/test_bombs.py::test_bombs_are_for_members_only",
    ),
    "C10": _row(
        "one bad event spoils no batch",
        f"{INPUT}::test_one_bad_of_a_thousand",
        f"{INPUT}::test_any_bad_of_a_thousand",
        "tests/collector/test_rejects.py::test_understood_events_are_stored",
        "tests/collector/test_retention.py::test_rejects_are_kept_for_a_week",
        "tests/collector/test_retention.py::test_rejects_are_capped",
        "tests/collector/test_rejects.py::test_what_is_kept_is_json_without_secrets",
    ),
    "C11": _row(
        "no event is poison",
        f"{WRITER}::test_poison_event_is_left_out",
        "tests/collector/test_stored_anew.py::test_success_beside_a_poison_event_ends_no_chain",
        f"{EDGES}::test_an_amount_at_its_limit",
    ),
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
        "tests/collector/test_chain_store.py::test_calls_of_a_clock_that_is_off_keep_their_order",
    ),
    "C14": _row(
        "out of order and late",
        "tests/collector/test_any_arrival.py::test_any_arrival_stores_the_same",
        "tests/collector/test_chain_store.py::test_any_arrival_gives_the_same_chains",
        "tests/collector/test_few_calls.py::test_few_calls_come_in_every_way",
    ),
    "C15": _row(
        "upgrade and back with data in place",
        f"{MIGRATIONS}::test_a_revision_keeps_what_was_stored",
        f"{MIGRATIONS}::test_killed_in_a_migration",
        f"{MIGRATIONS}::test_every_revision_goes_down_one_and_up_again",
        f"{MIGRATIONS}::test_rebuilding_a_parent_keeps_its_children",
        f"{MIGRATIONS}::test_older_sqlite_file_is_copied_first",
        f"{MIGRATIONS}::test_newer_schema_is_refused",
        f"{RUNNING}::test_what_an_older_collector_is_storing_is_known",
        f"{RUNNING}::test_an_older_collector_stores_no_call_after_the_migration",
        f"{RUNNING}::test_no_writer_lives_through_a_migration",
        f"{RUNNING}::test_a_collector_of_another_schema_stores_nothing",
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
        "tests/collector/test_retention_races.py::test_conversation_that_goes_before_it_is_locked",
        "tests/collector/test_retention_races.py::test_call_that_goes_while_it_is_sent_again",
    ),
    "C18": _row(
        "nobody hears that a database is locked, and the log ends",
        "tests/collector/test_contention.py::test_everything_at_once",
        "tests/collector/test_wal.py::test_readers_that_overlap_do_not_let_it_grow",
        "tests/dashboard/exports/test_streams.py::test_a_reader_that_stalls_is_cut_off",
    ),
    "C19": _row(
        "days without a leak",
        "tests/collector/test_soak.py::test_days_of_traffic",
        f"{FUZZ}::test_memory_stays_where_it_is",
    ),
    "C20": _row(
        "a graceful end",
        "tests/collector/test_stop.py::test_rolling_restarts_under_load",
        "tests/collector/test_stop.py::test_half_a_request_does_not_hold_up_the_end",
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
        f"{POLICY}::test_a_new_route_is_noticed_and_closed",
        f"{POLICY}::test_methods_that_no_rule_names_do_nothing",
        f"{POLICY}::test_the_table_is_what_happens",
        f"{ISOLATION}::test_every_route_of_the_api_needs_a_key",
    ),
    "A3": _row(
        "no id of another project",
        "tests/dashboard/api/test_api.py::test_a_key_reads_its_own_project_alone",
        f"{ISOLATION}::test_every_path_with_an_id_is_known_here",
        f"{ISOLATION}::test_an_id_of_another_project_is_not_found",
        f"{ISOLATION}::test_a_cursor_of_another_project_is_refused",
        f"{ISOLATION}::test_a_number_of_another_project_is_not_found",
        f"{ISOLATION}::test_a_key_names_its_project",
    ),
    "A7": _row(
        "keys are hashed, shown once, of one kind",
        "tests/collector/test_keys.py::test_key_is_known_by_its_digest",
        f"{INPUT}::test_read_key_cannot_write",
        f"{INPUT}::test_revoked_key",
        "tests/collector/test_keys.py::test_revoked_key_is_forgotten_at_once",
        f"{ISOLATION}::test_every_route_of_the_api_needs_a_key",
    ),
    "A13": _row(
        "no text from outside names a file",
        "tests/dashboard/pages/test_paths.py::test_no_text_becomes_a_path",
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
