select s.symbol, s.sector, s.industry, s.type, s.is_active, s.pays_dividend, s.dividend_yield, s.yield_suspect,
       s.reporting_market_cap, s.market_cap is not null and s.reporting_market_cap is null as is_unconverted, s.payout_ratio, s.growth_5y, s.pe_ratio, s.is_dividend_aristocrat, s.is_dividend_king,
       s.change_percent, s.change_percent_ytd,
       case when m.next ->> 'status' = 'declared' then (m.next ->> 'ex_date')::date end as next_ex_date
from stocks s
join metrics m on m.symbol = s.symbol
where s.sector is not null
