-- $1 month or null, $2 source or null. Quality of the sources by month.
select v.generation as version_generation, v.sequence as version_sequence, v.as_of as version_as_of,
  v.position as version_position, v.is_repeated as version_is_repeated, m.*
from version v
left join (
  select month, source, as_of, rows, coverage, agreeing, ex_dates, corrected, cancelled, declared, lag_median_days,
    lag_p95_days
  from quality_months
  where ($1::date is null or month = date_trunc('month', $1::date)::date) and ($2::text is null or source = $2)
) m on true
