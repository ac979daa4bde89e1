// Talks to the server. The only file that does; what is said is typed by the
// server's own description.
import type { paths, ProblemDocument } from './schema';

const ROOT = '/agent/terminal';

type Method = 'get' | 'post' | 'put' | 'patch' | 'delete';

// Paths below the root that know a method.
type Short<P> = P extends `/agent/terminal${infer Rest}` ? Rest : never;
type With<M extends Method> = {
  [P in keyof paths]: paths[P] extends Record<M, { responses: unknown }> ? Short<P> : never;
}[keyof paths];
type Operation<M extends Method, P extends string> =
  `/agent/terminal${P}` extends keyof paths
    ? paths[`/agent/terminal${P}`] extends Record<M, infer O>
      ? O
      : never
    : never;

type Json<T> = T extends { content: { 'application/json': infer B } } ? B : never;
type Answer<O> = O extends { responses: infer R }
  ? { [K in keyof R]: K extends 200 | 201 | 202 ? Json<R[K]> : never }[keyof R]
  : never;
type Sent<O> = O extends { requestBody?: infer R } ? Json<NonNullable<R>> : never;
type Query<O> = O extends { parameters: { query?: infer Q } } ? NonNullable<Q> : never;

interface Ask<O> {
  /** What stands in the place of `{id}` and the like. */
  path?: Record<string, string | number>;
  query?: Partial<Query<O>>;
  body?: Sent<O>;
  headers?: Record<string, string>;
  signal?: AbortSignal;
}

/** What the server says when it does not do what it was asked for. */
export class Refusal extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    message: string,
    readonly hint: string,
    readonly document: ProblemDocument | undefined,
  ) {
    super(message);
  }

  /** Nobody answered: what was asked for may have been done or not. */
  get unreachable(): boolean {
    return this.status === 0;
  }
}

/** Returns an address of the server, with what it is asked. */
export function address(path: string, query: object = {}): string {
  const asked = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    if (value !== undefined && value !== null) asked.set(name, String(value));
  }
  const text = asked.toString();
  return ROOT + path + (text && `?${text}`);
}

async function call<M extends Method, P extends With<M> & string>(
  method: M,
  path: P,
  ask: Ask<Operation<M, P>> = {},
): Promise<Answer<Operation<M, P>>> {
  const filled = path.replace(/\{(\w+)\}/g, (_, name: string) =>
    encodeURIComponent(String(ask.path?.[name] ?? '')),
  );
  const headers: Record<string, string> = { accept: 'application/json', ...ask.headers };
  if (method !== 'get') headers['x-weighlock'] = '1';
  if (ask.body !== undefined) headers['content-type'] = 'application/json';
  let answer: Response;
  try {
    answer = await fetch(address(filled, ask.query), {
      method: method.toUpperCase(),
      headers,
      body: ask.body === undefined ? null : JSON.stringify(ask.body),
      signal: ask.signal ?? null,
      cache: 'no-store',
    });
  } catch (error) {
    if (ask.signal?.aborted) throw error;
    throw new Refusal(0, 'unreachable', 'The server cannot be reached', '', undefined);
  }
  const text = await answer.text();
  if (!answer.ok) throw refusal(answer.status, text);
  return (text ? JSON.parse(text) : undefined) as Answer<Operation<M, P>>;
}

function refusal(status: number, text: string): Refusal {
  let told: ProblemDocument | undefined;
  try {
    told = JSON.parse(text) as ProblemDocument;
  } catch {
    // Something between us and the server has answered.
  }
  if (status === 401) signedOut();
  const detail = told?.detail ?? `the server answered ${status}`;
  return new Refusal(status, told?.code ?? 'unknown', detail, told?.hint ?? '', told);
}

/** Reads an answer line by line, no faster than it is taken. */
export async function* lines(path: string, query: object, signal: AbortSignal): AsyncGenerator<string> {
  const answer = await fetch(address(path, query), { signal, cache: 'no-store' }).catch((error: unknown) => {
    if (signal.aborted) throw error;
    throw new Refusal(0, 'unreachable', 'The server cannot be reached', '', undefined);
  });
  if (!answer.ok) throw refusal(answer.status, await answer.text());
  const reader = answer.body!.pipeThrough(new TextDecoderStream()).getReader();
  let rest = '';
  for (;;) {
    const { value, done } = await reader.read();
    const found = (rest + (value ?? '')).split('\n');
    rest = found.pop()!;
    yield* found;
    if (done) break;
  }
  if (rest) yield rest;
}

/** Opens a line on which both sides speak. */
export function socket(path: string): WebSocket {
  const to = new URL(address(path), location.href);
  to.protocol = to.protocol.replace('http', 'ws');
  const line = new WebSocket(to);
  line.binaryType = 'arraybuffer';
  return line;
}

let signedOut = () => {};

/** Says what happens when the server does not know us any more. */
export function whenSignedOut(then: () => void): void {
  signedOut = then;
}

/** Fetches what is no JSON. */
export async function fetchRaw(path: string, query: object, signal: AbortSignal): Promise<Response> {
  const answer = await fetch(address(path, query), { signal, cache: 'no-store' });
  if (!answer.ok) throw refusal(answer.status, await answer.text());
  return answer;
}

export const api = {
  get: <P extends With<'get'> & string>(path: P, ask?: Ask<Operation<'get', P>>) =>
    call('get', path, ask),
  post: <P extends With<'post'> & string>(path: P, ask?: Ask<Operation<'post', P>>) =>
    call('post', path, ask),
  put: <P extends With<'put'> & string>(path: P, ask?: Ask<Operation<'put', P>>) =>
    call('put', path, ask),
  patch: <P extends With<'patch'> & string>(path: P, ask?: Ask<Operation<'patch', P>>) =>
    call('patch', path, ask),
  delete: <P extends With<'delete'> & string>(path: P, ask?: Ask<Operation<'delete', P>>) =>
    call('delete', path, ask),
};
