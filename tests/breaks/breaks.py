"""The seeded breaks: small wrong edits of the product, each of which a test must find.

One break is one promise that is no longer kept. ``run.py`` plants them one by one into a copy of
the checkout. What is replaced must stand in its file exactly once, so the list cannot rot unseen.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

__all__ = ["BREAKS", "Break"]


@dataclass(frozen=True, slots=True)
class Break:
    """One wrong edit.

    Attributes:
        name: What it is called on the command line and in the table.
        promise: What a user loses, in one sentence.
        file: The file of the product, from the root of the repository.
        old: What is replaced; stands there exactly once.
        new: What takes its place.
        found_by: Tests that fail with it, as pytest names them: some cheap ones, not all.
    """

    name: str
    promise: str
    file: str
    old: str
    new: str
    found_by: tuple[str, ...]


BREAKS: Final = (
    # Chains.
    Break(
        name="chains-recovery-is-no-round-trip",
        promise="The retry that succeeds is not counted as a round trip.",
        file="collector/toolfault_collector/chains.py",
        old="self.round_trips += 1",
        new="self.round_trips += not call.success",
        found_by=("tests/collector/test_chains.py::test_failures_then_success",),
    ),
    Break(
        name="chains-parallel-turn-ignored",
        promise="Calls that the model issued in the same turn count as retries.",
        file="collector/toolfault_collector/chains.py",
        old="if call.turn in self.turns:",
        new="if call.turn in self.turns[1:]:",
        found_by=("tests/collector/test_chains.py::test_same_turn_failure_is_no_round_trip",),
    ),
    Break(
        name="chains-switched-is-abandoned",
        promise="A chain after which another tool helped is called abandoned.",
        file="collector/toolfault_collector/chains.py",
        old='(and_(over, _switched()), literal("switched")),',
        new='(and_(over, _switched()), literal("abandoned")),',
        found_by=("tests/dashboard/queries/test_recount.py::test_summary[sqlite-]",),
    ),
    Break(
        name="chains-idle-too-soon",
        promise="A conversation that pauses for 20 minutes is taken to be over.",
        file="collector/toolfault_collector/chains.py",
        old="IDLE_US: Final = 30 * MINUTE_US",
        new="IDLE_US: Final = 20 * MINUTE_US",
        found_by=("tests/dashboard/queries/test_boundaries.py",),
    ),
    Break(
        name="chains-end-counts-for-ever",
        promise="A conversation that goes on after its reported end counts as over.",
        file="collector/toolfault_collector/chains.py",
        old="conversation.c.ended_at >= conversation.c.last_at,",
        new="conversation.c.ended_at.is_not(None),",
        found_by=("tests/dashboard/queries/test_boundaries.py",),
    ),
    Break(
        name="chains-late-call-appended",
        promise="A call that arrives late is put at the end of its chain.",
        file="collector/toolfault_collector/chain_store.py",
        old="if chain is not None and calls[0].key < chain.last_key:",
        new="if chain is not None and chain.recovered and calls[0].key < chain.last_key:",
        found_by=(
            "tests/collector/test_chain_store.py::test_untimed_calls_keep_their_order[sqlite]",
        ),
    ),
    Break(
        name="chains-only-last-repeat-seen",
        promise="An identical call is not recognised if another was in between.",
        file="collector/toolfault_collector/chains.py",
        old="call.args_fingerprint in self.fingerprints:",
        new="call.args_fingerprint in self.fingerprints[-1:]:",
        found_by=("tests/dashboard/queries/test_boundaries.py",),
    ),
    Break(
        name="chains-serial-discovery-wants-all",
        promise="A retry that finds one new bad field is no discovery.",
        file="collector/toolfault_collector/chains.py",
        old="self.serial_discovery |= any(",
        new="self.serial_discovery |= all(",
        found_by=("tests/dashboard/queries/test_boundaries.py",),
    ),
    # The collector.
    Break(
        name="collector-says-accepted-stores-nothing",
        promise="The collector answers accepted and stores nothing.",
        file="collector/toolfault_collector/writer.py",
        old="self._commit(transaction)",
        new="transaction.rollback()",
        found_by=("tests/collector/test_writer.py::test_waiting_batches_share_a_commit[sqlite]",),
    ),
    Break(
        name="collector-commit-error-ignored",
        promise="A commit that fails behind the scenes is answered accepted.",
        file="collector/toolfault_collector/writer.py",
        old="        done.result()\n",
        new="",
        found_by=(
            "tests/collector/test_writer.py::test_next_group_is_read_during_a_commit[sqlite]",
        ),
    ),
    Break(
        name="collector-power-loss",
        promise="What was acknowledged is gone after a loss of power.",
        file="collector/toolfault_collector/engine.py",
        old='synchronous: str = "FULL", busy_seconds',
        new='synchronous: str = "OFF", busy_seconds',
        found_by=("tests/collector/test_limit_edges.py::test_every_commit_is_synced[sqlite]",),
    ),
    Break(
        name="collector-duplicate-is-accepted",
        promise="An event that is sent again is counted as accepted again.",
        file="collector/toolfault_collector/store.py",
        old="self.receipts[submission].duplicate += 1",
        new="self.receipts[submission].accepted += 1",
        found_by=(
            "tests/collector/importers/test_import_paths.py::test_importing_again_changes_nothing",
        ),
    ),
    Break(
        name="collector-event-ids-across-projects",
        promise="An event is refused as known because another project has its id.",
        file="migrations/toolfault_migrations/versions/0001_first_schema.py",
        old=(
            '    UniqueConstraint("project_id", "event_id"),\n'
            '    Index(None, "project_id", "session_id", "tool", "started_at", "seq"),'
        ),
        new=(
            '    UniqueConstraint("event_id"),\n'
            '    Index(None, "project_id", "session_id", "tool", "started_at", "seq"),'
        ),
        found_by=("tests/migrations/test_migrations.py::test_models_match_the_history[sqlite]",),
    ),
    Break(
        name="collector-reject-not-kept",
        promise="The first refused event of a batch is nowhere to be seen.",
        file="collector/toolfault_collector/rejects.py",
        old="rejected[:MAX_PER_BATCH]",
        new="rejected[1:MAX_PER_BATCH]",
        found_by=("tests/collector/test_rejects.py::test_understood_events_are_stored[sqlite]",),
    ),
    Break(
        name="collector-future-times-believed",
        promise="A client whose clock is ahead puts failures into the future.",
        file="collector/toolfault_collector/prepared.py",
        old="if -MAX_FUTURE_US <= age <= MAX_PAST_US:",
        new="if age <= MAX_PAST_US:",
        found_by=("tests/collector/test_bad_input.py::test_repaired_event_is_flagged",),
    ),
    Break(
        name="collector-cut-without-flag",
        promise="A text that was cut looks as if it were whole.",
        file="collector/toolfault_collector/clean.py",
        old=(
            '            self.flags.append(f"truncated:{_dotted(pointer)}")\n'
            "            return _cut("
        ),
        new="            return _cut(",
        found_by=("tests/collector/test_limit_edges.py::test_a_text_at_its_limit[16385]",),
    ),
    Break(
        name="collector-traceback-keeps-secrets",
        promise="A password in a stored traceback is shown to readers.",
        file="collector/toolfault_collector/scrub.py",
        old='wire.RaisedException: ("message", "traceback"),',
        new='wire.RaisedException: ("message",),',
        found_by=("tests/collector/test_redaction.py",),
    ),
    Break(
        name="collector-log-says-what-was-sent",
        promise="The log repeats what an exception quotes: keys, rows, requests.",
        file="collector/toolfault_collector/log.py",
        old='lines += [f"{type(error).__module__}.{type(error).__qualname__}"]',
        new='lines += [f"{type(error).__module__}.{type(error).__qualname__}: {error}"]',
        found_by=("tests/collector/test_logs.py::test_an_exception_is_logged_by_its_places",),
    ),
    Break(
        name="collector-key-in-url-taken",
        promise="A key in the address of a request is accepted and ends in logs.",
        file="collector/toolfault_collector/gatekeeper.py",
        old='if b"key=" in query or b"token=" in query:',
        new='if b"token=" in query:',
        found_by=("tests/collector/test_bad_input.py::test_key_in_the_url[key=tf_ingest_x]",),
    ),
    Break(
        name="collector-body-limit-per-chunk",
        promise="A body without a length may be as large as the sender likes.",
        file="collector/toolfault_collector/body.py",
        old="        size += len(chunk)\n",
        new="        size = len(chunk)\n",
        found_by=("tests/collector/test_body_limit.py",),
    ),
    Break(
        name="collector-gzip-bomb",
        promise="A small compressed body may grow into all of the memory.",
        file="collector/toolfault_collector/body.py",
        old="self._written += len(part)",
        new="self._written = len(part)",
        found_by=("tests/collector/test_bombs.py",),
    ),
    Break(
        name="collector-too-deep",
        promise="Values nested deeper than any reader bears are stored.",
        file="collector/toolfault_collector/clean.py",
        old="if depth > MAX_DEPTH:",
        new="if depth > 2 * MAX_DEPTH:",
        found_by=("tests/collector/test_limit_edges.py::test_an_event_at_its_limits[-too_deep0]",),
    ),
    Break(
        name="collector-no-retry-after",
        promise="A sender that was turned away is not told when to come back.",
        file="collector/toolfault_collector/ingest.py",
        old='return Problem(503, "unavailable", detail, _retry_after(1, 5))',
        new='return Problem(503, "unavailable", detail)',
        found_by=(
            "tests/collector/test_overload.py::test_what_the_queue_has_no_room_for_is_refused",
        ),
    ),
    Break(
        name="collector-quota-lets-batches-through",
        promise="A project may send far more events than its quota.",
        file="collector/toolfault_collector/quota.py",
        old="if left < needed:",
        new="if left <= 0:",
        found_by=("tests/collector/test_limits.py",),
    ),
    Break(
        name="collector-revoked-key-works",
        promise="A key that was revoked goes on working.",
        file="collector/toolfault_collector/keys.py",
        old="api_key.c.key_hash == _digest(token), _valid(now_us())",
        new="api_key.c.key_hash == _digest(token)",
        found_by=("tests/collector/test_keys.py::test_revoked_key[sqlite]",),
    ),
    Break(
        name="collector-ingest-key-reads",
        promise="The key that every agent carries can read all failures.",
        file="collector/toolfault_collector/gatekeeper.py",
        old="if key.kind != kind:",
        new='if key.kind != kind and kind == "ingest":',
        found_by=("tests/dashboard/api/test_api.py",),
    ),
    Break(
        name="collector-retention-too-much",
        promise="Retention removes conversations to which something came today.",
        file="collector/toolfault_collector/removal.py",
        old="NOT (v.received_at BETWEEN ? AND ?) AND (SELECT count(*)",
        new="(v.received_at BETWEEN ? AND ?) IS NOT NULL AND (SELECT 0 * count(*)",
        found_by=("tests/collector/test_retention.py::test_limit_by_count[sqlite]",),
    ),
    Break(
        name="collector-retention-too-little",
        promise="Successes outside conversations are kept for ever.",
        file="collector/toolfault_collector/removal.py",
        old="itertools.product((False, True), windows)",
        new="itertools.product((False,), windows)",
        found_by=("tests/collector/test_retention.py",),
    ),
    Break(
        name="collector-retention-adds-counts",
        promise="Retention adds what it removes to the call counts.",
        file="collector/toolfault_collector/removal.py",
        old="add_counts(conn, (failures, negative(folded)))",
        new="add_counts(conn, (failures, folded))",
        found_by=("tests/collector/test_retention.py::test_old_conversations_go_whole[sqlite]",),
    ),
    Break(
        name="collector-recount-blind-for-calls",
        promise="The recount finds nothing wrong with wrong call counts.",
        file="collector/toolfault_collector/recount.py",
        old="if missing[key] or missing_calls[key]",
        new="if missing[key]",
        found_by=("tests/collector/test_recount.py",),
    ),
    Break(
        name="collector-unsent-calls-not-counted",
        promise="A sampled failure counts once, whatever it stands for.",
        file="collector/toolfault_collector/rollups.py",
        old="return math.floor(MILLION / rate + 0.5) - MILLION",
        new="return 0",
        found_by=(
            "tests/collector/test_recount.py::test_sampled_calls_stand_for_those_not_sent[sqlite]",
        ),
    ),
    Break(
        name="collector-everybody-copies-the-log",
        promise="Two connections copy SQLite's log, so acknowledged rows may be lost.",
        file="collector/toolfault_collector/engine.py",
        old='"PRAGMA wal_autocheckpoint=0"',
        new='"PRAGMA wal_autocheckpoint=1000"',
        found_by=("tests/collector/test_log_copies.py::test_only_the_writer_copies_the_log",),
    ),
    Break(
        name="collector-log-is-never-copied",
        promise="The log of SQLite grows until somebody waits for all of it.",
        file="collector/toolfault_collector/wal.py",
        old="if self._events >= self._copy_every:",
        new="if self._events > 1_000 * self._copy_every:",
        found_by=("tests/collector/test_log_copies.py",),
    ),
    Break(
        name="collector-huge-drops-are-fatal",
        promise="A huge number of drops gives a 500 and costs the batch its events.",
        file="collector/toolfault_collector/decode.py",
        old="min(count, wire.MOST_AMOUNT)",
        new="count",
        found_by=("tests/collector/test_envelope.py",),
    ),
    Break(
        name="collector-drop-reasons-are-not-cleaned",
        promise="One odd reason ends /metrics until the next start.",
        file="collector/toolfault_collector/decode.py",
        old="clean_text(str(reason))",
        new="str(reason)",
        found_by=("tests/collector/test_envelope.py",),
    ),
    Break(
        name="collector-refused-without-budget",
        promise="One batch of large refused events stops every project for a second.",
        file="collector/toolfault_collector/refused.py",
        old="if text is None or left <= 0:",
        new="if text is None:",
        found_by=("tests/collector/test_refused.py",),
    ),
    Break(
        name="collector-slashes-hide-passwords",
        promise="A password in an address is stored if its sender escapes slashes.",
        file="collector/toolfault_collector/hints.py",
        old='raw = raw.replace(b"\\\\/", b"/")',
        new="raw = raw[:]",
        found_by=("tests/collector/test_refused.py",),
    ),
    Break(
        name="collector-wrong-statement-is-retried",
        promise="An event that no statement can store is sent again for ever.",
        file="collector/toolfault_collector/faults.py",
        old='return "unavailable" if code in _SQLITE_LATER or of_schema else "bug"',
        new='return "unavailable"',
        found_by=("tests/collector/test_faults.py",),
    ),
    Break(
        name="collector-refusals-are-not-counted",
        promise="Operators do not see the requests that were refused.",
        file="collector/toolfault_collector/app.py",
        old="if self._answers is not None:",
        new="if self._answers is not None and status < 400:",
        found_by=("tests/collector/test_envelope.py",),
    ),
    Break(
        name="collector-writes-into-a-removed-file",
        promise="What is acknowledged after the file was removed is gone.",
        file="collector/toolfault_collector/engine.py",
        old="return opened is not None and opened != _identity(sqlite_path(conn.engine))",
        new="return opened is None",
        found_by=("tests/collector/test_replaced_file.py",),
    ),
    Break(
        name="collector-log-fails-requests",
        promise="A full disk under the log makes answers fail.",
        file="collector/toolfault_collector/log.py",
        old="def write(self, text: str) -> None:\n        with suppress(OSError, ValueError):",
        new="def write(self, text: str) -> None:\n        with suppress(KeyError):",
        found_by=("tests/collector/test_unwritable_log.py",),
    ),
    Break(
        name="collector-resent-drops-count-twice",
        promise="A resent batch doubles the drops that its sender reported.",
        file="collector/toolfault_collector/ingest.py",
        old="if receipt.accepted or not receipt.duplicate:",
        new="if receipt is not None:",
        found_by=("tests/collector/test_envelope.py",),
    ),
    Break(
        name="collector-escaped-names-are-free",
        promise="A sender that spells names with escapes fills the queue beyond its share.",
        file="collector/toolfault_collector/ingest.py",
        old='named = max(body.count(b\'"event_id"\'), body.count(b"\\\\u00"))',
        new="named = body.count(b'\"event_id\"')",
        found_by=("tests/collector/test_fairness.py",),
    ),
    Break(
        name="collector-wrong-keys-cost-a-connection",
        promise="A stranger with invented keys takes every connection.",
        file="collector/toolfault_collector/gatekeeper.py",
        old="        if not is_well_formed(token):\n            return None\n",
        new="",
        found_by=("tests/collector/test_wrong_keys.py",),
    ),
    Break(
        name="pages-slow-forms-hold-connections",
        promise="A form that never ends is waited for without end.",
        file="dashboard/toolfault_dashboard/security.py",
        old='raise Problem(408, "slow_body", detail, {"Connection": "close"}) from error',
        new='body = b""',
        found_by=("tests/dashboard/pages/test_slow_forms.py",),
    ),
    Break(
        name="pages-any-number-of-downloads",
        promise="One reader takes every connection with downloads.",
        file="dashboard/toolfault_dashboard/exports/downloads.py",
        old="if self._running[name] >= AT_ONCE:",
        new="if self._running[name] > 1_000:",
        found_by=("tests/dashboard/pages/test_page_downloads.py",),
    ),
    Break(
        name="experiments-any-number-of-arms",
        promise="A sender of thousands of arms keeps the server busy for minutes.",
        file="dashboard/toolfault_dashboard/queries/experiments.py",
        old="if len(arms) > MOST_ARMS:",
        new="if len(arms) > 1_000_000:",
        found_by=("tests/dashboard/queries/test_many_arms.py",),
    ),
    # Importers.
    Break(
        name="importer-outer-flag-only",
        promise="A failure that the proxied server itself reports is read as a success.",
        file="collector/toolfault_collector/importers/livemcpbench.py",
        old='endswith("isError=True") or flagged',
        new='endswith("isError=True")',
        found_by=(
            "tests/collector/importers/test_livemcpbench.py::test_the_three_marks_of_a_failure",
        ),
    ),
    Break(
        name="importer-twice-is-double",
        promise="Importing the same file again counts every call twice.",
        file="collector/toolfault_collector/importers/_events.py",
        old='event_id(conversation.key, "call", call.identity)',
        new='event_id(conversation.key, "call", call.identity, str(now))',
        found_by=(
            "tests/collector/importers/test_import_paths.py::test_importing_again_changes_nothing",
        ),
    ),
    Break(
        name="importer-first-code-of-many",
        promise="A text with several faults gets the code of any one of them.",
        file="collector/toolfault_collector/importers/classify/__init__.py",
        old='code=codes.pop() if len(codes) == 1 else "invalid_input",',
        new="code=min(codes),",
        found_by=(
            "tests/collector/importers/test_classify.py::test_a_pydantic_block_becomes_issues",
        ),
    ),
    Break(
        name="importer-soft-rule-half-blind",
        promise="A result that says isError is not recognised as a soft failure.",
        file="collector/toolfault_collector/importers/_soft.py",
        old='return result.get("isError") is True or result.get("is_error") is True',
        new='return result.get("is_error") is True',
        found_by=("tests/collector/importers/test_soft.py::test_soft_rules",),
    ),
    # The SDK.
    Break(
        name="sdk-first-missing-field-only",
        promise="The model is told of one missing argument at a time.",
        file="sdk/toolfault/tools/_checks/_objects.py",
        old="                if required:\n",
        new="                if required and not findings.found:\n",
        found_by=("tests/sdk/tools/test_hints_rejected.py::test_what_is_rejected",),
    ),
    Break(
        name="sdk-rate-limit-code",
        promise="A tool that is rate limited is reported as a broken service.",
        file="sdk/toolfault/errors/_classify.py",
        old="if status == 429 else",
        new="if status == 503 else",
        found_by=(
            "tests/sdk/errors/test_classify.py::test_exceptions_are_classified_by_type_and_status",
        ),
    ),
    Break(
        name="sdk-audience-swapped",
        promise="The user reads what was meant for the developer.",
        file="sdk/toolfault/errors/_render.py",
        old="return _user_text(error) if audience is Audience.USER else _system_text(error)",
        new="return _system_text(error) if audience is Audience.USER else _user_text(error)",
        found_by=(
            "tests/sdk/errors/test_render.py::test_user_and_model_read_the_same_whatever_the_reason",
        ),
    ),
    Break(
        name="sdk-user-text-leaks",
        promise="The user reads the inside of a tool in an authored internal failure.",
        file="sdk/toolfault/errors/_render.py",
        old="if error.audience is not Audience.USER or not error.is_authored:",
        new="if not error.is_authored:",
        found_by=(
            "tests/sdk/errors",
            "tests/sdk/acceptance",
        ),
    ),
    Break(
        name="sdk-received-value-shown",
        promise="The user reads the value that the model sent.",
        file="sdk/toolfault/errors/_render.py",
        old="with_received=False",
        new="with_received=True",
        found_by=(
            "tests/sdk/errors",
            "tests/sdk/acceptance",
        ),
    ),
    Break(
        name="sdk-secret-key-shown",
        promise="A token in the arguments is shown in texts and events.",
        file="sdk/toolfault/errors/_repr.py",
        old="if self._redact and is_secret_key(key) and not shown_anyway(value):",
        new='if self._redact and key == "password" and not shown_anyway(value):',
        found_by=(
            "tests/sdk/errors/test_text.py::test_values_under_secret_keys_are_hidden_at_every_depth",
        ),
    ),
    Break(
        name="sdk-spool-forgets-what-is-sent",
        promise="What is being sent as the process is killed is lost.",
        file="sdk/toolfault/telemetry/_spool.py",
        old="return self.read >= self.size and not self.out",
        new="return self.read >= self.size",
        found_by=("tests/sdk/telemetry/test_spool.py",),
    ),
    Break(
        name="sdk-retries-refused-batch",
        promise="A batch that the collector refuses is sent again for ever.",
        file="sdk/toolfault/telemetry/_retry.py",
        old='return Verdict("drop", f"http_{status}")',
        new='return Verdict("retry", f"http_{status}")',
        found_by=("tests/sdk/telemetry/test_retry.py",),
    ),
    Break(
        name="sdk-any-200-is-an-answer",
        promise="A captive portal's page counts as the collector's acknowledgement.",
        file="sdk/toolfault/telemetry/_retry.py",
        old="return tuple(positions) if accepted + duplicate + len(rejected) == sent else None",
        new="return tuple(positions)",
        found_by=("tests/sdk/telemetry/test_retry.py",),
    ),
    Break(
        name="sdk-overflow-not-counted",
        promise="Events that a full queue drops are missing from the statistics.",
        file="sdk/toolfault/telemetry/_outbox.py",
        old=(
            "            self._bytes -= oldest.size\n"
            '            self.book.drop(oldest.weight, "queue_overflow")\n'
        ),
        new="            self._bytes -= oldest.size\n",
        found_by=("tests/sdk/telemetry/test_delivery.py::test_drops_travel_with_the_next_batch",),
    ),
    Break(
        name="sdk-latency-bucket-lost",
        promise="Of calls of the same length one is left in the histogram.",
        file="sdk/toolfault/telemetry/_fold.py",
        old="self.buckets[bucket] = self.buckets.get(bucket, 0) + 1",
        new="self.buckets[bucket] = 1",
        found_by=(
            "tests/sdk/telemetry/test_folding.py::test_successes_become_one_counter_per_minute",
        ),
    ),
    Break(
        name="sdk-calls-not-squared",
        promise="Intervals over folded conversations are too narrow.",
        file="sdk/toolfault/telemetry/_fold.py",
        old="row.calls_squared += calls * calls",
        new="row.calls_squared += calls",
        found_by=(
            "tests/sdk/telemetry/test_folding.py::test_end_of_a_conversation_adds_to_the_counters",
        ),
    ),
    Break(
        name="sdk-end-only-of-open-chains",
        promise="A conversation that recovered never says that it has ended.",
        file="sdk/toolfault/telemetry/_tracker.py",
        old="        if state.failed:\n",
        new="        if state.open:\n",
        found_by=("tests/sdk/telemetry/test_golden.py::test_wire_is_as_frozen",),
    ),
    Break(
        name="sdk-no-did-you-mean",
        promise="A misspelt argument gets no hint at the right name.",
        file="sdk/toolfault/errors/_hints.py",
        old="_CLOSE = 0.7",
        new="_CLOSE = 0.99",
        found_by=("tests/sdk/errors/test_hints.py::test_did_you_mean_the_closest_name",),
    ),
    Break(
        name="sdk-empty-text-is-false",
        promise="An empty text is taken for a deliberate false.",
        file="sdk/toolfault/coerce/_values.py",
        old='_FALSE = frozenset({"false", "0", "no", "off"})',
        new='_FALSE = frozenset({"false", "0", "no", "off", ""})',
        found_by=("tests/sdk/coerce",),
    ),
    Break(
        name="sdk-near-miss-missing",
        promise="A field under another name is not reported as nearly right.",
        file="sdk/toolfault/coerce/_remedies.py",
        old="_chosen, _renamed, _clamped)",
        new="_chosen, _clamped)",
        found_by=(
            "tests/sdk/coerce/test_near_misses.py::test_the_remedies_that_would_have_accepted",
        ),
    ),
    Break(
        name="sdk-variant-changes",
        promise="A conversation changes its arm from call to call or process to process.",
        file="sdk/toolfault/telemetry/_trials.py",
        old='draw(conversation.id, f"variant {name}")',
        new='draw(f"{conversation.id}{id(conversation)}", f"variant {name}")',
        found_by=("tests/sdk/telemetry/test_trials.py::test_arm_is_stable_in_every_process",),
    ),
    Break(
        name="sdk-capture-raises",
        promise="A fault of the SDK stops the agent that uses it.",
        file="sdk/toolfault/telemetry/_client.py",
        old=('            self._outbox.discard("sdk_error")\n            return None\n'),
        new=('            self._outbox.discard("sdk_error")\n            raise\n'),
        found_by=(
            "tests/sdk/telemetry/test_host_safety.py::test_captures_inside_captures_are_counted",
        ),
    ),
    Break(
        name="sdk-child-sends-nothing",
        promise="A forked worker captures failures that never leave it.",
        file="sdk/toolfault/telemetry/_client.py",
        old=("        self._sender.abandon()\n        self._make()\n"),
        new="        self._sender.abandon()\n",
        found_by=("tests/sdk/telemetry/test_fork.py::test_child_sends_its_own_events_once",),
    ),
    # The dashboard: figures, filters, pages, exports, API, comparisons.
    Break(
        name="figures-rate-without-failures",
        promise="The failure rate divides by successes in place of calls.",
        file="dashboard/toolfault_dashboard/queries/summaries.py",
        old="failure_rate=weighed_rate(failures, calls),",
        new="failure_rate=weighed_rate(failures, calls - failures),",
        found_by=("tests/dashboard/queries/test_sampled.py::test_summary_and_overview[sqlite-]",),
    ),
    Break(
        name="figures-one-sided-interval",
        promise="Every 95 % interval covers 90 %.",
        file="dashboard/toolfault_dashboard/analysis/rates.py",
        old="inv_cdf(0.5 + confidence / 2)",
        new="inv_cdf(confidence)",
        found_by=("tests/dashboard/analysis/test_rates.py::test_wilson_is_scipys",),
    ),
    Break(
        name="figures-first-try-counts-retries",
        promise="Retries that succeed count as successes at the first try.",
        file="dashboard/toolfault_dashboard/queries/summaries.py",
        old="    operations = calls - round_trips\n",
        new="    operations = calls\n",
        found_by=("tests/dashboard/queries/test_recount.py::test_overview[sqlite-]",),
    ),
    Break(
        name="tools-first-try-has-a-second-formula",
        promise="Tools shows another first-try success than the page of the tool.",
        file="dashboard/toolfault_dashboard/pages/_lines.py",
        old="first_try=rates.first_try,",
        new="first_try=rates.failure_rate,",
        found_by=("tests/dashboard/pages/test_figures.py::test_tools",),
    ),
    Break(
        name="figures-open-chains-are-lost",
        promise="Chains that may still recover lower the recovery rate.",
        file="dashboard/toolfault_dashboard/queries/summaries.py",
        old='closed = total(each for name, each in chains.chains.items() if name != "open")',
        new="closed = total(each for name, each in chains.chains.items())",
        found_by=("tests/dashboard/queries/test_boundaries.py",),
    ),
    Break(
        name="facets-ignore-the-filter",
        promise="The numbers beside filter values are those of all failures.",
        file="dashboard/toolfault_dashboard/queries/facets.py",
        old="if c.key != key or c.negated))",
        new='if c.key in {"since", "until"}))',
        found_by=("tests/dashboard/queries/test_recount.py::test_facets",),
    ),
    Break(
        name="search-negation-drops-unknown",
        promise="Leaving out a model leaves out failures without a model, too.",
        file="dashboard/toolfault_dashboard/search/where.py",
        old="return not_(func.coalesce(condition, false())) if clause.negated else condition",
        new="return not_(condition) if clause.negated else condition",
        found_by=("tests/dashboard/search/test_where.py::test_each_key_on_real_values",),
    ),
    Break(
        name="search-all-but-one-conversation",
        promise="Leaving out one conversation leaves out every folded success.",
        file="dashboard/toolfault_dashboard/search/where.py",
        old='clause.key == "conversation" and not clause.negated',
        new='clause.key == "conversation"',
        found_by=("tests/dashboard/queries/test_recount.py::test_summary",),
    ),
    Break(
        name="search-until-includes-the-end",
        promise="A failure at the boundary of two weeks is counted in both.",
        file="dashboard/toolfault_dashboard/search/where.py",
        old='return column >= at if clause.key == "since" else column < at',
        new='return column >= at if clause.key == "since" else column <= at',
        found_by=("tests/dashboard/queries/test_boundaries.py",),
    ),
    Break(
        name="search-has-reveals",
        promise="A viewer learns by has: what the role may not see.",
        file="dashboard/toolfault_dashboard/queries/visibility.py",
        old="    return [name for value in clause.values if (name := _name(value)) is not None]",
        new="    return []",
        found_by=("tests/dashboard/queries/test_visibility.py",),
    ),
    Break(
        name="pages-list-skips-simultaneous",
        promise="The next page leaves out failures of the same microsecond.",
        file="dashboard/toolfault_dashboard/queries/pages.py",
        old="statement.where(here > there if newer else here < there)",
        new="statement.where(here > there if newer else key[0] < at.at)",
        found_by=(
            "tests/dashboard/queries/test_lists.py::test_pages_go_back_the_way_they_came[sqlite]",
        ),
    ),
    Break(
        name="exports-formula-runs",
        promise="A cell that begins with @ runs as a formula in a spreadsheet.",
        file="dashboard/toolfault_dashboard/exports/cells.py",
        old='_SIGNS: Final = "=+\\\\-@|%',
        new='_SIGNS: Final = "=+\\\\-|%',
        found_by=("tests/dashboard/exports/test_csv.py::test_no_cell_begins_a_formula",),
    ),
    Break(
        name="exports-show-what-pages-hide",
        promise="A viewer downloads tracebacks and users that no page shows.",
        file="dashboard/toolfault_dashboard/queries/streams.py",
        old="*(seen(scope, tool_call, name) for name in more),",
        new="*(tool_call.c[name] for name in more),",
        found_by=("tests/dashboard/queries/test_visibility.py",),
    ),
    Break(
        name="pages-cell-unescaped",
        promise="A message of a tool runs as a script in the reader's browser.",
        file="dashboard/toolfault_dashboard/templates/failure.html",
        old='{{ issue.message or "" }}',
        new='{{ (issue.message or "")|safe }}',
        found_by=(
            "tests/dashboard/pages/test_templates.py::test_no_template_switches_escaping_off_or_holds_script_or_style",
        ),
    ),
    Break(
        name="pages-viewer-revokes-keys",
        promise="Anybody who may look may also revoke keys.",
        file="dashboard/toolfault_dashboard/policy.py",
        old='_rule("/settings/keys/revoke", "admin", _WRITE)',
        new='_rule("/settings/keys/revoke", "viewer", _WRITE)',
        found_by=("tests/dashboard/pages/test_who_may_write.py",),
    ),
    Break(
        name="pages-other-project-readable",
        promise="A chain of another project is shown to whoever knows its id.",
        file="dashboard/toolfault_dashboard/queries/chains.py",
        old=(
            "                chain.c.project_id == scope.project_id, chain.c.chain_id == chain_id\n"
        ),
        new="                chain.c.chain_id == chain_id\n",
        found_by=(
            "tests/dashboard/queries/test_lists.py::test_nothing_of_another_project_is_found",
        ),
    ),
    Break(
        name="pages-sibling-site-posts",
        promise="A page of a sibling domain acts in the reader's name.",
        file="dashboard/toolfault_dashboard/security.py",
        old='("same-origin", "none")',
        new='("same-origin", "none", "same-site")',
        found_by=("tests/dashboard/pages/test_security.py::test_same_origin",),
    ),
    Break(
        name="pages-no-csp",
        promise="Injected markup may load scripts: the policy header is missing.",
        file="dashboard/toolfault_dashboard/security.py",
        old='    ("Content-Security-Policy", CSP),\n',
        new="",
        found_by=(
            "tests/dashboard/pages/test_security.py::test_every_answer_carries_the_security_headers",
        ),
    ),
    Break(
        name="pages-old-role-goes-on",
        promise="Sessions go on after the role of their account was changed.",
        file="dashboard/toolfault_dashboard/signin.py",
        old="login_session.c.user_id == found.id, login_session.c.revoked_at.is_(None)",
        new='login_session.c.user_id == found.id, login_session.c.kind == "link"',
        found_by=("tests/dashboard/pages/test_security.py::test_a_changed_role_ends_all_sessions",),
    ),
    Break(
        name="pages-session-never-ends",
        promise="A stolen session works for ever.",
        file="dashboard/toolfault_dashboard/signin.py",
        old=(
            "            login_session.c.expires_at > now,\n"
            "            user_account.c.disabled_at.is_(None),\n"
        ),
        new="            user_account.c.disabled_at.is_(None),\n",
        found_by=(
            "tests/dashboard/pages/test_security.py::test_a_session_that_lost_its_ground_is_none",
        ),
    ),
    Break(
        name="pages-no-lockout",
        promise="An address may try sign-in links without end.",
        file="dashboard/toolfault_dashboard/lockout.py",
        old="locked = len(times) == TRIES and",
        new="locked = len(times) > TRIES and",
        found_by=("tests/dashboard/pages/test_lockout.py::test_after_ten_tries_there_is_a_wait",),
    ),
    Break(
        name="pages-open-redirect",
        promise="A link to our sign-in page leads on to another site.",
        file="dashboard/toolfault_dashboard/pages/access.py",
        old='own = text.startswith("/") and not text.startswith(("//", "/\\\\"))',
        new='own = text.startswith("/") and not text.startswith("//")',
        found_by=("tests/dashboard/pages/test_security.py::test_no_address_leads_off_this_server",),
    ),
    Break(
        name="pages-quota-swapped",
        promise="The settings page calls what is used of the quota what is left.",
        file="dashboard/toolfault_dashboard/pages/settings.py",
        old="{count(quota - left)} used, {count(left)} left",
        new="{count(left)} used, {count(quota - left)} left",
        found_by=(
            "tests/dashboard/pages/test_settings.py::test_the_quota_in_force_is_shown_with_what_is_used",
        ),
    ),
    Break(
        name="compare-no-correction",
        promise="Among many codes chance alone is reported as a change.",
        file="dashboard/toolfault_dashboard/analysis/by_code.py",
        old="iter(false_discovery_control(known) if known else ())",
        new="iter(known)",
        found_by=("tests/dashboard/analysis",),
    ),
    Break(
        name="compare-few-conversations-enough",
        promise="A verdict is given on the calls of two conversations.",
        file="dashboard/toolfault_dashboard/analysis/effect.py",
        old="return side.clusters >= FEWEST if metric.of_calls",
        new="return side.counted >= FEWEST if metric.of_calls",
        found_by=(
            "tests/dashboard/analysis/test_effect.py::test_few_conversations_get_no_verdict",
        ),
    ),
    Break(
        name="compare-peeking",
        promise="Whoever looks at a trial every day finds an effect that is none.",
        file="dashboard/toolfault_dashboard/analysis/experiments.py",
        old="reach = spread * stretch(before.clusters + after.clusters, confidence=confidence)",
        new="reach = spread * 1.96",
        found_by=(
            "tests/dashboard/analysis/test_experiments.py::test_looking_every_day_misleads_the_fixed_interval_alone",
        ),
    ),
    Break(
        name="compare-folded-conversations-forgotten",
        promise="Folded conversations add calls to a rate but no uncertainty.",
        file="dashboard/toolfault_dashboard/analysis/estimates.py",
        old="        total += heaviest * heaviest * side.folded.calls_squared\n",
        new="",
        found_by=(
            "tests/dashboard/analysis/test_effect.py::test_folding_successes_away_changes_no_figure",
        ),
    ),
    Break(
        name="compare-gate-never-shuts",
        promise="A worse release passes the gate in CI.",
        file="dashboard/toolfault_dashboard/cli/compare.py",
        old="raise typer.Exit(1 if shut else 0)",
        new="raise typer.Exit(0)",
        found_by=("tests/dashboard/cli/test_compare.py::test_gates",),
    ),
    Break(
        name="fix-next-reversed",
        promise="What saves least stands first under Fix next.",
        file="dashboard/toolfault_dashboard/queries/fix_next.py",
        old="return mended, -found.round_trips, -found.failures, key",
        new="return mended, found.round_trips, -found.failures, key",
        found_by=(
            "tests/dashboard/queries/test_windows.py::test_fixes_are_those_of_the_naive_rules",
        ),
    ),
    Break(
        name="time-weeks-begin-on-sunday",
        promise="A week of the chart begins on the wrong day.",
        file="dashboard/toolfault_dashboard/queries/buckets.py",
        old="WEEK_OFFSET: Final = 4 * DAY_US",
        new="WEEK_OFFSET: Final = 3 * DAY_US",
        found_by=("tests/dashboard/queries/test_rollups.py::test_rollups_are_the_rows[sqlite-]",),
    ),
    Break(
        name="api-abandoned-is-open",
        promise="The API reports open chains as abandoned ones.",
        file="dashboard/toolfault_dashboard/queries/summaries.py",
        old='abandoned=outcomes.get("abandoned", 0),',
        new='abandoned=outcomes.get("open", 0),',
        found_by=("tests/dashboard/queries/test_recount.py::test_summary[sqlite-]",),
    ),
    Break(
        name="api-key-of-one-reads-all",
        promise="A read key of one project reads any project that it names.",
        file="dashboard/toolfault_dashboard/api/reader.py",
        old="    if reader.project_id is not None:\n",
        new="    if reader.project_id is not None and not project:\n",
        found_by=(
            "tests/dashboard/pages/test_isolation.py",
            "tests/dashboard/api/test_api.py",
        ),
    ),
    Break(
        name="api-key-sees-tracebacks",
        promise="A read key in a notebook shows tracebacks and users.",
        file="dashboard/toolfault_dashboard/api/reader.py",
        old='KEY_AUDIENCE: Final[Audience] = "llm"',
        new='KEY_AUDIENCE: Final[Audience] = "system"',
        found_by=("tests/dashboard/api/test_api.py",),
    ),
    Break(
        name="sampled-weights-inverted",
        promise="A call that was sampled at 1 % counts as a hundredth.",
        file="dashboard/toolfault_dashboard/queries/weighing.py",
        old="return case((rate < LEAST_RATE, 1.0 / LEAST_RATE), else_=1.0 / rate)",
        new="return case((rate < LEAST_RATE, 1.0 / LEAST_RATE), else_=rate)",
        found_by=("tests/dashboard/queries/test_sampled.py::test_summary_and_overview",),
    ),
    # Migrations.
    Break(
        name="migrations-pairs-miscounted",
        promise="After an upgrade the first-try rate of old data is wrong.",
        file="migrations/toolfault_migrations/versions/0005_reading.py",
        old="sum(CASE WHEN c.session_id IS NULL THEN 1 ELSE 0 END)",
        new="count(*)",
        found_by=("tests/migrations/test_migrations.py",),
    ),
    Break(
        name="migrations-drop-children",
        promise="A migration of an SQLite file deletes the issues of all failures.",
        file="migrations/toolfault_migrations/__init__.py",
        old='            _pragma(connection, "foreign_keys=OFF")\n',
        new="            pass\n",
        found_by=(
            "tests/migrations/test_migrations.py::test_rebuilding_a_parent_keeps_its_children",
        ),
    ),
    Break(
        name="migrations-column-missing",
        promise="The settings of retention cannot be stored after an upgrade.",
        file="migrations/toolfault_migrations/versions/0009_settings_and_picked_fixes.py",
        old='    "retention_calls": sa.BigInteger,\n',
        new="",
        found_by=("tests/migrations/test_migrations.py::test_models_match_the_history[sqlite]",),
    ),
)
