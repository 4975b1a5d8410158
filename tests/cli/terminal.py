#!/usr/bin/env python3
"""Run a command on a terminal of a given width and check that no line that it draws is wider.

Usage: terminal.py COLUMNS COMMAND...      Prints what the command wrote, a line a redraw; exits with its status.
"""

import fcntl
import os
import pty
import re
import struct
import sys
import termios

columns = int(sys.argv[1])
process, terminal = pty.fork()
if process == 0:
    fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    os.environ["TERM"] = "xterm"
    os.execvp(sys.argv[2], sys.argv[2:])

written = b""
while True:
    try:
        piece = os.read(terminal, 65536)
    except OSError:
        break
    if not piece:
        break
    written += piece
status = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])

widest = 0
for line in written.decode().replace("\r\n", "\n").split("\n"):
    for drawn in line.split("\r"):
        text = re.sub(r"\x1b\[[0-9;]*[A-Za-z]", "", drawn)
        print(text)
        # Only what is drawn anew with an erased rest is progress; results may be wide.
        if drawn.endswith("\x1b[K"):
            widest = max(widest, len(text))
print(f"widest redrawn line: {widest} of {columns} columns")
sys.exit(status if widest <= columns else 100)
