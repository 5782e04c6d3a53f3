-- A digest that outlives its text tells a short one to whoever tries them all (decision 10): what notes and repeated requests were
-- compared by goes with the erasure, whoever erases.

DROP TRIGGER note_keys_immutable ON note_keys;
-- Null once what was noted is erased: that something was done under the key stays known.
ALTER TABLE note_keys ALTER COLUMN arguments_hash DROP NOT NULL;
CREATE FUNCTION guard_note_keys() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF TG_OP = 'DELETE' OR NEW.arguments_hash IS NOT NULL OR to_jsonb(NEW) - 'arguments_hash' <> to_jsonb(OLD) - 'arguments_hash' THEN
    RAISE EXCEPTION 'the key of note % only ever loses its hash', OLD.note_id USING ERRCODE = 'LT001';
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER note_keys_guard BEFORE UPDATE OR DELETE ON note_keys FOR EACH ROW EXECUTE FUNCTION guard_note_keys();

CREATE INDEX note_versions_content ON note_versions (content_id);
CREATE FUNCTION forget_note_hashes() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  UPDATE note_keys k SET arguments_hash = NULL FROM note_versions v
  WHERE v.content_id = NEW.id AND k.note_id = v.note_id AND k.version = v.version AND k.arguments_hash IS NOT NULL;
  RETURN NULL;
END $$;
CREATE TRIGGER contents_forget_note_hashes AFTER UPDATE ON contents FOR EACH ROW
  WHEN (NEW.erased_at IS NOT NULL AND OLD.erased_at IS NULL) EXECUTE FUNCTION forget_note_hashes();
UPDATE note_keys k SET arguments_hash = NULL FROM note_versions v JOIN contents c ON c.id = v.content_id
WHERE c.erased_at IS NOT NULL AND k.note_id = v.note_id AND k.version = v.version AND k.arguments_hash IS NOT NULL;

-- What a request said is not named here, so that an erasure takes the digests of all that its owner's requests said so far. A repeated
-- one is still the same by its key. One that is under way, the erasure's own perhaps, keeps its own.
ALTER TABLE idempotency_keys ALTER COLUMN salt DROP NOT NULL;
ALTER TABLE idempotency_keys ALTER COLUMN body_hash DROP NOT NULL;
ALTER TABLE idempotency_keys ADD CONSTRAINT hash_has_salt CHECK ((salt IS NULL) = (body_hash IS NULL));
CREATE FUNCTION forget_request_hashes() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  UPDATE idempotency_keys k SET salt = NULL, body_hash = NULL
  FROM (
    SELECT i.owner_id, i.method, i.route, i.key FROM idempotency_keys i
    WHERE i.salt IS NOT NULL AND i.status IS NOT NULL AND i.owner_id IN (SELECT c.owner_id FROM changed c WHERE c.erased_at IS NOT NULL)
    ORDER BY i.owner_id, i.method, i.route, i.key FOR UPDATE) s
  WHERE k.owner_id = s.owner_id AND k.method = s.method AND k.route = s.route AND k.key = s.key;
  RETURN NULL;
END $$;
CREATE TRIGGER contents_forget_request_hashes AFTER UPDATE ON contents REFERENCING NEW TABLE AS changed
  FOR EACH STATEMENT EXECUTE FUNCTION forget_request_hashes();
