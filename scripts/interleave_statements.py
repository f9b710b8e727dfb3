"""Random statements of several sessions over the same few rows, for scripts/interleave.py.

Every statement that goes through several rows does so by the primary key (`id > 0`), since who
waits depends on the order in which rows are locked. Joins name one row of the other table, since
which of several partners an UPDATE takes is not said.
"""

import random

ACTIONS = ("no action", "restrict", "cascade", "set null", "set default")
TABLES = (
    "create table t (id int primary key, k int unique, n int, v text)",
    "create table u (id int primary key, t int, n int)",
    "insert into t values (1, 1, 10, 'a'), (2, 2, 20, 'b'), (3, 3, 30, null), (4, 4, 40, 'd')",
    "insert into u values (1, 1, 1), (2, 2, 2), (3, 1, 3), (4, null, 4)",
)
NAMESPACE = "(select oid from pg_namespace where nspname = 'r')"


class Round:
    """A round's tables, and its steps one by one."""

    MODES = ("rows", "unique", "upsert", "keys", "define", "session")

    def __init__(self, seed, mode, sessions):
        self.random = random.Random(f"{seed} {mode} {sessions}")
        self.mode = mode or self.pick(*self.MODES)
        self.sessions = sessions
        self.length = self.pick(6, 10, 16, 24)
        self.savepoints = [0] * sessions
        self.statement = getattr(self, f"{self.mode}_statement")
        self.setup, self.final = "; ".join(TABLES), ["select * from r.t", "select * from r.u"]
        if self.mode == "unique":
            self.setup += "; create unique index on t (n, v)"
        elif self.mode == "rows":
            self.setup += "; create index on t (n)"
        elif self.mode == "keys":
            self.make_keys()
        elif self.mode == "define":
            self.setup += "; create sequence q"
            self.final += [
                "select * from r.w",
                f"select relname, relkind from pg_class where relkind <> 't' and relnamespace = {NAMESPACE}",
                f"select conname, convalidated from pg_constraint where contype <> 'n' and connamespace = {NAMESPACE}",
                "select attname, atttypid, attnotnull from pg_attribute where attnum > 0 and not attisdropped and "
                f"attrelid in (select oid from pg_class where relkind = 'r' and relnamespace = {NAMESPACE})",
            ]
        elif self.mode == "session":
            self.setup += "; create sequence q; create table s (id serial primary key, n int)"
            self.final += ["select * from r.s", "select nextval('r.q')"]

    def make_keys(self):
        """A parent and a child by a foreign key of one of three kinds, and perhaps a key of the
        parent to itself."""
        to = self.pick("id", "id", "k", "pair")
        actions = f"on delete {self.pick(*ACTIONS)} on update {self.pick(*ACTIONS)}"
        default = self.pick("default 1", "default 9", "")
        if to == "pair":
            child = f"a int {default}, b int {default}, n int, foreign key (a, b) references p (a, b) {actions}"
        else:
            child = f"a int {default} references p ({to}) {actions}, b int, n int"
        self.itself = self.chance(0.3)
        up = f"references p on delete {self.pick(*ACTIONS)} on update {self.pick(*ACTIONS)}" if self.itself else ""
        self.setup = "; ".join((
            f"create table p (id int primary key, k int unique, a int, b int, n int, up int {up}, unique (a, b))",
            f"create table c (id int primary key, {child})",
            self.pick("create index on c (a)", "create index on c (a, b)", "select 1"),
            "insert into p values (1, 1, 1, 1, 0, null), (2, 2, 2, 2, 0, null), (3, 3, 3, 3, 0, null), (4, 4, 4, 4, 0, 1)",
            "insert into c values (1, 1, 1, 0), (2, 2, 2, 0), (4, null, null, 0)",
        ))
        self.final = ["select * from r.p", "select * from r.c"]

    # Pieces

    def pick(self, *choices):
        return self.random.choice(choices)

    def chance(self, share):
        return self.random.random() < share

    def id(self):
        return self.pick(1, 1, 1, 2, 2, 3, 4, 5)

    def where(self):
        x, y = self.id(), self.id()
        return self.pick(
            f"t.id = {x}", f"t.id = {x}", f"t.id in ({x}, {y})", "t.id > 0", f"t.id >= {x}",
            f"t.id > 0 and t.n >= {self.pick(10, 15, 20, 25)}", f"t.id > 0 and t.n < {self.pick(15, 25, 35)}",
            "t.id > 0 and t.n % 20 = 10",
        )

    def lock(self, of=""):
        mode = self.pick("update", "update", "no key update", "share", "share", "key share")
        wait = self.pick("", "", "", " nowait", " skip locked") if mode != "key share" else ""
        return f"for {mode}{of}{wait}"

    def returning(self):
        return self.pick("", "", " returning *", " returning id, n")

    # Steps

    def step(self, free, states):
        """The next step: a session that does not wait, and its statement. States are those of
        ReadyForQuery, of `free` sessions at least."""
        at = self.pick(*free)
        if states[at] == "I":
            self.savepoints[at] = 0
            begin = ("begin", "begin", "begin", "begin isolation level repeatable read")
            return at, self.pick(*begin) if self.chance(0.6) else self.statement()
        if states[at] == "E":
            if self.savepoints[at] and self.chance(0.6):
                return at, f"rollback to s{self.random.randrange(self.savepoints[at])}"
            return at, self.pick("rollback", "rollback", "commit")
        share = self.random.random()
        if share < 0.13:
            return at, "commit"
        if share < 0.18:
            return at, "rollback"
        if share < 0.27:
            self.savepoints[at] += 1
            return at, f"savepoint s{self.savepoints[at] - 1}"
        if share < 0.35 and self.savepoints[at]:
            return at, f"rollback to s{self.random.randrange(self.savepoints[at])}"
        if share < 0.37 and self.savepoints[at] and len(free) == self.sessions:
            self.savepoints[at] = self.random.randrange(self.savepoints[at])
            return at, f"release s{self.savepoints[at]}"
        return at, self.statement()

    def rows_statement(self):
        x, y, end = self.id(), self.id(), self.returning()
        kind = self.pick(*"uuuuuujjjddxiiipsssssr")
        if kind == "u":
            return f"update t set {self.new_values()} where {self.where()}{end}"
        if kind == "j":
            return self.pick(
                f"update t set n = t.n + u.n from u where u.t = t.id and u.id = {y} and {self.where()} returning t.*, u.*",
                f"update t set v = u.n::text from u where u.t = t.id and u.id = {y} and {self.where()}",
                f"update t set n = s.m from (select max(n) + 1 m from t where id > 0) s where t.id = {x} returning t.*, s.m",
                f"update t a set n = b.n from t b where a.id = {x} and b.id = {y} returning a.*, b.*",
                f"update t set n = 0 where id in (select id from t where id > 0 and n > 15 order by id limit 1 for update)",
                f"update t set n = n * 2 where id = any (array(select t from u where t is not null and id > 0))",
                f"update t set n = t.n + 1 where id > 0 and n in (select n * 10 from u where id > 0){end}",
            )
        if kind == "d":
            more = self.pick(
                "", " and exists (select 1 from u where u.t = t.id)",
                " and id not in (select t from u where t is not null and id > 0)",
                " and n = (select max(n) from t where id > 0)",
            )
            return f"delete from t where {self.where()}{more}{end}"
        if kind == "x":
            return f"delete from t using u where u.t = t.id and u.id = {y} and t.id > 0 returning t.id, u.id"
        if kind == "i":
            return self.pick(
                f"insert into t values ({x}, {self.pick(y, y + 4, 'null')}, {10 * x}, 'i'){end}",
                f"insert into u values ({self.pick(5, 6, 7)}, {self.pick(x, 'null')}, {y})",
            )
        if kind == "p":
            return f"update u set {self.pick('t = t + 1', 'n = n + 1', 't = null', f't = {x}')} where id = {y} returning *"
        if kind == "s":
            return self.pick(
                f"select * from t where {self.where()} order by id {self.lock()}",
                f"select * from t where id > 0 order by id limit {self.pick(1, 2)} {self.lock()}",
                f"select t.n, u.n from t join u on u.t = t.id where u.id = {y} and {self.where()} {self.lock(' of t')}",
                f"select id, (select count(*) from u where u.t = t.id and u.id > 0) from t where {self.where()} for update",
                f"select * from (select * from t where id > 0 order by id limit 2 {self.lock()}) s",
                f"with s as (select * from t where {self.where()} {self.lock()}) select id, n from s",
                f"select * from t where id = (select max(id) from t) {self.lock()}",
                f"select * from t where k = {x} {self.lock()}",
            )
        return self.pick(
            "select * from t where id > 0 order by id", "select count(*), sum(n), max(v) from t where id > 0",
            f"lock table u in {self.pick('share', 'exclusive', 'access exclusive', 'row exclusive')} mode",
        )

    def new_values(self):
        x = self.id()
        return self.pick(
            "n = n + 1", "n = n + 5", f"n = {self.pick(5, 10, 20, 30)}", "v = coalesce(v, '') || 'x'", "v = null", "k = k",
            "id = id + 10", "id = id", "k = k + 10", "k = null", "n = 11, id = 1", "id = 5 - id", "n = n + 1, v = v || n",
            "n = (select n from u where u.id = t.id)", "n = n + (select count(*) from u where u.t = t.id)",
            "n = t.n + (select coalesce(sum(x.n), 0) from t x where x.id < t.id and x.id > 0)",
            f"n = (select max(x.n) from t x where x.id <> {x})", "n = case when n > 15 then n - 10 else n + 10 end",
            f"n = n + (select t.n + x.n from t x where x.id = {x})",
        )

    def unique_statement(self):
        x, y = self.id(), self.id()
        if self.chance(0.35):
            return self.rows_statement()
        return self.pick(
            f"insert into t values ({x}, {y}, {self.pick(10, 20)}, 'i')", f"insert into t values ({x}, null, null, 'i')",
            f"insert into t values ({x + 4}, {y}, 20, 'b')", f"delete from t where id = {x}",
            f"update t set k = {y} where id = {x}", f"update t set id = {y} where id = {x}",
            f"update t set id = id + 1 where id >= {x}", "update t set k = 5 - k where id > 0",
            f"update t set n = 20, v = 'b' where id = {x}", f"update t set n = 10, v = 'a' where k = {x}",
            f"delete from t where k = {x} returning *", f"insert into t select id + 1, k + 1, n, v from t where id = {x}",
            f"update t set id = {y}, k = {x} where id = {x} returning *", f"update t set k = k where k = {x}",
            f"insert into t values ({x}, {y}, 1, 'z') on conflict do nothing", f"update t set k = -k where id = {x}",
            f"update t set id = -id where id = {x}", "update t set id = -id where id < 0 and id > -10",
            f"select * from t where k = {x} {self.lock()}", "select * from t where id > -100 order by id",
        )

    def upsert_statement(self):
        x, y, end = self.id(), self.id(), self.returning()
        action = self.pick(
            "do nothing", "(id) do nothing", "(k) do nothing", "(id) do update set n = t.n + excluded.n",
            "(id) do update set v = excluded.v, n = t.n + 1", "(k) do update set id = excluded.id",
            "(k) do update set n = t.n + 100", "(id) do update set k = excluded.k", "(id) do update set v = t.v || t.n",
            f"(id) do update set n = t.n + 1 where t.n > {self.pick(15, 25)}", f"(k) do update set k = {y + 4}",
            "(id) do update set id = t.id + 10",
        )
        rows = self.pick(
            f"values ({x}, {self.pick(x, y, 'null')}, 1, 'u')", f"values ({x}, {y}, 1, 'u')",
            f"values ({x}, {y + 4}, 2, 'w'), ({y + 1}, {x + 5}, 3, 'w')",
            "select t, id + 4, n, 's' from u where id > 0 and t is not null order by id",
        )
        if self.chance(0.55):
            return f"insert into t {rows} on conflict {action}{end}"
        return self.pick(
            f"insert into t values ({x}, {y}, 9, 'i'){end}", f"delete from t where id = {x}",
            f"update t set n = n + 1 where id = {x}", f"update t set k = {y} where id = {x}",
            f"update t set id = {y} where id = {x}", "select * from t where id > 0 order by id",
            f"select * from t where id = {x} {self.lock()}", f"delete from t where k = {x}",
        )

    def keys_statement(self):
        x, y, end = self.pick(1, 1, 1, 2, 2, 3, 4), self.pick(1, 1, 2, 2, 3, 4, 5), self.pick("", "", " returning *")
        new = self.pick(3, 5, 6, 7)
        if self.chance(0.45):
            return self.pick(
                f"insert into c values ({new}, {x}, {x}, 1){end}", f"insert into c values ({new}, {y}, {x}, 1)",
                f"insert into c values ({new}, {x}, null, 1)", f"insert into c (id, n) values ({new}, 5)",
                f"update c set a = {x}, b = {x} where id = {y}", f"update c set a = {y} where id = {x}",
                f"update c set n = n + 1 where id = {x}{end}", f"delete from c where id = {x}", f"delete from c where a = {x}",
                f"update c set a = null where id = {x}", f"update c set id = {new} where id = {x}",
                "select * from c where id > 0 order by id", f"update c set a = a where id = {x}",
                f"select * from c where id = {x} {self.lock()}",
            )
        if self.itself and self.chance(0.2):
            return self.pick(
                f"update p set up = {self.pick(x, y, 'null')} where id = {y}",
                f"insert into p values ({y}, {y}, {y}, {y}, 8, {x})",
            )
        row = f"({x}, {x}, {x}, {x}, 9, null)"
        return self.pick(
            f"delete from p where id = {x}{end}", f"delete from p where id = {x}", f"delete from p where id >= {x}",
            f"update p set id = {self.pick(x, y, 10)} where id = {x}", f"update p set k = {self.pick(x, y, 10)} where id = {x}",
            f"update p set a = {self.pick(x, y, 10, 'null')} where id = {x}", f"update p set a = b, b = a where id = {x}",
            f"update p set n = n + 1 where id = {x}{end}", f"insert into p values {row}",
            f"insert into p values ({y}, {y}, {x}, {y}, 8, null)", f"update p set id = {x} where id = 10",
            f"update p set k = {x} where k = 10", f"update p set a = {x} where id = {x}",
            f"update p set id = id + 1 where id = {x}", f"update p set id = id - 1 where id = {x + 1}",
            f"update p set n = n + 1, k = k where id = {x}", f"select * from p where id = {x} {self.lock()}",
            f"insert into p values {row} on conflict do nothing",
            f"insert into p values {row} on conflict (id) do update set n = p.n + 1{end}",
            f"delete from p where id = {x}; insert into p values {row}", f"update p set id = 10, k = 10 where id = {x}",
        )

    def define_statement(self):
        if self.chance(0.35):
            x, y = self.id(), self.id()
            return self.pick(
                "select id, n from t where id > 0 order by id", f"select * from u where id = {x}",
                f"update t set n = n + 1 where id = {x}", f"insert into t (id, k, n) values ({x + 3}, {y}, {10 * y})",
                f"delete from t where id = {x}", f"insert into u values ({x + 4}, {x}, {y})", f"delete from u where id = {x}",
                f"update u set t = {y} where id = {x}", f"select id from t where id = {x} {self.lock()}",
                "select count(*) from t", "select count(*) from u",
            )
        mode = self.pick("access share", "row share", "row exclusive", "share update exclusive", "share",
                         "share row exclusive", "exclusive", "access exclusive")
        return self.pick(
            "alter table t add column w int", "alter table t add column w int default 5", "alter table t drop column w",
            "alter table t drop column v", "alter table t add constraint ch check (n > 0)",
            "alter table t add constraint ch check (n < 25)", "alter table t add constraint ch check (n < 25) not valid",
            "alter table t validate constraint ch", "alter table t drop constraint ch", "alter table t add unique (n)",
            "alter table t add constraint uk unique (n)", "alter table t drop constraint if exists uk",
            "create unique index ix on t (k)", "create unique index ix on t (n)", "drop index ix", "drop index if exists ix",
            "truncate t", "truncate u", "truncate t, u", "drop table u", "drop table if exists u",
            "create table u (id int primary key, t int, n int)", "alter table u rename to w", "alter table w rename to u",
            "create table w (id int)", "drop table w", "create table if not exists w (id int)", "insert into w values (1)",
            "alter table t alter column n set not null", "alter table t alter column n drop not null",
            "alter table t alter column v set not null", "alter table t alter column n type bigint",
            "alter table t alter column n set default 7", "alter table t rename column n to m",
            "alter table t rename column m to n", "drop sequence q", "create sequence q", "select nextval('q')",
            "alter sequence q restart", "drop table t", "drop table if exists t", "alter table t rename to z",
            "create table w as select * from t where id > 0", "alter table z rename to t", "alter index ix rename to iy",
            "drop index iy", "vacuum t", "analyze t", "select count(*) from w",
            f"lock table t in {mode} mode{self.pick('', '', ' nowait')}",
        )

    def session_statement(self):
        if self.chance(0.25):
            return self.rows_statement()
        x, lock = self.id(), self.pick(1, 1, 2)
        if self.chance(0.4):
            return "select " + self.pick(
                f"pg_advisory_lock({lock})", f"pg_advisory_xact_lock({lock})", f"pg_try_advisory_lock({lock})",
                f"pg_advisory_unlock({lock})", f"pg_advisory_lock_shared({lock})", f"pg_advisory_unlock_shared({lock})",
                f"pg_try_advisory_xact_lock({lock})", f"pg_advisory_xact_lock_shared({lock})", "pg_advisory_unlock_all()",
                f"pg_advisory_lock({lock}, 1)", f"pg_try_advisory_lock_shared({lock})",
            )
        cursor = self.pick("c0", "c1")
        rows = "for select id, n from t where id > 0 order by id"
        return self.pick(
            f"declare {cursor} cursor {rows}", f"declare {cursor} cursor with hold {rows}", f"close {cursor}", "close all",
            f"declare {cursor} scroll cursor {rows}", f"declare {cursor} scroll cursor with hold {rows}",
            f"fetch 1 from {cursor}", f"fetch 2 from {cursor}", f"fetch all from {cursor}", f"fetch prior from {cursor}",
            f"fetch first from {cursor}", f"move 1 from {cursor}", "select nextval('q')", "select currval('q')",
            "select setval('q', 10)", "select lastval()", "alter sequence q increment 2", "discard sequences",
            "insert into s (n) values (1) returning id", "insert into s values (default, 2), (default, 3) returning id",
            f"insert into s values ({x + 1}, 0)", "truncate s restart identity", "truncate s",
            "with x as (select * from t where id > 0 and n > 15) select id from x order by id",
            f"update t set n = n + 1 where id = {x} returning n", "set transaction isolation level repeatable read",
            "set transaction read only", f"select * from t where id = {x} {self.lock()}", "rollback and chain",
            "commit and chain", "copy (select * from t where id > 0 order by id) to stdout",
            f"prepare p{lock} as select n from t where id = {x}", f"execute p{lock}", f"deallocate p{lock}",
            "delete from t where id = 1",
        )
