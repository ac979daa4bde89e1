// What the tests of runs have in common.
import { expect, type Page } from '@playwright/test';

/** Text that would like to be more than text. */
export const HOSTILE =
  'a\u202eb\u200bc https://ex\u0430mple.dev \u001b]0;owned\u0007\u001b[2J <img src=x onerror=alert(1)>';

/** Switches to the dark theme. */
export async function dark(page: Page): Promise<void> {
  await page.emulateMedia({ colorScheme: 'dark' });
}

/** Asks the server as whoever is signed in on the page. */
export async function owner(page: Page, method: string, path: string, body?: object) {
  const answer = await page.evaluate(
    async ([method, path, body]) => {
      const answer = await fetch(`/agent/terminal${path}`, {
        method: method!,
        headers: { 'x-weighlock': '1', 'content-type': 'application/json' },
        body: body || null,
      });
      return { status: answer.status, text: await answer.text() };
    },
    [method, path, body ? JSON.stringify(body) : ''],
  );
  expect(answer.status, answer.text).toBeLessThan(300);
  return JSON.parse(answer.text);
}
