-- char(n): its padding means nothing in comparisons, keys, groups and sets, whatever the lengths.
create table p(a char(5) primary key, b int);
create table c(x char(10) references p(a), y text);
insert into p values ('a',1),('b  ',2);
insert into c values ('a','1'),('b         ','2'),(null,'3');
insert into c values ('z','1');
insert into p values ('a    ', 3);
select * from p join c on a = x order by 1;
select a, x from p full join c on a = x order by 1, 2;
select count(*) from (select a from p union select x from c) u;
select count(*) from (select a from p intersect select x from c) u;
select a from p except select x from c;
select distinct v from (values ('a'::char(3)), ('a'::char(9))) t(v);
select count(*), v from (values ('a'::char(3)), ('a'::char(9)), ('b'::char(1))) t(v) group by v order by 2;
select count(distinct v) from (values ('a'::char(3)), ('a'::char(9)), ('b'::char(1))) t(v);
select 'a'::char(3) in ('a'::char(8));
select 'a '::char(3) = 'a', 'a'::char(3) = 'a '::text, 'a'::char(3) || 'x';
select a from p where a in (select x from c) order by a;
select a from p where a not in (select x from c where x is not null) order by a;
select a from p where a = 'b' or a = 'a  ';
select a from p where a > 'a' order by a;
select min(x), max(x) from c;
select rank() over (order by v), v::text from (values ('a'::char(3)), ('a'::char(9)), ('b'::char(1))) t(v);
update p set a = 'b        ' where a = 'b';
delete from p where a = 'b';
select length(a), octet_length(a), a like 'a%', a like 'a' from p order by a;
select array['a'::char(3)], array['a'::char(3)] = array['a'::char(5)];
create index on c (x desc);
select x from c where x = 'a' order by x desc;
insert into p values ('a', 9) on conflict (a) do update set b = excluded.b returning *;
with recursive r(v) as (select 'a'::char(2) union select v from r) select * from r;
select coalesce(null, 'a'::char(4)) || '|', 'ab'::char(5)::text || '|', cast('ab' as char(5)), 'ab'::char(5)::varchar(9) || '|';
select true::char(5), 12::char(5), current_date::char(3) = '202';
select 'x'::char(4)::name, 'x'::name::char(4) || '|';

-- Patterns see the blanks that pad a char(n).
select 'b'::char(2) ~ '\s', 'b'::char(2) !~ '\s', 'b'::char(2) ~* 'B ', 'b'::char(2) !~* 'B $', 'b'::char(2) like 'b', 'b'::char(2) like 'b ',
    'b'::char(2) ilike 'B_', 'b'::char(2) not like 'b_', 'b'::char(2) not ilike 'B_';
select 'b'::char(2) similar to 'b', 'b'::char(2) similar to 'b ', 'b'::char(2) not similar to 'b_', 'b' ~ 'b'::char(2), 'b ' like 'b'::char(2);
select 'b'::char(2) !~ all (array['\s', 'x']), 'b'::char(2) ~* any (array['B ', 'x']);
