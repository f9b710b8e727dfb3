-- PREPARE, EXECUTE, DEALLOCATE.
create table t (id int primary key, v text, n numeric);
insert into t values (1, 'a', 1.5), (2, 'b', 2.5), (3, null, null);
prepare one as select v from t where id = $1;
execute one (1);
execute one (2);
execute one (99);
execute one (null);
execute one ('2');
execute one ('x');
execute one;
execute one (1, 2);
execute nosuch;
prepare one as select 1;
prepare two (int, text) as select $1 + 1, $2 || '!';
execute two (1, 'x');
execute two ('5', 7);
execute two (1.6, 'y');
execute two ('x', 'y');
prepare three (numeric) as select * from t where n > $1 order by id;
execute three (1);
execute three (2.0);
prepare ins (int, text) as insert into t (id, v) values ($1, $2) returning *;
execute ins (4, 'd');
execute ins (4, 'd');
prepare upd as update t set v = $2 where id = $1;
execute upd (4, 'dd');
execute upd (44, 'dd');
prepare del as delete from t where id = $1 returning v;
execute del (4);
prepare bad as select $1;
execute bad ('q');
prepare bad2 as select $2 from t where id = $1;
prepare bad3 as select nosuch;
prepare bad4 (nosuch) as select 1;
prepare rng as select id from t where id between $1 and $2 order by id desc limit $3;
execute rng (1, 3, 2);
execute rng (1, 3, null);
prepare inl as select id from t where id in ($1, $2) or v = any ($3) order by id;
execute inl (1, 2, '{}');
execute inl (1, 1, array['b']);
alter table t add column z int default 0;
execute three (2.0);
prepare star as select * from t where id = 1;
execute star;
alter table t add column zz int default 1;
execute star;
deallocate one;
execute one (1);
deallocate nosuch;
deallocate all;
execute two (1, 'x');
begin;
prepare p as select 1;
rollback;
execute p;
begin;
execute p;
execute nosuch;
execute p;
commit;
deallocate p;
drop table t;

-- CREATE TABLE AS EXECUTE.
create table counted (a int primary key, b text);
insert into counted values (1, 'x'), (2, null), (3, 'y');
prepare above as select a, b from counted where a > $1 order by a;
create table copied as execute above(1);
select * from copied order by a;
create table named (z) as execute above('2');
select * from named;
create table named_too_often (x, y, z) as execute above(1);
create table copied as execute above(1);
create table if not exists copied as execute above(1);
create table nothing as execute above(null) with no data;
select * from nothing;
create table missing_argument as execute above;
create table missing as execute nowhere;
prepare adds as insert into counted values ($1) returning a;
create table added as execute adds(7);
-- The plan is made anew for definitions of the same transaction.
begin;
alter table counted add column c int default 5;
create table later as execute above(0);
select count(*) from later;
rollback;
begin read only;
create table refused as execute above(0);
rollback;

-- pg_prepared_statements.
select name, statement, parameter_types, result_types, from_sql, prepare_time <= now() as made
    from pg_prepared_statements where name in ('above', 'adds') order by name;
prepare typed(numeric, "char") as select $1, $2::text, now();
select parameter_types, result_types from pg_prepared_statements where name = 'typed';
deallocate typed;
select count(*) from pg_prepared_statements where name = 'typed';
deallocate all;
select count(*) from pg_prepared_statements;

-- Parameters without a type become text where rows are sorted or parted by them.
prepare parted as select a, ntile(2) over (partition by $1 order by a) from counted order by a;
execute parted('k');
execute parted(null);
prepare ranked as select a, rank() over (order by $1) from counted order by a;
execute ranked('k');
-- a parameter where only a constant may stand
select extract($1 from now());
select date $1;
select float $1;
select interval $1 day;
set work_mem = $1;
set work_mem to $1;
set time zone $1;
prepare only_constants (text) as select extract($1 from now());
prepare only_constants (text) as select pg_catalog.extract($1, timestamp '2020-01-02'), $1::text, cast($1 as text);
execute only_constants ('year');
-- a parameter whose type nothing tells
prepare untyped as select concat('a', $1);
prepare untyped as select concat_ws('-', $2, 'a', $1::int);
prepare untyped as select format('%s', $1);
prepare untyped as select num_nulls($1), num_nonnulls($2);
prepare untyped as select json_build_object($1, 2);
prepare untyped as select 1 from (select concat_ws('-', $1, 'abc') from (select 1) x) z;
prepare untyped as select concat_ws($1, 'a', 'b'), format($2), concat($3::int, $3), concat('x', $4::text);
execute untyped ('+', '%%', 3, 'y');
prepare typed (int) as select concat('a', $1), format('%s', $1);
execute typed (7);
-- The simple protocol has no parameters, whatever else is wrong.
select $1;
select $2;
select 1 where $1 is null;
select $1 + nope;
select $1::int, 1 union select 2;
explain select $1;
insert into nope values ($1);

-- EXPLAIN of EXECUTE, alone and in CREATE TABLE AS.
create table explained (id int primary key, v text);
insert into explained select g, 'v' || g from generate_series(1, 5) g;
explain execute nowhere;
explain analyze execute nowhere(1);
prepare one_of(int) as select * from explained where id = $1;
explain execute one_of;
explain execute one_of(1, 2);
explain execute one_of('x');
explain execute one_of(true);
explain execute one_of(1 / 0);
explain execute one_of(3000000000);
prepare adding(int) as insert into explained values ($1, 'new') returning id;
-- The plan's lines are of each server.
\o /dev/null
explain (costs off) execute adding(10);
\o
select count(*) from explained;
\o /dev/null
explain analyze execute adding(10);
\o
select count(*) from explained;
explain analyze execute adding(10);
begin read only;
explain analyze execute adding(20);
rollback;
explain create table explained as execute one_of(1);
explain create table made as execute nowhere;
explain create table made as execute one_of;
explain create table if not exists explained as execute one_of(1);
\o /dev/null
explain create table made as execute one_of(1);
\o
select count(*) from made;
\o /dev/null
explain analyze create table made as execute one_of(2);
\o
select * from made;
explain analyze create table made as execute one_of(2);
explain analyze create table if not exists made as select 1;
\o /dev/null
explain analyze create table empty_made as execute one_of(2) with no data;
explain analyze create table selected as select 7 as a;
explain analyze declare explained_cursor cursor for select 1;
\o
select * from empty_made;
select * from selected;
explain create table selected as select 1;
fetch explained_cursor;
alter table explained add column z int;
explain execute one_of(1);
drop table explained, made, empty_made, selected;
deallocate all;
-- A parameter that nothing but DISTINCT reads is text.
prepare of_distinct as select count(distinct $1) from (values (1)) v;
execute of_distinct(1);
select parameter_types from pg_prepared_statements where name = 'of_distinct';
prepare of_int(int) as select count(distinct $1), count(distinct $1 + 1) from (values (1), (2)) v;
execute of_int(3);
prepare of_both as select count(distinct $1), $1 + 1;
prepare of_none as select count($1);
select count(distinct null), count(distinct 'x');
deallocate all;

-- What is given to a statement without parameters is not looked at. What an open parameter leaves open.
prepare a as select 1;
execute a(1);
execute a();
prepare a1(int) as select $1;
execute a1;
execute a1(1);
execute a1(1,2);
prepare b as select array_agg($1);
prepare c as select age($1);
prepare d as select array_length($1,1);
prepare e as select array_to_string($1,',');
prepare f as select generate_series($1,$2);
prepare g as select unnest($1);
prepare h as select cardinality($1);
prepare i as select array_append($1,$2);
prepare j as select array_append($1,1);
prepare k as select array_cat($1,$2);
prepare l as select array_position($1,$2);
prepare m as select array_upper($1,1), array_lower($2,1), array_ndims($3);
prepare n as select * from generate_series($1,$2);
prepare o as select * from unnest($1);
prepare p as select min($1);
prepare q as select max($1);
prepare r as select sum($1);
prepare s as select count($1);
prepare t as select string_agg($1,$2);
prepare u as select abs($1);
prepare v as select round($1);
prepare w as select length($1);
prepare x as select lower($1);
prepare y as select substring($1 from $2);
prepare z as select coalesce($1,$2);
prepare aa as select greatest($1,$2);
prepare ab as select nullif($1,$2);
prepare ac as select date_trunc($1,$2);
prepare af as select $1 + $2;
prepare ag as select $1 || $2;
prepare ah as select $1 = any($2);
prepare ai as select array_remove($1,$2), array_replace($3,$4,$5);
prepare ak as select pg_typeof($1);
prepare am as select lag($1) over ();
prepare an as select first_value($1) over ();
prepare ao as select array_agg(distinct $1);
prepare ap as select bool_and($1);
prepare aq as select array[$1,$2];
prepare ar as select ($1)[1];
prepare at as select row($1);
prepare av as select mod($1,$2), power($1,$2);
prepare aw as select repeat($1,$2), lpad($1,$2), left($1,$2), format($3), concat($4);
prepare ax as select array_dims($1);
prepare ay as select avg($1);
prepare az as select width_bucket($1,$2,$3,$4);
prepare ba as select make_interval(days => $1), to_timestamp($2);
prepare bb as select overlay($1 placing $2 from $3), position($4 in $5);
prepare bc as select bit_and($1);
prepare bd as select stddev($1);
prepare be as select sign($1);
prepare bf as select gcd($1,$2);
prepare bh as select string_to_array($1,$2), unnest(string_to_array($3,','));
prepare bi as select encode($1,$2), decode($3,$4), md5($5);
prepare bj as select reverse($1);
prepare bk as select char_length($1), octet_length($2), bit_length($3);
select name, parameter_types from pg_prepared_statements order by 1;
select age('2020-01-01'), age('1'::text::xid);
