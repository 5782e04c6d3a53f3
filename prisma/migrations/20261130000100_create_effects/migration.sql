-- What characters may do, what they asked to do, and what went out (K2, K3).

-- One layer of grants per place; what a person set last. Only ever narrower together (K2).
CREATE TABLE grants (
  owner_id uuid NOT NULL REFERENCES owners,
  scope text NOT NULL CHECK (scope IN ('owner', 'character', 'tree')),
  scope_id uuid NOT NULL,
  mode text NOT NULL CHECK (mode IN ('default', 'plan', 'auto')),
  classes text[] NOT NULL,
  tools text[],
  exact text[],
  class_rules jsonb NOT NULL DEFAULT '[]',
  max_cost_micros bigint CHECK (max_cost_micros >= 0),
  version integer NOT NULL DEFAULT 1 CHECK (version > 0),
  set_by uuid NOT NULL,
  set_at timestamptz NOT NULL,
  PRIMARY KEY (owner_id, scope, scope_id),
  CHECK (classes <@ ARRAY['read_only', 'reversible_local', 'code_executing', 'trust_mutating', 'irreversible_external']),
  CHECK (cardinality(tools) <= 200 AND cardinality(exact) <= 200),
  -- Nobody grants for somebody else.
  CONSTRAINT owner_grants CHECK (set_by = owner_id)
);

-- The durable ledger of effects: bound once to a key, claimed by fence, settled once.
CREATE TABLE effects (
  id uuid PRIMARY KEY,
  owner_id uuid NOT NULL,
  character_id uuid NOT NULL,
  run_id uuid NOT NULL,
  action_id uuid NOT NULL,
  tool text COLLATE "C" NOT NULL CHECK (length(tool) BETWEEN 1 AND 64),
  capability text NOT NULL CHECK (capability IN ('read_only', 'reversible_local', 'code_executing', 'trust_mutating', 'irreversible_external')),
  consequence text NOT NULL CHECK (consequence IN ('none', 'lasting')),
  constraints text[] NOT NULL,
  resource text COLLATE "C" NOT NULL CHECK (length(resource) BETWEEN 1 AND 64),
  idempotency_key text COLLATE "C" NOT NULL CHECK (length(idempotency_key) BETWEEN 1 AND 128),
  arguments_content_id uuid NOT NULL REFERENCES contents,
  arguments_hash text COLLATE "C" NOT NULL CHECK (length(arguments_hash) = 64),
  reserved_micros bigint NOT NULL DEFAULT 0 CHECK (reserved_micros >= 0),
  state text NOT NULL DEFAULT 'intent' CHECK (state IN
    ('intent', 'executing', 'done', 'failed', 'denied', 'unknown', 'reconciled_done', 'reconciled_failed', 'abandoned')),
  code text CHECK (length(code) <= 64),
  outcome_content_id uuid REFERENCES contents,
  cost_micros bigint CHECK (cost_micros >= 0),
  claim_holder text,
  claim_fence bigint NOT NULL DEFAULT 0,
  claim_until timestamptz,
  created_at timestamptz NOT NULL DEFAULT now(),
  dispatched_at timestamptz,
  settled_at timestamptz,
  UNIQUE (owner_id, resource, idempotency_key),
  FOREIGN KEY (owner_id, run_id) REFERENCES runs (owner_id, id),
  FOREIGN KEY (owner_id, character_id) REFERENCES characters (owner_id, id),
  CHECK (state <> 'executing' OR claim_holder IS NOT NULL),
  CHECK (state NOT IN ('executing', 'done', 'unknown') OR dispatched_at IS NOT NULL OR state = 'done')
);
CREATE INDEX effects_open ON effects (run_id) WHERE state IN ('intent', 'executing', 'unknown');
CREATE INDEX effects_unknown ON effects (owner_id, created_at) WHERE state = 'unknown' AND consequence = 'lasting';
CREATE INDEX effects_action ON effects (run_id, action_id);

-- One dispatch terminal, one settlement, no way back (case E16).
CREATE FUNCTION guard_effects() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF TG_OP = 'DELETE' THEN
    RAISE EXCEPTION 'effect % cannot be deleted', OLD.id USING ERRCODE = 'LT011';
  END IF;
  IF TG_OP = 'INSERT' THEN
    IF NEW.state <> 'intent' THEN
      RAISE EXCEPTION 'effect % begins as an intent', NEW.id USING ERRCODE = 'LT011';
    END IF;
    RETURN NEW;
  END IF;
  IF ROW(NEW.id, NEW.owner_id, NEW.character_id, NEW.run_id, NEW.action_id, NEW.tool, NEW.capability, NEW.consequence, NEW.constraints,
         NEW.resource, NEW.idempotency_key, NEW.arguments_content_id, NEW.arguments_hash, NEW.reserved_micros, NEW.created_at)
     IS DISTINCT FROM
     ROW(OLD.id, OLD.owner_id, OLD.character_id, OLD.run_id, OLD.action_id, OLD.tool, OLD.capability, OLD.consequence, OLD.constraints,
         OLD.resource, OLD.idempotency_key, OLD.arguments_content_id, OLD.arguments_hash, OLD.reserved_micros, OLD.created_at) THEN
    RAISE EXCEPTION 'what effect % was bound to is fixed', OLD.id USING ERRCODE = 'LT011';
  END IF;
  IF NEW.claim_fence < OLD.claim_fence THEN
    RAISE EXCEPTION 'the claim on effect % never goes back', OLD.id USING ERRCODE = 'LT011';
  END IF;
  IF NEW.state <> OLD.state AND NOT (
       (OLD.state = 'intent' AND NEW.state IN ('executing', 'done', 'failed', 'denied'))
    OR (OLD.state = 'executing' AND NEW.state IN ('done', 'failed', 'unknown'))
    OR (OLD.state = 'unknown' AND NEW.state IN ('reconciled_done', 'reconciled_failed', 'abandoned'))) THEN
    RAISE EXCEPTION 'effect % cannot go from % to %', OLD.id, OLD.state, NEW.state USING ERRCODE = 'LT011';
  END IF;
  IF NEW.state = OLD.state AND OLD.settled_at IS NOT NULL
     AND ROW(NEW.code, NEW.outcome_content_id, NEW.cost_micros, NEW.settled_at) IS DISTINCT FROM ROW(OLD.code, OLD.outcome_content_id, OLD.cost_micros, OLD.settled_at) THEN
    RAISE EXCEPTION 'effect % is settled', OLD.id USING ERRCODE = 'LT011';
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER effects_guard BEFORE INSERT OR UPDATE OR DELETE ON effects FOR EACH ROW EXECUTE FUNCTION guard_effects();

-- Where a run stopped to wait: the loop's own state, ids and numbers only. The newest one counts.
CREATE TABLE checkpoints (
  id uuid PRIMARY KEY,
  owner_id uuid NOT NULL,
  run_id uuid NOT NULL,
  event_offset bigint NOT NULL CHECK (event_offset > 0),
  reducer_version smallint NOT NULL,
  state jsonb NOT NULL,
  spent_wall_ms bigint NOT NULL CHECK (spent_wall_ms >= 0),
  created_at timestamptz NOT NULL DEFAULT now(),
  UNIQUE (run_id, event_offset),
  FOREIGN KEY (owner_id, run_id) REFERENCES runs (owner_id, id)
);
CREATE TRIGGER checkpoints_immutable BEFORE UPDATE OR DELETE ON checkpoints FOR EACH ROW EXECUTE FUNCTION refuse_change();

-- A question to the owner about one action with exactly these arguments; a yes serves once.
CREATE TABLE approvals (
  id uuid PRIMARY KEY,
  owner_id uuid NOT NULL,
  character_id uuid NOT NULL,
  run_id uuid NOT NULL,
  action_id uuid NOT NULL,
  tool text COLLATE "C" NOT NULL CHECK (length(tool) BETWEEN 1 AND 64),
  tool_version text NOT NULL,
  capability text NOT NULL CHECK (capability IN ('read_only', 'reversible_local', 'code_executing', 'trust_mutating', 'irreversible_external')),
  reason text NOT NULL,
  arguments_content_id uuid NOT NULL REFERENCES contents,
  arguments_hash text COLLATE "C" NOT NULL CHECK (length(arguments_hash) = 64),
  profile_hash text NOT NULL,
  policy_version integer NOT NULL,
  state text NOT NULL DEFAULT 'pending' CHECK (state IN ('pending', 'approved', 'refused', 'expired', 'revoked', 'used')),
  expires_at timestamptz NOT NULL,
  decided_by uuid,
  decided_at timestamptz,
  created_at timestamptz NOT NULL DEFAULT now(),
  UNIQUE (run_id, action_id),
  FOREIGN KEY (owner_id, run_id) REFERENCES runs (owner_id, id),
  FOREIGN KEY (owner_id, character_id) REFERENCES characters (owner_id, id),
  -- Only the owner says yes (K2, decision 35).
  CONSTRAINT owner_approves CHECK (state NOT IN ('approved', 'used') OR decided_by = owner_id),
  CHECK ((state = 'pending') = (decided_at IS NULL))
);
CREATE INDEX approvals_inbox ON approvals (owner_id, created_at DESC) WHERE state = 'pending';
CREATE INDEX approvals_due ON approvals (expires_at) WHERE state = 'pending';

CREATE FUNCTION guard_approvals() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF TG_OP = 'DELETE' THEN
    RAISE EXCEPTION 'approval % cannot be deleted', OLD.id USING ERRCODE = 'LT012';
  END IF;
  IF TG_OP = 'INSERT' THEN
    IF NEW.state <> 'pending' THEN
      RAISE EXCEPTION 'approval % begins as a question', NEW.id USING ERRCODE = 'LT012';
    END IF;
    RETURN NEW;
  END IF;
  IF ROW(NEW.id, NEW.owner_id, NEW.character_id, NEW.run_id, NEW.action_id, NEW.tool, NEW.tool_version, NEW.capability, NEW.reason,
         NEW.arguments_content_id, NEW.arguments_hash, NEW.profile_hash, NEW.policy_version, NEW.expires_at, NEW.created_at)
     IS DISTINCT FROM
     ROW(OLD.id, OLD.owner_id, OLD.character_id, OLD.run_id, OLD.action_id, OLD.tool, OLD.tool_version, OLD.capability, OLD.reason,
         OLD.arguments_content_id, OLD.arguments_hash, OLD.profile_hash, OLD.policy_version, OLD.expires_at, OLD.created_at) THEN
    RAISE EXCEPTION 'what approval % was asked for is fixed', OLD.id USING ERRCODE = 'LT012';
  END IF;
  IF NEW.state <> OLD.state AND NOT (
       (OLD.state = 'pending' AND NEW.state IN ('approved', 'refused', 'expired', 'revoked'))
    OR (OLD.state = 'approved' AND NEW.state IN ('used', 'revoked'))) THEN
    RAISE EXCEPTION 'approval % cannot go from % to %', OLD.id, OLD.state, NEW.state USING ERRCODE = 'LT012';
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER approvals_guard BEFORE INSERT OR UPDATE OR DELETE ON approvals FOR EACH ROW EXECUTE FUNCTION guard_approvals();
