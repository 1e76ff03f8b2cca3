-- $1 keys of exchange rates (market::event::FxRate), or null for all.
select symbol, source, packed from records where kind = 'fx' and ($1::text[] is null or symbol = any ($1))
