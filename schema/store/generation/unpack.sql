-- For SQL users: the packed prices of a generation as rows. Run in the generation's own schema, which the functions keep as
-- their search path, so that they work from any other. Columns are sequences of base-128 integers of 64 bits, signed ones
-- zigzag-coded; open, high, low and vwap are differences to the close; 0 marks an absent value, so codes are shifted by one.
create or replace function codes(bytes bytea) returns bigint[] language plpgsql immutable strict parallel safe as $$
declare
  codes bigint[] := '{}';
  code bigint := 0;
  shift integer := 0;
  byte integer;
begin
  for i in 0 .. length(bytes) - 1 loop
    byte := get_byte(bytes, i);
    code := code | ((byte & 127)::bigint << shift);
    if byte < 128 then
      codes := codes || code;
      code := 0;
      shift := 0;
    else
      shift := shift + 7;
    end if;
  end loop;
  return codes;
end $$;

-- The signed number of a code: its last bit is the sign, the 63 before it are the number.
create or replace function signed(code bigint) returns bigint language sql immutable parallel safe as
  'select ((code >> 1) & 9223372036854775807) # -(code & 1)';

create or replace function unpacked(year prices)
returns table (date date, open numeric, high numeric, low numeric, close numeric, volume bigint, vwap numeric, trade_count bigint)
language plpgsql immutable strict parallel safe set search_path from current as $$
declare
  days bigint[] := codes(year.days);
  closes bigint[] := codes(year.close);
  ranges bigint[] := codes(year.range);
  volumes bigint[] := codes(year.volume);
  extras bigint[] := codes(year.extra);
  scale integer := days[1];
  unit numeric := round(power(10::numeric, -scale), scale);
  n integer := days[2];
  vwaps integer := extras[1];
  day integer := 0;
  last bigint := 0;
begin
  for i in 1 .. n loop
    day := day + signed(days[2 + i]);
    last := last + signed(closes[1 + i]);
    date := '0001-01-01'::date + (day - 1);
    close := trim_scale(last * unit);
    open := trim_scale((last + signed(nullif(ranges[1 + i], 0) - 1)) * unit);
    high := trim_scale((last + signed(nullif(ranges[2 + n + i], 0) - 1)) * unit);
    low := trim_scale((last + signed(nullif(ranges[3 + 2 * n + i], 0) - 1)) * unit);
    volume := signed(nullif(volumes[1 + i], 0) - 1);
    vwap := case when vwaps > 0 then trim_scale((last + signed(nullif(extras[1 + i], 0) - 1)) * unit) end;
    trade_count := signed(nullif(extras[2 + vwaps + i], 0) - 1);
    return next;
  end loop;
end $$;

create or replace function price_bars(wanted text)
returns table (symbol text, date date, open numeric, high numeric, low numeric, close numeric, volume numeric)
language sql stable strict set search_path from current as $$
  select p.symbol, b.date, b.open, b.high, b.low, b.close, b.volume
  from prices p
  cross join lateral unpacked(p) b
  where p.symbol = wanted
  order by p.year, b.date
$$;

-- Of generations from before.
do $$
begin
  if to_regprocedure('varints(bytea)') is not null then
    drop function varints(bytea), unzigzag(numeric);
  end if;
end $$;
