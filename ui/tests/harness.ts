// A real server in a directory of its own, a person who is signed in with a
// browser, and an agent that talks to it over HTTP.
import { test as base, expect, type Page } from '@playwright/test';
import axe from 'axe-core';
import { execFileSync, spawn, type ChildProcess } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';

const BINARY = resolve(process.env.WEIGHLOCK ?? '../target/debug/weighlock');

/** Pages that were built without the program, while they are developed. */
const PAGES = process.env.PAGES;

/** What a request came to. */
export interface Answer {
  status: number;
  // What the server says is looked at field by field; a wrong name fails there.
  // eslint-disable-next-line @typescript-eslint/no-explicit-any
  body: any;
}

export class Server {
  readonly home = mkdtempSync(join(tmpdir(), 'weighlock-ui-'));
  base = join(this.home, 'project');
  address = '';
  link = '';
  /** The text of the configuration file. */
  config = '';
  #child: ChildProcess | undefined;
  #port = 0;

  constructor() {
    mkdirSync(this.base, { recursive: true });
    mkdirSync(join(this.home, 'settings/weighlock'), { recursive: true });
  }

  /** Starts it, at the same address as before if it was there before. */
  async start(): Promise<void> {
    writeFileSync(join(this.home, 'settings/weighlock/config.toml'), this.config);
    const listen = `127.0.0.1:${this.#port}`;
    const pages = PAGES ? ['--ui-dir', resolve(PAGES)] : [];
    const args = ['serve', '--base', this.base, '--listen', listen, ...pages];
    const child = spawn(BINARY, args, {
      env: this.#env(),
      stdio: ['ignore', 'ignore', 'pipe'],
    });
    this.#child = child;
    let said = '';
    await new Promise<void>((ready, failed) => {
      child.on('exit', () => failed(new Error(`the server ended: ${said}`)));
      child.stderr.on('data', (data: Buffer) => {
        said += data.toString();
        const link = /sign in {2}(\S+)/.exec(said);
        if (!link?.[1] || !said.includes('try it')) return;
        this.link = link[1];
        this.address = new URL(this.link).origin;
        this.#port = Number(new URL(this.link).port);
        ready();
      });
    });
    child.removeAllListeners('exit');
  }

  /** Ends it as a crash would. */
  async kill(): Promise<void> {
    const child = this.#child;
    if (!child) return;
    const gone = new Promise((gone) => child.once('exit', gone));
    child.kill('SIGKILL');
    await gone;
    this.#child = undefined;
  }

  async stop(): Promise<void> {
    // What runs outlives a server that is killed.
    if (this.#child) this.cli('stop', '--all', '--force');
    await this.kill();
    rmSync(this.home, { recursive: true, force: true });
  }

  /** Runs the command line, as the owner. */
  cli(...args: string[]): string {
    return execFileSync(BINARY, args, { env: this.#env(), encoding: 'utf8', cwd: this.base });
  }

  /** Adds an agent, and returns a way to speak as it. */
  agent(name: string, ...more: string[]): Agent {
    const said = this.cli('people', 'add', name, '--agent', '--sandbox', 'default', ...more);
    const token = /\b(wl_\S+|[A-Za-z0-9_-]{30,})\b/.exec(said)?.[1];
    if (!token) throw new Error(`no token in: ${said}`);
    return new Agent(this, token);
  }

  #env(): NodeJS.ProcessEnv {
    return {
      PATH: process.env.PATH,
      HOME: this.home,
      XDG_CONFIG_HOME: join(this.home, 'settings'),
      WEIGHLOCK_STATE_DIR: join(this.home, 'state'),
    };
  }
}

export class Agent {
  constructor(
    private readonly server: Server,
    readonly token: string,
  ) {}

  async ask(method: string, path: string, body?: unknown): Promise<Answer> {
    const answer = await fetch(`${this.server.address}/agent/terminal${path}`, {
      method,
      headers: { authorization: `Bearer ${this.token}`, 'content-type': 'application/json' },
      body: body === undefined ? null : JSON.stringify(body),
    });
    const text = await answer.text();
    return { status: answer.status, body: text ? JSON.parse(text) : undefined };
  }

  /** Asks for a command, and does not wait for a person. */
  async run(command: string, more: object = {}): Promise<Answer['body']> {
    const answer = await this.ask('POST', '/commands', { command, wait_ms: 10_000, ...more });
    expect(answer.status, JSON.stringify(answer.body)).toBeLessThan(300);
    return answer.body;
  }
}

interface Fixtures {
  server: Server;
  /** Violations of the page's own policy that the browser has reported. */
  violations: string[];
  /** A page on which the owner has signed in. */
  page: Page;
}

export const test = base.extend<Fixtures>({
  server: async ({}, use) => {
    const server = new Server();
    await server.start();
    await use(server);
    await server.stop();
  },
  violations: async ({}, use) => {
    const violations: string[] = [];
    await use(violations);
    expect(violations).toEqual([]);
  },
  page: async ({ page, server, violations }, use) => {
    await watch(page, violations);
    await page.goto(server.link);
    await expect(page.getByRole('navigation').first()).toBeAttached();
    await use(page);
  },
});

/** Notes whatever the page's policy forbids, and every error of a script. */
export async function watch(page: Page, violations: string[]): Promise<void> {
  page.on('pageerror', (error) => violations.push(String(error)));
  page.on('console', (message) => {
    if (/Content Security Policy|Trusted Type/.test(message.text())) violations.push(message.text());
  });
}

/** Fails when anything on the page is hard to use for somebody. */
export async function accessible(page: Page): Promise<void> {
  // By the debugger, which the page's policy does not bind.
  await page.evaluate(axe.source);
  const found = await page.evaluate(async () => {
    const checked = await (window as unknown as { axe: typeof axe }).axe.run({
      runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'],
    });
    return checked.violations.map(({ id, help, nodes }) => ({
      id,
      help,
      where: nodes.map((node) => node.html),
    }));
  });
  expect(found).toEqual([]);
}

export { expect };
