-- $1 source, $2 licence, $3 address, $4 attribution, $5 true if the data may be redistributed.
insert into control.source_licences (source, licence, url, attribution, redistribution) values ($1, $2, $3, $4, $5)
