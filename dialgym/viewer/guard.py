"""Who may ask the viewer: whoever knows its token, from a page of its own.

Other sites that are open in the same browser can send requests to this machine. So each request
needs the token (a cookie that the browser sends to no other site's requests, `SameSite=Strict`), a
`Host` that is ours, lest a foreign name be pointed at this machine (DNS rebinding), and where the
browser says who asks (`Origin`, `Sec-Fetch-Site`) it must be ourselves.
"""

from collections.abc import Mapping
from hmac import compare_digest
from secrets import token_urlsafe
from typing import Any, NamedTuple
from urllib.parse import urlsplit

LOOPBACK = ("127.0.0.1", "localhost", "::1")
HEADER = "x-dialgym-token"
QUERY = "token"
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
"""Nothing but our own files is loaded, and no script within a page runs."""
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-store",
}


class Refusal(NamedTuple):
    """Why a request is not answered."""

    status: int
    detail: str


class Guard:
    """Tells which requests are answered.

    Args:
        port: at which the viewer listens; it is in the name of the cookie, as browsers send those
            of one port to all others.
        hosts: names by which it may be called, beside those of this machine.
        token: that requests have to know; None for a new one.
    """

    def __init__(self, port: int, hosts: tuple[str, ...] = (), token: str | None = None) -> None:
        self.token = token or token_urlsafe(24)
        self.cookie = f"dialgym-{port}"
        self.hosts = {*LOOPBACK, *hosts}

    def refusal(
        self, method: str, headers: Mapping[str, str], cookies: Mapping[str, str], query: str = ""
    ) -> Refusal | None:
        """Why a request is refused; None where it is answered.

        Args:
            method: of HTTP.
            headers: by name in lower case.
            cookies: by name.
            query: the token in the address, if there is one.
        """
        host = headers.get("host", "")
        if host_name(host) not in self.hosts:
            return Refusal(
                403, f"this viewer is not called {host!r}; --allow-host NAME lets it be."
            )
        origin = headers.get("origin")
        foreign = origin is not None and urlsplit(origin).netloc != host
        if foreign or headers.get("sec-fetch-site", "none") not in ("none", "same-origin"):
            return Refusal(403, "this was asked by another site.")
        given = query or headers.get(HEADER) or cookies.get(self.cookie, "")
        if not compare_digest(given.encode(), self.token.encode()):
            return Refusal(403, "open the address that `dialgym view` printed; it has a token.")
        if method == "POST" and headers.get("content-type", "").split(";")[0] != "application/json":
            return Refusal(415, "expected JSON (Content-Type: application/json).")
        return None


def host_name(host: str) -> str:
    """The name in a `Host` header, without the port."""
    try:
        return urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return ""


def set_cookie(response: Any, guard: Guard) -> None:
    """Let a browser keep the token, where no script can read it, until it is closed."""
    response.set_cookie(guard.cookie, guard.token, httponly=True, samesite="strict", path="/")
