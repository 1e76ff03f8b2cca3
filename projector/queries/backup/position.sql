-- Served generation, and the position of facts and tables in the log.
select g.id as generation, g.benchmark, g.reporting_currency, g.method_version, g.policy::text as own_policy,
       g.held_policy::text as held_policy, g.rules::text as rules, g.note, g.as_of, f.name as fact_set, f.checkpoint, f.genesis_id,
       not f.paused and f.halted is null and f.until_sequence is null
         and coalesce(f.lease_until > clock_timestamp(), false) as follows,
       exists (select from control.dirty d where d.generation = g.id) as dirty
from control.active a
join control.generations g on g.id = a.generation
join control.fact_sets f on f.name = g.fact_set
