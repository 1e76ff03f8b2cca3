-- $1 source; null for all. Limits that an operator set.
select source, kind, expectation, limit_value from expectations
where $1::text is null or source = $1
order by source, kind, expectation
