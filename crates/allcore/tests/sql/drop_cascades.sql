-- What DROP .. CASCADE takes along, and what refuses a DROP without it.
create table p (a int primary key, b int unique, c int);
create unique index p_c on p (c);
create table c1 (a int references p, b int references p (b));
create table c2 (a int references p, c int references p (c));
create table "C 3" (a serial primary key, "B b" int references p (a));
drop table p;
drop index p_c;
alter table p drop constraint p_pkey;
alter table p drop constraint p_b_key;
alter table p drop column c;
alter table p drop column a;
begin; drop index p_c cascade; rollback;
begin; alter table p drop constraint p_pkey cascade; rollback;
begin; alter table p drop constraint p_b_key cascade; rollback;
begin; alter table p drop column c cascade; rollback;
begin; alter table p drop column a cascade; rollback;
begin; alter table p drop a cascade, drop b cascade, drop c cascade; rollback;
begin; drop table p cascade; insert into c1 values (7, 7); rollback;
begin; drop table c1, p, c2; rollback;
begin; drop table c1, p, c2 cascade; rollback;
begin; drop table p, c1, c2, "C 3"; rollback;
drop table p, c1, c2, "C 3";

-- sequences
create sequence q;
create sequence r;
create table t (a serial, b int default nextval('q'), c int default nextval('r') + nextval('q'), d int check (d <> nextval('r')));
create table u (a int default nextval('t_a_seq'), b bigint generated always as identity);
drop sequence q;
drop sequence r;
drop sequence q, r;
drop sequence t_a_seq;
drop sequence u_b_seq;
drop sequence u_b_seq cascade;
drop table t;
alter table t drop a;
begin; drop sequence q cascade; insert into t values (1) returning *; rollback;
begin; drop sequence q, r cascade; rollback;
begin; drop sequence r, q cascade; insert into t(d) values (1) returning b, c, d; rollback;
begin; drop sequence t_a_seq cascade; rollback;
begin; alter table t drop a cascade; rollback;
begin; drop table t cascade; rollback;
begin; drop table t, u; rollback;
drop table t, u cascade;
drop sequence q, r;

-- relations by name
create table v (a int); create index vi on v (a);
create table w (a oid default 'v'::regclass, b regclass default 'vi', c oid check (c <> 'v'::regclass), d oid default 'pg_class'::regclass);
insert into w (c) values (0);
select a = 'v'::regclass from w;
drop table v;
drop index vi;
alter table v rename to v2;
select a = 'v2'::regclass, b from w;
alter index vi rename to vi2;
begin; drop index vi2 cascade; rollback;
begin; drop table v2 cascade; insert into w (c) values (1); select a, d = 'pg_class'::regclass from w where c = 1; rollback;
select pg_get_expr(adbin, adrelid) from pg_attrdef where adrelid = 'w'::regclass order by adnum;
drop table w;
create table x (a int default nextval('nosuch'));
create table x (a int default nextval('nosuch.q'));
create table x (a int default nextval('public.nosuch'::regclass));
create table x (a oid default 'nosuch'::regclass);
create table x (a int check (nextval('nosuch') > 0));
create table x (a int, check (a <> 'nosuch'::regclass));
create table x (a int default nextval('nosuch'::text), b oid default '0'::regclass, c oid default '-'::regclass, d bigint default pg_relation_size('v2'));
alter table x alter a set default nextval('nosuch');
alter table x add e int default nextval('nosuch');
alter table x add e int check (nextval('nosuch') > 0);
alter table x add check (nextval('nosuch') > 0);
create index on x (a); 
create table y (a int default nextval('x'));
create table z (a int default currval('x_a_idx'));
drop table x;
drop table x cascade;
insert into y values (1); insert into y default values;
drop table v2;
drop table y, z; drop table v2 cascade;

-- schemas
create schema s; create schema s2;
create sequence s.q; create table s.a (a serial primary key, b int default nextval('s.q'));
create table s.b (a int references s.a, b int generated always as identity);
create table s2.c (a int references s.a, b int default nextval('s.q'), c int default nextval('s.a_a_seq'));
create table e (a int references s.b (b));
create table s.d (a int unique); create table e (a int references s.d (a), b int references s.a);
drop schema s;
drop schema s2;
drop schema s, s2;
begin; set search_path to s, public; drop schema s cascade; rollback;
begin; drop schema s2, s cascade; rollback;
begin; drop schema s, s2 cascade; rollback;
begin; drop schema s2 cascade; rollback;
begin; set client_min_messages to warning; drop schema s cascade; rollback;
drop schema s, s2 cascade;
\d e
create schema s; create table s.one (a int);
drop schema s;
drop schema s cascade;
drop schema if exists s cascade;
drop table if exists s.one, e cascade;
drop table s.one; drop index s.one; drop sequence if exists s.one;

-- a detail lists a hundred objects
create table p (a int primary key);
select format('create table c%s (a int references p)', n) from generate_series(1, 100) n \gexec
begin; drop table p cascade; rollback;
create table c101 (a int references p);
drop table p;
begin; drop table p cascade; rollback;
create table c102 (a int references p);
begin; drop table p cascade; rollback;
drop table p cascade;
\d c102
