select g.id, g.method_version from active a join generations g on g.id = a.generation
