select identity from identities
