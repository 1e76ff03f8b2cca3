-- $1 canonical symbols. Other symbols of these securities: former ones, and other spellings.
select canonical, symbol from symbols where canonical = any ($1) and symbol <> canonical
