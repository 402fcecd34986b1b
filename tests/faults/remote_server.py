"""A program that answers as extender and as Prometheus, well or badly: `python remote_server.py`.

It prints its port. The first part of a path says how it behaves: good, status500, huge, invalid, hang, reset, lies.
"""

from __future__ import annotations

import json
import re
import socket
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlparse

HUGE = 100 * 1024 * 1024


class Handler(BaseHTTPRequestHandler):
    """One call."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self._behave(None)

    def do_POST(self) -> None:
        length = int(self.headers.get("Content-Length") or 0)
        self._behave(json.loads(self.rfile.read(length) or b"null"))

    def _behave(self, question: object) -> None:
        how = self.path.split("/")[1]
        if how == "hang":
            time.sleep(3600)
        elif how == "reset":
            self.close_connection = True
            self.connection.shutdown(socket.SHUT_RDWR)
        elif how == "status500":
            self._send(b"broken", 500)
        elif how == "invalid":
            self._send(b'{"status": ')
        elif how == "huge":
            self.send_response(200)
            self.send_header("Content-Length", str(HUGE))
            self.end_headers()
            for _ in range(HUGE >> 20):
                self.wfile.write(b" " * (1 << 20))
        else:
            self._send(json.dumps(self._answer(question, how == "lies")).encode())

    def _answer(self, question: object, lies: bool) -> object:
        url = urlparse(self.path)
        if url.path.endswith("/api/v1/query"):
            query = parse_qs(url.query)["query"][0]
            node = re.search(r'instance="([^"]+)"', query)
            busy = "cpu" in query and node is not None and node[1] in ("busy", "node-0")
            value = "NaN" if lies else "90" if busy else "10"
            row = {"metric": {}, "value": [0, value]}
            return {"status": "success", "data": {"resultType": "vector", "result": [row]}}
        if isinstance(question, dict) and "nodes" in question:
            scores = {"no-such-node": 10} if lies else {n["Name"]: 10 for n in question["nodes"]}
            return {"nodeScore": scores | ({"a": -5} if lies else {})}
        if isinstance(question, dict) and "node" in question:
            return {"status": 5, "code": "x"} if lies else {"status": "", "code": 0}
        return {}

    def _send(self, body: bytes, status: int = 200) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        pass


if __name__ == "__main__":
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    print(server.server_port, flush=True)
    server.serve_forever()
