-- A shop: see scripts/plans_shop.py for the shapes of the columns.
create table customers (id integer primary key, name text not null, email text not null, region text not null,
    city text not null, zip integer not null, status text not null, score numeric(10, 2) not null, parent integer,
    u uuid not null, joined timestamp not null, note text);
create table orders (id bigint primary key, customer integer not null, status text not null, kind smallint not null,
    placed timestamp not null, due date not null, total numeric(12, 2) not null, code text not null, u uuid not null,
    a integer not null, b integer not null, c integer not null, d integer, memo text not null);
create table items (order_id bigint, line integer, product integer not null, quantity integer not null,
    price numeric(10, 2) not null, shipped date, primary key (order_id, line));
create table products (id integer primary key, category integer not null, label text not null,
    price numeric(10, 2) not null, discontinued boolean not null);
create table logs (id integer primary key, at timestamp not null, level text not null, source integer not null,
    target integer, payload text not null);
create table visits (token uuid primary key, customer integer not null, seen timestamptz not null,
    amount numeric(12, 2) not null);
create table tags (owner text, tag text, weight double precision not null, primary key (owner, tag));
create table nothing (id integer primary key, a integer, b text);
create unique index customers_email on customers (email);
create index customers_region_city on customers (region, city);
create index customers_joined on customers (joined);
create index customers_u on customers (u);
create index orders_customer on orders (customer);
create index orders_status on orders (status);
create index orders_placed on orders (placed);
create index orders_total on orders (total);
create index orders_code on orders (code);
create index orders_u on orders (u);
create index orders_a_b on orders (a, b);
create index orders_kind_placed on orders (kind, placed desc);
create index orders_c on orders (c);
create index orders_d on orders (d);
create index orders_due_id on orders (due, id);
create index items_product on items (product);
create index items_shipped on items (shipped, product);
create index products_category on products (category);
create index visits_seen on visits (seen desc);
create index visits_amount on visits (amount, customer);
create index tags_weight on tags (weight);
create index nothing_a on nothing (a);
