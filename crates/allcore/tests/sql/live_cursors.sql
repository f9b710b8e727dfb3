-- A cursor's rows are made as they are fetched.
create table t (id int primary key, n int);
insert into t select i, i % 7 from generate_series(1, 20) i;

-- A recursion without end.
begin;
declare c cursor for with recursive r(i) as (select 1 union all select i + 1 from r) select i, i * 2 from r;
fetch 3 from c;
fetch 2 from c;
move 100 in c;
fetch 1 from c;
close c;
declare s scroll cursor for with recursive r(i) as (select 1 union all select i + 1 from r) select i from r;
fetch 3 from s;
fetch backward 2 from s;
fetch absolute 50 from s;
fetch relative -40 from s;
fetch prior from s;
fetch first from s;
fetch backward all from s;
fetch next from s;
rollback;

-- An error is that of the FETCH that comes to it.
begin;
declare c cursor for select id, 10 / (id - 4) from t order by id;
fetch 2 from c;
savepoint a;
fetch 5 from c;
rollback to a;
fetch 1 from c;
rollback;
begin;
declare c cursor for select id, 10 / (id - 4) from t where id < 4 order by id;
fetch all from c;
fetch 1 from c;
fetch backward 1 from c;
commit;
-- One in a constant is that of DECLARE.
begin;
declare c cursor for select 1 / 0 from t;
rollback;

-- What the transaction does meanwhile is not seen.
begin;
declare c scroll cursor for select id, n from t order by id;
fetch 2 from c;
insert into t values (0, 0), (21, 0);
update t set n = 100 where id in (3, 20);
delete from t where id = 4;
fetch 3 from c;
savepoint a;
update t set n = 200 where id in (6, 19);
delete from t where id in (7, 18);
fetch 1 from c;
rollback to a;
update t set n = 300 where id in (8, 17);
fetch all from c;
fetch absolute 3 from c;
declare later cursor for select id, n from t order by id;
fetch 4 from later;
update t set n = n + 1;
fetch 2 from later;
rollback to a;
fetch 1 from later;
rollback;
select sum(n) from t;

-- Cursors over a table of the same transaction.
begin;
create table own (id int primary key, v text);
insert into own select i, repeat('x', i) from generate_series(1, 5) i;
declare c cursor for select id, length(v) from own order by id;
fetch 2 from c;
insert into own select i, repeat('y', i) from generate_series(6, 500) i;
fetch all from c;
select count(*) from own;
rollback;

-- Several at a time, one over another's table; joins, groups, sorts, windows, set operations, correlated subqueries.
begin;
declare a cursor for select x.id, y.id from t x join t y on y.id = x.id + 1 order by 1;
declare b cursor for select n, count(*), sum(id) from t group by n order by n desc;
declare c cursor for select id, rank() over (order by n, id) from t order by id;
declare d cursor for select id from t where id < 3 union all select n from t where id > 18;
declare e cursor for select id, (select max(i.id) from t i where i.n = o.n) from t o order by id;
declare f cursor for select * from generate_series(1, 1000) g(i);
declare g cursor for with w as (select id from t order by id) select a.id, b.id from w a join w b on a.id = b.id - 5 order by 1;
fetch 2 from a; fetch 2 from b; fetch 2 from c; fetch 3 from d; fetch 2 from e; fetch 2 from f; fetch 2 from g;
fetch 1 from a; fetch 1 from b; fetch 1 from c; fetch 1 from d; fetch 1 from e; fetch 1 from f; fetch 1 from g;
move forward all in a;
fetch backward 1 from a;
close all;
select name from pg_cursors;
commit;

-- A cursor that outlives its transaction has the rows as they were when it was declared.
begin;
declare h cursor with hold for select id from t order by id;
fetch 1 from h;
commit;
fetch 2 from h;
close h;

-- A portal's parameters; settings of the time of FETCH show values.
begin;
prepare p(int) as select id from t where id > $1 order by id;
declare c cursor for select date '2024-02-03' + id from t order by id;
fetch 1 from c;
set local datestyle = 'German';
fetch 1 from c;
rollback;
begin isolation level repeatable read;
declare c cursor for select id, n from t order by id;
fetch 1 from c;
update t set n = 9;
fetch 1 from c;
rollback;
begin;
declare c cursor for select id from t order by id for update;
fetch 1 from c;
fetch 1 from c;
rollback;
create sequence s;
begin;
declare c cursor for select nextval('s') from t;
fetch 2 from c;
rollback;
