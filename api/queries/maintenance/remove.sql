-- Removes planned work with the id $1.
delete from accounts.maintenance where id = $1
