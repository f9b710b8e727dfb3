-- EXISTS and IN: limits, constants as operands, and conditions that drive the rows around them.
create table big (id integer primary key, a integer, b bigint, s text);
create table small (k integer, l bigint, m integer, note text);
create table other (id integer primary key, big integer);
create table none (k integer);
insert into big select g, nullif(g % 10, 3), g % 4, 's' || g % 5 from generate_series(1, 2000) g;
insert into small values (1, 1, 1, 's1'), (1, 1, 2, 's1'), (2, 3, 3, 's3'), (null, 1, 4, null), (9, null, 5, 's4'), (5000, 0, 6, 's0'), (4, 0, 7, 's0');
insert into other select g, g * 3 from generate_series(1, 300) g;
create index on big (a);
create index on big (b, a);
analyze;
-- LIMIT below EXISTS.
select count(*), sum(id) from big where exists (select 1 from small where small.k = big.id limit 1);
select count(*), sum(id) from big where exists (select 1 from small where small.k = big.id limit 3);
select count(*), sum(id) from big where exists (select 1 from small where small.k = big.id limit 0);
select count(*), sum(id) from big where not exists (select 1 from small where small.k = big.id limit 1);
select count(*), sum(id) from big where not exists (select 1 from small where small.k = big.id limit 0);
select count(*), sum(id) from big where exists (select 1 from small where small.k = big.id limit all);
select count(*), sum(id) from big where exists (select 1 from small where small.k = big.id limit null);
select count(*), sum(id) from big where exists (select 1 from small where small.k = big.id offset 1);
select count(*), sum(id) from big where exists (select 1 from small where small.k = big.id limit 1 offset 1);
select count(*), sum(id) from big where exists (select 1 from small where small.k = big.id order by note limit 1);
select count(*), sum(id) from big where exists (select 1 from small where small.k = big.id order by note fetch first 1 row with ties);
select count(*), sum(id) from big where exists (select count(*) from small where small.k = big.id limit 1);
select count(*), sum(id) from big where exists (select count(*) from small where small.k = big.id limit 0);
select count(*), sum(id) from big where exists (select k from small where small.k = big.id union all select k from none limit 1);
select count(*), sum(id) from big where exists (select 1 from small where small.k = big.id limit -1);
select count(*), sum(id) from big where exists (select 1 from small where small.k = big.id limit (select 1));
select count(*), sum(id) from big where exists (select 1 from small where small.k = big.id limit 1) or a = 7;
select id, exists (select 1 from small where small.k = big.id limit 1), exists (select 1 from small where small.k = big.id limit 0) from big where id < 4 order by id;
select exists (select 1 from small limit 1), exists (select 1 from small limit 0), exists (select 1 from none limit 1), exists (values (1) limit 0);
select exists (select 1 from small limit 0), exists (select 1 from small limit 1);
prepare limited (bigint) as select count(*) from big where exists (select 1 from small where small.k = big.id limit $1);
execute limited (1);
execute limited (0);
execute limited (null);
execute limited (-1);
-- A constant IN a subquery.
select count(*) from small where 7 in (select id from big);
select count(*) from small where 7000 in (select id from big);
select count(*) from small where 3 in (select a from big);
select count(*) from small where 7 not in (select id from big);
select count(*) from small where 7000 not in (select id from big);
select count(*) from small where 3 not in (select a from big);
select count(*) from small where null in (select id from big);
select count(*) from small where null::integer in (select id from big);
select count(*) from small where 7 in (select k from none);
select count(*) from small where (7 in (select a from big)) is true;
select count(*) from small where (7, 3) in (select id, b from big);
select count(*) from small where (7, 2) in (select id, b from big);
select count(*) from small where (7, null) in (select id, b from big);
select count(*) from small where 1995 < any (select id from big);
select count(*) from small where 2000 < any (select id from big);
select count(*) from small where 7 in (select id from big order by id limit 7);
select count(*) from small where 7 in (select id from big order by id limit 6);
select count(*) from small where 7 in (select id + 1 from big);
select count(*) from small where 1 in (select id from big) and k in (select id from other);
select count(*) from small where 7 in (select distinct a from big);
select count(*) from small where 200 in (select count(*) from big group by a);
select count(*) from small where 7 in (select id from big union select k from none);
select count(*) from small where 7 in (select id from big where b = small.l);
select count(*) from small where 7.5 in (select id from big);
select count(*) from small where 8000000000 in (select id from big);
select count(*) from small where 7 in (select 1 / (k - k) from none);
select count(*) from small where 7 in (select 1 / (k - k) from small);
prepare has (integer) as select count(*) from small where $1 in (select id from big);
execute has (7);
execute has (7000);
execute has (null);
update small set note = 'x' where 7 in (select id from big) and k = 9 returning *;
delete from small where 7000 in (select id from big) returning *;
-- Few rows drive many.
select count(*), sum(id) from big where exists (select 1 from small where small.k = big.id);
select count(*), sum(id) from big where exists (select 1 from small where small.k = big.a);
select count(*), sum(id) from big where exists (select 1 from small where small.k = big.a and small.l = big.b);
select count(*), sum(id) from big where exists (select 1 from small where small.l = big.b and small.m < 3);
select count(*), sum(id) from big where exists (select 1 from small where small.l = big.id and small.k = big.a and small.note = big.s);
select count(*), sum(id) from big where exists (select 1 from small where small.k = big.id and small.m > big.b);
select count(*), sum(id) from big where exists (select 1 from small where small.k = big.id + 1);
select count(*), sum(id) from big where exists (select 1 from small where small.k + 1 = big.id);
select count(*), sum(id) from big where exists (select 1 from small where small.k = big.id) and a = 1;
select count(*), sum(id) from big where exists (select 1 from small where small.k = big.id) and exists (select 1 from small where small.l = big.b);
select count(*), sum(id) from big where exists (select 1 from small where small.k = big.id) and not exists (select 1 from small where small.l = big.b and small.m > 1);
select count(*), sum(id) from big where exists (select 1 from small join other on other.id = small.k where other.big = big.id);
select count(*), sum(id) from big where exists (select 1 from small where small.k = big.id and exists (select 1 from other where other.id = small.k));
select count(*), sum(id) from big where exists (select 1 from none where none.k = big.id);
select count(*), sum(k) from none where exists (select 1 from small where small.k = none.k);
select count(*), sum(big.id) from big join other on other.big = big.id where exists (select 1 from small where small.k = other.id);
select count(*), sum(big.id) from big join other on other.big = big.id where exists (select 1 from small where small.k = other.id and small.k + 2 = big.id);
select count(*), sum(big.id) from big join other on other.big = big.id where exists (select 1 from small where small.k = other.id and 3 * small.l = big.id);
select count(*), sum(big.id) from big left join other on other.big = big.id where exists (select 1 from small where small.k = other.id);
select count(*), sum(big.id) from big left join other on other.big = big.id where exists (select 1 from small where small.k = big.id);
select count(*), sum(big.id) from big left join other on other.big = big.id and exists (select 1 from small where small.k = big.id) where big.id < 5;
select id, a from big where exists (select 1 from small where small.k = big.id) order by id;
select id, a from big where exists (select 1 from small where small.k = big.id) order by id desc limit 2;
select a, count(*) from big where exists (select 1 from small where small.l = big.b and small.k is not null) group by a order by a;
select distinct s from big where exists (select 1 from small where small.k = big.id) order by s;
select max(id) from big where exists (select 1 from small where small.k = big.id);
select count(*) from big where (select count(*) from other where other.big = big.id) = 0 and exists (select 1 from small where small.k = big.id);
select id from big where exists (select 1 from small where small.k = big.id) order by id for update;
prepare few (integer) as select count(*), sum(id) from big where exists (select 1 from small where small.k = big.id and small.m < $1);
execute few (3);
execute few (30);
execute few (null);
begin;
update big set s = 'u' where exists (select 1 from small where small.k = big.id);
select id, s from big where s = 'u' order by id;
delete from big where exists (select 1 from small where small.k = big.id and small.m = 1);
delete from big using other where other.big = big.id and exists (select 1 from small where small.k = other.id);
select id, s from big where id < 16 order by id;
rollback;
-- Types whose values compare as another type.
create table moments (t timestamptz, d date, f float8, c char(4));
create table times (id integer primary key, t timestamp, d date, n numeric, v text);
set time zone 'Europe/Berlin';
insert into times select g, '2024-10-27 02:30:00'::timestamp + g % 3 * interval '1 hour', '2024-10-27', 9007199254740992 + g % 3, 'ab' from generate_series(1, 30) g;
insert into moments values ('2024-10-27 02:30:00+01', '2024-10-27', 9007199254740992, 'ab'), ('2024-10-27 03:30:00+01', '2024-10-28', 9007199254740993, 'ab  ');
analyze moments, times;
select count(*) from times where exists (select 1 from moments where moments.t = times.t);
select count(*) from times where exists (select 1 from moments where moments.d = times.t::date);
select count(*) from times where exists (select 1 from moments where moments.f = times.n);
select count(*) from times where exists (select 1 from moments where moments.c = times.v);
select count(*) from moments where exists (select 1 from times where times.t = moments.t);
select count(*) from moments where exists (select 1 from times where times.n = moments.f);
reset time zone;
-- DISTINCT below EXISTS and IN.
select count(*), sum(id) from big where id in (select distinct k from small);
select count(*), sum(id) from big where id not in (select distinct k from small);
select count(*), sum(id) from big where id not in (select distinct k from small where k is not null);
select count(*), sum(id) from big where id in (select distinct k from small limit 0);
select count(*), sum(id) from big where exists (select distinct k, l from small where small.k = big.id);
select count(*), sum(id) from big where exists (select distinct on (l) k from small where small.k = big.id order by l);
select count(*), sum(id) from big where a > all (select distinct k from small where k < 9);
select count(*), sum(id) from big where id < any (select distinct k from small where small.l = big.b);
select count(*), sum(id) from big where id in (select distinct generate_series(1, k) from small where k < 9);
select id, id in (select distinct k from small) from big where id < 5 order by id;
select count(*) from small where 7 in (select distinct a from big) and 3 in (select distinct a from big where a is null);
-- Many levels.
create table levels (id int primary key, a int);
insert into levels select g, g from generate_series(1, 2000) g;
analyze levels;
select count(*) from levels l0 where exists (select from levels l1 where l1.id = l0.a and l1.a < 1940
  and exists (select from levels l2 where l2.id = l1.a and l2.a < 1880
  and exists (select from levels l3 where l3.id = l2.a and l3.a < 1820
  and exists (select from levels l4 where l4.id = l3.a and l4.a < 1760
  and exists (select from levels l5 where l5.id = l4.a and l5.a < 1700
  and exists (select from levels l6 where l6.id = l5.a and l6.a < 1640
  and exists (select from levels l7 where l7.id = l6.a and l7.a < 1580
  and exists (select from levels l8 where l8.id = l7.a and l8.a < 1520
  and exists (select from levels l9 where l9.id = l8.a and l9.a < 1460
  and exists (select from levels l10 where l10.id = l9.a and l10.a < 1400
  and exists (select from levels l11 where l11.id = l10.a and l11.a < 1340
  and exists (select from levels l12 where l12.id = l11.a and l12.a < 1280
  and exists (select from levels l13 where l13.id = l12.a and l13.a < 1220
  and exists (select from levels l14 where l14.id = l13.a and l14.a < 1160
  and exists (select from levels l15 where l15.id = l14.a and l15.a < 1100
  and exists (select from levels l16 where l16.id = l15.a and l16.a < 1040
  and exists (select from levels l17 where l17.id = l16.a and l17.a < 980
  and exists (select from levels l18 where l18.id = l17.a and l18.a < 920
  and exists (select from levels l19 where l19.id = l18.a and l19.a < 860
  and exists (select from levels l20 where l20.id = l19.a and l20.a < 800))))))))))))))))))));
drop table levels;
-- DISTINCT over no columns.
create table no_columns ();
select distinct no_columns.* from no_columns;
drop table no_columns;
-- DISTINCT within an EXISTS that is hashed.
create table a1 (i int);
create table b1 (i int, v int);
insert into a1 select generate_series(1, 100);
insert into b1 select i % 50, i % 3 from generate_series(1, 100) i;
analyze a1; analyze b1;
select count(*) from a1 where i < 0 or exists (select distinct 1 from b1 where b1.i = a1.i);
select count(*) from a1 where i < 0 or not exists (select distinct v from b1 where b1.i = a1.i);
select count(*) filter (where exists (select distinct on (v) v from b1 where b1.i = a1.i)) from a1;
select count(*) from a1 where i < 0 or exists (select distinct v from b1 where b1.i = a1.i order by 1 limit 2);
select count(*) from a1 where i < 0 or exists (select distinct v from b1 where b1.i = a1.i offset 1);
delete from a1 where i < 0 or not exists (select distinct v from b1 where b1.i = a1.i);
select count(*) from a1;
drop table a1, b1;
