-- Memory (息壤): memories, immutable versions, sources, consent, derived indexes, recall audits.
-- Text lives in contents. The tables here hold ids, numbers, enums and keyed digests; the text index's tokens and the vectors
-- are derived from text and go with it, by trigger, whoever erases it (decisions 10, 13, 31, 32).

-- ---------------------------------------------------------------- keys

-- Keys the digests that say "these two texts are the same". Gone with the character, and with it every digest's meaning.
CREATE TABLE memory_keys (
  character_id uuid PRIMARY KEY,
  owner_id uuid NOT NULL,
  key bytea NOT NULL CHECK (octet_length(key) = 32),
  FOREIGN KEY (owner_id, character_id) REFERENCES characters (owner_id, id)
);

-- One row per place where memories are compared: writers take its lock first, so that two of them leave one row (case R1).
-- documents and length_sum describe the live text index of the scope: what BM25 needs to know of the whole.
CREATE TABLE memory_scopes (
  character_id uuid NOT NULL,
  realm_id uuid NOT NULL,
  owner_id uuid NOT NULL,
  documents integer NOT NULL DEFAULT 0 CHECK (documents >= 0),
  length_sum bigint NOT NULL DEFAULT 0 CHECK (length_sum >= 0),
  PRIMARY KEY (character_id, realm_id),
  FOREIGN KEY (owner_id, character_id) REFERENCES characters (owner_id, id),
  FOREIGN KEY (owner_id, realm_id) REFERENCES realms (owner_id, id)
);

-- ---------------------------------------------------------------- memories and versions

CREATE TABLE memories (
  id uuid PRIMARY KEY,
  owner_id uuid NOT NULL REFERENCES owners,
  character_id uuid NOT NULL,
  realm_id uuid NOT NULL,
  level text NOT NULL CHECK (level IN ('trace', 'explicit', 'heavy')),
  state text NOT NULL CHECK (state IN ('proposed', 'live', 'rejected', 'undone', 'withdrawn', 'deleted', 'merged')),
  type text NOT NULL CHECK (type IN ('fact', 'preference', 'event', 'plan', 'promise', 'relationship_view')),
  origin text NOT NULL CHECK (origin IN ('user_explicit', 'self_inferred')),
  priority double precision NOT NULL CHECK (priority BETWEEN 0 AND 1),
  confidence double precision NOT NULL CHECK (confidence BETWEEN 0 AND 1),
  sensitive boolean NOT NULL,
  topics text[] NOT NULL DEFAULT '{}'
    CHECK (topics <@ ARRAY['health', 'money', 'identity', 'sexuality', 'belief', 'third_person']),
  -- The live version; exactly one, since it is one column.
  current_version_id uuid NOT NULL,
  -- Keyed digest of the normalised current text; goes with the text.
  text_hash bytea CHECK (octet_length(text_hash) = 32),
  -- How often it was derived, on whichever path (case R2).
  mentions integer NOT NULL DEFAULT 1 CHECK (mentions > 0),
  hits integer NOT NULL DEFAULT 0 CHECK (hits >= 0),
  last_hit_at timestamptz,
  -- Until when an automatic change can be undone.
  undo_until timestamptz,
  flagged text CHECK (flagged IN ('source_deleted', 'canon_withdrawn')),
  -- Which version of which other memory took this one in.
  merged_into_version_id uuid,
  created_at timestamptz NOT NULL,
  updated_at timestamptz NOT NULL,
  UNIQUE (owner_id, character_id, realm_id, id),
  FOREIGN KEY (owner_id, character_id) REFERENCES characters (owner_id, id),
  FOREIGN KEY (owner_id, realm_id) REFERENCES realms (owner_id, id),
  -- Whatever is not on the allow-list of types, or is sensitive, needs the owner (decision 35).
  CONSTRAINT explicit_is_harmless CHECK (level <> 'explicit' OR (type IN ('preference', 'event', 'plan') AND NOT sensitive)),
  CONSTRAINT topics_are_sensitive CHECK (sensitive OR topics = '{}'),
  CONSTRAINT proposals_are_heavy CHECK (state NOT IN ('proposed', 'rejected') OR level = 'heavy'),
  CONSTRAINT deleted_has_no_hash CHECK (state <> 'deleted' OR (text_hash IS NULL AND undo_until IS NULL)),
  CONSTRAINT present_has_hash CHECK (state NOT IN ('proposed', 'live') OR text_hash IS NOT NULL),
  CONSTRAINT merged_says_where CHECK (state IN ('merged', 'deleted') OR merged_into_version_id IS NULL),
  CONSTRAINT merged_is_somewhere CHECK (state <> 'merged' OR merged_into_version_id IS NOT NULL)
);
CREATE UNIQUE INDEX memories_one_per_text ON memories (character_id, realm_id, text_hash) WHERE state IN ('proposed', 'live');
CREATE INDEX memories_owner ON memories (owner_id, id DESC);
CREATE INDEX memories_character ON memories (character_id, state);
CREATE INDEX memories_merged ON memories (merged_into_version_id) WHERE merged_into_version_id IS NOT NULL;

CREATE TABLE memory_versions (
  id uuid PRIMARY KEY,
  owner_id uuid NOT NULL,
  character_id uuid NOT NULL,
  realm_id uuid NOT NULL,
  memory_id uuid NOT NULL,
  version integer NOT NULL CHECK (version > 0),
  content_id uuid NOT NULL REFERENCES contents,
  -- The meet of its sources' trust, workspace at most (K1).
  trust text NOT NULL CHECK (trust IN ('untrusted', 'workspace')),
  -- When it happened, apart from when it was written (case R21).
  event_at timestamptz NOT NULL,
  cause text NOT NULL CHECK (cause IN ('extract', 'import', 'correct', 'update', 'merge', 'confirm')),
  supersedes_version_id uuid,
  created_at timestamptz NOT NULL,
  UNIQUE (memory_id, version),
  UNIQUE (memory_id, id),
  UNIQUE (owner_id, character_id, realm_id, id),
  FOREIGN KEY (owner_id, character_id, realm_id, memory_id) REFERENCES memories (owner_id, character_id, realm_id, id) DEFERRABLE INITIALLY DEFERRED,
  FOREIGN KEY (memory_id, supersedes_version_id) REFERENCES memory_versions (memory_id, id),
  CHECK ((version = 1) = (supersedes_version_id IS NULL))
);
CREATE INDEX memory_versions_content ON memory_versions (content_id);
ALTER TABLE memories ADD FOREIGN KEY (id, current_version_id) REFERENCES memory_versions (memory_id, id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE memories ADD FOREIGN KEY (owner_id, character_id, realm_id, merged_into_version_id)
  REFERENCES memory_versions (owner_id, character_id, realm_id, id) DEFERRABLE INITIALLY DEFERRED;
CREATE TRIGGER memory_versions_immutable BEFORE UPDATE OR DELETE ON memory_versions FOR EACH ROW EXECUTE FUNCTION refuse_change();

CREATE FUNCTION guard_memory_content() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF NOT EXISTS (SELECT 1 FROM contents WHERE id = NEW.content_id AND owner_id = NEW.owner_id AND erased_at IS NULL) THEN
    RAISE EXCEPTION 'content % is not a present content of this owner', NEW.content_id USING ERRCODE = 'LT007';
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER memory_versions_content BEFORE INSERT ON memory_versions FOR EACH ROW EXECUTE FUNCTION guard_memory_content();

-- Which messages a version rests on, and the canonization that made them true for the character (M3).
CREATE TABLE memory_sources (
  version_id uuid NOT NULL,
  owner_id uuid NOT NULL,
  character_id uuid NOT NULL,
  realm_id uuid NOT NULL,
  tree_id uuid NOT NULL,
  node_id uuid NOT NULL,
  canonization_id uuid NOT NULL REFERENCES canonizations,
  PRIMARY KEY (version_id, node_id),
  FOREIGN KEY (owner_id, character_id, realm_id, version_id) REFERENCES memory_versions (owner_id, character_id, realm_id, id),
  FOREIGN KEY (owner_id, tree_id) REFERENCES trees (owner_id, id),
  FOREIGN KEY (tree_id, node_id) REFERENCES nodes (tree_id, id)
);
CREATE INDEX memory_sources_node ON memory_sources (node_id);
CREATE INDEX memory_sources_canonization ON memory_sources (canonization_id);
CREATE TRIGGER memory_sources_immutable BEFORE UPDATE OR DELETE ON memory_sources FOR EACH ROW EXECUTE FUNCTION refuse_change();

-- M3: a cited message lies in the canonical range of its canonization, in this character's canon and this realm. A source that an
-- earlier version had may be kept after its canonization was withdrawn or its message deleted; a new one must be live.
CREATE FUNCTION guard_memory_sources() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE refused record;
BEGIN
  WITH RECURSIVE covered AS (
    SELECT c.id, c.from_node_id, c.to_node_id AS node_id FROM canonizations c WHERE c.id IN (SELECT canonization_id FROM cited)
    UNION ALL
    SELECT v.id, v.from_node_id, n.parent_id
    FROM covered v JOIN nodes n ON n.id = v.node_id
    WHERE n.parent_id IS NOT NULL AND n.parent_id <> v.from_node_id
  )
  SELECT s.node_id, s.canonization_id INTO refused
  FROM cited s
  WHERE NOT EXISTS (
    SELECT 1
    FROM covered v
    JOIN canonizations c ON c.id = v.id
    JOIN trees t ON t.id = c.tree_id
    JOIN nodes n ON n.id = v.node_id
    WHERE v.id = s.canonization_id AND v.node_id = s.node_id AND c.owner_id = s.owner_id AND c.character_id = s.character_id
      AND c.tree_id = s.tree_id AND t.realm_id = s.realm_id AND n.kind <> 'root' AND n.sealed AND NOT n.partial
      AND ((c.withdrawn_at IS NULL AND n.deleted_at IS NULL)
        OR EXISTS (
          SELECT 1 FROM memory_sources o
          WHERE o.node_id = s.node_id AND o.canonization_id = s.canonization_id AND o.version_id NOT IN (SELECT version_id FROM cited)))
  )
  LIMIT 1;
  IF FOUND THEN
    RAISE EXCEPTION 'node % is not canonical by %', refused.node_id, refused.canonization_id USING ERRCODE = 'LT008';
  END IF;
  RETURN NULL;
END $$;
CREATE TRIGGER memory_sources_canonical AFTER INSERT ON memory_sources REFERENCING NEW TABLE AS cited
  FOR EACH STATEMENT EXECUTE FUNCTION guard_memory_sources();

-- Every memory but a trace cites at least one real message.
CREATE FUNCTION require_memory_source() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF NOT EXISTS (SELECT 1 FROM memory_sources WHERE version_id = NEW.id)
     AND NOT EXISTS (SELECT 1 FROM memories WHERE id = NEW.memory_id AND level = 'trace') THEN
    RAISE EXCEPTION 'memory version % has no source', NEW.id USING ERRCODE = 'LT008';
  END IF;
  RETURN NULL;
END $$;
CREATE CONSTRAINT TRIGGER memory_versions_sourced AFTER INSERT ON memory_versions DEFERRABLE INITIALLY DEFERRED
  FOR EACH ROW EXECUTE FUNCTION require_memory_source();

-- Memories that a waiting proposal takes the place of once the owner confirms it.
CREATE TABLE memory_replacements (
  memory_id uuid NOT NULL,
  target_id uuid NOT NULL,
  owner_id uuid NOT NULL,
  character_id uuid NOT NULL,
  realm_id uuid NOT NULL,
  PRIMARY KEY (memory_id, target_id),
  FOREIGN KEY (owner_id, character_id, realm_id, memory_id) REFERENCES memories (owner_id, character_id, realm_id, id),
  FOREIGN KEY (owner_id, character_id, realm_id, target_id) REFERENCES memories (owner_id, character_id, realm_id, id),
  CHECK (memory_id <> target_id)
);
CREATE INDEX memory_replacements_target ON memory_replacements (target_id);

-- ---------------------------------------------------------------- consent

-- What the owner, and nobody else, decided about one version (decision 35).
CREATE TABLE confirmations (
  id uuid PRIMARY KEY,
  owner_id uuid NOT NULL,
  character_id uuid NOT NULL,
  realm_id uuid NOT NULL,
  memory_id uuid NOT NULL,
  version_id uuid NOT NULL,
  decision text NOT NULL CHECK (decision IN ('confirm', 'reject', 'undo', 'correct')),
  decided_by uuid NOT NULL,
  decided_at timestamptz NOT NULL,
  UNIQUE (memory_id, version_id, decision),
  FOREIGN KEY (owner_id, character_id, realm_id, memory_id) REFERENCES memories (owner_id, character_id, realm_id, id),
  FOREIGN KEY (memory_id, version_id) REFERENCES memory_versions (memory_id, id),
  CONSTRAINT owner_decides CHECK (decided_by = owner_id)
);
CREATE TRIGGER confirmations_immutable BEFORE UPDATE OR DELETE ON confirmations FOR EACH ROW EXECUTE FUNCTION refuse_change();

-- Keyed digests of what the owner undid or rejected, so that it does not come back.
CREATE TABLE memory_suppressions (
  character_id uuid NOT NULL,
  realm_id uuid NOT NULL,
  owner_id uuid NOT NULL,
  text_hash bytea NOT NULL CHECK (octet_length(text_hash) = 32),
  memory_id uuid NOT NULL,
  created_at timestamptz NOT NULL,
  PRIMARY KEY (character_id, realm_id, text_hash),
  FOREIGN KEY (owner_id, character_id, realm_id, memory_id) REFERENCES memories (owner_id, character_id, realm_id, id)
);

-- When the text of a version that was rejected or undone goes: true by comparing times when read, a job only tidies (decision 28).
CREATE TABLE memory_expiries (
  version_id uuid PRIMARY KEY REFERENCES memory_versions,
  owner_id uuid NOT NULL,
  erase_at timestamptz NOT NULL
);
CREATE INDEX memory_expiries_due ON memory_expiries (erase_at);

-- The state machine: which change of state is legal, and that a heavy memory lives by the owner's word on that very version alone.
CREATE FUNCTION guard_memories() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF TG_OP = 'DELETE' THEN
    RAISE EXCEPTION 'memory % cannot be removed, only deleted', OLD.id USING ERRCODE = 'LT009';
  END IF;
  IF TG_OP = 'INSERT' THEN
    IF NEW.state <> (CASE WHEN NEW.level = 'heavy' THEN 'proposed' ELSE 'live' END) THEN
      RAISE EXCEPTION 'a % memory does not begin as %', NEW.level, NEW.state USING ERRCODE = 'LT009';
    END IF;
    RETURN NEW;
  END IF;
  IF ROW(NEW.id, NEW.owner_id, NEW.character_id, NEW.realm_id, NEW.origin, NEW.created_at)
     IS DISTINCT FROM ROW(OLD.id, OLD.owner_id, OLD.character_id, OLD.realm_id, OLD.origin, OLD.created_at) THEN
    RAISE EXCEPTION 'memory % keeps its identity and scope', OLD.id USING ERRCODE = 'LT009';
  END IF;
  IF NEW.state <> OLD.state AND NOT (CASE OLD.state
    WHEN 'proposed' THEN NEW.state IN ('live', 'rejected', 'merged', 'deleted')
    WHEN 'live' THEN NEW.state IN ('undone', 'withdrawn', 'merged', 'deleted')
    WHEN 'merged' THEN NEW.state IN ('live', 'deleted')
    WHEN 'deleted' THEN false
    ELSE NEW.state = 'deleted'
  END) THEN
    RAISE EXCEPTION 'memory % does not go from % to %', OLD.id, OLD.state, NEW.state USING ERRCODE = 'LT009';
  END IF;
  IF OLD.level = 'heavy' AND NEW.level <> 'heavy' THEN
    RAISE EXCEPTION 'heavy memory % stays heavy', OLD.id USING ERRCODE = 'LT009';
  END IF;
  IF NEW.state = 'undone' AND OLD.state <> 'undone' AND NEW.level = 'heavy' THEN
    RAISE EXCEPTION 'heavy memory % was confirmed and is not undone', OLD.id USING ERRCODE = 'LT009';
  END IF;
  IF NEW.state = 'live' AND NEW.level = 'heavy'
     AND ROW(NEW.state, NEW.level, NEW.current_version_id) IS DISTINCT FROM ROW(OLD.state, OLD.level, OLD.current_version_id)
     AND NOT EXISTS (
       SELECT 1 FROM confirmations
       WHERE memory_id = NEW.id AND version_id = NEW.current_version_id AND owner_id = NEW.owner_id AND decision IN ('confirm', 'correct')) THEN
    RAISE EXCEPTION 'heavy memory % waits for its owner', OLD.id USING ERRCODE = 'LT010';
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER memories_guard BEFORE INSERT OR UPDATE OR DELETE ON memories FOR EACH ROW EXECUTE FUNCTION guard_memories();

-- A deleted memory is a tombstone: proof of the act, no text of any version.
CREATE FUNCTION require_memory_erased() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF NEW.state = 'deleted' AND EXISTS (
    SELECT 1 FROM memory_versions v JOIN contents c ON c.id = v.content_id WHERE v.memory_id = NEW.id AND c.erased_at IS NULL) THEN
    RAISE EXCEPTION 'memory % is deleted but its text remains', NEW.id USING ERRCODE = 'LT009';
  END IF;
  RETURN NULL;
END $$;
CREATE CONSTRAINT TRIGGER memories_erased AFTER UPDATE OF state ON memories DEFERRABLE INITIALLY DEFERRED
  FOR EACH ROW WHEN (NEW.state = 'deleted') EXECUTE FUNCTION require_memory_erased();

-- ---------------------------------------------------------------- derived indexes

-- One embedder's space; vectors of two spaces are never compared (decision 31).
CREATE TABLE embedding_spaces (
  id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  slug text COLLATE "C" NOT NULL UNIQUE CHECK (slug ~ '^[A-Za-z0-9_.:/-]{1,64}$'),
  model text NOT NULL,
  version text NOT NULL,
  dimensions integer NOT NULL CHECK (dimensions BETWEEN 1 AND 4000),
  created_at timestamptz NOT NULL DEFAULT now()
);
CREATE TRIGGER embedding_spaces_immutable BEFORE UPDATE ON embedding_spaces FOR EACH ROW EXECUTE FUNCTION refuse_change();

-- Both indexes hold the current version of proposed and live memories alone, with their scope, so that every filter lies inside the
-- leg that reads them. `live` and `level` follow the memory by trigger.
CREATE TABLE memory_vectors (
  version_id uuid NOT NULL,
  space_id integer NOT NULL REFERENCES embedding_spaces,
  owner_id uuid NOT NULL,
  character_id uuid NOT NULL,
  realm_id uuid NOT NULL,
  live boolean NOT NULL,
  level text NOT NULL,
  embedding halfvec NOT NULL,
  PRIMARY KEY (version_id, space_id),
  FOREIGN KEY (owner_id, character_id, realm_id, version_id) REFERENCES memory_versions (owner_id, character_id, realm_id, id)
);
CREATE INDEX memory_vectors_scope ON memory_vectors (character_id, realm_id, space_id);
-- Kept in the row up to a page's worth: an exact scan must not fetch each vector from elsewhere.
ALTER TABLE memory_vectors ALTER COLUMN embedding SET STORAGE EXTERNAL;
ALTER TABLE memory_vectors SET (toast_tuple_target = 8160);

CREATE TABLE memory_terms (
  version_id uuid NOT NULL,
  token text COLLATE "C" NOT NULL CHECK (char_length(token) BETWEEN 1 AND 64),
  owner_id uuid NOT NULL,
  character_id uuid NOT NULL,
  realm_id uuid NOT NULL,
  live boolean NOT NULL,
  level text NOT NULL,
  -- How often the token stands in the version, and how many tokens the version has.
  frequency integer NOT NULL CHECK (frequency > 0),
  length integer NOT NULL CHECK (length >= frequency),
  PRIMARY KEY (version_id, token),
  FOREIGN KEY (owner_id, character_id, realm_id, version_id) REFERENCES memory_versions (owner_id, character_id, realm_id, id)
);
CREATE INDEX memory_terms_token ON memory_terms (character_id, realm_id, token) INCLUDE (version_id, owner_id, live, level, frequency, length);

-- In how many live documents of the scope a token stands (decision 32). Per scope, so that nothing leaks between owners.
CREATE TABLE memory_term_counts (
  character_id uuid NOT NULL,
  realm_id uuid NOT NULL,
  token text COLLATE "C" NOT NULL,
  documents integer NOT NULL CHECK (documents >= 0),
  PRIMARY KEY (character_id, realm_id, token),
  FOREIGN KEY (character_id, realm_id) REFERENCES memory_scopes (character_id, realm_id)
);

-- Adds (sign 1) or takes away (sign -1) live rows of the text index from the counts of their scope. A version's rows come and go in one
-- statement. Scope first, then tokens in order: writers of one scope queue instead of deadlocking.
CREATE FUNCTION count_memory_terms() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF TG_OP <> 'INSERT' THEN
    UPDATE memory_scopes s SET documents = s.documents - g.documents, length_sum = s.length_sum - g.length_sum
    FROM (
      SELECT d.character_id, d.realm_id, count(*) AS documents, sum(d.length) AS length_sum
      FROM (SELECT DISTINCT character_id, realm_id, version_id, length FROM gone WHERE live) d
      GROUP BY d.character_id, d.realm_id) g
    WHERE s.character_id = g.character_id AND s.realm_id = g.realm_id;
    UPDATE memory_term_counts c SET documents = c.documents - g.documents
    FROM (SELECT character_id, realm_id, token, count(*) AS documents FROM gone WHERE live GROUP BY character_id, realm_id, token) g
    WHERE c.character_id = g.character_id AND c.realm_id = g.realm_id AND c.token = g.token;
    DELETE FROM memory_term_counts c
    USING (SELECT DISTINCT character_id, realm_id, token FROM gone) g
    WHERE c.character_id = g.character_id AND c.realm_id = g.realm_id AND c.token = g.token AND c.documents = 0;
  END IF;
  IF TG_OP <> 'DELETE' THEN
    INSERT INTO memory_scopes AS s (character_id, realm_id, owner_id, documents, length_sum)
    SELECT d.character_id, d.realm_id, d.owner_id, count(*), sum(d.length)
    FROM (SELECT DISTINCT character_id, realm_id, owner_id, version_id, length FROM come WHERE live) d
    GROUP BY d.character_id, d.realm_id, d.owner_id
    ORDER BY d.character_id, d.realm_id
    ON CONFLICT (character_id, realm_id)
    DO UPDATE SET documents = s.documents + excluded.documents, length_sum = s.length_sum + excluded.length_sum;
    INSERT INTO memory_term_counts AS c (character_id, realm_id, token, documents)
    SELECT character_id, realm_id, token, count(*) FROM come WHERE live GROUP BY character_id, realm_id, token
    ORDER BY character_id, realm_id, token
    ON CONFLICT (character_id, realm_id, token) DO UPDATE SET documents = c.documents + excluded.documents;
  END IF;
  RETURN NULL;
END $$;
CREATE TRIGGER memory_terms_added AFTER INSERT ON memory_terms REFERENCING NEW TABLE AS come
  FOR EACH STATEMENT EXECUTE FUNCTION count_memory_terms();
CREATE TRIGGER memory_terms_changed AFTER UPDATE ON memory_terms REFERENCING OLD TABLE AS gone NEW TABLE AS come
  FOR EACH STATEMENT EXECUTE FUNCTION count_memory_terms();
CREATE TRIGGER memory_terms_removed AFTER DELETE ON memory_terms REFERENCING OLD TABLE AS gone
  FOR EACH STATEMENT EXECUTE FUNCTION count_memory_terms();

-- The indexes follow the memory, whichever code, job or hand changed it.
CREATE FUNCTION follow_memory() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF NEW.state NOT IN ('proposed', 'live') THEN
    DELETE FROM memory_terms WHERE version_id IN (SELECT id FROM memory_versions WHERE memory_id = NEW.id);
    DELETE FROM memory_vectors WHERE version_id IN (SELECT id FROM memory_versions WHERE memory_id = NEW.id);
    RETURN NULL;
  END IF;
  IF NEW.current_version_id <> OLD.current_version_id THEN
    DELETE FROM memory_terms WHERE version_id = OLD.current_version_id;
    DELETE FROM memory_vectors WHERE version_id = OLD.current_version_id;
  END IF;
  UPDATE memory_terms SET live = (NEW.state = 'live'), level = NEW.level
  WHERE version_id = NEW.current_version_id AND (live <> (NEW.state = 'live') OR level <> NEW.level);
  UPDATE memory_vectors SET live = (NEW.state = 'live'), level = NEW.level
  WHERE version_id = NEW.current_version_id AND (live <> (NEW.state = 'live') OR level <> NEW.level);
  RETURN NULL;
END $$;
CREATE TRIGGER memories_followed AFTER UPDATE OF state, level, current_version_id ON memories FOR EACH ROW
  WHEN (ROW(NEW.state, NEW.level, NEW.current_version_id) IS DISTINCT FROM ROW(OLD.state, OLD.level, OLD.current_version_id))
  EXECUTE FUNCTION follow_memory();

-- An index row is of a current version and says of it what is true.
CREATE FUNCTION guard_memory_index() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE stray uuid;
BEGIN
  SELECT i.version_id INTO stray
  FROM (SELECT DISTINCT version_id, live, level FROM come) i
  LEFT JOIN memory_versions v ON v.id = i.version_id
  LEFT JOIN memories m ON m.id = v.memory_id AND m.current_version_id = v.id AND m.state IN ('proposed', 'live')
  LEFT JOIN contents c ON c.id = v.content_id AND c.erased_at IS NULL
  WHERE m.id IS NULL OR c.id IS NULL OR i.live <> (m.state = 'live') OR i.level <> m.level
  LIMIT 1;
  IF FOUND THEN
    RAISE EXCEPTION 'version % is not to be found by search', stray USING ERRCODE = 'LT011';
  END IF;
  RETURN NULL;
END $$;
CREATE TRIGGER memory_terms_guard AFTER INSERT ON memory_terms REFERENCING NEW TABLE AS come
  FOR EACH STATEMENT EXECUTE FUNCTION guard_memory_index();
CREATE TRIGGER memory_vectors_guard AFTER INSERT ON memory_vectors REFERENCING NEW TABLE AS come
  FOR EACH STATEMENT EXECUTE FUNCTION guard_memory_index();

-- ---------------------------------------------------------------- recall

-- What was asked for, by digest, and how the answer came about. No text.
CREATE TABLE recall_audits (
  id uuid PRIMARY KEY,
  owner_id uuid NOT NULL,
  character_id uuid NOT NULL,
  realm_id uuid NOT NULL,
  run_id uuid,
  -- Salts the digest; goes when what the query was made of is erased (decision 10).
  query_salt bytea CHECK (octet_length(query_salt) = 32),
  query_digest bytea NOT NULL CHECK (octet_length(query_digest) = 32),
  query_content_ids uuid[] NOT NULL DEFAULT '{}',
  embedder text COLLATE "C" NOT NULL CHECK (embedder ~ '^[A-Za-z0-9_.:/-]{1,64}$'),
  vector_leg text NOT NULL CHECK (vector_leg IN ('used', 'degenerate', 'unavailable')),
  rank_constant double precision NOT NULL,
  text_weight double precision NOT NULL,
  vector_weight double precision NOT NULL,
  at timestamptz NOT NULL,
  UNIQUE (owner_id, character_id, id),
  FOREIGN KEY (owner_id, character_id) REFERENCES characters (owner_id, id),
  FOREIGN KEY (owner_id, realm_id) REFERENCES realms (owner_id, id),
  FOREIGN KEY (owner_id, run_id) REFERENCES runs (owner_id, id)
);
CREATE INDEX recall_audits_owner ON recall_audits (owner_id, id DESC);
CREATE INDEX recall_audits_run ON recall_audits (run_id) WHERE run_id IS NOT NULL;
CREATE INDEX recall_audits_query ON recall_audits USING gin (query_content_ids) WHERE query_salt IS NOT NULL;

CREATE FUNCTION guard_recall_audits() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF TG_OP = 'DELETE' OR NEW.query_salt IS NOT NULL OR to_jsonb(NEW) - 'query_salt' <> to_jsonb(OLD) - 'query_salt' THEN
    RAISE EXCEPTION 'recall audit % only ever loses its salt', OLD.id USING ERRCODE = 'LT001';
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER recall_audits_guard BEFORE UPDATE OR DELETE ON recall_audits FOR EACH ROW EXECUTE FUNCTION guard_recall_audits();

CREATE TABLE recall_hits (
  audit_id uuid NOT NULL,
  -- Place in the fused order, 1 first.
  ordinal integer NOT NULL CHECK (ordinal > 0),
  owner_id uuid NOT NULL,
  character_id uuid NOT NULL,
  realm_id uuid NOT NULL,
  memory_id uuid NOT NULL,
  version_id uuid NOT NULL,
  text_rank integer,
  text_score double precision,
  vector_rank integer,
  vector_score double precision,
  vitality double precision NOT NULL,
  score double precision NOT NULL,
  -- Place among those given to the model; null where a limit cut it.
  rank integer,
  cut_by text CHECK (cut_by IN ('items', 'characters', 'near_duplicate')),
  PRIMARY KEY (audit_id, ordinal),
  UNIQUE (audit_id, memory_id),
  FOREIGN KEY (owner_id, character_id, audit_id) REFERENCES recall_audits (owner_id, character_id, id),
  FOREIGN KEY (memory_id, version_id) REFERENCES memory_versions (memory_id, id),
  FOREIGN KEY (owner_id, character_id, realm_id, version_id) REFERENCES memory_versions (owner_id, character_id, realm_id, id),
  CHECK ((rank IS NULL) = (cut_by IS NOT NULL)),
  CHECK (num_nonnulls(text_rank, vector_rank) > 0)
);
CREATE INDEX recall_hits_memory ON recall_hits (memory_id);
CREATE TRIGGER recall_hits_immutable BEFORE UPDATE OR DELETE ON recall_hits FOR EACH ROW EXECUTE FUNCTION refuse_change();

-- Which run has already strengthened which memory: once per run, however often it recalls.
CREATE TABLE recall_reinforcements (
  run_id uuid NOT NULL,
  memory_id uuid NOT NULL,
  owner_id uuid NOT NULL,
  PRIMARY KEY (run_id, memory_id),
  FOREIGN KEY (owner_id, run_id) REFERENCES runs (owner_id, id),
  FOREIGN KEY (memory_id) REFERENCES memories
);

-- ---------------------------------------------------------------- extraction

-- How far extraction of a canonization has come: a job that runs twice stores once, one that was killed goes on where it stopped.
CREATE TABLE memory_extractions (
  canonization_id uuid PRIMARY KEY REFERENCES canonizations,
  owner_id uuid NOT NULL,
  character_id uuid NOT NULL,
  outcome text NOT NULL CHECK (outcome IN ('running', 'finished', 'given_up')),
  -- Everything before mark_offset in this node is done; a long range is extracted in steps, each a transaction.
  mark_node_id uuid REFERENCES nodes,
  mark_offset integer CHECK (mark_offset >= 0),
  code text COLLATE "C" CHECK (code ~ '^[A-Za-z0-9_.:/-]{1,64}$'),
  tries integer NOT NULL CHECK (tries >= 0),
  proposals integer NOT NULL CHECK (proposals >= 0),
  stored integer NOT NULL CHECK (stored >= 0),
  dropped integer NOT NULL CHECK (dropped >= 0),
  updated_at timestamptz NOT NULL,
  FOREIGN KEY (owner_id, character_id) REFERENCES characters (owner_id, id),
  CHECK ((outcome = 'given_up') = (code IS NOT NULL)),
  CHECK ((mark_node_id IS NULL) = (mark_offset IS NULL))
);
-- What was given up may be tried again; what is finished is finished.
CREATE FUNCTION guard_memory_extractions() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF TG_OP = 'DELETE' OR OLD.outcome = 'finished' OR ROW(NEW.canonization_id, NEW.owner_id, NEW.character_id)
     IS DISTINCT FROM ROW(OLD.canonization_id, OLD.owner_id, OLD.character_id) THEN
    RAISE EXCEPTION 'the extraction of % is finished', OLD.canonization_id USING ERRCODE = 'LT009';
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER memory_extractions_guard BEFORE UPDATE OR DELETE ON memory_extractions FOR EACH ROW EXECUTE FUNCTION guard_memory_extractions();

-- ---------------------------------------------------------------- erasure reaches what was derived

-- Contents change by erasure alone; what the indexes and audits know of a text goes in the same transaction, whoever erased it.
CREATE FUNCTION forget_erased_memory() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  DELETE FROM memory_terms WHERE version_id IN (SELECT id FROM memory_versions WHERE content_id = NEW.id);
  DELETE FROM memory_vectors WHERE version_id IN (SELECT id FROM memory_versions WHERE content_id = NEW.id);
  UPDATE recall_audits SET query_salt = NULL WHERE query_salt IS NOT NULL AND query_content_ids @> ARRAY[NEW.id];
  RETURN NULL;
END $$;
CREATE TRIGGER contents_memory_forgotten AFTER UPDATE ON contents FOR EACH ROW
  WHEN (NEW.erased_at IS NOT NULL AND OLD.erased_at IS NULL) EXECUTE FUNCTION forget_erased_memory();
