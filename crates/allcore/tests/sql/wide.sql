-- Values longer than a row's place: stored out of line.
create table w (id int primary key, note text, body text, raw bytea);
insert into w values (1, 'three kilobytes', repeat('abc', 1000), decode(repeat('00ff', 1500), 'hex'));
insert into w values (2, 'a hundred kilobytes', repeat('0123456789', 10000), decode(repeat('deadbeef', 25000), 'hex'));
insert into w values (3, 'ten megabytes', repeat('x123456789', 1000000), null);
insert into w values (4, 'short', 'body', '\x01');
insert into w values (5, null, repeat('é', 2000), null);
select id, note, length(body), octet_length(body), octet_length(raw), md5(body), md5(raw) from w order by id;
select id from w where body = repeat('abc', 1000);
select id from w where body = repeat('abc', 1000) || 'd';
select id, substr(body, 5000, 11), substr(body, length(body) - 3), left(body, 5), right(body, 7) from w order by id;
select id, length(body) from w order by body, id;
select id, length(body) from w order by body desc limit 2;
select body is null, raw is null, count(*), sum(length(body)) from w group by 1, 2 order by 1, 2;
select note from w where id = 3;
select max(length(body)), min(length(body)) from w where note is not null;
-- equal values in groups, distinct, set operations, joins
create table g (k int, v text);
insert into g select i, repeat(chr(97 + i % 3), 4000) from generate_series(1, 9) i;
select length(v), left(v, 1), count(*), sum(k) from g group by v order by v;
select left(v, 2), length(v) from (select distinct v from g) d order by v;
select count(*) from (select v from g union select v from g) u;
select a.k, b.k from g a join g b on a.v = b.v and a.k < b.k order by 1, 2;
select string_agg(left(v, 1), '' order by k) from g;
-- replaced, kept, exchanged
update w set note = 'kept' where id <= 3;
select id, note, length(body), md5(body) from w order by id;
update w set body = body || 'tail' where id = 1 returning id, length(body), right(body, 6), octet_length(raw);
update w set id = id + 10 where id = 2 returning id, note, length(body), octet_length(raw);
update w set body = 'now short' where id = 12 returning id, body, octet_length(raw);
update w set body = repeat('long again ', 1000) where id = 4 returning length(body), raw;
update w set note = body, body = note where id = 1 returning length(note), body;
select id, length(note), length(body), octet_length(raw) from w order by id;
delete from w where id = 3 returning id, length(body), md5(body);
select count(*) from w;
-- transactions
begin;
update w set body = repeat('in transaction ', 1000) where id = 4;
select length(body), md5(body) from w where id = 4;
savepoint a;
update w set body = repeat('after a ', 2000) where id = 4;
insert into w values (6, 'new', repeat('n', 5000), null);
select id, length(body) from w order by id;
rollback to a;
select id, length(body), left(body, 5) from w order by id;
delete from w where id = 4;
select count(*) from w where id = 4;
rollback;
select id, length(body), md5(body) from w order by id;
begin;
delete from w where id = 1;
insert into w values (1, 'back', repeat('b', 3000), repeat('r', 3000)::bytea);
commit;
select note, length(body), octet_length(raw) from w where id = 1;
-- conflicts
insert into w values (1, 'c', repeat('c', 9000), null) on conflict do nothing;
insert into w values (1, 'c', repeat('c', 9000), null) on conflict (id) do update set note = 'conflict' returning id, note, length(body), left(body, 1);
insert into w values (1, 'd', repeat('d', 9000), null) on conflict (id) do update set body = excluded.body returning note, length(body), octet_length(raw);
insert into w values (1, 'dup', repeat('d', 9000), null);
select note, length(body), left(body, 1) from w where id = 1;
-- checks and not null
create table c (a int, t text check (length(t) > 10), u text not null, check (a > 0));
insert into c values (1, repeat('t', 3000), repeat('u', 3000));
update c set a = 2 returning a, length(t), length(u);
update c set a = -1;
update c set t = 'short';
update c set u = null;
insert into c values (1, 'short', repeat('u', 3000));
select a, length(t), length(u) from c;
-- numeric and arrays
create table n (n numeric, a text[], i int[], c char(3000), v varchar(5000));
insert into n values (repeat('1234567890', 700)::numeric, array[repeat('p', 2000), null, repeat('q', 3000)], array(select g from generate_series(1, 2000) g), 'padded', repeat('v', 5000));
select length(n::text), n % 1000, length(a[1]), a[2], length(a[3]), i[2000], cardinality(i), length(c), octet_length(c), length(v) from n;
update n set v = 'v' returning n = repeat('1234567890', 700)::numeric, length(a[3]), i[1999], v;
-- many columns
create table m (a text, b text, c text, d text, e text);
insert into m values (repeat('a', 900), repeat('b', 900), repeat('c', 900), repeat('d', 900), repeat('e', 10));
create index m_a on m (a);
create unique index m_d on m (d);
select length(e) from m where a = repeat('a', 900);
update m set e = 'e2' where d = repeat('d', 900) returning length(a), length(b), length(c), length(d), e;
insert into m values (repeat('a', 900), repeat('b', 900), repeat('c', 900), repeat('d', 900), 'twice');
update m set a = repeat('z', 900);
select left(a, 1), left(b, 1), left(c, 1), left(d, 1), e from m where a = repeat('z', 900);
-- definitions
create table t2 as select id, body, raw from w;
select id, length(body), octet_length(raw) from t2 order by id;
alter table t2 add primary key (id);
alter table t2 add column x text;
update t2 set x = repeat('x', 4000) where id = 1;
alter table t2 add column y text default repeat('y', 3000);
alter table t2 alter column raw type text using encode(raw, 'hex');
select id, length(body), length(raw), length(x), length(y) from t2 order by id;
alter table t2 drop column body;
update t2 set y = 'y';
select id, length(raw), length(x), y from t2 order by id;
insert into t2 (id, x) select id + 100, repeat(x, 2) from t2 where x is not null;
select id, length(x) from t2 order by id;
truncate t2;
insert into t2 (id, x) values (1, repeat('after', 1000));
select id, length(x), length(y) from t2;
drop table t2;
create table k (a int);
insert into k values (1);
alter table k add column wide text;
update k set wide = repeat('w', 10000);
select a, length(wide) from k;
-- references
create table parent (id int primary key, body text);
create table child (id int primary key, parent int references parent on update cascade on delete cascade, body text);
insert into parent values (1, repeat('p', 5000)), (2, repeat('q', 5000));
insert into child values (10, 1, repeat('c', 6000)), (20, 2, repeat('d', 6000));
update parent set id = 3 where id = 1;
select id, parent, length(body) from child order by id;
delete from parent where id = 2;
select id, parent, length(body) from child order by id;
select id, length(body) from parent;
-- copies
copy (select id, left(body, 20), length(body) from w order by id) to stdout;
copy g (k, v) from stdin;
100	short
\.
select k, length(v) from g where k >= 9 order by k;
-- prepared, cursors, locks
prepare p (int) as select length(body), md5(body) from w where id = $1;
execute p (1);
execute p (5);
begin;
declare cur cursor for select id, body from w order by id;
fetch 1 from cur \gset
select :id, length(:'body');
commit;
begin;
select id, length(body) from w where id = 1 for update;
rollback;
insert into w select id + 50, note, body, raw from w where id = 1 returning id, length(body), octet_length(raw);
select count(*), count(distinct body) from w where id in (1, 51);
-- too long
select length(repeat('x', 2000000000));
-- keys that come and go take rows along as they are
create table moved (a text, b text, c text, d int);
insert into moved select repeat(chr(96 + i), 600), repeat('b', 1750 - i), repeat('c', 4000 * i), i from generate_series(1, 5) i;
alter table moved add primary key (a);
select left(a, 2), length(a), length(b), length(c), d from moved order by d;
select length(c) from moved where a = repeat('b', 600);
alter table moved drop constraint moved_pkey;
update moved set d = d + 10;
delete from moved where d = 11;
insert into moved select a, b, c, 99 from moved where d = 12;
alter table moved add primary key (a);
delete from moved where d = 99;
alter table moved add primary key (a);
select left(a, 2), length(a), length(b), length(c), d from moved order by d;
begin;
truncate moved;
insert into moved select repeat('k', 10) || i, repeat('b', 5000), null, i from generate_series(1, 100) i;
select count(*), sum(length(b)) from moved;
rollback;
select count(*), sum(length(c)) from moved;
