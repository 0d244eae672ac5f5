-- Endpoints: where deliveries go, how they are signed, and how the endpoint has been doing.

CREATE TABLE kurier.endpoints (
    id uuid PRIMARY KEY DEFAULT kurier.uuid_v7(),
    tenant text NOT NULL DEFAULT '',
    url text NOT NULL,
    description text NOT NULL DEFAULT '',
    -- Patterns; none means every event type of the tenant.
    event_types text[] NOT NULL DEFAULT '{}',
    paused_at timestamptz,
    disabled_at timestamptz,
    disabled_reason text,
    -- What is null follows the installation's default.
    attempt_timeout_ms bigint CHECK (attempt_timeout_ms BETWEEN 1 AND 600000),
    max_attempts integer CHECK (max_attempts BETWEEN 1 AND 1000),
    retry_base_ms bigint CHECK (retry_base_ms >= 0),
    retry_cap_ms bigint CHECK (retry_cap_ms >= 0),
    retry_schedule_ms bigint[] CHECK (cardinality(retry_schedule_ms) > 0 AND 0 <= ALL (retry_schedule_ms)),
    -- Statuses judged otherwise than by default, as lists such as '404,409,500-599'.
    retry_statuses text NOT NULL DEFAULT '',
    reject_statuses text NOT NULL DEFAULT '',
    breaker_threshold integer CHECK (breaker_threshold >= 1),
    breaker_cooldown_ms bigint CHECK (breaker_cooldown_ms >= 1),
    breaker_cooldown_cap_ms bigint CHECK (breaker_cooldown_cap_ms >= 1),
    -- Counts every change to the endpoint and its secrets, so that caches know when to read again.
    version bigint NOT NULL DEFAULT 1,
    created_at timestamptz NOT NULL DEFAULT now(),
    updated_at timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT endpoints_disabled_with_reason CHECK ((disabled_at IS NULL) = (disabled_reason IS NULL))
);

CREATE TABLE kurier.endpoint_secrets (
    id uuid PRIMARY KEY DEFAULT kurier.uuid_v7(),
    endpoint_id uuid NOT NULL REFERENCES kurier.endpoints (id) ON DELETE CASCADE,
    -- whsec_... signs by HMAC-SHA256, whsk_... by ed25519.
    secret text NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    expires_at timestamptz
);

CREATE INDEX endpoint_secrets_endpoint ON kurier.endpoint_secrets (endpoint_id);

CREATE TABLE kurier.endpoint_health (
    endpoint_id uuid PRIMARY KEY REFERENCES kurier.endpoints (id) ON DELETE CASCADE,
    state text NOT NULL DEFAULT 'closed' CHECK (state IN ('closed', 'open', 'half_open')),
    consecutive_failures integer NOT NULL DEFAULT 0 CHECK (consecutive_failures >= 0),
    failure_threshold integer NOT NULL DEFAULT 10,
    opened_at timestamptz,
    cooldown_seconds double precision NOT NULL DEFAULT 300,
    -- The one probe of a half-open breaker: whose lease it runs under, and until when it may report.
    probe_token uuid,
    probe_deadline timestamptz,
    recovered_at timestamptz,
    last_failure_at timestamptz,
    last_success_at timestamptz,
    p50_ms integer,
    p95_ms integer,
    p99_ms integer,
    sample_count bigint NOT NULL DEFAULT 0,
    CONSTRAINT endpoint_health_open_since CHECK (state = 'closed' OR opened_at IS NOT NULL),
    CONSTRAINT endpoint_health_one_probe CHECK (
        (state = 'half_open') = (probe_token IS NOT NULL)
        AND (probe_token IS NULL) = (probe_deadline IS NULL)
    )
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0);

CREATE INDEX endpoint_health_not_closed ON kurier.endpoint_health (endpoint_id) WHERE state <> 'closed';

-- One number that moves with every change to any endpoint: the relay reads its subscriptions again when it did.
CREATE TABLE kurier.configuration (
    only_row boolean PRIMARY KEY DEFAULT true CHECK (only_row),
    version bigint NOT NULL DEFAULT 1
);
INSERT INTO kurier.configuration DEFAULT VALUES;

CREATE FUNCTION kurier.endpoint_changed() RETURNS trigger
LANGUAGE plpgsql AS $$
BEGIN
    NEW.version := OLD.version + 1;
    NEW.updated_at := now();
    RETURN NEW;
END
$$;

CREATE TRIGGER endpoint_changed BEFORE UPDATE ON kurier.endpoints
FOR EACH ROW EXECUTE FUNCTION kurier.endpoint_changed();

CREATE FUNCTION kurier.configuration_changed() RETURNS trigger
LANGUAGE plpgsql AS $$
BEGIN
    UPDATE kurier.configuration SET version = version + 1;
    RETURN NULL;
END
$$;

CREATE TRIGGER configuration_changed AFTER INSERT OR UPDATE OR DELETE ON kurier.endpoints
FOR EACH STATEMENT EXECUTE FUNCTION kurier.configuration_changed();

CREATE FUNCTION kurier.endpoint_secret_changed() RETURNS trigger
LANGUAGE plpgsql AS $$
BEGIN
    UPDATE kurier.endpoints SET version = version + 1 WHERE id IN (OLD.endpoint_id, NEW.endpoint_id);
    RETURN NULL;
END
$$;

CREATE TRIGGER endpoint_secret_changed AFTER INSERT OR UPDATE OR DELETE ON kurier.endpoint_secrets
FOR EACH ROW EXECUTE FUNCTION kurier.endpoint_secret_changed();

CREATE FUNCTION kurier.endpoint_added() RETURNS trigger
LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO kurier.endpoint_health (endpoint_id) VALUES (NEW.id);
    RETURN NULL;
END
$$;

CREATE TRIGGER endpoint_added AFTER INSERT ON kurier.endpoints
FOR EACH ROW EXECUTE FUNCTION kurier.endpoint_added();
