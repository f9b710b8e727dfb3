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
