"""Session files of Claude Code: what real ones contain beside the plain case."""

from __future__ import annotations

from pathlib import Path

from tests.collector.importers.counting import count_parsed, parsed
from tests.collector.importers.sessions import answer, call, write

from toolfault_collector.clock import SECOND_US, now_us, parse_time
from toolfault_collector.importers import Conversation, Problem, parse_file
from toolfault_collector.importers.classify import classify


def test_blocks_of_one_message_are_one_turn(tmp_path: Path) -> None:
    """Parallel blocks stand on several lines; a success beside the failure recovers nothing."""
    lines = [
        call(1, message_id="m"),
        call(2, message_id="m"),
        answer(1, failed=True),
        answer(2),
        call(3),
        answer(3),
    ]
    (found,) = parsed(write(tmp_path / "a.jsonl", lines))
    counted = count_parsed(found)
    assert (counted.chains, counted.recovered, counted.round_trips) == (1, 1, 1)
    assert [each.turn for each in found.calls] == ["m", "m", "msg_3"]


def test_times_are_those_of_the_call_and_its_result(tmp_path: Path) -> None:
    """A call lasts from its own line to the line of its result."""
    (found,) = parsed(write(tmp_path / "a.jsonl", [call(1), answer(1)]))
    start = parse_time("2025-03-01T09:00:01Z")
    assert found.timed
    assert (found.calls[0].started_at, found.calls[0].ended_at) == (start, start + SECOND_US // 2)


def test_a_result_before_its_call_and_a_copy_of_both(tmp_path: Path) -> None:
    """Lines in another order or written twice give one call with its result."""
    lines = [answer(1, failed=True), call(1), call(1), answer(1, failed=True)]
    items = list(parse_file(write(tmp_path / "a.jsonl", lines), now=now_us()))
    assert [type(item) for item in items] == [Conversation]
    assert count_parsed(items[0]).failed == 1  # type: ignore[arg-type]


def test_a_file_that_begins_mid_session(tmp_path: Path) -> None:
    """A result whose call is in another file is noted and counted nowhere."""
    lines = [answer(1, failed=True), call(2), answer(2)]
    note, found = list(parse_file(write(tmp_path / "a.jsonl", lines), now=now_us()))
    assert isinstance(note, Problem)
    assert (note.severity, note.message[:10]) == ("note", "1 results ")
    assert isinstance(found, Conversation)
    assert (len(found.calls), found.failures) == (1, 0)


def test_only_the_flag_itself_is_a_failure(tmp_path: Path) -> None:
    """``is_error`` must be true; neither another value nor the text decides."""
    lines = []
    for number, flag in enumerate((True, False, None, "true", 1, "absent"), 1):
        line = answer(number, "Error: x")
        if flag != "absent":
            line["message"]["content"][0]["is_error"] = flag
        lines += [call(number), line]
    (found,) = parsed(write(tmp_path / "a.jsonl", lines))
    assert [each.status for each in found.calls] == ["failed", *["ok"] * 5]


def test_a_call_without_a_result_is_counted_and_in_no_chain(tmp_path: Path) -> None:
    """It neither failed nor succeeded: the chain around it goes on."""
    lines = [call(1), answer(1, failed=True), call(2), call(3), answer(3)]
    (found,) = parsed(write(tmp_path / "a.jsonl", lines))
    counted = count_parsed(found)
    assert (counted.calls, counted.no_result, counted.recovered) == (3, 1, 1)
    assert counted.round_trips == 1


def test_what_the_last_turn_waits_for_is_pending(tmp_path: Path) -> None:
    """Whatever the age of the file; a call that the agent went on without is counted."""
    lines = [call(1), answer(1), call(2), call(3, message_id="m"), call(4, message_id="m")]
    (found,) = parsed(write(tmp_path / "a.jsonl", [*lines, answer(4)]))
    assert [each.call_id for each in found.calls] == ["toolu_1", "toolu_2", "toolu_4"]
    assert found.pending == 1


def test_what_the_user_interrupted_is_not_waited_for(tmp_path: Path) -> None:
    """The call gets no result any more; it is counted, with neither failure nor success."""
    text = {"type": "text", "text": "[Request interrupted by user for tool use]"}
    stop = {**answer(1), "uuid": "stop", "message": {"role": "user", "content": [text]}}
    (found,) = parsed(write(tmp_path / "a.jsonl", [call(1), stop]))
    assert ([each.status for each in found.calls], found.pending) == (["missing"], 0)


def test_sub_agents_of_the_stream_form_name_the_call_they_work_for(tmp_path: Path) -> None:
    """That call waits for them, however many turns they take."""
    inner = [each for number in (2, 3) for each in (call(number), answer(number))]
    lines = [call(1, "Task"), *({**line, "parent_tool_use_id": "toolu_1"} for line in inner)]
    (found,) = parsed(write(tmp_path / "a.jsonl", lines))
    assert ([each.call_id for each in found.calls], found.pending) == (["toolu_2", "toolu_3"], 1)
    assert {each.tags["sidechain"] for each in found.calls} == {"true"}


def test_a_session_may_begin_with_any_number_of_snapshots(tmp_path: Path) -> None:
    """A resumed one does, and they bear no id of the session."""
    snapshot = {"type": "file-history-snapshot", "messageId": "m", "snapshot": {}}
    lines = [snapshot] * 60 + [call(1), answer(1, failed=True)]
    (found,) = parsed(write(tmp_path / "a.jsonl", lines))
    assert found.failures == 1


def test_an_agent_that_waits_has_not_gone_on(tmp_path: Path) -> None:
    """Turns of sub-agents in the same file decide nothing; its own next turn decides for all."""
    inner = [call(2, isSidechain=True), call(3, isSidechain=True), answer(3, isSidechain=True)]
    lines = [call(1, "Task"), *inner]
    (waiting,) = parsed(write(tmp_path / "a.jsonl", lines))
    assert ([each.call_id for each in waiting.calls], waiting.pending) == (["toolu_3"], 2)
    (done,) = parsed(write(tmp_path / "a.jsonl", [*lines, answer(1), call(4), answer(4)]))
    assert (len(done.calls), done.pending) == (4, 0)
    assert done.key == waiting.key
    agent = [{**line, "agentId": "a1"} for line in inner]
    (alone,) = parsed(write(tmp_path / "agent-a1.jsonl", agent))
    assert (len(alone.calls), alone.pending) == (2, 0)


def test_old_sub_agents_belong_to_the_file_new_ones_have_their_own(tmp_path: Path) -> None:
    """One file is one conversation, whatever session id its lines carry."""
    old = [call(1), call(2, isSidechain=True), answer(2, isSidechain=True), answer(1)]
    new = [call(3, isSidechain=True, agentId="a1"), answer(3, isSidechain=True, agentId="a1")]
    (parent,) = parsed(write(tmp_path / "s.jsonl", old))
    (agent,) = parsed(write(tmp_path / "s" / "subagents" / "agent-a1.jsonl", new))
    assert len(parent.calls) == 2
    assert parent.calls[1].tags == {"sidechain": "true"}
    assert agent.label == f"{parent.label}/a1"
    assert agent.key != parent.key
    assert agent.calls[0].run_id == parent.calls[0].run_id


def test_a_session_is_itself_wherever_its_file_lies_and_however_it_grows(tmp_path: Path) -> None:
    """Copied, renamed and continued files give the same key and the same calls."""
    lines = [call(1), answer(1, failed=True), call(2), answer(2)]
    (first,) = parsed(write(tmp_path / "a.jsonl", lines))
    (again,) = parsed(write(tmp_path / "b" / "other.jsonl", lines))
    (grown,) = parsed(write(tmp_path / "c.jsonl", [*lines, call(3), answer(3)]))
    assert first == again
    assert grown.key == first.key
    assert grown.calls[:2] == first.calls


def test_two_sessions_are_two_though_they_share_what_they_can(tmp_path: Path) -> None:
    """Fixtures reuse session ids; another beginning is another conversation."""
    (first,) = parsed(write(tmp_path / "a.jsonl", [call(1), answer(1)]))
    (other,) = parsed(write(tmp_path / "b.jsonl", [call(1, input={"path": "b"}), answer(1)]))
    (forked,) = parsed(
        write(tmp_path / "c.jsonl", [call(1, sessionId="f"), answer(1, sessionId="f")])
    )
    assert len({first.key, other.key, forked.key}) == 3


def test_a_session_without_times_keeps_its_order(tmp_path: Path) -> None:
    """Lines without timestamps are marked as untimed and stay in the order of the file."""
    lines = [call(1), answer(1, failed=True), call(2), answer(2)]
    for line in lines:
        del line["timestamp"]
    (found,) = parsed(write(tmp_path / "a.jsonl", lines))
    assert not found.timed
    assert {each.started_at for each in found.calls} == {None}
    assert count_parsed(found).recovered == 1


def test_calls_are_in_the_order_of_their_times(tmp_path: Path) -> None:
    """Sub-agents that ran at once stand one after the other in old files; time tells the order."""
    lines = [call(1), answer(1, failed=True), call(4), answer(4), call(2), answer(2, failed=True)]
    (found,) = parsed(write(tmp_path / "a.jsonl", lines))
    assert [each.call_id for each in found.calls] == ["toolu_1", "toolu_2", "toolu_4"]
    assert count_parsed(found).round_trips == 2


def test_a_refusal_is_told_from_a_failure(tmp_path: Path) -> None:
    """By its text, by the words of the user, or by the metadata of the stream form."""
    meta = [{"id": "toolu_3", "non_execution_kind": "user-rejected"}]
    lines = [
        call(1, "Bash"),
        answer(1, "The user doesn't want to proceed with this tool use.", failed=True),
        call(2, "Bash"),
        answer(2, "please add transformer.js too first", failed=True),
        call(3, "Write"),
        answer(3, "make it blue", failed=True, tool_result_meta=meta),
        call(4, "Bash"),
        answer(4, "This command requires approval", failed=True),
    ]
    (found,) = parsed(write(tmp_path / "a.jsonl", lines))
    seen = [classify(each.text, tool=each.tool, rule=each.rule) for each in found.calls]
    assert [each.code for each in seen] == [*["rejected_by_user"] * 3, "permission_denied"]
    assert {each.audience for each in seen} == {"user"}
    assert found.failures == 4


def test_the_second_copy_of_a_result_is_asked_for_interruptions_only(tmp_path: Path) -> None:
    """``toolUseResult`` makes no failure; an interruption it tells of is a mark."""
    lines = [
        call(1, "Bash"),
        answer(1, "half", toolUseResult={"interrupted": True}),
        call(2, "Bash"),
        answer(2, "done", toolUseResult="Error: not so"),
    ]
    (found,) = parsed(write(tmp_path / "a.jsonl", lines))
    assert [(each.status, each.soft) for each in found.calls] == [
        ("ok", "interrupted"),
        ("ok", None),
    ]


def test_the_release_and_model_are_kept_and_synthetic_messages_have_none(tmp_path: Path) -> None:
    """The version is the release of the agent; error messages of the harness name no model."""
    lines = [call(1), answer(1), call(2, model="<synthetic>"), answer(2)]
    (found,) = parsed(write(tmp_path / "a.jsonl", lines))
    assert [each.model for each in found.calls] == ["claude-x", None]
    assert {each.release for each in found.calls} == {"2.0.42"}
    assert (found.agent, found.provider) == ("claude-code", "anthropic")


def test_the_stream_form_is_read_too(tmp_path: Path) -> None:
    """``session_id`` instead of ``sessionId``, and lines of init and result around it."""
    lines = [call(1, session_id="s1"), answer(1, session_id="s1", failed=True)]
    for line in lines:
        del line["sessionId"]
        del line["timestamp"]
    frame = [{"type": "system", "subtype": "init", "session_id": "s1"}]
    end = [{"type": "result", "subtype": "success", "session_id": "s1"}]
    (found,) = parsed(write(tmp_path / "a.jsonl", [*frame, *lines, *end]))
    assert (found.label, found.failures) == ("s1", 1)
