select
  (select max(last_day) from bars
   where year = (select max(year) from bars where last_day is not null)) as last_day,
  (select max(key::date) from (
     select distinct on (source, key) key, action from observations
     where kind = 'session'
     order by source, key, revision desc, observed_at desc, action = 'retract' desc, line desc, frame desc
   ) newest where action = 'put' and key not like 'id:%') as session
