-- SPDX-License-Identifier: MIT
-- Rows, an index, joins, groups, sorting: for longer than anybody records.
create table item (id integer primary key, name text, kind integer, price real);
create table sale (item integer, day integer, amount integer);
with recursive n(i) as (select 1 union all select i + 1 from n where i < 2000)
insert into item select i, printf('item %05d', i * 7919 % 10007), i % 13, i * 0.37 from n;
with recursive n(i) as (select 1 union all select i + 1 from n where i < 20000)
insert into sale select i * 31 % 2000 + 1, i % 365, i * 17 % 97 from n;
create index sale_item on sale (item);
with recursive round(i) as (select 1 union all select i + 1 from round)
select total((select max(total) from (
	select kind, sum(amount * price) as total from item join sale on sale.item = item.id
	where name > printf('item %05d', i % 100) and day between i % 300 and i % 300 + 60
	group by kind order by total desc limit 5))) from round;
