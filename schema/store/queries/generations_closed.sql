select id from control.generations where to_regnamespace('analyst_g' || id) is null order by id
