select t.tier, t.rank, t.rate_per_minute, t.burst, t.monthly_quota, t.depth_years from accounts.tiers t order by t.rank
