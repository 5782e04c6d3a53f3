-- What plain SQL could still do to the record: empty a table at one stroke, change whose a row is, rewrite words that are being written,
-- and pass a partial off as whole (K5, M1, M5, M7).

-- ---------------------------------------------------------------- nothing is emptied

-- Row triggers do not fire on TRUNCATE. Derived tables too: their counts follow single rows.
DO $$
DECLARE name text;
BEGIN
  FOR name IN
    SELECT c.relname FROM pg_class c
    WHERE c.relkind = 'r' AND c.relnamespace = current_schema()::regnamespace AND c.relname <> '_prisma_migrations'
      AND NOT EXISTS (SELECT 1 FROM pg_trigger t WHERE t.tgrelid = c.oid AND NOT t.tgisinternal AND (t.tgtype & 32) <> 0)
    ORDER BY c.relname COLLATE "C"
  LOOP
    EXECUTE format('CREATE TRIGGER %I BEFORE TRUNCATE ON %I FOR EACH STATEMENT EXECUTE FUNCTION refuse_change()', name || '_never_emptied', name);
  END LOOP;
END $$;

CREATE TRIGGER erasures_append_only BEFORE UPDATE OR DELETE ON erasures FOR EACH ROW EXECUTE FUNCTION refuse_change();

-- ---------------------------------------------------------------- what a row is stays

-- The columns that are named never change, and no row goes.
CREATE FUNCTION guard_identity() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  before jsonb;
  after jsonb;
BEGIN
  IF TG_OP = 'DELETE' THEN
    RAISE EXCEPTION 'a row of % cannot be deleted', TG_TABLE_NAME USING ERRCODE = 'LT001';
  END IF;
  before := to_jsonb(OLD);
  after := to_jsonb(NEW);
  FOR place IN 0 .. TG_NARGS - 1 LOOP
    IF before -> TG_ARGV[place] IS DISTINCT FROM after -> TG_ARGV[place] THEN
      RAISE EXCEPTION '% of % is fixed', TG_ARGV[place], TG_TABLE_NAME USING ERRCODE = 'LT001';
    END IF;
  END LOOP;
  RETURN NEW;
END $$;
CREATE TRIGGER realms_identity BEFORE UPDATE OR DELETE ON realms FOR EACH ROW
  EXECUTE FUNCTION guard_identity('id', 'owner_id', 'kind', 'created_at');
CREATE TRIGGER characters_identity BEFORE UPDATE OR DELETE ON characters FOR EACH ROW
  EXECUTE FUNCTION guard_identity('id', 'owner_id', 'realm_id', 'created_at');
CREATE TRIGGER trees_identity BEFORE UPDATE OR DELETE ON trees FOR EACH ROW
  EXECUTE FUNCTION guard_identity('id', 'owner_id', 'realm_id', 'root_node_id', 'created_at');
CREATE TRIGGER seats_identity BEFORE UPDATE OR DELETE ON seats FOR EACH ROW
  EXECUTE FUNCTION guard_identity('character_id', 'owner_id');
CREATE TRIGGER run_commands_identity BEFORE UPDATE OR DELETE ON run_commands FOR EACH ROW
  EXECUTE FUNCTION guard_identity('id', 'run_id', 'owner_id', 'seq', 'kind', 'content_id', 'accepted_at');

-- M5: which run it is, of whom and in whose seat, is decided when it is asked for; versions are pinned once (decision 21); what has ended
-- has ended. Its protocol version has a guard of its own.
CREATE OR REPLACE FUNCTION guard_runs() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF TG_OP = 'DELETE' THEN
    RAISE EXCEPTION 'run % cannot be deleted', OLD.id USING ERRCODE = 'LT006';
  END IF;
  IF ROW(NEW.id, NEW.owner_id, NEW.kind, NEW.seated, NEW.character_id, NEW.tree_id, NEW.parent_run_id, NEW.question_id, NEW.candidate_id,
         NEW.continues_run_id, NEW.reducer_version, NEW.trace_id, NEW.settings, NEW.requested_at)
     IS DISTINCT FROM
     ROW(OLD.id, OLD.owner_id, OLD.kind, OLD.seated, OLD.character_id, OLD.tree_id, OLD.parent_run_id, OLD.question_id, OLD.candidate_id,
         OLD.continues_run_id, OLD.reducer_version, OLD.trace_id, OLD.settings, OLD.requested_at) THEN
    RAISE EXCEPTION 'what run % was asked for is fixed', OLD.id USING ERRCODE = 'LT006';
  END IF;
  IF (OLD.persona_version_id IS NOT NULL AND NEW.persona_version_id IS DISTINCT FROM OLD.persona_version_id)
     OR (OLD.profile_version_id IS NOT NULL AND NEW.profile_version_id IS DISTINCT FROM OLD.profile_version_id) THEN
    RAISE EXCEPTION 'the versions of run % are pinned', OLD.id USING ERRCODE = 'LT006';
  END IF;
  IF NEW.fence < OLD.fence THEN
    RAISE EXCEPTION 'the fence of run % never goes back', OLD.id USING ERRCODE = 'LT006';
  END IF;
  IF OLD.ended_at IS NOT NULL AND ROW(NEW.state, NEW.reason, NEW.started_at, NEW.ended_at)
     IS DISTINCT FROM ROW(OLD.state, OLD.reason, OLD.started_at, OLD.ended_at) THEN
    RAISE EXCEPTION 'run % has ended', OLD.id USING ERRCODE = 'LT006';
  END IF;
  RETURN NEW;
END $$;

-- ---------------------------------------------------------------- words stay as they were written

-- Deltas go once, folded into their candidate's content.
CREATE TRIGGER segments_immutable BEFORE UPDATE ON segments FOR EACH ROW EXECUTE FUNCTION refuse_change();

-- Pieces come with their content and go with it.
CREATE FUNCTION guard_content_chunks() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF TG_OP = 'UPDATE'
     OR (TG_OP = 'DELETE' AND EXISTS (SELECT 1 FROM contents WHERE id = OLD.content_id AND erased_at IS NULL)) THEN
    RAISE EXCEPTION 'content % is immutable', OLD.content_id USING ERRCODE = 'LT001';
  END IF;
  IF TG_OP = 'DELETE' THEN RETURN OLD; END IF;
  IF NOT EXISTS (SELECT 1 FROM contents WHERE id = NEW.content_id AND erased_at IS NULL AND NEW.ordinal < chunks) THEN
    RAISE EXCEPTION 'content % has no piece %', NEW.content_id, NEW.ordinal USING ERRCODE = 'LT001';
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER content_chunks_guard BEFORE INSERT OR UPDATE OR DELETE ON content_chunks FOR EACH ROW EXECUTE FUNCTION guard_content_chunks();

CREATE FUNCTION require_content_chunks() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF EXISTS (SELECT 1 FROM contents c WHERE c.id = NEW.id AND c.chunks <> (SELECT count(*) FROM content_chunks p WHERE p.content_id = c.id)) THEN
    RAISE EXCEPTION 'content % is not all there', NEW.id USING ERRCODE = 'LT001';
  END IF;
  RETURN NULL;
END $$;
CREATE CONSTRAINT TRIGGER contents_whole AFTER INSERT ON contents DEFERRABLE INITIALLY DEFERRED
  FOR EACH ROW WHEN (NEW.chunks > 0) EXECUTE FUNCTION require_content_chunks();

-- Whoever erases a content erases its pieces.
CREATE FUNCTION forget_erased_chunks() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  DELETE FROM content_chunks WHERE content_id = NEW.id;
  RETURN NULL;
END $$;
CREATE TRIGGER contents_chunks_forgotten AFTER UPDATE ON contents FOR EACH ROW
  WHEN (NEW.erased_at IS NOT NULL AND OLD.erased_at IS NULL AND OLD.chunks > 0) EXECUTE FUNCTION forget_erased_chunks();

-- ---------------------------------------------------------------- a partial stays one (M7)

-- A node of a run is that run's candidate below its question: unsealed while the run lives, sealed with the run's own words when it ends,
-- and whole only where it finished. Asked at the commit, from either side.
CREATE FUNCTION require_candidate_of_run() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE stray uuid;
BEGIN
  SELECT n.id INTO stray
  FROM nodes n LEFT JOIN runs r ON r.id = n.run_id
  WHERE n.id = (CASE TG_TABLE_NAME WHEN 'runs' THEN to_jsonb(NEW) ->> 'candidate_id' ELSE to_jsonb(NEW) ->> 'id' END)::uuid
    AND n.run_id IS NOT NULL
    AND NOT coalesce(n.id = r.candidate_id AND n.owner_id = r.owner_id AND n.tree_id = r.tree_id AND n.parent_id = r.question_id
      AND n.kind = 'candidate' AND n.sealed = (r.ended_at IS NOT NULL)
      AND (NOT n.sealed OR (n.content_id = n.id AND n.partial = (r.state <> 'finished'))), false);
  IF FOUND THEN
    RAISE EXCEPTION 'node % is not what its run left', stray USING ERRCODE = 'LT014';
  END IF;
  RETURN NULL;
END $$;
CREATE CONSTRAINT TRIGGER nodes_of_run AFTER INSERT OR UPDATE OF sealed ON nodes DEFERRABLE INITIALLY DEFERRED
  FOR EACH ROW WHEN (NEW.run_id IS NOT NULL) EXECUTE FUNCTION require_candidate_of_run();
CREATE CONSTRAINT TRIGGER runs_leave_candidate AFTER UPDATE OF state ON runs DEFERRABLE INITIALLY DEFERRED
  FOR EACH ROW WHEN (NEW.ended_at IS NOT NULL AND OLD.ended_at IS NULL AND NEW.candidate_id IS NOT NULL)
  EXECUTE FUNCTION require_candidate_of_run();

-- What a run said is told by its own candidate alone.
CREATE FUNCTION guard_node_content() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF EXISTS (SELECT 1 FROM runs WHERE candidate_id = NEW.content_id) THEN
    RAISE EXCEPTION 'content % is the answer of another node', NEW.content_id USING ERRCODE = 'LT014';
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER nodes_words_guard BEFORE INSERT OR UPDATE OF content_id ON nodes FOR EACH ROW
  WHEN (NEW.content_id IS NOT NULL AND NEW.content_id <> NEW.id) EXECUTE FUNCTION guard_node_content();
