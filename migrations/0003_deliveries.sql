-- Deliveries: one row for each pair of event and endpoint, and one for each attempt.
--
-- A delivery's id begins with its event's time in milliseconds and goes on with a hash of event and endpoint, so one
-- primary key gives uniqueness of the pair, locality of inserts and partitions by day. No index names a column that a
-- claim changes: claims stay heap-only updates.

CREATE TABLE kurier.deliveries (
    id uuid NOT NULL,
    event_id uuid NOT NULL,
    endpoint_id uuid NOT NULL,
    status text NOT NULL,
    -- Why it is held, or why it is a dead letter.
    reason text,
    attempt_count integer NOT NULL DEFAULT 0,
    max_attempts integer NOT NULL,
    -- Not before this time. The broker's timers only follow it.
    next_attempt_at timestamptz NOT NULL,
    -- When the broker should have handed out its message at the latest; the sweep looks at what is past it.
    hint_at timestamptz,
    -- Start of the current wait, from which its maximum age counts.
    waiting_since timestamptz NOT NULL DEFAULT now(),
    held_since timestamptz,
    lease_token uuid,
    lease_until timestamptz,
    delivered_at timestamptz,
    dead_lettered_at timestamptz,
    last_error text,
    last_status_code integer,
    last_response_ms integer,
    -- The trace that every attempt of this delivery belongs to.
    traceparent text,
    -- The event's own time.
    created_at timestamptz NOT NULL,
    PRIMARY KEY (id),
    CONSTRAINT deliveries_status CHECK (
        status IN ('pending', 'in_flight', 'failed', 'held', 'delivered', 'dead_letter')
    ),
    CONSTRAINT deliveries_lease CHECK (
        (status = 'in_flight') = (lease_token IS NOT NULL) AND (lease_token IS NULL) = (lease_until IS NULL)
    ),
    CONSTRAINT deliveries_reason CHECK ((status IN ('held', 'dead_letter')) = (reason IS NOT NULL)),
    CONSTRAINT deliveries_held CHECK ((status = 'held') = (held_since IS NOT NULL)),
    CONSTRAINT deliveries_delivered CHECK ((status = 'delivered') = (delivered_at IS NOT NULL)),
    CONSTRAINT deliveries_dead CHECK ((status = 'dead_letter') = (dead_lettered_at IS NOT NULL)),
    CONSTRAINT deliveries_moving CHECK ((status IN ('pending', 'in_flight', 'failed')) = (hint_at IS NOT NULL))
) PARTITION BY RANGE (id);

CREATE INDEX deliveries_endpoint ON kurier.deliveries (endpoint_id, id);
CREATE INDEX deliveries_moving ON kurier.deliveries (hint_at) WHERE hint_at IS NOT NULL;
CREATE INDEX deliveries_held ON kurier.deliveries (endpoint_id, next_attempt_at) WHERE held_since IS NOT NULL;
CREATE INDEX deliveries_dead ON kurier.deliveries (endpoint_id, dead_lettered_at) WHERE dead_lettered_at IS NOT NULL;

-- Partitioned along with its delivery. Guarded by the delivery's lease when written, so the number is never used twice.
CREATE TABLE kurier.delivery_attempts (
    delivery_id uuid NOT NULL,
    attempt_number integer NOT NULL CHECK (attempt_number >= 1),
    endpoint_id uuid NOT NULL,
    started_at timestamptz NOT NULL,
    duration_ms integer NOT NULL CHECK (duration_ms >= 0),
    status_code integer,
    error_class text,
    error text CHECK (char_length(error) <= 200),
    -- What the receiver answered, for failed attempts only: at most 16 KiB, made safe for text.
    response_body text,
    PRIMARY KEY (delivery_id, attempt_number)
) PARTITION BY RANGE (delivery_id);

CREATE TABLE kurier.deliveries_default PARTITION OF kurier.deliveries DEFAULT;
CREATE TABLE kurier.delivery_attempts_default PARTITION OF kurier.delivery_attempts DEFAULT;
