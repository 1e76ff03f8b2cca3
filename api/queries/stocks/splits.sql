-- $1 spellings of the symbol.
select v.generation as version_generation, v.sequence as version_sequence, v.as_of as version_as_of,
  v.position as version_position, v.is_repeated as version_is_repeated,
  found.canonical, found.held, y.sync_from, t.*
from version v
left join lateral (
  select j.id || '.' || v.position as sync_from from journal j join active a on a.generation = v.generation
  union all
  select i.journal || '.' || s.position from versions s join version_inputs i on i.id = s.inputs
  where s.position = v.position and not exists (select from active a where a.generation = v.generation)
) y on true
left join lateral (
  select s.canonical,
    (select count(*) from quarantine q where q.symbol = s.canonical and q.kind = 'split') as held
  from unnest($1::text[]) with ordinality as c (symbol, ordinal) join symbols s using (symbol)
  order by c.ordinal limit 1
) found on true
left join splits t on t.symbol = found.canonical
