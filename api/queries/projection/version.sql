select v.generation as version_generation, v.sequence as version_sequence, v.as_of as version_as_of from version v
