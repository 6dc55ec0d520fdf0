"""OpenAI and Anthropic messages, in the wrappers that benchmarks and logs put around them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.collector.importers.counting import count_parsed, parsed

from toolfault_collector.clock import now_us, parse_time
from toolfault_collector.importers import Conversation, Problem, parse_file


def _call(*names: str, ids: Sequence[str] = "abc") -> dict[str, Any]:
    return {
        "role": "assistant",
        "content": None,
        "tool_calls": [
            {"id": call_id, "type": "function", "function": {"name": name, "arguments": "{}"}}
            for call_id, name in zip(ids, names, strict=False)
        ],
    }


def _tool(content: Any, call_id: str = "a", **rest: Any) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": call_id, "content": content, **rest}


CHAT = [
    {"role": "user", "content": "hello"},
    _call("t"),
    _tool("Error: user not found"),
    _call("t"),
    _tool("fine"),
]


def _write(path: Path, document: Any) -> Path:
    path.write_text(json.dumps(document), encoding="utf-8")
    return path


@pytest.mark.parametrize(
    "document",
    [
        CHAT,
        [CHAT],
        {"messages": CHAT},
        [{"messages": CHAT}],
        [{"task_id": 0, "trial": 1, "reward": 0.0, "traj": CHAT}],
        {"model": "m", "tools": [], "messages": CHAT},
        {"results": [{"id": "x", "conversation": CHAT}]},
        {"simulations": [{"id": "x", "task_id": "3", "trial": 0, "messages": CHAT}], "tasks": []},
        {"run-1": {"trajectory": CHAT}},
        {"0": CHAT},
        [{"info": {"nested": {"history": CHAT}}}],
        [{"dialogue": [], "messages": CHAT}],
    ],
)
def test_the_messages_are_found_in_any_wrapper(tmp_path: Path, document: Any) -> None:
    """Bare, wrapped, and wrapped several times: one conversation with its chain."""
    (found,) = parsed(_write(tmp_path / "a.json", document))
    counted = count_parsed(found)
    assert (counted.calls, counted.chains, counted.recovered, counted.round_trips) == (2, 1, 1, 1)
    assert not found.timed


def test_answers_without_ids_are_those_of_the_tools_they_name(tmp_path: Path) -> None:
    """Ollama gives no ids, and calls that run at once end in any order."""
    calls: list[dict[str, Any]] = [
        {"function": {"name": name, "arguments": {}}} for name in ("t", "u")
    ]
    chat = [
        {"role": "assistant", "content": "", "tool_calls": calls},
        {"role": "tool", "tool_name": "u", "content": "Error: no"},
        {"role": "tool", "tool_name": "t", "content": "fine"},
    ]
    (found,) = parsed(_write(tmp_path / "a.json", chat))
    assert [(call.tool, call.status) for call in found.calls] == [("t", "ok"), ("u", "failed")]


@pytest.mark.parametrize(
    "mark",
    [
        *({"error": True}, {"error": "no"}, {"is_error": True}, {"isError": True}),
        {"status": "error"},
    ],
)
def test_a_mark_on_the_answer_is_believed(tmp_path: Path, mark: dict[str, Any]) -> None:
    """Whatever its text; the same member that says nothing is no mark."""
    for members, status in ((mark, "failed"), (dict.fromkeys(mark), "ok")):
        (found,) = parsed(_write(tmp_path / "a.json", [_call("t"), _tool("", **members)]))
        assert [call.status for call in found.calls] == [status]


@pytest.mark.parametrize(
    "lines",
    [
        CHAT,
        [{"messages": CHAT}],
        [CHAT],
    ],
)
def test_lines_are_messages_or_conversations(tmp_path: Path, lines: list[Any]) -> None:
    """A JSONL file holds one message per line, or one conversation per line."""
    for name in ("a.jsonl", "a.json"):
        path = tmp_path / name
        path.write_text("\n".join(map(json.dumps, [*lines])), encoding="utf-8")
        (found,) = parsed(path)
        assert count_parsed(found).recovered == 1


def test_a_pretty_printed_document_under_the_name_of_lines(tmp_path: Path) -> None:
    """The suffix is a hint only."""
    path = tmp_path / "a.jsonl"
    path.write_text(json.dumps([{"messages": CHAT}], indent=2), encoding="utf-8")
    (found,) = parsed(path)
    assert found.failures == 1


@pytest.mark.parametrize(
    ("content", "failed"),
    [
        ("Error: x", True),
        ("Error", True),
        ("Errors are listed below", True),
        ("error: x", False),
        (" Error: x", False),
        ("", False),
        ("12.5", False),
        (12.5, False),
        (None, False),
        ('{"error": "x"}', False),
        ([{"type": "text", "text": "Error: x"}], True),
        ([{"type": "image_url"}, {"type": "text", "text": "fine"}], False),
        ({"text": "Error: x"}, True),
    ],
)
def test_the_failure_rule_is_the_beginning_of_the_text(
    tmp_path: Path, content: Any, failed: bool
) -> None:
    """Literally as data/README.md states it: the content starts with ``Error``."""
    (found,) = parsed(_write(tmp_path / "a.json", [_call("t"), _tool(content)]))
    assert found.failures == failed


@pytest.mark.parametrize("flag", [{"error": True}, {"is_error": True}, {"status": "error"}])
def test_a_flag_of_the_message_is_a_failure_too(tmp_path: Path, flag: dict[str, Any]) -> None:
    """Dialects that mark a failed tool message are believed."""
    (found,) = parsed(_write(tmp_path / "a.json", [_call("t"), _tool("x", **flag)]))
    assert found.failures == 1


def test_soft_failures_are_successes_with_a_mark(tmp_path: Path) -> None:
    """They close a chain like any success, and can be found by their rule."""
    messages = [_call("t"), _tool("Error"), _call("t"), _tool('{"error": "no"}')]
    (found,) = parsed(_write(tmp_path / "a.json", messages))
    assert [(each.status, each.soft) for each in found.calls] == [
        ("failed", None),
        ("ok", "json_error"),
    ]
    assert count_parsed(found).recovered == 1


def test_ids_may_repeat_within_a_conversation(tmp_path: Path) -> None:
    """An answer belongs to the nearest call of its id, not to the first or the last one."""
    messages = [_call("t"), _tool("Error"), _call("t"), _tool("ok"), _call("t"), _tool("Error")]
    (found,) = parsed(_write(tmp_path / "a.json", messages))
    assert [each.status for each in found.calls] == ["failed", "ok", "failed"]
    assert len({each.identity for each in found.calls}) == 3


def test_an_id_that_does_not_end_costs_no_time(tmp_path: Path) -> None:
    """An id of a million letters is an id like any other."""
    endless = "a" * 1_000_000
    call = {"id": endless, "function": {"name": "t", "arguments": "{}"}}
    messages = [{"role": "assistant", "tool_calls": [call]}, _tool("Error", endless)]
    (found,) = parsed(_write(tmp_path / "a.json", messages))
    assert found.failures == 1


@pytest.mark.parametrize(
    ("call_id", "grows"),
    [
        ("call_To6jjkKrBKVnDV0OhCSBvoMz", True),
        ("toolu_01WoiSkzTr1fAWXXCxvx6C3u", True),
        ("chatcmpl-tool-9fa516c6d3cd456d5b2bf8349dcfa39b", True),
        ("adk-0f8fad5b-d9cb-469f-a165-70867728950e", True),
        ("functions.get_reservation_details:0", False),
        ("call_0000000000000000000001", False),
        ("call_getTheWeatherOfTheDay2", False),
        ("VvvODy9mT", False),
        ("a", False),
    ],
)
def test_a_chat_is_known_by_an_id_that_is_unique_by_chance(
    tmp_path: Path, call_id: str, grows: bool
) -> None:
    """It is the same chat after it has grown; ids that may come again do not tell that."""
    messages = json.loads(json.dumps(CHAT).replace('"a"', f'"{call_id}"'))
    (before,) = parsed(_write(tmp_path / "a.json", messages[:3]))
    (after,) = parsed(_write(tmp_path / "b.json", messages))
    assert (before.key == after.key) == grows
    run = {"task_id": 1, "trial": 2, "traj": messages[:3]}
    (first,) = parsed(_write(tmp_path / "c.json", run))
    (second,) = parsed(_write(tmp_path / "d.json", {**run, "traj": messages}))
    assert first.key != second.key


def test_a_log_that_repeats_the_chat_on_every_line_counts_each_call_once(tmp_path: Path) -> None:
    """And so do branches of one chat: a call is known by its id, not by its place."""
    ids = ["call_To6jjkKrBKVnDV0OhCSBvoMz", "call_9kLmQ2xYvB4nT7wR5pZs1cD8"]
    first = [_call("t", ids=ids[:1]), _tool("Error", ids[0])]
    other = [{"role": "user", "content": "again"}, _call("u", ids=ids[1:]), _tool("fine", ids[1])]
    lines = [first, [*first, *other], [*first, *other[1:]]]
    path = tmp_path / "a.jsonl"
    path.write_text("\n".join(json.dumps({"messages": each}) for each in lines))
    found = parsed(path)
    assert len({each.key for each in found}) == 1
    assert {call.identity for each in found for call in each.calls} == set(ids)


def test_parallel_calls_are_one_turn(tmp_path: Path) -> None:
    """Several entries of ``tool_calls`` were issued before any of them was answered."""
    messages = [
        _call("t", "t", "u"),
        _tool("Error", "b"),
        _tool("fine", "a"),
        _call("t"),
        _tool("fine"),
    ]
    (found,) = parsed(_write(tmp_path / "a.json", messages))
    counted = count_parsed(found)
    assert (counted.calls, counted.no_result) == (4, 1)
    assert (counted.chains, counted.recovered, counted.round_trips) == (1, 1, 1)


def test_the_legacy_shape_is_read(tmp_path: Path) -> None:
    """``function_call`` and role ``function``, which have no ids."""
    call = {"role": "assistant", "content": None, "function_call": {"name": "t", "arguments": "{"}}
    messages = [
        call,
        {"role": "function", "id": "msg_1", "name": "t", "content": "Error: x"},
        call,
        {"role": "function", "name": "t", "content": "fine"},
    ]
    (found,) = parsed(_write(tmp_path / "a.json", messages))
    assert [each.status for each in found.calls] == ["failed", "ok"]


def test_items_of_the_responses_api_are_read(tmp_path: Path) -> None:
    """``function_call`` and ``function_call_output`` items in a list."""
    items = [
        {"type": "message", "role": "user", "content": "hello"},
        {"type": "function_call", "call_id": "c", "name": "t", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c", "output": "Error: x"},
    ]
    (found,) = parsed(_write(tmp_path / "a.json", items))
    assert [(each.tool, each.status) for each in found.calls] == [("t", "failed")]


def test_items_before_the_next_answer_are_one_turn(tmp_path: Path) -> None:
    """Items have no message around them; those issued together are parallel all the same."""
    items = [
        {"type": "reasoning", "content": []},
        {"type": "function_call", "call_id": "a", "name": "t", "arguments": "{}"},
        {"type": "function_call", "call_id": "b", "name": "t", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "a", "output": "Error: x"},
        {"type": "function_call_output", "call_id": "b", "output": "fine"},
        {"type": "function_call", "call_id": "c", "name": "t", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c", "output": "fine"},
    ]
    (found,) = parsed(_write(tmp_path / "a.json", items))
    counted = count_parsed(found)
    assert (counted.chains, counted.recovered, counted.round_trips) == (1, 1, 1)


def test_a_dialect_without_the_inner_function_is_read(tmp_path: Path) -> None:
    """``{id, name, arguments}`` at the top of a call, and the id as ``id`` in the answer."""
    messages = [
        {"role": "assistant", "tool_calls": [{"id": "c", "name": "t", "arguments": {"a": 1}}]},
        {"role": "tool", "id": "c", "content": "Error: x", "error": False},
    ]
    (found,) = parsed(_write(tmp_path / "a.json", {"messages": messages}))
    assert [(each.tool, each.call_id, each.status) for each in found.calls] == [
        ("t", "c", "failed")
    ]


def _use(*ids: str) -> dict[str, Any]:
    blocks = [{"type": "tool_use", "id": each, "name": "t", "input": {}} for each in ids]
    return {"role": "assistant", "content": [{"type": "text", "text": "let me"}, *blocks]}


def _result(call_id: str, **rest: Any) -> dict[str, Any]:
    block = {"type": "tool_result", "tool_use_id": call_id, "content": "Error: x", **rest}
    return {"role": "user", "content": [block]}


def test_anthropic_messages_fail_by_their_flag_alone(tmp_path: Path) -> None:
    """``is_error`` decides; a text like an error without it is a mark on a success."""
    messages = [_use("a", "b"), _result("a", is_error=True), _result("b"), _use("c"), _result("c")]
    (found,) = parsed(_write(tmp_path / "a.json", {"messages": messages}))
    assert found.format == "anthropic"
    assert [(each.status, each.soft) for each in found.calls] == [
        ("failed", None),
        ("ok", "error_prefix"),
        ("ok", "error_prefix"),
    ]
    assert count_parsed(found).round_trips == 1


def test_a_call_written_in_both_shapes_is_one(tmp_path: Path) -> None:
    """Libraries that keep the content block beside ``tool_calls`` do not make two calls."""
    messages = [{**_use("a"), "tool_calls": _call("t")["tool_calls"]}, _tool("Error: x")]
    (found,) = parsed(_write(tmp_path / "a.json", messages))
    assert [each.status for each in found.calls] == ["failed"]


def test_times_of_messages_are_kept(tmp_path: Path) -> None:
    """Where every call has a time, the conversation is timed."""
    first, second = "2025-03-01T09:00:00Z", 1740819602
    messages = [{**_call("t"), "timestamp": first}, {**_tool("Error"), "created_at": second}]
    (found,) = parsed(_write(tmp_path / "a.json", messages))
    assert found.timed
    started = parse_time(first)
    assert (found.calls[0].started_at, found.calls[0].ended_at) == (started, second * 1_000_000)


def test_trials_that_begin_alike_are_different_conversations(tmp_path: Path) -> None:
    """Equal beginnings, equal ids, even equal wholes: each counts, and is found again."""
    longer = [*CHAT, {"role": "user", "content": "bye"}]
    document = [
        {"task_id": 0, "trial": 0, "traj": CHAT},
        {"task_id": 0, "trial": 1, "traj": CHAT},
        {"task_id": 1, "traj": CHAT},
        {"task_id": 1, "traj": CHAT},
        {"traj": longer},
        {"traj": CHAT},
    ]
    path = _write(tmp_path / "a.json", document)
    keys = [found.key for found in parsed(path)]
    assert len(set(keys)) == len(document)
    moved = _write(tmp_path / "b.json", document)
    assert [found.key for found in parsed(moved)] == keys
    reordered = _write(tmp_path / "c.json", [document[4], document[0]])
    assert [found.key for found in parsed(reordered)] == [keys[4], keys[0]]


def test_annotations_added_later_do_not_make_another_conversation(tmp_path: Path) -> None:
    """Only what was said and called is part of the identity."""
    annotated = [{**message, "index": n, "annotations": []} for n, message in enumerate(CHAT)]
    (plain,) = parsed(_write(tmp_path / "a.json", CHAT))
    (later,) = parsed(_write(tmp_path / "b.json", annotated))
    assert plain.key == later.key


def test_a_conversation_with_an_id_of_its_own_may_grow(tmp_path: Path) -> None:
    """Imported again after it went on, its first calls are the same calls."""
    first = {"conversation_id": "c1", "messages": CHAT}
    grown = {"conversation_id": "c1", "messages": [*CHAT, _call("u"), _tool("fine")]}
    (before,) = parsed(_write(tmp_path / "a.json", first))
    (after,) = parsed(_write(tmp_path / "b.json", grown))
    assert before.key == after.key
    assert after.calls[:2] == before.calls


@pytest.mark.parametrize(
    ("turns", "known", "pending"),
    [
        ([_call("t", "u"), _tool("fine", "b")], "u", 1),
        ([_call("t"), {"role": "user", "content": "well?"}], "", 1),
        ([_call("t"), _call("u", ids="b"), _tool("fine", "b")], "u", 1),
        ([_call("t"), {"role": "user", "content": "well?"}, _call("u")], "t", 1),
        ([_call("t"), {"role": "user"}, {"role": "assistant", "content": "sorry"}], "t", 0),
    ],
)
def test_what_the_last_turn_waits_for_is_pending(
    tmp_path: Path, turns: list[Any], known: str, pending: int
) -> None:
    """In a chat with an id of its own; without one, what is there is all that ever will be."""
    wrapped = {"conversation_id": "c1", "messages": turns}
    (found,) = parsed(_write(tmp_path / "a.json", wrapped))
    assert ("".join(each.tool for each in found.calls), found.pending) == (known, pending)
    (whole,) = parsed(_write(tmp_path / "a.json", turns))
    assert (len(whole.calls), whole.pending) == (len(found.calls) + pending, 0)


def test_an_answer_without_its_call_is_noted(tmp_path: Path) -> None:
    """It is no call, so it counts nowhere."""
    items = list(parse_file(_write(tmp_path / "a.json", [_tool("Error"), *CHAT]), now=now_us()))
    assert isinstance(items[0], Problem)
    assert items[0].severity == "note"
    assert isinstance(items[1], Conversation)
    assert items[1].failures == 1


def test_a_tool_without_a_name_is_still_a_call(tmp_path: Path) -> None:
    """It is counted under a name that says so."""
    messages = [{"role": "assistant", "tool_calls": [{"id": "a", "function": {}}]}, _tool("Error")]
    (found,) = parsed(_write(tmp_path / "a.json", messages))
    assert [(each.tool, each.status) for each in found.calls] == [("unknown", "failed")]


def test_a_forced_format_reads_its_own_shape_only(tmp_path: Path) -> None:
    """``openai`` passes over content blocks, ``anthropic`` over tool messages."""
    path = _write(tmp_path / "a.json", [*CHAT, _use("z"), _result("z", is_error=True)])
    sizes = {
        name: len(parsed(path, format_name=name)[0].calls)
        for name in ("openai", "anthropic", "auto")
    }
    assert sizes == {"openai": 2, "anthropic": 1, "auto": 3}
