select symbol, kind, source, packed from records where kind = 'security'
