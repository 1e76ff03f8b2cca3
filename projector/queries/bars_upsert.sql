insert into bars (symbol, source, year, last_day, days, close, range, volume, extra, versions)
select symbol, source, year, last_day, days, close, range, volume, extra, versions from staged_bars
on conflict (symbol, source, year) do update
set last_day = excluded.last_day, days = excluded.days, close = excluded.close, range = excluded.range,
    volume = excluded.volume, extra = excluded.extra, versions = excluded.versions
