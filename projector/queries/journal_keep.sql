-- $1 symbols, $2 the first ex-date of each one's rows that are replaced; null: all of them.
insert into {kept} ({columns})
select {t} from {table} t
join unnest($1::text[], $2::date[]) as stale (symbol, since)
  on t.symbol = stale.symbol and t.ex_date >= coalesce(stale.since, '-infinity')
where t.id is not null
