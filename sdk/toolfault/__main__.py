"""``python -m toolfault``: the doctor, and hooks of agents that are not Python."""

from __future__ import annotations

import argparse
import json
import os
import sys

from toolfault.integrations import _discover
from toolfault.telemetry import _api
from toolfault.telemetry._claude_code import capture_hook
from toolfault.telemetry._doctor import examine

__all__ = ["main"]

_HOOK_HELP = """\
Put this into .claude/settings.json (of the project, or of your home folder), and set TOOLFAULT_DSN
in the environment that Claude Code is started from. Nothing is sent without it, and a collector
that cannot be reached never holds up the agent for more than two seconds.

{
  "hooks": {
    "PostToolUse": [
      {"matcher": "*", "hooks": [
        {"type": "command", "command": "python -m toolfault hook claude-code"}]}
    ],
    "PostToolUseFailure": [
      {"matcher": "*", "hooks": [
        {"type": "command", "command": "python -m toolfault hook claude-code"}]}
    ]
  }
}
"""


def main(arguments: list[str] | None = None) -> int:
    """Run a command and return its exit code."""
    parser = argparse.ArgumentParser(prog="python -m toolfault")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    doctor = commands.add_parser("doctor", help="find out why events do not arrive")
    doctor.add_argument("--dsn", help="default: TOOLFAULT_DSN")
    hook = commands.add_parser(
        "hook",
        help="capture the tool calls of another agent",
        description="Capture the tool call that an agent tells of on standard input.",
        epilog=_HOOK_HELP,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    hook.add_argument("agent", choices=["claude-code"])
    given = parser.parse_args(arguments)
    if given.command == "doctor":
        return _doctor(given.dsn or os.environ.get("TOOLFAULT_DSN"))
    return _hook()


def _doctor(dsn: str | None) -> int:
    _tell_frameworks()
    findings = examine(dsn)
    width = max(len(finding.step) for finding in findings)
    for step, is_ok, text in findings:
        sys.stdout.write(f"{'ok  ' if is_ok else 'FAIL'}  {step:<{width}}  {text}\n")
    return 0 if all(finding.ok for finding in findings) else 1


def _tell_frameworks() -> None:
    """Say which agent frameworks are installed, what of them is hooked, and what is missing."""
    for name, version, hooked, missing in _discover.examine():
        state = "FAIL" if missing else "ok  "
        sys.stdout.write(f"{state}  {name}  {version}: hooked {', '.join(hooked) or 'nothing'}\n")
        for place in missing:
            sys.stdout.write(f"      missing in this version: {place}\n")


def _hook() -> int:
    """Capture the message on stdin; say nothing on stdout, which belongs to the agent."""
    try:
        message = json.load(sys.stdin)
        if not isinstance(message, dict):
            raise TypeError  # noqa: TRY301 - one message for everything that is no hook message
    except (ValueError, TypeError, RecursionError):
        sys.stderr.write("toolfault: expected the JSON object of a Claude Code hook on stdin\n")
        return 1
    # What lies around is the project that the agent edits, not the agent.
    client = _api.start({"successes": "all"}, here=False)
    if client is not None:
        capture_hook(client, message)
        _api.close(2.0, ends=False)  # the next call of the conversation is another process
    return 0


if __name__ == "__main__":
    sys.exit(main())
