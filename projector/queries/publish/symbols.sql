select * from symbols
where canonical not in (select symbol from control.left_out((select generation from version)))
order by symbol
