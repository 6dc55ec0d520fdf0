"""The queue in front of the writer: bounded, fair, and patient for as long as it pays."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolfault_collector.errors import WriterBusy
from toolfault_collector.pipeline.queue import FairQueue

FOREVER = 3_600.0


def _queue(*, gather_seconds: float = 0.0) -> FairQueue[str]:
    queue: FairQueue[str] = FairQueue(
        max_events=100, max_bytes=1_000, gather_seconds=gather_seconds
    )
    queue.open()
    return queue


def test_projects_take_turns() -> None:
    """However much one project has queued, each other one is served in every round."""
    queue = _queue()
    for number in range(5):
        queue.put(f"noisy {number}", project_id=1, events=10, size=1)
    queue.put("quiet", project_id=2, events=10, size=1)
    queue.put("still", project_id=3, events=10, size=1)

    taken = [item for _, item, _, _ in queue.take(50)]

    assert taken == ["noisy 0", "quiet", "still", "noisy 1", "noisy 2"]


def test_what_was_put_back_comes_again_after_the_others() -> None:
    """It keeps its place among its own project, and each other project has its turn first."""
    queue = _queue()
    for name in ("long", "next"):
        queue.put(name, project_id=1, events=10, size=1)
    taken = queue.take(10)
    assert queue.waiting == 10
    queue.put("quiet", project_id=2, events=10, size=1)
    queue.put_back(taken)

    assert (queue.events, queue.waiting, queue.items) == (30, 30, 3)
    assert [item for _, item, _, _ in queue.take(1_000)] == ["long", "quiet", "next"]


def test_a_project_of_which_nothing_else_waits_is_put_back_last() -> None:
    """Who came while the long one was in somebody's hands is before it."""
    queue = _queue()
    queue.put("long", project_id=1, events=10, size=1)
    taken = queue.take(10)
    queue.put("quiet", project_id=2, events=10, size=1)
    queue.put_back(taken)

    assert [item for _, item, _, _ in queue.take(1_000)] == ["quiet", "long"]


def test_one_project_fills_half_at_most() -> None:
    """A project that fills its share is refused, and the others are not."""
    queue = _queue()
    for _ in range(5):
        queue.put("noisy", project_id=1, events=10, size=1)

    with pytest.raises(WriterBusy, match="full"):
        queue.put("noisy", project_id=1, events=10, size=1)

    queue.put("quiet", project_id=2, events=10, size=1)
    queue.release(queue.take(1_000))
    queue.put("noisy", project_id=1, events=10, size=1)


def test_large_batch_is_let_into_an_empty_queue() -> None:
    """A batch larger than every limit is let in when nothing else waits."""
    queue = _queue()

    queue.put("large", project_id=1, events=1_000, size=10_000)

    with pytest.raises(WriterBusy):
        queue.put("small", project_id=2, events=1, size=1)


def test_closed_queue_is_emptied() -> None:
    """After closing nothing gets in, and what was in comes out."""
    queue = _queue()
    queue.put("last", project_id=1, events=1, size=1)

    queue.close()

    with pytest.raises(WriterBusy, match="stopping"):
        queue.put("late", project_id=1, events=1, size=1)
    assert [item for _, item, _, _ in queue.take(10)] == ["last"]
    assert queue.take(10) == []


@given(
    st.lists(
        st.one_of(
            st.tuples(st.integers(1, 3), st.integers(0, 40), st.integers(0, 400)),
            st.just(None),
        ),
        max_size=40,
    )
)
def test_nothing_is_lost_or_counted_wrong(steps: list[tuple[int, int, int] | None]) -> None:
    """What was let in comes out once, in order per project; an emptied queue holds nothing."""
    queue = _queue()
    put: list[tuple[int, str]] = []
    got: list[tuple[int, str]] = []
    for number, step in enumerate(steps):
        if step is None:
            if len(put) > len(got):
                taken = queue.take(30)
                got += [(project, item) for project, item, _, _ in taken]
                queue.release(taken)
            continue
        project, events, size = step
        try:
            queue.put(str(number), project_id=project, events=events, size=size)
        except WriterBusy:
            continue
        put.append((project, str(number)))
    queue.close()
    while taken := queue.take(30):
        got += [(project, item) for project, item, _, _ in taken]
        queue.release(taken)

    for project in (1, 2, 3):
        mine = [item for owner, item in put if owner == project]
        assert mine == [item for owner, item in got if owner == project]
    assert queue.events == queue.items == 0


def _names(taken: list[tuple[int, str, int, int]]) -> list[str]:
    return [item for _, item, _, _ in taken]


@pytest.fixture
def gathering(monkeypatch: pytest.MonkeyPatch) -> tuple[FairQueue[str], threading.Semaphore]:
    """A queue that gathers for as long as it takes, and a count of those who went to wait in it."""
    waits = threading.Semaphore(0)

    class Counted(threading.Condition):
        def wait(self, timeout: float | None = None) -> bool:
            """Say so first: the lock is held, so nobody changes anything before this one waits."""
            waits.release()
            return super().wait(timeout)

    with monkeypatch.context() as patched:
        patched.setattr(threading, "Condition", Counted)
        queue = _queue(gather_seconds=FOREVER)
    return queue, waits


def test_expected_items_are_taken_together(
    gathering: tuple[FairQueue[str], threading.Semaphore],
) -> None:
    """Items that are expected and come one by one leave the queue as one group."""
    queue, waits = gathering
    queue.put("first", project_id=1, events=1, size=1)
    with ThreadPoolExecutor(1) as taker:
        group = taker.submit(queue.take, 50, expected=3)
        assert waits.acquire(timeout=20)
        for name in ("second", "third"):
            queue.put(name, project_id=1, events=1, size=1)

        assert _names(group.result(FOREVER)) == ["first", "second", "third"]


def test_a_full_group_waits_for_nobody() -> None:
    """As many events as a group holds are taken, whatever number of items was expected."""
    queue = _queue(gather_seconds=FOREVER)
    queue.put("large", project_id=1, events=50, size=1)

    assert _names(queue.take(50, expected=32)) == ["large"]


def test_what_does_not_come_is_not_waited_for() -> None:
    """Who was expected and stays away holds the others up for the gathering time only."""
    queue = _queue(gather_seconds=0.001)
    queue.put("alone", project_id=1, events=1, size=1)

    assert _names(queue.take(50, expected=32)) == ["alone"]


def test_closing_ends_the_gathering() -> None:
    """A queue that is closed gives what it has at once."""
    queue = _queue(gather_seconds=FOREVER)
    queue.put("alone", project_id=1, events=1, size=1)
    with ThreadPoolExecutor(1) as taker:
        group = taker.submit(queue.take, 50, expected=32)
        queue.close()

        assert _names(group.result(FOREVER)) == ["alone"]


def test_two_who_take_end_only_with_the_queue() -> None:
    """Of two that take from one queue each item goes to one, and an empty group means the end."""
    queue = _queue(gather_seconds=0.001)

    def take_all() -> list[str]:
        mine: list[str] = []
        while taken := queue.take(3, expected=2):
            mine += _names(taken)
            queue.release(taken)
        return mine

    names = [str(number) for number in range(200)]
    with ThreadPoolExecutor(2) as takers:
        both = [takers.submit(take_all) for _ in range(2)]
        for name in names:
            while True:
                try:
                    queue.put(name, project_id=1, events=1, size=1)
                except WriterBusy:
                    continue
                break
        queue.close()
        got = [name for each in both for name in each.result(FOREVER)]

    assert sorted(got, key=int) == names


def test_closing_ends_everybody_who_gathers(
    gathering: tuple[FairQueue[str], threading.Semaphore],
) -> None:
    """Of two that gather for one item one gets it, and the other ends with the queue."""
    queue, waits = gathering
    queue.put("alone", project_id=1, events=1, size=1)
    got: list[list[str]] = []
    takers = [
        threading.Thread(target=lambda: got.append(_names(queue.take(50, expected=2))), daemon=True)
        for _ in range(2)
    ]
    for taker in takers:
        taker.start()
        assert waits.acquire(timeout=20)
    queue.close()
    for taker in takers:
        taker.join(20)

    assert sorted(got) == [[], ["alone"]]


def test_a_full_share_is_known_before_anything_is_put() -> None:
    """A queue is full of a project where nothing of it would be let in, and only then."""
    queue: FairQueue[str] = FairQueue(max_events=10, max_bytes=1_000)
    queue.open()
    assert not queue.is_full(1)
    queue.put("a", project_id=1, events=4, size=10)
    assert not queue.is_full(1)
    queue.put("b", project_id=1, events=1, size=10)
    assert queue.is_full(1)
    assert not queue.is_full(2)
    with pytest.raises(WriterBusy):
        queue.put("c", project_id=1, events=1, size=1)
    queue.put("d", project_id=2, events=5, size=10)
    assert queue.is_full(3)
    queue.release(queue.take(100))
    assert not queue.is_full(1)
