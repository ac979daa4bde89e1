-- Every text that a rule file has had, as far as it was saved through us or
-- found when something was.
CREATE TABLE rules_versions (
    policy_id  TEXT NOT NULL,                -- `server`, or `sandbox.NAME`
    version    INTEGER NOT NULL,             -- from 1, for each file
    author     TEXT NOT NULL,                -- empty where nobody has told us
    note       TEXT NOT NULL,
    text       TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    PRIMARY KEY (policy_id, version)
) STRICT;

-- For finding runs again: what people were asked about, and what was typed in
-- a terminal.
CREATE INDEX terminal_commands_asked
    ON terminal_commands (command_id) WHERE approval_id IS NOT NULL;
CREATE INDEX terminal_commands_terminal
    ON terminal_commands (detail ->> '$.in_terminal', command_id)
    WHERE detail ->> '$.in_terminal' IS NOT NULL;

-- What people have set for themselves on the pages, as JSON.
CREATE TABLE settings (
    principal_id TEXT PRIMARY KEY,
    body         TEXT NOT NULL,
    updated_at   INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
