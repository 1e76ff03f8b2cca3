-- Exchange rates have the key of a currency pair instead of a symbol.
select symbol from records where symbol <> '' and kind <> 'fx' group by symbol
union
select symbol from bars group by symbol
