-- The end marker of COPY's text format, alone on its line or not.
create table c1(t text);
create table c2(a text, b text);
\copy c1 from program 'printf "a\\\\.b\n"'
\copy c1 from program 'printf "\\\\.\n"'
\copy c1 from program 'printf "\\\\."'
\copy c1 from program 'printf "x\n\\\\."'
\copy c1 from program 'printf "x\n\\\\.\nrest\n"'
\copy c1 from program 'printf "x\r\n\\\\.\nrest\n"'
\copy c1 from program 'printf "x\r\n\\\\.\r\nrest\n"'
\copy c1 from program 'printf "x\n\\\\.\r\nrest\n"'
\copy c1 from program 'printf "x\r\\\\.\rrest\r"'
\copy c1 from program 'printf "x\r\\\\.\nrest\r"'
\copy c1 from program 'printf "\\\\.\r\nrest\n"'
\copy c1 from program 'printf "\\\\.\rrest\n"'
\copy c1 from program 'printf "x\\\\.\n"'
\copy c1 from program 'printf "x\\\\.\r\n"'
\copy c1 from program 'printf "y\r\nx\\\\.\r\n"'
\copy c1 from program 'printf "y\r\nx\\\\.\n"'
\copy c1 from program 'printf "y\r\n\\\\.z\r\n"'
\copy c1 from program 'printf "y\r\n\\\\.\rz\r\n"'
\copy c1 from program 'printf "y\nx\\\\."'
\copy c2 from program 'printf "\\\\.x\ty\n"'
\copy c2 from program 'printf "x\t\\\\.\n"'
\copy c2 from program 'printf "x\ty\\\\.\n"'
\copy c2 from program 'printf "x\ty\tz\\\\.\n"'
\copy c2 from program 'printf "x\\\\.\n"'
\copy c2 from program 'printf "x\\\\.y\n"'
\copy c1 from program 'printf "\\\\\\\\.\n"'
\copy c1 from program 'printf "a\\\\\n\\\\.b\n"'
\copy c1 from program 'printf "a\rb\\\\.\n"'
\copy c1 from program 'printf "q\na\rb\\\\.\n"'
\copy c1 from program 'printf "q\nb\\\\.\ra\n"'
\copy c1 from program 'printf "q\n\\\\.\\\\.\n"'
\copy c1 from program 'printf "h\\\\.\nq\n"' with (header)
\copy c1 from program 'printf "\\\\.\nq\n"' with (header)
\copy c1 from program 'printf "\\\\.\nq\n"' with (format csv)
\copy c1 from program 'printf "a\n\\\\.\nq\n"' with (format csv)
\copy c1 from program 'printf "a\\\\.b\n"' with (format csv)
\copy c1 from program 'printf "\\\\."' with (format csv)
\copy c1 from program 'printf "\\\\056\n"'
select * from c1;
select * from c2;
copy c1 from stdin;
a\.b
\.
copy c1 from stdin;
k\.
\.
copy c1 from stdin csv;
k\.
\.
select * from c1;

-- A backslash at the very end, and the lines within CSV's quotes in what errors tell.
create table cb1(a text); create table cb2(a text, b text);
\copy cb1 from program 'printf "abc\\\\"'
\copy cb1 from program 'printf "\\\\"'
\copy cb1 from program 'printf "\\\\N\\\\"'
\copy cb2 from program 'printf "a\tb\\\\"'
\copy cb2 from program 'printf "a\t\\\\"'
\copy cb1 from program 'printf "x\r\nabc\\\\\r\n"'
\copy cb1 from program 'printf "x\nabc\\\\\r"'
\copy cb1 from program 'printf "\\\\tabc\\\\"'
select a, length(a), a is null from cb1;
select a, b, length(b), b is null from cb2;
create table cn(a int, b text);
\copy cn from program 'printf "1,\"x\ny\"\nz,2\n"' csv
\copy cn from program 'printf "1,\"x\ny\nz\"\n2,\"a\nb\"\nz,2\n"' csv
\copy cn from program 'printf "1,\"x\r\ny\r\nz\"\r\nz,2\r\n"' csv
\copy cn from program 'printf "1,\"x\n\ny\nz\"\r\nz,2\r\n"' csv
\copy cn from program 'printf "1,\"x\ny\nz,3\n"' csv
\copy cn from program 'printf "1,a\n1,\"x\ny\nz,3\n"' csv
\copy cn from program 'printf "1,a\n1,\"x\ny\nz,3"' csv
\copy cn from program 'printf "1,\"x\ny\nz\"\n2,\"a\nb\"\nz,2\n"' (format csv, escape e'\\')
\copy cn from program 'printf "1,\"x\n\"y,3\n"' csv
\copy cn from program 'printf "h,\"x\ny\"\nz,3\n"' (format csv, header)
\copy cn from program 'printf "x,\"x\ny\"\nz,3\n"' csv
\copy cn from program 'printf "1,\"x\ny\",3\n"' csv
