-- What follows the end of a loop's attempt is done by one process at a time, and is found again where that one is gone.

-- Whoever looks at an attempt's candidate holds it under a fence of its own, for as long as the lease is kept.
ALTER TABLE task_attempts
  ADD COLUMN conclusion_fence integer NOT NULL DEFAULT 0 CHECK (conclusion_fence >= 0),
  ADD COLUMN conclusion_holder text,
  ADD COLUMN conclusion_until timestamptz,
  ADD CONSTRAINT conclusion_held CHECK ((conclusion_holder IS NULL) = (conclusion_until IS NULL));

CREATE OR REPLACE FUNCTION guard_task_attempts() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  changing CONSTANT text[] := ARRAY['status', 'ended_at', 'reserved_micros', 'conclusion_fence', 'conclusion_holder', 'conclusion_until'];
BEGIN
  IF TG_OP = 'DELETE' OR OLD.ended_at IS NOT NULL OR to_jsonb(NEW) - changing <> to_jsonb(OLD) - changing THEN
    RAISE EXCEPTION 'attempt % is fixed, and over once it ended', OLD.id USING ERRCODE = 'LT013';
  END IF;
  IF NEW.conclusion_fence < OLD.conclusion_fence THEN
    RAISE EXCEPTION 'the fence of attempt % only rises', OLD.id USING ERRCODE = 'LT013';
  END IF;
  RETURN NEW;
END $$;

-- A run says its last once: a loop's attempt has one candidate, whoever seals it.
CREATE FUNCTION guard_artifacts() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF NEW.producer <> 'external' AND EXISTS (
    SELECT 1 FROM artifacts a WHERE a.task_id = NEW.task_id AND a.attempt_id = NEW.attempt_id AND a.candidate_id <> NEW.candidate_id) THEN
    RAISE EXCEPTION 'attempt % has its candidate', NEW.attempt_id USING ERRCODE = 'LT013';
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER artifacts_one_candidate BEFORE INSERT ON artifacts FOR EACH ROW EXECUTE FUNCTION guard_artifacts();

-- Looked through for attempts that nothing followed.
CREATE INDEX tasks_open ON tasks (created_at) WHERE status = 'open';
