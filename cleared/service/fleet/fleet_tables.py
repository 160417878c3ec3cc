"""The fleet's own tables, and which versions of this program may work with them beside each other."""

from __future__ import annotations

from typing import Final

VERSION: Final = 3
"""Of the tables, of a job's kinds, and of what a workspace's service remembers. It goes up where a worker of the
version before could not do a job as it is asked now; such a job waits for one that can."""
OLDEST: Final = 1
"""The oldest version whose workers may go on beside this one. It goes up where they would do harm."""
TABLES: Final = """
CREATE TABLE IF NOT EXISTS fleet_facts (name text PRIMARY KEY, value text NOT NULL);
CREATE TABLE IF NOT EXISTS fleet_workspaces (
  name text PRIMARY KEY, statement bytea NOT NULL, signature text NOT NULL,
  state bytea, head text NOT NULL DEFAULT '', due timestamptz, asked_due timestamptz, looked_at timestamptz,
  problem text NOT NULL DEFAULT '', failures integer NOT NULL DEFAULT 0,
  spent_day date, spent_seconds double precision NOT NULL DEFAULT 0, cards integer NOT NULL DEFAULT 0);
ALTER TABLE fleet_workspaces ADD COLUMN IF NOT EXISTS written_by integer NOT NULL DEFAULT 1;
CREATE INDEX IF NOT EXISTS fleet_due ON fleet_workspaces (due);
CREATE OR REPLACE FUNCTION fleet_tell_head() RETURNS trigger LANGUAGE plpgsql AS
  $$BEGIN PERFORM pg_notify('fleet_heads', NEW.name || ' ' || NEW.head); RETURN NULL; END$$;
CREATE OR REPLACE TRIGGER fleet_head AFTER UPDATE OF head ON fleet_workspaces FOR EACH ROW
  WHEN (OLD.head IS DISTINCT FROM NEW.head) EXECUTE FUNCTION fleet_tell_head();
CREATE TABLE IF NOT EXISTS fleet_files (
  workspace text NOT NULL REFERENCES fleet_workspaces ON DELETE CASCADE, digest text NOT NULL, name text NOT NULL,
  dropped_by text NOT NULL, at timestamptz NOT NULL, settled text NOT NULL DEFAULT '',
  PRIMARY KEY (workspace, digest));
CREATE TABLE IF NOT EXISTS fleet_requests (
  id text, workspace text NOT NULL REFERENCES fleet_workspaces ON DELETE CASCADE, agent text NOT NULL, payload jsonb,
  asked_by text NOT NULL, at timestamptz NOT NULL, status text NOT NULL DEFAULT 'waiting',
  said text NOT NULL DEFAULT '', commit_id text NOT NULL DEFAULT '', ended_at timestamptz);
ALTER TABLE fleet_requests DROP CONSTRAINT IF EXISTS fleet_requests_pkey, ADD PRIMARY KEY (workspace, agent, id);
CREATE TABLE IF NOT EXISTS fleet_workers (
  key text PRIMARY KEY, name text NOT NULL, version text NOT NULL, at timestamptz NOT NULL);
ALTER TABLE fleet_workers ADD COLUMN IF NOT EXISTS fleet_version integer NOT NULL DEFAULT 1;
CREATE TABLE IF NOT EXISTS fleet_calls (
  number bigserial PRIMARY KEY, workspace text NOT NULL REFERENCES fleet_workspaces ON DELETE CASCADE,
  agent text NOT NULL, id text NOT NULL, ordering_key text NOT NULL, digest text NOT NULL,
  received timestamptz NOT NULL, settled timestamptz, result text, UNIQUE (workspace, agent, id));
CREATE INDEX IF NOT EXISTS fleet_calls_waiting ON fleet_calls (workspace, number) WHERE settled IS NULL;
CREATE TABLE IF NOT EXISTS fleet_outcomes (outcome text PRIMARY KEY, jobs bigint NOT NULL);
"""
REFUSED_JOBS: Final = """
ALTER TABLE procrastinate_jobs DROP CONSTRAINT IF EXISTS cleared_args;
ALTER TABLE procrastinate_jobs ADD CONSTRAINT cleared_args CHECK (jsonb_typeof(args) = 'object') NOT VALID;
"""
"""procrastinate cannot end a job whose arguments are no object: it would be on for ever, and hold its workspace."""
