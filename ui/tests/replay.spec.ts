import type { Page } from '@playwright/test';
import { accessible, expect, test, type Agent, type Server } from './harness';

const shown = (page: Page) => page.locator('.xterm-rows');
const time = (page: Page) => page.locator('[data-time]');

interface Mark {
  time: number;
  kind: string;
  text: string;
}

const clock = (seconds: number) => `0:${String(seconds).padStart(2, '0')}`;

/** A terminal in which some commands were run, with a pause among them. */
async function recorded(agent: Agent): Promise<string> {
  const body = { name: 'dev-server', description: 'Start it', command: 'bash' };
  const id = (await agent.ask('POST', '/terminals', body)).body.terminal_id as string;
  for (const command of ['echo alpha', 'echo beta; sleep 4; echo gamma', 'seq 1 40']) {
    expect((await agent.ask('POST', `/terminals/${id}/exec`, { command })).status).toBe(200);
  }
  return id;
}

function replay(page: Page, server: Server, id: string, query = '') {
  return page.goto(`${server.address}/terminals/${id}/replay${query}`);
}

test('a link opens at its time, and marks, keys and finding lead through it', async ({ page, server }) => {
  const coder = server.agent('coder');
  const id = await recorded(coder);
  const index = (await coder.ask('GET', `/terminals/${id}/recording/index`)).body;
  const marks = index.marks as Mark[];
  const beta = marks.find((mark) => mark.text.includes('beta'))!;
  // While it sleeps, however long the beginning took.
  const at = Math.ceil(beta.time) + 1;
  await replay(page, server, id, `?t=${at}`);
  await expect(time(page)).toHaveText(clock(at));
  await expect(page.getByRole('button', { name: 'Play' })).toBeVisible();
  await expect(shown(page)).toContainText('beta');
  // In the command, and not yet in what it says.
  expect((await shown(page).textContent())?.match(/gamma/g)).toHaveLength(1);
  await accessible(page);

  const next = marks.find((mark) => mark.time > at)!;
  expect(next).toMatchObject({ kind: 'command', text: expect.stringContaining('seq 1 40') });
  await page.keyboard.press(']');
  await expect(page.getByRole('button', { name: /seq 1 40/ })).toHaveAttribute('aria-current', 'time');
  await expect(page).toHaveURL(new RegExp(`t=${Math.floor(next.time)}$`));
  await page.keyboard.press('[');
  await expect(page.getByRole('button', { name: /\$ echo beta/ })).toHaveAttribute('aria-current', 'time');
  const later = Math.min(beta.time + 5, index.duration);
  await page.keyboard.press('ArrowRight');
  await expect(time(page)).toHaveText(clock(Math.floor(later)));
  await page.keyboard.press('ArrowLeft');
  await expect(time(page)).toHaveText(clock(Math.floor(Math.max(0, later - 5))));
  await page.keyboard.press('>');
  await expect(page.getByLabel('Speed')).toHaveValue('2');
  await page.keyboard.press('<');
  await page.keyboard.press('<');
  await expect(page.getByLabel('Speed')).toHaveValue('0.5');

  await page.keyboard.press('f');
  await page.keyboard.type('GAMMA');
  await expect(page.getByText('3 matches')).toBeVisible();
  const hit = page.getByRole('search').getByRole('button').last();
  await expect(hit).toContainText(/gamma$/);
  await hit.click();
  await expect.poll(async () => (await shown(page).textContent())?.match(/gamma/g)).toHaveLength(2);
  await accessible(page);
});

test('it plays by itself, without its pauses, and stops at the end', async ({ page, server }) => {
  const id = await recorded(server.agent('coder'));
  await replay(page, server, id);
  await expect(page.getByRole('button', { name: 'Pause', exact: true })).toBeVisible();
  await expect(shown(page)).toContainText('beta');
  // Space holds it, wherever the focus is not on a button.
  await page.keyboard.press('Space');
  await expect(page.getByRole('button', { name: 'Play' })).toBeVisible();
  await expect(page).toHaveURL(/\?t=\d+$/);
  await page.keyboard.press('Space');
  await page.getByLabel('Speed').selectOption('16');
  await expect(shown(page)).toContainText('40');
  await expect(page.getByRole('button', { name: 'Play' })).toBeVisible();
  // From the end, it begins anew.
  await page.getByRole('button', { name: 'Play' }).click();
  await expect(page.getByRole('button', { name: 'Pause', exact: true })).toBeVisible();
});

test('the text has times, and what is hostile in it is text', async ({ page, server }) => {
  const coder = server.agent('coder');
  const body = { name: 'x‮y', description: 'Look', command: 'bash' };
  const id = (await coder.ask('POST', '/terminals', body)).body.terminal_id as string;
  const command = "printf '<img src=x onerror=alert(1)> \\xe2\\x80\\xae\\xe2\\x80\\x8b \\e[31mred\\e[0m\\n'";
  await coder.ask('POST', `/terminals/${id}/exec`, { command });
  await page.emulateMedia({ colorScheme: 'dark' });
  await replay(page, server, id, '?t=0');
  await expect(page.getByRole('heading', { level: 1 })).toContainText('U+202E');
  await page.getByRole('tab', { name: 'Text' }).click();
  const lines = page.getByRole('region', { name: 'Text' });
  await expect(lines).toContainText('<img src=x onerror=alert(1)> U+202E');
  await expect(lines.getByRole('listitem').filter({ hasText: 'U+202E' })).toHaveText(/ red$/);
  await accessible(page);
  await lines.getByRole('button').last().click();
  await expect(page.getByRole('tab', { name: 'Picture' })).toHaveAttribute('aria-selected', 'true');
});

test('a recording can be downloaded and linked', async ({ page, server }) => {
  const id = await recorded(server.agent('coder'));
  await page.context().grantPermissions(['clipboard-read', 'clipboard-write']);
  await replay(page, server, id, '?t=3');
  await expect(time(page)).toHaveText(clock(3));
  await page.getByRole('button', { name: 'Copy link' }).click();
  await expect(page.getByText('The link is copied.')).toBeVisible();
  expect(await page.evaluate(() => navigator.clipboard.readText())).toMatch(
    new RegExp(`/terminals/${id}/replay\\?t=3$`),
  );
  const [download] = await Promise.all([
    page.waitForEvent('download'),
    page.getByRole('link', { name: 'Download' }).click(),
  ]);
  expect(download.suggestedFilename()).toMatch(/\.cast$/);
});
