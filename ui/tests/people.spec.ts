import { accessibleInBoth, fitsPhone } from './both';
import { accessible, Agent, expect, test, watch } from './harness';

const TOKEN = /wl_[0-9a-f]{64}/;

test('an agent is connected by what the page says, and the page says that it works', async ({ page, server }) => {
  await page.goto(`${server.address}/people`);
  await expect(page.getByText('No agent is connected.')).toBeVisible();
  await page.getByRole('button', { name: 'Connect an agent' }).click();
  const dialog = page.getByRole('dialog', { name: 'Connect an agent' });
  await expect(dialog.getByLabel('Name')).toBeFocused();
  await page.keyboard.type('Not a name');
  await page.keyboard.press('Enter');
  await expect(dialog.getByRole('alert')).toContainText('Could not connect it');
  await dialog.getByLabel('Name').fill('coder');
  await accessible(page);
  await page.keyboard.press('Enter');

  await expect(dialog.getByText('You will not see it again.')).toBeVisible();
  const region = dialog.getByRole('region', { name: 'Token of coder' });
  const token = TOKEN.exec(await region.innerText())![0];
  await expect(dialog.getByRole('status').last()).toHaveText('Waiting for coder to call…');
  for (const [tab, words] of [
    ['MCP over stdio', ['weighlock mcp install claude-code', '"WEIGHLOCK_TOKEN"']],
    ['MCP over HTTP', [`${server.address}/mcp`, `Bearer ${token}`]],
    ['REST', [`${server.address}/agent/terminal/commands`, token]],
    ['Library', [`${server.address}/agent/terminal/commands`, token]],
  ] as const) {
    await expect(dialog.getByRole('tab', { name: tab })).toHaveAttribute('aria-selected', 'true');
    for (const word of words) await expect(dialog.getByRole('tabpanel')).toContainText(word);
    await dialog.getByRole('tab', { name: tab }).focus();
    await page.keyboard.press('ArrowRight');
  }
  await accessibleInBoth(page);
  await fitsPhone(page, expect);

  const coder = new Agent(server, token);
  expect((await coder.ask('GET', '/me')).body.principal_id).toBe('coder');
  await expect(dialog.getByText('coder called — it works.')).toBeVisible();
  expect((await coder.run('ls')).state).toBe('succeeded');
  await dialog.getByRole('button', { name: 'Done' }).click();
  await expect(page.getByRole('listitem').filter({ hasText: 'coder' })).toContainText('1 token');
  await accessibleInBoth(page);
  await fitsPhone(page, expect);
  await expect(page.getByText(token)).toHaveCount(0);
});

test('a token is shown once, rotated, and revoked at once', async ({ page, server }) => {
  const coder = server.agent('coder');
  await page.goto(`${server.address}/people/coder`);
  const prefix = coder.token.slice(0, 9);
  await page.getByLabel('What it is for').fill('<img src=x onerror=alert(1)>\u202e');
  await page.getByRole('button', { name: 'New token' }).click();
  const made = page.getByRole('dialog', { name: 'New token' });
  const second = TOKEN.exec(await made.getByRole('region', { name: 'Token of coder' }).innerText())![0];
  await accessible(page);
  await made.getByRole('button', { name: 'Done' }).click();
  await expect(page.getByText(second)).toHaveCount(0);
  const line = page.getByRole('listitem').filter({ hasText: '<img src=x onerror=alert(1)>' });
  await expect(line).toContainText('U+202E');
  await expect(line).toContainText(`${second.slice(0, 9)}…`);
  expect((await new Agent(server, second).ask('GET', '/me')).status).toBe(200);

  await page.getByRole('button', { name: `Rotate ${prefix}` }).click();
  const rotate = page.getByRole('dialog', { name: `Rotate ${prefix}…?` });
  await rotate.getByLabel('The old one stays valid for').selectOption('no time');
  await accessible(page);
  await rotate.getByRole('button', { name: 'Rotate' }).click();
  const third = TOKEN.exec(await made.getByRole('region', { name: 'Token of coder' }).innerText())![0];
  await made.getByRole('button', { name: 'Done' }).click();
  expect((await coder.ask('GET', '/me')).status).toBe(401);
  expect((await new Agent(server, third).ask('GET', '/me')).status).toBe(200);

  await page.getByRole('button', { name: `Revoke ${third.slice(0, 9)}` }).click();
  const revoke = page.getByRole('dialog', { name: /^Revoke/ });
  await expect(revoke.getByRole('button', { name: 'Cancel' })).toBeFocused();
  await revoke.getByRole('button', { name: 'Revoke', exact: true }).click();
  await expect(page.getByRole('log')).toContainText('Token revoked.');
  expect((await new Agent(server, third).ask('GET', '/me')).status).toBe(401);
  await expect(page.getByText('2 expired or revoked tokens')).toBeVisible();
  await accessibleInBoth(page);
  await fitsPhone(page, expect);
});

test('a person is invited, signs in with the token, and sees what their role allows', async ({
  page,
  server,
  browser,
  violations,
}) => {
  await page.goto(`${server.address}/people`);
  await page.getByRole('button', { name: 'Invite a person' }).click();
  const dialog = page.getByRole('dialog', { name: 'Invite a person' });
  await dialog.getByLabel('Name').fill('maria');
  await dialog.getByLabel('Role').selectOption('Approver');
  await dialog.getByRole('button', { name: 'Add and create a token' }).click();
  const token = TOKEN.exec(await dialog.getByRole('region', { name: 'Token of maria' }).innerText())![0];
  await accessible(page);
  await dialog.getByRole('button', { name: 'Done' }).click();

  const theirs = await browser.newPage();
  await watch(theirs, violations);
  await theirs.goto(`${server.address}/people`);
  await expect(theirs.getByRole('heading', { level: 1, name: 'Sign in' })).toBeVisible();
  await accessibleInBoth(theirs);
  await theirs.getByLabel('Or use your token').fill(server.agent('coder').token);
  await theirs.keyboard.press('Enter');
  await expect(theirs.getByRole('alert')).toContainText('Could not sign in');
  await expect(theirs.getByLabel('Or use your token')).toBeFocused();
  await theirs.keyboard.type(token);
  await theirs.keyboard.press('Enter');
  await expect(theirs).toHaveURL(`${server.address}/people`);
  await expect(theirs.getByText('You need the administrator role for this.')).toBeVisible();

  // Their role is changed, and counts; then the token is gone, and so are they.
  await page.getByRole('link', { name: 'maria' }).click();
  await page.getByLabel('Role').selectOption('Administrator');
  await page.getByRole('button', { name: 'Save' }).click();
  await expect(page.getByRole('log')).toContainText('Saved.');
  await theirs.reload();
  await expect(theirs.getByRole('heading', { level: 1, name: 'People & agents' })).toBeVisible();
  await page.getByRole('button', { name: /^Revoke/ }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Revoke', exact: true }).click();
  await expect(page.getByRole('log')).toContainText('Token revoked.');
  await theirs.reload();
  await expect(theirs.getByRole('heading', { level: 1, name: 'Sign in' })).toBeVisible();
  await theirs.close();
});

test('somebody who is let in no more is out at once', async ({ page, server }) => {
  const coder = server.agent('coder');
  await page.goto(`${server.address}/people/coder`);
  await page.getByRole('button', { name: 'Deactivate' }).click();
  await expect(page.getByText('Deactivated', { exact: true })).toBeVisible();
  expect((await coder.ask('GET', '/me')).status).toBe(401);
  await page.getByRole('button', { name: 'Activate' }).click();
  await expect(page.getByText('Deactivated', { exact: true })).toHaveCount(0);
  expect((await coder.ask('GET', '/me')).status).toBe(200);
  await page.goto(`${server.address}/people/nobody`);
  await expect(page.getByText('There is no person or agent nobody, or you have no access to it.')).toBeVisible();
});
