select i.identity from symbols s join identities i on i.symbol = s.canonical where s.symbol = $1
