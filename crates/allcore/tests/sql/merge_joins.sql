-- Merge joins: inner, left, semi and anti, duplicates on both sides, NULLs, types, orders.
create table l (id int primary key, k int, n numeric, s text, x int);
create table r (id int primary key, k int, b bigint, n int, s text, x int);
insert into l select i, case when i % 50 = 0 then null else i * 3 / 5 end, case when i % 50 = 1 then null else i / 4 + (i % 3) * 0.5 end, 'k' || i % 700, i % 9 from generate_series(1, 3000) i;
insert into r select i, case when i % 40 = 0 then null else i * 4 / 5 end, i * 2, i / 3, 'k' || i % 900, i % 7 from generate_series(1, 4000) i;
create index l_k on l (k, x);
create index l_kd on l (k desc, x desc);
create index l_n on l (n);
create index l_s on l (s);
create index r_k on r (k, x);
create index r_kn on r (k nulls first);
create index r_b on r (b);
create index r_n on r (n);
create index r_s on r (s);
analyze l, r;
set enable_hashjoin = off;
set enable_nestloop = off;
select count(*), sum(l.id), sum(r.id) from l join r on r.k = l.k;
select count(*), sum(l.id), sum(r.id) from l left join r on r.k = l.k;
select count(*), sum(l.id), count(r.id) from l left join r on r.k = l.k and r.x > l.x;
select count(*), sum(l.id) from l where exists (select 1 from r where r.k = l.k);
select count(*), sum(l.id) from l where exists (select 1 from r where r.k = l.k and r.x > l.x);
select count(*), sum(l.id) from l where not exists (select 1 from r where r.k = l.k);
select count(*), sum(l.id) from l where not exists (select 1 from r where r.k = l.k and r.x > l.x);
select count(*), sum(l.id), sum(r.id) from l right join r on r.k = l.k;
select count(*), sum(l.id), sum(r.id) from l full join r on r.k = l.k;
select count(*), sum(l.id), sum(r.id) from l join r on r.k = l.k and r.x = l.x;
select count(*), sum(l.id), sum(r.id) from l join r on r.id = l.id;
-- Types: bigint, numeric and int against each other, texts.
select count(*), sum(l.id), sum(r.id) from l join r on r.b = l.id;
select count(*), sum(l.id), sum(r.id) from l join r on r.b = l.k;
select count(*), sum(l.id), sum(r.id) from l join r on r.n = l.n;
select count(*), sum(l.id), sum(r.id) from l join r on r.id = l.n;
select count(*), sum(l.id), sum(r.id) from l join r on r.s = l.s;
-- Orders, limits, both directions.
select l.id, r.id from l join r on r.id = l.id order by l.id limit 5;
select l.id, r.id from l join r on r.id = l.id order by l.id desc limit 5;
select l.k, l.x, r.x, l.id, r.id from l join r on r.k = l.k order by l.k, l.x, r.x, l.id, r.id limit 10;
select l.k, l.x, r.x, l.id, r.id from l join r on r.k = l.k order by l.k desc, l.x desc, r.x, l.id, r.id limit 10;
select l.k, l.id, r.id from l left join r on r.k = l.k order by l.k desc nulls first, l.id, r.id limit 70 offset 55;
select l.k, l.id from l where not exists (select 1 from r where r.k = l.k) order by l.k, l.id limit 6;
select l.k, l.id, r.id from l join r on r.k = l.k where l.k > 1000 and r.x = 3 order by l.k, l.id, r.id limit 6;
select l.k, l.id, r.id from l join r on r.k = l.k where l.x = 2 order by l.k desc, l.id, r.id limit 6;
select l.id, r.id from l join r on r.id = l.id order by l.id limit 0;
select l.k, count(*) from l join r on r.k = l.k group by l.k order by l.k limit 4;
-- Three sides.
select count(*), sum(l.id), sum(m.x) from l join r on r.id = l.id join l m on m.id = l.id;
select l.id, r.k, m.x from l join r on r.id = l.id left join l m on m.id = r.id where l.id > 2990 order by l.id limit 5;
-- Empty sides, and sides without a match.
select count(*) from (select * from l where id < 0) l join r on r.id = l.id;
select count(*), count(r.id) from l left join (select * from r where id < 0) r on r.id = l.id;
select count(*) from l join r on r.id = l.id + 0 and r.b = l.k where l.k > 100000;
-- Parameters, a correlated subquery, rows of the own transaction.
prepare p (int, int) as select l.id, r.x from l join r on r.id = l.id where l.id > $1 order by l.id limit $2;
execute p (10, 3);
execute p (2999, 3);
execute p (null, 3);
select g, (select sum(r.x) from l join r on r.id = l.id where l.x = g) from generate_series(0, 2) g;
begin;
update l set k = k + 5 where id between 100 and 200;
delete from r where k between 50 and 60;
insert into r select 10000 + i, i, i, i, 'k' || i, 1 from generate_series(1, 100) i;
select count(*), sum(l.id), sum(r.id) from l join r on r.k = l.k;
update l set x = r.x from r where r.k = l.k and r.x > 5;
select count(*), sum(x) from l;
rollback;
-- Many rows of one key, little memory.
set work_mem = '64kB';
create table d (id int primary key, k int, pad text);
insert into d select i, i / 1000, repeat('p', 90) from generate_series(1, 5000) i;
create index d_k on d (k);
analyze d;
select d.k, count(*), sum(e.id) from d join d e on e.k = d.k where d.id % 100 = 0 group by d.k order by d.k;
select count(*), sum(l.id), sum(r.id) from l join r on r.k = l.k;
reset work_mem;
-- An error in the middle, and a cursor.
select sum(1 / (l.id - 1500)) from l join r on r.id = l.id and r.x + l.x > 1 / (l.id - 1500);
begin;
declare c no scroll cursor for select l.id, r.x from l join r on r.id = l.id order by l.id;
fetch 3 from c;
fetch 2 from c;
fetch backward 1 from c;
rollback;
-- A cancel in the middle.
set statement_timeout = '200ms';
select l.id, pg_sleep(10) from l join r on r.id = l.id order by l.id;
reset statement_timeout;
select count(*) from l join r on r.id = l.id;
drop table l, r, d;
-- The right table has a condition on a subquery that becomes a join, with little memory.
create table ba (id int primary key, x int);
create table bb (id int primary key, k int, v int);
create table bc (k int, v int);
insert into ba select g, g from generate_series(1, 5000) g;
insert into bb select g, (g::bigint * 7919) % 5000 + 1, g % 100 + 1 from generate_series(1, 5000) g;
insert into bc select g, 1 from generate_series(1, 5000) g;
analyze ba; analyze bb; analyze bc;
set work_mem = '64kB';
select count(*), sum(bb.v) from ba join bb on ba.id = bb.id
where bb.v > (select coalesce(sum(bc.v), 0) from bc where bc.k = bb.k);
select ba.id, bb.v from ba join bb on ba.id = bb.id
where bb.v > (select coalesce(sum(bc.v), 0) from bc where bc.k = bb.k) order by ba.id limit 3;
select sum(id), count(*) from (select ba.id from ba join bb on ba.id = bb.id
where bb.v > (select coalesce(sum(bc.v), 0) from bc where bc.k = bb.k) order by ba.id limit 4000) s;
reset work_mem;
-- A cast that rounds does not keep the order of several keys.
create table m1 (x int, y int, primary key (x, y));
create table m2 (n numeric, y int, primary key (n, y));
insert into m1 select g, 100 - g % 100 from generate_series(1, 3000) g;
insert into m2 select distinct (g::numeric(7, -2))::numeric, 100 - g % 100 from generate_series(1, 3000) g;
analyze m1; analyze m2;
select count(*) from m1 join m2 on m1.x::numeric(7, -2) = m2.n and m1.y = m2.y;
select count(*) from m1 join m2 on m1.x = m2.n and m1.y = m2.y;
drop table ba, bb, bc, m1, m2;
