"""Signing in and out, theme and clock: the only pages that work without a session."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated as Doc
from typing import ClassVar, Final
from urllib.parse import quote, unquote, urlsplit

from fastapi import APIRouter, Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from toolfault_dashboard.access import signin
from toolfault_dashboard.access.security import cookie_name
from toolfault_dashboard.formats import plural
from toolfault_dashboard.pages.shared.ask import Services
from toolfault_dashboard.pages.shared.forms import Submitted
from toolfault_dashboard.pages.shared.frame import Context
from toolfault_dashboard.pages.shared.shell import bare_shell
from toolfault_dashboard.render import environment

__all__ = ["router"]


@dataclass(frozen=True, slots=True)
class SignInContext(Context):
    """What `sign_in.html` shows."""

    template: ClassVar[str] = "sign_in.html"

    token: Doc[str, "The token of a link that works; empty to explain how to get one."]
    problem: Doc[str, "Why a link did not work; empty if none was followed."]
    next: Doc[str, "Path to go to after signing in."]
    command: Doc[str, "What to run on the server for a new link."]


router = APIRouter()

_YEAR: Final = 365 * 24 * 3_600
# Where to go after signing in: a link from the command line cannot know it.
_NEXT: Final = "toolfault-next"
_NEXT_SECONDS: Final = 3_600


def local_path(text: str) -> str:
    """Return *text* if it is a path on this server, else ``/``: no open redirect."""
    try:
        parts = urlsplit(text)
    except ValueError:  # "//[", an address without an end
        return "/"
    own = text.startswith("/") and not text.startswith(("//", "/\\"))
    if parts.scheme or parts.netloc or not own or any(ord(letter) < 32 for letter in text):
        return "/"
    return text


def _page(
    request: Request,
    *,
    token: str = "",
    problem: str = "",
    next_path: str = "/",
    status: int = 200,
) -> Response:
    command = signin.link_command(str(request.base_url).rstrip("/"))
    html = (
        environment()
        .get_template(SignInContext.template)
        .render(
            shell=bare_shell(request, "Sign in"),
            page=SignInContext(token, problem, next_path, command),
        )
    )
    return HTMLResponse(html, status_code=status)


@router.get("/sign-in", name="sign_in")
def sign_in_page(request: Request, token: str = "", next: str = "") -> Response:  # noqa: A002
    """Show the button of a link, or explain where links come from.

    Following a link signs nobody in: mail scanners and previews follow links too.
    """
    services: Services = request.app.state.services
    path = local_path(next or unquote(request.cookies.get(_NEXT, "")))
    if path.startswith("/sign-in"):
        path = "/"
    if not token:
        if request.state.viewer is not None:
            return RedirectResponse(path, status_code=303)
        response = _page(request)
        if next:
            response.set_cookie(
                _NEXT, quote(path), max_age=_NEXT_SECONDS, path="/sign-in", httponly=True,
                samesite="lax",
            )  # fmt: skip
        return response
    with services.engine.connect() as conn:
        valid = signin.link_is_valid(conn, token, now=services.clock())
    if not valid:
        return _page(request, problem=str(signin.SignInError()), status=410)
    return _page(request, token=token, next_path=path)


@router.post("/sign-in", name="sign_in_submit")
def sign_in(request: Request, form: Submitted) -> Response:
    """Use up the link and begin a session; one from before ends, so no session is fixed."""
    services: Services = request.app.state.services
    now = services.clock()
    try:
        cookie = signin.sign_in(services.engine, form.get("token", ""), now=now)
    except signin.SignInError as error:
        return _refusal(request, error)
    services.lockout.succeed(_address(request))
    if request.state.viewer is not None:
        signin.sign_out(services.engine, request.state.viewer, now=now)
    response = RedirectResponse(local_path(form.get("next", "/")), status_code=303)
    response.set_cookie(
        cookie_name(request.scope),
        cookie,
        max_age=signin.SESSION_LIFETIME // 1_000_000,
        path="/",
        secure=request.url.scheme == "https",
        httponly=True,
        samesite="lax",
    )
    response.delete_cookie(_NEXT, path="/sign-in", httponly=True, samesite="lax")
    return response


def _address(request: Request) -> str:
    return request.client.host if request.client is not None else ""


def _refusal(request: Request, error: signin.SignInError) -> Response:
    """Say that a link does not work, or that its sender has tried too many."""
    services: Services = request.app.state.services
    wait = services.lockout.fail(_address(request))
    if not wait:
        return _page(request, problem=str(error), status=410)
    sentence = (
        "Too many links from your address did not work."
        f" Wait {plural(-(-wait // 60), 'minute')}; a link that works is let in even now."
    )
    response = _page(request, problem=sentence, status=429)
    response.headers["Retry-After"] = str(wait)
    return response


@router.post("/sign-out", name="sign_out")
def sign_out(request: Request) -> Response:
    """End the session on the server, not in the browser alone."""
    services: Services = request.app.state.services
    signin.sign_out(services.engine, request.state.viewer, now=services.clock())
    response = RedirectResponse("/sign-in", status_code=303)
    response.delete_cookie(cookie_name(request.scope), path="/", httponly=True, samesite="lax")
    return response


@router.post("/theme", name="theme")
def theme(request: Request, form: Submitted) -> Response:
    """Keep the chosen theme in a cookie, or forget it for the system's choice."""
    return _kept(request, form, "theme", ("light", "dark"))


@router.post("/clock", name="clock")
def clock(request: Request, form: Submitted) -> Response:
    """Keep in a cookie that times are to be in UTC, or forget it for the reader's own zone."""
    return _kept(request, form, "clock", ("utc",))


def _kept(
    request: Request, form: Mapping[str, str], name: str, choices: tuple[str, ...]
) -> Response:
    """Keep the choice *name* of a form as a cookie for a year; what is no choice ends it."""
    response = RedirectResponse(local_path(form.get("next", "/")), status_code=303)
    chosen = form.get(name, "")
    if chosen in choices:
        secure = request.url.scheme == "https"
        response.set_cookie(
            name, chosen, max_age=_YEAR, path="/", secure=secure, httponly=True, samesite="lax"
        )
    else:
        response.delete_cookie(name, path="/")
    return response
