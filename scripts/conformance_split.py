"""A regression file of PostgreSQL's as psql reads it: statements, the data of COPY, and the few commands that matter."""

import re

NAME = re.compile(r"[A-Za-z_\x80-\U0010ffff][\w$\x80-\U0010ffff]*")
DOLLAR = re.compile(r"\$(?:[A-Za-z_\x80-\U0010ffff][\w\x80-\U0010ffff]*)?\$")
COPY_IN = re.compile(r"\s*copy\b.*\bfrom\s+stdin\b", re.I | re.S)
BODY = re.compile(r"\s*create\s+(or\s+replace\s+)?(function|procedure)\b", re.I)
TRUE = {"t", "true", "on", "1", "yes"}


class Step:
    """A statement with its line, the data that follows it, and the psql command that ended it, `\\gset` for one."""

    def __init__(self, line, text, data=None, ended_by=";"):
        self.line, self.text, self.data, self.ended_by = line, text, data, ended_by


class Script:
    """Steps of a file, one after the other; variables are set between them by whoever runs it."""

    def __init__(self, text, variables):
        self.text, self.variables = text, variables
        self.at = 0
        self.skipping = []

    def steps(self):
        """Yields the steps; a step with the text `\\c` asks for a new connection."""
        begun = None
        pieces, depth, blocks = [], 0, 0
        while self.at < len(self.text):
            char = self.text[self.at]
            if self.text.startswith("\\;", self.at):
                # One message with several statements.
                self.at += 2
                pieces.append(";")
                continue
            if char == "\\":
                command, rest = self.command()
                statement = "".join(pieces).strip()
                ends = command.startswith("g") or command in ("crosstabview", "bind", "parse")
                if command == "q":
                    return
                if self.condition(command, rest):
                    continue
                if ends and statement and not self.skipped():
                    yield Step(begun, statement, ended_by="\\" + command + " " + rest)
                if ends or command == "r":
                    pieces, depth, begun = [], 0, None
                elif not self.skipped():
                    if command in ("c", "connect"):
                        yield Step(self.line(), "\\c")
                    self.assign(command, rest)
                continue
            if char == ";" and depth == 0 and blocks == 0:
                self.at += 1
                statement = "".join(pieces).strip()
                pieces = []
                if statement and not self.skipped():
                    data = self.copied() if COPY_IN.match(statement) else None
                    yield Step(begun, statement, data)
                begun = None
                continue
            piece = self.piece()
            if piece.strip() and not piece.startswith(("--", "/*")) and begun is None:
                begun = self.line()
            depth += {"(": 1, ")": -1}.get(piece, 0)
            depth = max(depth, 0)
            if NAME.fullmatch(piece) and pieces and BODY.match("".join(pieces)):
                word = piece.lower()
                if word == "begin" or (blocks and word == "case"):
                    blocks += 1
                elif blocks and word == "end":
                    blocks -= 1
            if not piece.startswith("--"):
                pieces.append(piece)

    def line(self):
        return self.text.count("\n", 0, self.at) + 1

    def piece(self):
        """The next token, with a variable's value in its place."""
        text, at = self.text, self.at
        char = text[at]
        end = at + 1
        if text.startswith("--", at):
            end = text.find("\n", at)
            end = len(text) if end < 0 else end
        elif text.startswith("/*", at):
            end = self.comment()
        elif char == "'":
            escapes = at > 0 and text[at - 1] in "eE" and (at < 2 or not (text[at - 2].isalnum() or text[at - 2] == "_"))
            end = self.quoted("'", escapes)
        elif char == '"':
            end = self.quoted('"', False)
        elif char == "$" and DOLLAR.match(text, at):
            tag = DOLLAR.match(text, at)[0]
            close = text.find(tag, at + len(tag))
            end = len(text) if close < 0 else close + len(tag)
        elif char == ":" and not text.startswith("::", at) and (at == 0 or text[at - 1] != ":"):
            found = re.compile(r""":(['"]?)([A-Za-z_]\w*)\1""").match(text, at)
            if found and found[2] in self.variables:
                self.at = found.end()
                value, quote = self.variables[found[2]], found[1]
                return quote + value.replace(quote, quote * 2) + quote if quote else value
        elif NAME.match(text, at):
            end = NAME.match(text, at).end()
        self.at = end
        return text[at:end]

    def comment(self):
        depth, at = 0, self.at
        for found in re.compile(r"/\*|\*/").finditer(self.text, at):
            depth += 1 if found[0] == "/*" else -1
            if depth == 0:
                return found.end()
        return len(self.text)

    def quoted(self, quote, escapes):
        at = self.at + 1
        while at < len(self.text):
            if escapes and self.text[at] == "\\":
                at += 2
            elif self.text[at] == quote:
                return at + 1
            else:
                at += 1
        return at

    def command(self):
        """A backslash command's name and the rest of its line."""
        found = re.compile(r"\\([a-zA-Z_]+|.)([^\n]*)").match(self.text, self.at)
        self.at = found.end()
        return found[1], found[2].strip()

    def copied(self):
        """The lines up to the one with a backslash and a full stop, which psql sends as COPY's data."""
        start = self.text.find("\n", self.at) + 1
        end = re.compile(r"^\\\.[ ]*$", re.M).search(self.text, start)
        if not end:
            self.at = len(self.text)
            return self.text[start:]
        self.at = end.end()
        return self.text[start : end.start()]

    def skipped(self):
        return any(self.skipping)

    def condition(self, command, rest):
        """Whether it was one of `\\if` and its kin, which are then done."""
        if command == "if":
            value = self.variables.get(rest[1:], "") if rest.startswith(":") else rest
            self.skipping.append(value.lower() not in TRUE)
        elif command == "elif" and self.skipping:
            self.skipping[-1] = True
        elif command == "else" and self.skipping:
            self.skipping[-1] = not self.skipping[-1]
        elif command == "endif" and self.skipping:
            self.skipping.pop()
        else:
            return False
        return True

    def assign(self, command, rest):
        words = re.findall(r""":?'(?:[^']|'')*'|:"[^"]*"|\S+""", rest)
        if command == "set" and words:
            self.variables[words[0]] = "".join(self.value(word) for word in words[1:])
        elif command == "getenv" and len(words) > 1:
            self.variables[words[0]] = self.variables.get(words[1], "")
        elif command == "unset" and words:
            self.variables.pop(words[0], None)

    def value(self, word):
        if word.startswith(":"):
            return self.variables.get(word[1:].strip("'\""), "")
        return word[1:-1].replace("''", "'") if word.startswith("'") else word
