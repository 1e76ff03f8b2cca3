select symbol, kind, source, packed from records where symbol = any ($1) and kind not in ('security', 'session')
