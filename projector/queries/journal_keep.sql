-- $1 symbols, $2 the first ex-date of the rows that are replaced; null: all of them.
insert into {before} ({columns})
select {columns} from {table}
where symbol = any ($1) and ($2::date is null or ex_date >= $2) and id is not null
