-- class: TPC-H
-- data: tpch

-- name: Q1, pricing summary
select l_returnflag, l_linestatus, sum(l_quantity) as quantity, sum(l_extendedprice) as base,
       sum(l_extendedprice * (1 - l_discount)) as discounted,
       sum(l_extendedprice * (1 - l_discount) * (1 + l_tax)) as charged,
       avg(l_quantity), avg(l_extendedprice), avg(l_discount), count(*)
from lineitem
where l_shipdate <= date '1998-12-01' - interval '90 days'
group by l_returnflag, l_linestatus
order by l_returnflag, l_linestatus;

-- name: Q2, cheapest supplier
select s.s_acctbal, s.s_name, n.n_name, p.p_partkey, p.p_mfgr, s.s_address, s.s_phone, s.s_comment
from part p
join partsupp ps on ps.ps_partkey = p.p_partkey
join supplier s on s.s_suppkey = ps.ps_suppkey
join nation n on n.n_nationkey = s.s_nationkey
join region r on r.r_regionkey = n.n_regionkey
where p.p_size = 15 and p.p_type like '%BRASS' and r.r_name = 'EUROPE'
  and ps.ps_supplycost = (
      select min(other.ps_supplycost)
      from partsupp other
      join supplier os on os.s_suppkey = other.ps_suppkey
      join nation o on o.n_nationkey = os.s_nationkey
      join region e on e.r_regionkey = o.n_regionkey
      where other.ps_partkey = p.p_partkey and e.r_name = 'EUROPE')
order by s.s_acctbal desc, n.n_name, s.s_name, p.p_partkey
limit 100;

-- name: Q3, unshipped orders
select l.l_orderkey, sum(l.l_extendedprice * (1 - l.l_discount)) as revenue, o.o_orderdate, o.o_shippriority
from customer c
join orders o on o.o_custkey = c.c_custkey
join lineitem l on l.l_orderkey = o.o_orderkey
where c.c_mktsegment = 'BUILDING' and o.o_orderdate < date '1995-03-15' and l.l_shipdate > date '1995-03-15'
group by l.l_orderkey, o.o_orderdate, o.o_shippriority
order by revenue desc, o.o_orderdate, l.l_orderkey
limit 10;

-- name: Q4, late orders by priority
select o_orderpriority, count(*)
from orders
where o_orderdate >= date '1993-07-01' and o_orderdate < date '1993-07-01' + interval '3 months'
  and exists (select 1 from lineitem where l_orderkey = o_orderkey and l_commitdate < l_receiptdate)
group by o_orderpriority
order by o_orderpriority;

-- name: Q5, local suppliers
select n.n_name, sum(l.l_extendedprice * (1 - l.l_discount)) as revenue
from region r, nation n, supplier s, customer c, orders o, lineitem l
where r.r_name = 'ASIA' and n.n_regionkey = r.r_regionkey and s.s_nationkey = n.n_nationkey
  and c.c_nationkey = s.s_nationkey and o.o_custkey = c.c_custkey and l.l_orderkey = o.o_orderkey
  and l.l_suppkey = s.s_suppkey and o.o_orderdate >= date '1994-01-01'
  and o.o_orderdate < date '1994-01-01' + interval '1 year'
group by n.n_name
order by revenue desc;

-- name: Q6, revenue from small discounts
select sum(l_extendedprice * l_discount)
from lineitem
where l_shipdate >= date '1994-01-01' and l_shipdate < date '1994-01-01' + interval '1 year'
  and l_discount between 0.06 - 0.01 and 0.06 + 0.01 and l_quantity < 24;

-- name: Q7, trade of two nations
select t.seller, t.buyer, t.year, sum(t.volume)
from (
    select sn.n_name as seller, cn.n_name as buyer, extract(year from l.l_shipdate) as year,
           l.l_extendedprice * (1 - l.l_discount) as volume
    from supplier s, lineitem l, orders o, customer c, nation sn, nation cn
    where s.s_suppkey = l.l_suppkey and o.o_orderkey = l.l_orderkey and c.c_custkey = o.o_custkey
      and sn.n_nationkey = s.s_nationkey and cn.n_nationkey = c.c_nationkey
      and ((sn.n_name = 'FRANCE' and cn.n_name = 'GERMANY') or (sn.n_name = 'GERMANY' and cn.n_name = 'FRANCE'))
      and l.l_shipdate between date '1995-01-01' and date '1996-12-31') t
group by t.seller, t.buyer, t.year
order by t.seller, t.buyer, t.year;

-- name: Q8, share of a market
select t.year, sum(case when t.nation = 'BRAZIL' then t.volume else 0 end) / sum(t.volume) as share
from (
    select extract(year from o.o_orderdate) as year, l.l_extendedprice * (1 - l.l_discount) as volume,
           sn.n_name as nation
    from part p, supplier s, lineitem l, orders o, customer c, nation cn, nation sn, region r
    where p.p_partkey = l.l_partkey and s.s_suppkey = l.l_suppkey and l.l_orderkey = o.o_orderkey
      and o.o_custkey = c.c_custkey and c.c_nationkey = cn.n_nationkey and cn.n_regionkey = r.r_regionkey
      and r.r_name = 'AMERICA' and s.s_nationkey = sn.n_nationkey
      and o.o_orderdate between date '1995-01-01' and date '1996-12-31' and p.p_type = 'ECONOMY ANODIZED STEEL') t
group by t.year
order by t.year;

-- name: Q9, profit by nation and year
select t.nation, t.year, sum(t.profit)
from (
    select n.n_name as nation, extract(year from o.o_orderdate) as year,
           l.l_extendedprice * (1 - l.l_discount) - ps.ps_supplycost * l.l_quantity as profit
    from part p, supplier s, lineitem l, partsupp ps, orders o, nation n
    where s.s_suppkey = l.l_suppkey and ps.ps_suppkey = l.l_suppkey and ps.ps_partkey = l.l_partkey
      and p.p_partkey = l.l_partkey and o.o_orderkey = l.l_orderkey and s.s_nationkey = n.n_nationkey
      and p.p_name like '%green%') t
group by t.nation, t.year
order by t.nation, t.year desc;

-- name: Q10, returned items
select c.c_custkey, c.c_name, sum(l.l_extendedprice * (1 - l.l_discount)) as revenue, c.c_acctbal, n.n_name,
       c.c_address, c.c_phone, c.c_comment
from customer c
join orders o on o.o_custkey = c.c_custkey
join lineitem l on l.l_orderkey = o.o_orderkey
join nation n on n.n_nationkey = c.c_nationkey
where o.o_orderdate >= date '1993-10-01' and o.o_orderdate < date '1993-10-01' + interval '3 months'
  and l.l_returnflag = 'R'
group by c.c_custkey, c.c_name, c.c_acctbal, c.c_phone, n.n_name, c.c_address, c.c_comment
order by revenue desc, c.c_custkey
limit 20;

-- name: Q11, important stock
select ps.ps_partkey, sum(ps.ps_supplycost * ps.ps_availqty) as value
from partsupp ps
join supplier s on s.s_suppkey = ps.ps_suppkey
join nation n on n.n_nationkey = s.s_nationkey
where n.n_name = 'GERMANY'
group by ps.ps_partkey
having sum(ps.ps_supplycost * ps.ps_availqty) > (
    select sum(a.ps_supplycost * a.ps_availqty) * 0.0001 / 0.3
    from partsupp a
    join supplier b on b.s_suppkey = a.ps_suppkey
    join nation m on m.n_nationkey = b.s_nationkey
    where m.n_name = 'GERMANY')
order by value desc, ps.ps_partkey;

-- name: Q12, shipping modes
select l.l_shipmode,
       sum(case when o.o_orderpriority in ('1-URGENT', '2-HIGH') then 1 else 0 end) as high,
       sum(case when o.o_orderpriority not in ('1-URGENT', '2-HIGH') then 1 else 0 end) as low
from orders o
join lineitem l on l.l_orderkey = o.o_orderkey
where l.l_shipmode in ('MAIL', 'SHIP') and l.l_commitdate < l.l_receiptdate and l.l_shipdate < l.l_commitdate
  and l.l_receiptdate >= date '1994-01-01' and l.l_receiptdate < date '1994-01-01' + interval '1 year'
group by l.l_shipmode
order by l.l_shipmode;

-- name: Q13, orders of a customer
select t.number, count(*) as customers
from (
    select c.c_custkey, count(o.o_orderkey) as number
    from customer c
    left join orders o on o.o_custkey = c.c_custkey and o.o_comment not like '%special%requests%'
    group by c.c_custkey) t
group by t.number
order by customers desc, t.number desc;

-- name: Q14, effect of promotions
select 100.00 * sum(case when p.p_type like 'PROMO%' then l.l_extendedprice * (1 - l.l_discount) else 0 end)
       / sum(l.l_extendedprice * (1 - l.l_discount))
from lineitem l
join part p on p.p_partkey = l.l_partkey
where l.l_shipdate >= date '1995-09-01' and l.l_shipdate < date '1995-09-01' + interval '1 month';

-- name: Q15, best supplier
with revenue as (
    select l_suppkey as supplier, sum(l_extendedprice * (1 - l_discount)) as total
    from lineitem
    where l_shipdate >= date '1996-01-01' and l_shipdate < date '1996-01-01' + interval '3 months'
    group by l_suppkey)
select s.s_suppkey, s.s_name, s.s_address, s.s_phone, r.total
from supplier s
join revenue r on r.supplier = s.s_suppkey
where r.total = (select max(total) from revenue)
order by s.s_suppkey;

-- name: Q16, suppliers of a kind of part
select p.p_brand, p.p_type, p.p_size, count(distinct ps.ps_suppkey) as suppliers
from partsupp ps
join part p on p.p_partkey = ps.ps_partkey
where p.p_brand <> 'Brand#45' and p.p_type not like 'MEDIUM POLISHED%'
  and p.p_size in (49, 14, 23, 45, 19, 3, 36, 9)
  and ps.ps_suppkey not in (select s_suppkey from supplier where s_comment like '%Customer%Complaints%')
group by p.p_brand, p.p_type, p.p_size
order by suppliers desc, p.p_brand, p.p_type, p.p_size;

-- name: Q17, revenue of small orders
select sum(l.l_extendedprice) / 7.0
from lineitem l
join part p on p.p_partkey = l.l_partkey
where p.p_brand = 'Brand#23' and p.p_container = 'MED BOX'
  and l.l_quantity < (select 0.2 * avg(o.l_quantity) from lineitem o where o.l_partkey = p.p_partkey);

-- name: Q18, large orders
select c.c_name, c.c_custkey, o.o_orderkey, o.o_orderdate, o.o_totalprice, sum(l.l_quantity)
from customer c
join orders o on o.o_custkey = c.c_custkey
join lineitem l on l.l_orderkey = o.o_orderkey
where o.o_orderkey in (select l_orderkey from lineitem group by l_orderkey having sum(l_quantity) > 300)
group by c.c_name, c.c_custkey, o.o_orderkey, o.o_orderdate, o.o_totalprice
order by o.o_totalprice desc, o.o_orderdate, o.o_orderkey
limit 100;

-- name: Q19, discounted revenue
select sum(l.l_extendedprice * (1 - l.l_discount))
from lineitem l, part p
where (p.p_partkey = l.l_partkey and p.p_brand = 'Brand#12'
       and p.p_container in ('SM CASE', 'SM BOX', 'SM PACK', 'SM PKG')
       and l.l_quantity between 1 and 11 and p.p_size between 1 and 5
       and l.l_shipmode in ('AIR', 'REG AIR') and l.l_shipinstruct = 'DELIVER IN PERSON')
   or (p.p_partkey = l.l_partkey and p.p_brand = 'Brand#23'
       and p.p_container in ('MED BAG', 'MED BOX', 'MED PKG', 'MED PACK')
       and l.l_quantity between 10 and 20 and p.p_size between 1 and 10
       and l.l_shipmode in ('AIR', 'REG AIR') and l.l_shipinstruct = 'DELIVER IN PERSON')
   or (p.p_partkey = l.l_partkey and p.p_brand = 'Brand#34'
       and p.p_container in ('LG CASE', 'LG BOX', 'LG PACK', 'LG PKG')
       and l.l_quantity between 20 and 30 and p.p_size between 1 and 15
       and l.l_shipmode in ('AIR', 'REG AIR') and l.l_shipinstruct = 'DELIVER IN PERSON');

-- name: Q20, suppliers with stock
select s.s_name, s.s_address
from supplier s
join nation n on n.n_nationkey = s.s_nationkey
where n.n_name = 'CANADA' and s.s_suppkey in (
    select ps.ps_suppkey
    from partsupp ps
    where ps.ps_partkey in (select p_partkey from part where p_name like 'forest%')
      and ps.ps_availqty > (
          select 0.5 * sum(l.l_quantity)
          from lineitem l
          where l.l_partkey = ps.ps_partkey and l.l_suppkey = ps.ps_suppkey
            and l.l_shipdate >= date '1994-01-01' and l.l_shipdate < date '1994-01-01' + interval '1 year'))
order by s.s_name;

-- name: Q21, suppliers who kept orders waiting
select s.s_name, count(*) as waiting
from supplier s
join lineitem l on l.l_suppkey = s.s_suppkey
join orders o on o.o_orderkey = l.l_orderkey
join nation n on n.n_nationkey = s.s_nationkey
where o.o_orderstatus = 'F' and l.l_receiptdate > l.l_commitdate and n.n_name = 'SAUDI ARABIA'
  and exists (select 1 from lineitem other where other.l_orderkey = l.l_orderkey and other.l_suppkey <> l.l_suppkey)
  and not exists (
      select 1 from lineitem late
      where late.l_orderkey = l.l_orderkey and late.l_suppkey <> l.l_suppkey
        and late.l_receiptdate > late.l_commitdate)
group by s.s_name
order by waiting desc, s.s_name
limit 100;

-- name: Q22, customers to win back
select t.code, count(*), sum(t.c_acctbal)
from (
    select substring(c.c_phone from 1 for 2) as code, c.c_acctbal
    from customer c
    where substring(c.c_phone from 1 for 2) in ('13', '31', '23', '29', '30', '18', '17')
      and c.c_acctbal > (
          select avg(a.c_acctbal) from customer a
          where a.c_acctbal > 0.00 and substring(a.c_phone from 1 for 2) in ('13', '31', '23', '29', '30', '18', '17'))
      and not exists (select 1 from orders o where o.o_custkey = c.c_custkey)) t
group by t.code
order by t.code;
