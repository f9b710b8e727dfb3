"""PostgreSQL 18 and Allcore for scripts/plans.py: started with the same memory, timed by session.

A server's CPU time is the one of the process that runs the statement: PostgreSQL's backend,
Allcore's whole process.
"""

import io
import os
import shutil
import struct
import subprocess
import time

import fuzz
from plans_data import chunks
from wire import Connection, Lost

# The last message of an answer: ReadyForQuery, but for the session's state.
READY = b"Z\0\0\0\5"
# Seconds for which a cancelled statement may go on.
GRACE = 20
# Seconds that a statement of a setup may take.
LONGEST = 900


class Stuck(Exception):
    """A statement that goes on after it was cancelled."""


class Refused(Exception):
    """The error that a server answered a statement of a setup with."""


class Timed(Connection):
    """A session that takes the time of statements, without the time to decode their rows."""

    def __init__(self, path, database):
        super().__init__(path, database, timeout=LONGEST)
        self.limit = 0

    def limited(self, seconds):
        """Sets the time after which the server cancels a statement; 0 for none."""
        if self.limit != seconds:
            self.timed(simple(f"set statement_timeout = {int(seconds * 1000)}"))
            self.limit = seconds

    def timed(self, message):
        """The seconds until the answer is there, and the answer."""
        self.socket.settimeout(self.limit + GRACE if self.limit else LONGEST)
        received = bytearray()
        begun = time.perf_counter()
        try:
            self.socket.sendall(message)
            while not (received[-6:-1] == READY and received[-1] in b"ITE"):
                some = self.socket.recv(1 << 20)
                if not some:
                    raise Lost
                received += some
        except TimeoutError as error:
            raise Stuck from error
        took = time.perf_counter() - begun
        self.input = io.BytesIO(received)
        return took, self.answer()

    def prepare(self, text):
        """Parses a statement with parameters."""
        body = b"plan\0" + text.encode() + b"\0" + struct.pack("!h", 0)
        error = self.timed(message(b"C", b"Splan\0") + message(b"P", body) + message(b"S"))[1][3]
        if error:
            raise Refused(f"{error[0]} {error[1]}: {text}")

    def load(self, table, path):
        """COPY from a file, a chunk at a time."""
        self.socket.settimeout(LONGEST)
        self.input = self.socket.makefile("rb")
        self.send(b"Q", f"copy {table} from stdin".encode() + b"\0")
        if self.message()[0] != "G":
            raise Refused(f"{table} takes no rows")
        for chunk in chunks(path):
            self.send(b"d", chunk)
        self.send(b"c", b"")
        error = self.answer()[3]
        if error:
            raise Refused(f"{table}: {error[0]} {error[1]}")

    def do(self, text):
        """A statement that has to succeed, however long it takes."""
        self.limited(0)
        error = self.timed(simple(text))[1][3]
        if error:
            raise Refused(f"{error[0]} {error[1]}: {text}")


def message(kind, body=b""):
    return kind + struct.pack("!i", len(body) + 4) + body


def simple(text):
    """The message of a simple query."""
    return message(b"Q", text.encode() + b"\0")


def execution(parameters):
    """The messages that execute the prepared statement once."""
    values = b"".join(
        struct.pack("!i", -1) if value is None else struct.pack("!i", len(value.encode())) + value.encode()
        for value in parameters)
    bind = b"\0plan\0" + struct.pack("!hh", 0, len(parameters)) + values + struct.pack("!h", 0)
    execute = message(b"E", b"\0" + struct.pack("!i", 0))
    return message(b"B", bind) + message(b"D", b"P\0") + execute + message(b"S")


class Server:
    """A server with one session, which is kept open, and with its CPU time."""

    name = collation = ""

    def __init__(self, options):
        self.options, self.database, self.session = options, None, None
        self.restarts = 0

    def open(self, database):
        """The session in this database; the one before is closed."""
        if self.session is None or self.database != database:
            self.close()
            self.session, self.database = Timed(self.socket(), database), database
            for setting in (f"work_mem = '{self.options.work_mem}'", "max_parallel_workers_per_gather = 0"):
                self.session.do(f"set {setting}")
            self.clock = self.clock_of()
        return self.session

    def close(self):
        if self.session:
            self.session.close()
        self.session = None

    def forget(self):
        """Removes the data, unless it is kept from run to run."""
        if not self.options.keep:
            shutil.rmtree(self.folder / "data", ignore_errors=True)
            for mark in self.folder.glob("loaded-*"):
                mark.unlink()

    def clock_of(self):
        """The kernel's clock of the process that runs the session's statements."""
        return (~self.pid() << 3) | 2

    def cpu(self):
        return time.clock_gettime(self.clock)

    def command(self, text):
        """A statement outside of the data sets, such as CREATE DATABASE."""
        self.close()
        other = Timed(self.socket(), "postgres")
        other.do(text)
        other.close()


class Postgres(Server):
    """PostgreSQL 18 with a folder of its own, by ../shared/peers/pg18.sh."""

    name = "PostgreSQL"
    collation = " template template0 encoding 'UTF8' lc_collate 'C' lc_ctype 'C'"

    def __init__(self, options, folder):
        super().__init__(options)
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        self.forget()
        self.path = self.started()
        # The last setting of a name counts.
        with open(folder / "data/postgresql.conf", "a", encoding="utf-8") as settings:
            settings.write(f"shared_buffers = {options.buffers // 1024}kB\njit = off\n")
        self.stop()
        self.path = self.started()

    def started(self):
        done = subprocess.run([fuzz.PEER, "start", self.folder], check=True, capture_output=True, text=True)
        return done.stdout.splitlines()[-1] + "/.s.PGSQL.5432"

    def socket(self):
        return self.path

    def pid(self):
        return int(self.session.timed(simple("select pg_backend_pid()"))[1][1][0][0])

    def stop(self):
        self.close()
        subprocess.run([fuzz.PEER, "stop", self.folder], check=False, capture_output=True)


class Allcore(Server):
    """Allcore on a folder of its own; it starts anew where it has ended or does not answer."""

    name = "Allcore"
    collation = ""

    def __init__(self, options, folder):
        super().__init__(options)
        self.folder, self.process = folder, None
        folder.mkdir(parents=True, exist_ok=True)
        self.forget()
        self.start()

    def start(self):
        for old in self.folder.glob(".s.PGSQL.*"):
            old.unlink()
        self.process, self.path = fuzz.serve(self.options.allcore, self.folder, str(self.options.buffers))

    def socket(self):
        return self.path

    def pid(self):
        return self.process.pid

    def again(self):
        """Starts the server anew: it has ended, or a statement of it cannot be cancelled."""
        database = self.database
        self.session = None
        self.restarts += 1
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        os.replace(self.folder / "log", self.folder / f"log.{self.restarts}")
        self.start()
        return self.open(database)

    def stop(self):
        self.close()
        if self.process and self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(60)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
