-- Lists and arrays of 9 and more elements, which are prepared for look-ups.
create table t(id int primary key, s smallint, i int, b bigint, n numeric, r real, f float8, x text, v varchar(9), c char(5), d date, ts timestamp, tz timestamptz, iv interval, u uuid, y bytea, a int[], o oid);
insert into t values
 (1, 1, 1, 1, 1.00, 1.5, 0, 'a', 'a', 'a', '2024-01-01', '2024-01-01', '2024-01-01 00:00+00', '1 month', '00000000-0000-0000-0000-000000000001', '\x00', '{1}', 1),
 (2, 5, 5, 5, 5.50, 0.1, '-0', 'a ', 'a ', 'a ', 'infinity', 'infinity', 'infinity', '30 days', '00000000-0000-0000-0000-000000000002', '\x0000', '{1,NULL}', 5),
 (3, -1, -1, 4294967297, 'NaN', 'NaN', 'NaN', '', '', '', '-infinity', '-infinity', '-infinity', '720:00:00', '00000000-0000-0000-0000-000000000003', '', '{}', 4294967295),
 (4, 32767, 2147483647, 9223372036854775807, 1e40, 'Infinity', 1e300, 'é', 'é', 'é', '1900-02-28', '1900-02-28 12:00', '1900-02-28 12:00+00', '-1 day', 'ffffffff-ffff-ffff-ffff-ffffffffffff', '\xff', '{{1}}', 0),
 (5, 77, 77, 77, 77.001, 7.7, 7.7, 'none', 'none', 'none', '2077-01-01', '2077-01-01', '2077-01-01 00:00+00', '77 years', '77777777-7777-7777-7777-777777777777', '\x77', '{77}', 77),
 (6, null, null, null, null, null, null, null, null, null, null, null, null, null, null, null, null, null);
-- Integers of all widths on both sides.
select id, s in (1,2,3,4,5,6,7,8,9,10), i in (1,2,3,4,5,6,7,8,9,10), b in (1,2,3,4,5,6,7,8,9,4294967297), o in (1,2,3,4,5,6,7,8,9,4294967295::oid) from t order by id;
select id, s in (1,2,3,4,5,6,7,8,9,10::bigint), i in (1,2,3,4,5,6,7,8,9,4294967297), b in (1::int2,2,3,4,5,6,7,8,9,10) from t order by id;
select id, s not in (1,2,3,4,5,6,7,8,9,10), i not in (1,2,3,4,5,6,7,8,9,10), b not in (1,2,3,4,5,6,7,8,9,4294967297) from t order by id;
-- NULL among the elements, and nothing but NULL.
select id, i in (1,2,3,4,5,6,7,8,9,null), i not in (1,2,3,4,5,6,7,8,9,null), i in (null,null,null,null,null,null,null,null,null,null::int), i <> all (array[null,null,null,null,null,null,null,null,null,null]::int[]) from t order by id;
select id from t where i not in (1,2,3,4,5,6,7,8,9,null) order by id;
select id from t where i in (1,2,3,4,5,6,7,8,9,null) order by id;
select id from t where not (i in (1,2,3,4,5,6,7,8,9,10)) order by id;
select id from t where (i in (1,2,3,4,5,6,7,8,9,10)) is null order by id;
select id from t where (i in (1,2,3,4,5,6,7,8,9,10)) is not true order by id;
select id from t where id > 4 or i in (1,2,3,4,6,7,8,9,10) order by id;
select id, case when i in (1,2,3,4,6,7,8,9,10) then 'in' when i not in (5,6,7,8,9,10,11,12,13) then 'out' else 'else' end from t order by id;
select count(*) filter (where i in (1,2,3,4,5,6,7,8,9,10)), count(*) filter (where i <> all ('{1,2,3,4,5,6,7,8,9,10}')) from t;
-- Numerics, floats.
select id, n in (1,2,3,4,5.5,6,7,8,9,10), n in (1.000,2.0,3,4,5.50,6,7,8,9,'NaN'), n in (1e40,2,3,4,5,6,7,8,9,1.0000000000000000000000000000000000000000000), n not in (1e40,2,3,4,5,6,7,8,9,'NaN') from t order by id;
select id, n in (1.00,2,3,4,5,6,7,8,9,null), n in (1::bigint,2,3,4,5,6,7,8,9,77.0010) from t order by id;
select id, r in (1.5,0.1,'NaN',4,5,6,7,8,9,10), r in (1.5,0.1::real,'Infinity',4,5,6,7,8,9,10), f in (0,1,2,3,4,5,6,7,8,'NaN'), f in ('-0',1,2,3,4,5,6,7,8,1e300), f in (0.0::real,1,2,3,4,5,6,7,8,7.7::real) from t order by id;
-- Texts of all kinds.
select id, x in ('a','b','c','d','e','f','g','h','','é'), x in ('a ','b','c','d','e','f','g','h','i','E'), x not in ('a','b','c','d','e','f','g','h','i',null) from t order by id;
select id, v in ('a','b','c','d','e','f','g','h','','é'), v = any ('{a," a","a ",d,e,f,g,h,i,j}'), v = any ('{a," a","a ",d,e,f,g,h,i,j}'::varchar[]), v = any ('{a," a","a ",d,e,f,g,h,i,j}'::text[]) from t order by id;
select id, c in ('a','b','c','d','e','f','g','h','','é'), c in ('a  ','b','c','d','e','f','g','h','i','none'), c = any ('{a," a","a ",d,e,f,g,h,i,j}'), c = any ('{a," a","a ",d,e,f,g,h,i,j}'::text[]), c = any ('{a," a","a   ",d,e,f,g,h,i,""}'::bpchar[]) from t order by id;
select id, y in ('','\x00','\x01','\x02','\x03','\x04','\x05','\x06','\x07','\xff') from t order by id;
-- Times.
select id, d in ('2024-01-01','2024-01-02','2024-01-03','2024-01-04','2024-01-05','2024-01-06','2024-01-07','2024-01-08','2024-01-09','infinity') from t order by id;
select id, d in ('2024-01-01'::timestamp,'2024-01-02','2024-01-03','2024-01-04','2024-01-05','2024-01-06','2024-01-07','2024-01-08','2024-01-09','infinity') from t order by id;
select id, ts in ('2024-01-01','2024-01-02','2024-01-03','2024-01-04','2024-01-05','2024-01-06','2024-01-07','2024-01-08','1900-02-28 12:00','-infinity') from t order by id;
select id, tz in ('2024-01-01 01:00+01','2024-01-02','2024-01-03','2024-01-04','2024-01-05','2024-01-06','2024-01-07','2024-01-08','1900-02-28 12:00+00','-infinity') from t order by id;
select id, iv in ('1 month','1 day','2 days','3 days','4 days','5 days','6 days','7 days','8 days','9 days'), iv in ('720 hours','1 day','2 days','3 days','4 days','5 days','6 days','7 days','8 days','-24 hours') from t order by id;
-- UUIDs, arrays, rows.
select id, u = any ('{00000000-0000-0000-0000-000000000001,00000000-0000-0000-0000-000000000004,00000000-0000-0000-0000-000000000005,00000000-0000-0000-0000-000000000006,00000000-0000-0000-0000-000000000007,00000000-0000-0000-0000-000000000008,00000000-0000-0000-0000-000000000009,FFFFFFFF-ffff-ffff-ffff-ffffffffffff,00000000-0000-0000-0000-000000000010}') from t order by id;
select id, a in ('{1}','{2}','{3}','{4}','{5}','{6}','{7}','{8}','{9}','{}'), a in ('{1,NULL}','[2:2]={1}','{3}','{4}','{5}','{6}','{7}','{8}','{9}','{{1}}') from t order by id;
select id, (i, b) in ((1,1),(2,2),(3,3),(4,4),(5,5),(6,6),(7,7),(8,8),(9,9),(10,10)), (i, x) not in ((1,'a'),(2,'b'),(3,'c'),(4,'d'),(5,'e'),(6,'f'),(7,'g'),(8,'h'),(9,null),(10,'j')) from t order by id;
-- Arrays: constants, several dimensions, other operators.
select id, i = any ('{1,2,3,4,5,6,7,8,9}'), i = any ('{{1,2,3},{4,5,6},{7,8,NULL}}'), i <> all ('{{1,2,3},{4,5,6},{7,8,9}}'), i <> any ('{1,2,3,4,5,6,7,8,9}'), i = all ('{1,1,1,1,1,1,1,1,1}'), i > any ('{1,2,3,4,5,6,7,8,9}') from t order by id;
select id, i = any (null::int[]), i = any ('{}'), i <> all ('{}'), i = any (array[1,2,3,4,5,6,7,8,9,id]), i = any (array[id] || '{1,2,3,4,5,6,7,8,9}') from t order by id;
select id, i = any (string_to_array('1,2,3,4,5,6,7,8,9', ',')::int[]), x = any (string_to_array('a,b,c,d,e,f,g,h,', ',')) from t order by id;
select 5 = any ('{1,2,3,4,5,6,7,8,9}'), 'b' <> all ('{a,b,c,d,e,f,g,h,i}'::text[]), null in (1,2,3,4,5,6,7,8,9);
-- Parameters, by plans of both kinds.
prepare p(int[], text[], numeric[]) as select id, i = any ($1), s = any ($1), b = any ($1), i <> all ($1), x = any ($2), c = any ($2), n = any ($3), n <> all ($3) from t order by id;
execute p('{1,2,3,4,5,6,7,8,9}', '{a,b,c,d,e,f,g,h,"",none}', '{1.0,2,3,4,5.5,6,7,8,NaN}');
execute p('{1,2,3}', '{a}', null);
execute p('{1,2,3,4,5,6,7,8,NULL}', '{a,b,c,d,e,f,g,h,NULL,none}', '{}');
set plan_cache_mode = force_generic_plan;
execute p('{1,2,3,4,5,6,7,8,9}', '{a,b,c,d,e,f,g,h,"",none}', '{1.0,2,3,4,5.5,6,7,8,NaN}');
execute p('{{1,2,3},{4,5,6},{7,8,NULL}}', '{a}', '{NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL}');
execute p(null, '{"a ",b,c,d,e,f,g,h,NULL,none}', '{1e40,2,3,4,5,6,7,8,9}');
prepare q(int, int) as select id from t where i in ($1, $2, 3, 4, 6, 7, 8, 9, 10, 11) order by id;
execute q(1, 5);
execute q(-1, null);
prepare w(int) as select id from t where i in (1, 2, 3, 4, 6, 7, 8, 9, 10, $1 + 1) order by id;
execute w(4);
execute w(76);
reset plan_cache_mode;
-- Elements that fail or read a row.
select id, i in (1,2,3,4,5,6,7,8,9,10/(i-1)) from t where id = 1;
select id, i in (1,2,3,4,6,7,8,9,10,5/i) from t order by id;
select id from t where i in (1,2,3,4,6,7,8,9,10,id+3) order by id;
select id from t where 10/(i-1) in (1,2,3,4,6,7,8,9,10,11);
-- Correlated queries, joins, and changes.
select t.id, (select count(*) from t y where y.i in (1,2,3,4,5,6,7,8,9,t.i)), (select count(*) from t y where t.i in (1,2,3,4,5,6,7,8,9,10)) from t order by id;
select x.id, y.id from t x left join t y on x.id = y.id + 1 and y.i = any ('{1,2,3,4,5,6,7,8,9}') order by 1, 2;
update t set i = 100 where i in (5,11,12,13,14,15,16,17,18,19) returning id, i in (100,11,12,13,14,15,16,17,18,19);
delete from t where b <> all ('{1,5,77,11,12,13,14,15,16}') returning id;
create table k(i int check (i in (1,2,3,4,5,6,7,8,9,10)), g text check (g = any ('{a,b,c,d,e,f,g,h,i}')));
insert into k values (1, 'a'), (10, 'i'), (null, null), (3, 'b');
insert into k values (2, 'a'), (11, 'b');
insert into k values (2, 'a'), (1, 'j');
select * from k order by i;
