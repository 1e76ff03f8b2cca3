select canonical from symbols where symbol = $1
