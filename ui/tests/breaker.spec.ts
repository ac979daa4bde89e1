// Who tries to break the pages: other pages of the same machine, addresses that
// mean nothing, two hands at once, and a server that dies in between.
import { createServer, type Server as Http } from 'node:http';
import type { AddressInfo } from 'node:net';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { Page } from '@playwright/test';
import { asked, decision, detail, quiet, reaches, read, row, signIn } from './approvals';
import { expect, test, watch, type Server } from './harness';
import { HOSTILE, owner } from './runs';

/** A page of somebody else on this machine: to cookies, the same site. */
async function elsewhere(html: string): Promise<{ address: string; close: () => void }> {
  const http: Http = createServer((_, answer) => {
    answer.setHeader('content-type', 'text/html');
    answer.end(html);
  });
  await new Promise<void>((ready) => http.listen(0, '127.0.0.1', ready));
  const { port } = http.address() as AddressInfo;
  return { address: `http://127.0.0.1:${port}/`, close: () => void http.close() };
}

const made = (server: Server, name: string) => existsSync(join(server.base, name));

test('another page of this machine reads nothing, decides nothing and frames nothing', async ({ page, server }) => {
  const coder = server.agent('coder');
  const run = await asked(coder, 'touch made', { review: 'before' });
  const terminal = await coder.ask('POST', '/terminals', { name: 'shell', description: 'x', command: 'cat' });
  const { fingerprint } = await owner(page, 'GET', `/approvals/${run.approval_id}`);
  const api = `${server.address}/agent/terminal`;
  const deed = `${api}/approvals/${run.approval_id}/decision`;
  const other = await elsewhere(`<!doctype html><iframe src="${server.address}/inbox"></iframe>
    <form id="form" method="post" enctype="text/plain" target="_blank" action="${deed}">
    <input name='{"kind":"approve_once","fingerprint":"${fingerprint}","reason":"' value='"}'></form>`);
  const evil = await page.context().newPage();
  await evil.goto(other.address);
  const body = JSON.stringify({ kind: 'approve_once', fingerprint });
  const tried = await evil.evaluate(
    async ([api, deed, body, terminal]) => {
      const ask = async (address: string, init: RequestInit) => {
        const answer = await fetch(address, { credentials: 'include', ...init }).catch(() => undefined);
        return answer ? `${answer.type} ${await answer.text()}` : 'refused';
      };
      const line = (address: string) =>
        new Promise<string>((told) => {
          const socket = new WebSocket(address.replace('http', 'ws'));
          socket.onopen = () => told('open');
          socket.onerror = () => told('refused');
        });
      const heard = new Promise<string>((told) => {
        const source = new EventSource(`${api}/events`, { withCredentials: true });
        source.onopen = () => told('open');
        source.onerror = () => told('refused');
      });
      return {
        read: await ask(`${api}/approvals`, {}),
        decide: await ask(deed!, { method: 'POST', body: body!, headers: { 'content-type': 'application/json', 'x-weighlock': '1' } }),
        simple: await ask(deed!, { method: 'POST', body: body!, mode: 'no-cors', headers: { 'content-type': 'text/plain' } }),
        events: await heard,
        terminal: await line(`${api}/terminals/${terminal}/stream`),
      };
    },
    [api, deed, body, terminal.body.terminal_id as string],
  );
  expect(tried).toEqual({ read: 'refused', decide: 'refused', simple: 'opaque ', events: 'refused', terminal: 'refused' });
  // Chromium shows a page of its own in place of what may not be framed.
  const framed = evil.frames().find((frame) => frame !== evil.mainFrame());
  expect(framed?.url() ?? '').not.toContain('/inbox');
  const opened = page.context().waitForEvent('page');
  await evil.evaluate(() => (document.getElementById('form') as HTMLFormElement).submit());
  await expect((await opened).locator('body')).toContainText(/forged|not allowed|refused|cross|X-Weighlock|origin/i);
  expect((await coder.ask('GET', `/commands/${run.command_id}`)).body.state).toBe('waiting');
  expect(made(server, 'made')).toBe(false);
  other.close();
});

test('an address that means nothing is said to be none, and breaks nothing', async ({ page, server }) => {
  for (const path of ['constructor', '__proto__', 'toString/x', '%E0%A4%A', 'nowhere/%00', 'settings/constructor']) {
    await page.goto(`${server.address}/${path}`);
    await expect(page.getByText('Page not found.'), path).toBeVisible();
  }
  for (const path of ['runs/%E0%A4%A', 'inbox/%ff', 'terminals/%22%3E%3Cimg%20src=x%3E', 'sandboxes/..%2f..%2fetc', 'people/__proto__']) {
    await page.goto(`${server.address}/${path}`);
    await expect(page.getByText(/There is no (run|approval|terminal|sandbox|\w+) .*, or you have no access to it\./).first(), path).toBeVisible();
  }
  await page.goto(`${server.address}/runs?q=${encodeURIComponent(`__proto__:x constructor:y ${HOSTILE}`)}`);
  await expect(page.getByRole('button', { name: 'Clear filters' })).toBeVisible();
  await expect(page.locator('img')).toHaveCount(0);
});

test('two hands at once decide once', async ({ page, server, browser, violations }) => {
  const coder = server.agent('coder');
  const other = await (await browser.newContext()).newPage();
  await watch(other, violations);
  await signIn(other, server, 'maria');
  for (let n = 0; n < 3; n++) {
    const run = await asked(coder, `echo ${n} >> log`, { review: 'before' });
    const hands = [page, other];
    for (const hand of hands) {
      await hand.goto(`${server.address}/inbox/${run.approval_id}`);
      await expect(decision(hand, 'Approve once')).toBeEnabled();
    }
    await quiet(page);
    // For whoever is late there is nothing left to press.
    const press = (hand: Page) => decision(hand, 'Approve once').click({ timeout: 5000 }).catch(() => undefined);
    await Promise.all(hands.map(press));
    await reaches(coder, run.command_id, 'succeeded');
    for (const hand of hands) await expect(detail(hand).getByText(/pproved by (you|maria|root|\w+)/).first()).toBeVisible();
    const { entries } = await owner(page, 'GET', `/commands/${run.command_id}/audit`);
    const decided = entries.filter(({ kind }: { kind: string }) => /\.approved$/.test(kind));
    expect(decided.map(({ actor }: { actor: string }) => actor)).toHaveLength(1);
  }
  expect(read(server, 'log')).toBe('0\n1\n2\n');
});

test('a server that dies while somebody decides runs nothing twice, and the page tells what became of it', async ({
  page,
  server,
}) => {
  test.slow();
  const coder = server.agent('coder');
  for (let n = 0; n < 3; n++) {
    const run = await asked(coder, `echo ${n} >> log-${n}`, { review: 'before' });
    await page.goto(`${server.address}/inbox/${run.approval_id}`);
    await expect(decision(page, 'Approve once')).toBeEnabled();
    await quiet(page);
    // Before it is heard, while it is, and after.
    const clicked = decision(page, 'Approve once').click();
    await Promise.all([clicked, page.waitForTimeout(n * 15).then(() => server.kill())]);
    await server.start();
    await expect(page.getByText('Connected', { exact: true })).toBeVisible();
    const state = (await coder.ask('GET', `/commands/${run.command_id}`)).body.state as string;
    if (state === 'waiting') {
      // It was not heard: it can be decided again.
      await expect(decision(page, 'Approve once')).toBeEnabled();
      await quiet(page);
      await decision(page, 'Approve once').click();
    }
    await reaches(coder, run.command_id, 'succeeded');
    await expect(detail(page).getByText(/pproved by you/).first()).toBeVisible();
    expect(read(server, `log-${n}`)).toBe(`${n}\n`);
  }
  expect(server.cli('audit', 'verify')).toMatch(/\d/);
});

test('what people write is as harmless as what agents write', async ({ page, server, browser, violations }) => {
  const coder = server.agent('coder');
  const run = await asked(coder, 'touch made', { review: 'before' });
  const { fingerprint } = await owner(page, 'GET', `/approvals/${run.approval_id}`);
  await page.goto(`${server.address}/inbox/${run.approval_id}`);
  await expect(decision(page, 'Approve once')).toBeEnabled();
  const other = await (await browser.newContext()).newPage();
  await watch(other, violations);
  await signIn(other, server, 'maria');
  await owner(other, 'POST', `/approvals/${run.approval_id}/decision`, { kind: 'reject', fingerprint, reason: HOSTILE });
  await expect(detail(page).getByText('U+202E', { exact: true }).first()).toBeVisible();
  await page.goto(`${server.address}/runs/${run.command_id}/audit`);
  await expect(page.getByText('U+202E', { exact: true }).first()).toBeVisible();
  const { etag } = await owner(page, 'GET', '/policies/server');
  await page.evaluate(
    async ([etag, note]) => {
      await fetch('/agent/terminal/policies/server', {
        method: 'PUT',
        headers: { 'x-weighlock': '1', 'content-type': 'application/json', 'if-match': `"${etag}"` },
        body: JSON.stringify({ text: `[[rule]]\nname = "x"\nreject = "make *"\nbecause = ${JSON.stringify(note)}\n`, note }),
      });
    },
    [String(etag), 'a\u202eb <img src=x onerror=alert(1)>'] as const,
  );
  for (const view of ['rules', 'history']) {
    await page.goto(`${server.address}/policies?view=${view}`);
    await expect(page.getByText('<img src=x onerror=alert(1)>').first()).toBeVisible();
    await expect(page.getByText('U+202E', { exact: true }).first()).toBeVisible();
  }
  await expect(page.locator('img')).toHaveCount(0);
  await expect(row(page, 'touch made')).toHaveCount(0);
});
