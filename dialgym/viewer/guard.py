"""Access token and origin checks of the viewer.

The token is a cookie that the browser sends to no other site's requests (`SameSite=Strict`); host
and site of a caller are checked as for every server (`dialgym.io.http_server.Callers`).
"""

from collections.abc import Iterable, Mapping
from hmac import compare_digest
from secrets import token_urlsafe
from typing import Any

from dialgym.io.http_server import Callers, Refused

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


class Guard(Callers):
    """Check callers and their token.

    Args:
        port: at which the viewer listens; it is in the name of the cookie, as browsers send those
            of one port to all others.
        hosts: as of `Callers`.
        token: that requests have to know; None for a new one.
    """

    def __init__(self, port: int, hosts: Iterable[str] = (), token: str | None = None) -> None:
        super().__init__(hosts)
        self.token = token or token_urlsafe(24)
        self.cookie = f"dialgym-{port}"

    def check_request(
        self, method: str, headers: Mapping[str, str], cookies: Mapping[str, str], query: str = ""
    ) -> None:
        """Check a request.

        Args:
            method: of HTTP.
            headers: by name in lower case.
            cookies: by name.
            query: the token in the address, if there is one.

        Raises:
            Refused: it is not answered.
        """
        self.check(headers)
        given = query or headers.get(HEADER) or cookies.get(self.cookie, "")
        if not compare_digest(given.encode(), self.token.encode()):
            raise Refused(403, "open the address that `dialgym view` printed; it has a token.")
        if method == "POST" and headers.get("content-type", "").split(";")[0] != "application/json":
            raise Refused(415, "expected JSON (Content-Type: application/json).")


def set_cookie(response: Any, guard: Guard) -> None:
    """Let a browser keep the token, where no script can read it, until it is closed."""
    response.set_cookie(guard.cookie, guard.token, httponly=True, samesite="strict", path="/")
