-- $1 canonical symbols; $2 first and $3 last ex-date or null; $4 types or null; $5 statuses; $6 to $9 the row before the page
-- or null; $10 rows at most; $11 to $14 first and last declaration and record date, each or null.
select v.generation as version_generation, v.sequence as version_sequence, v.as_of as version_as_of,
  v.position as version_position, v.is_repeated as version_is_repeated, y.sync_from, t.*,
  (select count(*) from quarantine q where q.symbol = any ($1) and q.kind = 'dividend') as held
from version v
left join lateral (
  select j.id || '.' || v.position as sync_from from journal j join active a on a.generation = v.generation
  union all
  select i.journal || '.' || s.position from versions s join version_inputs i on i.id = s.inputs
  where s.position = v.position and not exists (select from active a where a.generation = v.generation)
) y on true
left join dividends t on t.symbol = any ($1)
  and ($2::date is null or t.ex_date >= $2) and ($3::date is null or t.ex_date <= $3)
  and ($4::text[] is null or t.type = any ($4)) and t.status = any ($5::text[])
  and ($11::date is null or t.declaration_date >= $11) and ($12::date is null or t.declaration_date <= $12)
  and ($13::date is null or t.record_date >= $13) and ($14::date is null or t.record_date <= $14)
  and ($6::date is null or t.ex_date > $6
    or (t.ex_date = $6 and (t.symbol, t.type collate "C", coalesce(t.id, '') collate "C") > ($7::text, $8::text, $9::text)))
order by t.ex_date, t.symbol, t.type collate "C", coalesce(t.id, '') collate "C"
limit $10
