# One image with every program; the command chooses which one runs.
ARG RUST_IMAGE=rust:1.95-slim-bookworm
ARG BASE_IMAGE=debian:bookworm-slim

FROM ${RUST_IMAGE} AS build
WORKDIR /build
COPY . .
RUN cargo build --release --locked -p outbox-relay -p dispatcher -p kurier

FROM ${BASE_IMAGE}
LABEL org.opencontainers.image.title="Kurier" \
      org.opencontainers.image.description="Delivers webhooks from a PostgreSQL outbox over RabbitMQ, losing none" \
      org.opencontainers.image.licenses="Apache-2.0"
COPY --from=build \
     /build/target/release/outbox-relay /build/target/release/dispatcher /build/target/release/kurier \
     /usr/local/bin/
USER 10001:10001
WORKDIR /
ENV KURIER_HEALTH_ADDR=0.0.0.0:8080
EXPOSE 8080
CMD ["kurier", "--help"]
