// Deciding otherwise: another text, for real, and never again.
import { accessibleInBoth } from './both';
import { accessible, expect, test } from './harness';
import { asked, decision, detail, put, quiet, reaches, read, row } from './approvals';

test('what was tried can be edited, and what it did on the copy is thrown away', async ({ page, server }) => {
  const coder = server.agent('coder');
  put(server, 'README.md', 'a\n');
  const run = await asked(coder, 'sed -i s/a/wrong/ README.md');
  await row(page, 'sed -i').click();
  await expect(decision(page, 'Apply these changes')).toBeEnabled();
  await quiet(page);
  await decision(page, 'Edit').click();
  const text = page.getByRole('textbox', { name: 'The command that would run instead' });
  await text.fill('sed -i s/a/right/ README.md');
  await quiet(page);
  await expect(decision(page, 'Run the edited command')).toBeEnabled();
  await accessible(page);
  await decision(page, 'Run the edited command').click();
  await expect(detail(page).getByText('Ran instead:')).toBeVisible();
  const told = await reaches(coder, run.command_id, 'succeeded');
  expect(read(server, 'README.md')).toBe('right\n');
  expect(told.original).toBe('sed -i s/a/wrong/ README.md');
  expect(told.warnings.join(' ')).toContain('Approved by');
});

test('what was tried can be run for real instead, after a second look', async ({ page, server }) => {
  const coder = server.agent('coder');
  put(server, 'log', '');
  const run = await asked(coder, 'date +%s%N >> log');
  await row(page, 'date').click();
  await expect(decision(page, 'Apply these changes')).toBeEnabled();
  const tried = (await coder.ask('GET', `/commands/${run.command_id}/changes`)).body;
  await quiet(page);
  await page.getByRole('button', { name: 'More decisions' }).click();
  await quiet(page);
  await page.getByRole('button', { name: 'Run it for real instead' }).click();
  const dialog = page.getByRole('dialog', { name: 'Run it for real?' });
  await expect(dialog).toContainText('It runs again, on the real files');
  await expect(dialog.getByRole('button', { name: 'Cancel' })).toBeFocused();
  await accessibleInBoth(page);
  const yes = dialog.getByRole('button', { name: 'Run it for real' });
  await expect(yes).toBeEnabled();
  await quiet(page);
  await yes.click();
  const done = await reaches(coder, run.command_id, 'succeeded');
  expect(read(server, 'log')).toMatch(/^\d+\n$/);
  expect(done.changes?.hash).not.toBe(tried.hash);
  expect(done.original ?? null).toBeNull();
});

test('what is rejected can be blocked from now on', async ({ page, server }) => {
  const coder = server.agent('coder');
  put(server, 'build/out', 'x');
  await asked(coder, 'rm -rf build', { review: 'before' });
  await row(page, 'rm -rf build').click();
  await expect(decision(page, 'Reject…')).toBeEnabled();
  await quiet(page);
  await page.keyboard.press('r');
  await page.getByRole('textbox', { name: 'Reason' }).fill('Never that.');
  await page.getByLabel('also block this from now on…').check();
  await accessibleInBoth(page);
  await quiet(page);
  await page.getByRole('textbox', { name: 'Reason' }).press('Control+Enter');
  const dialog = page.getByRole('dialog', { name: 'Block from now on' });
  await expect(dialog.getByRole('radio', { name: /Exactly this command/ })).toBeChecked();
  await accessibleInBoth(page);
  await quiet(page);
  await dialog.getByRole('button', { name: 'Reject and save 1 rule' }).click();
  await expect(detail(page).getByText('Rejected by you').first()).toBeVisible();

  const again = await coder.run('rm -rf build');
  expect(again.state).toBe('blocked');
  expect(again.reason.text).toContain('was blocked by');
  expect((await coder.run('rm -rf buildx', { wait_ms: 0, review: 'before' })).state).not.toBe('blocked');
  await page.goto(`${server.address}/policies?view=text`);
  await expect(page.getByLabel('Rules in a draft')).toHaveValue(/reject +=/);
});

test('an approver cannot block, and is not offered it', async ({ page, server, browser }) => {
  const { signIn } = await import('./approvals');
  const coder = server.agent('coder');
  await asked(coder, 'touch x', { review: 'before' });
  const context = await browser.newContext();
  const other = await context.newPage();
  await signIn(other, server, 'maria');
  await expect(decision(other, 'Reject…')).toBeEnabled();
  await quiet(other);
  await other.keyboard.press('r');
  await expect(other.getByRole('textbox', { name: 'Reason' })).toBeFocused();
  await expect(other.getByLabel('also block this from now on…')).toHaveCount(0);
  await context.close();
  await expect(row(page, 'touch x')).toBeVisible();
});

test('where it tried to go without a network is said with what it changed', async ({ page, server }) => {
  const coder = server.agent('coder');
  // As curl says it, which need not be here.
  await asked(coder, 'echo "curl: (6) Could not resolve host: registry.npmjs.org" >&2; touch made; exit 6');
  await row(page, 'registry.npmjs.org').click();
  const shown = detail(page);
  await expect(shown.getByText('Tried to reach registry.npmjs.org — stopped')).toBeVisible();
  await expect(shown.getByText('it tried to reach registry.npmjs.org, which was stopped')).toBeVisible();
  await accessibleInBoth(page);
});
