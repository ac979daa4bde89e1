import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { accessibleInBoth, fitsPhone } from './both';
import { expect, test } from './harness';

test('health says what doctor says, and the audit can be verified and exported', async ({ page, server }) => {
  await page.goto(`${server.address}/settings/health`);
  for (const check of ['database', 'audit', 'namespaces', 'Landlock', 'walls']) {
    await expect(page.getByRole('listitem').filter({ hasText: check }).first()).toBeVisible();
  }
  await page.getByRole('button', { name: 'Verify the audit now' }).click();
  await expect(page.getByText(/^The chain is unbroken: \d+ entries verified\.$/)).toBeVisible();
  const [download] = await Promise.all([
    page.waitForEvent('download'),
    page.getByRole('link', { name: 'Export the audit' }).click(),
  ]);
  expect(download.suggestedFilename()).toMatch(/audit/);
  await accessibleInBoth(page);
  await fitsPhone(page, expect);
});

test('every section has an address, and what is chosen on this device stays', async ({ page, server }) => {
  await page.goto(`${server.address}/settings`);
  const theme = page.getByRole('region', { name: 'On this device' }).getByLabel('Theme');
  await theme.selectOption('Dark');
  await expect(page.locator('html')).toHaveAttribute('data-theme', 'dark');
  await page.getByLabel('Single-key shortcuts').uncheck();
  await page.getByRole('heading', { level: 1 }).click();
  await page.keyboard.press('?');
  await page.reload();
  await expect(theme).toHaveValue('dark');
  await expect(page.getByRole('dialog')).toHaveCount(0);
  await theme.selectOption('System');
  const sections = page.getByRole('navigation', { name: 'Settings' });
  for (const name of ['General', 'Notifications', 'Retention', 'About']) {
    await sections.getByRole('link', { name }).click();
    await expect(page).toHaveURL(`${server.address}/settings/${name.toLowerCase()}`);
    await expect(page.getByRole('heading', { level: 1, name })).toBeVisible();
    await accessibleInBoth(page);
    await fitsPhone(page, expect);
  }
  await page.goto(`${server.address}/settings/nowhere`);
  await expect(page.getByText('Page not found.')).toBeVisible();
});

test('the first run leads from a directory over an agent to the first question', async ({ page, server }) => {
  // Where whoever comes for the first time is.
  await page.getByRole('link', { name: 'First steps' }).click();
  await expect(page).toHaveURL(/\/welcome$/);
  await expect(page.getByRole('heading', { name: /Choose a directory.*\(done\)/ })).toBeVisible();
  await expect(page.getByText(server.base)).toBeVisible();
  await accessibleInBoth(page);
  await fitsPhone(page, expect);
  await page.getByLabel('Name').last().fill('coder');
  await page.getByRole('button', { name: 'Create a token' }).click();
  await expect(page.getByText('Waiting for coder to call…')).toBeVisible();

  const command = page.getByRole('textbox', { name: 'Command' });
  await expect(command).toHaveValue('ls');
  await page.getByRole('button', { name: 'Run' }).click();
  await expect(command).toHaveValue('touch hello.txt');
  await page.getByRole('button', { name: 'Run' }).click();
  await expect(page.getByText('It was tried on a copy, and waits for you.')).toBeVisible();
  expect(existsSync(join(server.base, 'hello.txt'))).toBe(false);
  const open = page.getByRole('link', { name: 'Open it in the inbox' });
  await expect(open).toHaveAttribute('href', /^\/inbox\/ap_/);
  await accessibleInBoth(page);

  // Decided elsewhere, as another window would.
  const id = (await open.getAttribute('href'))!.split('/').at(-1)!;
  const api = `${server.address}/agent/terminal/approvals/${id}`;
  const { fingerprint } = (await (await page.request.get(api)).json()) as { fingerprint: string };
  const decided = await page.request.post(`${api}/decision`, {
    headers: { 'x-weighlock': '1' },
    data: { kind: 'apply_effect', fingerprint },
  });
  expect(decided.status()).toBe(200);
  await expect(page.getByText('Decided. That is all')).toBeVisible();
  expect(existsSync(join(server.base, 'hello.txt'))).toBe(true);
});

test('a home directory is no first sandbox: a project is asked for, and the steps are taken there', async ({ page, server }) => {
  server.agent('quiet');
  await server.kill();
  server.base = server.home;
  await server.start();
  await page.goto(`${server.address}/welcome`);
  await expect(page.getByText('holds more than a project')).toBeVisible();
  await expect(page.getByRole('heading', { name: /\(done\)/ })).toHaveCount(0);
  // A token alone is no agent that has called.
  await expect(page.getByText('Not seen yet: quiet.')).toBeVisible();
  await page.getByRole('button', { name: 'Run' }).click();
  await expect(page.getByText('this one runs in an empty home directory')).toBeVisible();
  await accessibleInBoth(page);
  await fitsPhone(page, expect);

  await expect(page.getByRole('link', { name: 'Browse directories' })).toHaveAttribute('href', '/sandboxes/new');
  await page.getByLabel('Name').fill('shop');
  await page.getByLabel('Directory').fill(join(server.home, 'project'));
  await page.getByRole('button', { name: 'Add' }).click();
  await expect(page.getByRole('heading', { name: /Choose a directory.*\(done\)/ })).toBeVisible();
  await page.getByRole('textbox', { name: 'Command' }).fill('touch hello.txt');
  await page.getByRole('button', { name: 'Run' }).click();
  await expect(page.getByText('It was tried on a copy, and waits for you.')).toBeVisible();
  await expect(page.getByText('this one runs in an empty home directory')).toHaveCount(0);

  const listed = await page.request.get(`${server.address}/agent/terminal/commands`);
  const { commands } = (await listed.json()) as { commands: { command_id: string; command: string }[] };
  await page.goto(`${server.address}/runs/${commands.find(({ command }) => command === 'ls')!.command_id}`);
  await expect(page.getByText('this one runs in an empty home directory')).toBeVisible();
});

test('limits are changed for everybody, at once and after a restart', async ({ page, server }) => {
  const coder = server.agent('coder');
  await page.goto(`${server.address}/settings/general`);
  await page.getByLabel('Default time limit of a run').fill('30');
  await page.getByLabel('An approval expires after').fill('5');
  await page.getByRole('button', { name: 'Save' }).click();
  await expect(page.getByRole('alert')).toContainText('a question waits for 10 seconds to 7 days');
  expect((await coder.run('true')).timeout_ms).toBe(120_000);
  await page.getByLabel('An approval expires after').fill('600');
  await page.getByLabel('Commands can be always allowed').uncheck();
  await accessibleInBoth(page);
  await fitsPhone(page, expect);
  await page.getByRole('button', { name: 'Save' }).click();
  await expect(page.getByRole('log')).toContainText('Saved. In effect now.');
  expect((await coder.run('true')).timeout_ms).toBe(30_000);
  await server.kill();
  await server.start();
  expect((await coder.run('true')).timeout_ms).toBe(30_000);
  await coder.run('touch x', { review: 'before', wait_ms: 0 });
  await page.goto(`${server.address}/inbox`);
  await expect(page.getByText(/expires in 9:\d\d/)).toBeVisible();
  await expect(page.getByRole('button', { name: 'Reject…' })).toBeEnabled();
  await expect(page.getByRole('button', { name: 'Always…' })).toHaveCount(0);

  // An empty field is what the file says.
  await page.goto(`${server.address}/settings/general`);
  await expect(page.getByText('120 in the configuration file')).toBeVisible();
  await page.getByLabel('Default time limit of a run').fill('');
  await page.getByRole('button', { name: 'Save' }).click();
  await expect(page.getByLabel('Default time limit of a run')).toHaveValue('120');
});

test('what is kept is shown, and what other limits would remove before they are saved', async ({ page, server }) => {
  const coder = server.agent('coder');
  for (let n = 0; n < 3; n++) await coder.run('head -c 9000000 /dev/zero | tr "\\0" x');
  await page.goto(`${server.address}/settings/retention`);
  const outputs = page.getByRole('region', { name: 'Output and recordings' });
  await expect(outputs).toContainText(/3 kept, 25\.\d MiB/);
  await expect(outputs).toContainText('Nothing would be removed now.');
  await outputs.getByLabel('Total size of output').fill('20');
  await expect(outputs).toContainText(/1 \(8\.\d MiB\) would be removed now\./);
  await accessibleInBoth(page);
  await fitsPhone(page, expect);
  await page.getByRole('button', { name: 'Save' }).click();
  await expect(page.getByRole('log')).toContainText('Saved.');
  // The next run's end tidies up.
  await coder.run('echo done');
  await expect.poll(async () => (await (await page.request.get(`${server.address}/agent/terminal/kept`)).json()).outputs.count).toBe(3);
  await page.reload();
  await expect(outputs).toContainText(/3 kept, 17\.\d MiB/);
});
