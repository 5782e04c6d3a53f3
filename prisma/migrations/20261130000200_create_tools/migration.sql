-- What tools keep: a character's notes, the keys of what was done to them, and the tool sources of an owner.

-- ---------------------------------------------------------------- notes

-- Notes of a character, apart per realm: what is noted in a fiction stays there. Numbers are how a model names them.
CREATE TABLE notes (
  id uuid PRIMARY KEY,
  owner_id uuid NOT NULL,
  character_id uuid NOT NULL,
  realm_id uuid NOT NULL,
  number integer NOT NULL CHECK (number > 0),
  current_version integer NOT NULL CHECK (current_version > 0),
  created_at timestamptz NOT NULL,
  UNIQUE (owner_id, id),
  UNIQUE (character_id, realm_id, number),
  FOREIGN KEY (owner_id, character_id) REFERENCES characters (owner_id, id),
  FOREIGN KEY (owner_id, realm_id) REFERENCES realms (owner_id, id)
);

-- A deletion is a version without content: every step can be taken back by a further version.
CREATE TABLE note_versions (
  note_id uuid NOT NULL,
  version integer NOT NULL CHECK (version > 0),
  owner_id uuid NOT NULL,
  content_id uuid REFERENCES contents,
  -- The meet of what it was written from, for ever (K1).
  trust text NOT NULL CHECK (trust IN ('untrusted', 'workspace', 'trusted')),
  run_id uuid NOT NULL,
  created_at timestamptz NOT NULL,
  PRIMARY KEY (note_id, version),
  FOREIGN KEY (owner_id, note_id) REFERENCES notes (owner_id, id) DEFERRABLE INITIALLY DEFERRED,
  FOREIGN KEY (owner_id, run_id) REFERENCES runs (owner_id, id)
);
ALTER TABLE notes ADD FOREIGN KEY (id, current_version) REFERENCES note_versions (note_id, version) DEFERRABLE INITIALLY DEFERRED;
CREATE TRIGGER note_versions_immutable BEFORE UPDATE OR DELETE ON note_versions FOR EACH ROW EXECUTE FUNCTION refuse_change();

CREATE FUNCTION guard_notes() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF TG_OP = 'DELETE' OR NEW.current_version <> OLD.current_version + 1
     OR to_jsonb(NEW) - 'current_version' <> to_jsonb(OLD) - 'current_version' THEN
    RAISE EXCEPTION 'note % only ever gains versions', OLD.id USING ERRCODE = 'LT001';
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER notes_guard BEFORE UPDATE OR DELETE ON notes FOR EACH ROW EXECUTE FUNCTION guard_notes();

-- What was done under which key, bound to its arguments: written with the version itself, so that a look-up is authoritative.
CREATE TABLE note_keys (
  owner_id uuid NOT NULL,
  key text COLLATE "C" NOT NULL CHECK (length(key) BETWEEN 1 AND 512),
  arguments_hash bytea NOT NULL CHECK (octet_length(arguments_hash) = 32),
  note_id uuid NOT NULL,
  version integer NOT NULL,
  created_at timestamptz NOT NULL,
  PRIMARY KEY (owner_id, key),
  FOREIGN KEY (owner_id, note_id) REFERENCES notes (owner_id, id),
  FOREIGN KEY (note_id, version) REFERENCES note_versions (note_id, version)
);
CREATE TRIGGER note_keys_immutable BEFORE UPDATE OR DELETE ON note_keys FOR EACH ROW EXECUTE FUNCTION refuse_change();

-- ---------------------------------------------------------------- tool sources

-- Where an owner's further tools come from. What is declared is fixed; another declaration is another source.
CREATE TABLE tool_sources (
  id uuid PRIMARY KEY,
  owner_id uuid NOT NULL REFERENCES owners,
  -- The first part of its tools' names.
  name text COLLATE "C" NOT NULL CHECK (name ~ '^[a-z0-9][a-z0-9_-]{0,23}$'),
  kind text NOT NULL CHECK (kind IN ('http', 'openapi', 'mcp')),
  -- The declaration without its secrets.
  settings jsonb NOT NULL,
  created_at timestamptz NOT NULL,
  deleted_at timestamptz,
  UNIQUE (owner_id, id)
);
CREATE UNIQUE INDEX tool_sources_name ON tool_sources (owner_id, name) WHERE deleted_at IS NULL;

-- Header values, encrypted (decision 38). Gone with their source.
CREATE TABLE tool_source_secrets (
  source_id uuid PRIMARY KEY,
  owner_id uuid NOT NULL,
  key_id text COLLATE "C" NOT NULL CHECK (key_id ~ '^[A-Za-z0-9_-]{1,32}$'),
  sealed bytea NOT NULL,
  FOREIGN KEY (owner_id, source_id) REFERENCES tool_sources (owner_id, id)
);

-- What a source offers, as it was last seen, and which version of it the owner has accepted; only where the two agree it is a tool.
CREATE TABLE tool_source_tools (
  source_id uuid NOT NULL,
  name text COLLATE "C" NOT NULL CHECK (name ~ '^[A-Za-z0-9_.-]{1,64}$'),
  owner_id uuid NOT NULL,
  -- Description, parameters, how it is called, and the class it has at least.
  declaration jsonb NOT NULL,
  version text COLLATE "C" NOT NULL CHECK (version ~ '^[0-9a-f]{64}$'),
  accepted_version text COLLATE "C" CHECK (accepted_version ~ '^[0-9a-f]{64}$'),
  -- As the owner set it; null: as declared.
  capability text CHECK (capability IN ('read_only', 'reversible_local', 'code_executing', 'trust_mutating', 'irreversible_external')),
  -- No longer offered by the far side.
  missing boolean NOT NULL DEFAULT false,
  seen_at timestamptz NOT NULL,
  PRIMARY KEY (source_id, name),
  FOREIGN KEY (owner_id, source_id) REFERENCES tool_sources (owner_id, id)
);
CREATE INDEX tool_source_tools_owner ON tool_source_tools (owner_id);
