"""An extender: nodes that are due for maintenance take no pods, and cheap nodes are best.

python examples/extender/extender.py 8191
"""

import json
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

MAINTENANCE = {"node-0"}
PRICE = {"node-0": 5, "node-1": 30, "node-2": 12}
"""Cents an hour."""


def answer(verb, question):
    """What a verb of the configuration returns."""
    names = [node["Name"] for node in question["nodes"]]
    if verb == "predicateNodes":
        rejected = {"status": "node(s) were due for maintenance", "code": 2}
        return {"statuses": {name: rejected if name in MAINTENANCE else {"status": ""} for name in names}}
    if verb == "prioritize":
        return {"nodeScore": {name: 100 - PRICE.get(name, 100) for name in names}}
    return {}


class Handler(BaseHTTPRequestHandler):
    def do_POST(self):
        question = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        body = json.dumps(answer(self.path.rsplit("/")[-1], question)).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format, *arguments):
        pass


if __name__ == "__main__":
    ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
