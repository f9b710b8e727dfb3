"""Differences between PostgreSQL and Allcore that stay: which statements show them, and for which
reason; functions not there.

scripts/conformance_known.txt has a line for each: the key of a reason, the names of regression
files (separated by commas), and a regular expression that the statement's text has to contain, with
every run of white space as one blank. A line that begins with whitespace or `#` is none.
docs/sql.md gives each reason under its key, in bold type.
"""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FILE = Path(__file__).resolve().parent / "conformance_known.txt"
REASONS = ROOT / "docs/sql.md"
LIST = re.compile(r"^## Functions that are not there\n(.*?)(?=^## |\Z)", re.M | re.S)
SPAN = re.compile(r"`([\w*]+)(?:\(([^`]*)\))?`")
CALL = re.compile(r"(?:function|procedure|aggregate) ([\w.]+)\((.*?)\) does not exist")
REASON = re.compile(r"^- \*\*([a-z-]+)\*\*:", re.M)


class Entry:
    """One line of the file."""

    def __init__(self, line):
        self.line = line
        self.reason, files, pattern = line.split(maxsplit=2)
        self.files = set(files.split(","))
        self.pattern = re.compile(pattern, re.I)
        self.used = False


class Known:
    """All entries, and which of them explained a statement of this run."""

    def __init__(self, text=None, reasons=None):
        lines = (FILE.read_text(encoding="utf-8") if text is None else text).splitlines()
        self.entries = [Entry(line) for line in lines if line and not line.startswith(("#", " ", "\t"))]
        given = set(REASON.findall(REASONS.read_text(encoding="utf-8") if reasons is None else reasons))
        missing = sorted({entry.reason for entry in self.entries} - given)
        if missing:
            raise ValueError(f"docs/sql.md gives no reason named {', '.join(missing)}")

    def explains(self, file, text):
        """Whether an entry of this file names the statement."""
        text = " ".join(text.split())
        found = False
        for entry in self.entries:
            if file in entry.files and entry.pattern.search(text):
                entry.used = found = True
        return found

    def unused(self, files):
        """The entries that explained nothing although all their files have run."""
        return [entry.line for entry in self.entries if not entry.used and entry.files <= set(files)]


class NotThere:
    """The functions that docs/sql.md says are not there, by name and, where others of the name are,
    by arguments."""

    def __init__(self, own):
        """`own` are the names of PostgreSQL's functions: one that is not among them was made by a
        statement."""
        self.own = own
        found = LIST.search(REASONS.read_text(encoding="utf-8"))
        self.spans = [(re.compile(name.replace("*", r"\w*")), arguments) for name, arguments in SPAN.findall(found[1])]

    def names(self, message):
        """Whether the message of an error names such a function, or one that a statement should
        have made."""
        call = CALL.match(message)
        if not call:
            return False
        name = call[1].split(".")[-1]
        given = call[2].split(", ") if call[2] else []
        return name not in self.own or any(
            pattern.fullmatch(name) and (not arguments or self.fits(arguments.split(", "), given)) for pattern, arguments in self.spans)

    @staticmethod
    def fits(listed, given):
        """Whether a call's types are the listed ones."""
        return len(listed) == len(given) and all("any" in pair or "unknown" in pair or len(set(pair)) == 1 for pair in zip(listed, given))
