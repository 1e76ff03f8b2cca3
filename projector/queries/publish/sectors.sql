select * from sectors order by slug
