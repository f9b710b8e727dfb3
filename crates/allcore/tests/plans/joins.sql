-- The methods and sides of inner joins.
create table small (id int primary key, name text, kind int);
create table large (id int primary key, small int, amount int, code text);
create table other (id int primary key, large int, note text);
insert into small select i, 'n' || i, i % 4 from generate_series(1, 50) i;
insert into large select i, i % 50 + 1, i * 7 % 1000, 'c' || i % 500 from generate_series(1, 20000) i;
insert into other select i, i * 3, 'o' || i from generate_series(1, 3000) i;
create index large_small on large (small);
create index large_code on large (code, amount);
create index other_large on other (large);
analyze small, large, other;
-- A hash of the smaller side, wherever it is written.
explain (costs off) select * from small join large on large.small = small.id;
explain (costs off) select * from large join small on large.small = small.id;
explain (costs off) select count(*) from other join large on other.large = large.id;
-- A loop over an index where the outer side has few rows.
explain (costs off) select * from small join large on large.small = small.id where small.name = 'n7';
explain (costs off) select * from large join other on other.large = large.id where large.code = 'c7';
explain (costs off) select * from large join other on other.large = large.id where large.id = 7;
explain (costs off) select * from other, large where other.large = large.id and other.id between 5 and 9;
-- Two conditions, of which an index takes one, or both.
explain (costs off) select * from small join large on large.code = small.name and large.amount = small.kind where small.id < 4;
explain (costs off) select * from small join large on large.small = small.id and large.amount > small.kind where small.id < 4;
-- Without an equality: a loop, with an index inside where one serves.
explain (costs off) select count(*) from small a join small b on a.id < b.id;
explain (costs off) select count(*) from small join large on large.amount < small.kind where large.code = 'c7';
explain (costs off) select count(*) from small, other;
-- Equal by an expression, by a cast, by NULL-safe comparison.
explain (costs off) select count(*) from large join small on large.amount % 50 = small.id;
explain (costs off) select count(*) from large join small on large.small::bigint = small.id::bigint;
explain (costs off) select count(*) from small a join small b on a.kind is not distinct from b.kind;
-- OR between tables.
explain (costs off) select count(*) from small join large on large.small = small.id or large.id = small.kind;
explain (costs off) select count(*) from small join large on (large.small = small.id and large.amount < 5) or (large.small = small.id and large.code = 'c7');
-- A constant reaches both sides of an equality.
explain (costs off) select * from large join other on other.large = large.id where other.large = 300;
explain (costs off) select * from small join large on large.small = small.id where large.small in (3, 4) and large.amount = 7;
explain (costs off) select * from large a join large b on a.id = b.id where a.id between 5 and 9;
-- USING and NATURAL.
explain (costs off) select id, name, amount from small join large using (id) where id < 5;
explain (costs off) select count(*) from small natural join other;
-- The order of a join's left side is kept.
explain (costs off) select large.id, other.id from large join other on other.large = large.id order by large.id limit 5;
explain (costs off) select large.id, small.name from large join small on large.small = small.id order by large.id limit 5;
explain (costs off) select large.id, small.name from large join small on large.small = small.id order by small.id, large.id limit 5;
-- A method is off.
set enable_hashjoin = off;
explain (costs off) select count(*) from small join large on large.small = small.id;
explain (costs off) select count(*) from large join small on large.amount % 50 = small.id;
reset enable_hashjoin;
set enable_nestloop = off;
explain (costs off) select * from small join large on large.small = small.id where small.name = 'n7';
explain (costs off) select count(*) from small a join small b on a.id < b.id;
reset enable_nestloop;
