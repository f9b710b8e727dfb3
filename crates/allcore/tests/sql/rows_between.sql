-- BETWEEN over rows compares field by field, as the operators do.
select (null::int, null::int) between (null::int, null::int) and (null::int, null::int);
select (1, 2::bigint) between (1::bigint, 1) and (2, 3), (1, 2) between (null, 1) and (1, 1), (1, 'a') between (1, 'A') and (2, 'b');
select (1, 2) not between (1, 3) and (2, 1), (1, null) not between (1, 3) and (2, 1), (1, null) between (0, 3) and (2, 1);
select (1, 2) between symmetric (2, 1) and (0, 5), (1, 2) not between symmetric (2, 1) and (null, 5), (1, 2) between symmetric (1, null) and (0, 1);
create table v (a int);
insert into v values (null), (1), (2);
select count(*), sum(1) filter (where (a.a, b.a) between (c.a, d.a) and (e.a, f.a)),
  sum(1) filter (where (a.a, b.a) not between (c.a, d.a) and (e.a, f.a)),
  sum(1) filter (where (a.a, b.a) between symmetric (c.a, d.a) and (e.a, f.a)),
  sum(1) filter (where (a.a, b.a) not between symmetric (c.a, d.a) and (e.a, f.a))
from v a, v b, v c, v d, v e, v f;
select count(*) from v a, v b, v c, v d, v e, v f where (a.a, b.a) between (c.a, d.a) and (e.a, f.a);
select (1, 2) between (1, 2, 3) and (1, 2);
select (1, 2) between (1, 'x') and (1, 2);
select (1, 2) between row(1, 2) and null;
select (1, 2) between 1 and 2;
select v between row(1) and row(2), row(a) between v and v from v order by a;
select row() between row() and row();
prepare p as select ($1, 2) between (1, $2) and (3, 4), ($1, 5) not between ($2, 1) and ($1, 4);
execute p (1, 2);
execute p (null, 2);
prepare p2 (int, text) as select ($1, $2) between (1, 'a') and (2, 'b');
execute p2 (1, 'b');
execute p2 (2, 'c');
select i from generate_series(1, 3) i where (i, (select 2)) between (1, 3) and ((select 3), 1);
select (1, random() < 2) between (1, true) and (1, true);
drop table v;
