-- The outbox: what applications write, in their own transactions.

CREATE SCHEMA IF NOT EXISTS kurier;

-- The smallest UUID that an id made at that moment, to the millisecond, can have.
CREATE FUNCTION kurier.first_id_at(moment timestamptz) RETURNS uuid
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT (lpad(to_hex(greatest(0, floor(extract(epoch FROM moment) * 1000))::bigint), 12, '0') || repeat('0', 20))::uuid
$$;

-- Where the partition of a day (UTC) begins.
CREATE FUNCTION kurier.first_id_of_day(day date) RETURNS uuid
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT kurier.first_id_at(day::timestamp AT TIME ZONE 'UTC')
$$;

-- A UUID of version 7: 48 bits of Unix milliseconds, then chance. PostgreSQL has one of its own only from 18 on.
CREATE FUNCTION kurier.uuid_v7() RETURNS uuid
LANGUAGE sql VOLATILE PARALLEL SAFE AS $$
    SELECT encode(
        set_bit(
            set_bit(
                overlay(
                    uuid_send(gen_random_uuid())
                    PLACING substring(int8send(floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint) FROM 3)
                    FROM 1 FOR 6
                ),
                52, 1
            ),
            53, 1
        ),
        'hex'
    )::uuid
$$;

-- Partitioned by the id, so that the id alone is the primary key: the database itself refuses the same event twice.
-- Time-ordered ids (the default, and version 7 ids of the application's own) fall into the partition of their day.
CREATE TABLE kurier.outbox_events (
    id uuid NOT NULL DEFAULT kurier.uuid_v7(),
    tenant text NOT NULL DEFAULT '',
    aggregate_type text,
    aggregate_id text,
    event_type text NOT NULL,
    -- json, not jsonb: it keeps its text as it came, and that text is what is signed and sent.
    payload json,
    payload_bytes bytea,
    content_type text NOT NULL DEFAULT 'application/json',
    traceparent text,
    created_at timestamptz NOT NULL DEFAULT now(),
    -- Set by the relay once all deliveries are committed and the broker has confirmed their messages.
    processed_at timestamptz,
    -- A row that can never be published is set aside with its reason instead of holding up its batch.
    parked_at timestamptz,
    parked_reason text,
    PRIMARY KEY (id),
    CONSTRAINT outbox_events_exactly_one_payload CHECK (num_nonnulls(payload, payload_bytes) = 1),
    CONSTRAINT outbox_events_event_type_form CHECK (event_type ~ '^[A-Za-z0-9_.:/-]{1,128}$'),
    CONSTRAINT outbox_events_content_type_form CHECK (content_type ~ '^[ -~]{1,255}$'),
    -- Ids of deliveries and partitions are computed from it.
    CONSTRAINT outbox_events_created_at_range CHECK (
        created_at >= '2000-01-01T00:00:00Z' AND created_at < '2200-01-01T00:00:00Z'
    ),
    CONSTRAINT outbox_events_parked_with_reason CHECK ((parked_at IS NULL) = (parked_reason IS NULL))
) PARTITION BY RANGE (id);

CREATE INDEX outbox_events_waiting ON kurier.outbox_events (created_at)
WHERE processed_at IS NULL AND parked_at IS NULL;

CREATE INDEX outbox_events_parked ON kurier.outbox_events (parked_at) WHERE parked_at IS NOT NULL;

-- Random ids (version 4) lie all over the range; nearly all of them above the time-ordered ids of this century.
-- They get a partition of their own, which keeps the default partition small and adding a day's partition cheap.
CREATE TABLE kurier.outbox_events_random PARTITION OF kurier.outbox_events
FOR VALUES FROM ('04000000-0000-0000-0000-000000000000') TO (MAXVALUE);

CREATE TABLE kurier.outbox_events_default PARTITION OF kurier.outbox_events DEFAULT;

-- For applications that prefer a function to an INSERT. Returns the event's id.
CREATE FUNCTION kurier.enqueue(
    event_type text,
    payload json,
    aggregate_type text DEFAULT NULL,
    aggregate_id text DEFAULT NULL,
    tenant text DEFAULT '',
    traceparent text DEFAULT NULL,
    id uuid DEFAULT NULL
) RETURNS uuid
LANGUAGE sql VOLATILE AS $$
    INSERT INTO kurier.outbox_events (id, tenant, aggregate_type, aggregate_id, event_type, payload, traceparent)
    VALUES (coalesce(id, kurier.uuid_v7()), tenant, aggregate_type, aggregate_id, event_type, payload, traceparent)
    RETURNING outbox_events.id
$$;

-- The same for a body that is not JSON.
CREATE FUNCTION kurier.enqueue_bytes(
    event_type text,
    payload bytea,
    content_type text,
    aggregate_type text DEFAULT NULL,
    aggregate_id text DEFAULT NULL,
    tenant text DEFAULT '',
    traceparent text DEFAULT NULL,
    id uuid DEFAULT NULL
) RETURNS uuid
LANGUAGE sql VOLATILE AS $$
    INSERT INTO kurier.outbox_events
        (id, tenant, aggregate_type, aggregate_id, event_type, payload_bytes, content_type, traceparent)
    VALUES (
        coalesce(id, kurier.uuid_v7()), tenant, aggregate_type, aggregate_id, event_type, payload, content_type,
        traceparent
    )
    RETURNING outbox_events.id
$$;
