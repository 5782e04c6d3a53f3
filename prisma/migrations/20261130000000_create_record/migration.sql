-- What is said of the record as a whole: signed anchors over the heads of its streams, and which of them are broken (decision 18).

-- One signed statement: which heads stood where. `canonical` is what the signature covers: number, instance, epoch, time, count and
-- Merkle root of the heads, the hash of the anchor before. Every anchor also stands in a file outside the database.
CREATE TABLE anchors (
  seq integer PRIMARY KEY CHECK (seq > 0),
  canonical text NOT NULL,
  -- SHA-256 of the canonical bytes.
  hash bytea NOT NULL UNIQUE CHECK (octet_length(hash) = 32),
  -- Ed25519.
  public_key bytea NOT NULL CHECK (octet_length(public_key) = 32),
  signature bytea NOT NULL CHECK (octet_length(signature) = 64)
);
CREATE TRIGGER anchors_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON anchors FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();

-- The heads that an anchor covers: those that moved since the anchor that covered them last.
CREATE TABLE anchor_heads (
  anchor_seq integer NOT NULL REFERENCES anchors DEFERRABLE INITIALLY DEFERRED,
  stream text COLLATE "C" NOT NULL,
  seq bigint NOT NULL CHECK (seq > 0),
  hash bytea NOT NULL CHECK (octet_length(hash) = 32),
  PRIMARY KEY (anchor_seq, stream)
);
CREATE INDEX anchor_heads_stream ON anchor_heads (stream, anchor_seq DESC);
CREATE TRIGGER anchor_heads_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON anchor_heads FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();

-- ---------------------------------------------------------------- broken chains

-- Asked before anything goes on from a place of a tree (K5); next to nothing is in it.
CREATE INDEX streams_quarantined ON streams (stream) WHERE quarantined_at IS NOT NULL;
