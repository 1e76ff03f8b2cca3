-- Refunds an attempt that was charged to the subjects $1, with $2 seconds for each subject.
update accounts.sign_in_limits l set full_at = l.full_at - r.pause * interval '1 second'
from unnest($1::bytea[], $2::double precision[]) as r (subject, pause) where l.subject = r.subject
