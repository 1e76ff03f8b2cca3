-- Every kind but prices, in the schema of a fact set: what one source said of one symbol, one row a kind.
-- Names are compared byte by byte: the same order on every server, and no rules of a language to look up.
create table records (
  symbol text collate "C" not null,
  kind text collate "C" not null,
  source text collate "C" not null,
  packed bytea not null,
  primary key (symbol, kind, source)
);
-- Thirty years of dividends are about 6 kB: kept in the row, they are one place to write and to read.
alter table records set (toast_tuple_target = 8160);
create index records_by_kind on records (kind) where kind in ('security', 'session');
comment on column records.packed is 'the set of observations (market::records); the view observations unpacks it';

-- The symbols that a vendor's record has had: its observations are kept under each of them.
create table record_ids (
  digest bigint not null,
  symbol text collate "C" not null,
  primary key (digest, symbol)
);
comment on column record_ids.digest is 'of kind, source and the vendor''s id';

-- For SQL users: the observations as rows. The packed form is postcard's: numbers in base 128, signed ones
-- zigzag-coded, texts and lists after their length (market::records names the fields).
create function read_number(bytes bytea, inout place integer, out number numeric)
language plpgsql immutable strict as $$
declare
  unit numeric := 1;
  digit integer;
begin
  number := 0;
  loop
    digit := get_byte(bytes, place);
    place := place + 1;
    number := number + (digit & 127) * unit;
    exit when digit < 128;
    unit := unit * 128;
  end loop;
end $$;

create function read_signed(bytes bytea, inout place integer, out number numeric)
language plpgsql immutable strict set search_path from current as $$
declare
  code numeric;
begin
  select r.place, r.number into place, code from read_number(bytes, place) r;
  number := case when code % 2 = 0 then div(code, 2) else -div(code + 1, 2) end;
end $$;

create function read_text(bytes bytea, inout place integer, out value text)
language plpgsql immutable strict set search_path from current as $$
declare
  length numeric;
begin
  select r.place, r.number into place, length from read_number(bytes, place) r;
  value := convert_from(substring(bytes from place + 1 for length::integer), 'UTF8');
  place := place + length::integer;
end $$;

create function unpack_records(packed bytea)
returns table (id text, security_ref text, revision bigint, action text, observed_at timestamptz, line bigint,
  frame bytea, record json)
language plpgsql immutable strict set search_path from current as $$
declare
  place integer := 1;
  n numeric;
  length numeric;
  item text;
  number numeric;
  frames bytea[] := '{}';
  moments numeric[] := '{}';
  shapes text[] := '{}';
  fragments text[] := '{}';
  names text[];
  fields text;
begin
  if get_byte(packed, 0) <> 1 then
    raise exception 'packed records of version % are not known here', get_byte(packed, 0);
  end if;
  select r.place, r.number into place, n from read_number(packed, place) r;
  for i in 1 .. n loop
    frames := frames || substring(packed from place + 1 for 16);
    place := place + 16;
  end loop;
  select r.place, r.number into place, n from read_number(packed, place) r;
  for i in 1 .. n loop
    select r.place, r.number into place, number from read_signed(packed, place) r;
    moments := moments || number;
  end loop;
  select r.place, r.number into place, n from read_number(packed, place) r;
  for i in 1 .. n loop
    names := '{}';
    select r.place, r.number into place, length from read_number(packed, place) r;
    for j in 1 .. length loop
      select r.place, r.value into place, item from read_text(packed, place) r;
      names := names || item;
    end loop;
    shapes := shapes || array_to_string(names, ',');
  end loop;
  select r.place, r.number into place, n from read_number(packed, place) r;
  for i in 1 .. n loop
    select r.place, r.number into place, number from read_number(packed, place) r;
    if number = 0 then
      select r.place, r.value into place, item from read_text(packed, place) r;
    else
      select r.place, r.number into place, number from read_signed(packed, place) r;
      item := '"' || to_char('0001-01-01'::date + (number - 1)::integer, 'YYYY-MM-DD') || '"';
    end if;
    fragments := fragments || item;
  end loop;
  select r.place, r.number into place, n from read_number(packed, place) r;
  for i in 1 .. n loop
    id := null;
    security_ref := null;
    place := place + 1;
    if get_byte(packed, place - 1) = 1 then
      select r.place, r.value into place, id from read_text(packed, place) r;
    end if;
    place := place + 1;
    if get_byte(packed, place - 1) = 1 then
      select r.place, r.value into place, security_ref from read_text(packed, place) r;
    end if;
    select r.place, r.number into place, revision from read_signed(packed, place) r;
    action := case get_byte(packed, place) when 1 then 'retract' else 'put' end;
    place := place + 1;
    select r.place, r.number into place, number from read_number(packed, place) r;
    observed_at := timestamptz 'epoch' + moments[number + 1]::double precision * interval '1 microsecond';
    select r.place, r.number into place, line from read_number(packed, place) r;
    select r.place, r.number into place, number from read_number(packed, place) r;
    frame := frames[number + 1];
    select r.place, r.number into place, number from read_number(packed, place) r;
    names := string_to_array(shapes[number + 1], ',');
    select r.place, r.number into place, length from read_number(packed, place) r;
    fields := '';
    for j in 1 .. length loop
      select r.place, r.number into place, number from read_number(packed, place) r;
      item := fragments[number + 1];
      fields := fields || case when cardinality(names) = 0 then item
        else case when j = 1 then '' else ',' end || to_json(names[j])::text || ':' || item end;
    end loop;
    record := (case when cardinality(names) = 0 then fields else '{' || fields || '}' end)::json;
    return next;
  end loop;
end $$;

create view observations as
select r.symbol, r.kind, r.source, o.*
from records r
cross join lateral unpack_records(r.packed) o;

grant select on records, record_ids, observations to dds_api;
