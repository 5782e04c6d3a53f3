-- What an attempt's run used is charged when that is over; what a model is asked about its candidate is reserved and charged beside it (K6).
ALTER TABLE task_attempts
  -- When what its run used was charged.
  ADD COLUMN settled_at timestamptz,
  -- The run that asks a model about its candidate, until what that cost is charged.
  ADD COLUMN verification_run_id uuid,
  ADD FOREIGN KEY (owner_id, verification_run_id) REFERENCES runs (owner_id, id),
  -- It is not over while it is not known what that costs.
  ADD CONSTRAINT no_check_out CHECK (ended_at IS NULL OR verification_run_id IS NULL);

CREATE OR REPLACE FUNCTION guard_task_attempts() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  changing CONSTANT text[] := ARRAY['status', 'ended_at', 'reserved_micros', 'conclusion_fence', 'conclusion_holder', 'conclusion_until',
                                    'settled_at', 'verification_run_id'];
BEGIN
  IF TG_OP = 'DELETE' OR OLD.ended_at IS NOT NULL OR to_jsonb(NEW) - changing <> to_jsonb(OLD) - changing THEN
    RAISE EXCEPTION 'attempt % is fixed, and over once it ended', OLD.id USING ERRCODE = 'LT013';
  END IF;
  IF NEW.conclusion_fence < OLD.conclusion_fence OR (OLD.settled_at IS NOT NULL AND NEW.settled_at IS DISTINCT FROM OLD.settled_at) THEN
    RAISE EXCEPTION 'the fence of attempt % only rises, and it is charged once', OLD.id USING ERRCODE = 'LT013';
  END IF;
  RETURN NEW;
END $$;
