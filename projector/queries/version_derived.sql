select as_of, policy from version
