"""lsp_session.py SERVER MODEL DUMP - asks a language server as an editor does.

Prints what is shown over lines of MODEL and DUMP, and where definitions of DUMP lead. OPTION is
what the compiler gets; END=early: the editor is gone while it compiles.
"""

import json
import os
import pathlib
import subprocess
import sys
import time


class Session:
    def __init__(self, server):
        self.process = subprocess.Popen([server], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.DEVNULL)
        self.last = 0

    def send(self, message):
        text = json.dumps({"jsonrpc": "2.0"} | message).encode()
        self.process.stdin.write(b"Content-Length: %d\r\n\r\n%s" % (len(text), text))
        self.process.stdin.flush()

    def read(self):
        length = 0
        while (line := self.process.stdout.readline().strip()):
            name, value = line.split(b":")
            if name.lower() == b"content-length":
                length = int(value)
        if not length:
            sys.exit("the server is gone")
        return json.loads(self.process.stdout.read(length))

    def call(self, method, params):
        self.last += 1
        self.send({"id": self.last, "method": method, "params": params})
        while (answer := self.read()).get("id") != self.last:
            pass
        return answer["result"]

    def open(self, path):
        uri = path.resolve().as_uri()
        self.send({"method": "textDocument/didOpen", "params": {"textDocument": {
            "uri": uri, "languageId": "mlir", "version": 1, "text": path.read_text()}}})
        return uri

    def hover(self, uri, line, column):
        """What is shown there, once the file is compiled."""
        for _ in range(600):
            result = self.call("textDocument/hover", place(uri, line, column))
            text = result["contents"]["value"] if result else ""
            if "look again" not in text:
                return text
            time.sleep(0.2)
        sys.exit("the file was not compiled in time")

    def end(self):
        self.call("shutdown", None)
        self.send({"method": "exit"})
        return self.process.wait(60)


def place(uri, line, column):
    return {"textDocument": {"uri": uri}, "position": {"line": line, "character": column}}


def find(path, text):
    """The line and column of a text, from 0."""
    for number, line in enumerate(path.read_text().splitlines()):
        if text in line:
            return number, line.index(text)
    sys.exit(f"no '{text}' in {path}")


def main():
    server, model, dump = sys.argv[1], pathlib.Path(sys.argv[2]), pathlib.Path(sys.argv[3])
    session = Session(server)
    session.call("initialize", {"processId": None, "capabilities": {}, "initializationOptions": {
        "tandem": {"options": [os.environ.get("OPTION", "--optimizer=sgd:lr=0.1")]}}})
    uri = session.open(model)
    line, column = find(model, "tandem.relu %a0")
    if os.environ.get("END"):
        session.call("textDocument/hover", place(uri, line, column))
        time.sleep(0.1)
        session.process.stdin.close()
        session.process.wait(60)
        return
    print("== relu:", session.hover(uri, line, column))
    # A line more, which is not in the file.
    session.send({"method": "textDocument/didChange", "params": {
        "textDocument": {"uri": uri, "version": 2},
        "contentChanges": [{"range": {"start": {"line": 0, "character": 0},
                                      "end": {"line": 0, "character": 0}}, "text": "// a remark\n"}]}})
    print("== changed:", session.hover(uri, line + 1, column))
    uri = session.open(dump)
    line, column = find(dump, "tandem.relu")
    print("== forward:", session.hover(uri, line, column))
    # The gradient of the product that the first relu follows.
    lines = dump.read_text().splitlines()
    alias = next(l.split(" ")[0] for l in lines if l.startswith("#loc") and '"grad of relu"' in l)
    line = next(i for i, l in enumerate(lines) if l.endswith(f"loc({alias})"))
    column = lines[line].index("tandem.")
    print("== backward:", session.hover(uri, line, column))
    target = session.call("textDocument/definition", place(uri, line, column))[0]
    print("== definition:", target["uri"] == uri, lines[target["range"]["start"]["line"]])
    line, column = find(dump, "tandem.matmul")
    target = session.call("textDocument/definition", place(uri, line, column))[0]
    print("== place:", target["uri"].rsplit("/", 1)[1], target["range"]["start"]["line"] + 1)
    print("== end:", session.end())


main()
