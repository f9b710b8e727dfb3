-- COPY in text and csv.
create table t (id int primary key, a text, n numeric);
copy t from stdin;
1	one	1.5
2	\N	\N
3	tab\there\nline	3
4		0
\.
select * from t order by id;
copy t to stdout;
copy t (a, id) to stdout;
copy (select id, a from t where id < 3 order by id desc) to stdout;
copy t to stdout (format csv);
copy t to stdout (format csv, header);
copy t to stdout with (format csv, delimiter ';', null 'NULL', force_quote *);
copy t to stdout with (delimiter '|', null '');
\copy t from program 'printf "10,\"quoted, comma\",1\n11,\"say \"\"hi\"\"\",\n12,,2\n13,\"\",3\n14,\"two\nlines\",4\n"' (format csv)
select * from t where id >= 10 order by id;
\copy t from program 'printf "id,a,n\n20,x,1\n"' (format csv, header)
\copy t (id, a) from program 'printf "30;plain\n31;two words\n"' (format csv, delimiter ';')
select * from t where id >= 20 order by id;
copy t from stdin;
40	a
\.
copy t from stdin;
41	a	1	extra
\.
copy t from stdin;
x	a	1
\.
copy t from stdin;
42	a	1
42	b	2
\.
copy t from stdin;
1	dup	1
\.
select count(*) from t where id >= 40;
copy t from stdin (null 'nil');
51	nil	nil
\.
select id, a is null, n is null from t where id = 51;
copy nosuch from stdin;
copy t (nosuch) from stdin;
copy t to stdout (format nosuch);
copy t to stdout (delimiter 'ab');
copy t to stdout (nosuch);
begin;
copy t from stdin;
60	x	1
\.
select count(*) from t where id = 60;
rollback;
select count(*) from t where id = 60;
create table c (a int not null, b varchar(2), d int default 5, check (a > 0));
copy c (a, b) from stdin;
1	ab
\.
copy c (a, b) from stdin;
1	abc
\.
copy c (a, b) from stdin;
-1	a
\.
copy c (a, b) from stdin;
\N	a
\.
select * from c;
copy (values (1, 'a\b', true, null, '\x01'::bytea)) to stdout;
copy (values (1, 'a"b', true, null, 'c,d')) to stdout csv;
drop table t, c;

-- An option that is given twice.
create table option_twice (a int);
copy option_twice to stdout (format csv, format text);
copy option_twice to stdout (delimiter ',', null 'x', delimiter ';');
copy option_twice to stdout csv csv;
copy option_twice from stdin (header, header false);
create database option_twice encoding 'utf8' encoding 'utf8';
-- Signs that rows could not be read back with.
create table signs (a int, b text);
insert into signs values (1, 'x');
copy signs to stdout (delimiter E'\n');
copy signs to stdout (delimiter E'\r');
copy signs to stdout (delimiter '');
copy signs to stdout (delimiter 'a');
copy signs to stdout (delimiter '.');
copy signs to stdout (delimiter E'\\');
copy signs to stdout (delimiter '9', null E'\n');
copy signs to stdout (null E'a\nb');
copy signs to stdout (delimiter ',', null 'a,b');
copy signs to stdout (format csv, delimiter '"');
copy signs to stdout (format csv, delimiter 'a', quote 'a');
copy signs to stdout (format csv, delimiter 'a', quote 'b', null 'c');
copy signs to stdout (format csv, null 'a"b');
copy signs to stdout (format csv, null 'a,b');
copy signs to stdout (format binary, delimiter ',');
copy signs to stdout (format binary, null 'x');
copy signs to stdout (format binary, header);
copy signs to stdout (format binary, header false, quote '"');
copy signs to stdout (quote 'ab', delimiter 'ab');
copy signs to stdout (escape 'ab');
copy signs to stdout (format csv, quote 'ab');
copy signs to stdout (format csv, escape 'ab');
