-- The tables that are dear to change: owners, content, record, tree, runs, seat, outbox.
-- Ordered or unique text is COLLATE "C"; SQL stays within Postgres 15 (decision 5).

CREATE EXTENSION IF NOT EXISTS vector;

-- ---------------------------------------------------------------- helpers

-- A row that must never change once written.
CREATE FUNCTION refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION '% on % is refused: the table is append-only', TG_OP, TG_TABLE_NAME USING ERRCODE = 'LT001';
END $$;

-- ---------------------------------------------------------------- instance

CREATE TABLE instance (
  id smallint PRIMARY KEY DEFAULT 1 CHECK (id = 1),
  instance_id uuid NOT NULL,
  -- Raised by a restore, so that readers of the global order know older transaction ids are settled (decision 19).
  cluster_epoch integer NOT NULL DEFAULT 1 CHECK (cluster_epoch > 0),
  created_at timestamptz NOT NULL DEFAULT now()
);

-- ---------------------------------------------------------------- owners, sign-in

CREATE TABLE owners (
  id uuid PRIMARY KEY,
  name text COLLATE "C" NOT NULL UNIQUE CHECK (length(name) BETWEEN 1 AND 80),
  role text NOT NULL CHECK (role IN ('user', 'admin')),
  password_hash text,
  locale text NOT NULL DEFAULT 'en' CHECK (length(locale) <= 35),
  created_at timestamptz NOT NULL DEFAULT now()
);

CREATE TABLE tokens (
  id uuid PRIMARY KEY,
  owner_id uuid NOT NULL REFERENCES owners,
  name text NOT NULL CHECK (length(name) BETWEEN 1 AND 120),
  token_hash bytea NOT NULL UNIQUE CHECK (octet_length(token_hash) = 32),
  scopes text[] NOT NULL,
  created_at timestamptz NOT NULL DEFAULT now(),
  last_used_at timestamptz,
  revoked_at timestamptz
);
CREATE INDEX tokens_owner ON tokens (owner_id, id);

CREATE TABLE signin_links (
  id uuid PRIMARY KEY,
  owner_id uuid NOT NULL REFERENCES owners,
  secret_hash bytea NOT NULL UNIQUE CHECK (octet_length(secret_hash) = 32),
  expires_at timestamptz NOT NULL,
  used_at timestamptz,
  created_at timestamptz NOT NULL DEFAULT now()
);

CREATE TABLE sessions (
  id uuid PRIMARY KEY,
  owner_id uuid NOT NULL REFERENCES owners,
  secret_hash bytea NOT NULL UNIQUE CHECK (octet_length(secret_hash) = 32),
  created_at timestamptz NOT NULL DEFAULT now(),
  expires_at timestamptz NOT NULL,
  revoked_at timestamptz
);
CREATE INDEX sessions_owner ON sessions (owner_id, id);

-- ---------------------------------------------------------------- contents

-- All text lives here, by id; the log holds salted digests of it (decisions 10–13).
-- body: the text; bytes: anything else. layout: ordered parts and delta segments inside body.
-- Erasing takes body, bytes, salt and layout, and leaves the row as proof.
CREATE TABLE contents (
  id uuid PRIMARY KEY,
  owner_id uuid NOT NULL REFERENCES owners,
  media_type text NOT NULL CHECK (media_type ~ '^[a-z0-9.+-]+/[a-z0-9.+-]+$'),
  body text,
  bytes bytea,
  -- Larger contents stand in content_chunks, since a statement's parameters are bounded (decisions 7, 9).
  chunks integer NOT NULL DEFAULT 0 CHECK (chunks >= 0),
  layout jsonb,
  salt bytea,
  digest bytea NOT NULL CHECK (octet_length(digest) = 32),
  size integer NOT NULL CHECK (size >= 0),
  derived_from uuid[] NOT NULL DEFAULT '{}',
  created_at timestamptz NOT NULL DEFAULT now(),
  erased_at timestamptz,
  CHECK (
    (erased_at IS NULL AND salt IS NOT NULL AND octet_length(salt) = 32 AND num_nonnulls(body, bytes, nullif(chunks, 0)) = 1)
    OR (erased_at IS NOT NULL AND salt IS NULL AND body IS NULL AND bytes IS NULL AND chunks = 0 AND layout IS NULL)
  )
);
CREATE INDEX contents_derived ON contents USING gin (derived_from) WHERE derived_from <> '{}';
CREATE INDEX contents_owner ON contents (owner_id);

CREATE FUNCTION guard_contents() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF TG_OP = 'DELETE' THEN
    RAISE EXCEPTION 'content % cannot be deleted, only erased', OLD.id USING ERRCODE = 'LT001';
  END IF;
  IF NEW.erased_at IS NULL OR OLD.erased_at IS NOT NULL OR ROW(NEW.id, NEW.owner_id, NEW.media_type, NEW.digest, NEW.size, NEW.derived_from, NEW.created_at)
     IS DISTINCT FROM ROW(OLD.id, OLD.owner_id, OLD.media_type, OLD.digest, OLD.size, OLD.derived_from, OLD.created_at) THEN
    RAISE EXCEPTION 'content % is immutable', OLD.id USING ERRCODE = 'LT001';
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER contents_guard BEFORE UPDATE OR DELETE ON contents FOR EACH ROW EXECUTE FUNCTION guard_contents();

CREATE TABLE content_chunks (
  content_id uuid NOT NULL REFERENCES contents,
  ordinal integer NOT NULL CHECK (ordinal >= 0),
  bytes bytea NOT NULL,
  PRIMARY KEY (content_id, ordinal)
);

-- Kept apart from backups and applied at restore (decision 6).
CREATE TABLE erasures (
  content_id uuid PRIMARY KEY,
  owner_id uuid NOT NULL,
  cause text NOT NULL,
  erased_at timestamptz NOT NULL DEFAULT now()
);

-- ---------------------------------------------------------------- record

CREATE TABLE streams (
  stream text COLLATE "C" PRIMARY KEY CHECK (stream ~ '^[a-z]+:[A-Za-z0-9-]{1,64}$'),
  owner_id uuid,
  seq bigint NOT NULL DEFAULT 0 CHECK (seq >= 0),
  hash bytea NOT NULL DEFAULT decode(repeat('00', 32), 'hex') CHECK (octet_length(hash) = 32),
  quarantined_at timestamptz
);

CREATE TABLE events (
  position bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  cluster_epoch integer NOT NULL,
  xid xid8 NOT NULL DEFAULT pg_current_xact_id(),
  -- No foreign key: the chain trigger below compares each append with its stream's head.
  stream text COLLATE "C" NOT NULL,
  seq bigint NOT NULL CHECK (seq > 0),
  type text COLLATE "C" NOT NULL,
  visibility text NOT NULL CHECK (visibility IN ('public', 'internal', 'audit')),
  owner_id uuid,
  run_id uuid,
  -- The canonical bytes that the hash covers (decision 8); payload is the same, parsed, for reading.
  canonical text NOT NULL,
  payload jsonb NOT NULL,
  prev_hash bytea NOT NULL CHECK (octet_length(prev_hash) = 32),
  hash bytea NOT NULL CHECK (octet_length(hash) = 32),
  recorded_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  UNIQUE (stream, seq)
);
CREATE INDEX events_owner_type ON events (owner_id, type, position);

CREATE TRIGGER events_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON events FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();

-- Gapless and chained: a row must follow its stream's head, and the head moves with it.
CREATE FUNCTION guard_stream_head() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF TG_OP = 'DELETE' THEN
    RAISE EXCEPTION 'stream % cannot be deleted', OLD.stream USING ERRCODE = 'LT001';
  END IF;
  IF NEW.stream <> OLD.stream OR NEW.seq < OLD.seq OR NEW.owner_id IS DISTINCT FROM OLD.owner_id THEN
    RAISE EXCEPTION 'stream head % never goes back', OLD.stream USING ERRCODE = 'LT001';
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER streams_guard BEFORE UPDATE OR DELETE ON streams FOR EACH ROW EXECUTE FUNCTION guard_stream_head();

CREATE FUNCTION guard_chain() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE broken text;
BEGIN
  SELECT e.stream INTO broken
  FROM appended e
  LEFT JOIN events p ON p.stream = e.stream AND p.seq = e.seq - 1
  WHERE (e.seq = 1 AND e.prev_hash <> decode(repeat('00', 32), 'hex'))
     OR (e.seq > 1 AND p.hash IS DISTINCT FROM e.prev_hash)
  LIMIT 1;
  IF broken IS NULL THEN
    SELECT a.stream INTO broken
    FROM (SELECT DISTINCT ON (stream) stream, seq, hash FROM appended ORDER BY stream, seq DESC) a
    LEFT JOIN streams s USING (stream)
    WHERE s.seq IS DISTINCT FROM a.seq OR s.hash IS DISTINCT FROM a.hash
    LIMIT 1;
  END IF;
  IF broken IS NOT NULL THEN
    RAISE EXCEPTION 'append to % does not continue its chain', broken USING ERRCODE = 'LT002';
  END IF;
  RETURN NULL;
END $$;
CREATE TRIGGER events_chain AFTER INSERT ON events REFERENCING NEW TABLE AS appended
  FOR EACH STATEMENT EXECUTE FUNCTION guard_chain();

CREATE TABLE outbox (
  id uuid PRIMARY KEY,
  owner_id uuid,
  topic text NOT NULL CHECK (topic ~ '^[a-z_.]{1,64}$'),
  -- Ids only (decision 13).
  payload jsonb NOT NULL,
  created_at timestamptz NOT NULL DEFAULT now(),
  due_at timestamptz NOT NULL DEFAULT now(),
  attempts integer NOT NULL DEFAULT 0,
  last_error text,
  claimed_until timestamptz,
  closed_at timestamptz,
  outcome text CHECK (outcome IN ('done', 'given_up', 'obsolete')),
  CHECK ((closed_at IS NULL) = (outcome IS NULL))
);
CREATE INDEX outbox_open ON outbox (due_at) WHERE closed_at IS NULL;

CREATE TABLE idempotency_keys (
  owner_id uuid NOT NULL REFERENCES owners,
  method text COLLATE "C" NOT NULL,
  route text COLLATE "C" NOT NULL,
  key text COLLATE "C" NOT NULL CHECK (length(key) BETWEEN 1 AND 255),
  salt bytea NOT NULL,
  body_hash bytea NOT NULL CHECK (octet_length(body_hash) = 32),
  status smallint,
  resource jsonb,
  created_at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (owner_id, method, route, key)
);
CREATE INDEX idempotency_age ON idempotency_keys (created_at);

-- ---------------------------------------------------------------- worlds, characters, personas

CREATE TABLE realms (
  id uuid PRIMARY KEY,
  owner_id uuid NOT NULL REFERENCES owners,
  kind text NOT NULL CHECK (kind ~ '^[a-z_]{1,40}$'),
  name text NOT NULL CHECK (length(name) BETWEEN 1 AND 120),
  created_at timestamptz NOT NULL DEFAULT now(),
  UNIQUE (owner_id, id)
);
CREATE UNIQUE INDEX realms_one_real ON realms (owner_id) WHERE kind = 'real';

CREATE TABLE characters (
  id uuid PRIMARY KEY,
  owner_id uuid NOT NULL REFERENCES owners,
  name text NOT NULL CHECK (length(name) BETWEEN 1 AND 400),
  realm_id uuid NOT NULL,
  current_version_id uuid NOT NULL,
  avatar_content_id uuid REFERENCES contents,
  demo boolean NOT NULL DEFAULT false,
  -- Until the owner has seen and accepted an imported text it stays untrusted (K1).
  accepted_at timestamptz,
  created_at timestamptz NOT NULL DEFAULT now(),
  deleted_at timestamptz,
  UNIQUE (owner_id, id),
  FOREIGN KEY (owner_id, realm_id) REFERENCES realms (owner_id, id)
);
CREATE INDEX characters_owner ON characters (owner_id, id);

CREATE TABLE persona_versions (
  id uuid PRIMARY KEY,
  owner_id uuid NOT NULL,
  character_id uuid NOT NULL,
  version integer NOT NULL CHECK (version > 0),
  -- The card as it was imported or written, exact JSON text.
  card_content_id uuid NOT NULL REFERENCES contents,
  origin text NOT NULL CHECK (origin IN ('import', 'authored', 'recast')),
  created_at timestamptz NOT NULL DEFAULT now(),
  UNIQUE (character_id, version),
  UNIQUE (character_id, id),
  FOREIGN KEY (owner_id, character_id) REFERENCES characters (owner_id, id) DEFERRABLE INITIALLY DEFERRED
);
ALTER TABLE characters ADD FOREIGN KEY (id, current_version_id) REFERENCES persona_versions (character_id, id) DEFERRABLE INITIALLY DEFERRED;
CREATE TRIGGER persona_versions_immutable BEFORE UPDATE OR DELETE ON persona_versions FOR EACH ROW EXECUTE FUNCTION refuse_change();

CREATE TABLE user_personas (
  id uuid PRIMARY KEY,
  owner_id uuid NOT NULL REFERENCES owners,
  created_at timestamptz NOT NULL DEFAULT now(),
  deleted_at timestamptz,
  UNIQUE (owner_id, id)
);
CREATE TABLE user_persona_versions (
  id uuid PRIMARY KEY,
  owner_id uuid NOT NULL,
  persona_id uuid NOT NULL,
  version integer NOT NULL CHECK (version > 0),
  name text NOT NULL CHECK (length(name) BETWEEN 1 AND 120),
  description_content_id uuid REFERENCES contents,
  created_at timestamptz NOT NULL DEFAULT now(),
  UNIQUE (persona_id, version),
  FOREIGN KEY (owner_id, persona_id) REFERENCES user_personas (owner_id, id)
);
CREATE TRIGGER user_persona_versions_immutable BEFORE UPDATE OR DELETE ON user_persona_versions FOR EACH ROW EXECUTE FUNCTION refuse_change();

CREATE TABLE lorebooks (
  id uuid PRIMARY KEY,
  owner_id uuid NOT NULL REFERENCES owners,
  character_id uuid,
  name text NOT NULL CHECK (length(name) <= 400),
  source_content_id uuid REFERENCES contents,
  settings jsonb NOT NULL DEFAULT '{}',
  created_at timestamptz NOT NULL DEFAULT now(),
  deleted_at timestamptz,
  UNIQUE (owner_id, id),
  FOREIGN KEY (owner_id, character_id) REFERENCES characters (owner_id, id)
);
CREATE TABLE lore_entries (
  id uuid PRIMARY KEY,
  owner_id uuid NOT NULL,
  lorebook_id uuid NOT NULL,
  list_position integer NOT NULL,
  current_version_id uuid NOT NULL,
  deleted_at timestamptz,
  UNIQUE (owner_id, id),
  FOREIGN KEY (owner_id, lorebook_id) REFERENCES lorebooks (owner_id, id)
);
CREATE INDEX lore_entries_book ON lore_entries (lorebook_id, list_position);
CREATE TABLE lore_entry_versions (
  id uuid PRIMARY KEY,
  owner_id uuid NOT NULL,
  entry_id uuid NOT NULL,
  version integer NOT NULL CHECK (version > 0),
  -- The normalised entry (spec/4 "Entry fields") as JSON text.
  entry_content_id uuid NOT NULL REFERENCES contents,
  created_at timestamptz NOT NULL DEFAULT now(),
  UNIQUE (entry_id, version),
  UNIQUE (entry_id, id),
  FOREIGN KEY (owner_id, entry_id) REFERENCES lore_entries (owner_id, id) DEFERRABLE INITIALLY DEFERRED
);
ALTER TABLE lore_entries ADD FOREIGN KEY (id, current_version_id) REFERENCES lore_entry_versions (entry_id, id) DEFERRABLE INITIALLY DEFERRED;
CREATE TRIGGER lore_entry_versions_immutable BEFORE UPDATE OR DELETE ON lore_entry_versions FOR EACH ROW EXECUTE FUNCTION refuse_change();

-- Prompt sets and profiles: versions only; the pointer is a row of its own so that moving it is an event.
CREATE TABLE prompt_set_versions (
  id uuid PRIMARY KEY,
  owner_id uuid REFERENCES owners,
  name text COLLATE "C" NOT NULL,
  version integer NOT NULL CHECK (version > 0),
  content_id uuid NOT NULL REFERENCES contents,
  created_at timestamptz NOT NULL DEFAULT now(),
  UNIQUE NULLS NOT DISTINCT (owner_id, name, version)
);
CREATE TRIGGER prompt_set_versions_immutable BEFORE UPDATE OR DELETE ON prompt_set_versions FOR EACH ROW EXECUTE FUNCTION refuse_change();
CREATE TABLE profile_versions (
  id uuid PRIMARY KEY,
  owner_id uuid NOT NULL REFERENCES owners,
  hash bytea NOT NULL CHECK (octet_length(hash) = 32),
  -- The resolved profile as canonical JSON; no free text of a person in it.
  profile text NOT NULL,
  created_at timestamptz NOT NULL DEFAULT now(),
  UNIQUE (owner_id, hash)
);
CREATE TRIGGER profile_versions_immutable BEFORE UPDATE OR DELETE ON profile_versions FOR EACH ROW EXECUTE FUNCTION refuse_change();

-- What a model at an endpoint was found not to take, for all processes and starts (decision 39). Deleting a row lets it be found anew.
CREATE TABLE endpoint_quirks (
  endpoint text NOT NULL,
  model text NOT NULL,
  takes_stream_options boolean NOT NULL,
  found_at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (endpoint, model)
);

CREATE TABLE kill_flags (
  scope text NOT NULL CHECK (scope IN ('global', 'owner', 'character')),
  scope_id uuid NOT NULL,
  set_by uuid NOT NULL REFERENCES owners,
  set_at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (scope, scope_id)
);

-- ---------------------------------------------------------------- mirror tree

CREATE TABLE trees (
  id uuid PRIMARY KEY,
  owner_id uuid NOT NULL REFERENCES owners,
  title text NOT NULL CHECK (length(title) <= 400),
  realm_id uuid NOT NULL,
  root_node_id uuid NOT NULL,
  -- Leaf of the current path, shared by the owner's devices.
  head_node_id uuid NOT NULL,
  -- Counts every change that a reader of the tree could see.
  revision bigint NOT NULL DEFAULT 1 CHECK (revision > 0),
  -- Order among siblings and of creation (decision 24, case T6).
  node_seq bigint NOT NULL DEFAULT 0 CHECK (node_seq >= 0),
  user_persona_version_id uuid REFERENCES user_persona_versions,
  zone text NOT NULL DEFAULT 'UTC' CHECK (length(zone) <= 64),
  created_at timestamptz NOT NULL DEFAULT now(),
  updated_at timestamptz NOT NULL DEFAULT now(),
  deleted_at timestamptz,
  UNIQUE (owner_id, id),
  FOREIGN KEY (owner_id, realm_id) REFERENCES realms (owner_id, id)
);
CREATE INDEX trees_owner ON trees (owner_id, updated_at DESC);

CREATE TABLE tree_characters (
  tree_id uuid NOT NULL,
  character_id uuid NOT NULL,
  owner_id uuid NOT NULL,
  PRIMARY KEY (tree_id, character_id),
  FOREIGN KEY (owner_id, tree_id) REFERENCES trees (owner_id, id),
  FOREIGN KEY (owner_id, character_id) REFERENCES characters (owner_id, id)
);
CREATE INDEX tree_characters_character ON tree_characters (character_id);

CREATE TABLE nodes (
  id uuid PRIMARY KEY,
  tree_id uuid NOT NULL,
  owner_id uuid NOT NULL,
  parent_id uuid,
  kind text NOT NULL CHECK (kind IN ('root', 'question', 'candidate')),
  role text NOT NULL CHECK (role IN ('none', 'user', 'character', 'narrator')),
  seq bigint NOT NULL CHECK (seq >= 0),
  depth integer NOT NULL CHECK (depth >= 0),
  sealed boolean NOT NULL,
  partial boolean NOT NULL DEFAULT false,
  speaker_character_id uuid,
  speaker_name text CHECK (length(speaker_name) <= 400),
  author text NOT NULL CHECK (author IN ('system', 'owner', 'character', 'import')),
  -- The meet of what it was made from, for ever (K1).
  trust text NOT NULL CHECK (trust IN ('untrusted', 'workspace', 'trusted')),
  content_id uuid REFERENCES contents,
  run_id uuid,
  -- Which node this one was edited from, if any (M2).
  edited_from_id uuid,
  zone text CHECK (length(zone) <= 64),
  at timestamptz NOT NULL,
  created_at timestamptz NOT NULL DEFAULT now(),
  deleted_at timestamptz,
  UNIQUE (tree_id, seq),
  UNIQUE (tree_id, id),
  FOREIGN KEY (owner_id, tree_id) REFERENCES trees (owner_id, id) DEFERRABLE INITIALLY DEFERRED,
  FOREIGN KEY (tree_id, parent_id) REFERENCES nodes (tree_id, id),
  FOREIGN KEY (owner_id, speaker_character_id) REFERENCES characters (owner_id, id),
  CHECK ((kind = 'root') = (parent_id IS NULL)),
  CHECK ((kind = 'root') = (role = 'none')),
  CHECK (kind <> 'root' OR (sealed AND content_id IS NULL AND depth = 0)),
  -- A question is complete when written; only a sprout waits for its seal.
  CHECK (kind <> 'question' OR sealed),
  CHECK (NOT sealed OR kind = 'root' OR content_id IS NOT NULL),
  CHECK (NOT partial OR sealed)
);
CREATE UNIQUE INDEX nodes_one_root ON nodes (tree_id) WHERE kind = 'root';
CREATE INDEX nodes_children ON nodes (parent_id, seq);
CREATE INDEX nodes_content ON nodes (content_id);
ALTER TABLE trees ADD FOREIGN KEY (id, root_node_id) REFERENCES nodes (tree_id, id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE trees ADD FOREIGN KEY (id, head_node_id) REFERENCES nodes (tree_id, id) DEFERRABLE INITIALLY DEFERRED;

-- Place of a trust in its lattice; null for what is none.
CREATE FUNCTION trust_rank(trust text) RETURNS integer LANGUAGE sql IMMUTABLE AS $$
  SELECT array_position(ARRAY['untrusted', 'workspace', 'trusted'], trust)
$$;

-- M1, M2, M7: what is sealed stays; the only changes are seal (once) and tombstone (once). Trust only falls, and only until the seal (K1).
CREATE FUNCTION guard_nodes() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF TG_OP = 'DELETE' THEN
    RAISE EXCEPTION 'node % cannot be deleted, only tombstoned', OLD.id USING ERRCODE = 'LT003';
  END IF;
  IF ROW(NEW.id, NEW.tree_id, NEW.owner_id, NEW.parent_id, NEW.kind, NEW.role, NEW.seq, NEW.depth, NEW.speaker_character_id, NEW.speaker_name,
         NEW.author, NEW.run_id, NEW.edited_from_id, NEW.zone, NEW.at, NEW.created_at)
     IS DISTINCT FROM
     ROW(OLD.id, OLD.tree_id, OLD.owner_id, OLD.parent_id, OLD.kind, OLD.role, OLD.seq, OLD.depth, OLD.speaker_character_id, OLD.speaker_name,
         OLD.author, OLD.run_id, OLD.edited_from_id, OLD.zone, OLD.at, OLD.created_at) THEN
    RAISE EXCEPTION 'node % is immutable', OLD.id USING ERRCODE = 'LT003';
  END IF;
  IF trust_rank(NEW.trust) > trust_rank(OLD.trust) THEN
    RAISE EXCEPTION 'node % is immutable: its trust never rises', OLD.id USING ERRCODE = 'LT003';
  END IF;
  IF OLD.sealed AND ROW(NEW.sealed, NEW.partial, NEW.content_id, NEW.trust) IS DISTINCT FROM ROW(OLD.sealed, OLD.partial, OLD.content_id, OLD.trust) THEN
    RAISE EXCEPTION 'node % is sealed', OLD.id USING ERRCODE = 'LT003';
  END IF;
  IF OLD.deleted_at IS NOT NULL AND NEW.deleted_at IS DISTINCT FROM OLD.deleted_at THEN
    RAISE EXCEPTION 'node % is tombstoned', OLD.id USING ERRCODE = 'LT003';
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER nodes_guard BEFORE UPDATE OR DELETE ON nodes FOR EACH ROW EXECUTE FUNCTION guard_nodes();

-- Depth follows the parent; nothing hangs below a sprout (decision 23).
CREATE FUNCTION place_node() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE parent record;
BEGIN
  IF NEW.parent_id IS NULL THEN RETURN NEW; END IF;
  SELECT depth, sealed, deleted_at INTO parent FROM nodes WHERE id = NEW.parent_id AND tree_id = NEW.tree_id;
  IF NOT FOUND THEN RETURN NEW; END IF; -- the foreign key answers
  IF NOT parent.sealed THEN
    RAISE EXCEPTION 'node % cannot hang below an unsealed candidate', NEW.id USING ERRCODE = 'LT004';
  END IF;
  IF NEW.depth <> parent.depth + 1 THEN
    RAISE EXCEPTION 'node % has depth %, its parent %', NEW.id, NEW.depth, parent.depth USING ERRCODE = 'LT003';
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER nodes_place BEFORE INSERT ON nodes FOR EACH ROW EXECUTE FUNCTION place_node();

-- Which child a path goes on to (采用). Says nothing about canon.
CREATE TABLE adoptions (
  tree_id uuid NOT NULL,
  parent_id uuid NOT NULL,
  child_id uuid NOT NULL,
  PRIMARY KEY (tree_id, parent_id),
  FOREIGN KEY (tree_id, parent_id) REFERENCES nodes (tree_id, id),
  FOREIGN KEY (tree_id, child_id) REFERENCES nodes (tree_id, id)
);

-- Canon covers (from_node, to_node] on the path of to_node (decision 26).
CREATE TABLE canonizations (
  id uuid PRIMARY KEY,
  owner_id uuid NOT NULL,
  tree_id uuid NOT NULL,
  character_id uuid NOT NULL,
  from_node_id uuid NOT NULL,
  to_node_id uuid NOT NULL,
  created_at timestamptz NOT NULL DEFAULT now(),
  withdrawn_at timestamptz,
  FOREIGN KEY (owner_id, tree_id) REFERENCES trees (owner_id, id),
  FOREIGN KEY (owner_id, character_id) REFERENCES characters (owner_id, id),
  FOREIGN KEY (tree_id, from_node_id) REFERENCES nodes (tree_id, id),
  FOREIGN KEY (tree_id, to_node_id) REFERENCES nodes (tree_id, id),
  CHECK (from_node_id <> to_node_id)
);
CREATE UNIQUE INDEX canonizations_live ON canonizations (tree_id, character_id, to_node_id) WHERE withdrawn_at IS NULL;
CREATE INDEX canonizations_character ON canonizations (character_id);

-- M7: a partial or a sprout is never canonized; M4: canon changes by withdrawal alone.
CREATE FUNCTION guard_canonizations() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF TG_OP = 'INSERT' THEN
    IF EXISTS (SELECT 1 FROM nodes WHERE id = NEW.to_node_id AND (partial OR NOT sealed OR deleted_at IS NOT NULL OR kind <> 'candidate')) THEN
      RAISE EXCEPTION 'node % is not a complete candidate', NEW.to_node_id USING ERRCODE = 'LT005';
    END IF;
    RETURN NEW;
  END IF;
  IF TG_OP = 'DELETE' OR OLD.withdrawn_at IS NOT NULL OR NEW.withdrawn_at IS NULL
     OR ROW(NEW.id, NEW.owner_id, NEW.tree_id, NEW.character_id, NEW.from_node_id, NEW.to_node_id, NEW.created_at)
     IS DISTINCT FROM ROW(OLD.id, OLD.owner_id, OLD.tree_id, OLD.character_id, OLD.from_node_id, OLD.to_node_id, OLD.created_at) THEN
    RAISE EXCEPTION 'canonization % can only be withdrawn, once', OLD.id USING ERRCODE = 'LT005';
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER canonizations_guard BEFORE INSERT OR UPDATE OR DELETE ON canonizations FOR EACH ROW EXECUTE FUNCTION guard_canonizations();

CREATE TABLE citations (
  id uuid PRIMARY KEY,
  owner_id uuid NOT NULL,
  -- The question that quotes.
  node_id uuid NOT NULL REFERENCES nodes,
  source_tree_id uuid NOT NULL,
  source_node_id uuid NOT NULL,
  range_from integer NOT NULL CHECK (range_from >= 0),
  range_to integer NOT NULL CHECK (range_to > range_from),
  list_position integer NOT NULL,
  snapshot_content_id uuid NOT NULL REFERENCES contents,
  created_at timestamptz NOT NULL DEFAULT now(),
  UNIQUE (node_id, list_position),
  FOREIGN KEY (owner_id, source_tree_id) REFERENCES trees (owner_id, id),
  FOREIGN KEY (source_tree_id, source_node_id) REFERENCES nodes (tree_id, id)
);
CREATE INDEX citations_source ON citations (source_node_id);
CREATE TRIGGER citations_immutable BEFORE UPDATE OR DELETE ON citations FOR EACH ROW EXECUTE FUNCTION refuse_change();

-- ---------------------------------------------------------------- runs and the seat

-- One row per character: the queue's ticket and the last fence, neither of which ever goes back (decision 22).
CREATE TABLE seats (
  character_id uuid PRIMARY KEY REFERENCES characters,
  owner_id uuid NOT NULL,
  last_ticket bigint NOT NULL DEFAULT 0,
  first_ticket bigint NOT NULL DEFAULT 0,
  last_fence bigint NOT NULL DEFAULT 0
);
CREATE FUNCTION guard_seats() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF TG_OP = 'DELETE' OR NEW.last_fence < OLD.last_fence OR NEW.last_ticket < OLD.last_ticket OR NEW.first_ticket > OLD.first_ticket THEN
    RAISE EXCEPTION 'the seat of % never goes back', OLD.character_id USING ERRCODE = 'LT006';
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER seats_guard BEFORE UPDATE OR DELETE ON seats FOR EACH ROW EXECUTE FUNCTION guard_seats();

CREATE TABLE runs (
  id uuid PRIMARY KEY,
  owner_id uuid NOT NULL REFERENCES owners,
  kind text NOT NULL CHECK (kind IN ('answer', 'responsive', 'delegated', 'maintenance')),
  seated boolean NOT NULL,
  character_id uuid NOT NULL,
  tree_id uuid,
  parent_run_id uuid,
  -- The node that is answered, and the id its candidate will have.
  question_id uuid,
  candidate_id uuid UNIQUE,
  state text NOT NULL CHECK (state IN ('queued', 'running', 'suspended', 'finished', 'interrupted', 'failed')),
  reason text CHECK (length(reason) <= 64),
  ticket bigint,
  queued_at timestamptz,
  queue_expires_at timestamptz,
  fence bigint NOT NULL DEFAULT 0,
  holder text,
  lease_until timestamptz,
  persona_version_id uuid REFERENCES persona_versions,
  profile_version_id uuid REFERENCES profile_versions,
  protocol_version smallint NOT NULL,
  reducer_version smallint NOT NULL,
  trace_id uuid NOT NULL,
  -- Chosen for this node: model, effort, seed; numbers and slugs only.
  settings jsonb NOT NULL DEFAULT '{}',
  requested_at timestamptz NOT NULL DEFAULT now(),
  started_at timestamptz,
  ended_at timestamptz,
  UNIQUE (owner_id, id),
  FOREIGN KEY (owner_id, character_id) REFERENCES characters (owner_id, id),
  FOREIGN KEY (owner_id, tree_id) REFERENCES trees (owner_id, id),
  -- A sub-run names its parent, of the same owner.
  FOREIGN KEY (owner_id, parent_run_id) REFERENCES runs (owner_id, id),
  FOREIGN KEY (tree_id, question_id) REFERENCES nodes (tree_id, id),
  CHECK (seated = (kind IN ('answer', 'responsive'))),
  CHECK (state <> 'running' OR (holder IS NOT NULL AND lease_until IS NOT NULL AND fence > 0)),
  CHECK ((ended_at IS NULL) = (state IN ('queued', 'running', 'suspended')))
);
-- M5: one seated run per character, held by the database.
CREATE UNIQUE INDEX runs_one_seated ON runs (character_id) WHERE seated AND state = 'running';
CREATE INDEX runs_queue ON runs (character_id, ticket) WHERE state = 'queued';
CREATE INDEX runs_live ON runs (lease_until) WHERE state = 'running';
CREATE INDEX runs_owner ON runs (owner_id, requested_at DESC);
CREATE INDEX runs_tree ON runs (tree_id, requested_at DESC);
CREATE INDEX runs_question ON runs (question_id);

CREATE FUNCTION guard_runs() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF TG_OP = 'DELETE' THEN
    RAISE EXCEPTION 'run % cannot be deleted', OLD.id USING ERRCODE = 'LT006';
  END IF;
  IF NEW.fence < OLD.fence THEN
    RAISE EXCEPTION 'the fence of run % never goes back', OLD.id USING ERRCODE = 'LT006';
  END IF;
  IF OLD.state IN ('finished', 'interrupted', 'failed') AND NEW.state <> OLD.state THEN
    RAISE EXCEPTION 'run % has ended', OLD.id USING ERRCODE = 'LT006';
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER runs_guard BEFORE UPDATE OR DELETE ON runs FOR EACH ROW EXECUTE FUNCTION guard_runs();

-- Cancel, steer: durable when accepted; drained and recorded by the run's owner or the reaper (decision 16).
CREATE TABLE run_commands (
  id uuid PRIMARY KEY,
  run_id uuid NOT NULL REFERENCES runs,
  owner_id uuid NOT NULL,
  seq integer NOT NULL CHECK (seq > 0),
  kind text NOT NULL CHECK (kind IN ('cancel', 'steer', 'approval')),
  content_id uuid REFERENCES contents,
  accepted_at timestamptz NOT NULL DEFAULT now(),
  recorded_at timestamptz,
  used boolean,
  UNIQUE (run_id, seq),
  CHECK ((kind = 'steer') = (content_id IS NOT NULL))
);
CREATE INDEX run_commands_open ON run_commands (run_id) WHERE recorded_at IS NULL;

-- Deltas of a sprout until its seal folds them into one content row (decision 12).
CREATE TABLE segments (
  run_id uuid NOT NULL REFERENCES runs,
  ordinal integer NOT NULL CHECK (ordinal >= 0),
  part integer NOT NULL CHECK (part >= 0),
  kind text NOT NULL CHECK (kind IN ('text', 'reasoning')),
  body text NOT NULL,
  salt bytea NOT NULL CHECK (octet_length(salt) = 32),
  PRIMARY KEY (run_id, ordinal)
);
