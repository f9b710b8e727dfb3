"""psycopg2 against the server its environment names."""
import io
import threading

import psycopg2
import psycopg2.extras
import psycopg2.extensions as extensions

from common import DSN, VALUES, check, fails, run, same


def connect(autocommit=True, **options):
    c = psycopg2.connect(DSN, **options)
    c.autocommit = autocommit
    return c


def state(fault):
    return fault.pgcode


def plain(value):
    return bytes(value) if isinstance(value, memoryview) else value


@check
def types():
    psycopg2.extras.register_uuid()
    c = connect()
    with c.cursor() as cursor:
        for type_, values in VALUES:
            cursor.execute("drop table if exists every2")
            cursor.execute(f"create table every2 (id int primary key, v {type_})")
            for n, value in enumerate([*values, None]):
                cursor.execute(f"insert into every2 values (%s, (%s)::{type_})", (n, value))
            cursor.execute("select v from every2 order by id")
            same([plain(r[0]) for r in cursor], [*values, None], type_)
            for value in values:
                cursor.execute(f"select v from every2 where v = (%s)::{type_}", (value,))
                same(plain(cursor.fetchone()[0]), value, f"where {type_}")
    c.close()


@check
def a_savepoint_takes_back_only_what_came_after_it():
    c = connect(autocommit=False)
    with c, c.cursor() as cursor:
        cursor.execute("drop table if exists tx2; create table tx2 (a int primary key)")
    with c, c.cursor() as cursor:
        cursor.execute("insert into tx2 values (1) returning a")
        same(cursor.fetchone(), (1,))
        cursor.execute("savepoint s")
        fails(state, psycopg2.errors.UniqueViolation, "23505", lambda: cursor.execute("insert into tx2 values (1)"))
        same(c.get_transaction_status(), extensions.TRANSACTION_STATUS_INERROR)
        cursor.execute("rollback to s")
        cursor.execute("insert into tx2 values (2)")
        same(cursor.rowcount, 1)
    try:
        with c, c.cursor() as cursor:
            cursor.execute("delete from tx2")
            raise ZeroDivisionError
    except ZeroDivisionError:
        pass
    with c.cursor() as cursor:
        cursor.execute("select a from tx2 order by a")
        same(cursor.fetchall(), [(1,), (2,)])
    c.rollback()
    c.set_session(isolation_level="REPEATABLE READ", readonly=True)
    with c.cursor() as cursor:
        cursor.execute("show transaction_isolation")
        same(cursor.fetchone(), ("repeatable read",))
        fails(state, psycopg2.Error, "25006", lambda: cursor.execute("delete from tx2"))
    c.rollback()
    c.close()
    c = connect()
    c.set_isolation_level(extensions.ISOLATION_LEVEL_AUTOCOMMIT)
    same(c.encoding, "UTF8")
    assert c.server_version >= 150000 and c.protocol_version == 3
    c.set_client_encoding("UTF8")
    c.reset()
    c.close()


@check
def copy_and_bulk_helpers():
    c = connect()
    with c.cursor() as cursor:
        cursor.execute("drop table if exists bulk2")
        cursor.execute("create table bulk2 (a int primary key, b text)")
        cursor.copy_from(io.StringIO("".join(f"{n}\ttext {n}\n" for n in range(5000))), "bulk2")
        out = io.StringIO()
        cursor.copy_to(out, "bulk2", columns=("a", "b"))
        same(len(out.getvalue().splitlines()), 5000)
        cursor.copy_expert("copy bulk2 from stdin with csv header", io.StringIO("a,b\n9001,\"a,\"\"b\"\n9002,\n"))
        cursor.execute("select b from bulk2 where a >= 9001 order by a")
        same(cursor.fetchall(), [('a,"b',), (None,)])
        fails(state, psycopg2.Error, "22P02", lambda: cursor.copy_from(io.StringIO("x\ty\n"), "bulk2"))
        fails(state, psycopg2.Error, "22P04", lambda: cursor.copy_from(io.StringIO("77777\n"), "bulk2"))

        class Broken(io.StringIO):
            def read(self, size=-1):
                raise OSError("the disk has gone")
        fails(state, psycopg2.Error, "57014", lambda: cursor.copy_expert("copy bulk2 from stdin", Broken()))
        psycopg2.extras.execute_values(cursor, "insert into bulk2 (a, b) values %s", [(n, "v") for n in range(10000, 10500)])
        psycopg2.extras.execute_batch(cursor, "update bulk2 set b = %s where a = %s", [("u", n) for n in range(10000, 10100)])
        cursor.execute("select count(*) from bulk2 where b = 'u'")
        same(cursor.fetchone()[0], 100)
    c.close()


@check
def cursors():
    c = connect(autocommit=False)
    with c.cursor("server side", scrollable=False) as cursor:
        cursor.itersize = 50
        cursor.execute("select g from generate_series(1, 1000) g")
        same(sum(r[0] for r in cursor), 500500)
    with c.cursor("Q", withhold=True) as cursor:
        cursor.execute("select g from generate_series(1, 100) g")
        same(cursor.fetchmany(3), [(1,), (2,), (3,)])
        c.commit()
        same(len(cursor.fetchall()), 97)
    with c.cursor(cursor_factory=psycopg2.extras.RealDictCursor) as cursor:
        cursor.execute("select 1 as a, 'x' as b")
        same(dict(cursor.fetchone()), {"a": 1, "b": "x"})
    c.close()


@check
def cancel():
    c = connect()
    timer = threading.Timer(0.3, c.cancel)
    timer.start()
    with c.cursor() as cursor:
        fails(state, psycopg2.errors.QueryCanceled, "57014", lambda: cursor.execute("select count(*) from generate_series(1, 100000000000)"))
        cursor.execute("select 1")
    c.close()


@check
def type_helpers():
    c = connect()
    same(psycopg2.extras.HstoreAdapter.get_oids(c), ((), ()))
    fails(state, psycopg2.ProgrammingError, None, lambda: psycopg2.extras.register_composite("no_such", c))
    with c.cursor() as cursor:
        cursor.execute("select 1::numeric(10,2) as n, 'x'::varchar(7) as v, now() as t")
        same([(d.name, d.type_code) for d in cursor.description], [("n", 1700), ("v", 1043), ("t", 1184)])
        cursor.execute("set timezone to 'Europe/Berlin'")
        cursor.execute("select '2024-07-01 12:00+00'::timestamptz")
        same(cursor.fetchone()[0].utcoffset().total_seconds(), 7200.0)
    same(c.notices, [])
    c.close()


run()
