"""Plants every break of `breaks` into a copy of the checkout and sees that a test finds it.

Run it with the Python that has the development tools::

    python tests/breaks/run.py [NAME...] [--jobs 2] [--whole] [--clean]

The checkout itself is never changed. The exit code is 0 if every break was found.
"""

# ruff: noqa: T201 - what a program prints is its result

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from tests.breaks.breaks import Break

REPOSITORY: Final = Path(__file__).resolve().parents[2]
ROOMS: Final = ("sdk", "collector", "dashboard", "migrations", "demo")
PACKAGES: Final = {
    "toolfault": "sdk",
    "toolfault_collector": "collector",
    "toolfault_dashboard": "dashboard",
    "toolfault_migrations": "migrations",
    "toolfault_demo": "demo",
}
# What pytest says with one test that failed or could not be set up; a module that cannot even be
# imported is named without a test, and is none: the break would be found by anything.
_RED: Final = re.compile(r"^(?:FAILED|ERROR) (\S+?::.*?)(?: - .*)?$", re.MULTILINE)


class BadList(Exception):
    """The list and the product do not fit together (any more)."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one break: the test that found it, if one did."""

    name: str
    test: str | None
    seconds: float
    note: str = ""


class Copy:
    """A copy of the checkout's tracked files, in which one break at a time is planted."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        listed = subprocess.run(
            ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
            cwd=REPOSITORY, capture_output=True, text=True, check=True,
        )  # fmt: skip
        for name in filter(None, listed.stdout.split("\0")):
            source, target = REPOSITORY / name, folder / name
            if source.is_file():  # not one that was removed and is still in the index
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(source, target)
        # Compiled once, and each file known by its content: a broken one is compiled anew, not
        # taken for the one of before.
        self._python(
            "-m", "compileall", "-q", "--invalidation-mode", "checked-hash", *ROOMS
        ).check_returncode()
        self._must_come_first()

    def _must_come_first(self) -> None:
        """See that the copy is imported: editable installs name the checkout."""
        for package, room in PACKAGES.items():
            found = self._python("-c", f"import {package}; print({package}.__file__)").stdout
            if not Path(found.strip()).is_relative_to(self.folder / room):
                raise BadList(f"{package} is imported from {found.strip() or 'nowhere'}")

    def pytest(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run pytest in the copy."""
        options = ("-x", "-q", "-p", "no:cacheprovider", "-p", "no:randomly", "--tb", "no")
        return self._python("-m", "pytest", *arguments, "-m", "not long", *options)

    def _python(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        path = [str(self.folder / room) for room in ROOMS] + [str(self.folder)]
        data = os.environ.get("TOOLFAULT_SHARED_DATA", str(REPOSITORY.parent / "shared" / "data"))
        frameworks = os.environ.get(
            "TOOLFAULT_ENVIRONMENTS", str(REPOSITORY / ".venv-integrations")
        )
        environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join(path),
            "PYTHONDONTWRITEBYTECODE": "1",
            "TOOLFAULT_SHARED_DATA": data,
            "TOOLFAULT_ENVIRONMENTS": frameworks,
        }
        return subprocess.run(
            [sys.executable, *arguments],
            cwd=self.folder, env=environment, capture_output=True, text=True, check=False,
        )  # fmt: skip

    @contextmanager
    def planted(self, each: Break) -> Iterator[None]:
        """Plant *each*, and take it out again.

        Raises:
            BadList: What it replaces does not stand in its file exactly once.
        """
        path = self.folder / each.file
        whole = path.read_text("utf-8")
        path.write_text(broken(each, whole), "utf-8")
        try:
            yield
        finally:
            path.write_text(whole, "utf-8")


def broken(each: Break, text: str) -> str:
    """Return *text*, the file of *each*, with the break in it.

    Raises:
        BadList: What it replaces does not stand there exactly once.
    """
    times = text.count(each.old)
    if times != 1:
        raise BadList(f"{each.name}: `old` stands {times} times in {each.file}, not once")
    return text.replace(each.old, each.new)


def seek(copy: Copy, each: Break, *, whole: bool) -> Outcome:
    """Plant *each* in *copy* and run its tests, or with *whole* all that `make test` runs."""
    if not (whole or each.found_by):
        return Outcome(each.name, None, 0.0, "no test is named")
    started = time.monotonic()
    with copy.planted(each):
        done = copy.pytest(*(() if whole else each.found_by))
    seconds = time.monotonic() - started
    red = _RED.search(done.stdout)
    if done.returncode == 1 and red is not None:
        return Outcome(each.name, red[1], seconds)
    if done.returncode == 0:
        return Outcome(each.name, None, seconds)
    last = (done.stdout.strip() or done.stderr.strip()).splitlines()[-3:]
    return Outcome(each.name, None, seconds, f"pytest {done.returncode}: {' | '.join(last)}")


def check(breaks: Sequence[Break]) -> None:
    """See that the list fits the product and each break has a name of its own.

    Raises:
        BadList: It does not.
    """
    names = [each.name for each in breaks]
    for each in breaks:
        if names.count(each.name) > 1:
            raise BadList(f"{each.name}: there are two of this name")
        broken(each, (REPOSITORY / each.file).read_text("utf-8"))


def unbroken(copy: Copy, breaks: Sequence[Break]) -> bool:
    """Run the tests of *breaks* without any of them; return whether all pass."""
    tests = sorted({test for each in breaks for test in each.found_by})
    done = copy.pytest(*tests)
    print(f"unbroken: {done.stdout.strip().splitlines()[-1]}", flush=True)
    return done.returncode == 0


def run(breaks: Sequence[Break], *, jobs: int, whole: bool, clean: bool) -> bool:
    """Seek each of *breaks*, print what became of it, and return whether all were found."""
    width = max(len(each.name) for each in breaks)
    with tempfile.TemporaryDirectory(prefix="toolfault-breaks-") as folder:
        # Resolved: what is imported says its real place.
        copies: SimpleQueue[Copy] = SimpleQueue()
        for number in range(min(jobs, len(breaks))):
            copies.put(Copy(Path(folder).resolve() / str(number)))
        if clean:
            copy = copies.get()
            if not unbroken(copy, breaks):
                return False
            copies.put(copy)

        def one(each: Break) -> Outcome:
            copy = copies.get()
            try:
                return seek(copy, each, whole=whole)
            finally:
                copies.put(copy)

        print(f"{'name':{width}} | found | seconds | by which test", flush=True)
        found = 0
        with ThreadPoolExecutor(jobs) as pool:
            for each in pool.map(one, breaks):
                found += each.test is not None
                said = "yes" if each.test else "NO"
                where = each.test or each.note
                print(f"{each.name:{width}} | {said:5} | {each.seconds:7.1f} | {where}", flush=True)
    print(f"{found} of {len(breaks)} breaks found", flush=True)
    return found == len(breaks)


def main() -> int:
    """Read the command line, run, and return the exit code."""
    sys.path.insert(0, str(REPOSITORY))
    from tests.breaks.breaks import BREAKS

    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help="a break; all of them if not given"
    )
    parser.add_argument("--jobs", type=int, default=2, help="so many at a time (2)")
    parser.add_argument("--whole", action="store_true", help="run all tests, not only `found_by`")
    parser.add_argument("--clean", action="store_true", help="run the tests without a break first")
    parser.add_argument("--check", action="store_true", help="only see that each can be planted")
    given = parser.parse_args()
    known = {each.name: each for each in BREAKS}
    if unknown := [name for name in given.names if name not in known]:
        parser.error(f"there is no break named {', '.join(unknown)}")
    chosen = [known[name] for name in given.names] or list(BREAKS)
    started = time.monotonic()
    try:
        check(chosen)
        if given.check:
            return 0
        good = run(chosen, jobs=max(1, given.jobs), whole=given.whole, clean=given.clean)
    except BadList as error:
        print(f"the list is wrong: {error}", file=sys.stderr)
        return 2
    print(f"{time.monotonic() - started:.0f} s")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
