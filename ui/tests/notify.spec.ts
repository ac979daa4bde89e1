import type { Page } from '@playwright/test';
import { asked } from './approvals';
import { expect, test, type Server } from './harness';

interface Shown {
  title: string;
  body: string;
  closed: boolean;
}

/** The page is out of sight, and what it would show is kept to be looked at. */
async function away(page: Page, server: Server, more: object = {}): Promise<() => Promise<Shown[]>> {
  await page.context().grantPermissions(['notifications'], { origin: server.address });
  await page.clock.install();
  await page.addInitScript((kept) => {
    const shown: Shown[] = [];
    class Kept extends EventTarget {
      static permission = 'granted';
      onclose?: () => void;
      one;
      constructor(title: string, { body }: { body: string }) {
        super();
        this.one = { title, body, closed: false };
        shown.push(this.one);
      }
      close() {
        this.one.closed = true;
      }
    }
    Object.assign(window, { Notification: Kept, shown });
    Object.defineProperty(document, 'hidden', { get: () => true });
    localStorage.setItem('weighlock.settings', JSON.stringify({ notify: true, ...kept }));
  }, more);
  await page.reload();
  await expect(page.getByText('Connected', { exact: true })).toBeVisible();
  return () => page.evaluate(() => (window as unknown as { shown: Shown[] }).shown);
}

test('what comes soon after is told together, and taken back once it is decided', async ({ page, server }) => {
  const coder = server.agent('coder');
  const shown = await away(page, server);
  await asked(coder, 'touch 1', { review: 'before' });
  await expect.poll(shown).toHaveLength(1);
  const runs = [];
  for (const number of [2, 3]) runs.push(await asked(coder, `touch ${number}`, { review: 'before' }));
  // Both have been heard of once the number in the rail says so.
  await expect(page.getByRole('link', { name: /Inbox/ })).toContainText('3');
  expect(await shown()).toHaveLength(1);
  await page.clock.fastForward(31_000);
  await expect.poll(shown).toHaveLength(2);
  const [, both] = await shown();
  expect(both).toMatchObject({ title: 'coder needs 2 approvals', body: 'touch 2\ntouch 3', closed: false });
  server.cli('reject', runs[0]!.approval_id as string, '-m', 'no');
  await expect(page.getByRole('link', { name: /Inbox/ })).toContainText('2');
  expect((await shown())[1]!.closed).toBe(false);
  server.cli('reject', runs[1]!.approval_id as string, '-m', 'no');
  await expect.poll(async () => (await shown())[1]!.closed).toBe(true);
  expect((await shown())[0]!.closed).toBe(false);
});

test('nobody is notified in quiet hours', async ({ page, server }) => {
  const coder = server.agent('coder');
  const shown = await away(page, server, { quiet: { from: '00:00', to: '23:59' } });
  await page.clock.setSystemTime(new Date(2026, 0, 1, 12, 0));
  await asked(coder, 'touch quiet', { review: 'before' });
  await expect(page.getByRole('link', { name: /Inbox/ })).toContainText('1');
  await page.clock.setSystemTime(new Date(2026, 0, 1, 23, 59, 30));
  await asked(coder, 'touch loud', { review: 'before' });
  await expect.poll(shown).toHaveLength(1);
  expect((await shown())[0]!.body).toBe('touch loud');
});
