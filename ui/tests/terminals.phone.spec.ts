import type { Page } from '@playwright/test';
import { accessible, expect, test } from './harness';

const shown = (page: Page) => page.locator('.xterm-rows');

/** Nothing scrolls sideways, and what is touched is large enough. */
async function fits(page: Page): Promise<void> {
  const found = await page.evaluate(() => {
    const main = document.querySelector('main')!;
    const small = [...main.querySelectorAll<HTMLElement>('button, .button, input:not([type=checkbox])')]
      .filter((one) => one.checkVisibility() && one.offsetHeight < 48)
      .map((one) => one.outerHTML.slice(0, 120));
    const wide = document.documentElement.scrollWidth > innerWidth || main.scrollWidth > main.clientWidth;
    return { small, wide };
  });
  expect(found).toEqual({ small: [], wide: false });
}

test('a terminal is watched and typed at on a phone', async ({ page, server }) => {
  const coder = server.agent('coder');
  const body = { name: 'repl', description: 'Ask a question', command: 'bash' };
  const id = (await coder.ask('POST', '/terminals', body)).body.terminal_id as string;
  await coder.ask('POST', `/terminals/${id}/exec`, { command: 'seq 1 200' });
  await page.goto(`${server.address}/terminals`);
  await expect(page.getByRole('link', { name: /repl/ })).toBeVisible();
  await expect(page).toHaveURL(/\/terminals$/);
  await fits(page);
  await accessible(page);
  await page.getByRole('link', { name: /repl/ }).tap();
  await expect(shown(page)).toContainText('200');
  await fits(page);
  await accessible(page);

  await page.getByRole('button', { name: 'Take over' }).tap();
  const line = page.getByLabel('Type a line');
  await expect(line).toBeVisible();
  await expect.poll(async () => (await coder.ask('GET', `/terminals/${id}`)).body.columns).toBeLessThan(80);
  await line.fill('echo $((40+2))-from-a-phone');
  await page.getByRole('button', { name: 'Send' }).tap();
  await expect(shown(page)).toContainText('42-from-a-phone');
  await line.fill('sleep 1000');
  await page.keyboard.press('Enter');
  await page.getByRole('button', { name: 'Ctrl C' }).tap();
  await expect(shown(page)).toContainText('^C');
  await page.getByRole('button', { name: 'Ctrl', exact: true }).tap();
  await line.focus();
  await page.keyboard.type('d');
  await expect(line).toHaveValue('');
  await expect(page.getByText('This terminal is closed')).toBeVisible();
  await fits(page);
  await accessible(page);
});

test('a recording is looked at on a phone, in the dark', async ({ page, server }) => {
  await page.emulateMedia({ colorScheme: 'dark' });
  const coder = server.agent('coder');
  const body = { name: 'shell', description: 'Look', command: 'bash' };
  const id = (await coder.ask('POST', '/terminals', body)).body.terminal_id as string;
  await coder.ask('POST', `/terminals/${id}/exec`, { command: 'echo alpha' });
  // It begins with what can be read, unless a link is to a moment.
  await page.goto(`${server.address}/terminals/${id}/replay`);
  await expect(page.getByRole('tab', { name: 'Text' })).toHaveAttribute('aria-selected', 'true');
  await expect(page.getByRole('tabpanel')).toContainText('alpha');
  await accessible(page);
  await page.goto(`${server.address}/terminals/${id}/replay?t=0`);
  await page.getByRole('button', { name: /\$ echo alpha/ }).tap();
  await page.getByRole('button', { name: 'Play' }).tap();
  await expect(shown(page)).toContainText('alpha');
  await fits(page);
  await accessible(page);
  await page.getByRole('button', { name: 'Find' }).tap();
  await page.getByRole('searchbox').fill('alpha');
  await expect(page.getByText(/matches/)).toBeVisible();
  await fits(page);
});

test('a finger scrolls through what was shown before, and changes nothing', async ({ page, server }) => {
  const coder = server.agent('coder');
  const body = { name: 'repl', description: 'Ask a question', command: 'bash' };
  const id = (await coder.ask('POST', '/terminals', body)).body.terminal_id as string;
  await coder.ask('POST', `/terminals/${id}/exec`, { command: 'seq 1 200' });
  await page.goto(`${server.address}/terminals/${id}`);
  await expect(shown(page)).toContainText('200');
  const box = (await shown(page).boundingBox())!;
  const debug = await page.context().newCDPSession(page);
  const finger = (type: 'touchStart' | 'touchMove' | 'touchEnd', y = 0) =>
    debug.send('Input.dispatchTouchEvent', {
      type,
      touchPoints: type === 'touchEnd' ? [] : [{ x: box.x + 100, y: box.y + y }],
    });
  await finger('touchStart', 20);
  for (let y = 40; y <= 220; y += 20) await finger('touchMove', y);
  await finger('touchEnd');
  await expect(shown(page)).not.toContainText('200');
  expect((await coder.ask('GET', `/terminals/${id}`)).body).toMatchObject({ columns: 80, rows: 24 });
});
