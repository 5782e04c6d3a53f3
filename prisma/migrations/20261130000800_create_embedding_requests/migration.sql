-- Requests for embeddings that leave the process: one row each, from the intent to its only terminal (K3). Who asked, how much and what
-- became of it; no text.
CREATE TABLE embedding_requests (
  -- The effect's id; its events stand on a stream of their own, embedding:<id>.
  id uuid PRIMARY KEY,
  -- Null for the instance's own, which asks what the endpoint's vectors look like.
  owner_id uuid REFERENCES owners,
  character_id uuid,
  run_id uuid,
  purpose text NOT NULL CHECK (purpose IN ('probe', 'recall', 'memory', 'extraction', 'index')),
  texts integer NOT NULL CHECK (texts > 0),
  reserved_tokens bigint NOT NULL CHECK (reserved_tokens >= 0),
  -- Null where the endpoint has no price card.
  reserved_micros bigint CHECK (reserved_micros >= 0),
  -- Keys the request's digest; destroyed with the first erasure after it (decision 10).
  salt bytea CHECK (octet_length(salt) = 32),
  state text NOT NULL DEFAULT 'requested' CHECK (state IN ('requested', 'completed', 'failed', 'unknown')),
  code text CHECK (length(code) <= 64),
  charged_tokens bigint CHECK (charged_tokens >= 0),
  charged_micros bigint CHECK (charged_micros >= 0),
  -- Whoever sent it, and when it has given up for certain.
  holder text NOT NULL,
  due_at timestamptz NOT NULL,
  created_at timestamptz NOT NULL DEFAULT now(),
  settled_at timestamptz,
  FOREIGN KEY (owner_id, character_id) REFERENCES characters (owner_id, id),
  FOREIGN KEY (owner_id, run_id) REFERENCES runs (owner_id, id),
  CHECK (owner_id IS NOT NULL OR (purpose = 'probe' AND character_id IS NULL AND run_id IS NULL)),
  CHECK ((state = 'requested') = (settled_at IS NULL)),
  CHECK ((state = 'requested') = (charged_tokens IS NULL))
);
CREATE INDEX embedding_requests_open ON embedding_requests (due_at) WHERE state = 'requested';
CREATE INDEX embedding_requests_run ON embedding_requests (run_id) WHERE run_id IS NOT NULL;
CREATE INDEX embedding_requests_salted ON embedding_requests (owner_id) WHERE salt IS NOT NULL;

-- One terminal, no way back; what was asked is fixed.
CREATE FUNCTION guard_embedding_requests() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF TG_OP = 'DELETE' THEN
    RAISE EXCEPTION 'embedding request % cannot be deleted', OLD.id USING ERRCODE = 'LT011';
  END IF;
  IF TG_OP = 'INSERT' THEN
    IF NEW.state <> 'requested' THEN
      RAISE EXCEPTION 'embedding request % begins as an intent', NEW.id USING ERRCODE = 'LT011';
    END IF;
    RETURN NEW;
  END IF;
  IF ROW(NEW.id, NEW.owner_id, NEW.character_id, NEW.run_id, NEW.purpose, NEW.texts, NEW.reserved_tokens, NEW.reserved_micros, NEW.holder,
         NEW.due_at, NEW.created_at)
     IS DISTINCT FROM
     ROW(OLD.id, OLD.owner_id, OLD.character_id, OLD.run_id, OLD.purpose, OLD.texts, OLD.reserved_tokens, OLD.reserved_micros, OLD.holder,
         OLD.due_at, OLD.created_at) THEN
    RAISE EXCEPTION 'what embedding request % asked for is fixed', OLD.id USING ERRCODE = 'LT011';
  END IF;
  IF NEW.salt IS DISTINCT FROM OLD.salt AND NEW.salt IS NOT NULL THEN
    RAISE EXCEPTION 'the salt of embedding request % can only go', OLD.id USING ERRCODE = 'LT011';
  END IF;
  IF OLD.state <> 'requested' AND ROW(NEW.state, NEW.code, NEW.charged_tokens, NEW.charged_micros, NEW.settled_at)
     IS DISTINCT FROM ROW(OLD.state, OLD.code, OLD.charged_tokens, OLD.charged_micros, OLD.settled_at) THEN
    RAISE EXCEPTION 'embedding request % is settled', OLD.id USING ERRCODE = 'LT011';
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER embedding_requests_guard BEFORE INSERT OR UPDATE OR DELETE ON embedding_requests
  FOR EACH ROW EXECUTE FUNCTION guard_embedding_requests();

-- A query is made of texts that are not named here, so that an erasure takes the salts of all that its owner's requests covered so far.
CREATE FUNCTION forget_embedding_salts() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  UPDATE embedding_requests SET salt = NULL WHERE id IN (
    SELECT r.id FROM embedding_requests r
    WHERE r.salt IS NOT NULL AND r.owner_id IN (SELECT c.owner_id FROM changed c WHERE c.erased_at IS NOT NULL)
    ORDER BY r.id FOR UPDATE);
  RETURN NULL;
END $$;
CREATE TRIGGER contents_forget_embedding_salts AFTER UPDATE ON contents REFERENCING NEW TABLE AS changed
  FOR EACH STATEMENT EXECUTE FUNCTION forget_embedding_salts();
