-- Left joins of which only the rows without a match stay are anti joins.
create table people (id integer primary key, boss integer, town integer);
create table visits (id integer primary key, person integer, amount integer);
insert into people select g, nullif(g / 10, 0), g % 7 from generate_series(1, 2000) g;
insert into visits select g, g * 7 % 1500, nullif(g % 9, 4) from generate_series(1, 6000) g;
create index on visits (person);
analyze;
explain (costs off) select p.id from people p left join visits v on v.person = p.id where v.id is null;
explain (costs off) select p.id from people p left join visits v on v.person = p.id where v.person is null and p.id < 5;
explain (costs off) select p.id from visits v right join people p on v.person = p.id where v.person is null and p.town = 3;
-- A match may have a NULL there.
explain (costs off) select p.id from people p left join visits v on v.person = p.id where v.amount is null;
-- A match of this ON has none.
explain (costs off) select p.id from people p left join visits v on v.person = p.id and v.amount > 3 where v.amount is null;
-- The join inside may leave NULLs.
explain (costs off) select p.id from people p left join (people b left join visits v on v.person = b.id) on b.boss = p.id where v.id is null;
-- ON is volatile.
explain (costs off) select p.id from people p left join visits v on v.person = p.id and random() < 0.5 where v.id is null;
