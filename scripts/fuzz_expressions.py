"""Random expressions of every type, for scripts/fuzz_statements.py."""

from dataclasses import dataclass

INTS = ("int2", "int4", "int8")
NUMBERS = (*INTS, "numeric", "float4", "float8")
TEXTS = ("text", "varchar", "char")
TIMES = ("date", "timestamp", "timestamptz")
SPANS = ("time", "interval")
TYPES = ("bool", *NUMBERS, *TEXTS, "bytea", *TIMES, *SPANS)
NAMES = {
    "time": "time", "interval": "interval",
    "bool": "boolean", "int2": "smallint", "int4": "integer", "int8": "bigint", "float4": "real",
    "float8": "double precision", "text": "text", "bytea": "bytea", "date": "date", "timestamp": "timestamp",
    "timestamptz": "timestamptz", "numeric": "numeric", "varchar": "varchar", "char": "bpchar",
}  # fmt: skip
WORDS = ["", "a", "b", "ab", "A", "a b", "ba", "abc", "B ", "%", "a_c", "Zz", "0", "7", "é"]
COMPARISONS = ("=", "<>", "<", "<=", ">", ">=")
# Values at the edges of their types. Computing with them may fail, depending on the rows that a
# plan looks at.
EXTREMES = {
    "int2": ("32767", "-32768"),
    "int4": ("2147483647", "-2147483648"),
    "int8": ("9223372036854775807", "-9223372036854775808"),
    "numeric": ("NaN", "Infinity", "-Infinity", "1e30", "0.00000000000000000001", "-99999.995"),
    "float4": ("NaN", "Infinity", "-Infinity", "-0", "1e-40", "3e38", "16777217"),
    "float8": ("NaN", "Infinity", "-Infinity", "-0", "1e-310", "1e308", "1e15", "0.1"),
    "date": ("infinity", "-infinity", "4713-11-24 BC", "5874897-12-31", "0001-01-01"),
    "timestamp": ("infinity", "-infinity", "4713-11-24 00:00:00 BC", "294276-12-31 23:59:59.999999"),
    "timestamptz": ("infinity", "-infinity", "4713-11-25 00:00:00+00 BC", "294276-12-31 00:00:00+00"),
    "time": ("24:00:00", "23:59:59.999999"),
    "interval": ("178000000 years", "-178000000 years", "2147483647 days", "0.000001 seconds"),
}
PATTERNS = ("%", "a%", "%b", "_", "a_%", "%a%", "", "A", "a\\%", "ab", "%!%%", "a!_c", "!_", "%_", "\\\\%")
REGEXES = (
    "a", "^a", "b$", "a.c", "[a-b]+", "(a|b)b?", "^$", "\\d", "[[:alpha:]]{2}", "a*", "(a)(b)", "\\s", "[^a]",
)  # fmt: skip


@dataclass
class Statement:
    text: str
    ordered: bool = False
    loose: bool = False
    risky: bool = False
    many: bool = False
    position: bool = False
    exact: bool = False


@dataclass
class Column:
    name: str
    type: str
    declared: str = ""


@dataclass
class Table:
    name: str
    columns: list
    key: str


class Expressions:
    """Draws expressions of a type over the columns in scope. The queries in them come from the
    class above."""

    # Small choices.

    def chance(self, share):
        return self.random.random() < share

    def pick(self, items):
        return self.random.choice(items)

    # Values.

    def bare(self, type_):
        """A value's text."""
        if type_ in EXTREMES and self.chance(0.015):
            # Stored, it makes whatever reads it risky.
            self.extreme = True
            return self.pick(EXTREMES[type_])
        if type_ == "time":
            return self.pick(("00:00:00", "12:34:56.789", "23:59:59", "02:30:00"))
        if type_ == "interval":
            return self.pick(("1 day", "24:00:00", "1 month", "30 days", "-2 hours", "1 year 3 days", "0", "-1 mon 1 day"))
        if type_ in INTS:
            return str(self.pick((-3, -1, 0, 1, 2, 3, 5, 8)))
        if type_ == "numeric":
            return self.pick(("-1.5", "0", "0.00", "1", "1.10", "2.25", "7.5", "12.34"))
        if type_ in ("float4", "float8"):
            return self.pick(("-2.5", "-0.25", "0", "0.5", "1", "1.25", "3", "8.75"))
        if type_ in TEXTS:
            return self.pick(WORDS)
        if type_ == "bool":
            return self.pick(("true", "false"))
        if type_ == "bytea":
            return self.pick(("", "\\x00", "\\x01ff", "\\x6162", "ab"))
        day = self.pick(("2024-02-28", "2024-02-29", "2023-12-31", "2000-01-01", "1999-06-15", "2024-07-01"))
        if type_ == "date":
            return day
        clock = self.pick(("00:00:00", "12:34:56.789", "23:59:59", "02:30:00"))
        return f"{day} {clock}" + (self.pick(("+00", "+05:30", "-08")) if type_ == "timestamptz" else "")

    def stored_literal(self, column):
        if self.chance(0.18):
            return "null"
        text = self.bare(column.type)
        if column.type in TEXTS and "(" in column.declared:
            text = text[: int(column.declared.split("(")[1][:-1])]
        return text if column.type == "bool" or self.is_number(text) else f"'{text}'"

    def is_number(self, text):
        return text[-1:].isdigit() and text.strip("-").replace(".", "").isdigit()

    def literal(self, type_):
        if self.chance(0.06):
            return f"null::{NAMES[type_]}"
        text = self.bare(type_)
        if self.parameters is not None and self.chance(0.4):
            self.parameters.append("null" if self.chance(0.1) else f"'{text}'")
            return f"${len(self.parameters)}" + ("" if self.chance(0.5) else f"::{NAMES[type_]}")
        if type_ == "bool" or (type_ in ("int4", "numeric") and self.is_number(text) and self.chance(0.8)):
            if type_ == "numeric" and "." not in text:
                text += ".0"
            return f"({text})" if text.startswith("-") else text
        if type_ == "text" and self.chance(0.5):
            return f"'{text}'"
        name = f"char({self.pick((1, 2, 4))})" if type_ == "char" else NAMES[type_]
        return f"'{text}'::{name}"

    def columns(self, scope, type_):
        return [c.name for c in scope if c.type == type_]

    # Expressions: of a type, over the columns in scope; `depth` is what may still nest.

    def expr(self, type_, scope, depth):
        if self.wild and self.chance(0.06):
            # One mistake, so that only one error is possible.
            type_, self.wild = self.pick(TYPES), False
        named = self.columns(scope, type_)
        roll = self.random.random()
        if named and (roll < 0.45 or depth <= 0):
            return self.pick(named)
        if depth <= 0 or roll < 0.55:
            return self.literal(type_)
        if roll < 0.70:
            return self.general(type_, scope, depth - 1)
        return self.special(type_, scope, depth - 1)

    def general(self, type_, scope, depth):
        e = lambda t=type_: self.expr(t, scope, depth)
        form = self.random.randint(0, 8)
        if form == 8:
            # From any type to any other; what is no such value fails, by the row.
            self.risky = True
            other = self.pick(TYPES)
            return f"{e(other)}::text::{NAMES[type_]}" if self.chance(0.3) else f"cast({e()} as {NAMES[type_]})"
        if form == 0:
            return f"case when {e('bool')} then {e()} else {e()} end"
        if form == 1:
            other = self.pick(TYPES)
            return f"case {e(other)} when {e(other)} then {e()} when {e(other)} then {e()} end"
        if form == 2:
            return f"coalesce({e()}, {e()})"
        if form == 3:
            return f"nullif({e()}, {e()})"
        if form == 4:
            return f"{self.pick(('greatest', 'least'))}({e()}, {e()}, {e()})"
        if form == 5 and depth > 0:
            return self.scalar_query(type_, scope, depth)
        if form == 6:
            return f"(array[{e()}, {e()}, {e()}])[{self.random.randint(0, 4)}]"
        return f"({e()})"

    def scalar_query(self, type_, scope, depth):
        table, own = self.source_table()
        where = f" where {self.expr('bool', own + scope, depth)}" if self.chance(0.8) else ""
        if type_ in ("int8",) and self.chance(0.4):
            return f"(select count(*) from {table}{where})"
        keyed = self.table_of(table).key == "key"
        if type_ not in ("bool",) and (not keyed or self.chance(0.7)):
            value = self.expr(type_, own, depth)
            return f"(select {self.pick(('min', 'max'))}({value}) from {table}{where})"
        if not keyed:
            return f"(select bool_or({self.expr('bool', own, depth)}) from {table}{where})" if type_ == "bool" else self.literal(type_)
        value = self.expr(type_, own + scope, depth)
        return f"(select {value} from {table}{where} order by {own[0].name} limit 1)"

    def special(self, type_, scope, depth):
        e = lambda t: self.expr(t, scope, depth)
        if type_ == "bool":
            return self.condition(scope, depth)
        if type_ in INTS:
            return self.integer(type_, e)
        if type_ == "numeric":
            form = self.random.randint(0, 7)
            if form < 3:
                return f"({e('numeric')} {self.pick('+-*')} {e(self.pick(('numeric', 'int4', 'int8')))})"
            if form == 3:
                return f"{self.pick(('abs', 'floor', 'ceil', 'round', 'trunc', 'sign'))}({e('numeric')})"
            if form == 4:
                return f"{self.pick(('round', 'trunc'))}({e('numeric')}, {self.random.randint(-1, 3)})"
            if form == 5:
                return f"({e('numeric')} / {self.pick(('2', '3.0', '0.7', '-4'))})"
            if form == 6:
                return f"{e(self.pick(INTS))}::numeric"
            return f"{e('numeric')}::numeric({self.pick(('12,1', '10,3', '9,0'))})"
        if type_ in ("float4", "float8"):
            form = self.random.randint(0, 4)
            if form < 2:
                return f"({e(type_)} {self.pick('+-*')} {e(type_)})"
            if form == 2:
                return f"{e(self.pick(NUMBERS))}::{NAMES[type_]}"
            if form == 3 and type_ == "float8":
                return f"{self.pick(('abs', 'floor', 'ceil', 'round', 'trunc', 'sign'))}({e('float8')})"
            return f"abs({e(type_)})"
        if type_ in ("text", "varchar"):
            return f"{self.text(e)}" if type_ == "text" else f"{e(self.pick(TEXTS))}::varchar({self.random.randint(1, 9)})"
        if type_ == "char":
            return f"{e(self.pick(TEXTS))}::char({self.random.randint(1, 6)})"
        if type_ == "bytea":
            form = self.random.randint(0, 2)
            if form == 0:
                return f"({e('bytea')} || {e('bytea')})"
            return f"substr({e('bytea')}, {self.random.randint(1, 3)})" if form == 1 else e("bytea")
        if type_ in SPANS:
            return self.span(type_, e)
        return self.time(type_, e)

    def span(self, type_, e):
        form = self.random.randint(0, 4)
        if type_ == "time":
            if form < 2:
                return f"({e('time')} {self.pick('+-')} {e('interval')})"
            return f"{e(self.pick(('timestamp', 'timestamptz', 'time', 'interval')))}::time"
        if form == 0:
            return f"({e('interval')} {self.pick('+-')} {e('interval')})"
        if form == 1:
            return f"({e('interval')} {self.pick('*/')} {self.pick(('2', '0.5', '-3', '1.7'))})"
        if form == 2:
            one = self.pick(("timestamp", "timestamptz", "time"))
            return f"({e(one)} - {e(one)})"
        if form == 3:
            return f"{self.pick(('justify_days', 'justify_hours', 'justify_interval'))}({e('interval')})"
        return f"(-{e('interval')})"

    def integer(self, type_, e):
        form = self.random.randint(0, 8)
        if form < 3:
            return f"({e(type_)} {self.pick('+-*')} {e(type_)})"
        if form == 3:
            if self.chance(0.3):
                self.risky = True
                return f"({e(type_)} {self.pick('/%')} {e(type_)})"
            return f"({e(type_)} {self.pick('/%')} {self.pick(('2', '3', '(-4)'))})::{NAMES[type_]}"
        if form == 4:
            return f"{self.pick(('abs', '-', '+'))}({e(type_)})"
        if form == 5:
            return f"{self.pick(('length', 'char_length', 'octet_length'))}({e(self.pick(TEXTS))})::{NAMES[type_]}"
        if form == 6:
            return f"{e(self.pick(('numeric', 'float8', 'float4', *INTS)))}::{NAMES[type_]}"
        if form == 7:
            field = self.pick(("year", "month", "day", "dow", "doy", "quarter", "week"))
            if self.chance(0.3):
                self.risky = True
                field = self.pick(("year", "month", "day", "hour", "minute", "second", "epoch"))
                return f"extract({field} from {e('interval')})::{NAMES[type_]}"
            return f"extract({field} from {e(self.pick(TIMES[:2]))})::{NAMES[type_]}"
        return f"({e('date')} - {e('date')})::{NAMES[type_]}" if type_ != "int2" else f"({e('bool')})::int4::int2"

    def text(self, e):
        form = self.random.randint(0, 14)
        if form == 12:
            new, flags = self.pick(("", "x", "<\\1>", "[\\&]")), self.pick(("", "g", "i", "gi"))
            return f"regexp_replace({e(self.pick(TEXTS))}, '{self.pick(REGEXES)}', '{new}', '{flags}')"
        if form == 13:
            return f"split_part({e('text')}, {self.pick(('chr(97)', 'chr(32)'))}, {self.pick((1, 2, -1))})"
        if form == 14:
            return f"substring({e('text')} from '{self.pick(REGEXES)}')"
        t = lambda: e(self.pick(TEXTS))
        if form < 2:
            return f"({t()} || {t()})"
        if form == 2:
            return f"{self.pick(('upper', 'lower', 'trim', 'ltrim', 'rtrim', 'reverse', 'initcap'))}({t()})"
        if form == 3:
            return f"substr({t()}, {self.random.randint(-1, 3)}, {self.random.randint(0, 3)})"
        if form == 4:
            return f"replace({t()}, {t()}, {t()})"
        if form == 5:
            return f"{self.pick(('left', 'right'))}({t()}, {self.random.randint(-2, 3)})"
        if form == 6:
            return f"{self.pick(('lpad', 'rpad'))}({t()}, {self.random.randint(0, 6)}, {t()})"
        if form == 7:
            return f"{e(self.pick(TYPES))}::text"
        if form == 8:
            return f"concat({t()}, {e(self.pick(TYPES))}, {t()})"
        if form == 9:
            return f"concat_ws('-', {t()}, {t()}, {e('int4')})"
        if form == 10:
            return f"({t()} || {e(self.pick(NUMBERS))})"
        return f"translate({t()}, 'ab', 'x')"

    def time(self, type_, e):
        span = self.pick(("1 day", "1 month", "-2 hours", "1 year 3 days", "36:00:00"))
        form = self.random.randint(0, 3)
        if self.chance(0.2) and type_ != "date":
            return f"({e(type_)} {self.pick('+-')} {e('interval')})"
        if self.chance(0.1) and type_ == "timestamp":
            return f"({e('date')} {self.pick('+-')} {self.pick((e('interval'), e('time') + '::interval'))})"
        if type_ == "date":
            if form < 2:
                return f"({e('date')} {self.pick('+-')} {e('int4')})"
            return f"{e(self.pick(TIMES))}::date"
        if form == 0:
            return f"({e(type_)} {self.pick('+-')} interval '{span}')"
        if form == 1:
            return f"date_trunc('{self.pick(('year', 'month', 'day', 'hour', 'week'))}', {e(type_)})"
        return f"{e(self.pick(TIMES))}::{NAMES[type_]}"

    # Conditions.

    def condition(self, scope, depth):
        e = lambda t: self.expr(t, scope, depth)
        form = self.random.randint(0, 15)
        if form < 3:
            return f"({e('bool')} {self.pick(('and', 'or'))} {e('bool')})"
        if form == 3:
            return f"(not {e('bool')})"
        if form < 7:
            return self.comparison(scope, depth)
        type_ = self.pick(TYPES)
        negated = self.pick(("", "not "))
        if form == 7:
            return f"({e(type_)} is {negated}null)"
        if form == 8:
            return f"({e('bool')} is {negated}{self.pick(('true', 'false', 'unknown'))})"
        if form == 9:
            return f"({e(type_)} is {negated}distinct from {e(type_)})"
        if form == 10:
            return f"({e(type_)} {negated}between {self.pick(('', '', 'symmetric '))}{e(type_)} and {e(type_)})"
        if form == 11:
            return f"({e(type_)} {negated}in ({', '.join(e(type_) for _ in range(self.random.randint(1, 4)))}))"
        if form == 12:
            if self.chance(0.3):
                return f"({e(self.pick(TEXTS))} {self.pick(('~', '~*', '!~', '!~*'))} '{self.pick(REGEXES)}')"
            pattern, escape = self.pick(PATTERNS), self.pick(("", "", "", " escape '!'", " escape ''"))
            return f"({e(self.pick(TEXTS))} {negated}{self.pick(('like', 'ilike'))} '{pattern}'{escape})"
        if form == 13:
            values = ", ".join(e(type_) for _ in range(self.random.randint(1, 3)))
            return f"({e(type_)} {self.pick(COMPARISONS)} {self.pick(('any', 'all'))} (array[{values}]))"
        return self.sublink(scope, depth, negated)

    def comparison(self, scope, depth):
        e = lambda t: self.expr(t, scope, depth)
        kinds = self.pick((TYPES, TYPES, NUMBERS, TEXTS, TIMES, ("char",)))
        if kinds is TYPES:
            left = right = self.pick(TYPES)
        else:
            left, right = self.pick(kinds), self.pick(kinds)
        if self.chance(0.05):
            return self.rows(e, self.random.sample(TYPES, self.random.randint(2, 3)))
        if self.chance(0.12):
            other = self.pick(TYPES)
            return f"(({e(left)}, {e(other)}) {self.pick(COMPARISONS)} ({e(right)}, {e(other)}))"
        return f"({e(left)} {self.pick(COMPARISONS)} {e(right)})"

    def rows(self, e, types):
        row = lambda: f"row({', '.join(e(t) for t in types)})"
        form = self.random.randint(0, 3)
        if form == 0:
            return f"({row()} is {self.pick(('', 'not '))}null)"
        if form == 1:
            return f"({row()} is {self.pick(('', 'not '))}distinct from {row()})"
        if form == 2:
            return f"({row()} {self.pick(('', 'not '))}in ({row()}, {row()}))"
        return f"({row()} {self.pick(COMPARISONS)} {row()})"

    def sublink(self, scope, depth, negated):
        table, own = self.source_table()
        inner = own + scope
        where = f" where {self.expr('bool', inner, depth)}" if self.chance(0.8) else ""
        form = self.random.randint(0, 4)
        if form < 2:
            return f"({negated}exists (select {self.pick(('1', '*'))} from {table}{where}))"
        column = self.pick(own)
        outer = self.expr(column.type, scope, depth)
        if form == 2:
            return f"({outer} {negated}in (select {column.name} from {table}{where}))"
        if form == 3:
            other = self.pick(own)
            left = self.expr(other.type, scope, depth)
            return f"(({outer}, {left}) {negated}in (select {column.name}, {other.name} from {table}{where}))"
        test = f"{self.pick(COMPARISONS)} {self.pick(('any', 'all'))}"
        return f"({outer} {test} (select {column.name} from {table}{where}))"
