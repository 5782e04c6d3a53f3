-- The platform's layer of every profile, by content (K8): nothing here is ever changed, and only a person moves the pointer.
CREATE TABLE bundles (
  hash text COLLATE "C" PRIMARY KEY CHECK (hash ~ '^[0-9a-f]{64}$'),
  -- Canonical JSON; numbers, enums and slugs only.
  content text NOT NULL CHECK (length(content) <= 16384),
  proposed_by uuid REFERENCES owners,
  created_at timestamptz NOT NULL DEFAULT now()
);
CREATE TRIGGER bundles_immutable BEFORE UPDATE OR DELETE ON bundles FOR EACH ROW EXECUTE FUNCTION refuse_change();

CREATE TABLE bundle_evaluations (
  seq bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  hash text COLLATE "C" NOT NULL REFERENCES bundles,
  accepted boolean NOT NULL,
  evaluated_by uuid REFERENCES owners,
  created_at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX bundle_evaluations_hash ON bundle_evaluations (hash, seq DESC);
CREATE TRIGGER bundle_evaluations_immutable BEFORE UPDATE OR DELETE ON bundle_evaluations FOR EACH ROW EXECUTE FUNCTION refuse_change();

-- The newest row is the active bundle.
CREATE TABLE bundle_promotions (
  seq bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  from_hash text COLLATE "C" REFERENCES bundles,
  to_hash text COLLATE "C" NOT NULL REFERENCES bundles,
  reason text NOT NULL CHECK (reason IN ('release', 'promote', 'rollback')),
  promoted_by uuid REFERENCES owners,
  created_at timestamptz NOT NULL DEFAULT now(),
  -- A release brings its own; everything else is a person's act.
  CHECK ((reason = 'release') = (promoted_by IS NULL))
);
CREATE TRIGGER bundle_promotions_immutable BEFORE UPDATE OR DELETE ON bundle_promotions FOR EACH ROW EXECUTE FUNCTION refuse_change();

-- Only what was accepted last, only from what is active, only by an admin (K8).
CREATE FUNCTION guard_bundle_promotions() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  active text;
  was_accepted boolean;
BEGIN
  PERFORM pg_advisory_xact_lock(hashtext('bundle_promotions'));
  SELECT to_hash INTO active FROM bundle_promotions ORDER BY seq DESC LIMIT 1;
  IF NEW.from_hash IS DISTINCT FROM active THEN
    RAISE EXCEPTION 'bundle % is not the active one', NEW.from_hash USING ERRCODE = 'LT013';
  END IF;
  SELECT accepted INTO was_accepted FROM bundle_evaluations WHERE hash = NEW.to_hash ORDER BY seq DESC LIMIT 1;
  IF was_accepted IS NOT TRUE THEN
    RAISE EXCEPTION 'bundle % was not accepted', NEW.to_hash USING ERRCODE = 'LT013';
  END IF;
  IF NEW.promoted_by IS NOT NULL AND NOT EXISTS (SELECT 1 FROM owners WHERE id = NEW.promoted_by AND role = 'admin') THEN
    RAISE EXCEPTION 'only an admin moves the active bundle' USING ERRCODE = 'LT013';
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER bundle_promotions_guard BEFORE INSERT ON bundle_promotions FOR EACH ROW EXECUTE FUNCTION guard_bundle_promotions();
