-- CREATE, ALTER and DROP STATISTICS: definitions, names, errors and what the catalog shows.
create table t (a int, b int, c text, "E x" numeric);
create table w (a int, b int, c int, d int, e int, f int, g int, h int, i int);
create statistics on a, b from t;
create statistics on a, b from t;
create statistics on b, a from t;
create statistics s1 on a from t;
create statistics s1 on a, a from t;
create statistics s1 on a, nope from t;
create statistics s1 on a, ctid from t;
create statistics s1 on a, (b) from t;
create statistics s1 on a, (c) from t;
create statistics if not exists s1 on a, (c) from t;
create statistics if not exists s1 (foo) on a from t;
create statistics s2 (ndistinct) on a, "E x" from t;
create statistics s3 (ndistinct, ndistinct) on b, a, "E x" from t;
create statistics s4 (dependencies, mcv) on a, b from t;
create statistics "S 5" (mcv) on (t.a), (t.c) from t;
create statistics t on a, b from t as other;
create statistics s6 (foo) on a from t;
create statistics s6 (foo) on a, nope from t;
create statistics s6 (foo) on a, a from t;
create statistics s6 on a, b from nope;
create statistics s6 on a, b from nos.t;
create statistics if not exists s1 on a, b from nope;
create statistics nos.s6 on a, b from t;
create statistics other.public.s6 on a, b from t;
create statistics a.b.c.d on a, b from t;
create statistics s6 on a, b from t, w;
create statistics s6 on a, b from (select 1) x;
create statistics s6 on a, b from generate_series(1, 2) a;
create statistics s6 on a, b from t tablesample system (1);
create statistics s6 on oid, relname from pg_class;
create statistics s6 on table_name, table_schema from information_schema.tables;
create index i on t (a);
create sequence sq;
create statistics s6 on a, b from i;
create statistics s6 on a, b from sq;
create statistics s6 on a, b, c, d, e, f, g, h, i from w;
create statistics s6 on a, b, c, d, e, f, g, h, nope from w;
create statistics w8 on a, b, c, d, e, f, g, h from w;
create statistics s6 on a b from t;
-- what psql shows
\d t
\d w
\dX
\dX s*
\dX public.t
select stxname, stxrelid::regclass, stxnamespace::regnamespace, stxowner::regrole, stxkeys, stxstattarget, stxkind, stxexprs
from pg_statistic_ext order by stxname;
select pg_get_statisticsobjdef(oid), pg_get_statisticsobjdef_columns(oid),
  pg_get_statisticsobjdef_expressions(oid), pg_statistics_obj_is_visible(oid)
from pg_statistic_ext order by stxname;
select pg_get_statisticsobjdef(0), pg_get_statisticsobjdef_columns(0), pg_statistics_obj_is_visible(0);
select count(*) from pg_statistic_ext_data;
select count(*) from pg_stats_ext;
-- what ANALYZE finds in a table that it reads whole
insert into t select i % 10, i % 10, 'c' || i % 5, i from generate_series(1, 1000) i;
insert into t select i % 10, null, 'c"' || i % 5, i from generate_series(1, 100) i;
analyze t;
select stxname, stxdinherit, stxdndistinct, stxddependencies, stxdmcv is not null as mcv, stxdexpr
from pg_statistic_ext_data join pg_statistic_ext on oid = stxoid order by stxname;
select schemaname, tablename, statistics_schemaname, statistics_name, statistics_owner, attnames, exprs, kinds,
  inherited, n_distinct, dependencies
from pg_stats_ext order by statistics_name;
select statistics_name, array_length(most_common_vals, 1) as rows, array_length(most_common_vals, 2) as columns,
  array_length(most_common_val_nulls, 2) as nulls, array_length(most_common_freqs, 1) as freqs,
  round(most_common_freqs[1]::numeric, 6) as first, round(most_common_base_freqs[1]::numeric, 6) as base
from pg_stats_ext where most_common_vals is not null order by statistics_name;
-- targets
alter statistics s4 set statistics 3;
analyze t;
select array_length(most_common_freqs, 1) from pg_stats_ext where statistics_name = 's4';
alter statistics s4 set statistics 0;
analyze t;
select array_length(most_common_freqs, 1) from pg_stats_ext where statistics_name = 's4';
alter statistics s4 set statistics 20000;
\d t
alter statistics s4 set statistics -2;
alter statistics nope set statistics -2;
alter statistics s4 set statistics -1;
select stxstattarget from pg_statistic_ext where stxname = 's4';
alter statistics s4 set statistics default;
alter statistics nope set statistics 3;
alter statistics if exists nope set statistics 3;
alter statistics nos.nope set statistics 3;
alter statistics if exists nos.nope set statistics 3;
-- names
alter statistics s1 rename to s2;
alter statistics s1 rename to s1;
alter statistics s1 rename to s11;
alter statistics nope rename to s12;
alter statistics nos.nope rename to s12;
alter statistics if exists s1 rename to s12;
alter table t rename column a to aa;
\dX s*
alter table t rename to tt;
\dX s*
alter table tt rename to t;
alter table t rename column aa to a;
-- schemas and owners
create schema s;
alter statistics s11 set schema s;
alter statistics s.s11 set schema nos;
alter statistics s.s11 set schema s;
create statistics s11 on a, b from t;
alter statistics s11 set schema s;
drop statistics s11;
alter statistics s.s11 owner to nobody_here;
alter statistics s.s11 owner to current_user;
alter statistics s.s11 rename to s11;
\dX *.s11
select pg_statistics_obj_is_visible(oid) from pg_statistic_ext where stxname = 's11';
select statistics_schemaname, statistics_name from pg_stats_ext where statistics_name = 's11';
drop schema s;
drop schema s cascade;
select count(*) from pg_stats_ext where statistics_name = 's11';
create schema s;
create statistics s.z on a, b from t;
create table s.zz (a int, b int);
create statistics s.zz on a, b from s.zz;
create statistics on a, b from s.zz;
drop schema s;
begin;
drop schema s cascade;
rollback;
select stxname, stxnamespace::regnamespace from pg_statistic_ext where stxnamespace = 's'::regnamespace order by 1;
drop table s.zz;
select stxname, stxnamespace::regnamespace from pg_statistic_ext where stxnamespace = 's'::regnamespace order by 1;
set search_path = s, public;
\dX z
drop schema s cascade;
reset search_path;
-- drops
drop statistics nope;
drop statistics public.nope;
drop statistics if exists nope, nos.nope, public.nope;
drop statistics nos.nope;
drop statistics other.public.s2;
drop statistics a.b.c.d;
drop statistics s2, nope;
drop statistics i;
drop table s2;
drop statistics s2, s2;
drop statistics t_a_b_stat cascade;
drop statistics t_a_b_stat1 restrict;
-- transactions
begin;
create statistics gone on a, b from t;
\dX gone
rollback;
\dX gone
begin;
drop statistics s4;
alter statistics s3 rename to s33;
alter statistics s33 set statistics 5;
savepoint one;
drop table t;
rollback to one;
\dX s*
rollback;
\dX s*
select count(*) from pg_stats_ext where statistics_name = 's4';
begin read only;
create statistics s7 on a, b from t;
rollback;
begin read only;
drop statistics s4;
rollback;
begin read only;
alter statistics s4 set statistics 4;
rollback;
-- the table changes
truncate t;
select statistics_name, n_distinct from pg_stats_ext order by statistics_name;
analyze t;
select statistics_name, n_distinct from pg_stats_ext order by statistics_name;
alter table t alter column c type varchar(20);
select statistics_name, n_distinct is not null as counted from pg_stats_ext order by statistics_name;
alter table t drop column b;
\d t
create schema s8;
alter table t set schema s8;
\dX
drop table s8.t;
\dX
drop table w;
select count(*) from pg_statistic_ext;
