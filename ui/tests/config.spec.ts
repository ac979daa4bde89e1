import { readFileSync, existsSync } from 'node:fs';
import { join } from 'node:path';
import { accessibleInBoth, fitsPhone } from './both';
import { expect, test, type Server } from './harness';
import type { Page } from '@playwright/test';

async function open(page: Page) {
  await page.getByRole('button', { name: 'Terminal config' }).click();
  const dialog = page.getByRole('dialog', { name: 'Terminal config' });
  await expect(dialog.getByLabel('New entry')).toBeFocused();
  return dialog;
}

const file = (server: Server) => join(server.base, '.agents/terminal.json');

test('the first opening shows the built-in list, and what is empty or there already is refused with a reason', async ({
  page,
  server,
}) => {
  const dialog = await open(page);
  const entries = dialog.getByRole('listitem');
  await expect(entries).toHaveCount(18);
  await expect(entries.first()).toContainText('rm -rf /');
  await expect(dialog.getByRole('heading', { name: 'Command blacklist' })).toBeVisible();

  await page.keyboard.press('Enter');
  await expect(dialog.getByRole('alert')).toHaveText('Type a text first.');
  await page.keyboard.type('   ');
  await expect(dialog.getByRole('alert')).toHaveCount(0);
  await page.keyboard.press('Enter');
  await expect(dialog.getByRole('alert')).toHaveText('Type a text first.');
  await dialog.getByLabel('New entry').fill(' RM   -rf /  ');
  await dialog.getByRole('button', { name: 'Add', exact: true }).click();
  await expect(dialog.getByRole('alert')).toHaveText('Already in the list.');
  await expect(entries).toHaveCount(18);
  await accessibleInBoth(page);
  await fitsPhone(page, expect);

  await expect(dialog.getByText('Not in use yet')).toBeVisible();
  const limits = dialog.getByRole('link', { name: 'Change the time limits' });
  await expect(limits).toHaveAttribute('href', '/settings/general');
  // Nothing was changed, so that nothing is asked.
  await dialog.getByRole('button', { name: 'Cancel' }).click();
  await expect(dialog).toHaveCount(0);
  await expect(page.getByRole('button', { name: 'Terminal config' })).toBeFocused();
  expect(existsSync(file(server))).toBe(false);
});

test('saved, an entry blocks what contains it, whatever its case and spacing', async ({ page, server }) => {
  const coder = server.agent('coder');
  expect((await coder.run('echo Deploy   NOW')).state).toBe('succeeded');
  const dialog = await open(page);
  await page.keyboard.type('  deploy   now ');
  await page.keyboard.press('Enter');
  await expect(dialog.getByLabel('New entry')).toHaveValue('');
  await expect(dialog.getByRole('listitem').last()).toContainText('deploy now');
  await dialog.getByRole('button', { name: 'Remove mkfs.' }).click();
  await expect(dialog.getByRole('listitem')).toHaveCount(18);
  await dialog.getByRole('button', { name: 'Save' }).click();
  // It is the only command of the week, so that a person is asked once.
  await expect(dialog.getByRole('alert')).toContainText('would have blocked 1 of the last 1 command');
  await expect(dialog.getByRole('alert')).toContainText('echo Deploy   NOW');
  await dialog.getByRole('button', { name: 'Save anyway' }).click();
  await expect(dialog).toHaveCount(0);
  await expect(page.getByRole('log')).toContainText('Saved.');

  const kept = JSON.parse(readFileSync(file(server), 'utf8')) as { commandBlacklist: string[] };
  expect(Object.keys(kept)).toEqual(['commandBlacklist']);
  expect(kept.commandBlacklist).toContain('deploy now');
  expect(kept.commandBlacklist).not.toContain('mkfs.');
  expect((await coder.run('echo "DEPLOY     now"')).state).toBe('blocked');
  expect((await coder.run('echo deploy later')).state).toBe('succeeded');

  const again = await open(page);
  await expect(again.getByText('Matched 2 commands in the last 7 days')).toBeVisible();
  await again.getByRole('button', { name: 'Restore the defaults' }).click();
  await expect(again.getByText('mkfs.')).toBeVisible();
  await again.getByRole('button', { name: 'Save' }).click();
  await expect(again).toHaveCount(0);
  expect((await coder.run('echo deploy now')).state).toBe('succeeded');
});

test('what was changed is thrown away only when a person says so', async ({ page, server }) => {
  const dialog = await open(page);
  await page.keyboard.type('deploy');
  await page.keyboard.press('Enter');
  await page.keyboard.press('Escape');
  await expect(dialog.getByText('Discard your changes?')).toBeVisible();
  await accessibleInBoth(page);
  await dialog.getByRole('button', { name: 'Keep editing' }).click();
  await expect(dialog.getByText('deploy')).toBeVisible();
  await dialog.getByRole('button', { name: 'Cancel' }).click();
  await dialog.getByRole('button', { name: 'Discard', exact: true }).click();
  await expect(dialog).toHaveCount(0);
  expect(existsSync(file(server))).toBe(false);
  await expect((await open(page)).getByText('deploy')).toHaveCount(0);
});

test('entries can be removed one after another by the keyboard, and are shown for what they are', async ({
  page,
  server,
}) => {
  const coder = server.agent('coder');
  const list = ['a\u202eb', '<img src=x onerror=alert(1)>', 'p\u0430ypal'];
  const put = await page.request.put(`${server.address}/agent/terminal/blacklist`, {
    headers: { 'x-weighlock': '1' },
    data: { commandBlacklist: list },
  });
  expect(put.status()).toBe(200);
  expect((await coder.run('echo "<img src=x onerror=alert(1)>"')).state).toBe('blocked');
  const dialog = await open(page);
  await expect(dialog.getByRole('listitem').first()).toContainText('U+202E');
  await expect(dialog.getByRole('listitem').nth(1)).toContainText('<img src=x onerror=alert(1)>');
  await expect(dialog.getByRole('listitem').nth(2)).toContainText('U+0430');
  await expect(page.locator('dialog img')).toHaveCount(0);
  await dialog.getByRole('button', { name: 'Remove a⟦U+202E⟧b' }).focus();
  await page.keyboard.press('Enter');
  await expect(dialog.getByRole('button', { name: /^Remove <img/ })).toBeFocused();
  await page.keyboard.press('Enter');
  await expect(dialog.getByRole('button', { name: /^Remove p/ })).toBeFocused();
  await page.keyboard.press('Enter');
  await expect(dialog.getByLabel('New entry')).toBeFocused();
  await expect(dialog.getByText('The list is empty')).toBeVisible();
});
