"""How far one failing call walks inside the SDK: its functions and files, in the calling thread.

    python benchmarks/sdk/walk.py [--list] [--check] [CASE ...]

Counts calls of functions of the package ``toolfault`` between the call of a tool and the return of
its result, with ``sys.setprofile``, which sees each call of a Python function (a comprehension
is one up to Python 3.11). The client is on and sends to memory. Everything was called before, so
that nothing is loaded or compiled any more.

Cases: ``validation`` (one wrong argument, plain function), ``hints`` (three wrong arguments and
derived hints), ``pydantic`` (three wrong arguments for a pydantic model; left out where pydantic is
not installed), ``crash`` (the tool raises), ``success``, ``capture`` (``capture_failure`` of an
exception).

Target of ``validation``: at most 120 calls in at most 12 files. With ``--check`` the program ends
with 1 where that is missed; with ``--list`` every call is printed in its order.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType

import toolfault
from toolfault.testing import MemoryTransport

ROOT = str(Path(toolfault.__file__).parent) + os.sep
MOST_CALLS = 120
MOST_FILES = 12


@toolfault.tool
def search(origin: str, passengers: int) -> list[str]:
    return [origin] * passengers


@toolfault.tool(hints="derived")
def book(origin: str, passengers: int, cabin: str = "economy") -> str:
    return f"{origin} {passengers} {cabin}"


@toolfault.tool
def crash(city: str) -> str:
    raise RuntimeError(f"no weather for {city}")


def modelled() -> Callable[[], object] | None:
    if importlib.util.find_spec("pydantic") is None:
        return None
    from pydantic import BaseModel

    class HttpRequest(BaseModel):
        url: str
        port: int
        timeout: float
        retries: int

    @toolfault.tool(model=HttpRequest)
    def http_request(url: str, port: int, timeout: float, retries: int) -> str:
        return f"{url} {port} {timeout} {retries}"

    wrong = {"url": "https://example.com/a", "port": "eighty", "timeout": "soon", "retries": [1]}
    return lambda: http_request.call(wrong)


def captured() -> None:
    toolfault.capture_failure(RuntimeError("the disk is full"), tool="save")


def cases() -> dict[str, Callable[[], object]]:
    found: dict[str, Callable[[], object] | None] = {
        "validation": lambda: search.call({"origin": "LIS", "passengers": "two"}),
        "hints": lambda: book.call({"origin": 1, "passengers": "two", "cabinet": "first"}),
        "pydantic": modelled(),
        "crash": lambda: crash.call({"city": "Lisbon"}),
        "success": lambda: search.call({"origin": "LIS", "passengers": 2}),
        "capture": captured,
    }
    return {name: run for name, run in found.items() if run is not None}


def walk(run: Callable[[], object]) -> list[tuple[str, str]]:
    """Return file and function of every call inside the SDK that ``run`` makes, in order."""
    steps: list[tuple[str, str]] = []

    def note(frame: FrameType, event: str, _: object) -> None:
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(ROOT):
            name = getattr(code, "co_qualname", code.co_name)
            steps.append((code.co_filename[len(ROOT) :], f"{code.co_firstlineno} {name}"))

    sys.setprofile(note)
    try:
        run()
    finally:
        sys.setprofile(None)
    return steps


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("cases", nargs="*", metavar="CASE")
    parser.add_argument("--list", action="store_true", help="print every call in its order")
    parser.add_argument("--check", action="store_true", help="end with 1 if the target is missed")
    given = parser.parse_args()
    toolfault.init(transport=MemoryTransport())
    missed = False
    for name, run in cases().items():
        if given.cases and name not in given.cases:
            continue
        with toolfault.conversation(f"walk of {name}"):
            run()
            run()
            toolfault.flush()
            steps = walk(run)
        files = {file for file, _ in steps}
        counted = {"case": name, "calls": len(steps), "functions": len(set(steps))}
        print(json.dumps({**counted, "files": len(files)}))
        if given.list:
            print("\n".join(f"  {file}:{function}" for file, function in steps))
        missed |= name == "validation" and (len(steps) > MOST_CALLS or len(files) > MOST_FILES)
    toolfault.close()
    return 1 if given.check and missed else 0


if __name__ == "__main__":
    sys.exit(main())
