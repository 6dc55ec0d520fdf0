"""The container's own commands, run without a container engine.

Dockerfile and compose file are parsed, not imitated: what a test runs is what stands there, with
paths and port moved to where the test may write and listen.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import urllib.request
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import yaml
from tests.live_server import wait_until
from tests.wheels import install_wheels

from toolfault_collector.settings import Settings

ROOT = Path(__file__).resolve().parents[1]


@dataclass
class Stage:
    """One ``FROM`` of the Dockerfile: its base, and its instructions in order."""

    base: str
    name: str | None
    instructions: list[tuple[str, str]] = field(default_factory=list)

    def all(self, word: str) -> list[str]:
        """Arguments of every instruction *word*."""
        return [argument for found, argument in self.instructions if found == word]

    def last(self, word: str) -> str:
        """Arguments of the last instruction *word*, the one that counts."""
        return self.all(word)[-1]

    @property
    def environment(self) -> dict[str, str]:
        """What ``ENV`` sets."""
        pairs = [pair for line in self.all("ENV") for pair in shlex.split(line)]
        return dict(pair.split("=", 1) for pair in pairs)


def stages() -> list[Stage]:
    """The stages of the Dockerfile."""
    text = (ROOT / "Dockerfile").read_text(encoding="utf-8")
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    joined = re.sub(r"\\\n\s*", " ", "\n".join(lines)).splitlines()
    found: list[Stage] = []
    for line in joined:
        word, _, argument = line.partition(" ")
        if word == "FROM":
            base, _, name = argument.partition(" AS ")
            found.append(Stage(base, name or None))
        else:
            found[-1].instructions.append((word, argument.strip()))
    return found


def compose() -> dict:
    """The compose file, variables as written."""
    return yaml.safe_load((ROOT / "docker-compose.yml").read_text(encoding="utf-8"))


def test_the_image_is_built_from_files_of_the_repository():
    """Every path that the Dockerfile copies exists and passes the ignore file."""
    ignore = (ROOT / ".dockerignore").read_text(encoding="utf-8")
    allowed = [line[1:] for line in ignore.splitlines() if line.startswith("!")]

    for stage in stages():
        for argument in stage.all("COPY"):
            if argument.startswith("--from="):
                continue
            *sources, _target = argument.split()
            for source in sources:
                assert (ROOT / source).exists(), source
                assert source.split("/")[0] in allowed, f"{source} is left out by .dockerignore"


def test_everything_the_image_downloads_is_pinned_by_hash():
    """Each pip command either checks hashes or downloads nothing, and so it is with ADD."""
    added = [argument for stage in stages() for argument in stage.all("ADD")]
    assert all(re.match(r"--checksum=sha256:[0-9a-f]{64}\s+https://", each) for each in added)
    for stage in stages():
        assert not re.search(r"\b(?:curl|wget|apt-get|git)\b", " ".join(stage.all("RUN")))
    commands = [run for stage in stages() for run in stage.all("RUN") if "pip" in run]

    assert commands
    for command in commands:
        words = command.split()
        checked = "--require-hashes" in words
        offline = "--no-deps" in words and ("--no-index" in words or "wheel" in words)
        assert checked or offline, command
        for requirements in re.findall(r"-r (\S+)", command):
            assert (ROOT / "requirements" / Path(requirements).name).is_file()


def test_the_build_ends_where_sqlite_can_corrupt_a_file(installed: Path, tmp_path: Path):
    """The image's own check of the library fails on a version with the bug, and says which."""
    last = stages()[-1]
    library = next(each for each in last.all("COPY") if each.startswith("--from=sqlite"))
    assert library.split()[-1].rstrip("/") == last.environment["LD_LIBRARY_PATH"]
    check = next(run for run in last.all("RUN") if "advice_on_version" in run)
    placed = [found for found in last.instructions if found[1] in (library, check)]
    assert [argument for _, argument in placed] == [library, check], "checked before it is there"

    words = [str(installed / "bin" / "python"), *shlex.split(check)[1:]]
    for version, status, said in (
        ((3, 51, 2), 1, "SQLite 3.51.2 can corrupt"),
        ((3, 51, 3), 0, ""),
    ):
        # What Python runs first; the library of this machine has one version alone.
        (tmp_path / "sitecustomize.py").write_text(
            f"import sqlite3\nsqlite3.sqlite_version_info = {version}\n"
            f"sqlite3.sqlite_version = {'.'.join(map(str, version))!r}\n",
            encoding="utf-8",
        )
        shutil.rmtree(tmp_path / "__pycache__", ignore_errors=True)
        environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
        done = subprocess.run(words, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == status, version
        assert done.stderr.startswith(said), version


def test_the_server_in_the_image_is_nobody_special():
    """The last user is a number that is not root, so that orchestrators can check it."""
    assert int(stages()[-1].last("USER")) > 0


def test_the_image_carries_no_secret():
    """Neither build arguments nor variables name a password or a key."""
    for stage in stages():
        assert stage.all("ARG") == []
        assert not re.search("PASSWORD|SECRET|TOKEN|KEY", " ".join(stage.environment))


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment made by the image's own pip commands, on the packages of this one."""
    folder = tmp_path_factory.mktemp("image")
    source = folder / "src"
    source.mkdir()
    build = stages()[0]
    for argument in build.all("COPY"):
        *names, target = argument.split()
        for name in names:
            copy_into(name, source / target)
    pip_wheel = next(run for run in build.all("RUN") if "pip wheel" in run)
    command = pip_wheel.replace("/wheels", str(folder / "wheels"))
    subprocess.run([sys.executable, *shlex.split(command)[1:]], cwd=source, check=True, timeout=120)
    return install_wheels((folder / "wheels").glob("*.whl"), folder / "venv")


def copy_into(name: str, target: Path) -> None:
    """Copy as ``COPY`` does: a folder's contents, or a file into a folder."""
    if (ROOT / name).is_dir():
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / name, target, ignore=ignored, dirs_exist_ok=True)
    else:
        target.mkdir(exist_ok=True)
        shutil.copy(ROOT / name, target)


def exec_form(name: str, home: Path, *, port: int) -> list[str]:
    """An exec-form instruction of the last stage, with the programs of *home* and on *port*."""
    instruction = stages()[-1].last(name)
    words = json.loads(instruction[instruction.index("[") :])
    programs = {"toolfault": home / "bin" / "toolfault", "python": home / "bin" / "python"}
    moved = [word.replace("8321", str(port)) for word in words]
    return [str(programs.get(moved[0], moved[0])), *moved[1:]]


def image_environment(data: Path, **more: str) -> dict[str, str]:
    """The image's variables, its volume moved to *data*; none of this project's inherited."""
    inherited = {k: v for k, v in os.environ.items() if not k.startswith(("TOOLFAULT", "PG"))}
    return {
        **inherited,
        **{k: v.replace("/data", str(data)) for k, v in stages()[-1].environment.items()},
        "PYTHONDONTWRITEBYTECODE": "",  # pip compiles in the image, here the first start does
        **more,
    }


@pytest.mark.slow
def test_the_container_starts_reports_health_and_stops(installed: Path, tmp_path: Path):
    """ENTRYPOINT and CMD serve, HEALTHCHECK passes, SIGTERM ends it, data stays on the volume.

    All that it serves comes from its wheel, away from the checkout and without the SDK.
    """
    python = str(installed / "bin" / "python")
    where = (
        "from importlib.util import find_spec as find;"
        "print(find('toolfault_dashboard').origin, find('toolfault'))"
    )
    found = subprocess.run([python, "-c", where], cwd=tmp_path, capture_output=True, text=True)
    assert found.stdout.startswith(str(installed)), found.stdout + found.stderr
    assert found.stdout.endswith(" None\n"), "the SDK is not part of the server"

    environment = image_environment(tmp_path, TOOLFAULT_PORT="0")  # the free one of `port=0`
    start = exec_form("ENTRYPOINT", installed, port=0) + exec_form("CMD", installed, port=0)

    def is_healthy(address: str) -> bool:
        health = exec_form("HEALTHCHECK", installed, port=int(address.rpartition(":")[2]))
        return subprocess.run(health, env=environment, capture_output=True).returncode == 0

    with (tmp_path / "log").open("wb") as log:
        server = subprocess.Popen(
            start, cwd=tmp_path, env=environment, stdout=log, stderr=subprocess.STDOUT
        )
        try:
            check_pages(wait_until(is_healthy, server, tmp_path / "log"))
        finally:
            server.terminate()
            status = server.wait(60)

    assert status == 0
    assert list(tmp_path.rglob("*.db")), "the database is not on the volume"


def check_pages(address: str) -> None:
    """Look at a page, what it links and the documentation."""
    page = urllib.request.urlopen(f"{address}/sign-in", timeout=10).read().decode()
    sheets = re.findall(r'(?:href|src)="(/static/[^"]+)"', page)
    assert sheets
    documentation = ("/docs/reading", "/docs/api", "/docs/images/overview.png")
    for path in (*sheets, *documentation):
        assert urllib.request.urlopen(address + path, timeout=10).status == 200


def shell(value: str) -> str:
    """What the container's shell reads where compose has ``$$``."""
    return value.replace("$$", "$")


def test_compose_starts_one_server_unless_postgresql_is_asked_for():
    """Without a profile there is the server alone, on a volume, published on loopback."""
    services = compose()["services"]
    always = [name for name, service in services.items() if "profiles" not in service]

    assert always == ["server"]
    assert services["server"]["volumes"] == ["data:/data"]
    assert all(port.startswith("127.0.0.1:") for port in services["server"]["ports"])


def test_compose_migrates_once_before_the_server_starts():
    """With PostgreSQL a one-shot service upgrades the schema and the server waits for it."""
    services = compose()["services"]
    migrate = services["migrate"]

    assert migrate["profiles"] == services["postgres"]["profiles"] == ["postgres"]
    assert migrate["command"] == ["db", "upgrade"]
    assert migrate["restart"] == "no"
    assert migrate["depends_on"]["postgres"]["condition"] == "service_healthy"
    waits = services["server"]["depends_on"]["migrate"]
    assert waits == {"condition": "service_completed_successfully", "required": False}
    assert services["postgres"]["healthcheck"]["test"][0] == "CMD"


def test_compose_takes_away_what_the_server_does_not_need():
    """A file system to write to, capabilities, endless memory and logs; it has time to stop."""
    services = compose()["services"]

    for service in services.values():
        assert service["security_opt"] == ["no-new-privileges:true"]
        assert service["logging"]["options"]["max-size"]
        assert service["logging"]["options"]["max-file"]
    for service in (services["server"], services["migrate"]):
        assert service["read_only"] is True
        assert service["tmpfs"] == ["/tmp"]
        assert service["cap_drop"] == ["ALL"]
        assert service["mem_limit"]
        # Supervisors wait 10 s, which is what the server promises; compose's own default as well.
        assert float(service["stop_grace_period"].rstrip("s")) > 10 > Settings().stop_seconds


def test_compose_has_no_default_password():
    """Every variable that is a password comes from outside and is empty without it."""
    for service in compose()["services"].values():
        for name, value in service.get("environment", {}).items():
            if "PASSWORD" in name:
                assert re.fullmatch(r"\$\{\w+:-\}", value), (name, value)
    text = (ROOT / "docker-compose.yml").read_text(encoding="utf-8")
    assert not re.search(r"://[^\s/@]*:[^\s/@]*@", text), "an address with a password"


def test_compose_takes_the_database_from_one_variable():
    """Server and migration use the address that was given, and SQLite without one."""
    services = compose()["services"]

    for name in ("server", "migrate", "postgres"):
        given = services[name]["environment"]["TOOLFAULT_DATABASE_URL"]
        assert given == "${TOOLFAULT_DATABASE_URL:-}", name


ADDRESS = "postgresql://toolfault@postgres:5432/toolfault"


@pytest.mark.parametrize(
    ("address", "password", "said"),
    [
        (ADDRESS, "chosen", ""),
        (ADDRESS, "", "choose a password: POSTGRES_PASSWORD="),
        ("", "chosen", f"the server would use SQLite: set TOOLFAULT_DATABASE_URL={ADDRESS}"),
    ],
)
def test_postgresql_refuses_to_start_for_a_server_that_cannot_use_it(
    tmp_path: Path, address: str, password: str, said: str
):
    """The database's own command says which variable to set, or hands over to the image's."""
    service = compose()["services"]["postgres"]
    fake = tmp_path / "docker-entrypoint.sh"
    fake.write_text('#!/bin/sh\necho "started $*"\n', encoding="utf-8")
    fake.chmod(0o755)
    command = [shell(word) for word in [*service["entrypoint"], *service["command"]]]
    path = f"{tmp_path}{os.pathsep}{os.environ['PATH']}"
    given = {"POSTGRES_PASSWORD": password, "TOOLFAULT_DATABASE_URL": address}

    done = subprocess.run(
        command,
        env={"PATH": path, **given},
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )

    assert (done.returncode == 0) == (not said)
    assert done.stdout == ("" if said else "started postgres\n")
    assert said in done.stderr


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"CLICKHOUSE_PASSWORD": "chosen"}, "set TOOLFAULT_EVENTS_URL=clickhousedb://"),
        ({"TOOLFAULT_EVENTS_URL": "clickhousedb://toolfault@clickhouse"}, "choose a password"),
    ],
)
def test_clickhouse_refuses_to_start_for_nobody_and_without_a_password(
    given: dict[str, str], said: str
):
    """Its own command says which variable to set."""
    command = [shell(word) for word in compose()["services"]["clickhouse"]["entrypoint"]]
    done = subprocess.run(
        command,
        env={"PATH": os.environ["PATH"], **given},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode != 0
    assert said in done.stderr


@pytest.mark.long  # the server that starts makes the same schema from the same wheel
def test_the_migrate_service_brings_a_database_to_the_newest_schema(
    installed: Path, tmp_path: Path
):
    """Its command upgrades an empty database (again: tests/migrations)."""
    command = [str(installed / "bin" / "toolfault"), *compose()["services"]["migrate"]["command"]]
    environment = image_environment(tmp_path)

    done = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr

    check = [command[0], "db", "check"]
    assert subprocess.run(check, cwd=tmp_path, env=environment, check=False).returncode == 0


@pytest.mark.parametrize("profile", [[], ["--profile", "postgres"]])
def test_compose_accepts_its_file(profile: list[str]):
    """The compose client itself reads the file, where there is one."""
    client = next((c for c in (["docker", "compose"], ["docker-compose"]) if answers(c)), None)
    if client is None:
        pytest.skip("no docker compose client on this machine")

    done = subprocess.run(
        [*client, *profile, "config", "--quiet"],
        cwd=ROOT,
        env={
            **os.environ,
            "POSTGRES_PASSWORD": "chosen" if profile else "",
            "TOOLFAULT_DATABASE_URL": ADDRESS if profile else "",
        },
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stderr


def answers(client: list[str]) -> bool:
    """Whether *client* is a compose of the present specification (version 2 or newer)."""
    if shutil.which(client[0]) is None:
        return False
    done = subprocess.run([*client, "version", "--short"], capture_output=True, text=True)
    return done.returncode == 0 and not done.stdout.startswith("1.")
