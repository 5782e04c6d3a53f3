-- Delegated work: tasks, attempts, actions, and what came of them. Each is a thing of its own and none is a line in a chat.

-- What somebody wants done, within which bounds, and what counts as done.
CREATE TABLE tasks (
  id uuid PRIMARY KEY,
  owner_id uuid NOT NULL REFERENCES owners,
  character_id uuid NOT NULL,
  contract_version integer NOT NULL CHECK (contract_version > 0),
  -- Who asked for it, and whose yes commits its result: different things, even where they are one person.
  requested_by uuid NOT NULL,
  commit_authority uuid NOT NULL,
  -- What a run handed on: by which action of it, once for each; how deep; and under the grants of which tree (K2, K6).
  parent_run_id uuid,
  parent_action_id uuid,
  depth integer NOT NULL DEFAULT 0 CHECK (depth BETWEEN 0 AND 3),
  grant_tree_id uuid,
  instruction_content_id uuid NOT NULL REFERENCES contents,
  acceptance_content_id uuid NOT NULL REFERENCES contents,
  input_refs uuid[] NOT NULL DEFAULT '{}',
  -- The meet of instruction and inputs (K1).
  trust text NOT NULL CHECK (trust IN ('untrusted', 'workspace', 'trusted')),
  risk text NOT NULL CHECK (risk IN ('low', 'medium', 'high')),
  needs jsonb NOT NULL,
  tools text[] COLLATE "C" NOT NULL CHECK (cardinality(tools) <= 64),
  classification text NOT NULL CHECK (classification IN ('public', 'internal', 'confidential')),
  retention text NOT NULL CHECK (retention IN ('keep', 'until_done')),
  max_cost_micros bigint CHECK (max_cost_micros >= 0),
  max_actions integer NOT NULL CHECK (max_actions >= 0),
  spent_micros bigint NOT NULL DEFAULT 0 CHECK (spent_micros >= 0),
  reserved_micros bigint NOT NULL DEFAULT 0 CHECK (reserved_micros >= 0),
  used_actions integer NOT NULL DEFAULT 0 CHECK (used_actions >= 0),
  max_repairs integer NOT NULL CHECK (max_repairs BETWEEN 0 AND 5),
  repairs integer NOT NULL DEFAULT 0 CHECK (repairs >= 0 AND repairs <= max_repairs),
  status text NOT NULL DEFAULT 'open' CHECK (status IN ('open', 'verified', 'needs_escalation', 'done', 'cancelling', 'cancelled')),
  cancel_requested_at timestamptz,
  created_at timestamptz NOT NULL,
  ended_at timestamptz,
  UNIQUE (owner_id, id),
  UNIQUE (owner_id, parent_action_id),
  FOREIGN KEY (owner_id, character_id) REFERENCES characters (owner_id, id),
  FOREIGN KEY (owner_id, parent_run_id) REFERENCES runs (owner_id, id),
  FOREIGN KEY (owner_id, grant_tree_id) REFERENCES trees (owner_id, id),
  CONSTRAINT handed_on CHECK ((depth > 0) = (parent_run_id IS NOT NULL) AND (parent_run_id IS NULL) = (parent_action_id IS NULL)),
  -- Nobody asks, and nobody commits, in somebody else's name.
  CONSTRAINT owner_commits CHECK (requested_by = owner_id AND commit_authority = owner_id),
  -- A bound is never passed, not even by what may still happen (K6).
  CONSTRAINT within_budget CHECK (max_cost_micros IS NULL OR spent_micros + reserved_micros <= max_cost_micros),
  CONSTRAINT within_actions CHECK (used_actions <= max_actions),
  CHECK ((ended_at IS NULL) = (status NOT IN ('done', 'cancelled'))),
  CHECK (status NOT IN ('cancelling', 'cancelled') OR cancel_requested_at IS NOT NULL),
  CHECK (status <> 'done' OR cancel_requested_at IS NULL)
);
CREATE INDEX tasks_owner ON tasks (owner_id, created_at DESC, id DESC);
CREATE INDEX tasks_parent ON tasks (parent_run_id) WHERE parent_run_id IS NOT NULL;
CREATE INDEX tasks_cancelling ON tasks (cancel_requested_at) WHERE status = 'cancelling';

CREATE FUNCTION guard_tasks() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF TG_OP = 'DELETE' THEN
    RAISE EXCEPTION 'task % cannot be deleted', OLD.id USING ERRCODE = 'LT013';
  END IF;
  IF to_jsonb(NEW) - ARRAY['status', 'spent_micros', 'reserved_micros', 'used_actions', 'repairs', 'cancel_requested_at', 'ended_at']
     <> to_jsonb(OLD) - ARRAY['status', 'spent_micros', 'reserved_micros', 'used_actions', 'repairs', 'cancel_requested_at', 'ended_at'] THEN
    RAISE EXCEPTION 'what task % is about is fixed', OLD.id USING ERRCODE = 'LT013';
  END IF;
  IF OLD.cancel_requested_at IS NOT NULL AND NEW.cancel_requested_at IS DISTINCT FROM OLD.cancel_requested_at THEN
    RAISE EXCEPTION 'task % stays cancelled', OLD.id USING ERRCODE = 'LT013';
  END IF;
  IF NEW.used_actions < OLD.used_actions THEN
    RAISE EXCEPTION 'task % takes no action back', OLD.id USING ERRCODE = 'LT013';
  END IF;
  IF NEW.status <> OLD.status AND NOT (
       (OLD.status = 'open' AND NEW.status IN ('verified', 'needs_escalation', 'cancelling'))
    OR (OLD.status = 'verified' AND NEW.status IN ('done', 'cancelling'))
    OR (OLD.status = 'needs_escalation' AND NEW.status IN ('open', 'cancelling'))
    OR (OLD.status = 'cancelling' AND NEW.status = 'cancelled')) THEN
    RAISE EXCEPTION 'task % cannot go from % to %', OLD.id, OLD.status, NEW.status USING ERRCODE = 'LT013';
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER tasks_guard BEFORE UPDATE OR DELETE ON tasks FOR EACH ROW EXECUTE FUNCTION guard_tasks();

-- One try at a task; it is a run of kind `delegated`, under the same id.
CREATE TABLE task_attempts (
  id uuid PRIMARY KEY,
  owner_id uuid NOT NULL,
  task_id uuid NOT NULL,
  ordinal integer NOT NULL CHECK (ordinal > 0),
  runtime text NOT NULL CHECK (runtime IN ('external', 'builtin', 'remote')),
  runtime_version text NOT NULL CHECK (length(runtime_version) BETWEEN 1 AND 64),
  -- Digest of the resolved profile that it is pinned to.
  harness_profile text COLLATE "C" NOT NULL CHECK (harness_profile ~ '^[0-9a-f]{64}$'),
  workspace_ref text CHECK (length(workspace_ref) <= 64),
  policy_profile text NOT NULL CHECK (length(policy_profile) BETWEEN 1 AND 64),
  -- What a failed verification told it to mend; the attempt before it, where there is one.
  diagnostics_content_id uuid REFERENCES contents,
  reserved_micros bigint NOT NULL DEFAULT 0 CHECK (reserved_micros >= 0),
  status text NOT NULL DEFAULT 'active' CHECK (status IN
    ('active', 'waiting_for_approval', 'waiting_for_effect', 'reconcile_required', 'candidate_verified', 'needs_escalation', 'interrupted', 'cancelled')),
  started_at timestamptz NOT NULL,
  ended_at timestamptz,
  UNIQUE (owner_id, id),
  UNIQUE (task_id, id),
  UNIQUE (task_id, ordinal),
  FOREIGN KEY (owner_id, task_id) REFERENCES tasks (owner_id, id),
  FOREIGN KEY (owner_id, id) REFERENCES runs (owner_id, id),
  CHECK ((ended_at IS NULL) = (status IN ('active', 'waiting_for_approval', 'waiting_for_effect', 'reconcile_required')))
);
CREATE UNIQUE INDEX task_attempts_one_live ON task_attempts (task_id) WHERE ended_at IS NULL;

CREATE FUNCTION guard_task_attempts() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF TG_OP = 'DELETE' OR OLD.ended_at IS NOT NULL
     OR to_jsonb(NEW) - ARRAY['status', 'ended_at', 'reserved_micros'] <> to_jsonb(OLD) - ARRAY['status', 'ended_at', 'reserved_micros'] THEN
    RAISE EXCEPTION 'attempt % is fixed, and over once it ended', OLD.id USING ERRCODE = 'LT013';
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER task_attempts_guard BEFORE UPDATE OR DELETE ON task_attempts FOR EACH ROW EXECUTE FUNCTION guard_task_attempts();

-- One thing that an attempt wants done, bound once to its key, its target and its arguments.
CREATE TABLE task_actions (
  id uuid PRIMARY KEY,
  owner_id uuid NOT NULL,
  task_id uuid NOT NULL,
  attempt_id uuid NOT NULL,
  ordinal integer NOT NULL CHECK (ordinal > 0),
  actor text NOT NULL CHECK (actor IN ('owner', 'agent', 'verifier')),
  tool text COLLATE "C" NOT NULL CHECK (length(tool) BETWEEN 1 AND 64),
  resource text COLLATE "C" NOT NULL CHECK (length(resource) BETWEEN 1 AND 64),
  idempotency_key text COLLATE "C" NOT NULL CHECK (length(idempotency_key) BETWEEN 1 AND 64),
  arguments_content_id uuid NOT NULL REFERENCES contents,
  arguments_hash text COLLATE "C" NOT NULL CHECK (arguments_hash ~ '^[0-9a-f]{64}$'),
  -- What the submitter says it may cost at most; null: what the tool's contract says.
  cost_micros bigint CHECK (cost_micros > 0),
  trust text NOT NULL CHECK (trust IN ('untrusted', 'workspace', 'trusted')),
  -- It waits for no other action, and none waits for it.
  independent boolean NOT NULL,
  side_effect_class text CHECK (side_effect_class IN ('read_only', 'reversible_local', 'code_executing', 'trust_mutating', 'irreversible_external')),
  state text NOT NULL DEFAULT 'proposed' CHECK (state IN
    ('proposed', 'waiting', 'dispatched', 'committed', 'failed', 'denied', 'unknown', 'abandoned', 'budget_exhausted', 'cancelled')),
  reason text CHECK (length(reason) <= 64),
  effect_id uuid REFERENCES effects,
  approval_id uuid REFERENCES approvals,
  reserved_micros bigint NOT NULL DEFAULT 0 CHECK (reserved_micros >= 0),
  charged_micros bigint CHECK (charged_micros >= 0),
  created_at timestamptz NOT NULL,
  settled_at timestamptz,
  UNIQUE (owner_id, id),
  UNIQUE (owner_id, resource, idempotency_key),
  UNIQUE (task_id, idempotency_key),
  UNIQUE (attempt_id, ordinal),
  FOREIGN KEY (task_id, attempt_id) REFERENCES task_attempts (task_id, id),
  FOREIGN KEY (owner_id, attempt_id) REFERENCES task_attempts (owner_id, id),
  CHECK ((settled_at IS NULL) = (state IN ('proposed', 'waiting', 'dispatched', 'unknown'))),
  CHECK (state NOT IN ('dispatched', 'committed', 'failed', 'unknown', 'abandoned') OR effect_id IS NOT NULL),
  CHECK (state <> 'waiting' OR approval_id IS NOT NULL)
);
CREATE INDEX task_actions_open ON task_actions (attempt_id, ordinal) WHERE settled_at IS NULL;

-- What was decided once stays: a late word never takes a recorded outcome back.
CREATE FUNCTION guard_task_actions() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF TG_OP = 'DELETE' THEN
    RAISE EXCEPTION 'action % cannot be deleted', OLD.id USING ERRCODE = 'LT013';
  END IF;
  IF TG_OP = 'INSERT' THEN
    IF NEW.state <> 'proposed' THEN
      RAISE EXCEPTION 'action % begins as a proposal', NEW.id USING ERRCODE = 'LT013';
    END IF;
    RETURN NEW;
  END IF;
  IF to_jsonb(NEW) - ARRAY['state', 'reason', 'side_effect_class', 'effect_id', 'approval_id', 'reserved_micros', 'charged_micros', 'settled_at']
     <> to_jsonb(OLD) - ARRAY['state', 'reason', 'side_effect_class', 'effect_id', 'approval_id', 'reserved_micros', 'charged_micros', 'settled_at'] THEN
    RAISE EXCEPTION 'what action % is bound to is fixed', OLD.id USING ERRCODE = 'LT013';
  END IF;
  IF OLD.settled_at IS NOT NULL
     OR (OLD.effect_id IS NOT NULL AND NEW.effect_id IS DISTINCT FROM OLD.effect_id)
     OR (OLD.approval_id IS NOT NULL AND NEW.approval_id IS DISTINCT FROM OLD.approval_id) THEN
    RAISE EXCEPTION 'action % is settled or bound', OLD.id USING ERRCODE = 'LT013';
  END IF;
  IF NEW.state <> OLD.state AND NOT (
       (OLD.state = 'proposed' AND NEW.state IN ('waiting', 'dispatched', 'denied', 'budget_exhausted', 'cancelled'))
    OR (OLD.state = 'waiting' AND NEW.state IN ('dispatched', 'denied', 'budget_exhausted', 'cancelled'))
    OR (OLD.state = 'dispatched' AND NEW.state IN ('committed', 'failed', 'denied', 'unknown', 'abandoned', 'cancelled'))
    OR (OLD.state = 'unknown' AND NEW.state IN ('committed', 'failed'))) THEN
    RAISE EXCEPTION 'action % cannot go from % to %', OLD.id, OLD.state, NEW.state USING ERRCODE = 'LT013';
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER task_actions_guard BEFORE INSERT OR UPDATE OR DELETE ON task_actions FOR EACH ROW EXECUTE FUNCTION guard_task_actions();

-- Every verdict on every action, with what it was a function of.
CREATE TABLE policy_decisions (
  id uuid PRIMARY KEY,
  owner_id uuid NOT NULL,
  action_id uuid NOT NULL,
  decision text NOT NULL CHECK (decision IN ('ALLOW', 'CONSTRAINED_ALLOW', 'REQUIRE_APPROVAL', 'DENY')),
  constraints text[] NOT NULL,
  policy_version integer NOT NULL,
  reason_code text NOT NULL CHECK (length(reason_code) BETWEEN 1 AND 64),
  approval_request_id uuid REFERENCES approvals,
  facts jsonb NOT NULL,
  at timestamptz NOT NULL,
  FOREIGN KEY (owner_id, action_id) REFERENCES task_actions (owner_id, id),
  -- Within limits means within at least one.
  CHECK ((decision = 'CONSTRAINED_ALLOW') = (cardinality(constraints) > 0))
);
CREATE INDEX policy_decisions_action ON policy_decisions (action_id, id);
CREATE TRIGGER policy_decisions_immutable BEFORE UPDATE OR DELETE ON policy_decisions FOR EACH ROW EXECUTE FUNCTION refuse_change();

-- What was seen of an action.
CREATE TABLE observations (
  id uuid PRIMARY KEY,
  owner_id uuid NOT NULL,
  action_id uuid NOT NULL,
  status text NOT NULL CHECK (status IN ('committed', 'failed', 'denied', 'unknown', 'abandoned', 'budget_exhausted', 'cancelled')),
  content_id uuid REFERENCES contents,
  artifact_refs uuid[] NOT NULL DEFAULT '{}',
  diagnostics text CHECK (length(diagnostics) <= 64),
  -- Which version of the tool it was seen through.
  environment_revision text CHECK (length(environment_revision) <= 64),
  trust text NOT NULL CHECK (trust IN ('untrusted', 'workspace', 'trusted')),
  at timestamptz NOT NULL,
  FOREIGN KEY (owner_id, action_id) REFERENCES task_actions (owner_id, id)
);
CREATE INDEX observations_action ON observations (action_id, id);
CREATE TRIGGER observations_immutable BEFORE UPDATE OR DELETE ON observations FOR EACH ROW EXECUTE FUNCTION refuse_change();

-- What an attempt hands over, sealed by its hash.
CREATE TABLE artifacts (
  id uuid PRIMARY KEY,
  owner_id uuid NOT NULL,
  task_id uuid NOT NULL,
  attempt_id uuid NOT NULL,
  candidate_id uuid NOT NULL,
  ordinal integer NOT NULL CHECK (ordinal > 0),
  content_id uuid NOT NULL REFERENCES contents,
  hash text COLLATE "C" NOT NULL CHECK (hash ~ '^[0-9a-f]{64}$'),
  media_type text NOT NULL CHECK (media_type IN ('text/plain', 'text/markdown', 'application/json')),
  producer text NOT NULL CHECK (producer IN ('external', 'builtin', 'remote')),
  classification text NOT NULL CHECK (classification IN ('public', 'internal', 'confidential')),
  retention_policy text NOT NULL CHECK (retention_policy IN ('keep', 'until_done')),
  input_refs uuid[] NOT NULL DEFAULT '{}',
  trust text NOT NULL CHECK (trust IN ('untrusted', 'workspace', 'trusted')),
  created_at timestamptz NOT NULL,
  UNIQUE (candidate_id, ordinal),
  FOREIGN KEY (task_id, attempt_id) REFERENCES task_attempts (task_id, id),
  FOREIGN KEY (owner_id, attempt_id) REFERENCES task_attempts (owner_id, id)
);
CREATE INDEX artifacts_task ON artifacts (task_id);
CREATE TRIGGER artifacts_immutable BEFORE UPDATE OR DELETE ON artifacts FOR EACH ROW EXECUTE FUNCTION refuse_change();

-- Where an attempt stood whenever it stopped to wait; the newest one counts.
CREATE TABLE attempt_checkpoints (
  id uuid PRIMARY KEY,
  owner_id uuid NOT NULL,
  attempt_id uuid NOT NULL,
  state_version integer NOT NULL CHECK (state_version > 0),
  -- In the task's own stream.
  event_offset bigint NOT NULL CHECK (event_offset > 0),
  workspace_ref text CHECK (length(workspace_ref) <= 64),
  pending_effect_ids uuid[] NOT NULL,
  context_projection_ref uuid,
  state jsonb NOT NULL,
  at timestamptz NOT NULL,
  UNIQUE (attempt_id, event_offset),
  FOREIGN KEY (owner_id, attempt_id) REFERENCES task_attempts (owner_id, id)
);
CREATE TRIGGER attempt_checkpoints_immutable BEFORE UPDATE OR DELETE ON attempt_checkpoints FOR EACH ROW EXECUTE FUNCTION refuse_change();

-- What the verifiers found of one candidate.
CREATE TABLE verification_results (
  id uuid PRIMARY KEY,
  owner_id uuid NOT NULL,
  task_id uuid NOT NULL,
  attempt_id uuid NOT NULL,
  candidate_id uuid NOT NULL UNIQUE,
  contract_version integer NOT NULL,
  verifier_version integer NOT NULL,
  checks jsonb NOT NULL,
  status text NOT NULL CHECK (status IN ('passed', 'failed')),
  evidence_refs uuid[] NOT NULL,
  environment_ref text COLLATE "C" NOT NULL CHECK (length(environment_ref) = 64),
  at timestamptz NOT NULL,
  FOREIGN KEY (task_id, attempt_id) REFERENCES task_attempts (task_id, id),
  FOREIGN KEY (owner_id, attempt_id) REFERENCES task_attempts (owner_id, id),
  -- Nothing was checked is not the same as nothing was wrong.
  CONSTRAINT passed_by_checks CHECK (
    status <> 'passed' OR (jsonb_array_length(checks) > 0 AND NOT jsonb_path_exists(checks, '$[*] ? (@.status != "passed")')))
);
CREATE INDEX verification_results_task ON verification_results (task_id, at);
CREATE TRIGGER verification_results_immutable BEFORE UPDATE OR DELETE ON verification_results FOR EACH ROW EXECUTE FUNCTION refuse_change();

-- What was there when the owner committed: one per task.
CREATE TABLE evidence_packages (
  task_id uuid PRIMARY KEY,
  owner_id uuid NOT NULL,
  verification_id uuid NOT NULL REFERENCES verification_results,
  committed_by uuid NOT NULL,
  content_id uuid NOT NULL REFERENCES contents,
  digest text COLLATE "C" NOT NULL CHECK (digest ~ '^[0-9a-f]{64}$'),
  at timestamptz NOT NULL,
  FOREIGN KEY (owner_id, task_id) REFERENCES tasks (owner_id, id),
  CONSTRAINT owner_committed CHECK (committed_by = owner_id)
);
CREATE TRIGGER evidence_packages_immutable BEFORE UPDATE OR DELETE ON evidence_packages FOR EACH ROW EXECUTE FUNCTION refuse_change();

-- A task is done only by a commit of what passed its verification.
CREATE FUNCTION guard_task_done() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF NEW.status = 'done' AND OLD.status <> 'done' AND NOT EXISTS (
    SELECT 1 FROM evidence_packages p JOIN verification_results v ON v.id = p.verification_id
    WHERE p.task_id = NEW.id AND v.task_id = NEW.id AND v.status = 'passed') THEN
    RAISE EXCEPTION 'task % has no verified result that was committed', NEW.id USING ERRCODE = 'LT013';
  END IF;
  IF NEW.status = 'cancelled' AND OLD.status <> 'cancelled' AND (
    EXISTS (SELECT 1 FROM task_actions a WHERE a.task_id = NEW.id AND a.settled_at IS NULL)
    OR EXISTS (SELECT 1 FROM task_attempts t WHERE t.task_id = NEW.id AND t.ended_at IS NULL)) THEN
    RAISE EXCEPTION 'task % is not quiet', NEW.id USING ERRCODE = 'LT013';
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER tasks_done BEFORE UPDATE ON tasks FOR EACH ROW EXECUTE FUNCTION guard_task_done();
