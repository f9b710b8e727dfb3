-- Options of VACUUM and ANALYZE, sizes.
create table v(a serial, b text);
vacuum (freeze, skip_locked) v;
vacuum (nosuch) v;
analyze (full) v;
analyze v(nosuch);
vacuum v(a);
vacuum analyze v(a);
drop sequence v_a_seq;
select pg_size_pretty(0::bigint), pg_size_pretty(10239::bigint), pg_size_pretty(10240::bigint), pg_size_pretty(-20971519::bigint), pg_size_pretty(123456789012345::bigint), pg_size_pretty(9223372036854775807::bigint);
