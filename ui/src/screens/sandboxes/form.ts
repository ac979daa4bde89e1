// What a person fills in about a sandbox, and what the server keeps of it.
import type { Guard, SandboxInfo } from '../../api/schema';

export type Files = 'read' | 'copy' | 'write' | 'unasked' | 'server';

export interface Form {
  name: string;
  path: string;
  files: Files;
  network: 'off' | 'on';
  /** One on each line. */
  read: string;
  write: string;
  memory: string;
  processes: string;
  cpu: string;
  disk: string;
  time: string;
  output: string;
  /** One on each line. */
  hidden: string;
  pass: string;
  set: Variable[];
  /** Values are sent, and never come back. */
  secrets: Variable[];
  /** Nobody is named: everybody may use it. */
  agents: string[] | undefined;
  rules: string;
}

export interface Variable {
  name: string;
  value: string;
  /** The server has it already. */
  kept: boolean;
}

export const EMPTY: Form = {
  name: '',
  path: '',
  files: 'copy',
  network: 'off',
  read: '',
  write: '',
  memory: '',
  processes: '',
  cpu: '',
  disk: '',
  time: '',
  output: '',
  hidden: '',
  pass: '',
  set: [],
  secrets: [],
  agents: undefined,
  rules: '',
};

/** How files are guarded, in one word. */
export function files({ files, review }: Pick<SandboxInfo, 'files' | 'review'>): Files {
  if (files === 'read') return 'read';
  if (review === 'none') return 'unasked';
  if (review === 'before') return 'write';
  return files === 'effects' || review === 'effects' ? 'copy' : 'server';
}

export function fromInfo(info: SandboxInfo): Form {
  const { limits } = info;
  const number = (value: number | null | undefined) => (value == null ? '' : String(value));
  return {
    name: info.label,
    path: info.path,
    files: files(info),
    network: info.network === 'on' ? 'on' : 'off',
    read: (info.read ?? []).join('\n'),
    write: (info.write ?? []).join('\n'),
    memory: number(limits?.memory_mib),
    processes: number(limits?.processes),
    cpu: number(limits?.cpu_weight),
    disk: number(limits?.disk_mib),
    time: number(limits?.time_seconds),
    output: number(limits?.output_mib),
    hidden: (info.hidden ?? []).join('\n'),
    pass: (info.pass ?? []).join('\n'),
    set: Object.entries(info.set ?? {}).map(([name, value]) => ({ name, value, kept: false })),
    secrets: (info.secrets ?? []).map((name) => ({ name, value: '', kept: true })),
    agents: info.agents ?? undefined,
    rules: info.rules ?? '',
  };
}

const KEPT = {
  read: { files: 'read', review: null },
  copy: { files: 'effects', review: null },
  write: { files: 'write', review: 'before' },
  unasked: { files: 'effects', review: 'none' },
  server: { files: 'write', review: null },
} as const;

type Kept = Omit<Partial<Guard>, 'limits' | 'set'> & {
  limits: Partial<Guard['limits']>;
  /** `null` takes one away. */
  set: Record<string, string | null>;
};

/** What is kept. An empty field is nothing, which is the server's own. */
export function toGuard(form: Form, before?: SandboxInfo): Kept {
  return {
    ...KEPT[form.files],
    hidden: lines(form.hidden),
    pass: lines(form.pass),
    set: { ...gone(Object.keys(before?.set ?? {})), ...named(form.set) },
    network: form.network,
    read: lines(form.read),
    write: lines(form.write),
    limits: {
      memory_mib: number(form.memory),
      processes: number(form.processes),
      cpu_weight: number(form.cpu),
      disk_mib: number(form.disk),
      time_seconds: number(form.time),
      output_mib: number(form.output),
    },
    agents: form.agents ?? null,
    rules: form.rules.trim() ? form.rules : null,
  };
}

/** Secrets that are new, changed or gone; what has no new value stays. */
export function toSecrets(form: Form, before?: SandboxInfo): Record<string, string | null> {
  const there = form.secrets.map(({ name }) => name.trim());
  const missing = (before?.secrets ?? []).filter((name) => !there.includes(name));
  return { ...gone(missing), ...named(form.secrets.filter(({ value, kept }) => value || !kept)) };
}

function gone(names: string[]): Record<string, null> {
  return Object.fromEntries(names.map((name) => [name, null]));
}

function named(variables: Variable[]): Record<string, string> {
  const wanted = variables.filter(({ name }) => name.trim());
  return Object.fromEntries(wanted.map(({ name, value }) => [name.trim(), value]));
}

function lines(text: string): string[] {
  return text
    .split('\n')
    .map((line) => line.trim())
    .filter(Boolean);
}

function number(text: string | number | null): number | null {
  const trimmed = String(text ?? '').trim();
  return trimmed === '' ? null : Number(trimmed);
}
