-- client_min_messages says what is told.
show client_min_messages;
drop table if exists nothere;
set client_min_messages = warning;
drop table if exists nothere;
create table t (a int);
create table if not exists t (a int);
commit;
set client_min_messages = error;
commit;
rollback;
set local client_min_messages = notice;
drop table nothere;
set client_min_messages to debug; show client_min_messages;
set client_min_messages to info; drop table if exists nothere;
set client_min_messages to fatal;
set client_min_messages to loud;
begin;
set local client_min_messages = error;
drop table if exists nothere;
commit;
drop table if exists nothere;
begin;
set client_min_messages = error;
drop table if exists nothere;
rollback;
drop table if exists nothere;
reset client_min_messages;
show client_min_messages;
-- What the server is, is not for a session to change.
set fsync = off;
set full_page_writes = off;
set port = 3;
set shared_buffers = '1GB';
set max_connections = 3;
set data_directory = 'x';
set listen_addresses = 'x';
set huge_pages = off;
set block_size = 4096;
set data_checksums = off;
set huge_pages_status = off;
show fsync;
show full_page_writes;
show block_size;
show huge_pages;
show data_checksums;
show track_activities;
show track_activity_query_size;
reset port;
show no_such_setting;
set no_such_setting = 1;
-- Locks, as the session itself sees them.
begin;
lock table t in share row exclusive mode;
select locktype, relation::regclass, mode, granted from pg_locks
where pid = pg_backend_pid() and relation = 't'::regclass;
insert into t values (1);
select mode from pg_locks where pid = pg_backend_pid() and relation = 't'::regclass order by mode;
select mode, granted from pg_locks where pid = pg_backend_pid() and locktype = 'transactionid';
commit;
select count(*) from pg_locks where pid = pg_backend_pid() and relation = 't'::regclass;
-- A session sees itself.
select state, wait_event_type, wait_event, query, xact_start = now(), query_start <= clock_timestamp(),
 state_change >= query_start from pg_stat_activity where pid = pg_backend_pid();
set application_name = 'me';
select application_name, backend_type from pg_stat_activity where pid = pg_backend_pid();
drop table t;

-- pg_settings has numbers in their unit.
select name, setting, unit, vartype, context, min_val, max_val, boot_val from pg_settings
    where name in ('work_mem', 'statement_timeout', 'enable_sort', 'search_path', 'extra_float_digits', 'lock_timeout', 'row_security')
    order by name;
select name, setting, unit, vartype, context from pg_settings where name in ('block_size', 'fsync') order by name;
set work_mem = '1GB';
set statement_timeout = '90s';
select name, setting, unit, source, reset_val from pg_settings where name in ('work_mem', 'statement_timeout') order by name;
show work_mem;
reset work_mem;
reset statement_timeout;
select name, setting, source from pg_settings where name in ('work_mem', 'statement_timeout') order by name;
begin read only;
select setting from pg_settings where name = 'transaction_read_only';
rollback;
select name, vartype, enumvals @> '{debug5,notice}' as has_words from pg_settings where name = 'client_min_messages';
select count(*) from pg_settings where unit is not null and setting !~ '^-?[0-9]+$';
select name, enumvals from pg_settings where name in ('bytea_output', 'IntervalStyle', 'log_min_messages', 'synchronous_commit') order by name;
set bytea_output = 'base64';
set synchronous_commit = 'perhaps';
