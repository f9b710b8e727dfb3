"""psycopg 3 against the server its environment names."""
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import psycopg
from psycopg import errors, sql
from psycopg.rows import dict_row

from common import DSN, VALUES, check, fails, run, same


def connect(**options):
    return psycopg.connect(DSN, autocommit=True, **options)


def state(fault):
    return fault.sqlstate


@check
def connection_facts():
    with connect() as c:
        same(c.info.parameter_status("server_encoding"), "UTF8")
        same(c.info.parameter_status("standard_conforming_strings"), "on")
        same(c.info.parameter_status("integer_datetimes"), "on")
        assert c.info.server_version >= 150000, c.info.server_version
        same(c.info.transaction_status.name, "IDLE")
        c.execute("set application_name to 'driver check'")
        same(c.info.parameter_status("application_name"), "driver check")
        c.execute("set timezone to 'Asia/Tokyo'")
        same(c.info.parameter_status("TimeZone"), "Asia/Tokyo")
        c.execute("set datestyle to 'German'")
        same(c.info.parameter_status("DateStyle"), "German, DMY")


@check
def types_in_text_and_binary_both_ways():
    with connect(prepare_threshold=None) as c:
        for binary_in in (False, True):
            for binary_out in (False, True):
                for type_, values in VALUES:
                    c.execute("drop table if exists every_type")
                    c.execute(f"create table every_type (id int primary key, v {type_})")
                    mark = "%b" if binary_in else "%t"
                    for n, value in enumerate([*values, None]):
                        c.execute(f"insert into every_type values (%s, {mark}::{type_})", (n, value))
                    cursor = c.execute("select v from every_type order by id", binary=binary_out)
                    same([r[0] for r in cursor], [*values, None], f"{type_} in={binary_in} out={binary_out}")
                    for value in values:
                        got = c.execute(f"select {mark}::{type_}", (value,), binary=binary_out).fetchone()[0]
                        same(got, value, f"{type_} parameter in={binary_in} out={binary_out}")


@check
def parameters_of_unknown_type():
    with connect() as c:
        same(c.execute("select %s || 'x', %s + 1, %s::text", ("a", 2, 3)).fetchone(), ("ax", 3, "3"))
        c.execute("drop table if exists unk")
        c.execute("create table unk (a int, b text, c timestamptz, d numeric, e date)")
        c.execute("insert into unk values (%s, %s, %s, %s, %s)", (None, None, None, None, None))
        c.execute("insert into unk values (%s, %s, %s, %s, %s)", ("7", "x", "2020-01-01 00:00+00", "1.5", "2020-02-02"))
        same(c.execute("select count(*) from unk where a = %s or b = %s", ("7", "y")).fetchone()[0], 1)
        same(c.execute("select a from unk where a = any(%s)", ([7, 8],)).fetchall(), [(7,)])
        same(c.execute("select b from unk where b = any(%s)", (["x", "q"],)).fetchall(), [("x",)])
        same(c.execute("select a from unk where a in (%s, %s)", (7, 9)).fetchall(), [(7,)])
        same(c.execute("select b from unk where b like %s", ("%",)).fetchall(), [("x",)])
        same(c.execute("select a from unk limit %s offset %s", (1, 1)).fetchall(), [(7,)])


@check
def prepared_statements():
    with connect(prepare_threshold=0) as c:
        for n in range(20):
            same(c.execute("select %s::int * 2", (n,)).fetchone()[0], n * 2)
        c.execute("drop table if exists changing")
        c.execute("create table changing (a int)")
        c.execute("insert into changing values (1)")
        same(c.execute("select a from changing where a > %s", (0,)).fetchall(), [(1,)])
        c.execute("alter table changing add b text default 'new'")
        same(c.execute("select a, b from changing where a > %s", (0,)).fetchall(), [(1, "new")])
        c.execute("deallocate all")
        same(c.execute("select a from changing where a > %s", (0,), prepare=True).fetchall(), [(1,)])
    with connect(prepare_threshold=2) as c:
        for n in range(200):
            same(c.execute(f"select %s + {n}", (1,)).fetchone()[0], n + 1)


@check
def pipelining():
    with connect() as c:
        c.execute("drop table if exists piped")
        c.execute("create table piped (a int primary key)")
        with c.pipeline():
            cursors = [c.execute("insert into piped values (%s) returning a", (n,)) for n in range(500)]
            same([r.fetchone()[0] for r in cursors], list(range(500)))
        try:
            with c.pipeline() as p:
                c.execute("insert into piped values (-1)")
                p.sync()
                c.execute("insert into piped values (1)")
                c.execute("insert into piped values (-2)")
            raise AssertionError("the pipeline was to fail")
        except errors.UniqueViolation:
            pass
        same(c.execute("select a from piped where a < 0").fetchall(), [(-1,)])
        with c.cursor() as cursor:
            cursor.executemany("insert into piped values (%s)", [(n,) for n in range(1000, 2000)])
            same(cursor.rowcount, 1000)
            cursor.executemany("update piped set a = -a where a = %s returning a", [(1000,), (1001,)], returning=True)
            same(cursor.fetchone(), (-1000,))
            assert cursor.nextset()
            same(cursor.fetchone(), (-1001,))


@check
def copying():
    with connect() as c:
        c.execute("drop table if exists copied")
        c.execute("create table copied (a int primary key, b text, c bytea, d numeric, e timestamptz)")
        from datetime import datetime, timezone
        from decimal import Decimal
        at = datetime(2024, 5, 6, 7, 8, 9, 10, tzinfo=timezone.utc)
        rows = [(n, f"row\t{n}\n\\", bytes([n % 256]), Decimal(n) / 4, at) for n in range(3000)] + [(9999, None, None, None, None)]
        with c.cursor() as cursor:
            with cursor.copy("copy copied from stdin") as copy:
                for row in rows:
                    copy.write_row(row)
            same(cursor.rowcount, len(rows))
            with cursor.copy("copy copied (a, b, c, d, e) to stdout") as copy:
                copy.set_types(["int4", "text", "bytea", "numeric", "timestamptz"])
                same(list(copy.rows()), rows)
            cursor.execute("truncate copied")
            with cursor.copy("copy copied from stdin (format binary)") as copy:
                copy.set_types(["int4", "text", "bytea", "numeric", "timestamptz"])
                for row in rows:
                    copy.write_row(row)
            with cursor.copy("copy (select * from copied order by a) to stdout (format binary)") as copy:
                copy.set_types(["int4", "text", "bytea", "numeric", "timestamptz"])
                same(list(copy.rows()), rows)
            with cursor.copy("copy copied to stdout with (format csv, header)") as copy:
                same(b"".join(copy).startswith(b"a,b,c,d,e\n"), True)

            def interrupted():
                with cursor.copy("copy copied from stdin") as copy:
                    copy.write("123456\tx\t\\N\t\\N\t\\N\n")
                    raise ZeroDivisionError
            try:
                interrupted()
            except ZeroDivisionError:
                pass
            same(c.execute("select count(*) from copied where a = 123456").fetchone()[0], 0)

            def bad():
                with cursor.copy("copy copied from stdin") as copy:
                    copy.write("nonsense\tx\t\\N\t\\N\t\\N\n")
            fails(state, psycopg.Error, "22P02", bad)

            def twice():
                with cursor.copy("copy copied from stdin") as copy:
                    copy.write("1\tx\t\\N\t\\N\t\\N\n")
            fails(state, psycopg.Error, "23505", twice)
    # A reader that gives up in the middle has its connection closed, and the server goes on.
    with connect() as c, c.cursor() as cursor:
        with cursor.copy("copy (select generate_series(1, 2000000)) to stdout") as copy:
            copy.read()
            c.cancel()
            try:
                while copy.read():
                    pass
            except errors.QueryCanceled:
                pass
        same(c.execute("select 1").fetchone(), (1,))


@check
def cancelling():
    with connect() as c:
        for cancel in (c.cancel, c.cancel_safe):
            timer = threading.Timer(0.3, cancel)
            timer.start()
            fails(state, psycopg.Error, "57014", lambda: c.execute("select count(*) from generate_series(1, 100000000000)"))
            timer.join()
            timer = threading.Timer(0.3, cancel)
            timer.start()
            fails(state, psycopg.Error, "57014", lambda: c.execute("select pg_sleep(30)"))
            timer.join()
        same(c.execute("select 1").fetchone(), (1,))
        c.execute("drop table if exists locked")
        c.execute("create table locked (a int primary key, b int)")
        c.execute("insert into locked values (1, 1)")
        with connect() as other, other.transaction():
            other.execute("update locked set b = 2")
            timer = threading.Timer(0.3, c.cancel)
            timer.start()
            fails(state, psycopg.Error, "57014", lambda: c.execute("update locked set b = 3"))
            timer.join()
            c.execute("set lock_timeout = '100ms'")
            fails(state, psycopg.Error, "55P03", lambda: c.execute("update locked set b = 3"))
        pid = c.info.backend_pid
        with connect() as other:
            same(other.execute("select pg_backend_pid()").fetchone()[0], other.info.backend_pid)
            same(other.execute("select pg_cancel_backend(%s)", (pid,)).fetchone()[0], True)
            same(other.execute("select pg_terminate_backend(%s)", (pid,)).fetchone()[0], True)
            time.sleep(0.2)
            fails(state, psycopg.Error, "57P01", lambda: c.execute("select 1"))


@check
def cursors_and_large_results():
    with connect() as c:
        same(sum(r[0] for r in c.execute("select g from generate_series(1, 300000) g")), 300000 * 300001 // 2)
        with c.transaction():
            with c.cursor(name="server side") as cursor:
                cursor.itersize = 100
                cursor.execute("select g, 'text ' || g from generate_series(1, 5000) g")
                same(cursor.fetchone(), (1, "text 1"))
                same(len(cursor.fetchmany(99)), 99)
                same(sum(1 for _ in cursor), 4900)
        with c.cursor(name="held", withhold=True) as cursor:
            cursor.execute("select generate_series(1, 10)")
            same(len(cursor.fetchall()), 10)
        cursor = c.cursor()
        same([r[0] for r in cursor.stream("select generate_series(1, 1000)")], list(range(1, 1001)))
        c.row_factory = dict_row
        same(c.execute("select 1 as one, null as nothing").fetchone(), {"one": 1, "nothing": None})


@check
def transactions_and_errors():
    with psycopg.connect(DSN) as c:
        c.execute("drop table if exists child, parent")
        c.execute("create table parent (id int primary key, n int not null check (n >= 0))")
        c.execute("create table child (id serial primary key, parent int references parent)")
        c.commit()
        same(c.info.transaction_status.name, "IDLE")
        c.execute("insert into parent values (1, 1)")
        same(c.info.transaction_status.name, "INTRANS")
        cases = [
            ("insert into parent values (1, 1)", "23505"), ("insert into parent values (2, null)", "23502"),
            ("insert into parent values (2, -1)", "23514"), ("insert into child (parent) values (77)", "23503"),
            ("select * from nothing", "42P01"), ("select nothing from parent", "42703"), ("selec 1", "42601"),
            ("select 1/0", "22012"), ("select 'x'::int", "22P02"), ("select 100000::smallint", "22003"),
            ("select nothing()", "42883"), ("create table parent (a int)", "42P07"), ("select 1 + 'a'::text", "42883"),
        ]
        c.commit()
        for statement, code in cases:
            fault = fails(state, psycopg.Error, code, lambda: c.execute(statement))
            same(c.info.transaction_status.name, "INERROR")
            fails(state, psycopg.Error, "25P02", lambda: c.execute("select 1"))
            c.rollback()
            if code == "23505":
                same((fault.diag.constraint_name, fault.diag.table_name, fault.diag.schema_name),
                     ("parent_pkey", "parent", "public"))
                same(fault.diag.message_detail, "Key (id)=(1) already exists.")
            if code == "42703":
                same(fault.diag.statement_position, "8")
        with c.transaction():
            c.execute("insert into parent values (5, 5)")
            try:
                with c.transaction():
                    c.execute("insert into parent values (5, 5)")
            except errors.UniqueViolation:
                pass
            c.execute("insert into parent values (6, 6)")
        same(c.execute("select id from parent where id in (5, 6) order by id").fetchall(), [(5,), (6,)])
        c.rollback()
        c.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        c.read_only = True
        same(c.execute("show transaction_isolation").fetchone(), ("repeatable read",))
        fails(state, psycopg.Error, "25006", lambda: c.execute("insert into parent values (8, 8)"))
        c.rollback()
        c.isolation_level = None
        c.read_only = None
    notices = []
    with connect() as c:
        c.add_notice_handler(lambda n: notices.append((n.severity, n.sqlstate)))
        c.execute("drop table if exists surely_not_there")
        c.execute("create table if not exists parent (id int)")
        same(notices, [("NOTICE", "00000"), ("NOTICE", "42P07")])


@check
def deadlocks_and_conflicts():
    with connect() as c:
        c.execute("drop table if exists pair")
        c.execute("create table pair (id int primary key, n int)")
        c.execute("insert into pair values (1, 0), (2, 0)")

    def work(order):
        with psycopg.connect(DSN) as c:
            try:
                for id_ in order:
                    c.execute("update pair set n = n + 1 where id = %s", (id_,))
                    time.sleep(0.3)
                return None
            except errors.DeadlockDetected as fault:
                c.rollback()
                return fault.sqlstate
    with ThreadPoolExecutor(2) as pool:
        same(sorted(pool.map(work, [(1, 2), (2, 1)]), key=str), ["40P01", None])
    with psycopg.connect(DSN) as a, connect() as b:
        a.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        a.execute("select * from pair")
        b.execute("update pair set n = 9 where id = 1")
        fails(state, psycopg.Error, "40001", lambda: a.execute("update pair set n = 10 where id = 1"))


@check
def composed_sql_and_type_lookup():
    with connect() as c:
        name = sql.Identifier('Odd "name" ☃')
        c.execute(sql.SQL("drop table if exists {}").format(name))
        c.execute(sql.SQL("create table {} ({} int, {} text)").format(name, sql.Identifier("A b"), sql.Identifier("select")))
        c.execute(sql.SQL("insert into {} values ({}, {})").format(name, sql.Literal(5), sql.Literal("it's")))
        cursor = c.execute(sql.SQL("select * from {}").format(name))
        same([d.name for d in cursor.description], ["A b", "select"])
        same([d.type_code for d in cursor.description], [23, 25])
        same(cursor.fetchall(), [(5, "it's")])
        info = psycopg.types.TypeInfo.fetch(c, "numeric")
        same((info.oid, info.array_oid), (1700, 1231))
        same(psycopg.types.TypeInfo.fetch(c, "no_such_type"), None)
        same(psycopg.types.enum.EnumInfo.fetch(c, "no_such_enum"), None)
        same(psycopg.types.composite.CompositeInfo.fetch(c, "no_such_composite"), None)
        cursor = c.execute("select 1::numeric(10,2), 'x'::varchar(7), 'x'::char(3), now()::timestamp(3)")
        same([(d.precision, d.scale, d.display_size) for d in cursor.description][:3],
             [(10, 2, None), (None, None, 7), (None, None, 3)])


@check
def several_statements_at_once():
    with connect() as c:
        cursor = c.execute("select 1; select 2 as two; create table if not exists several (a int); select 'last'")
        seen = []
        while True:
            if cursor.description:
                seen.append(cursor.fetchall())
            if not cursor.nextset():
                break
        same(seen, [[(1,)], [(2,)], [("last",)]])
        fails(state, psycopg.Error, "42601", lambda: c.execute("select %s; select 2", (1,)))
        same(c.execute("").description, None)


@check
def asynchronous_connections():
    import asyncio

    async def one(n):
        async with await psycopg.AsyncConnection.connect(DSN, autocommit=True) as c:
            cursor = await c.execute("select %s::int", (n,))
            return (await cursor.fetchone())[0]

    async def all_():
        return await asyncio.gather(*(one(n) for n in range(100)))
    same(asyncio.run(all_()), list(range(100)))


@check
def client_cursor_and_server_checks():
    with connect(cursor_factory=psycopg.ClientCursor) as c:
        for type_, values in VALUES:
            for value in values:
                same(c.execute(f"select (%s)::{type_}", (value,)).fetchone()[0], value, type_)
    with connect(cursor_factory=psycopg.RawCursor) as c:
        same(c.execute("select $1::int + $2", (1, 2)).fetchone(), (3,))


run()
