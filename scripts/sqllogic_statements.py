"""Random statements in the four families of sqllogictest, for scripts/sqllogic.py.

select: expressions with CASE, correlated subqueries and conditions over one table. There are
compound selects and joins of many tables, too.

index: one question asked of tables with the same rows and different indexes. It has BETWEEN,
commuted comparisons, DELETE, IN, ORDER BY, deep conditions or views.

random: expressions full of signs and nested calls, in aggregates, literals, groups and rows.

A seed always gives the same statements. A statement is `risky` if a division or a product in it may
fail. The error then depends on the parts that PostgreSQL computes ahead, or on the rows that a plan
looks at.
"""

from fuzz_expressions import Statement

KINDS = (
    "select/1", "select/2", "select/3", "select/4", "select/5",
    "index/between", "index/commute", "index/delete", "index/in", "index/orderby", "index/random", "index/view",
    "random/aggregates", "random/expr", "random/groupby", "random/select",
)  # fmt: skip
# A comparison and the one that holds with its sides changed.
COMMUTED = {"<": ">", ">": "<", "<=": ">=", ">=": "<=", "=": "=", "<>": "<>"}

# The largest value in tables of select/4 and select/5.
MOST = {4: 60, 5: 10}


def statements(kind, random, count):
    """So many statements of a kind, behind those that make its tables."""
    family, name = kind.split("/")
    makers = {"select": Selects, "index": Indexes, "random": Signs}
    return makers[family](name, random).statements(count)


class Maker:
    """Random choices that all families make."""

    def __init__(self, name, random):
        self.name, self.random = name, random

    def pick(self, choices):
        return self.random.choice(choices)

    def chance(self, share):
        return self.random.random() < share

    def number(self, least=0, most=99):
        return self.random.randint(least, most)


class Selects(Maker):
    """Files select1 to select5."""

    ITEMS = (
        "a", "b", "c", "d", "e", "a+b*2", "a+b*2+c*3", "a+b*2+c*3+d*4", "a+b*2+c*3+d*4+e*5", "a-b", "b-c", "c-d",
        "d-e", "abs(a)", "abs(b-c)", "(a+b+c+d+e)/5",
        "case when a<b-3 then 111 when a<=b then 222 when a<b+3 then 333 else 444 end",
        "case a+1 when b then 111 when c then 222 when d then 333 when e then 444 else 555 end",
        "case when c>(select avg(c) from t1) then a*2 else b*10 end",
        "(select count(*) from t1 as x where x.b<t1.b)",
        "(select count(*) from t1 as x where x.c>t1.c and x.d<t1.d)",
    )  # fmt: skip
    CONDITIONS = (
        "a>b", "b>c", "c>d", "d>e", "(e>c or e<d)", "(e>a and e<b)", "(a>b-2 and a<b+2)", "(c<=d-2 or c>=d+2)",
        "c between b-2 and d+2", "d not between 110 and 150", "e+d between a+b-10 and c+130", "a is null", "b is not null",
        "coalesce(a,b,c,d,e)<>0", "exists(select 1 from t1 as x where x.b<t1.b)",
        "not exists(select 1 from t1 as x where x.d=t1.a)", "a in (select b+1 from t1)", "b not in (select c from t1)",
    )  # fmt: skip

    def statements(self, count):
        if self.name in ("4", "5"):
            return self.many_tables(int(self.name), count)
        said = [Statement("create table t1(a integer, b integer, c integer, d integer, e integer)")]
        nulls = self.name != "1"
        for row in range(30):
            values = [str(value) for value in self.random.sample(range(100 + row * 5, 105 + row * 5), 5)]
            if nulls:
                values = ["null" if self.chance(0.12) else value for value in values]
            said.append(Statement(f"insert into t1(e,c,b,d,a) values({','.join(values)})"))
        while len(said) < count + 31:
            items = self.random.sample(self.ITEMS, self.number(1, 7))
            text = f"select {', '.join(items)} from t1"
            conditions = self.random.sample(self.CONDITIONS, self.number(0, 3 if self.name == "3" else 2))
            if conditions:
                text += " where " + self.pick((" and ", " or ")).join(conditions)
            order = [str(at + 1) for at in range(len(items))]
            self.random.shuffle(order)
            said.append(Statement(f"{text} order by {','.join(order)}", ordered=True))
        return said

    def many_tables(self, name, count):
        tables = 9 if name == 4 else 64
        said = []
        for table in range(1, tables + 1):
            columns = [f"{letter}{table}" for letter in ("abcde" if name == 4 else "ab")]
            key = " primary key" if name == 5 else ""
            declared = f"{columns[0]} integer{key}, " + "".join(f"{column} integer, " for column in columns[1:])
            said.append(Statement(f"create table t{table}({declared}x{table} varchar(40))"))
            for row in range(1, 16 if name == 4 else 11):
                values = [str(row if name == 5 else self.number(0, MOST[name]))]
                values += [str(self.number(1, MOST[name])) for _ in columns[1:]]
                said.append(Statement(f"insert into t{table} values({','.join(values)},'table tn{table} row {row}')"))
            if name == 4 and self.chance(0.5):
                said.append(Statement(f"create index t{table}i on t{table}({', '.join(self.random.sample(columns, 2))})"))
        made = len(said)
        while len(said) < made + count:
            if name == 4 and self.chance(0.5):
                said.append(self.compound(tables))
            else:
                said.append(self.joined(name, tables))
        return said

    def compound(self, tables):
        """Columns of several tables under UNION, INTERSECT and EXCEPT."""
        column = self.pick("xabcde")
        sides = []
        for _ in range(self.number(2, 7)):
            table, letter = self.number(1, tables), self.pick("abcde")
            condition = self.pick((
                f"{letter}{table} in ({','.join(str(self.number(1, MOST[4])) for _ in range(self.number(1, 9)))})",
                f"{letter}{table} {self.pick(('<', '>'))} {self.number(1, MOST[4])}",
                f"not ({letter}{table} between {self.number(1, MOST[4] // 2)} and {self.number(MOST[4] // 2, MOST[4])})",
                " or ".join(f"{self.pick('abcde')}{table}={self.number(1, MOST[4])}" for _ in range(3)),
            ))  # fmt: skip
            sides.append(f"select {column}{table} from t{table} where {condition}")
        text = sides[0]
        for side in sides[1:]:
            text += f" {self.pick(('union', 'union all', 'except', 'intersect'))} {side}"
        return Statement(text)

    def joined(self, name, tables):
        """A join that a chain of equalities connects, and some that one table begins."""
        chosen = self.random.sample(range(1, tables + 1), self.number(2, 5 if name == 4 else 12))
        letters = "abcde" if name == 4 else "ab"
        conditions = []
        for at, table in enumerate(chosen[1:], 1):
            other = self.pick(chosen[:at])
            sides = [f"{self.pick(letters)}{table}", f"{self.pick(letters)}{other}"]
            self.random.shuffle(sides)
            if name == 4 and self.chance(0.5):
                values = ",".join(str(self.number(1, MOST[4])) for _ in range(self.number(2, 9)))
                sides = [f"{self.pick(letters)}{table} in ({values})"]
            conditions.append("=".join(sides))
        first = chosen[0]
        most = MOST[name]
        conditions.append(self.pick((
            f"{self.pick(letters)}{first}={self.number(1, most)}",
            f"({' or '.join(f'{self.pick(letters)}{first}={self.number(1, most)}' for _ in range(3))})",
        )))  # fmt: skip
        self.random.shuffle(conditions)
        self.random.shuffle(chosen)
        items = ",".join(f"x{table}" for table in self.random.sample(chosen, len(chosen)))
        return Statement(f"select {items} from {','.join(f't{t}' for t in chosen)} where {' and '.join(conditions)}")


class Indexes(Maker):
    """Folders index/*: tab0 has no index, tab1 to tab4 have the same rows and other indexes."""

    COLUMNS = {"col0": "integer", "col1": "float", "col2": "text", "col3": "integer", "col4": "float", "col5": "text"}

    def statements(self, count):
        columns = ", ".join(f"{name} {type_}" for name, type_ in self.COLUMNS.items())
        said = [Statement(f"create table tab0(pk integer primary key, {columns})")]
        for key in range(self.pick((10, 100, 300))):
            values = [self.literal(name, key) for name in self.COLUMNS]
            said.append(Statement(f"insert into tab0 values({key}, {', '.join(values)})"))
        for table in range(1, 5):
            said.append(Statement(f"create table tab{table}(pk integer primary key, {columns})"))
            for index in range(table if self.chance(0.8) else 0):
                keys = self.random.sample(list(self.COLUMNS), self.number(1, 3))
                keys = ", ".join(key + self.pick(("", "", " desc")) for key in keys)
                said.append(Statement(f"create index idx_tab{table}_{index} on tab{table} ({keys})"))
            said.append(Statement(f"insert into tab{table} select * from tab0"))
        made = len(said)
        while len(said) < made + count:
            said += self.asked(len(said))
        return said

    def literal(self, column, key=None):
        type_ = self.COLUMNS[column]
        if type_ == "text":
            words = "abcdefghijklmnopqrstuvwxyz"
            return "'" + "".join(self.pick(words) for _ in range(self.number(1, 5))) + "'"
        most = 99 if key is None or self.chance(0.7) else 999
        return str(self.number(0, most)) if type_ == "integer" else f"{self.number(0, most)}.{self.number(10, 99)}"

    def comparison(self, commuted=False):
        column = self.pick(("col0", "col1", "col3", "col4"))
        operator, value = self.pick(("<", ">", "<=", ">=", "=")), self.literal(column)
        return f"{value} {COMMUTED[operator]} {column}" if commuted else f"{column} {operator} {value}"

    def condition(self, depth, commuted):
        """Comparisons, lists and ranges under AND and OR; `commuted`: with the values first."""
        if depth and self.chance(0.6):
            parts = [self.condition(depth - 1, commuted) for _ in range(self.number(2, 3))]
            return f"({self.pick((' and ', ' or ')).join(parts)})"
        column = self.pick(("col0", "col1", "col3", "col4"))
        roll = self.random.random()
        if self.name == "between" and roll < 0.7:
            low, high = self.literal(column), self.literal(column)
            return f"{column} between {low} and {high}"
        if self.name == "in" and roll < 0.7:
            if self.chance(0.3):
                inner = self.pick(("col0", "col3"))
                return f"{self.pick(('col0', 'col3'))} in (select {inner} from tab0 where {self.comparison()})"
            return f"{column} in ({', '.join(self.literal(column) for _ in range(self.number(1, 7)))})"
        if roll < 0.8:
            return self.comparison(commuted)
        return self.pick((f"{column} is null", f"{column} is not null", f"not {self.comparison(commuted)}"))

    def asked(self, number):
        """One question, of each table."""
        state = self.random.getstate()
        asked = []
        for table in range(5):
            for commuted in (False, True) if self.name == "commute" else (False,):
                # The same question, each time with the same random numbers.
                self.random.setstate(state)
                condition = self.condition(self.number(0, 4 if self.name == "random" else 2), commuted)
                name = f"tab{table}"
                if self.name == "view":
                    name = f"view_{number}_{table}"
                    asked.append(Statement(f"create view {name} as select pk, col0 from tab{table} where {condition}"))
                    asked.append(Statement(f"select pk, col0 from {name}"))
                    asked.append(Statement(f"select v.pk from {name} v join tab0 t on t.pk = v.pk where t.col0 > 9"))
                    asked.append(Statement(f"drop view {name}"))
                elif self.name == "delete":
                    if self.chance(0.2):
                        asked.append(Statement(f"delete from {name} where {condition}"))
                    asked.append(Statement(f"select pk from {name} where {condition}"))
                    asked.append(Statement(f"select count(*), sum(pk) from {name}"))
                elif self.name == "orderby":
                    key = self.pick(list(self.COLUMNS)) + self.pick(("", " desc"))
                    limit = self.pick(("", "", f" limit {self.number(1, 9)}"))
                    asked.append(Statement(f"select pk, col0 from {name} where {condition} order by {key}, pk{limit}", True))
                    asked.append(Statement(f"select pk from {name} where {condition} order by 1 desc", True))
                else:
                    asked.append(Statement(f"select pk from {name} where {condition}"))
        return asked


class Signs(Maker):
    """Folders random/*: three tables of three integers, and expressions full of signs."""

    def statements(self, count):
        said = []
        for table in range(3):
            said.append(Statement(f"create table tab{table}(col0 integer, col1 integer, col2 integer)"))
            for _ in range(3):
                said.append(Statement(f"insert into tab{table} values({', '.join(str(self.number()) for _ in range(3))})"))
        maker = {"aggregates": self.aggregates, "expr": self.literals, "groupby": self.grouped, "select": self.rows}
        while len(said) < count + 12:
            text = maker[self.name]()
            said.append(Statement(text, loose=True, risky=True))
        return said

    def signs(self):
        return self.pick(("", "", "", "+ ", "- ", "- - ", "- + ", "+ - "))

    def value(self, depth, leaf):
        """An expression whose innermost parts `leaf` gives."""
        if depth == 0 or self.chance(0.3):
            return self.signs() + leaf()
        sides = self.value(depth - 1, leaf), self.value(depth - 1, leaf)
        return self.signs() + self.pick((
            f"{sides[0]} + {sides[1]}", f"{sides[0]} - {sides[1]}", f"{sides[0]} * {sides[1]}", f"({sides[0]})",
            f"{sides[0]} / {sides[1]}" if self.chance(0.3) else f"{sides[0]} * {sides[1]}",
            f"coalesce({sides[0]}, {sides[1]})", f"nullif({sides[0]}, {sides[1]})", f"abs({sides[0]})",
            f"cast({sides[0]} as integer)", f"cast({sides[0]} as real)" if self.name == "expr" else f"({sides[0]})",
            f"case {sides[0]} when {sides[1]} then {sides[1]} else null end",
            f"case when {sides[0]} {self.pick(tuple(COMMUTED))} {sides[1]} then {sides[0]} end",
            f"coalesce(null, {sides[0]})",
        ))  # fmt: skip

    def literal(self):
        return str(self.number())

    def sources(self):
        """FROM with aliases, and the columns that it shows."""
        tables = [self.number(0, 2)] if self.chance(0.6) else self.random.sample(range(3), 2)
        names = [f"cor{at}" if self.chance(0.6) or at else f"tab{table}" for at, table in enumerate(tables)]
        parts = [f"tab{t}" + ("" if n == f"tab{t}" else self.pick((" as ", " ")) + n) for t, n in zip(tables, names)]
        text = self.pick((", ", " cross join ")).join(parts)
        return text, [f"{name}.col{at}" for name in names for at in range(3)]

    def condition(self, columns):
        side = lambda: self.value(1, lambda: self.pick((*columns, self.literal())))
        text = self.pick((
            f"{side()} {self.pick(tuple(COMMUTED))} {side()}", f"{side()} is null", f"({side()}) is not null",
            f"null {self.pick(('=', '<>', '>'))} {side()}", f"{side()} between {side()} and {side()}",
            f"{side()} not in ({side()}, {side()})", f"{side()} in ({side()})",
        ))  # fmt: skip
        if self.chance(0.3):
            return f"not ({text})"
        return f"{text} and {self.condition(columns)}" if self.chance(0.1) else text

    def quantifier(self):
        return self.pick(("", "all ", "distinct "))

    def literals(self):
        items = [f"{self.value(3, self.literal)} as col{at}" for at in range(self.number(1, 2))]
        source = f" from tab{self.number(0, 2)}" if self.chance(0.2) else ""
        return f"select {self.quantifier()}{', '.join(items)}{source}"

    def rows(self):
        source, columns = self.sources()
        leaf = lambda: self.pick((*columns, *columns, self.literal()))
        items = [f"{self.value(2, leaf)} as col{at}" for at in range(self.number(1, 3))]
        if self.chance(0.1):
            items = ["*"]
        where = f" where {self.condition(columns)}" if self.chance(0.5) else ""
        return f"select {self.quantifier()}{', '.join(items)} from {source}{where}"

    def aggregate(self, columns):
        inner = self.value(1, lambda: self.pick((*columns, self.literal())))
        function = self.pick(("count", "sum", "min", "max", "avg"))
        return "count(*)" if self.chance(0.3) else f"{function}({self.quantifier()}{inner})"

    def aggregates(self):
        source, columns = self.sources()
        leaf = lambda: self.pick((self.aggregate(columns), self.literal()))
        where = f" where {self.condition(columns)}" if self.chance(0.3) else ""
        return f"select {self.quantifier()}{self.value(2, leaf)} as col0 from {source}{where}"

    def grouped(self):
        source, columns = self.sources()
        keys = self.random.sample(columns, self.number(1, 2))
        leaf = lambda: self.pick((*keys, self.literal(), self.aggregate(columns) if self.chance(0.3) else keys[0]))
        items = [f"{self.value(1, leaf)} as out{at}" for at in range(self.number(1, 2))]
        where = f" where {self.condition(columns)}" if self.chance(0.3) else ""
        having = f" having {self.condition(keys)}" if self.chance(0.4) else ""
        return f"select {self.quantifier()}{', '.join(items)} from {source}{where} group by {', '.join(keys)}{having}"
