// All that one can go to or do: what the page knows, and what the server finds.
import { api } from '../../api/client';
import { load, type Loaded } from '../../lib/load.svelte';
import { route } from '../../lib/route.svelte';
import { session } from '../../lib/session.svelte';
import { settings } from '../../lib/settings.svelte';
import { text as common } from '../../text';
import { pausing } from '../pause.svelte';
import type { Group, Item } from './match';
import { text } from './text';

/** Runs are looked for when nobody has typed for so long. */
const QUIET_MS = 150;

/** As many runs as are shown. */
const RUNS = 5;

/** What has to be asked before it is done, or is the frame's to open. */
export interface Doing {
  /** Of an agent, or of everything. */
  pause: (agent?: string) => void;
  open: (what: 'config' | 'help') => void;
}

/** Finds everything but runs, which depend on what is typed. */
export function known(doing: Doing): () => Item[] {
  const terminals = load((signal) => api.get('/terminals', { signal }));
  const sandboxes = load((signal) => api.get('/sandboxes', { signal }));
  const policy = load((signal) => api.get('/policies', { signal }));
  const people = load(async (signal) =>
    session.may('administrator') ? (await api.get('/people', { signal })).people : [],
  );
  return () => [
    ...screens(),
    ...actions(doing),
    ...(terminals.value?.terminals ?? []).map((one) =>
      link('terminals', one.terminal_id, one.name, `/terminals/${one.terminal_id}`, one.command),
    ),
    ...(sandboxes.value?.sandboxes ?? []).map((one) =>
      link('sandboxes', one.sandbox_id, one.label, `/sandboxes/${one.sandbox_id}`, one.path),
    ),
    ...agents(people.value ?? [], doing),
    ...(policy.value?.rules ?? []).map((rule, at) =>
      link('rules', String(at), rule.name, `/policies?rule=${encodeURIComponent(rule.name)}`, rule.about),
    ),
  ];
}

/** Finds runs by their id or their text. */
export function runs(typed: () => string): Loaded<Item[]> {
  return load(async (signal) => {
    const q = typed().trim();
    if (!q) return [];
    await new Promise((quiet) => setTimeout(quiet, QUIET_MS));
    signal.throwIfAborted();
    const byId = /^r_\w+$/.test(q)
      ? await api.get('/commands/{id}', { path: { id: q }, signal }).catch(() => undefined)
      : undefined;
    const found = byId ? [byId] : (await api.get('/commands', { query: { q, limit: RUNS }, signal })).commands;
    return found.map((run) =>
      link('runs', run.command_id, run.command, `/runs/${run.command_id}`, `${run.short_id} ${run.requested_by}`),
    );
  });
}

function link(group: Group, key: string, label: string, to: string, about?: string): Item {
  return { group, key, label, ...(about && { about }), run: () => route.go(to) };
}

function screens(): Item[] {
  return Object.entries(common.screens)
    .filter(([name]) => name !== 'people' || session.may('administrator'))
    .map(([name, label]) => link('screens', name, label, `/${name}`));
}

function actions(doing: Doing): Item[] {
  const act = (key: string, label: string, run: () => void): Item => ({ group: 'actions', key, label, run });
  const go = (key: string, label: string, to: string) => link('actions', key, label, to);
  const themes = Object.entries(common.themes).map(([theme, label]) =>
    act(`theme-${theme}`, text.theme(label), () => (settings.theme = theme as typeof settings.theme)),
  );
  return [
    ...(session.may('approver') ? [go('terminal', text.newTerminal, '/terminals/new')] : []),
    ...(session.may('administrator')
      ? [
          go('sandbox', text.addSandbox, '/sandboxes/new'),
          go('agent', text.connect, '/people?connect=1'),
          go('token', text.newToken, '/people'),
        ]
      : []),
    ...(session.may('operator') ? [paused(doing)] : []),
    go('test', text.test, '/policies?test='),
    act('config', common.terminalConfig, () => doing.open('config')),
    act('help', common.keyboardHelp, () => doing.open('help')),
    ...themes,
    act('out', common.signOut, () => void session.signOut()),
  ];
}

function paused(doing: Doing, agent?: string): Item {
  const now = agent ? pausing.list.some(({ principal }) => principal === agent) : pausing.all !== undefined;
  return {
    group: 'actions',
    key: `pause-${agent ?? ''}`,
    label: now ? text.resume(agent) : text.pause(agent),
    run: () => (now ? void pausing.resume(agent) : doing.pause(agent)),
  };
}

function agents(people: { principal_id: string; role: string }[], doing: Doing): Item[] {
  const all = people.filter(({ role }) => role === 'agent').map(({ principal_id }) => principal_id);
  return [
    ...all.map((name) => link('agents', name, name, `/people/${encodeURIComponent(name)}`)),
    ...all.map((name) => paused(doing, name)),
  ];
}
