-- People, sandboxes and approvals. Times, ids and `tail` are as in 1.sql; what
-- has no column is in `body`, as JSON.

-- Indexes on commands go on with `command_id`, so that every list is a walk
-- along one of them, and carry what else is asked for often, so that what does
-- not match is passed over without being read.
ALTER TABLE terminal_commands ADD COLUMN sandbox_id TEXT;
ALTER TABLE terminal_commands ADD COLUMN approval_id TEXT REFERENCES approvals;
ALTER TABLE terminal_commands ADD COLUMN external INTEGER NOT NULL DEFAULT 0;

CREATE INDEX terminal_commands_time ON terminal_commands (created_at, command_id);
CREATE INDEX terminal_commands_requested_by
    ON terminal_commands (requested_by, command_id, created_at);
CREATE INDEX terminal_commands_sandbox
    ON terminal_commands (sandbox_id, command_id, created_at, requested_by)
    WHERE sandbox_id IS NOT NULL;
CREATE INDEX terminal_commands_session
    ON terminal_commands (session_id, command_id) WHERE session_id IS NOT NULL;
CREATE INDEX terminal_commands_status ON terminal_commands (status, command_id);
CREATE INDEX terminal_commands_approved_by
    ON terminal_commands (approved_by, command_id) WHERE approved_by IS NOT NULL;
CREATE INDEX terminal_commands_approval
    ON terminal_commands (approval_id, command_id) WHERE approval_id IS NOT NULL;
-- To count what one requester has waiting.
CREATE INDEX terminal_commands_pending
    ON terminal_commands (requested_by) WHERE status = 'pending';

-- What is needed to start a command that has not begun.
CREATE TABLE pending_requests (
    command_id TEXT PRIMARY KEY REFERENCES terminal_commands,
    body       TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE idempotency (
    principal  TEXT NOT NULL,
    key        TEXT NOT NULL,
    hash       TEXT NOT NULL,                -- of the request that came with it
    command_id TEXT NOT NULL REFERENCES terminal_commands,
    created_at INTEGER NOT NULL,
    PRIMARY KEY (principal, key)
) STRICT, WITHOUT ROWID;

CREATE INDEX idempotency_created_at ON idempotency (created_at);

CREATE TABLE approvals (
    approval_id  TEXT PRIMARY KEY,
    tail         TEXT NOT NULL,
    state        TEXT NOT NULL
                 CHECK (state IN ('pending', 'approved', 'rejected', 'expired', 'withdrawn', 'blocked')),
    fingerprint  TEXT NOT NULL,              -- of what is asked
    requested_by TEXT NOT NULL,
    sandbox_id   TEXT NOT NULL,
    rank         INTEGER NOT NULL            -- 0 high risk, 1 medium, 2 low: first things first
                 CHECK (rank BETWEEN 0 AND 2),
    version      INTEGER NOT NULL,
    created_at   INTEGER NOT NULL,
    expires_at   INTEGER NOT NULL,
    decided_at   INTEGER,
    decided_by   TEXT,
    count        INTEGER NOT NULL,           -- commands that wait, or did when it closed
    needed       INTEGER NOT NULL,           -- approvers
    body         TEXT NOT NULL
) STRICT;

CREATE INDEX approvals_tail ON approvals (tail);
CREATE INDEX approvals_time ON approvals (created_at, approval_id);
CREATE INDEX approvals_state ON approvals (state, created_at, approval_id);
CREATE INDEX approvals_requested_by ON approvals (requested_by, created_at, approval_id);
CREATE INDEX approvals_sandbox ON approvals (sandbox_id, created_at, approval_id);
-- The inbox: few, in the order in which people should look at them.
CREATE INDEX pending_time
    ON approvals (rank, created_at, approval_id) WHERE state = 'pending';
CREATE INDEX pending_requested_by
    ON approvals (requested_by, rank, created_at, approval_id) WHERE state = 'pending';
CREATE INDEX pending_sandbox
    ON approvals (sandbox_id, rank, created_at, approval_id) WHERE state = 'pending';
CREATE INDEX pending_same
    ON approvals (requested_by, fingerprint) WHERE state = 'pending';
CREATE INDEX pending_deadline
    ON approvals (expires_at, approval_id) WHERE state = 'pending';

CREATE TABLE answers (
    approval_id TEXT NOT NULL REFERENCES approvals,
    by          TEXT NOT NULL,
    approve     INTEGER NOT NULL,
    how         TEXT NOT NULL,
    origin      TEXT NOT NULL,
    reason      TEXT,
    edited      TEXT,
    at          INTEGER NOT NULL,
    PRIMARY KEY (approval_id, by)
) STRICT, WITHOUT ROWID;

CREATE TABLE principals (
    principal_id TEXT PRIMARY KEY,           -- the name
    agent        INTEGER NOT NULL,
    role         TEXT NOT NULL,
    uid          INTEGER UNIQUE,
    is_active    INTEGER NOT NULL,
    body         TEXT NOT NULL,
    version      INTEGER NOT NULL,
    created_at   INTEGER NOT NULL,
    updated_at   INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- The old tokens belonged to nobody with a role.
DROP TABLE tokens;
CREATE TABLE tokens (
    token_id     TEXT PRIMARY KEY,
    hash         TEXT NOT NULL UNIQUE,       -- of the secret, which is nowhere
    prefix       TEXT NOT NULL,              -- to recognise it by
    label        TEXT NOT NULL,
    principal_id TEXT NOT NULL REFERENCES principals,
    created_by   TEXT NOT NULL,
    created_at   INTEGER NOT NULL,
    expires_at   INTEGER,
    last_used_at INTEGER,
    revoked_at   INTEGER
) STRICT;

CREATE INDEX tokens_principal ON tokens (principal_id, created_at, token_id);

CREATE TABLE logins (
    hash         TEXT PRIMARY KEY,           -- of the cookie, which is nowhere
    principal_id TEXT NOT NULL REFERENCES principals,
    created_at   INTEGER NOT NULL,
    expires_at   INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX logins_principal ON logins (principal_id);
CREATE INDEX logins_expires_at ON logins (expires_at);

CREATE TABLE terminal_sandboxes (
    sandbox_id         TEXT PRIMARY KEY,
    owner_principal_id TEXT NOT NULL,
    label              TEXT NOT NULL,
    path               TEXT NOT NULL,
    is_active          INTEGER NOT NULL,
    body               TEXT NOT NULL,
    version            INTEGER NOT NULL,
    created_at         INTEGER NOT NULL,
    updated_at         INTEGER NOT NULL,
    deleted_at         INTEGER               -- the row stays, for what ran there
) STRICT;

CREATE UNIQUE INDEX terminal_sandboxes_label
    ON terminal_sandboxes (label) WHERE deleted_at IS NULL;

CREATE TABLE terminal_sessions (
    session_id   TEXT PRIMARY KEY,
    principal_id TEXT NOT NULL,
    sandbox_id   TEXT NOT NULL,
    label        TEXT NOT NULL,              -- the client's name, may be empty
    status       TEXT NOT NULL,              -- of the command that changed last
    created_at   INTEGER NOT NULL,
    updated_at   INTEGER NOT NULL,
    closed_at    INTEGER
) STRICT;

CREATE UNIQUE INDEX terminal_sessions_open
    ON terminal_sessions (principal_id, sandbox_id, label) WHERE closed_at IS NULL;
CREATE INDEX terminal_sessions_time ON terminal_sessions (created_at, session_id);
CREATE INDEX terminal_sessions_principal
    ON terminal_sessions (principal_id, created_at, session_id);
CREATE INDEX terminal_sessions_sandbox
    ON terminal_sessions (sandbox_id, created_at, session_id);

CREATE TABLE pauses (
    principal TEXT PRIMARY KEY,              -- empty for everyone
    by        TEXT NOT NULL,
    since     INTEGER NOT NULL,
    reason    TEXT
) STRICT, WITHOUT ROWID;

ALTER TABLE audit ADD COLUMN time INTEGER;
ALTER TABLE audit ADD COLUMN actor TEXT;
ALTER TABLE audit ADD COLUMN sandbox TEXT;
ALTER TABLE audit ADD COLUMN owner TEXT;

-- Entries from before are found by time and actor too. A body that was
-- tampered with stays without, and is what a verification will name.
UPDATE audit SET
    actor = body ->> '$.actor',
    time = unixepoch(substr(body ->> '$.time', 1, 19)) * 1000000
         + CAST(substr(rtrim(substr(body ->> '$.time', 21), 'Z') || '000000', 1, 6) AS INTEGER)
WHERE json_valid(body);

-- Lists are in the order of `seq`, which never runs backwards; clocks do.
CREATE INDEX audit_time ON audit (time);
CREATE INDEX audit_sandbox ON audit (sandbox, seq) WHERE sandbox IS NOT NULL;
CREATE INDEX audit_owner ON audit (owner, seq) WHERE owner IS NOT NULL;
-- For what is rare, to be looked for without reading the bodies.
CREATE INDEX audit_kind ON audit (seq, kind, actor);
