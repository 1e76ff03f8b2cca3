-- SQL functions for users: the packed prices of a generation as rows (codec::bars). Run this script in the schema of
-- the generation. The functions keep this schema as their search path, so that they work from any other schema.

-- Base-128 integer, lowest seven bits first, and the position after it.
create function number_at(bytes bytea, inout at integer, out number bigint)
language plpgsql immutable strict parallel safe as $$
declare
  shift integer := 0;
  byte integer;
begin
  number := 0;
  loop
    byte := get_byte(bytes, at);
    number := number | ((byte & 127)::bigint << shift);
    at := at + 1;
    shift := shift + 7;
    exit when byte < 128;
  end loop;
end $$;

-- Signed number of a code: the lowest bit is the sign, the other 63 bits are the number.
create function signed(code bigint) returns bigint language sql immutable parallel safe as
  'select ((code >> 1) & 9223372036854775807) # -(code & 1)';

-- Values of a column, and the position after it. A block has 32 codes of equal width. It begins with a byte for width
-- and coding: plain, signed, or signed plus one with 0 for an absent value.
create function column_at(bytes bytea, count integer, inout at integer, out numbers bigint[])
language plpgsql immutable strict parallel safe as $$
declare
  head integer;
  width integer;
  mask bigint;
  bit integer;
  code bigint;
begin
  numbers := '{}';
  for i in 0 .. count - 1 loop
    if i % 32 = 0 then
      head := get_byte(bytes, at);
      width := head % 65;
      mask := case when width = 64 then -1 else ~((-1)::bigint << width) end;
      at := at + 1;
      bit := 0;
    end if;
    code := 0;
    for byte in bit / 8 .. (bit + width + 7) / 8 - 1 loop
      if byte * 8 < bit then
        code := get_byte(bytes, at + byte) >> (bit - byte * 8);
      else
        code := code | (get_byte(bytes, at + byte)::bigint << (byte * 8 - bit));
      end if;
    end loop;
    code := code & mask;
    bit := bit + width;
    numbers := numbers || case head / 65 when 0 then code when 1 then signed(code) else signed(nullif(code, 0) - 1) end;
    if i % 32 = 31 or i = count - 1 then
      at := at + (bit + 7) / 8;
    end if;
  end loop;
end $$;

-- Days are distances from the next weekday. Closes and opens are differences from the previous close. Highs and lows
-- are distances beyond open and close. A vwap is a difference from the close.
create function unpacked(year prices)
returns table (date date, open numeric, high numeric, low numeric, close numeric, volume bigint, vwap numeric, trade_count bigint)
language plpgsql immutable strict parallel safe set search_path from current as $$
declare
  at integer := 1;
  n integer;
  scale integer;
  unit numeric;
  day integer;
  days bigint[];
  closes bigint[];
  opens bigint[];
  highs bigint[];
  lows bigint[];
  volumes bigint[];
  vwaps bigint[];
  counts bigint[];
  last bigint;
  first bigint;
  opened bigint;
begin
  if get_byte(year.days, 0) <> 1 then
    raise exception 'cannot unpack prices of % %: form % is unknown', year.symbol, year.year, get_byte(year.days, 0);
  end if;
  select * from number_at(year.days, at) into at, scale;
  select * from number_at(year.days, at) into at, n;
  select a.at, signed(a.number) from number_at(year.days, at) a into at, day;
  select numbers from column_at(year.days, n - 1, at) into days;
  select a.at, signed(a.number) from number_at(year.close, 0) a into at, last;
  select numbers from column_at(year.close, n, at) into closes;
  select * from column_at(year.range, n, 0) into at, opens;
  select * from column_at(year.range, n, at) into at, highs;
  select * from column_at(year.range, n, at) into at, lows;
  select numbers from column_at(year.volume, n, 0) into volumes;
  if length(year.extra) > 0 then
    select * from column_at(year.extra, n * get_byte(year.extra, 0), 2) into at, vwaps;
    select numbers from column_at(year.extra, n * get_byte(year.extra, 1), at) into counts;
  end if;
  unit := round(power(10::numeric, -scale), scale);
  for i in 1 .. n loop
    if i > 1 then
      day := day + case day % 7 when 5 then 3 when 6 then 2 else 1 end + days[i - 1];
    end if;
    date := '0001-01-01'::date + (day - 1);
    first := last;
    last := coalesce(first + closes[i], last);
    opened := coalesce(first + opens[i], last);
    close := case when closes[i] is not null then trim_scale(last * unit) end;
    open := trim_scale((first + opens[i]) * unit);
    high := trim_scale((greatest(opened, last) + highs[i]) * unit);
    low := trim_scale((least(opened, last) - lows[i]) * unit);
    volume := volumes[i];
    vwap := trim_scale((last + vwaps[i]) * unit);
    trade_count := counts[i];
    return next;
  end loop;
end $$;

create function price_bars(wanted text)
returns table (symbol text, date date, open numeric, high numeric, low numeric, close numeric, volume numeric)
language sql stable strict set search_path from current as $$
  select p.symbol, b.date, b.open, b.high, b.low, b.close, b.volume
  from prices p
  cross join lateral unpacked(p) b
  where p.symbol = wanted
  order by p.year, b.date
$$;
