"""The repository itself: pins, names, and wheels that work away from the checkout."""

from __future__ import annotations

import ast
import importlib
import os
import pkgutil
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from collections.abc import Iterator
from importlib.metadata import files
from pathlib import Path

import pytest
from tests.wheels import build_wheel, install_wheels

ROOT = Path(__file__).resolve().parents[1]
ROOMS = {
    "toolfault": ROOT / "sdk" / "toolfault",
    "toolfault_collector": ROOT / "collector" / "toolfault_collector",
    "toolfault_dashboard": ROOT / "dashboard" / "toolfault_dashboard",
    "toolfault_migrations": ROOT / "migrations" / "toolfault_migrations",
    "toolfault_demo": ROOT / "demo" / "toolfault_demo",
}
# What each distribution is built from, and the packages that it contains.
SOURCES = {"toolfault": "sdk", "toolfault_demo": "demo"}
SERVER = ("toolfault_collector", "toolfault_dashboard", "toolfault_migrations")
SERVER_FILES = (
    "pyproject.toml",
    "README.md",
    "CHANGELOG.md",
    "LICENSE",
    "collector",
    "dashboard",
    "docs",
    "migrations",
)

PINNED = ("requirements", *(str(room.relative_to(ROOT)) for room in ROOMS.values()))
FOREIGN = re.compile(
    r"pypi\.org|pythonhosted\.org|registry\.npmjs|deb\.debian"
    r"|--(?:extra-)?index-url|--find-links"
    r"|(?<![\w.])/(?:work|home|Users|root)/\w|/tmp/(?:w|bash_jobs)\b"
)


def tracked() -> list[Path]:
    """Files of the repository: tracked by git, or new and not ignored."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    if listed.returncode != 0:
        pytest.skip("not a git checkout")
    return [path for name in listed.stdout.split("\0") if name and (path := ROOT / name).is_file()]


def pins(name: str) -> set[str]:
    """What a compiled requirements file pins, as name==version."""
    text = (ROOT / "requirements" / f"{name}.txt").read_text(encoding="utf-8")
    return set(re.findall(r"^([\w.\[\]-]+==[^\s;\\]+)", text, re.MULTILINE))


def test_the_server_requirements_are_the_dependencies_of_the_distribution():
    """requirements/server.in lists exactly what pyproject.toml declares."""
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    text = (ROOT / "requirements" / "server.in").read_text(encoding="utf-8")
    wanted = [line for line in text.splitlines() if line and not line.startswith("#")]

    assert sorted(wanted) == sorted(declared["project"]["dependencies"])


def test_what_the_server_imports_is_declared():
    """No package is there only because another one needs it."""
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    wanted = [*declared["dependencies"], *declared["optional-dependencies"]["parquet"]]
    names = {re.split(r"[\[>=<;]", each)[0].replace("_", "-").lower() for each in wanted}
    imported = {
        name.partition(".")[0]
        for folder in ("collector", "dashboard", "migrations")
        for path in (ROOT / folder).rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        for name in _imports(node)
    }
    foreign = imported - set(SERVER) - set(sys.stdlib_module_names)
    contained = {path.parts[0].removesuffix(".py") for each in names for path in files(each) or ()}

    assert foreign - contained == set()


def _imports(node: ast.AST) -> list[str]:
    if isinstance(node, ast.Import):
        return [each.name for each in node.names]
    return [node.module or ""] if isinstance(node, ast.ImportFrom) and not node.level else []


def test_the_build_requirements_contain_the_build_backends():
    """What pyproject.toml builds with is pinned, so that nothing is downloaded unchecked."""
    names = {pin.split("==")[0] for pin in pins("build")}

    for file in ("pyproject.toml", "sdk/pyproject.toml", "demo/pyproject.toml"):
        declared = tomllib.loads((ROOT / file).read_text(encoding="utf-8"))
        assert set(declared["build-system"]["requires"]) <= names


@pytest.mark.parametrize("part", ["server", "build"])
def test_the_development_environment_contains_the_pins_of_the_others(part: str):
    """Tests run on the versions that are shipped."""
    assert pins(part) <= pins("dev")


@pytest.mark.parametrize("name", ["server", "build", "dev"])
def test_every_pin_has_a_hash(name: str):
    """A compiled requirements file names nothing without a hash."""
    text = (ROOT / "requirements" / f"{name}.txt").read_text(encoding="utf-8")
    entries = re.split(r"\n(?=\S)", text.strip())

    assert entries
    assert all("--hash=sha256:" in entry for entry in entries)


def test_the_sdk_depends_on_nothing():
    """The SDK's distribution has no dependencies, so installing it changes nothing else."""
    declared = tomllib.loads((ROOT / "sdk" / "pyproject.toml").read_text(encoding="utf-8"))

    assert declared["project"]["dependencies"] == []


def test_what_is_compared_is_in_a_cohort():
    """No text has calls on a cohort, as they were on a side, which is where a call was reported."""
    texts = [
        path.relative_to(ROOT)
        for path in tracked()
        if path.suffix in {".html", ".md", ".py"} and ROOT / "tests" not in path.parents
    ]
    assert Path("docs/statistics.md") in texts
    said = re.compile(
        r"\bon\s+(?:an?|the|both|each|either|neither|one)\s+cohorts?\b", re.IGNORECASE
    )
    assert [path for path in texts if said.search((ROOT / path).read_text())] == []


def test_no_pin_and_no_module_names_a_machine_or_a_package_index():
    """Neither requirements nor code depend on where they were written."""
    found = [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()[:100]}"
        for path in tracked()
        if path.relative_to(ROOT).as_posix().startswith(PINNED) and path.suffix != ".svg"
        for number, line in enumerate(path.read_text("utf-8").splitlines(), start=1)
        if FOREIGN.search(line)
    ]

    assert found == []


@pytest.mark.parametrize("package", ROOMS)
def test_every_public_package_lists_its_names(package: str):
    """Each distribution's packages say in ``__all__`` what is public, and every name is there."""
    checked = 0
    for name in public_modules(package):
        module = importlib.import_module(name)
        listed = module.__dict__.get("__all__")
        if listed is None:
            assert not defines_public_names(module.__file__), f"{name} has no __all__"
            continue
        assert len(set(listed)) == len(listed), f"{name} lists a name twice"
        assert [missing for missing in listed if not hasattr(module, missing)] == [], name
        checked += 1

    assert checked > 0


def public_modules(package: str) -> Iterator[str]:
    """The package and its public modules; scripts and migration versions are no interface."""
    yield package
    found = pkgutil.walk_packages([str(ROOMS[package])], prefix=f"{package}.")
    for entry in found:
        parts = entry.name.split(".")[1:]
        if any(part.startswith("_") for part in parts) or "versions" in parts or "env" in parts:
            continue
        if parts[0] == "integrations" and len(parts) > 1:
            continue  # each needs the framework it integrates
        yield entry.name


def defines_public_names(path: str | None) -> bool:
    """Whether a module defines a function or class without a leading underscore."""
    if path is None:
        return False
    tree = ast.parse(Path(path).read_text(encoding="utf-8"))
    return any(
        isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
        and not node.name.startswith("_")
        for node in tree.body
    )


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """All distributions, built from copies of this checkout."""
    folder = tmp_path_factory.mktemp("wheels")
    for name, room in SOURCES.items():
        copy(ROOT / room, folder / name)
    (folder / "toolfault_server").mkdir()
    for part in SERVER_FILES:
        copy(ROOT / part, folder / "toolfault_server" / part)
    names = (*SOURCES, "toolfault_server")
    return {name: build_wheel(folder / name, folder) for name in names}


def copy(origin: Path, target: Path) -> None:
    """Copy a file, or a folder without what Python leaves behind."""
    if origin.is_dir():
        ignored = shutil.ignore_patterns("__pycache__", "*.egg-info")
        shutil.copytree(origin, target, ignore=ignored, dirs_exist_ok=True)
    else:
        shutil.copy(origin, target)


@pytest.mark.slow
def test_the_wheels_contain_every_file_of_their_packages(wheels: dict[str, Path]):
    """Templates, static files and migrations are inside, and nothing else at the top.

    So the server has no agents: those of the demo come with an extra.
    """
    for wheel, packages in (
        *((name, (name,)) for name in SOURCES),
        ("toolfault_server", SERVER),
    ):
        names = set(zipfile.ZipFile(wheels[wheel]).namelist())
        wanted = {
            f"{package}/{path.relative_to(ROOMS[package]).as_posix()}"
            for package in packages
            for path in tracked()
            if path.is_relative_to(ROOMS[package])
        }
        assert wanted - names == set()
        assert not [name for name in names if name.endswith("docs/text/reference.py")]
        tops = {name.split("/")[0] for name in names}
        assert {top for top in tops if not top.endswith(".dist-info")} == set(packages)


@pytest.mark.slow
def test_the_wheels_carry_license_and_description(wheels: dict[str, Path]):
    """Each wheel says what it is and under which licence."""
    for wheel in wheels.values():
        with zipfile.ZipFile(wheel) as archive:
            names = archive.namelist()
            metadata = next(name for name in names if name.endswith(".dist-info/METADATA"))
            text = archive.read(metadata).decode()
        assert any(name.endswith("licenses/LICENSE") for name in names)
        assert "License-Expression: Apache-2.0" in text
        assert len(text.split("\n\n", 1)[1]) > 200, "the README is missing"


@pytest.mark.slow
def test_the_sdk_works_from_its_wheel_alone(wheels: dict[str, Path], tmp_path: Path):
    """In an environment with nothing but the SDK, a failed call tells the model what to fix."""
    home = install_wheels([wheels["toolfault"]], tmp_path / "venv", dependencies=False)
    script = (
        "import toolfault\n"
        "@toolfault.tool\n"
        "def add(a: int, b: int) -> int: return a + b\n"
        "print(add.call({'a': 1, 'b': 'x'}).content, add.call({'a': 1, 'b': 2}).value)\n"
    )

    done = subprocess.run(
        [str(home / "bin" / "python"), "-c", script],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.stdout.startswith("Error: Invalid parameter value for b: "), done.stderr
    assert done.stdout.rstrip().endswith(" 3")


@pytest.mark.slow
def test_without_its_agents_the_demo_says_what_to_install(wheels: dict[str, Path], tmp_path: Path):
    """``toolfault demo`` is one sentence and exit code 2; the extra has what the sentence names."""
    home = install_wheels([wheels["toolfault_server"]], tmp_path / "venv")

    done = subprocess.run(
        [str(home / "bin" / "toolfault"), "demo", "--port", "0"],
        cwd=tmp_path,
        env={"PATH": os.environ["PATH"]},  # whatever else is on the path of this process
        capture_output=True,
        text=True,
        check=False,
    )

    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        "toolfault: the agents of the demo are not installed:"
        " pip install 'toolfault-server[demo]' (in a clone: pip install ./sdk ./demo).\n"
    )
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    agents = tomllib.loads((ROOT / "demo" / "pyproject.toml").read_text(encoding="utf-8"))
    assert declared["optional-dependencies"]["demo"] == [agents["project"]["name"]]


@pytest.mark.slow
def test_the_agents_of_the_demo_need_the_sdk_and_no_server(wheels: dict[str, Path], tmp_path: Path):
    """From their own wheel they ask for the address of one."""
    home = install_wheels([wheels[name] for name in SOURCES], tmp_path / "venv")

    done = subprocess.run(
        [str(home / "bin" / "python"), "-m", "toolfault_demo"],
        cwd=tmp_path,
        env={"PATH": os.environ["PATH"]},
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 2, done.stdout
    assert "set TOOLFAULT_DSN to where the agents report to" in done.stderr
