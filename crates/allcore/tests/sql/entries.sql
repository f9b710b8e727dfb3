-- Scans of an index whose entries have all columns that the statement reads.
create table e (id int primary key, a int, b bigint, c text, d date, f boolean, g uuid, h bytea, i timestamptz, j "char", k int2, l time, m timestamp, n oid, o varchar(20), q float8, r numeric, s char(4), pad text);
set timezone = 'UTC';
insert into e select i, nullif(i % 7, 6) - 3, (i % 5 - 2) * 5000000000, case i % 4 when 0 then null when 1 then '' when 2 then 'é' || i else 'x' end,
  '2000-01-01'::date + (i % 9 - 4), i % 2 = 0, ('00000000-0000-4000-a000-0000000000' || lpad((i % 100)::text, 2, '0'))::uuid,
  decode(case i % 5 when 0 then '' when 1 then '00' when 2 then '0000ff' when 3 then 'ff00' else '00ff00' end, 'hex'),
  '2000-01-01'::timestamptz + (i % 5 - 2) * interval '1 hour', chr(65 + i % 20)::"char", (i % 300 - 150)::int2, '12:00'::time + (i % 50) * interval '1 second',
  '1999-12-31 23:59:59.999999'::timestamp + (i % 3) * interval '1 microsecond', i % 40, 'v' || i % 11, case i % 3 when 0 then '-0'::float8 when 1 then 0 else 1.5 end, case i % 3 when 0 then 1.0 when 1 then 1.00 else 2.5 end, 's' || i % 3, repeat('pad', 50)
  from generate_series(1, 5000) i;
create index e_a on e (a, b);
create index e_b on e (b desc, a desc);
create index e_c on e (c, d);
create index e_cd on e (c desc, f);
create index e_g on e (g desc);
create index e_h on e (h, j, k);
create index e_hd on e (h desc nulls last, i desc, l, m, n);
create index e_o on e (o, q);
create index e_r on e (r);
create index e_s on e (s, a);
create unique index e_u on e (k, id) include (b);
create unique index e_v on e (a, id desc);
analyze e;
select a, count(*), sum(b), sum(id) from e where a between -2 and 1 group by a order by a;
select count(*) from e where a > 0;
select count(*) from e where a is null;
select a, b from e where a is null or a = 2 group by a, b order by b desc, a;
select b, a from e where b >= 0 and a < 2 group by b, a order by b desc, a desc;
select distinct b from e where b < 0 order by b;
select c, d, count(*) from e where c < 'z' group by c, d order by c, d limit 12;
select c, length(c) from e where c > 'x' order by c, id limit 5;
select c, f, count(*) from e where c in ('', 'x') group by c, f order by c desc, f;
select count(*), count(c), min(c), max(c) from e where c is not null;
select g, count(*) from e where g < '00000000-0000-4000-a000-000000000003' group by g order by g desc;
select h, count(*), min(j), max(k) from e where h > '' group by h order by h;
select distinct h, i, m from e where h >= '\x00' order by h, i, m;
select h, i, l, m, n from e where h = '\x0000ff' order by i, l, m, n limit 5;
select o, count(*) from e where o like 'v1%' group by o order by o;
select o, q, count(*) from e where o = 'v1' group by o, q order by q;
select r, count(*) from e where r < 2 group by r order by r::text;
select s, a, count(*) from e where s = 's1' group by s, a order by a;
select k, id, b from e where k = 7 order by id limit 4;
select k, sum(id) from e where k between 10 and 12 group by k order by k;
select a, id from e where a = 1 order by id desc limit 4;
select a, id from e where a = 1 and id % 3 = 0 order by id limit 4;
select max(id) from e where a = 1;
select min(b), max(b), min(d), max(g) from e;
select count(*) from e x join e y on y.a = x.id and y.id < 10 where x.id < 4;
select x.id, (select count(*) from e y where y.a = x.a and y.b > 0) from e x where x.id < 5 order by 1;
select exists (select from e where a = 2), exists (select from e where a = 99);
-- Changes of the same transaction, and of a statement.
begin;
update e set a = 50 where id <= 10;
select a, id from e where a = 50 order by id;
delete from e where a = 50 and id > 5;
select a, id from e where a = 50 order by id;
savepoint one;
update e set a = 51 where a = 50;
select a, id from e where a between 50 and 51 order by id;
rollback to one;
select a, id from e where a between 50 and 51 order by id;
update e set pad = 'other' where a = 50;
select a, count(*) from e where a = 50 group by a;
rollback;
select a, id from e where a between 50 and 60 order by id;
declare c scroll cursor with hold for select a, b, id from e where a = 2 order by a, b, id;
fetch 2 from c;
update e set a = 3 where a = 2;
fetch 2 from c;
fetch prior from c;
close c;
select a from e where a = 2 for update;
select a, id from e where a = -3 order by id limit 2 for update;
drop index e_u;
alter table e drop column b;
select a, count(*) from e where a > 0 group by a order by a;
alter table e alter column a type bigint;
select a, count(*) from e where a > 0 group by a order by a;
