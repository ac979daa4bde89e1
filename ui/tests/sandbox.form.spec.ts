// The form of a sandbox: its directory, what is hidden, its environment.
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { accessibleInBoth, fitsPhone } from './both';
import { expect, test } from './harness';
import { owner } from './runs';

test('a directory is chosen from those that are allowed, and no other is shown', async ({ page, server }) => {
  mkdirSync(join(server.base, 'shops/webshop/src'), { recursive: true });
  writeFileSync(join(server.base, 'shops/webshop/src/a'), 'x'.repeat(2048));
  await page.goto(`${server.address}/sandboxes/new`);
  await page.getByRole('textbox', { name: /^Name/ }).fill('webshop');
  const directory = page.getByRole('textbox', { name: 'Directory' });
  await directory.fill('/etc');
  await expect(page.getByText('/etc is not below an allowed root')).toBeVisible();
  await directory.fill('');
  await page.getByRole('button', { name: 'Choose…' }).click();
  const dialog = page.getByRole('dialog', { name: 'Choose a directory' });
  await dialog.getByRole('button', { name: server.base }).click();
  await dialog.getByRole('button', { name: 'shops' }).click();
  await accessibleInBoth(page);
  await fitsPhone(page, expect);
  await dialog.getByRole('button', { name: 'webshop' }).click();
  await expect(dialog).toContainText('2.0 KiB in 1 file');
  await expect(dialog).toContainText('owned by');
  await dialog.getByRole('button', { name: 'Parent directory' }).click();
  await dialog.getByRole('button', { name: 'webshop' }).click();
  await dialog.getByRole('button', { name: 'Use this directory' }).click();
  await expect(directory).toHaveValue(join(server.base, 'shops/webshop'));
  await expect(page.getByText('2.0 KiB in 1 file')).toBeVisible();
  // What does not work is not offered.
  await expect(page.getByText('Only these hosts: not available yet')).toBeVisible();
  await expect(page.getByRole('radio', { name: /hosts/ })).toHaveCount(0);
  await expect(page.getByLabel('Always hidden')).toHaveValue(/~\/\.ssh\n/);
  await accessibleInBoth(page);
});

test('variables are set and passed, and a secret is written and never read', async ({ page, server }) => {
  const place = join(server.base, 'shop');
  mkdirSync(place);
  writeFileSync(join(place, 'hidden.txt'), 'not for commands\n');
  await page.goto(`${server.address}/sandboxes/new`);
  await page.getByRole('textbox', { name: /^Name/ }).fill('shop');
  await page.getByRole('textbox', { name: 'Directory' }).fill(place);
  await page.getByLabel('Always hidden').fill(join(place, 'hidden.txt'));
  await page.getByLabel('Variables passed through from the server').fill('WEIGHLOCK_STATE_DIR');
  await page.getByRole('button', { name: 'Add a variable' }).click();
  const set = page.getByRole('group', { name: 'Variables set here' });
  await set.getByLabel('Name').fill('STAGE');
  await set.getByLabel('Value of STAGE').fill('test');
  await page.getByRole('button', { name: 'Add a secret' }).click();
  const secrets = page.getByRole('group', { name: 'Secret variables' });
  await secrets.getByLabel('Name').fill('SHOP_SIGN');
  await secrets.getByLabel('Value of SHOP_SIGN').fill('s3cret-value');
  await page.getByLabel('Time per run, seconds').fill('60');
  await accessibleInBoth(page);
  await fitsPhone(page, expect);
  await page.getByRole('button', { name: 'Add', exact: true }).click();
  await expect(page.getByRole('heading', { level: 1, name: 'shop' })).toBeVisible();

  await expect(secrets.getByLabel('Value of SHOP_SIGN')).toHaveValue('');
  expect(JSON.stringify(await owner(page, 'GET', '/sandboxes/shop'))).not.toContain('s3cret-value');
  const run = (command: string, more = {}) =>
    owner(page, 'POST', '/commands', { command, sandbox_id: 'shop', ...more });
  const seen = await run('printenv STAGE; printenv WEIGHLOCK_STATE_DIR; cat hidden.txt; printenv SHOP_SIGN');
  // What only reads is not given the secret, nor does it see what is hidden.
  expect(seen.stdout).toBe(`test\n${join(server.home, 'state')}\n`);
  expect(seen.timeout_ms).toBe(60_000);
  const asked = await run('test "$SHOP_SIGN" = s3cret-value && touch made', { review: 'before', wait_ms: 0 });
  const card = await owner(page, 'GET', `/approvals/${asked.approval_id}`);
  const { fingerprint } = card;
  await owner(page, 'POST', `/approvals/${asked.approval_id}/decision`, { kind: 'approve_once', fingerprint });
  await expect
    .poll(async () => (await owner(page, 'GET', `/commands/${asked.command_id}`)).state)
    .toBe('succeeded');

  await secrets.getByRole('button', { name: 'Remove SHOP_SIGN' }).click();
  await set.getByRole('button', { name: 'Remove STAGE' }).click();
  await page.getByRole('button', { name: 'Save' }).click();
  await expect(page.getByRole('log')).toContainText('Saved.');
  const now = await owner(page, 'GET', '/sandboxes/shop');
  expect([now.secrets, now.set]).toEqual([[], {}]);
});
