-- Deletes the traffic before time $1.
with hours as (delete from accounts.traffic_hours where hour < $1)
delete from accounts.traffic_minutes where minute < $1
