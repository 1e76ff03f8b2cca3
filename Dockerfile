# One image with the three programs; the command says which: `ingest`, `projector` or `api`. They run as a user without
# rights, and write nowhere: the root file system can be read-only (compose.yaml has it so).
FROM rust:1.95-bookworm AS build
WORKDIR /build
COPY . .
RUN cargo build --release --locked --bins --package ingest --package projector --package api \
      --features ingest/otlp,projector/otlp,api/otlp \
 && strip target/release/ingest target/release/projector target/release/api

FROM debian:bookworm-slim
# The certificates that vendors, and servers named with TLS, are checked against.
RUN apt-get update && apt-get install -y --no-install-recommends ca-certificates && rm -rf /var/lib/apt/lists/*
COPY --from=build /build/target/release/ingest /build/target/release/projector /build/target/release/api /usr/local/bin/
USER 65534:65534
CMD ["api", "serve"]
