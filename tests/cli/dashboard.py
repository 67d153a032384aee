"""Looks at a training by its dashboard, for dashboard.sh.

  dashboard.py TOOL ARGUMENT...   runs the training, and checks who gets what

The training has more steps than it will do: it is ended by a signal.
"""

import contextlib
import json
import re
import signal
import socket
import subprocess
import sys
import time


def ask(port, path, method="GET", host=None, more=""):
    """The status and the head and body of an answer."""
    with socket.create_connection(("127.0.0.1", port), 20) as connection:
        host = f"127.0.0.1:{port}" if host is None else host
        line = f"Host: {host}\r\n" if host else ""
        with contextlib.suppress(OSError):  # it may have said no already
            connection.sendall(f"{method} {path} HTTP/1.1\r\n{line}{more}\r\n"
                               .encode())
        text = b""
        while True:
            part = connection.recv(65536)
            if not part:
                break
            text += part
    head, _, body = text.decode().partition("\r\n\r\n")
    return int(head.split()[1]), head, body


class Events:
    """A browser that listens."""

    def __init__(self, port, path):
        self.socket = socket.create_connection(("127.0.0.1", port), 20)
        self.socket.sendall(f"GET {path}events HTTP/1.1\r\n"
                            f"Host: localhost:{port}\r\n\r\n".encode())
        self.text, self.steps, self.evaluations = "", [], []
        self.names = []

    def read(self):
        """Takes one event; None at the end."""
        while "\n\n" not in self.text:
            part = self.socket.recv(65536).decode()
            if not part:
                return None
            self.text += part
            if self.text.startswith("HTTP/"):
                if "\r\n\r\n" not in self.text:
                    continue
                head, self.text = self.text.split("\r\n\r\n", 1)
                assert " 200 " in head and "text/event-stream" in head, head
        event, self.text = self.text.split("\n\n", 1)
        name, data = re.fullmatch(r"event: (\w+)\ndata: (.*)", event).groups()
        data = json.loads(data)
        self.names.append(name)
        if name == "all":
            self.steps = data
        elif name == "steps":
            self.steps += data
        elif name == "evaluation":
            self.evaluations.append(data)
        return name, data

    def until(self, isTrue):
        while not isTrue():
            assert self.read(), "the events end"

    def last(self):
        return self.steps[-1][0] if self.steps else 0


def main():
    training = subprocess.Popen(sys.argv[1:], stderr=subprocess.PIPE,
                                stdout=subprocess.DEVNULL, text=True)
    try:
        check(training)
    finally:
        training.kill()
        training.wait()


def check(training):
    said = ""
    while not (found := re.search(r"http://127\.0\.0\.1:(\d+)(/\w+/)", said)):
        line = training.stderr.readline()
        assert line, "no address is said: " + said
        said += line
    port, path = int(found[1]), found[2]
    assert re.fullmatch("/[0-9a-f]{32}/", path)

    # The page and its parts, and nothing else.
    status, head, body = ask(port, path)
    assert status == 200 and "digits_mlp: training</title>" in body
    assert "default-src 'none'; script-src 'self'" in head
    assert "Access-Control" not in head and "unsafe" not in head
    for part in ("page.js", "page.css"):
        status, _, body = ask(port, path + part)
        assert status == 200 and len(body) > 1000
        # The memory of a small model is not 0.0 MiB.
        assert part != "page.js" or "' KiB'" in body
    assert ask(port, path + "other")[0] == 404
    assert ask(port, path, host=f"localhost:{port}")[0] == 200

    # Who does not know the token, or comes by another name, gets nothing.
    wrong = path[:-2] + ("0" if path[-2] != "0" else "1") + "/"
    for other in ("/", "/page.js", "/events", wrong, path[:-1], "/" + path,
                  path[:10] + "/", "//"):
        status, _, body = ask(port, other)
        assert status == 403 and "training" not in body, other
    for host in ("evil.example", f"evil.example:{port}", "127.0.0.1",
                 f"127.0.0.1:{port}.evil.example", ""):
        assert ask(port, path, host=host)[0] == 403, host
    twice = f"Host: 127.0.0.1:{port}\r\n"
    assert ask(port, path, more=twice)[0] == 403
    for method in ("POST", "PUT", "HEAD", "OPTIONS", "get"):
        status, head, _ = ask(port, path, method)
        assert status == 405 and "Allow: GET" in head, method
    assert ask(port, path, more="X: " + "x" * 20000 + "\r\n")[0] == 431
    assert ask(port, path, method="G" * 20000)[0] == 431
    assert ask(port, path, method="nonsense\r\n")[0] == 400

    # Two browsers see the same; one that dies changes nothing.
    one, other = Events(port, path), Events(port, path)
    one.until(lambda: one.last() > 100 and one.evaluations)
    other.until(lambda: other.last() >= one.last() and other.evaluations)
    assert one.names[0] == other.names[0] == "all"
    step, epoch, loss, rate, samples, memory, seconds = one.steps[-1]
    assert step > epoch >= 1 and 0 < loss < 10 and samples > 0
    assert abs(rate - 1e-3) < 1e-9 and memory > 1e5 and seconds > 0
    assert [a[0] for a in one.steps] == sorted(a[0] for a in one.steps)
    assert set(one.evaluations[0]["numbers"]) == {"loss", "accuracy"}
    assert one.evaluations[0] in other.evaluations
    other.socket.close()

    # Who says nothing, or half of it, is let go, and nobody waits for them.
    before = one.last()
    idle = [socket.create_connection(("127.0.0.1", port), 20)
            for _ in range(30)]
    for connection in idle[::2]:
        with contextlib.suppress(OSError):
            connection.sendall(f"GET {path} HTTP/1.1\r\nHost:".encode())
    one.until(lambda: one.last() > before + 100)
    began = time.monotonic()
    for connection in idle:
        with contextlib.suppress(ConnectionError):
            assert connection.recv(1) == b""
    assert time.monotonic() - began < 20
    assert ask(port, path)[0] == 200

    # Its port is taken: a second training says so before it begins.
    words = [f"--dashboard=127.0.0.1:{port}" if word == "--dashboard" else word
             for word in sys.argv[1:]]
    second = subprocess.run(words, capture_output=True, text=True, timeout=60)
    assert second.returncode == 1, second
    assert (f"--dashboard: cannot listen on 127.0.0.1:{port}: Address already "
            "in use") in second.stderr, second.stderr

    # At the end the page is told.
    training.send_signal(signal.SIGINT)
    one.until(lambda: one.names[-1] == "end")
    assert one.read() is None
    assert training.wait(60) == 1


main()
