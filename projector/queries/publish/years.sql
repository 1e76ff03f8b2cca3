select symbol, year, digest from prices order by year, symbol
