-- Advisory locks of one session: what is counted, what survives what, what pg_locks shows.
select locktype, database = (select oid from pg_database where datname = current_database()) as here,
    classid, objid, objsubid, mode, granted, pid = pg_backend_pid() as own
    from pg_locks where locktype = 'advisory' order by classid, objid, objsubid, mode;
prepare held as select classid, objid, objsubid, mode, granted
    from pg_locks where locktype = 'advisory' order by classid, objid, objsubid, mode;

-- Taken for the transaction.
begin;
select pg_advisory_xact_lock(1), pg_advisory_xact_lock_shared(2),
    pg_advisory_xact_lock(1, 1), pg_advisory_xact_lock_shared(2, 2);
select locktype, database = (select oid from pg_database where datname = current_database()) as here,
    classid, objid, objsubid, mode, granted, pid = pg_backend_pid() as own
    from pg_locks where locktype = 'advisory' order by classid, objid, objsubid, mode;
-- They are not the session's, which has none to give up.
select pg_advisory_unlock_all();
execute held;
select pg_advisory_unlock(1), pg_advisory_unlock_shared(2), pg_advisory_unlock(1, 1), pg_advisory_unlock_shared(2, 2);
commit;
execute held;

-- Taken for the session: they outlive the transaction, however it ends.
begin;
select pg_advisory_xact_lock(1), pg_advisory_xact_lock_shared(2);
select pg_advisory_lock(1), pg_advisory_lock_shared(2), pg_advisory_lock(1, 1), pg_advisory_lock_shared(2, 2);
rollback;
execute held;
select pg_advisory_unlock(1), pg_advisory_unlock(1),
    pg_advisory_unlock_shared(2), pg_advisory_unlock_shared(2),
    pg_advisory_unlock(1, 1), pg_advisory_unlock(1, 1),
    pg_advisory_unlock_shared(2, 2), pg_advisory_unlock_shared(2, 2);
execute held;

-- The transaction's stand beside the session's.
begin;
select pg_advisory_lock(1), pg_advisory_xact_lock(1), pg_advisory_xact_lock(1);
select pg_advisory_unlock(1);
select pg_advisory_unlock(1);
execute held;
select pg_advisory_lock(1);
commit;
execute held;
select pg_advisory_unlock(1);

-- Both modes of a key, each counted for itself.
select pg_advisory_lock(1), pg_advisory_lock_shared(1), pg_advisory_lock(1), pg_advisory_lock_shared(1);
execute held;
select pg_advisory_unlock(1);
execute held;
select pg_advisory_unlock(1);
execute held;
select pg_advisory_unlock(1);
select pg_advisory_unlock_shared(1), pg_advisory_unlock_shared(1), pg_advisory_unlock_shared(1);
execute held;

-- Without waiting.
select pg_try_advisory_lock(1), pg_try_advisory_lock_shared(1), pg_try_advisory_lock(1, 2),
    pg_try_advisory_lock_shared(1, 2);
begin;
select pg_try_advisory_xact_lock(3), pg_try_advisory_xact_lock_shared(3), pg_try_advisory_xact_lock(3, 4),
    pg_try_advisory_xact_lock_shared(3, 4);
execute held;
commit;
execute held;
select pg_advisory_unlock_all();
execute held;

-- One number is not two numbers; negative ones and the largest.
select pg_advisory_lock(4294967297), pg_advisory_lock(1, 1), pg_advisory_lock(-1), pg_advisory_lock(-1, -2),
    pg_advisory_lock(9223372036854775807), pg_advisory_lock(-9223372036854775808), pg_advisory_lock(0),
    pg_advisory_lock(2147483647, -2147483648);
execute held;
discard all;
prepare held as select classid, objid, objsubid, mode, granted
    from pg_locks where locktype = 'advisory' order by classid, objid, objsubid, mode;
execute held;

-- Savepoints.
begin;
select pg_advisory_xact_lock(1);
savepoint one;
select pg_advisory_xact_lock(1), pg_advisory_xact_lock(2), pg_advisory_lock(3);
savepoint two;
select pg_advisory_xact_lock(2), pg_advisory_xact_lock(4), pg_advisory_xact_lock_shared(1);
rollback to two;
execute held;
release two;
select pg_advisory_xact_lock(5);
rollback to one;
execute held;
select 1 / 0;
rollback to one;
execute held;
select pg_advisory_xact_lock(6);
select 1 / 0;
rollback;
execute held;
select pg_advisory_unlock(3);

-- An error gives up what the statement took for the transaction, not what it took for the session.
select pg_advisory_lock(n), pg_advisory_xact_lock(-n), 1 / (n - 3) from generate_series(1, 5) n;
execute held;
select pg_advisory_unlock_all();

-- As often as there are rows.
create table keys (k int);
insert into keys values (7), (8), (7), (null), (7);
select k, pg_advisory_lock(k), pg_try_advisory_lock_shared(k, k) from keys;
execute held;
select count(*) from keys where pg_advisory_unlock(k);
select count(*) from keys where pg_advisory_unlock_shared(k, k);
select pg_advisory_unlock(7), pg_advisory_unlock_shared(8, 8);
execute held;

-- NULL locks nothing.
select pg_advisory_lock(null), pg_try_advisory_lock(null), pg_try_advisory_lock(1, null), pg_advisory_unlock(null);
execute held;

-- Arguments of other types.
select pg_advisory_lock(5::smallint), pg_advisory_lock('6'), pg_advisory_lock(7::smallint, 8::smallint);
execute held;
select pg_advisory_unlock_all();
select pg_advisory_lock(1.5);
select pg_advisory_lock(9223372036854775808);
select pg_advisory_lock(1, 4294967296);
select pg_advisory_lock('x');
select pg_advisory_lock();
select pg_advisory_lock(1, 2, 3);
select pg_advisory_unlock_all(1);

-- In a transaction that only reads; quiet warnings; a warning within a command.
begin read only;
select pg_advisory_xact_lock(1), pg_advisory_lock(2);
execute held;
commit;
select pg_advisory_unlock(2);
set client_min_messages to error;
select pg_advisory_unlock(2);
reset client_min_messages;
create table kept as select pg_advisory_unlock(2) as held;
select * from kept;
prepare one (bool) as select $1;
execute one (pg_advisory_unlock(2));
insert into keys select 1 where pg_advisory_unlock(2);

-- Two statements in one text are one transaction.
select pg_advisory_xact_lock(1)\; execute held;
execute held;
