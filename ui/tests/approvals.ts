// Requests that wait for a person, and finding them on the page.
import type { Locator, Page } from '@playwright/test';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { type Agent, type Answer, expect, type Server } from './harness';

/** Writes a file of the project. */
export function put(server: Server, name: string, text: string): void {
  const path = join(server.base, name);
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, text);
}

/** Reads one. */
export function read(server: Server, name: string): string {
  return readFileSync(join(server.base, name), 'utf8');
}

/** Asks for a command, and returns its run once a person is asked about it. */
export async function asked(agent: Agent, command: string, more: object = {}): Promise<Answer['body']> {
  const { command_id } = await agent.run(command, { wait_ms: 0, ...more });
  return reaches(agent, command_id, 'waiting');
}

/** Returns a run once it is in a state. */
export async function reaches(agent: Agent, id: string, state: string): Promise<Answer['body']> {
  let run: Answer['body'];
  await expect
    .poll(async () => (run = (await agent.ask('GET', `/commands/${id}`)).body).state)
    .toBe(state);
  return run;
}

/** The row of a command in the inbox. */
export function row(page: Page, command: string): Locator {
  return page.getByRole('region', { name: 'Waiting approvals' }).getByRole('link').filter({ hasText: command });
}

/** The detail beside the list. */
export function detail(page: Page): Locator {
  return page.getByRole('article');
}

/** The command that is shown. */
export function command(page: Page): Locator {
  return detail(page).locator('pre').first();
}

/** A button of the decision bar. */
export function decision(page: Page, name: string | RegExp): Locator {
  return page.getByRole('group', { name: 'Decide' }).getByRole('button', { name });
}

/** Longer than anything that a key or click waits for. */
export const QUIET_MS = 600;

/** Lets so much time pass that a key or click counts. */
export async function quiet(page: Page): Promise<void> {
  await page.waitForTimeout(QUIET_MS);
}

/** Signs somebody else in who decides. */
export async function signIn(page: Page, server: Server, name: string): Promise<void> {
  server.cli('people', 'add', name, '--role', 'approver', '--sandbox', 'default');
  const token = /\b(wl_\S+|[A-Za-z0-9_-]{30,})\b/.exec(server.cli('people', 'token', name))?.[1];
  const answer = await fetch(`${server.address}/agent/terminal/signin/link`, {
    method: 'POST',
    headers: { authorization: `Bearer ${token}`, 'x-weighlock': '1' },
  });
  const text = await answer.text();
  expect(answer.ok, text).toBe(true);
  await page.goto(server.address + (JSON.parse(text) as { link: string }).link);
  await expect(page).toHaveURL(/\/inbox/);
}
