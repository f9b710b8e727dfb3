"""The scripts of sqllogictest (*.test), for scripts/sqllogic.py.

Only statements and queries for PostgreSQL are read. The answers that a script records are left out,
since PostgreSQL itself answers beside.
"""

from fuzz_expressions import Statement

ENGINE = "postgresql"


def statements(path):
    """The statements of a script for PostgreSQL."""
    said = []
    for record in path.read_text(encoding="utf-8", errors="replace").split("\n\n"):
        lines = [line for line in record.splitlines() if line and not line.startswith("#")]
        wanted = True
        while lines and lines[0].split()[0] in ("skipif", "onlyif", "hash-threshold", "halt"):
            word, *rest = lines.pop(0).split()
            if word == "halt" and wanted:
                return said
            wanted &= word == "hash-threshold" or (rest[0] == ENGINE) == (word == "onlyif")
        if not lines or not wanted:
            continue
        head, *text = lines
        kind, *options = head.split()
        if kind == "query":
            text = text[: text.index("----")] if "----" in text else text
            # The type and the sort mode; a label may follow.
            text = "\n".join(text)
            said.append(Statement(text, ordered=options[1:2] == ["nosort"], risky="/" in text or "*" in text))
        elif kind == "statement":
            said.append(Statement("\n".join(text)))
    return said
