"""What the driver checks share: where the server is, the values of every type, and how a check is run."""
import os
import sys
import threading
import time
import traceback
import uuid
from datetime import date, datetime, time as clock, timedelta, timezone
from decimal import Decimal

HOST = os.environ["PGHOST"]
PORT = int(os.environ["PGPORT"])
USER = os.environ.get("PGUSER", "postgres")
DATABASE = os.environ.get("PGDATABASE", "postgres")
DSN = f"host={HOST} port={PORT} user={USER} dbname={DATABASE}"

# Column, its type, values that must come back as they went in.
UTC = timezone.utc
VALUES = [
    ("boolean", [True, False]),
    ("smallint", [0, -32768, 32767]),
    ("integer", [0, -2147483648, 2147483647]),
    ("bigint", [0, -9223372036854775808, 9223372036854775807]),
    ("real", [0.0, -1.5, 1024.0]),
    ("double precision", [0.0, -1.5, 1e300, float("inf"), 0.1]),
    ("numeric", [Decimal("0"), Decimal("-12345678901234567890.000123"), Decimal("1e-20"), Decimal("1000000")]),
    ("numeric(10,2)", [Decimal("12345678.90"), Decimal("-0.01")]),
    ("text", ["", "plain", "quote ' and \\ back", "naïve ☃ 𝄞", "x" * 2000]),
    ("varchar(20)", ["", "twenty characters ..."[:20]]),
    ("char(5)", ["abcde", "ab   "]),
    ("bytea", [b"", b"\x00\x01\xff\\", bytes(range(256))]),
    ("date", [date(2000, 1, 1), date(1, 1, 1), date(9999, 12, 31)]),
    ("time", [clock(0, 0), clock(23, 59, 59, 999999)]),
    ("timestamp", [datetime(2000, 1, 1), datetime(1969, 12, 31, 23, 59, 59, 1), datetime(9999, 12, 31, 23, 59)]),
    ("timestamptz", [datetime(2024, 2, 29, 12, 0, tzinfo=UTC), datetime(1900, 1, 1, tzinfo=UTC)]),
    ("interval", [timedelta(0), timedelta(days=-3, seconds=5, microseconds=7)]),
    ("uuid", [uuid.UUID(int=0), uuid.UUID("12345678-1234-5678-1234-567812345678")]),
    ("integer[]", [[], [1, None, -3]]),
    ("text[]", [["", "a,b", 'c"d', None, "NULL"]]),
]

failures = []
checks = []


def fault_in_thread(fault):
    """A check's thread that fails fails the check: a cancel that could not be sent, for one."""
    failures.append(fault.thread.name)
    traceback.print_exception(fault.exc_type, fault.exc_value, fault.exc_traceback, file=sys.stdout)


threading.excepthook = fault_in_thread


def check(function):
    """Registers a check; run() runs them in order."""
    checks.append(function)
    return function


def short(value):
    text = repr(value)
    return text if len(text) <= 300 else text[:300] + " ..."


def same(seen, expected, about=""):
    if seen != expected:
        raise AssertionError(f"{about}: expected {short(expected)}, got {short(seen)}")


def fails(state, error, code, run):
    """`run` must raise `error` whose SQLSTATE (taken by `state`) is `code`."""
    try:
        run()
    except error as fault:
        same(state(fault), code, f"SQLSTATE of: {fault}")
        return fault
    raise AssertionError(f"expected {code}, but it succeeded")


def run():
    """Runs the checks named on the command line, or all; ends with status 1 if one failed."""
    chosen = [c for c in checks if not sys.argv[1:] or c.__name__ in sys.argv[1:]]
    for number, function in enumerate(chosen, 1):
        begun = time.monotonic()
        try:
            function()
            word = "ok"
        except Exception:
            failures.append(function.__name__)
            word = "FAILED\n" + traceback.format_exc()
        print(f"[{number}/{len(chosen)}] {function.__name__}: {word} ({time.monotonic() - begun:.1f} s)", flush=True)
    sys.exit(1 if failures else 0)
