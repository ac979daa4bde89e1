-- Times are microseconds since 1970 in UTC. What the columns do not hold is in
-- `detail`, as JSON. Output is in files, never here.
CREATE TABLE terminal_commands (
    command_id   TEXT PRIMARY KEY,           -- sorts by time of creation
    tail         TEXT NOT NULL,              -- the random part, for short ids
    session_id   TEXT,
    command      TEXT NOT NULL,
    cwd          TEXT NOT NULL,
    status       TEXT NOT NULL
                 CHECK (status IN ('pending', 'approved', 'rejected', 'executed', 'failed')),
    state        TEXT NOT NULL,
    exit_code    INTEGER,
    signal       INTEGER,
    requested_by TEXT NOT NULL,
    approved_by  TEXT,
    created_at   INTEGER NOT NULL,
    updated_at   INTEGER NOT NULL,
    started_at   INTEGER,
    ended_at     INTEGER,
    open         INTEGER NOT NULL,           -- 1 while a keeper may be alive
    kept_bytes   INTEGER NOT NULL,           -- output on disk
    detail       TEXT NOT NULL
) STRICT;

CREATE INDEX terminal_commands_tail ON terminal_commands (tail);
CREATE INDEX terminal_commands_state ON terminal_commands (state, command_id);
CREATE INDEX terminal_commands_open ON terminal_commands (command_id) WHERE open = 1;
CREATE INDEX terminal_commands_kept ON terminal_commands (command_id) WHERE kept_bytes > 0;

-- `body` is the entry, byte for byte as it was hashed; the other columns only
-- help to find it.
CREATE TABLE audit (
    seq  INTEGER PRIMARY KEY,
    run  TEXT,
    kind TEXT NOT NULL,
    body TEXT NOT NULL,
    hash TEXT NOT NULL
) STRICT;

CREATE INDEX audit_run ON audit (run, seq);

CREATE TABLE tokens (
    hash       TEXT PRIMARY KEY,             -- of the secret, which is nowhere
    prefix     TEXT NOT NULL,                -- to recognise it by
    principal  TEXT NOT NULL,
    created_at INTEGER NOT NULL
) STRICT;
