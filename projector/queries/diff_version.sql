select sequence, as_of, policy from version
