-- One version of the protocol for the life of a run, in the envelopes of its commands and of its events (K7).
CREATE UNIQUE INDEX runs_id_protocol_version_key ON runs (id, protocol_version);
ALTER TABLE run_commands ADD COLUMN protocol_version smallint NOT NULL DEFAULT 1;
ALTER TABLE run_commands DROP CONSTRAINT run_commands_run_id_fkey;
ALTER TABLE run_commands ADD FOREIGN KEY (run_id, protocol_version) REFERENCES runs (id, protocol_version);

CREATE FUNCTION guard_run_protocol() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF NEW.protocol_version <> OLD.protocol_version THEN
    RAISE EXCEPTION 'run % keeps its protocol version', OLD.id USING ERRCODE = 'LT006';
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER runs_protocol_guard BEFORE UPDATE OF protocol_version ON runs FOR EACH ROW EXECUTE FUNCTION guard_run_protocol();
