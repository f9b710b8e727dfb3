"""asyncpg, which speaks binary only and asks the catalog about types, against the server its environment names."""
import asyncio
from datetime import timedelta
from decimal import Decimal

import asyncpg

from common import DATABASE, HOST, PORT, USER, VALUES, check, run, same


def connect(**options):
    return asyncpg.connect(host=HOST, port=PORT, user=USER, database=DATABASE, **options)


def connected(function):
    async def with_connection():
        c = await connect()
        try:
            await function(c)
        finally:
            await c.close()

    def synchronous():
        asyncio.run(asyncio.wait_for(with_connection(), 60))
    synchronous.__name__ = function.__name__
    return check(synchronous)


async def fails_with(code, awaitable):
    try:
        await awaitable
    except asyncpg.PostgresError as fault:
        same(fault.sqlstate, code, f"SQLSTATE of: {fault}")
        return fault
    raise AssertionError(f"expected {code}, but it succeeded")


@connected
async def types(c):
    for type_, values in VALUES:
        await c.execute(f"drop table if exists every3; create table every3 (id int primary key, v {type_})")
        await c.reload_schema_state()
        for n, value in enumerate([*values, None]):
            await c.execute("insert into every3 values ($1, $2)", n, value)
        same([r["v"] for r in await c.fetch("select v from every3 order by id")], [*values, None], type_)
        await c.copy_records_to_table("every3", records=[(100 + n, v) for n, v in enumerate(values)])
        same([r["v"] for r in await c.fetch("select v from every3 where id >= 100 order by id")], values, f"COPY {type_}")
    statement = await c.prepare("select $1::int as a, $2::text[] as b, $3::numeric as c")
    same([p.name for p in statement.get_parameters()], ["int4", "text[]", "numeric"])
    same([(a.name, a.type.name) for a in statement.get_attributes()], [("a", "int4"), ("b", "text[]"), ("c", "numeric")])
    same(tuple(await statement.fetchrow(1, ["x", None], Decimal("1.50"))), (1, ["x", None], Decimal("1.50")))
    same(await c.fetchval("select $1::interval", timedelta(days=40, seconds=3)), timedelta(days=40, seconds=3))
    same(await c.fetchval("select oid from pg_class where relname = 'pg_class'"), 1259)


@connected
async def statements_and_transactions(c):
    await c.execute("drop table if exists tx3; create table tx3 (a int primary key, b text)")
    async with c.transaction():
        await c.execute("insert into tx3 values ($1, $2)", 1, "x")
        try:
            async with c.transaction():
                await c.execute("insert into tx3 values (1, 'again')")
        except asyncpg.UniqueViolationError as fault:
            same((fault.constraint_name, fault.table_name, fault.detail), ("tx3_pkey", "tx3", "Key (a)=(1) already exists."))
        same(await c.execute("update tx3 set b = 'y'"), "UPDATE 1")
    async with c.transaction(isolation="repeatable_read", readonly=True):
        await fails_with("25006", c.execute("delete from tx3"))
    await fails_with("22P02", c.fetchval("select 'x'::int"))
    await fails_with("42601", c.fetch("selec"))
    await fails_with("42P01", c.fetch("select * from nowhere"))
    await c.executemany("insert into tx3 values ($1, $2)", [(n, str(n)) for n in range(2, 1002)])
    await fails_with("23505", c.executemany("insert into tx3 values ($1, $2)", [(5000, ""), (2, "")]))
    same(await c.fetchval("select count(*) from tx3"), 1001)
    rows = await c.fetchmany("select a from tx3 where b = $1", [("2",), ("3",)]) if hasattr(c, "fetchmany") else []
    same([r["a"] for r in rows], [2, 3][: len(rows)])
    await c.execute("set application_name = 'asyncpg check'")
    same(c.get_settings().application_name, "asyncpg check")
    await c.execute("alter table tx3 add c int default 4")
    same(dict(await c.fetchrow("select * from tx3 where a = $1", 2)), {"a": 2, "b": "2", "c": 4})
    await c.execute("alter table tx3 drop c")
    same(dict(await c.fetchrow("select * from tx3 where a = $1", 2)), {"a": 2, "b": "2"})
    await c.reset()


@connected
async def cursors_and_large_results(c):
    async with c.transaction():
        seen = 0
        async for row in c.cursor("select g, repeat('x', 50) as t from generate_series(1, 20000) g", prefetch=77):
            seen += row["g"]
        same(seen, 20000 * 20001 // 2)
        cursor = await c.cursor("select generate_series(1, $1::int) as g", 10)
        same([r["g"] for r in await cursor.fetch(3)], [1, 2, 3])
        same(await cursor.forward(2), 2)
        same((await cursor.fetchrow())["g"], 6)
    same(len(await c.fetch("select g, 'row ' || g from generate_series(1, 200000) g")), 200000)


@connected
async def copying(c):
    await c.execute("drop table if exists copy3; create table copy3 (a int primary key, b text)")
    same(await c.copy_records_to_table("copy3", records=[(n, f"r{n}") for n in range(3000)]), "COPY 3000")
    parts = []

    async def take(data):
        parts.append(data)
    same(await c.copy_from_query("select * from copy3 where a < $1 order by a", 10, output=take, format="csv"), "COPY 10")
    same(b"".join(parts).splitlines()[9], b"9,r9")
    same(await c.copy_from_table("copy3", output=take), "COPY 3000")

    async def lines():
        yield b"9000\tx\n90"
        yield b"01\ty\n"
    same(await c.copy_to_table("copy3", source=lines()), "COPY 2")
    await fails_with("23505", c.copy_records_to_table("copy3", records=[(1, "")]))

    async def broken():
        yield b"9100\tx\n"
        raise ZeroDivisionError
    try:
        await c.copy_to_table("copy3", source=broken())
    except ZeroDivisionError:
        pass
    same(await c.fetchval("select count(*) from copy3"), 3002)


@connected
async def cancelling(c):
    try:
        await c.fetchval("select count(*) from generate_series(1, 100000000000)", timeout=0.3)
        raise AssertionError("was to time out")
    except (TimeoutError, asyncio.TimeoutError):
        pass
    same(await c.fetchval("select 1"), 1)
    await c.execute("set statement_timeout = '50ms'")
    await fails_with("57014", c.fetchval("select pg_sleep(10)"))


@connected
async def introspection(c):
    # What asyncpg asks about a type it has not seen.
    fault = None
    try:
        await c.set_type_codec("no_such_type", encoder=str, decoder=str)
    except ValueError as raised:
        fault = raised
    assert "unknown type" in str(fault), fault
    await c.set_type_codec("numeric", schema="pg_catalog", encoder=str, decoder=str, format="text")
    same(await c.fetchval("select 1.50::numeric"), "1.50")
    await c.reload_schema_state()
    await c.reset_type_codec("numeric", schema="pg_catalog")
    same(await c.fetchval("select 1.50::numeric"), Decimal("1.50"))


@check
def pools():
    async def go():
        async with asyncpg.create_pool(host=HOST, port=PORT, user=USER, database=DATABASE, min_size=2, max_size=10) as pool:
            async def one(n):
                async with pool.acquire() as c:
                    return await c.fetchval("select $1::int + 1", n)
            same(await asyncio.gather(*(one(n) for n in range(200))), list(range(1, 201)))
    asyncio.run(asyncio.wait_for(go(), 60))


run()
