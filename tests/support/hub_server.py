"""A stand-in of the Hugging Face hub: its HTTP interface, as far as `huggingface_hub` asks for it.

Repositories are in memory. Nothing is authorised, but writing without a token is refused.
"""

import base64
import hashlib
import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from urllib.parse import unquote, urlsplit

KINDS = "models|datasets"
_API = re.compile(rf"/api/({KINDS})/(.+?)/(preupload|commit|revision|tree)/([^/]+)(/.*)?")
_INFO = re.compile(rf"/api/({KINDS})/([^/]+/[^/]+)")
_FILE = re.compile(r"/(?:(datasets)/)?([^/]+/[^/]+)/resolve/([^/]+)/(.+)")


class Hub(BaseHTTPRequestHandler):
    """Answers one request."""

    protocol_version = "HTTP/1.1"
    files: dict[tuple[str, str], dict[str, bytes]] = {}
    asked: list[str] = []

    def log_message(self, *args) -> None:
        pass

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        path = unquote(urlsplit(self.path).path)
        self.asked.append(f"POST {path}")
        if not self.headers.get("Authorization"):
            return self._json({"error": "who are you?"}, 401)
        if path == "/api/validate-yaml":
            return self._json({"errors": [], "warnings": []})
        if path == "/api/repos/create":
            asked = json.loads(body)
            name = "/".join(filter(None, (asked.get("organization"), asked["name"])))
            kind = f"{asked.get('type', 'model')}s"
            self.files.setdefault((kind, name), {})
            return self._json({"url": self._page(kind, name)})
        found = _API.fullmatch(path)
        if found is None:
            return self._json({"error": path}, 404)
        repository = self.files[found[1], found[2]]
        if found[3] == "preupload":
            wanted = json.loads(body)["files"]
            modes = [{"path": f["path"], "uploadMode": "regular"} for f in wanted]
            return self._json({"files": [{**m, "shouldIgnore": False} for m in modes]})
        for line in body.decode().splitlines():
            part = json.loads(line)
            if part["key"] == "file":
                content = base64.b64decode(part["value"]["content"])
                repository[part["value"]["path"]] = content
            if part["key"] == "deletedFile":
                del repository[part["value"]["path"]]
        commit = _commit(repository)
        url = f"{self._page(found[1], found[2])}/commit/{commit}"
        return self._json({"success": True, "commitOid": commit, "commitUrl": url})

    def do_GET(self) -> None:
        path = unquote(urlsplit(self.path).path)
        self.asked.append(f"{self.command} {path}")
        if found := _FILE.fullmatch(path):
            return self._file(found[1] or "models", found[2], found[4])
        found = _API.fullmatch(path) or _INFO.fullmatch(path)
        repository = self.files.get((found[1], found[2])) if found else None
        if repository is None:
            return self._json({"error": "Repository not found"}, 404)
        if found.re is _API and found[3] == "tree":
            listed = [
                {"type": "file", "path": name, "size": len(content), "oid": _sum(content)}
                for name, content in repository.items()
            ]
            return self._json(listed)
        siblings = [{"rfilename": name} for name in repository]
        facts = {"id": found[2], "sha": _commit(repository), "siblings": siblings}
        return self._json({**facts, "private": False, "tags": [], "downloads": 0, "likes": 0})

    do_HEAD = do_GET

    def _page(self, kind: str, name: str) -> str:
        return f"http://{self.headers['Host']}/{'datasets/' * (kind == 'datasets')}{name}"

    def _file(self, kind: str, name: str, file: str) -> None:
        repository = self.files.get((kind, name), {})
        if file not in repository:
            return self._json({"error": "Entry not found"}, 404)
        content = repository[file]
        headers = {"ETag": f'"{_sum(content)}"', "X-Repo-Commit": _commit(repository)}
        return self._send(content, 200, {**headers, "Accept-Ranges": "bytes"})

    def _json(self, value, status: int = 200) -> None:
        code = {404: {"X-Error-Code": "RepoNotFound"}}.get(status, {})
        self._send(json.dumps(value).encode(), status, {"Content-Type": "application/json", **code})

    def _send(self, content: bytes, status: int, headers: dict[str, str]) -> None:
        self.send_response(status)
        for name, value in {**headers, "Content-Length": str(len(content))}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)


def _sum(content: bytes) -> str:
    return hashlib.sha1(content).hexdigest()


def _commit(repository: dict[str, bytes]) -> str:
    return _sum(repr(sorted((name, _sum(data)) for name, data in repository.items())).encode())


@contextmanager
def running() -> Iterator[tuple[str, type[Hub]]]:
    """The address of a hub that is empty, and the hub."""
    hub: type[Hub] = type("Hub", (Hub,), {"files": {}, "asked": []})
    server = ThreadingHTTPServer(("127.0.0.1", 0), hub)
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}", hub
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
