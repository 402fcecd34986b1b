"""Stands in for Prometheus: how busy each node is, in percent, as an answer to the queries of the plugin usage.

python examples/usage/prometheus.py 8190
"""

import json
import re
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlparse

USED = {
    "cpu": {"node-0": 95, "node-1": 60, "node-2": 5},
    "memory": {"node-0": 40, "node-1": 50, "node-2": 10},
}


def answer(query):
    """What Prometheus answers to an instant query: one row for a node with data, none for others."""
    node = re.search(r'instance="([^"]+)"', query)[1]
    resource = "cpu" if "node_cpu" in query else "memory"
    percent = USED[resource].get(node)
    print(f"{resource} of {node}: {percent} %")
    rows = [] if percent is None else [{"metric": {"instance": node}, "value": [0, str(percent)]}]
    return {"status": "success", "data": {"resultType": "vector", "result": rows}}


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        query = parse_qs(urlparse(self.path).query)["query"][0]
        self.send(answer(query))

    def do_POST(self):
        form = parse_qs(self.rfile.read(int(self.headers["Content-Length"])).decode())
        self.send(answer(form["query"][0]))

    def send(self, document):
        body = json.dumps(document).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format, *arguments):
        pass


if __name__ == "__main__":
    ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
