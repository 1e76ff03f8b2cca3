# What people do daily. `just` is optional: every recipe is one command that also works without it.

# The whole service on this machine
stack *arguments:
    cargo stack {{arguments}}

# Unit tests of one crate: just unit market streak
unit crate *name:
    cargo test -p {{crate}} {{name}}

# Integration tests by name, compiled as the whole workspace's tests are: just it replay
it *name:
    cargo test --workspace --test it {{name}}

# All tests, each in a process of its own beside one Postgres and one NATS (cargo install cargo-nextest)
nextest *filter:
    cargo nextest run --workspace {{filter}}

# Everything a change must pass
ci:
    .ci/run

# Formatting and lints
lint:
    cargo fmt --all
    cargo clippy --workspace --all-targets -- -D warnings

# Licences, advisories, duplicate versions, and I/O crates where none belong (cargo install cargo-deny)
deny:
    cargo deny check

# Lines that no test runs (cargo install cargo-llvm-cov)
coverage:
    cargo llvm-cov --workspace --html

# What a build from nothing costs, crate by crate
build-cost *what:
    tests/build-cost {{what}}

# Changes of the domain's rules that its own tests do not notice, or a fair part of them: just mutants --shard 3/40
# (cargo install cargo-mutants; the known ones are in schema/market/MUTANTS.md)
mutants *arguments:
    PROPTEST_CASES=24 nice cargo mutants --package market --package codec --jobs 1 {{arguments}}
