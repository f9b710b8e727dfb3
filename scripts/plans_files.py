"""The statements of scripts/plans.py, read from the files of scripts/plans.

A file begins with directives for all its statements, and each statement with `-- name:`. The other
directives are lines of their own before the statement's text:

    -- class: NAME        the class, and the data set that the statements read
    -- data: NAME
    -- bar: RATIO         the largest ratio that passes, 2.0 by default
    -- plan: generic      or custom: the plans of a prepared statement
    -- parameter: VALUE   a parameter's text, \\N for NULL; one line for each
    -- setup: SQL         runs once on both servers before the first round
    -- before: SQL        runs before each round, outside the time
    -- check: SQL         a query whose answers are compared behind each round
    -- after: SQL         runs behind each round
    -- cleanup: SQL       runs once at the end
    -- ties: yes          ORDER BY leaves rows in an order of the server's choice
"""

import re
from dataclasses import dataclass, field, replace
from pathlib import Path

FOLDER = Path(__file__).resolve().parent / "plans"
# Data sets whose statements also run on a fresh copy that was never analyzed.
FRESH = {"tpch": "tpch_fresh"}
DIRECTIVE = re.compile(r"-- (\w+): ?(.*)")
LISTS = {"parameter": "parameters", "setup": "setup", "before": "before", "check": "check", "after": "after",
         "cleanup": "cleanup"}
WORDS = ("class", "data", "bar", "plan", "ties", "name")
CALLS = re.compile(r"\([^()]*\)")


@dataclass
class Statement:
    """A statement with its class and with what runs around it."""

    group: str
    data: str
    name: str
    text: str = ""
    bar: float = 2.0
    plan: str = ""
    ties: bool = False
    parameters: list = field(default_factory=list)
    setup: list = field(default_factory=list)
    before: list = field(default_factory=list)
    check: list = field(default_factory=list)
    after: list = field(default_factory=list)
    cleanup: list = field(default_factory=list)
    # Numbers compare with their scale, texts with their blanks (fuzz.compared).
    loose = False

    @property
    def title(self):
        return f"{self.group}: {self.name}"

    @property
    def ordered(self):
        """Whether the order of all rows is determined: ORDER BY stands outside any parentheses."""
        text, count = self.text.lower(), 1
        while count:
            text, count = CALLS.subn("", text)
        return not self.ties and "order by" in text

    @property
    def reads(self):
        """Whether it only reads, so that an execution leaves nothing for the next."""
        return not (self.before or self.after)


class Reader:
    """Reads one file."""

    def __init__(self, path):
        self.path, self.head, self.statements = path, {}, []

    def fail(self, number, message):
        raise SystemExit(f"{self.path}:{number}: {message}")

    def read(self):
        for number, line in enumerate(self.path.read_text(encoding="utf-8").splitlines(), 1):
            found = DIRECTIVE.fullmatch(line)
            if found:
                self.directive(number, *found.groups())
            elif line.strip() and self.statements:
                self.statements[-1].text += line + "\n"
            elif line.strip() and not line.startswith("--"):
                self.fail(number, "a statement without a name")
        for one in self.statements:
            one.text = one.text.strip().rstrip(";")
        return self.statements

    def directive(self, number, key, value):
        if key in LISTS and self.statements:
            value = None if value == "\\N" else value
            getattr(self.statements[-1], LISTS[key]).append(value)
        elif key == "name":
            made = Statement(self.head["class"], self.head["data"], value, bar=float(self.head.get("bar", 2.0)))
            self.statements.append(made)
        elif key not in WORDS:
            self.fail(number, f"unknown directive {key}")
        elif not self.statements:
            self.head[key] = value
        elif key in ("plan", "ties", "bar"):
            setattr(self.statements[-1], key, float(value) if key == "bar" else value)
        else:
            self.fail(number, f"{key} stands before the first name")


def statements():
    """All statements, in the order of their files; TPC-H's stand there twice."""
    found = []
    for path in sorted(FOLDER.glob("*.sql")):
        read = Reader(path).read()
        fresh = FRESH.get(read[0].data)
        if fresh:
            found += [replace(one, data=fresh, group=f"{one.group} without ANALYZE") for one in read]
        found += read
    titles = [one.title for one in found]
    for title in titles:
        if titles.count(title) > 1:
            raise SystemExit(f"two statements are named {title}")
    return found


def script(name):
    """The statements of a file without directives, such as a data set's tables."""
    text = (FOLDER / "setup" / f"{name}.sql").read_text(encoding="utf-8")
    lines = [line for line in text.splitlines() if not line.startswith("--")]
    return [one.strip() for one in "\n".join(lines).split(";") if one.strip()]
