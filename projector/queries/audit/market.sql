select v.sequence, v.as_of, v.method_version, v.policy, (select count(*) from stocks) as securities
from version v
