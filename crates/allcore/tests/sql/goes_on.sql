-- Loops that meet more rows than they expected, and go on as hash joins.
create table kind (id int primary key, code text unique);
create table thing (id int primary key, kind int, place int, note text);
create table place (id int primary key, name text, size int);
create table mark (thing int, value int, primary key (thing, value));
create index thing_kind on thing (kind);
insert into kind select g, 'kind ' || g from generate_series(1, 2000) g;
insert into thing select g, case when g % 5 = 0 then g % 1999 + 2 else 1 end, nullif(g % 3000, 7), 'note ' || g from generate_series(1, 12000) g;
insert into place select g, 'place ' || g % 50, g % 17 from generate_series(1, 3000) g;
insert into mark select g * 3, v from generate_series(1, 3000) g, generate_series(1, g % 4) v;
analyze kind; analyze thing; analyze place; analyze mark;
select count(*), sum(t.id), min(p.name) from kind k join thing t on t.kind = k.id join place p on p.id = t.place where k.code = 'kind 1';
select count(*), sum(t.id), count(p.id), count(*) - count(p.name) from kind k join thing t on t.kind = k.id left join place p on p.id = t.place and p.size > 5 where k.code = 'kind 1';
select count(*), sum(t.id) from kind k join thing t on t.kind = k.id where k.code = 'kind 1' and exists (select from mark m where m.thing = t.id and m.value > 1);
select count(*), sum(t.id) from kind k join thing t on t.kind = k.id where k.code = 'kind 1' and not exists (select from mark m where m.thing = t.id and m.value <> 2);
select count(*), sum(m.value), sum(t.id) from kind k join thing t on t.kind = k.id join mark m on m.thing = t.id where k.code = 'kind 1' and m.value < t.place;
select t.id, p.name from kind k join thing t on t.kind = k.id join place p on p.id = t.place where k.code = 'kind 1' order by t.id desc limit 3;
select p.size, count(*) from kind k join thing t on t.kind = k.id join place p on p.id = t.place join mark m on m.thing = t.id where k.code = 'kind 1' group by p.size order by p.size limit 4;
-- Without room for the hash, the loop stays one.
set work_mem = '64kB';
select count(*), sum(t.id), min(p.name) from kind k join thing t on t.kind = k.id join place p on p.id = t.place where k.code = 'kind 1';
select count(*), sum(t.id), count(p.id) from kind k join thing t on t.kind = k.id left join place p on p.id = t.place and p.size > 5 where k.code = 'kind 1';
reset work_mem;
-- Prepared, with a rare value after a common one and the other way around.
prepare of_kind (text) as select count(*), sum(t.id), count(p.name) from kind k join thing t on t.kind = k.id left join place p on p.id = t.place where k.code = $1;
execute of_kind ('kind 1');
execute of_kind ('kind 7');
execute of_kind ('kind 1');
execute of_kind (null);
set plan_cache_mode = force_generic_plan;
execute of_kind ('kind 1');
execute of_kind ('kind 7');
reset plan_cache_mode;
deallocate of_kind;
-- Changes and locks of the rows on the right.
begin;
update place p set size = 100 from kind k join thing t on t.kind = k.id where p.id = t.place and k.code = 'kind 1' and p.size < 3;
select count(*) from place where size = 100;
delete from place p using kind k, thing t where t.kind = k.id and p.id = t.place and k.code = 'kind 1' and p.size = 100;
select count(*), sum(size) from place;
select count(*) from (select t.id from kind k join thing t on t.kind = k.id join place p on p.id = t.place where k.code = 'kind 1' for update of p) s;
rollback;
drop table kind, thing, place, mark;
