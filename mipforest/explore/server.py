"""The server of the page of ``mipforest explore``: on this machine alone, for who has the address with its token.

A page of another origin neither reads nor changes anything. A request has to name the server's own host (which keeps
out names that are made to lead here), to come from no other origin, and to carry the token: the page in its address,
its script in a header, which no other origin may send. Files are not served; the page, its script and its style are
parts of the package.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from functools import partial
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.resources import files
from secrets import compare_digest, token_urlsafe
from typing import Any
from urllib.parse import parse_qs, urlsplit

from mipforest.errors import MipforestError
from mipforest.explore.explorer import Explorer

#: Where the server listens.
HOST = "127.0.0.1"

#: Most bytes of a request.
MAX_BYTES = 100_000

#: Seconds after which a page that says nothing is hung up on.
PATIENCE = 30

#: Nothing from elsewhere is loaded, sent or framed.
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; "
    "frame-ancestors 'none'; base-uri 'none'; form-action 'none'"
)

#: Parts of the page by path: name of the file, and its type.
PARTS = {
    "/": ("page.html", "text/html"),
    "/page.js": ("page.js", "text/javascript"),
    "/page.css": ("page.css", "text/css"),
}


class ExploreServer(ThreadingHTTPServer):
    """Serves one explorer.

    Parameters
    ----------
    explorer
        What is shown and edited.
    port
        Where to listen; 0 for any that is free.

    Raises
    ------
    OSError
        If the port is taken.

    Attributes
    ----------
    address
        The address of the page, with its token.
    """

    daemon_threads = True

    def __init__(self, explorer: Explorer, port: int = 0) -> None:
        self.token = token_urlsafe(24)
        super().__init__((HOST, port), partial(_Handler, explorer, self.token))
        self.host = f"{HOST}:{self.server_port}"
        self.address = f"http://{self.host}/?token={self.token}"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing of a page that was closed."""
        if not isinstance(sys.exc_info()[1], ConnectionError | TimeoutError):
            super().handle_error(request, client_address)


class _Handler(BaseHTTPRequestHandler):
    """Answers one request after the other."""

    server_version, sys_version = "mipforest", ""
    timeout = PATIENCE

    def __init__(self, explorer: Explorer, token: str, *given: Any) -> None:
        self._explorer, self._token = explorer, token
        super().__init__(*given)

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing: the page shows what happens."""

    def do_GET(self) -> None:
        """Send a part of the page."""
        path = urlsplit(self.path)
        if not self._is_own() or path.path not in PARTS:
            self._send(HTTPStatus.NOT_FOUND, b"", "text/plain")
            return
        given = parse_qs(path.query).get("token", [""])[-1]
        if path.path == "/" and not compare_digest(given.encode(), self._token.encode()):
            told = b"The address lacks its token: use the one that mipforest explore has written."
            self._send(HTTPStatus.FORBIDDEN, told, "text/plain")
            return
        name, kind = PARTS[path.path]
        self._send(HTTPStatus.OK, files("mipforest.explore").joinpath(name).read_bytes(), kind)

    def do_POST(self) -> None:
        """Answer the page's script."""
        token = self.headers.get("X-Token", "")
        size = self.headers.get("Content-Length", "")
        if not self._is_own() or not compare_digest(token.encode(), self._token.encode()):
            self._refuse(HTTPStatus.FORBIDDEN, "the request has no token of this server")
        elif not size.isdecimal() or int(size) > MAX_BYTES:
            self._refuse(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "the request is too long")
        else:
            self._answer(self.rfile.read(int(size)))

    def _answer(self, body: bytes) -> None:
        explorer = self._explorer
        answers: Mapping[str, Callable[[Mapping[str, Any]], Any]] = {
            "/state": explorer.state,
            "/edit": self._edit,
            "/alternatives": explorer.alternatives,
            "/curve": explorer.curve,
            "/near": explorer.near,
            "/groups": explorer.groups,
            "/written": explorer.written,
        }
        answer = answers.get(self.path)
        if answer is None:
            self._refuse(HTTPStatus.NOT_FOUND, "there is nothing here")
            return
        try:
            entries = json.loads(body or b"{}")
            if not isinstance(entries, dict):
                raise ValueError("it is no object")
        except (ValueError, RecursionError) as error:
            self._refuse(HTTPStatus.BAD_REQUEST, f"the request is no JSON: {error}")
            return
        try:
            found = answer(entries)
        except (MipforestError, ValueError) as error:
            self._refuse(HTTPStatus.UNPROCESSABLE_ENTITY, str(error))
            return
        self._send(HTTPStatus.OK, json.dumps(found).encode(), "application/json")

    def _edit(self, entries: Mapping[str, Any]) -> Any:
        self._explorer.act(str(entries.get("action")), entries)
        return self._explorer.state()

    def _is_own(self) -> bool:
        """Return whether a request names this server, and comes from none of another origin."""
        assert isinstance(self.server, ExploreServer)
        host = self.server.host
        return self.headers.get("Host") == host and self.headers.get("Origin") in (None, f"http://{host}")

    def _refuse(self, status: HTTPStatus, why: str) -> None:
        self._send(status, json.dumps({"error": why}).encode(), "application/json")

    def _send(self, status: HTTPStatus, body: bytes, kind: str) -> None:
        self.send_response(status)
        for name, value in (
            ("Content-Type", f"{kind}; charset=utf-8"),
            ("Content-Length", str(len(body))),
            ("Content-Security-Policy", POLICY),
            ("Cache-Control", "no-store"),
            ("Referrer-Policy", "no-referrer"),
            ("X-Content-Type-Options", "nosniff"),
        ):
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)
