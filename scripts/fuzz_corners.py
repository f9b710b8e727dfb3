"""One function, operator or cast over constants at the edges of their types, for
scripts/fuzz_statements.py.

Nothing else is in the statement, so that its rows, the type, the SQLSTATE and the position of an
error must all agree. Functions that Allcore does not have are not drawn.
"""

from fuzz_expressions import EXTREMES, REGEXES, Statement

VALUES = {
    "boolean": ("true", "false"),
    "smallint": ("0", "7", *EXTREMES["int2"]),
    "integer": ("0", "-1", "42", *EXTREMES["int4"]),
    "bigint": ("0", "3", *EXTREMES["int8"]),
    "real": ("0", "1.1", *EXTREMES["float4"]),
    "double precision": ("0", "2.5", "-2.5", "5e-324", *EXTREMES["float8"]),
    "numeric": ("0", "0.00", "-1.5", "2.5", "99999999999999999999.99", *EXTREMES["numeric"]),
    "text": ("", "a", "äö€😀", " x ", "NULL", "ABC abc", "a%b_c\\d", "\ttab", "12", "2024-02-29"),
    "varchar(3)": ("", "abc", "ä€😀"),
    "char(4)": ("", "ab", "ä€"),
    "bytea": ("", "\\x00ff", "\\xdeadbeef"),
    "date": ("2024-02-29", "1999-12-31", *EXTREMES["date"]),
    "time": ("00:00", "12:34:56.789", *EXTREMES["time"]),
    "timestamp": ("2024-02-29 23:59:59.5", "2000-01-01", *EXTREMES["timestamp"]),
    "timestamptz": ("2024-03-31 01:30+00", "1900-01-01 00:00+00", "2024-10-27 01:30+02", *EXTREMES["timestamptz"]),
    "interval": ("0", "1 mon", "-1 year 3 days -04:05:06.7", "infinity", "1 day -24 hours", *EXTREMES["interval"]),
    "uuid": ("00000000-0000-0000-0000-000000000000", "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"),
    "integer[]": ("{}", "{1,2,3}", "{NULL,1}", "{{1,2},{3,4}}", "[0:1]={5,6}"),
    "text[]": ("{}", '{a,NULL,"NULL","x,y"}', "{{a},{b}}"),
    "oid": ("0", "4294967295"),
}
ONE = """abs ceil floor round trunc sign sqrt exp ln log degrees radians factorial scale min_scale trim_scale length
    char_length octet_length lower initcap md5 ascii chr quote_ident quote_literal quote_nullable btrim ltrim
    rtrim to_hex isfinite justify_days justify_hours justify_interval cardinality array_ndims array_dims pg_typeof
    num_nulls concat - + ~ @ |/ not""".split()  # fmt: skip
TWO = """power mod div gcd lcm round trunc log left right strpos starts_with lpad rpad btrim nullif greatest least
    coalesce age array_append array_prepend array_position array_positions array_remove array_length array_upper
    array_to_string string_to_array concat concat_ws encode decode format trim_array""".split()  # fmt: skip
FIELDS = """microseconds milliseconds second minute hour day week month quarter year decade century millennium epoch
    dow doy isodow isoyear julian timezone foo""".split()  # fmt: skip
OPERATORS = "+ - * / % ^ || = <> < <= > >= & | # << >> ~ !~ ~~ !~~ @> &&".split()


class Corners:
    """Draws from the round's generator (`self.random`, `self.pick`, `self.chance`)."""

    def corner_value(self, types=tuple(VALUES)):
        type_ = self.pick(types)
        if self.chance(0.06):
            return f"null::{type_}"
        text = self.pick(VALUES[type_]).replace("'", "''")
        return f"'{text}'" if self.chance(0.1) else f"'{text}'::{type_}"

    def corner(self):
        one = self.corner_value()
        form = self.random.randint(0, 6)
        if form == 0:
            text = f"{self.pick(ONE)}({one})"
        elif form == 1:
            text = f"{self.pick(TWO)}({one}, {self.corner_value()})"
        elif form == 2:
            text = f"{one} {self.pick(OPERATORS)} {self.corner_value()}"
        elif form == 3:
            text = f"({one})::{self.pick(('', 'text::'))}{self.pick(tuple(VALUES))}"
        elif form == 4:
            times = ("date", "time", "timestamp", "timestamptz", "interval")
            what = self.pick(("date_part('{}', {})", "date_trunc('{}', {})", "extract({} from {})"))
            text = what.format(self.pick(FIELDS), self.corner_value(times))
        elif form == 5:
            what = self.pick(("regexp_match", "regexp_like", "regexp_split_to_array", "regexp_substr"))
            text = f"{what}({self.corner_value(('text', 'char(4)'))}, '{self.pick(REGEXES)}')"
        else:
            number = self.pick((1, 2, 0, -1, 2147483647, -2147483648))
            what = self.pick(("split_part({0}, {1}, {2})", "substr({0}, {2}, 2)", "overlay({0} placing {1} from {2})"))
            texts = ("text", "varchar(3)", "char(4)")
            text = what.format(self.corner_value(texts), self.corner_value(texts), number)
        return Statement(f"select {text}", position=True, exact=True)

    def through_cursor(self, query):
        """The query's rows by way of a cursor. Its errors may come a statement earlier or later."""
        name = f"cursor{self.random.randint(0, 10**9)}"
        texts = [f"declare {name} {self.pick(('', 'scroll ', 'no scroll '))}cursor for {query.text}"]
        texts += [self.pick((f"fetch {self.random.randint(0, 4)} from {name}", f"move 2 in {name}")), f"fetch all from {name}"]
        return [Statement(text, query.ordered, query.loose, True) for text in texts]
