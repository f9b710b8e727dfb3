//! Names that PostgreSQL generates for indexes, sequences and constraints. A generated name is the
//! first free one, and names that running transactions give or take away are not free.

use super::script::{Stage, sections};

const SCRIPTS: &str = r#"
## index
s: create table x (a int, b int)
a: begin
a: create sequence x_a_idx
b: create table x_a_idx1 (a int)
b: create index on x (a)
a: commit
s: select relname from pg_class c join pg_namespace n on n.oid = relnamespace where nspname =
  current_schema order by 1 => (x) (x_a_idx) (x_a_idx1) (x_a_idx2)

## sequence
a: begin
a: create table t_a_seq (z int)
b: create table t (a serial)
a: commit
s: select relname from pg_class c join pg_namespace n on n.oid = relnamespace where nspname =
  current_schema order by 1 => (t) (t_a_seq) (t_a_seq1)

## pkey
a: begin
a: create table t_pkey (z int)
b: create table t (a int primary key, b int unique)
a: commit
s: select relname from pg_class c join pg_namespace n on n.oid = relnamespace where nspname =
  current_schema order by 1 => (t) (t_b_key) (t_pkey) (t_pkey1)

## rolled back
a: begin
a: create table t_pkey (z int)
a: create sequence t_b_key
a: create sequence t_c_seq
b: create table t (a int primary key, b int unique, c serial)
a: rollback
s: select relname from pg_class c join pg_namespace n on n.oid = relnamespace where nspname =
  current_schema order by 1 => (t) (t_b_key1) (t_c_seq1) (t_pkey1)

## dropped uncommitted
s: create table t_pkey (z int)
s: create sequence t_b_key
s: create sequence t_c_seq
a: begin
a: drop table t_pkey
a: drop sequence t_b_key
a: drop sequence t_c_seq
b: create table t (a int primary key, b int unique, c serial)
a: commit
s: select relname from pg_class c join pg_namespace n on n.oid = relnamespace where nspname =
  current_schema order by 1 => (t) (t_b_key1) (t_c_seq1) (t_pkey1)

## renamed away, uncommitted
s: create table t_pkey (z int)
a: begin
a: alter table t_pkey rename to other
b: create table t (a int primary key)
a: commit
s: select relname from pg_class c join pg_namespace n on n.oid = relnamespace where nspname =
  current_schema order by 1 => (other) (t) (t_pkey1)

## check constraint of other table uncommitted
s: create table t (a int, b int)
a: begin
a: create table o (a int constraint t_a_check check (a > 0), b int constraint t_b_key check (a >
  2), constraint t_a_fkey check (a > 1))
b: alter table t add check (a > 0)
b: alter table t add unique (b)
b: alter table t add unique (a)
b: alter table t add foreign key (a) references t (a)
a: commit
s: select conname from pg_constraint c join pg_namespace n on n.oid = connamespace where nspname =
  current_schema order by 1 => (t_a_check) (t_a_check) (t_a_fkey) (t_a_fkey) (t_a_key) (t_b_key)
  (t_b_key)

## constraint names equal to relation names
s: create table t_a_check (z int)
s: create table t_a_fkey (z int)
s: create table t (a int unique check (a > 0), b int check (b > a), c int check (c > 0), check (c
  > 1), check (c > a), check (true))
s: alter table t add foreign key (a) references t (a)
s: alter table t add foreign key (a) references t (a)
s: alter table t add check (a > 2)
s: select conname from pg_constraint c join pg_namespace n on n.oid = connamespace where nspname =
  current_schema and contype <> 'n' order by 1 => (t_a_check) (t_a_check1) (t_a_fkey) (t_a_fkey1)
  (t_a_key) (t_c_check) (t_c_check1) (t_check) (t_check1) (t_check2)

## long names
s: create table aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa
  (bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb serial primary key unique check
  (bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb > 1) check
  (bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb > 2), c serial)
s: create index on aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa
  (bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb)
s: create index on aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa
  (bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb)
s: create index on aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa
  (bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb, c)
s: alter table aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa add unique (c), add
  unique (c), add foreign key (c) references
  aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa (c), add foreign key (c)
  references aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa (c)
s: select conname from pg_constraint c join pg_namespace n on n.oid = connamespace where nspname =
  current_schema and contype <> 'n' order by 1 =>
  (aaaaaaaaaaaaaaaaaaaaaaaaaaaa_bbbbbbbbbbbbbbbbbbbbbbbbbbb_check1)
  (aaaaaaaaaaaaaaaaaaaaaaaaaaaa_bbbbbbbbbbbbbbbbbbbbbbbbbbbb_check)
  (aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa_c_fkey1)
  (aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa_c_fkey)
  (aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa_c_key1)
  (aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa_c_key)
  (aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa_pkey)
s: select relname from pg_class c join pg_namespace n on n.oid = relnamespace where nspname =
  current_schema order by 1 => (aaaaaaaaaaaaaaaaaaaaaaaaaaaaa_bbbbbbbbbbbbbbbbbbbbbbbbbbbb_idx1)
  (aaaaaaaaaaaaaaaaaaaaaaaaaaaaa_bbbbbbbbbbbbbbbbbbbbbbbbbbbb_idx2)
  (aaaaaaaaaaaaaaaaaaaaaaaaaaaaa_bbbbbbbbbbbbbbbbbbbbbbbbbbbbb_idx)
  (aaaaaaaaaaaaaaaaaaaaaaaaaaaaa_bbbbbbbbbbbbbbbbbbbbbbbbbbbbb_seq)
  (aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa_c_key1)
  (aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa_c_key)
  (aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa_c_seq)
  (aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa_pkey)
  (aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa)

## many columns in index name; repeated columns
s: create table t (a int, b int, c int, d int)
s: create index on t (a, a)
s: create index on t (a, b, c, d)
s: create index on t (a, b, c, d)
s: create table t_a_b_c_d_idx2 (i int)
s: create index on t (a, b, c, d)
s: alter table t add unique (a, b, c, d), add unique (a, b, c, d)
s: select relname from pg_class c join pg_namespace n on n.oid = relnamespace where nspname =
  current_schema order by 1 => (t) (t_a_a1_idx) (t_a_b_c_d_idx) (t_a_b_c_d_idx1) (t_a_b_c_d_idx2)
  (t_a_b_c_d_idx3) (t_a_b_c_d_key) (t_a_b_c_d_key1)

## the name is taken by the table itself or another part of the same statement
s: create table t_a_seq (a serial)
s: create table a_pkey (a int primary key)
s: create table b (a int constraint b_a_key primary key, c int unique, unique (a))
s: create table c (a serial, constraint c_a_seq unique (a)) => error 42P07
s: create table d (a int unique, constraint d_a_key check (a > 0))
s: create table e (a int check (a > 0), constraint e_a_check check (a > 1)) => error 42710
s: create table f (a int check (a > 0), constraint f_a_check unique (a)) => error 42710
s: create table g_a_key (a int)
s: create table g (a int unique)
s: create table h (a serial, h_a_seq int)
s: create table h (a_b serial, a int, "b" int) => error 42P07
s: select relname from pg_class c join pg_namespace n on n.oid = relnamespace where nspname =
  current_schema order by 1 => (a_pkey) (a_pkey_pkey) (b) (b_a_key) (b_c_key) (d) (d_a_key1) (g)
  (g_a_key) (g_a_key1) (h) (h_a_seq) (t_a_seq) (t_a_seq_a_seq)
s: select conname from pg_constraint c join pg_namespace n on n.oid = connamespace where nspname =
  current_schema and contype <> 'n' order by 1 => (a_pkey_pkey) (b_a_key) (b_c_key) (d_a_key)
  (d_a_key1) (g_a_key1)

## identity, add column serial
s: create table t (a int)
s: create table t_b_seq (a int)
s: alter table t add b serial
s: alter table t add c int generated always as identity
s: alter table t alter a set not null
s: create sequence t_a_seq
s: alter table t alter a add generated by default as identity
s: select relname from pg_class c join pg_namespace n on n.oid = relnamespace where nspname =
  current_schema order by 1 => (t) (t_a_seq) (t_a_seq1) (t_b_seq) (t_b_seq1) (t_c_seq)

## two make the same table, first rolls back
a: begin; create table t (a serial primary key, b int unique)
b: create table t (a serial primary key, b int unique) => waits
a: rollback
b => count 0
s: select relname from pg_class c join pg_namespace n on n.oid = relnamespace where nspname =
  current_schema order by 1 => (t) (t_a_seq1) (t_b_key) (t_pkey)

## two make the same table, first commits
a: begin; create table t (a serial primary key, b int unique)
b: create table t (a serial primary key, b int unique) => waits
a: commit
b => error 23505
s: select relname from pg_class c join pg_namespace n on n.oid = relnamespace where nspname =
  current_schema order by 1 => (t) (t_a_seq) (t_b_key) (t_pkey)

## explicit name claimed
a: begin; create table t_pkey (a int)
b: create table t (a int constraint t_pkey primary key) => waits
a: commit
b => error 23505

## explicit name, rolled back
a: begin; create table t_pkey (a int)
b: create table t (a int constraint t_pkey primary key) => waits
a: rollback
b => count 0

## savepoint
a: begin; savepoint s; create table t_pkey (a int); rollback to s
b: create table t (a int primary key)
a: commit
s: select relname from pg_class c join pg_namespace n on n.oid = relnamespace where nspname =
  current_schema order by 1 => (t) (t_pkey)

## own transaction
a: begin; create table t_pkey (a int); drop table t_pkey; create table t (a int primary key);
  create sequence t_b_seq; alter table t add b serial
a: commit
s: select relname from pg_class c join pg_namespace n on n.oid = relnamespace where nspname =
  current_schema order by 1 => (t) (t_b_seq) (t_b_seq1) (t_pkey)

## repeatable read
b: begin isolation level repeatable read; select 1 => (1)
s: create table t_pkey (a int); create sequence t_b_seq
b: create table t (a int primary key, b serial)
b: commit
s: select relname from pg_class c join pg_namespace n on n.oid = relnamespace where nspname =
  current_schema order by 1 => (t) (t_b_seq) (t_b_seq1) (t_pkey) (t_pkey1)

## merges
s: create table m (a int unique, b int, unique (a), constraint x unique (a), primary key (b),
  unique (b), unique nulls not distinct (a), unique (a, b), unique (b, a))
s: create table n (a int constraint x1 unique constraint x2 unique)
s: select conname from pg_constraint c join pg_namespace n on n.oid = connamespace where nspname =
  current_schema and contype <> 'n' order by 1 => (m_a_b_key) (m_a_key) (m_b_a_key) (m_pkey) (x)
  (x1)

## order of kinds
s: create table o (a int, b int references o (a), unique (a), constraint o_b_fkey check (b > 0),
  primary key (b))
s: select conname from pg_constraint c join pg_namespace n on n.oid = connamespace where nspname =
  current_schema and contype <> 'n' order by 1 => (o_a_key) (o_b_fkey) (o_b_fkey1) (o_pkey)

## other schema does not count
s: create schema generated_other
s: create table generated_other.t_pkey (a int constraint t_a_check check (a > 0))
s: create table t (a int primary key check (a > 0))
s: select conname from pg_constraint c join pg_namespace n on n.oid = connamespace where nspname =
  current_schema and contype <> 'n' order by 1 => (t_a_check) (t_pkey)
s: drop schema generated_other cascade

## long names with characters of several bytes
s: create table ééééééééééééééééééééééééééééééé (üüüüüüüüüüüüüüüüüüüüüüüüüüüüüüü serial unique)
s: create index on ééééééééééééééééééééééééééééééé (üüüüüüüüüüüüüüüüüüüüüüüüüüüüüüü)
s: create index on ééééééééééééééééééééééééééééééé (üüüüüüüüüüüüüüüüüüüüüüüüüüüüüüü)
s: select relname from pg_class c join pg_namespace n on n.oid = relnamespace
  where nspname = current_schema order by 1 => (éééééééééééééé_üüüüüüüüüüüüüü_idx) (éééééééééééééé_üüüüüüüüüüüüüü_idx1)
  (éééééééééééééé_üüüüüüüüüüüüüü_key) (éééééééééééééé_üüüüüüüüüüüüüü_seq) (ééééééééééééééééééééééééééééééé)

## constraints of other tables of the schema
s: create table o (a int constraint t_a_check check (a > 0),
  constraint t_a_fkey foreign key (a) references o (a), constraint t_a_key check (a > 1),
  constraint t_pkey check (a > 2), unique (a))
s: create table t (a serial primary key check (a > 0), b int, foreign key (a) references o (a))
s: alter table t add unique (a)
s: create index on t (a)
s: select conname from pg_constraint c join pg_namespace n on n.oid = connamespace
  where nspname = current_schema and contype <> 'n' order by 1 => (o_a_key) (t_a_check) (t_a_check1) (t_a_fkey)
  (t_a_fkey1) (t_a_key) (t_a_key1) (t_pkey) (t_pkey1)
s: select relname from pg_class c join pg_namespace n on n.oid = relnamespace
  where nspname = current_schema order by 1 => (o) (o_a_key) (t) (t_a_idx) (t_a_key1) (t_a_seq) (t_pkey1)
"#;

#[test]
fn a_generated_name_is_the_first_that_is_free() {
    Stage::open().play(&sections(SCRIPTS));
}
