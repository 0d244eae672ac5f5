-- Upkeep: partitions created ahead and dropped after their time, and the work that one process at a time does.

-- A chore is due when its last run is long enough ago; who moves last_run_at does it.
CREATE TABLE kurier.chores (
    name text PRIMARY KEY,
    last_run_at timestamptz NOT NULL DEFAULT '-infinity'
);
INSERT INTO kurier.chores (name) VALUES ('sweep'), ('full_sweep'), ('release'), ('expire'), ('partitions');

-- Creates the partition of one table for one day, taking over what the default partition holds of that day.
CREATE FUNCTION kurier.create_partition(parent text, key_column text, day date) RETURNS boolean
LANGUAGE plpgsql AS $$
DECLARE
    partition text := parent || '_' || to_char(day, 'YYYYMMDD');
    first_id uuid := kurier.first_id_of_day(day);
    end_id uuid := kurier.first_id_of_day(day + 1);
BEGIN
    IF to_regclass(format('kurier.%I', partition)) IS NOT NULL THEN
        RETURN false;
    END IF;
    EXECUTE format(
        'CREATE TABLE kurier.%I (LIKE kurier.%I INCLUDING DEFAULTS INCLUDING CONSTRAINTS) WITH (fillfactor = %s, '
        'autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0, autovacuum_analyze_scale_factor = 0.05)',
        partition, parent, CASE parent WHEN 'deliveries' THEN 70 ELSE 100 END
    );
    EXECUTE format(
        'WITH moved AS (DELETE FROM kurier.%I WHERE %I >= $1 AND %2$I < $2 RETURNING *) '
        'INSERT INTO kurier.%I SELECT * FROM moved',
        parent || '_default', key_column, partition
    ) USING first_id, end_id;
    EXECUTE format(
        'ALTER TABLE kurier.%I ATTACH PARTITION kurier.%I FOR VALUES FROM (%L) TO (%L)',
        parent, partition, first_id, end_id
    );
    RETURN true;
END
$$;

-- Creates what is missing from yesterday to so many days ahead. Returns how many partitions it created.
CREATE FUNCTION kurier.create_partitions(days_ahead integer) RETURNS integer
LANGUAGE plpgsql SET lock_timeout = '5s' AS $$
DECLARE
    today date := (now() AT TIME ZONE 'UTC')::date;
    created integer := 0;
    day date;
BEGIN
    PERFORM pg_advisory_xact_lock(hashtext('kurier.partitions'));
    FOR offset_days IN -1..days_ahead LOOP
        day := today + offset_days;
        created := created
            + kurier.create_partition('outbox_events', 'id', day)::integer
            + kurier.create_partition('deliveries', 'id', day)::integer
            + kurier.create_partition('delivery_attempts', 'delivery_id', day)::integer;
    END LOOP;
    RETURN created;
END
$$;

-- Whether an event of that range of ids still matters: not expanded yet, parked, or needed by a delivery that is on its
-- way, held, or a dead letter somebody may replay.
CREATE FUNCTION kurier.payloads_needed(first_id uuid, end_id uuid) RETURNS boolean
LANGUAGE sql STABLE AS $$
    SELECT EXISTS (
        SELECT 1 FROM kurier.outbox_events
        WHERE id >= first_id AND id < end_id AND processed_at IS NULL
    ) OR EXISTS (
        SELECT 1 FROM kurier.deliveries
        WHERE hint_at IS NOT NULL AND event_id >= first_id AND event_id < end_id
    ) OR EXISTS (
        SELECT 1 FROM kurier.deliveries
        WHERE held_since IS NOT NULL AND event_id >= first_id AND event_id < end_id
    ) OR EXISTS (
        SELECT 1 FROM kurier.deliveries
        WHERE dead_lettered_at IS NOT NULL AND event_id >= first_id AND event_id < end_id
    )
$$;

-- Whether a day's deliveries are not all over and done with.
CREATE FUNCTION kurier.deliveries_needed(first_id uuid, end_id uuid) RETURNS boolean
LANGUAGE sql STABLE AS $$
    SELECT EXISTS (
        SELECT 1 FROM kurier.deliveries WHERE id >= first_id AND id < end_id AND hint_at IS NOT NULL
    ) OR EXISTS (
        SELECT 1 FROM kurier.deliveries WHERE id >= first_id AND id < end_id AND held_since IS NOT NULL
    ) OR EXISTS (
        SELECT 1 FROM kurier.deliveries WHERE id >= first_id AND id < end_id AND dead_lettered_at IS NOT NULL
    )
$$;

-- Drops the partitions of days before the given one that nothing needs any more. The partition is locked before it is
-- looked at, so nothing can be revived in between. Returns how many it dropped.
CREATE FUNCTION kurier.drop_partitions(before_day date) RETURNS integer
LANGUAGE plpgsql SET lock_timeout = '2s' AS $$
DECLARE
    dropped integer := 0;
    candidate record;
    first_id uuid;
    end_id uuid;
BEGIN
    PERFORM pg_advisory_xact_lock(hashtext('kurier.partitions'));
    FOR candidate IN
        SELECT p.relname AS parent, c.relname AS partition, to_date(right(c.relname, 8), 'YYYYMMDD') AS day
        FROM pg_inherits AS i
        INNER JOIN pg_class AS c ON c.oid = i.inhrelid
        INNER JOIN pg_class AS p ON p.oid = i.inhparent
        INNER JOIN pg_namespace AS n ON n.oid = p.relnamespace
        WHERE n.nspname = 'kurier'
            AND p.relname IN ('outbox_events', 'deliveries')
            AND c.relname ~ '_[0-9]{8}$'
            AND to_date(right(c.relname, 8), 'YYYYMMDD') < before_day
        ORDER BY p.relname DESC, c.relname
    LOOP
        first_id := kurier.first_id_of_day(candidate.day);
        end_id := kurier.first_id_of_day(candidate.day + 1);
        EXECUTE format('LOCK TABLE kurier.%I IN ACCESS EXCLUSIVE MODE', candidate.partition);
        IF candidate.parent = 'outbox_events' THEN
            CONTINUE WHEN kurier.payloads_needed(first_id, end_id);
        ELSE
            CONTINUE WHEN kurier.deliveries_needed(first_id, end_id);
            EXECUTE format(
                'DROP TABLE IF EXISTS kurier.%I', 'delivery_attempts_' || to_char(candidate.day, 'YYYYMMDD')
            );
        END IF;
        EXECUTE format('DROP TABLE kurier.%I', candidate.partition);
        dropped := dropped + 1;
    END LOOP;
    RETURN dropped;
END
$$;

-- Events whose ids are not time-ordered share two partitions that cannot be dropped by day: theirs are deleted, a bounded
-- number at a time. Returns how many.
CREATE FUNCTION kurier.delete_unpartitioned(before_time timestamptz, most integer) RETURNS integer
LANGUAGE plpgsql AS $$
DECLARE
    deleted integer;
BEGIN
    WITH finished AS (
        SELECT e.id
        FROM kurier.outbox_events AS e
        WHERE (e.id >= '04000000-0000-0000-0000-000000000000' OR e.tableoid = 'kurier.outbox_events_default'::regclass)
            AND e.processed_at < before_time
            AND NOT EXISTS (
                SELECT 1 FROM kurier.deliveries AS d
                WHERE d.event_id = e.id
                    AND d.id >= kurier.first_id_at(e.created_at)
                    AND d.id < kurier.first_id_at(e.created_at + interval '1 millisecond')
                    AND d.status <> 'delivered'
            )
        LIMIT most
    )
    DELETE FROM kurier.outbox_events AS e USING finished WHERE e.id = finished.id;
    GET DIAGNOSTICS deleted = ROW_COUNT;
    RETURN deleted;
END
$$;

SELECT kurier.create_partitions(7);
