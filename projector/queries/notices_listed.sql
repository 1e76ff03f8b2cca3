-- $1 symbols. Renames and delistings that have a notice.
select symbol, event, date from notices where symbol = any ($1) and kind = 'events'
