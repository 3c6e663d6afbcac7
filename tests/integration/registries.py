"""A schema registry as other programs use it, without the product; a proxy that can be cut; a stand-in."""

import contextlib
import json
import socket
import socketserver
import threading
import urllib.error
import urllib.parse
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

CONTENT = "application/vnd.schemaregistry.v1+json"


class Client:
    """The Confluent API of a registry."""

    def __init__(self, url):
        self.url = url.rstrip("/")

    def ask(self, method, path, body=None):
        """The answer's JSON; raises for errors."""
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(
            f"{self.url}{path}", data=data, method=method, headers={"Content-Type": CONTENT}
        )
        with urllib.request.urlopen(request, timeout=30) as answer:
            return json.load(answer)

    def register(self, subject, schema):
        """The id of a schema, registered under the subject."""
        text = schema if isinstance(schema, str) else json.dumps(schema)
        path = f"/subjects/{urllib.parse.quote(subject, safe='')}/versions"
        return self.ask("POST", path, {"schema": text, "schemaType": "AVRO"})["id"]

    def rule(self, subject, rule):
        """The compatibility rule of a subject."""
        self.ask("PUT", f"/config/{urllib.parse.quote(subject, safe='')}", {"compatibility": rule})

    def text(self, schema_id):
        """The parsed schema of an id."""
        return json.loads(self.ask("GET", f"/schemas/ids/{schema_id}")["schema"])


def confluent(schema_id, body):
    """Confluent's framing."""
    return b"\0" + schema_id.to_bytes(4, "big") + body


class Proxy:
    """Passes TCP connections on to an address until it is cut; then it refuses them."""

    def __init__(self, url):
        parts = urllib.parse.urlsplit(url)
        self._upstream = (parts.hostname, parts.port)
        self._open = True
        self._pairs = set()
        self._lock = threading.Lock()
        outer = self

        class Handler(socketserver.BaseRequestHandler):
            def handle(self):
                outer.carry(self.request)

        self._server = socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()
        port = self._server.server_address[1]
        self.url = parts._replace(netloc=f"127.0.0.1:{port}").geturl()

    def carry(self, near):
        """One connection, both ways."""
        if not self._open:
            return
        with socket.create_connection(self._upstream) as far:
            with self._lock:
                self._pairs |= {near, far}
            one = threading.Thread(target=self._pump, args=(far, near), daemon=True)
            one.start()
            self._pump(near, far)
            one.join()
            with self._lock:
                self._pairs -= {near, far}

    @staticmethod
    def _pump(source, target):
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                target.sendall(data)
        for each in (source, target):
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)

    def cut(self):
        """Nothing goes through any more."""
        self._open = False
        with self._lock:
            for each in self._pairs:
                with contextlib.suppress(OSError):
                    each.shutdown(socket.SHUT_RDWR)

    def heal(self):
        """It goes through again."""
        self._open = True

    def close(self):
        """The end of it."""
        self.cut()
        self._server.shutdown()
        self._server.server_close()


class StandIn:
    """Answers GET with what it was given for a path, and remembers what was asked; for what the real one lacks."""

    def __init__(self):
        self.answers = {}
        self.asked = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                outer.asked.append(self.path)
                self.answer(*outer.answers.get(self.path, (404, {"error_code": 40403})))

            def do_POST(self):
                self.rfile.read(int(self.headers["Content-Length"]))
                outer.asked.append(self.path)
                self.answer(200, {"id": 1000 + len(outer.asked)})

            def answer(self, status, body):
                data = json.dumps(body).encode()
                self.send_response(status)
                self.send_header("Content-Type", CONTENT)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *_):
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"

    def close(self):
        """The end of it."""
        self._server.shutdown()
        self._server.server_close()
