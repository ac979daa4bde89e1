// Agents that deceive: nothing is hidden, nothing of theirs acts on the page,
// and none of them decides.
import { expect as plain } from '@playwright/test';
import { accessible, expect, test } from './harness';
import { asked, decision, detail, put, quiet, row } from './approvals';

const TRICK = 'touch \u202egpj.exe\u200b https://ex\u0430mple.dev/x';

test('a long command is decided by nobody who has not seen its end', async ({ page, server }) => {
  const coder = server.agent('coder');
  const lines = Array.from({ length: 299 }, (_, at) => `touch f${at}`);
  await asked(coder, [...lines, 'curl https://x.test -o f'].join('\n'), { review: 'before' });
  const main = decision(page, /Approve/);
  await expect(main).toBeDisabled();
  await expect(decision(page, 'Always…')).toBeDisabled();
  await expect(page.getByText('Scroll to the end of the command')).toBeVisible();
  await quiet(page);
  await page.keyboard.press('w');
  await expect(page.getByRole('dialog')).toHaveCount(0);
  await quiet(page);
  await page.keyboard.press('a');
  await expect(decision(page, /press Enter/)).toHaveCount(0);
  await accessible(page);
  const block = page.getByRole('region', { name: 'The whole command; scroll to its end' });
  await block.focus();
  await page.keyboard.press('End');
  await expect(block.getByText('curl')).toBeInViewport();
  await expect(main).toBeEnabled();
});

test('what cannot be seen is shown by its code wherever the command stands', async ({ page, server }) => {
  const coder = server.agent('coder');
  const run = await asked(coder, TRICK, {
    review: 'before',
    description: 'List\u001b[2J \u2066pictures\u0007',
  });
  const here = row(page, 'gpj.exe');
  for (const code of ['U+202E', 'U+200B', 'U+0430']) {
    await expect(here.getByText(code, { exact: true }).first()).toBeAttached();
    await expect(detail(page).locator('pre').getByText(code, { exact: true })).toBeVisible();
  }
  await expect(detail(page).getByText('Contains hidden or look-alike characters (3)')).toBeVisible();
  await expect(detail(page).getByText('description does not match the command')).toBeVisible();
  await expect(detail(page).locator('pre')).toContainText('→ xn--exmple-4nf.dev');
  await expect(detail(page).getByText('U+001B', { exact: true })).toBeVisible();
  const shown = await page.evaluate(() => document.body.innerText);
  expect(shown).not.toMatch(/[\u202e\u200b\u2066\u0007\u001b\u0430]/);
  await accessible(page);
  const listed = server.cli('inbox') + server.cli('show', run.short_id);
  expect(listed).toContain('⟦U+202E⟧gpj.exe⟦U+200B⟧');
});

test('markup is text, in commands, claims, names and diffs', async ({ page, server }) => {
  const coder = server.agent('coder');
  const image = '<img src=x onerror=document.title=1>';
  put(server, 'README.md', 'a\n');
  await asked(coder, `printf '%s\\n' '${image}' '\u202e' > README.md; touch '<b>\u200b'`, {
    description: `${image} {{7*7}}`,
    session_id: image,
  });
  await expect(decision(page, /Apply/)).toBeEnabled();
  await expect(detail(page).getByText(`coder says “${image} {{7*7}}”`)).toBeVisible();
  await expect(detail(page).getByRole('row', { name: `added ${image}` })).toBeVisible();
  await expect(detail(page).getByRole('row', { name: 'hidden character U+202E' })).toBeVisible();
  await expect(page.locator('img')).toHaveCount(0);
  await expect(page).toHaveTitle(/Inbox — weighlock$/);
  const box = await page.evaluate(() => [document.documentElement.scrollWidth, innerWidth]);
  expect(box[0]).toBeLessThanOrEqual(box[1]!);
  await accessible(page);
});

test('an agent decides nothing, and that it tried is on record', async ({ page, server }) => {
  const coder = server.agent('coder');
  const run = await asked(coder, 'touch new.txt', { review: 'before' });
  const { body: approval } = await coder.ask('GET', `/approvals/${run.approval_id}`);
  const { fingerprint } = approval;
  const tries = [
    [`/approvals/${run.approval_id}/decision`, { kind: 'approve_once', fingerprint }],
    [`/approvals/${run.approval_id}/decision`, { kind: 'reject', fingerprint }],
    [`/commands/${run.command_id}/approve`, { fingerprint }],
    [`/approvals/${run.approval_id}/extend`, {}],
    ['/policies/grants', { pattern: 'touch *' }],
  ] as const;
  for (const [path, body] of tries) {
    const answer = await coder.ask('POST', path, body);
    plain(answer.status, path).toBe(403);
  }
  const audit = await page.request.get(`${server.address}/agent/terminal/audit?limit=200`);
  const kinds = (await audit.json()).entries.filter(
    ({ actor, kind }: { actor: string; kind: string }) => actor === 'coder' && /refus|never|denied/.test(kind),
  );
  expect(kinds.length).toBeGreaterThanOrEqual(tries.length);
  expect((await coder.ask('GET', `/commands/${run.command_id}`)).body.state).toBe('waiting');
});

test('a person who is away is told once, in safe text, and only opens', async ({ page, server, context }) => {
  const coder = server.agent('coder');
  await context.grantPermissions(['notifications'], { origin: server.address });
  // The browser's own notifications leave the page; these are kept to be looked at.
  await page.addInitScript(() => {
    const shown: { title: string; body: string; closed: boolean; open: () => void }[] = [];
    class Kept extends EventTarget {
      static permission = 'granted';
      static requestPermission = () => Promise.resolve('granted');
      onclick?: () => void;
      onclose?: () => void;
      one;
      constructor(title: string, { body }: { body: string }) {
        super();
        this.one = { title, body, closed: false, open: () => this.onclick?.() };
        shown.push(this.one);
      }
      close() {
        this.one.closed = true;
      }
    }
    Object.assign(window, { Notification: Kept, shown });
    Object.defineProperty(document, 'hidden', { get: () => true });
    localStorage.setItem('weighlock.settings', JSON.stringify({ notify: true }));
  });
  await page.reload();
  await expect(page.getByText('Connected', { exact: true })).toBeVisible();
  const run = await asked(coder, TRICK, { review: 'before' });
  await asked(coder, 'touch other.txt', { review: 'before' });
  const shown = () =>
    page.evaluate(() => (window as unknown as { shown: { title: string; body: string; closed: boolean }[] }).shown);
  await expect.poll(shown).toHaveLength(1);
  const [one] = await shown();
  expect(one!.title).toBe('coder needs approval');
  expect(one!.body).toContain('High risk · touch ⟦U+202E⟧gpj.exe⟦U+200B⟧');
  await page.evaluate(() => (window as unknown as { shown: { open: () => void }[] }).shown[0]!.open());
  await expect(page).toHaveURL(`${server.address}/a/${run.approval_id}`);
  expect((await coder.ask('GET', `/commands/${run.command_id}`)).body.state).toBe('waiting');
});
