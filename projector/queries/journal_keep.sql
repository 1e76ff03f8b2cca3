-- $1 symbols, $2 first ex-date of the replaced rows; null for all rows.
insert into {before} ({columns})
select {columns} from {table}
where symbol = any ($1) and ($2::date is null or ex_date >= $2) and id is not null
