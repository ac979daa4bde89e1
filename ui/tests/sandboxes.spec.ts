import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { accessibleInBoth, fitsPhone } from './both';
import { accessible, expect, test } from './harness';

test('a sandbox is added, changed, switched off and deleted, and what protects it is shown', async ({
  page,
  server,
}) => {
  const place = join(server.base, 'webshop');
  mkdirSync(place);
  const coder = server.agent('coder');
  await page.goto(`${server.address}/sandboxes`);
  await expect(page.getByRole('row').filter({ hasText: 'default' })).toContainText(server.base);
  await accessibleInBoth(page);
  await fitsPhone(page, expect);
  await page.getByRole('link', { name: 'Add a sandbox' }).click();
  await expect(page.getByRole('complementary', { name: 'What protects this' })).toContainText('seccomp');
  await page.getByLabel('Name').fill('webshop');
  await page.getByRole('textbox', { name: 'Directory' }).fill('/etc');
  await page.getByRole('button', { name: 'Add', exact: true }).click();
  await expect(page.getByRole('alert')).toContainText('/etc');
  await expect(page.getByLabel('Name')).toHaveValue('webshop');
  await page.getByRole('textbox', { name: 'Directory' }).fill(place);
  await page.getByLabel('Memory, MiB').fill('512');
  await page.getByLabel('Only these').check();
  await page.getByLabel('coder').check();
  await accessibleInBoth(page);
  await fitsPhone(page, expect);
  await page.getByRole('button', { name: 'Add', exact: true }).click();

  await expect(page.getByRole('heading', { level: 1, name: 'webshop' })).toBeVisible();
  const protects = page.getByRole('complementary', { name: 'What protects this' });
  await expect(protects.getByText('namespaces')).toBeVisible();
  await expect(protects.getByText('Landlock')).toBeVisible();
  await expect(page.getByLabel('Memory, MiB')).toHaveValue('512');
  await expect(page.getByLabel('Work on a copy and ask before applying')).toBeChecked();
  await accessible(page);
  await page.getByLabel('Read only').check();
  await page.getByRole('button', { name: 'Save' }).click();
  await expect(page.getByRole('log')).toContainText('Saved.');
  await page.reload();
  await expect(page.getByLabel('Read only')).toBeChecked();

  const run = { sandbox_id: 'webshop' };
  server.cli('people', 'add', 'shop', '--agent', '--sandbox', 'webshop');
  expect((await coder.ask('POST', '/commands', { command: 'ls', ...run })).status).toBeGreaterThanOrEqual(400);
  server.cli('run', '--sandbox', 'webshop', '--', 'ls');
  await page.goto(`${server.address}/sandboxes`);
  await page.getByRole('row').filter({ hasText: 'webshop' }).getByRole('link', { name: '1', exact: true }).click();
  await expect(page).toHaveURL(/q=sandbox%3Asb_/);
  await expect(page.getByRole('row').filter({ hasText: 'ls' })).toBeVisible();
  await page.goto(`${server.address}/sandboxes/webshop`);
  await page.getByRole('button', { name: 'Deactivate' }).click();
  await expect(page.getByText('Deactivated')).toBeVisible();
  await page.getByRole('button', { name: 'Delete…' }).click();
  const dialog = page.getByRole('dialog', { name: 'Delete webshop?' });
  await expect(dialog).toContainText('Its history (1 run) is kept. The directory is not touched.');
  const remove = dialog.getByRole('button', { name: 'Delete', exact: true });
  await expect(remove).toBeDisabled();
  await dialog.getByLabel('Type webshop to delete it').fill('webshop');
  await accessible(page);
  await remove.click();
  await expect(page).toHaveURL(`${server.address}/sandboxes`);
  await expect(page.getByRole('row').filter({ hasText: 'webshop' })).toHaveCount(0);
});

test('a sandbox that is built in is shown, and is changed in the settings', async ({ page, server }) => {
  await page.goto(`${server.address}/sandboxes/default`);
  await expect(page.getByText('This sandbox is built in')).toBeVisible();
  await expect(page.getByLabel('Name')).toBeDisabled();
  await expect(page.getByRole('button', { name: 'Save' })).toHaveCount(0);
  await fitsPhone(page, expect);
  await page.goto(`${server.address}/sandboxes/nowhere`);
  await expect(page.getByText('There is no sandbox nowhere, or you have no access to it.')).toBeVisible();
});
