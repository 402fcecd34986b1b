"""A plugin for profiles that is a program of its own: a node takes at most two pods of each app, and quiet nodes first.

python examples/remote-plugin/server.py 8099
"""

import json
import sys
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

PODS = Counter()
"""(node, app) to the number of pods that have a place there, or are getting one."""
PLACED = set()
"""UIDs of these pods."""
MOST = 2
FULL = {"code": "Unschedulable", "reasons": [f"node(s) had {MOST} pods of the app"]}


def answer(point, question):
    """What a point answers; {} is success."""
    app = (question["pod"]["metadata"].get("labels") or {}).get("app", "")
    node = question.get("node", "")
    if point == "filter":
        return {"refused": {n: FULL for n in question["nodeNames"] if app and PODS[n, app] >= MOST}}
    if point == "score":
        return {"scores": {n: 100 - 50 * min(PODS[n, app], 2) for n in question["nodeNames"]}}
    if point == "reserve":
        if app and PODS[node, app] >= MOST:  # concurrent requests: another pod was reserved first
            return FULL
        PODS[node, app] += 1
        PLACED.add(question["pod"]["metadata"]["uid"])
    if point == "unreserve" and question["pod"]["metadata"]["uid"] in PLACED:
        PLACED.remove(question["pod"]["metadata"]["uid"])
        PODS[node, app] -= 1
    return {}


class Handler(BaseHTTPRequestHandler):
    def do_POST(self):
        question = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        body = json.dumps(answer(question["point"], question)).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


if __name__ == "__main__":
    ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
