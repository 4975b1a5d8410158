"""What a network does at best: as many bytes as a step of a run moves, both ways at once, over one TCP connection.

    wire.py listen ADDRESS PORT RUN [RUN ...]    on one host; prints the median of seconds for each run, in one line
    wire.py call ADDRESS PORT RUN [RUN ...]      on the other one
"""
import json
import pathlib
import socket
import statistics
import sys
import threading
import time

TIMES = 5
PIECE = 256 << 10


def bytes_each_way(run):
    record = json.loads((pathlib.Path(run) / "run.json").read_text(encoding="utf-8"))
    return int(record["results"]["bytes_sent_per_step"]) // 2


def connect(role, address, port):
    if role == "listen":
        with socket.create_server((address, port)) as server:
            return server.accept()[0]
    for _ in range(200):
        try:
            return socket.create_connection((address, port))
        except OSError:
            time.sleep(0.05)
    sys.exit(f"nobody listens at {address}, port {port}")


def receive(connection, size):
    room = bytearray(PIECE)
    while size:
        count = connection.recv_into(room, min(size, PIECE))
        if not count:
            sys.exit("the other end is gone")
        size -= count


def exchange(connection, size):
    begin = time.monotonic()
    receiver = threading.Thread(target=receive, args=(connection, size))
    receiver.start()
    piece, left = bytes(PIECE), size
    while left:
        connection.sendall(piece[: min(left, PIECE)])
        left -= min(left, PIECE)
    receiver.join()
    return time.monotonic() - begin


def main():
    role, address, port, *runs = sys.argv[1:]
    connection = connect(role, address, int(port))
    medians = []
    for run in runs:
        seconds = []
        for _ in range(TIMES):
            exchange(connection, 1)  # both begin together
            seconds.append(exchange(connection, bytes_each_way(run)))
            time.sleep(0.2)
        medians.append(statistics.median(seconds))
    if role == "listen":
        print(json.dumps(medians))


if __name__ == "__main__":
    main()
