# One image with the three programs; the command says which: `ingest`, `projector` or `api`.
FROM rust:1.95-bookworm AS build
WORKDIR /build
COPY . .
RUN cargo build --release --locked --bins --package ingest --package projector --package api

FROM debian:bookworm-slim
RUN useradd --system --no-create-home dividends
COPY --from=build /build/target/release/ingest /build/target/release/projector /build/target/release/api /usr/local/bin/
USER dividends
CMD ["api", "serve"]
