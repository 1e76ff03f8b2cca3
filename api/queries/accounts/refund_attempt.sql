-- Gives back an attempt that was charged to the subjects $1, $2 seconds each.
update accounts.sign_in_limits l set full_at = l.full_at - r.pause * interval '1 second'
from unnest($1::bytea[], $2::double precision[]) as r (subject, pause) where l.subject = r.subject
