"""Which version of the agent is running, without starting a process."""

from __future__ import annotations

import os
from collections.abc import Mapping

# Order: the deployment platform knows best, then the CI that built it.
_COMMIT_VARIABLES = (
    "RENDER_GIT_COMMIT",
    "RAILWAY_GIT_COMMIT_SHA",
    "VERCEL_GIT_COMMIT_SHA",
    "HEROKU_SLUG_COMMIT",
    "HEROKU_BUILD_COMMIT",
    "SOURCE_VERSION",
    "CODEBUILD_RESOLVED_SOURCE_VERSION",
    "GITHUB_SHA",
    "CI_COMMIT_SHA",
    "CIRCLE_SHA1",
    "BUILD_SOURCEVERSION",
    "BITBUCKET_COMMIT",
    "TRAVIS_COMMIT",
    "GIT_COMMIT",
)
_LEVELS = 32


def detect_agent(variables: Mapping[str, str]) -> str | None:
    """Return the service name that OpenTelemetry was given, if any."""
    name = variables.get("OTEL_SERVICE_NAME", "").strip()
    return name[:128] or None


def detect_release(variables: Mapping[str, str]) -> str | None:
    """Return the release: ``service.version``, a CI commit, or the checked-out git commit.

    A git checkout is looked for from the working directory upwards.

    Args:
        variables: Environment variables.
    """
    for pair in variables.get("OTEL_RESOURCE_ATTRIBUTES", "").split(","):
        name, _, value = pair.partition("=")
        if name.strip() == "service.version" and value.strip():
            return value.strip()[:128]
    for variable in _COMMIT_VARIABLES:
        commit = variables.get(variable, "").strip()
        if commit:
            return commit[:128]
    try:
        return _git_commit(os.getcwd())  # noqa: PTH109 - paths are texts here
    except OSError:  # the working directory was removed, or may not be read
        return None


def _git_commit(start: str) -> str | None:
    place = start
    for _ in range(_LEVELS):
        marker = os.path.join(place, ".git")  # noqa: PTH118 - paths are texts here
        if os.path.exists(marker):  # noqa: PTH110
            return _head_commit(marker)
        parent = os.path.dirname(place)  # noqa: PTH120
        if parent == place:
            return None
        place = parent
    return None


def _head_commit(marker: str) -> str | None:
    """Read the commit of HEAD by hand (gitrepository-layout(5))."""
    directory = marker
    if os.path.isfile(marker):  # noqa: PTH113 - a worktree or submodule: "gitdir: PATH"
        pointer = _first_line(marker)
        if not pointer.startswith("gitdir: "):
            return None
        directory = os.path.join(os.path.dirname(marker), pointer[8:])  # noqa: PTH118, PTH120
    head = _first_line(os.path.join(directory, "HEAD"))  # noqa: PTH118
    if not head.startswith("ref: "):
        return _commit(head)
    reference = head[5:]
    common = _first_line(os.path.join(directory, "commondir"))  # noqa: PTH118
    shared = os.path.join(directory, common) if common else directory  # noqa: PTH118
    for place in (directory, shared):
        found = _commit(_first_line(os.path.join(place, *reference.split("/"))))  # noqa: PTH118
        if found:
            return found
    return _packed(os.path.join(shared, "packed-refs"), reference)  # noqa: PTH118


def _packed(path: str, reference: str) -> str | None:
    try:
        with open(path, encoding="ascii", errors="replace") as lines:  # noqa: PTH123
            for line in lines:
                commit, _, name = line.strip().partition(" ")
                if name == reference:
                    return _commit(commit)
    except OSError:
        pass
    return None


def _first_line(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as lines:  # noqa: PTH123
            return lines.readline(4096).strip()
    except OSError:
        return ""


def _commit(text: str) -> str | None:
    hexadecimal = len(text) in (40, 64) and all(c in "0123456789abcdef" for c in text)
    return text if hexadecimal else None
