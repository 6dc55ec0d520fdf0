"""An agent at work: it calls tools, reads what comes back, and tries again or gives up."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager
from typing import Any, Final

from toolfault_demo.attempts import Attempt, blamed, first_attempt, next_attempt
from toolfault_demo.chance import Pace
from toolfault_demo.ledger import Ledger
from toolfault_demo.models import Model
from toolfault_demo.plans import Plan, Step, fallback_for
from toolfault_demo.reading import Complaint, read_complaint

__all__ = ["Agent", "CallTool", "EnterTurn"]

# Name of the tool, argument text, call id; answers with a ``toolfault.ToolResult``.
CallTool = Callable[[str, str, str], Awaitable[Any]]

# Makes what holds while the calls of one model turn are issued.
EnterTurn = Callable[[str], AbstractContextManager[Any]]

_THINKING: Final = (1.5, 9.0)  # seconds between turns


class Agent:
    """One conversation of one model with its tools.

    Args:
        call_tool: Calls a tool by name.
        enter_turn: Says which model turn issues the next calls.
        model: Whose habits it has.
        rng: Its chances.
        lapses: Its chances to forget what it has done, apart from the others.
        pace: How time passes between its turns.
        ledger: Where it counts what it does.
    """

    def __init__(
        self,
        call_tool: CallTool,
        enter_turn: EnterTurn,
        *,
        model: Model,
        rng: random.Random,
        lapses: random.Random,
        pace: Pace,
        ledger: Ledger,
    ) -> None:
        self._call_tool = call_tool
        self._enter_turn = enter_turn
        self._model = model
        self._rng = rng
        self._lapses = lapses
        self._pace = pace
        self._ledger = ledger
        self._turns = 0
        self._calls = 0
        self._done: set[tuple[str, str]] = set()

    async def follow(self, plan: Plan) -> None:
        """Work through ``plan``; a step that was given up on may end it early."""
        self._ledger.conversations += 1
        for steps in plan:
            attempts = [first_attempt(step, self._model, self._rng) for step in steps]
            for attempt, complaint in await self._turn(attempts):
                if complaint is None:
                    await self._do_again(attempt)
                    continue
                if await self._mend(attempt, complaint):
                    continue
                if self._rng.random() < self._model.quits:
                    return
                await self._try_elsewhere(attempt.step)

    async def _do_again(self, attempt: Attempt) -> None:
        """Execute once more what has succeeded, if the model has forgotten that it did it."""
        if self._lapses.random() < self._model.forgets.get(attempt.step.tool, 0.0):
            await self._turn([attempt])

    async def _turn(self, attempts: list[Attempt]) -> list[tuple[Attempt, Complaint | None]]:
        """Call the tools of one model turn in parallel and read every answer."""
        await self._pace.think(self._rng.uniform(*_THINKING))
        self._turns += 1
        with self._enter_turn(f"t{self._turns}"):
            answers = await asyncio.gather(*(self._call(attempt) for attempt in attempts))
        return list(zip(attempts, answers, strict=True))

    async def _call(self, attempt: Attempt) -> Complaint | None:
        self._calls += 1
        call_id = f"call_{self._calls}"
        tool, arguments = attempt.step.tool, attempt.text()
        result = await self._call_tool(tool, arguments, call_id)
        again = result.success and (tool, arguments) in self._done
        self._ledger.call(tool, success=result.success, again=again)
        if result.success:
            self._done.add((tool, arguments))
        return None if result.success else read_complaint(result.to_tool_message(call_id))

    async def _mend(self, attempt: Attempt, complaint: Complaint) -> bool:
        """Try again as long as the model has patience; say whether it worked."""
        cause = blamed(attempt, complaint)
        self._ledger.open_chain(cause)
        for _ in range(self._model.patience - 1):
            if self._gives_up(complaint):
                return False
            attempt = next_attempt(attempt, complaint, model=self._model, rng=self._rng)
            self._ledger.round_trip(cause)
            [(_, answer)] = await self._turn([attempt])
            if answer is None:
                return True
            complaint = answer
        return False

    def _gives_up(self, complaint: Complaint) -> bool:
        if complaint.unavailable or complaint.for_person:
            return self._rng.random() < self._model.obeys
        return complaint.transient and self._rng.random() >= self._model.retries

    async def _try_elsewhere(self, step: Step) -> None:
        """Do something else instead of ``step``, with one attempt."""
        other = fallback_for(step.tool, self._rng)
        if other is not None and self._rng.random() < self._model.switches:
            await self._turn([first_attempt(other, self._model, self._rng)])
