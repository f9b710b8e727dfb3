"""One session of PostgreSQL's protocol over a Unix socket, for the scripts that compare two
servers."""

import socket
import struct

# Rows of one result that are kept; more are only counted, since some statements give gigabytes.
KEPT_ROWS = 50_000


class Lost(Exception):
    """The server closed the connection."""


class Connection:
    """One session: simple queries, the types and rows they give, and what COPY carries."""

    def __init__(self, path, database, timeout=60):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(timeout)
        self.path = str(path)
        self.socket.connect(self.path)
        self.input = self.socket.makefile("rb")
        self.key = b""
        self.state = "I"
        settings = f"user\0postgres\0database\0{database}\0client_encoding\0UTF8\0\0".encode()
        self.socket.sendall(struct.pack("!ii", len(settings) + 8, 196608) + settings)
        self.results()

    def message(self):
        head = self.input.read(5)
        if len(head) < 5:
            raise Lost
        kind, length = chr(head[0]), struct.unpack("!i", head[1:])[0]
        return kind, self.input.read(length - 4)

    def send(self, kind, body):
        self.socket.sendall(kind + struct.pack("!i", len(body) + 4) + body)

    def results(self, data=None):
        """Every result up to ReadyForQuery, as (names and types of columns, rows, tag, error).
        `data` answers COPY FROM STDIN."""
        results, columns, rows, more = [], [], [], 0
        while True:
            kind, body = self.message()
            if kind == "T":
                columns = described(body)
            elif kind in "Dd" and len(rows) >= KEPT_ROWS:
                more += 1
            elif kind == "D":
                rows.append(fields(body))
            elif kind == "d":
                rows.append(body)
            elif kind == "G":
                if data is None:
                    self.send(b"f", b"no data\0")
                else:
                    if data:
                        self.send(b"d", data)
                    self.send(b"c", b"")
            elif kind in "CI":
                if more:
                    rows.append((f"and {more} more",))
                    more = 0
                results.append((columns, rows, body[:-1].decode() if kind == "C" else "", None))
                columns, rows = [], []
            elif kind == "E":
                parts = {chr(part[0]): part[1:].decode(errors="replace") for part in body.split(b"\0") if part}
                results.append((columns, rows, None, (parts["C"], parts["M"], parts.get("P"), parts.get("D"))))
                columns, rows = [], []
            elif kind == "K":
                self.key = body
            elif kind == "Z":
                self.state = body.decode()
                return results

    def answer(self):
        """(types of columns, rows, tag, error) of all results as one."""
        types, rows, tag, error = [], [], None, None
        for columns, some, done, fault in self.results():
            types = [type_ for _, type_ in columns] or types
            rows, tag, error = rows + some, done or tag, fault or error
        return types, rows, tag, error

    def ask(self, text, data=None):
        """The results of a simple query."""
        self.send(b"Q", text.encode(errors="surrogateescape") + b"\0")
        return self.results(data)

    def query(self, text):
        """The results of a simple query as one."""
        self.send(b"Q", text.encode() + b"\0")
        return self.answer()

    def cancel(self):
        """Asks the server to end what runs in this session."""
        with socket.socket(socket.AF_UNIX) as other:
            other.connect(self.path)
            other.sendall(struct.pack("!ii", 8 + len(self.key), 80877102) + self.key)
            other.settimeout(5)
            try:
                other.recv(1)
            except OSError:
                pass

    def close(self):
        self.input.close()
        self.socket.close()


def described(body):
    """(name, type) of each column."""
    columns, at = [], 2
    for _ in range(struct.unpack_from("!h", body)[0]):
        end = body.index(b"\0", at)
        columns.append((body[at:end].decode(errors="replace"), struct.unpack_from("!i", body, end + 7)[0]))
        at = end + 19
    return columns


def fields(body):
    """The values of a row as text, None where it is NULL."""
    row, at = [], 2
    for _ in range(struct.unpack_from("!h", body)[0]):
        length = struct.unpack_from("!i", body, at)[0]
        at += 4
        if length < 0:
            row.append(None)
        else:
            row.append(body[at : at + length].decode(errors="replace"))
            at += length
    return tuple(row)
