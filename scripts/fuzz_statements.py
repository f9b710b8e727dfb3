"""Random SQL for scripts/fuzz.py: tables of every type, expressions, queries, changes,
transactions.

Everything is drawn from the round's generator of random numbers, so a seed always gives the same
statements. PostgreSQL leaves some results open. Statements avoid them where they can: the rows that
a LIMIT without an order takes, the match that an UPDATE takes. Other statements carry a mark:

- `risky`: an error such as a division by zero may come or not;
- `many`: the error names any of several violated constraints;
- `loose`: the result holds any of several equal values.
"""

import re

from fuzz_corners import Corners
from fuzz_expressions import (
    COMPARISONS, INTS, NAMES, TYPES, Column, Expressions, Statement, Table,
)  # fmt: skip


class Round(Corners, Expressions):
    """The tables of a round and its statements."""

    def __init__(self, random, count):
        self.random = random
        self.statements, self.tables, self.risky, self.aliases = [], [], False, 0
        # The parameters of the statement being made; whether its expressions may have wrong types.
        self.parameters, self.wild, self.extreme = None, False, False
        for number in range(random.randint(2, 4)):
            self.make_table(number)
        self.inside, self.savepoints = False, []
        count += len(self.statements)
        while len(self.statements) < count:
            self.statements += self.statement()
            self.statements[-1].risky |= self.extreme
        if self.inside:
            self.statements.append(Statement("commit"))
        for table in self.tables:
            self.statements.append(self.contents(table))

    # Tables.

    def declared(self, type_):
        if type_ == "char":
            return f"char({self.pick((1, 3, 5))})"
        if type_ == "varchar":
            return f"varchar({self.pick((3, 8))})"
        if type_ == "numeric":
            return self.pick(("numeric(8,2)", "numeric(6,1)", "numeric"))
        return NAMES[type_]

    def make_table(self, number):
        name = f"t{number}"
        key = self.pick(("int4", "int4", "int8", "text", "char"))
        columns = [Column("id", key, "char(3)" if key == "char" else NAMES[key])]
        for at in range(self.random.randint(2, 7)):
            type_ = self.pick(TYPES)
            columns.append(Column(f"c{at}", type_, self.declared(type_)))
        parts = []
        for column in columns:
            part = f"{column.name} {column.declared}"
            if column.name != "id" and self.chance(0.12):
                part += " not null"
            if column.name != "id" and self.chance(0.2):
                part += f" default {self.stored_literal(column)}"
            parts.append(part)
        style = self.random.random()
        if style < 0.75:
            parts[0] += " primary key"
        elif style < 0.9:
            parts[0] += " not null unique"
        numbers = [c for c in columns[1:] if c.type in INTS]
        if numbers and self.chance(0.2):
            parts.append(f"check ({self.pick(numbers).name} < 9)")
        if self.chance(0.2):
            pair = self.random.sample(columns, 2)
            parts.append(f"unique ({pair[0].name}, {pair[1].name})")
        for parent in self.tables:
            fits = [c for c in columns if c.type == parent.columns[0].type]
            if parent.key == "key" and fits and self.chance(0.5):
                action = self.pick(("", "", " on delete cascade", " on delete set null", " on update cascade"))
                parts.append(f"foreign key ({self.pick(fits).name}) references {parent.name} (id){action}")
        self.statements.append(Statement(f"create table {name} ({', '.join(parts)})", many=True))
        table = Table(name, columns, "key" if style < 0.9 else "none")
        for at in range(self.random.randint(0, 2)):
            chosen = self.random.sample(columns, self.random.randint(1, min(3, len(columns))))
            keys = [c.name + self.pick(("", "", "", " desc", " nulls first")) for c in chosen]
            self.statements.append(Statement(f"create index {name}_i{at} on {name} ({', '.join(keys)})", many=True))
        for at in range(self.random.randint(0, 14)):
            values = [self.key_literal(columns[0], at)] + [self.stored_literal(c) for c in columns[1:]]
            self.statements.append(Statement(f"insert into {name} values ({', '.join(values)})", many=True))
        if self.chance(0.3):
            self.statements.append(Statement(f"analyze {name}", many=True))
        self.tables.append(table)

    def contents(self, table):
        return Statement(f"select * from {table.name} order by 1", ordered=table.key == "key")

    def key_literal(self, column, at):
        return str(at) if column.type in INTS else f"'{'k' * (at % 2)}{at}'"

    # Queries.

    def alias(self):
        self.aliases += 1
        return f"x{self.aliases}"

    def table_of(self, source):
        return next(table for table in self.tables if source.startswith(table.name + " "))

    def source_table(self):
        table, alias = self.pick(self.tables), self.alias()
        return f"{table.name} {alias}", [Column(f"{alias}.{c.name}", c.type) for c in table.columns]

    def source(self, outer, depth):
        form = self.random.random()
        if depth <= 0 or form < 0.7:
            return self.source_table()
        alias = self.alias()
        if form < 0.8:
            types = [self.pick(TYPES) for _ in range(self.random.randint(1, 3))]
            rows = [f"({', '.join(self.typed_literal(t) for t in types)})" for _ in range(self.random.randint(1, 4))]
            names = [f"v{i}" for i in range(len(types))]
            columns = [Column(f"{alias}.{n}", t) for n, t in zip(names, types)]
            return f"(values {', '.join(rows)}) {alias}({', '.join(names)})", columns
        lateral = bool(outer) and self.chance(0.4)
        text, types = self.select_core(outer if lateral else [], depth - 1, self.random.randint(1, 3))
        columns = [Column(f"{alias}.o{i}", t) for i, t in enumerate(types)]
        return f"{'lateral ' if lateral else ''}({text}) {alias}", columns

    def typed_literal(self, type_):
        text = self.literal(type_)
        return text if "::" in text or type_ == "bool" else f"{text}::{NAMES[type_]}"

    def from_clause(self, outer, depth, joins=(0, 0, 1, 1, 2, 3)):
        text, columns = self.source(outer, depth)
        for _ in range(self.pick(joins)):
            kind = self.pick(("join", "join", "left join", "left join", "right join", "full join", "cross join", ","))
            free = kind in ("join", "left join", "cross join", ",")
            if self.chance(0.15):
                other, more = self.from_clause(outer, 0, (1,))
                other = f"({other})"
            else:
                other, more = self.source(outer + columns if free else outer, depth)
            if "lateral" in other and not free:
                continue
            if kind == ",":
                # A comma binds less than a join: what follows must not join to what was before.
                text, columns = f"{text} cross join {other}", columns + more
                continue
            on = ""
            if kind != "cross join":
                pairs = [(a, b) for a in columns for b in more if a.type == b.type or (a.type in INTS and b.type in INTS)]
                if pairs and (kind == "full join" or self.chance(0.75)):
                    a, b = self.pick(pairs)
                    on = f" on {a.name} = {b.name}"
                    if kind != "full join" and self.chance(0.4):
                        on += f" and {self.expr('bool', columns + more, 1)}"
                    elif kind == "full join" and self.chance(0.4):
                        # A subquery there may read one side.
                        side = self.pick((columns, more))
                        wanted = self.pick(side)
                        on += f" and {wanted.name} {self.pick(COMPARISONS)} {self.scalar_query(wanted.type, side, 0)}"
                elif kind == "full join":
                    kind, on = "left join", " on true"
                else:
                    on = f" on {self.expr('bool', columns + more, 2)}"
            text, columns = f"{text} {kind} {other}{on}", columns + more
        return text, columns

    def select_core(self, outer, depth, width, types=None):
        """A query without ORDER BY and its columns' types; its columns are o0, o1, ..."""
        if depth > 0 and self.chance(0.15):
            return self.set_operation(outer, depth, width, types)
        source, columns = self.from_clause(outer, depth)
        scope = columns + outer
        where = f" where {self.expr('bool', scope, depth + 1)}" if self.chance(0.65) else ""
        if depth > 0 and self.chance(0.3):
            return self.grouped(source, columns, where, depth, width, types)
        types = types or [self.pick(TYPES) for _ in range(width)]
        items = [f"{self.expr(t, scope, depth + 1)} as o{i}" for i, t in enumerate(types)]
        if self.chance(0.15):
            distinct = "distinct "
            self.loose = True
        else:
            distinct = ""
        return f"select {distinct}{', '.join(items)} from {source}{where}", types

    def set_operation(self, outer, depth, width, types):
        self.loose = True
        left, types = self.select_core(outer, depth - 1, width, types)
        right, _ = self.select_core(outer, depth - 1, width, types)
        names = ", ".join(f"o{i}" for i in range(len(types)))
        operation = self.pick(("union", "union all", "intersect", "except", "intersect all", "except all"))
        alias = self.alias()
        # A chain, which is one operation of many sides where it is a UNION.
        others = [self.select_core(outer, 0, width, types)[0] for _ in range(self.pick((0, 0, 0, 1, 2, 4)))]
        whole = f" {operation} ".join(f"({side})" for side in (left, right, *others))
        return f"select {names} from ({whole}) {alias}", types

    def grouped(self, source, columns, where, depth, width, types):
        self.loose = True
        keys = self.random.sample(columns, self.random.randint(0, min(2, len(columns))))
        if self.chance(0.1) and len(columns) > 1:
            # A row as a key.
            keys.append(Column(f"row({', '.join(c.name for c in self.random.sample(columns, 2))})", "record"))
        if self.chance(0.3):
            type_ = self.pick(TYPES)
            # A key that could be read as a number or a name of an output column is neither.
            keys = [Column(f"coalesce({self.expr(type_, columns, 2)}, null)", type_), *keys[1:]]
        wanted = types or [self.pick(TYPES) for _ in range(width)]
        given = []
        for type_ in wanted:
            over = keys if self.chance(0.4) else []
            given.append(self.aggregate(type_, columns, keys, depth) if not over else self.expr(type_, over, 1))
        text = f"select {', '.join(f'{e} as o{i}' for i, e in enumerate(given))} from {source}{where}"
        if keys:
            text += f" group by {', '.join(k.name for k in keys)}"
        if self.chance(0.3):
            test = self.aggregate("bool", columns, keys, 1)
            if keys and self.chance(0.5):
                test += f" {self.pick(('and', 'or'))} {self.expr('bool', keys, 1)}"
            if self.chance(0.3):
                test = f"{self.aggregate('numeric', columns, keys, 1)} {self.pick(COMPARISONS)} {self.expr('int4', keys, 1)}"
            text += f" having {test}"
        return text, wanted

    def aggregate(self, type_, columns, keys, depth):
        e = lambda t: self.expr(t, columns, depth)
        distinct = self.pick(("", "", "", "distinct "))
        only = f" filter (where {e('bool')})" if self.chance(0.15) else ""
        if type_ == "bool":
            if self.chance(0.5):
                return f"{self.pick(('bool_and', 'bool_or', 'every'))}({e('bool')}){only}"
            return f"(count({distinct}{e(self.pick(TYPES))}) {self.pick(COMPARISONS)} {self.random.randint(0, 3)})"
        if type_ == "int8":
            form = self.random.randint(0, 3)
            if form == 0:
                return f"count(*){only}"
            if form == 1:
                return f"count({distinct}{e(self.pick(TYPES))}){only}"
            return f"sum({distinct}{e(self.pick(('int2', 'int4')))}){only}"
        if type_ == "numeric":
            form = self.random.randint(0, 4)
            if form == 0:
                return f"avg({distinct}{e(self.pick((*INTS, 'numeric')))}){only}"
            if form == 1:
                return f"{self.pick(('stddev', 'variance', 'var_pop', 'stddev_samp'))}({e(self.pick(INTS))}){only}"
            return f"sum({distinct}{e(self.pick(('int8', 'numeric')))}){only}"
        if type_ == "float8" and self.chance(0.6):
            return f"{self.pick(('sum', 'avg'))}({distinct}{e('float8')}){only}"
        if type_ == "text" and self.chance(0.5):
            value = e("text")
            return f"string_agg({value}, ',' order by {value}){only}"
        if type_ == "bytea":
            return f"{self.pick(('min', 'max'))}({e('bytea')}){only}"
        return f"{self.pick(('min', 'max'))}({e(type_)}){only}"

    def query(self):
        self.loose = self.risky = False
        depth = self.pick((0, 1, 1, 2))
        prefix = ""
        if self.chance(0.06):
            return self.plain_sets()
        if self.chance(0.04):
            return self.shared_with()
        if self.chance(0.05):
            return self.distinct_on()
        if self.chance(0.05):
            return self.ordered_by_expressions()
        if self.chance(0.1):
            inner, types = self.select_core([], 1, 2)
            alias = self.alias()
            prefix = f"with {alias} as ({inner}) "
            columns = [Column(f"{alias}.o{i}", t) for i, t in enumerate(types)]
            width = self.random.randint(1, 3)
            types = [self.pick(TYPES) for _ in range(width)]
            items = [f"{self.expr(t, columns, 2)} as o{i}" for i, t in enumerate(types)]
            text = f"select {', '.join(items)} from {alias}"
            if self.chance(0.5):
                text += f" where {self.expr('bool', columns, 2)}"
        elif self.chance(0.12) and any(table.key == "key" for table in self.tables):
            text, types = self.windowed()
        else:
            text, types = self.select_core([], depth, self.random.randint(1, 4))
        ordered = self.chance(0.4)
        if ordered:
            keys = [f"o{i}" + self.pick(("", "", " desc", " nulls first", " desc nulls last")) for i in range(len(types))]
            self.random.shuffle(keys)
            text += f" order by {', '.join(keys)}"
            if self.chance(0.5):
                text += f" limit {self.random.randint(0, 6)}"
                if self.chance(0.5):
                    text += f" offset {self.random.randint(0, 3)}"
            # Equal keys that look different come in any order.
            self.loose = True
        elif self.chance(0.05):
            # Which rows it gives is open, how many is not.
            text = f"select count(*) from ({text} limit {self.random.randint(0, 4)}) q"
        return Statement(prefix + text, ordered=ordered, loose=self.loose, risky=self.risky)

    def plain_sets(self):
        """Set operations beside and in each other, with their own ORDER BY and LIMIT, of columns
        whose types must meet."""
        self.loose = True
        families = (INTS + ("numeric",), ("text", "varchar"), ("timestamp", "date"), ("bool",), ("interval",), ("char",))
        kinds = [self.pick(families) for _ in range(self.random.randint(1, 3))]
        operation = lambda: self.pick(("union", "union all", "intersect", "except", "intersect all", "except all"))
        every = ", ".join(str(i + 1) for i in range(len(kinds)))

        def branch():
            source, columns = self.from_clause([], 0, (0, 0, 1))
            items = [self.pick((self.expr(self.pick(k), columns, 1), "null")) if self.chance(0.2) else self.expr(self.pick(k), columns, 1) for k in kinds]
            where = f" where {self.expr('bool', columns, 1)}" if self.chance(0.5) else ""
            return f"select {', '.join(items)} from {source}{where}"

        def nested(depth):
            if depth == 0 or self.chance(0.3):
                return branch()
            text = f"{part(depth)} {operation()} {part(depth)}"
            if self.chance(0.3):
                text += f" {operation()} {part(depth)}"
            return text

        def part(depth):
            text = nested(depth - 1)
            return f"({text})"

        text = f"{part(2)} {operation()} {part(2)}"
        for _ in range(self.pick((0, 0, 0, 1, 2, 4))):
            text += f" {operation()} {part(1)}"
        if self.chance(0.4):
            text = f"({text} order by {every} limit {self.random.randint(0, 5)}) {operation()} {part(1)}"
        ordered = self.chance(0.5)
        if ordered:
            text += f" order by {every}"
        return Statement(text, ordered=ordered, loose=True, risky=self.risky)

    def shared_with(self):
        """WITH queries, often over a recursion without end, that several parts of a statement read
        as far as they need."""
        end = self.pick(("", "", f" where n < {self.random.randint(1, 30)}"))
        queries = [f"r (n) as (select 1 union{' all' if self.chance(0.7) else ''} select n + 1 from r{end})"]
        names = ["r"]
        for number in range(self.random.randint(1, 3)):
            body = f"select n * {self.pick((1, 3))} as n from {self.pick(names)}"
            if self.chance(0.3):
                body += " where n % 2 = 1"
            if self.chance(0.2):
                body += f" offset {self.random.randint(0, 3)} limit {self.random.randint(0, 9)}"
            queries.append(f"w{number} as {self.pick(('', 'materialized '))}({body})")
            names.append(f"w{number}")
        source, columns = self.source_table()

        def reader():
            few = self.pick((str(self.random.randint(0, 9)), f"(coalesce(length({self.expr('text', columns, 1)}), 0) % 7)"))
            rows = f"select n from {self.pick(names)}"
            return self.pick((
                f"({rows} offset {few} limit 1)",
                f"(select sum(n) from ({rows} limit {few}) x)",
                f"exists ({rows})",
                f"array({rows} limit {few})",
                f"({few} in ({rows} limit 9))",
                f"(select count(*) from ({rows} limit 4) x, ({rows} limit {few}) y)",
            ))  # fmt: skip

        items = ", ".join(reader() for _ in range(self.random.randint(1, 4)))
        text = f"with recursive {', '.join(queries)} select {items} from {source}"
        return Statement(text, risky=self.risky)

    def distinct_on(self):
        source, columns = self.source_table()
        while self.table_of(source).key != "key":
            source, columns = self.source_table()
        # Without subqueries: those in DISTINCT ON and in ORDER BY are not taken for the same.
        keys = [self.expr(self.pick(TYPES), columns, 0) for _ in range(self.random.randint(1, 2))]
        keys = [f"coalesce({key}, null)" for key in keys]
        items = [self.expr(self.pick(TYPES), columns, 1) for _ in range(2)]
        text = f"select distinct on ({', '.join(keys)}) {', '.join(items)}, {columns[0].name} from {source}"
        if self.chance(0.5):
            text += f" where {self.expr('bool', columns, 2)}"
        order = [key + self.pick(("", " desc", " nulls first")) for key in keys]
        text += f" order by {', '.join(order)}, {self.expr(self.pick(TYPES), columns, 1)} || '' desc, {columns[0].name}"
        if self.chance(0.3):
            text += f" limit {self.random.randint(0, 5)}"
        return Statement(text, ordered=True, loose=True, risky=self.risky)

    def ordered_by_expressions(self):
        """ORDER BY and GROUP BY of what is not in the select list, subqueries in LIMIT."""
        source, columns = self.from_clause([], 0, (0, 1, 1))
        keyed, key = self.source_table()
        while self.table_of(keyed).key != "key":
            keyed, key = self.source_table()
        scope = key + columns
        text = f"select {key[0].name}, count(*), {self.aggregate('int8', scope, key, 1)} from {keyed}"
        text += f" left join {'(' + source + ')' if ' join ' in source else source} on {self.expr('bool', scope, 1)}"
        if self.chance(0.4):
            text += f" where {self.expr('bool', scope, 1)}"
        text += f" group by {key[0].name}"
        if self.chance(0.4):
            text += f" having {self.expr('bool', key, 2)} or {self.aggregate('bool', scope, key, 1)}"
        text += f" order by {self.aggregate('int8', scope, key, 1)} desc, {self.expr(self.pick(TYPES), key, 2)}, {key[0].name}"
        other, own = self.source_table()
        limit = self.pick(("", f" limit (select count(*) from {other} where {self.expr('bool', own, 1)})", " limit 3 offset 1"))
        return Statement(text + limit, ordered=True, loose=True, risky=self.risky)

    def windowed(self):
        source, columns = self.source_table()
        while self.table_of(source).key != "key":
            source, columns = self.source_table()
        scope = columns
        key = columns[0].name
        partition = f"partition by {self.expr(self.pick(TYPES), scope, 0)} " if self.chance(0.6) else ""
        # Beside the key any order will do where rows that are equal in it get the same answer.
        peers = f"order by {self.expr(self.pick(TYPES), scope, 1)} {self.pick(('', 'desc', 'nulls first'))}"
        equal = self.pick((f"{partition}{peers}", partition, f"{partition}order by {key} desc"))
        text = self.expr("text", scope, 1)
        calls = {
            "int8": self.pick((
                f"{self.pick(('row_number()', 'rank()', 'dense_rank()', 'count(*)'))} over ({partition}order by {key})",
                f"{self.pick(('rank()', 'dense_rank()', 'count(*)', f'count({text})'))} over ({equal})",
            )),
            "numeric": self.pick((
                f"sum({self.expr('int8', scope, 1)}) over ({partition}order by {key})",
                f"{self.pick(('sum', 'avg', 'max'))}({self.expr('numeric', scope, 1)}) over ({equal})",
            )),
            "float8": f"{self.pick(('percent_rank()', 'cume_dist()'))} over ({equal})",
            "int4": f"ntile({self.random.randint(1, 4)}) over ({partition}order by {key})",
            "text": self.pick((
                f"{self.pick(('lag', 'lead', 'first_value', 'last_value'))}({text}) over ({partition}order by {key})",
                f"{self.pick(('lag', 'lead'))}({text}, {self.random.randint(-1, 2)}, {self.literal('text')}) over ({partition}order by {key})",
                f"nth_value({text}, {self.random.randint(1, 3)}) over ({partition}order by {key})",
            )),
        }  # fmt: skip
        types = [self.pick(list(calls)) for _ in range(2)]
        where = f" where {self.expr('bool', scope, 1)}" if self.chance(0.4) else ""
        items = [f"{key} as o0"] + [f"{calls[t]} as o{i + 1}" for i, t in enumerate(types)]
        return f"select {', '.join(items)} from {source}{where}", [columns[0].type, *types]

    # Changes.

    def new_key(self, table):
        if table.columns[0].type in INTS:
            return str(self.random.randint(0, 30))
        return f"'{self.pick(('', 'k'))}{self.random.randint(0, 20)}'"

    def returning(self, table):
        if not self.chance(0.3):
            return ""
        scope = [Column(f"{table.name}.{c.name}", c.type) for c in table.columns]
        return f" returning {self.pick(('*', self.expr(self.pick(TYPES), scope, 1)))}"

    def insert(self):
        table = self.pick(self.tables)
        many = self.chance(0.3)
        chosen = table.columns[:1] + [c for c in table.columns[1:] if self.chance(0.8)]
        names = ", ".join(c.name for c in chosen)
        if self.chance(0.25):
            source, columns = self.source_table()
            items = []
            for column in chosen:
                value = self.expr(column.type, columns, 1)
                items.append(self.new_key(table) if column.name == "id" else value)
            own = columns[0].name
            if table.columns[0].type in INTS and columns[0].type in INTS:
                items[0] = f"{own} + {self.random.randint(1, 40)}"
            many = True
            text = f"insert into {table.name} ({names}) select {', '.join(items)} from {source} order by {own}"
        else:
            rows = []
            for _ in range(self.random.randint(2, 4) if many else 1):
                values = [self.new_key(table)]
                values += [self.pick((self.stored_literal(c), self.stored_literal(c), "default")) for c in chosen[1:]]
                rows.append(f"({', '.join(values)})")
            text = f"insert into {table.name} ({names}) values {', '.join(rows)}"
        # Which of several rows of one key stays depends on their order.
        if self.chance(0.3) and (" select " not in text or self.table_of(source).key == "key"):
            text += self.on_conflict(table)
        return Statement(text + self.returning(table), risky=True, many=True)

    def on_conflict(self, table):
        if table.key != "key" or self.chance(0.4):
            return " on conflict do nothing"
        if self.chance(0.3) or len(table.columns) < 2:
            return " on conflict (id) do nothing"
        column = self.pick(table.columns[1:])
        scope = [Column(f"{table.name}.{c.name}", c.type) for c in table.columns]
        scope += [Column(f"excluded.{c.name}", c.type) for c in table.columns]
        # No deeper: subqueries are not built there.
        where = f" where {self.expr('bool', scope, 0)}" if self.chance(0.3) else ""
        return f" on conflict (id) do update set {column.name} = {self.expr(column.type, scope, 0)}{where}"

    def update(self):
        table = self.pick(self.tables)
        alias = self.alias()
        scope = [Column(f"{alias}.{c.name}", c.type) for c in table.columns]
        source, where = "", []
        if self.chance(0.2):
            other, more = self.source_table()
            # At most one match, so that which one is taken is not open.
            pairs = [c for c in scope if c.type == more[0].type]
            if pairs and self.table_of(other).key == "key":
                source = f" from {other}"
                where.append(f"{self.pick(pairs).name} = {more[0].name}")
                scope = scope + more
        sets = []
        for column in self.random.sample(table.columns[1:], self.random.randint(1, len(table.columns) - 1)):
            value = "default" if self.chance(0.05) else self.expr(column.type, scope, 2)
            sets.append(f"{column.name} = {value}")
        if self.chance(0.15):
            sets.append(f"id = {self.new_key(table)}")
            where.append(f"{alias}.id = {self.new_key(table)}")
        elif self.chance(0.8):
            where.append(self.expr("bool", scope, 2))
        text = f"update {table.name} {alias} set {', '.join(sets)}{source}"
        if where:
            text += f" where {' and '.join(where)}"
        if self.chance(0.3):
            text += f" returning {self.expr(self.pick(TYPES), scope, 1)}"
        return Statement(text, risky=True, many=True)

    def delete(self):
        table = self.pick(self.tables)
        alias = self.alias()
        scope = [Column(f"{alias}.{c.name}", c.type) for c in table.columns]
        using = ""
        if self.chance(0.2):
            other, more = self.source_table()
            using, scope = f" using {other}", scope + more
        text = f"delete from {table.name} {alias}{using} where {self.expr('bool', scope, 2)}"
        text += f" and {alias}.id {self.pick(('=', '<', '>'))} {self.new_key(table)}"
        return Statement(text, risky=True, many=True)

    def transaction(self):
        if not self.inside:
            self.inside, self.savepoints = True, []
            return Statement(self.pick(("begin", "begin isolation level repeatable read")))
        form = self.random.randint(0, 6)
        if form == 0 or (form < 3 and not self.savepoints):
            self.savepoints.append(f"s{self.random.randint(0, 2)}")
            return Statement(f"savepoint {self.savepoints[-1]}")
        if form < 3:
            return Statement(f"rollback to {self.pick(self.savepoints)}")
        if form == 3 and self.savepoints:
            return Statement(f"release {self.pick(self.savepoints)}")
        self.inside = False
        return Statement(self.pick(("commit", "commit", "rollback")), many=True)

    def statement(self):
        roll = self.random.random()
        self.risky = False
        if roll < 0.05:
            # Parameters whose types are to be found out.
            self.parameters = []
            query = self.query()
            given, self.parameters = self.parameters, None
            # Not every expression drawn is in the query, and some are in it twice.
            used = sorted({int(number) for number in re.findall(r"\$(\d+)", query.text)})
            text = re.sub(r"\$(\d+)", lambda found: f"${used.index(int(found[1])) + 1}", query.text)
            name = f"q{self.random.randint(0, 10**9)}"
            call = f"execute {name}" + (f"({', '.join(given[number - 1] for number in used)})" if used else "")
            run = Statement(call, query.ordered, query.loose, True)
            return [Statement(f"prepare {name} as {text}", risky=True), run, run]
        if roll < 0.1:
            self.wild = True
            query = self.query()
            self.wild = False
            query.position = True
            return [query]
        if roll < 0.15:
            return [self.corner()]
        if roll < 0.62:
            query = self.query()
            if self.inside and query.ordered and self.chance(0.3):
                return self.through_cursor(query)
            if self.chance(0.08) and len(query.text) < 3000:
                name = f"p{self.random.randint(0, 10**9)}"
                run = Statement(f"execute {name}", query.ordered, query.loose, query.risky)
                return [Statement(f"prepare {name} as {query.text}", risky=query.risky), run, run]
            return [query]
        if roll < 0.74:
            return [self.insert()]
        if roll < 0.83:
            return [self.update()]
        if roll < 0.88:
            return [self.delete()]
        if roll < 0.9:
            return [self.contents(self.pick(self.tables))]
        return [self.transaction()]
