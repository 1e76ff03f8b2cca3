select max(last_day) as last_day
from bars
where year = (select max(year) from bars where last_day is not null)
