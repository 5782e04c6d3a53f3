-- An effect goes to the version of its tool that was judged and asked about, and to no other (K3, case E5). Null: bound before versions were;
-- nothing of it is sent any more.
ALTER TABLE effects ADD COLUMN tool_version text COLLATE "C" CHECK (length(tool_version) = 64);

CREATE FUNCTION guard_effect_versions() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF NEW.tool_version IS DISTINCT FROM OLD.tool_version THEN
    RAISE EXCEPTION 'what effect % was bound to is fixed', OLD.id USING ERRCODE = 'LT011';
  END IF;
  IF NEW.state = 'executing' AND OLD.state = 'intent' AND NEW.tool_version IS NULL THEN
    RAISE EXCEPTION 'effect % is bound to no version of its tool', OLD.id USING ERRCODE = 'LT011';
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER effects_versions BEFORE UPDATE ON effects FOR EACH ROW EXECUTE FUNCTION guard_effect_versions();

-- A job's run acts in nothing and waits for nobody: it is never left suspended (K2).
ALTER TABLE runs ADD CONSTRAINT jobs_do_not_wait CHECK (kind <> 'maintenance' OR state <> 'suspended') NOT VALID;
