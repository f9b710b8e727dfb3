-- What pg_cursors shows of the session's cursors.
prepare open as select name, statement, is_holdable, is_binary, is_scrollable,
    creation_time <= clock_timestamp() as before
    from pg_cursors where name <> '' order by name;
execute open;
begin;
declare one cursor for select 1;
declare two scroll cursor for select n from generate_series(1, 3) n;
declare three no scroll cursor with hold for select n from generate_series(1, 3) n;
DECLARE "Four"   CURSOR
  FOR SELECT 'it''s';
execute open;
fetch two;
fetch backward two;
move forward all in one;
execute open;
fetch 2 from three;
savepoint s;
declare five cursor for select 5;
select count(*) from pg_cursors where name <> '';
rollback to s;
select name from pg_cursors where name <> '' order by name;
close two;
fetch nine;
rollback to s;
select name from pg_cursors where name <> '' order by name;
fetch all from one;
fetch "Four";
commit;
select name, statement, is_holdable, is_binary, is_scrollable, creation_time <= now() as before from pg_cursors where name <> '';
fetch all from three;
execute open;
begin;
declare six cursor with hold for select 6;
declare seven cursor for select 7 where 1 = 7;
select 1 / 0;
rollback;
select name from pg_cursors where name <> '';
declare eight cursor with hold for select 8\; select name, statement from pg_cursors where name = 'eight';
close all;
select count(*) from pg_cursors where name <> '';
begin;
declare nine cursor for select name from pg_cursors;
declare ten cursor for select name from pg_cursors order by name;
select name, is_scrollable from pg_cursors where name <> '' order by 1;
commit;
declare nine cursor with hold for select 1;
discard all;
select count(*) from pg_cursors where name <> '';
