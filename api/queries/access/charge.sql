-- Writes what is left of locked accounts. $1 accounts, $2 tokens, $3 buckets' sizes, $4 times, $5 months, $6 calls counted.
update accounts.limiter l
set tokens = r.tokens, cap = r.cap, at = r.at, month = r.month, used = r.used
from unnest($1::bigint[], $2::double precision[], $3::integer[], $4::timestamptz[], $5::date[], $6::bigint[])
  as r (account_id, tokens, cap, at, month, used)
where l.account_id = r.account_id
