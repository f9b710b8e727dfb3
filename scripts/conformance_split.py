"""A regression file of PostgreSQL's as psql reads it: statements, the data of COPY, and the few
commands that matter."""

import re

NAME = re.compile(r"[A-Za-z_\x80-\U0010ffff][\w$\x80-\U0010ffff]*")
DOLLAR = re.compile(r"\$(?:[A-Za-z_\x80-\U0010ffff][\w\x80-\U0010ffff]*)?\$")
COPY_IN = re.compile(r"\s*copy\b.*\bfrom\s+stdin\b", re.I | re.S)
BODY = re.compile(r"\s*create\s+(or\s+replace\s+)?(function|procedure)\b", re.I)
TRUE = {"t", "true", "on", "1", "yes"}


class Step:
    """A statement with its line, the data that follows it, and the psql command that ended it,
    `\\gset` for one.

    `texts` has the text for each server: `\\gset` gives a variable the value that the server itself
    has answered. `text` is PostgreSQL's.
    """

    def __init__(self, line, texts, data=None, ended_by=";"):
        self.texts = (texts, texts) if isinstance(texts, str) else texts
        self.text = self.texts[0]
        self.line, self.data, self.ended_by = line, data, ended_by


def joined(pieces):
    """The text for each server; a piece that differs between them is a pair."""
    return tuple("".join(piece if isinstance(piece, str) else piece[side] for piece in pieces).strip() for side in (0, 1))


class Script:
    """Steps of a file, one after the other; each server has its variables, which the caller sets
    between steps."""

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
                statement = joined(pieces)
                ends = command.startswith("g") or command in ("crosstabview", "bind", "parse")
                if command == "q":
                    return
                if self.condition(command, rest):
                    continue
                if ends and statement[0] and not self.skipped():
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
                statement = joined(pieces)
                pieces = []
                if statement[0] and not self.skipped():
                    data = self.copied() if COPY_IN.match(statement[0]) else None
                    yield Step(begun, statement, data)
                begun = None
                continue
            piece = self.piece()
            if not isinstance(piece, str):
                begun = self.line() if begun is None else begun
                pieces.append(piece)
                continue
            if piece.strip() and not piece.startswith(("--", "/*")) and begun is None:
                begun = self.line()
            depth += {"(": 1, ")": -1}.get(piece, 0)
            depth = max(depth, 0)
            if NAME.fullmatch(piece) and pieces and BODY.match(joined(pieces)[0]):
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
        """The next token, or a variable's value for each server."""
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
            if found and found[2] in self.variables[0]:
                self.at = found.end()
                values, quote = [own.get(found[2], "") for own in self.variables], found[1]
                return tuple(quote + value.replace(quote, quote * 2) + quote if quote else value for value in values)
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
        """The lines up to the one with a backslash and a full stop, which psql sends as COPY's
        data."""
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
            value = self.variables[0].get(rest[1:], "") if rest.startswith(":") else rest
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
        for own in self.variables:
            if command == "set" and words:
                own[words[0]] = "".join(self.value(own, word) for word in words[1:])
            elif command == "getenv" and len(words) > 1:
                own[words[0]] = own.get(words[1], "")
            elif command == "unset" and words:
                own.pop(words[0], None)

    @staticmethod
    def value(own, word):
        if word.startswith(":"):
            return own.get(word[1:].strip("'\""), "")
        return word[1:-1].replace("''", "'") if word.startswith("'") else word
