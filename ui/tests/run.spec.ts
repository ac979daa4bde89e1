import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { accessible, expect, test } from './harness';
import { asked, quiet, reaches } from './approvals';
import { dark, HOSTILE, owner } from './runs';

test('a run says what it was, what it does and how it ended', async ({ page, server }) => {
  const agent = server.agent('coder');
  const run = await agent.run('cat notes.md; exit 2', { description: 'Look at the notes' });
  await page.goto(`${server.address}/runs/${run.command_id}`);
  await expect(page.getByRole('heading', { level: 1 })).toHaveText('Prints notes.md');
  await expect(page.getByText('coder says “Look at the notes”')).toBeVisible();
  const detail = page.getByRole('region', { name: 'run', exact: true });
  await expect(detail.getByText('Failed, exit 2')).toBeAttached();
  await expect(detail.getByText(server.base)).toBeVisible();
  await expect(detail.getByText('network off')).toBeVisible();
  await expect(detail.getByText('Verdict Allowed by policy')).toBeVisible();
  await expect(page.getByRole('region', { name: 'Output' })).toContainText('No such file');
  await accessible(page);

  await page.getByRole('tab', { name: 'Output' }).focus();
  await page.keyboard.press('ArrowRight');
  await expect(page).toHaveURL(/\/explain$/);
  await expect(page.getByRole('heading', { name: 'What it does' })).toBeVisible();
  await expect(page.getByRole('heading', { name: 'Rules tried, in order' })).toBeVisible();
  await accessible(page);
  await page.getByRole('tab', { name: 'Changes' }).click();
  await expect(page.getByText('This run changed no files.')).toBeVisible();
  await dark(page);
  await accessible(page);
});

test('a blocked run has a red panel that names the rule, and what the agent was told', async ({ page, server }) => {
  const agent = server.agent('coder');
  const run = await agent.run('rm -rf /');
  await page.goto(`${server.address}/runs/${run.command_id}/output`);
  const panel = page.getByRole('status').filter({ hasText: 'Blocked.' });
  await expect(panel).toContainText('rm -rf /');
  await expect(panel).toContainText('matches rule no-root-delete');
  await expect(panel).toContainText('Nothing was run.');
  await panel.getByText('Message to coder').click();
  await expect(panel).toContainText('Blocked by rule no-root-delete');
  await expect(panel).toContainText('It cannot be approved.');
  await expect(page.getByRole('region', { name: 'Output' })).toHaveCount(0);
  await accessible(page);
  await dark(page);
  await accessible(page);
});

test('a run that waits leads to its question', async ({ page, server }) => {
  const agent = server.agent('coder');
  const run = await agent.run('touch later.txt');
  await page.goto(`${server.address}/runs/${run.command_id}/output`);
  await expect(page.getByText('Waiting for a person.')).toBeVisible();
  await expect(page.getByRole('link', { name: 'Open the question' })).toHaveAttribute(
    'href',
    `/inbox/${run.approval_id}`,
  );
  await owner(page, 'POST', `/commands/${run.command_id}/reject`, { reason: 'Not needed' });
  await expect(page.getByText('Not needed').first()).toBeVisible();
});

test('stopping asks once, and ends everything', async ({ page, server }) => {
  const agent = server.agent('coder');
  const run = await agent.run('sleep 601 & sleep 602', { background: true });
  await page.goto(`${server.address}/runs/${run.command_id}/output`);
  const detail = page.getByRole('region', { name: 'run', exact: true });
  await expect(detail.getByText(/3 processes · .* MiB/)).toBeVisible();
  await page.getByRole('button', { name: 'Stop' }).click();
  const dialog = page.getByRole('dialog', { name: 'Stop this run?' });
  await expect(dialog).toContainText('Stop it and everything it started (3 processes)?');
  await accessible(page);
  await page.keyboard.press('Escape');
  await expect(dialog).toHaveCount(0);
  await expect(page).toHaveURL(/\/output$/);
  await expect(detail.getByText('Running').first()).toBeAttached();
  await page.getByRole('button', { name: 'Stop' }).click();
  await dialog.getByRole('button', { name: 'Stop' }).click();
  await expect(detail.getByText(/killed by/).first()).toBeAttached();
  await expect(page.getByRole('button', { name: 'Stop' })).toHaveCount(0);
});

test('what a run changed is shown, and taken back unless it was changed since', async ({ page, server }) => {
  const file = join(server.base, 'notes.txt');
  writeFileSync(file, 'one\ntwo\n');
  const agent = server.agent('coder');
  const run = await agent.run('sed -i s/two/three/ notes.txt');
  await page.goto(`${server.address}/runs/${run.command_id}/changes`);
  await expect(page.getByText('A person has been asked')).toBeVisible();
  await owner(page, 'POST', `/commands/${run.command_id}/approve`, {});
  await expect(page.getByText(/Applied by/)).toBeVisible();
  expect(readFileSync(file, 'utf8')).toBe('one\nthree\n');
  await expect(page.getByRole('tab', { name: 'Changes 1' })).toBeVisible();
  await expect(page.getByRole('tabpanel')).toContainText('three');
  await accessible(page);

  writeFileSync(file, 'one\nthree\nfour\n');
  await page.getByRole('button', { name: 'Revert…' }).click();
  const dialog = page.getByRole('dialog');
  await expect(dialog).toContainText('notes.txt');
  await quiet(page);
  await dialog.getByRole('button', { name: 'Revert 1 file' }).click();
  await expect(dialog.getByRole('alert')).toContainText('Could not revert');
  expect(readFileSync(file, 'utf8')).toBe('one\nthree\nfour\n');

  writeFileSync(file, 'one\nthree\n');
  const again = await agent.run('sed -i s/one/zero/ notes.txt');
  await owner(page, 'POST', `/commands/${again.command_id}/approve`, {});
  await page.goto(`${server.address}/runs/${again.command_id}/changes`);
  await page.getByRole('button', { name: 'Revert…' }).click();
  await quiet(page);
  await dialog.getByRole('button', { name: 'Revert 1 file' }).click();
  await expect(page.getByText('These changes were undone.')).toBeVisible();
  expect(readFileSync(file, 'utf8')).toBe('one\nthree\n');
});

test('changes that nobody decided about in time can still be applied or discarded', async ({ page, server }) => {
  await server.kill();
  server.config = '[approvals]\nexpire = "4s"\n';
  await server.start();
  await page.reload();
  const file = join(server.base, 'notes.txt');
  writeFileSync(file, 'one\n');
  const agent = server.agent('coder');
  const runs = [await asked(agent, 'sed -i s/one/two/ notes.txt'), await asked(agent, 'touch new.txt')];
  for (const { command_id } of runs) await reaches(agent, command_id, 'expired');

  await page.goto(`${server.address}/inbox/${runs[0].approval_id}`);
  await expect(page.getByText('can still be applied or discarded')).toBeVisible();
  await page.getByText('2 undecided changes').click();
  await accessible(page);
  await page.getByRole('link', { name: 'sed -i' }).click();
  await expect(page.getByText('These changes are undecided')).toBeVisible();
  await page.getByRole('button', { name: 'Apply…' }).click();
  const dialog = page.getByRole('dialog');
  await expect(dialog).toContainText('notes.txt');
  // A press that was meant for what opened it counts for nothing.
  await dialog.getByRole('button', { name: 'Apply 1 file' }).click();
  expect(readFileSync(file, 'utf8')).toBe('one\n');
  await quiet(page);
  await dialog.getByRole('button', { name: 'Apply 1 file' }).click();
  await expect(page.getByText(/^Applied by/)).toBeVisible();
  expect(readFileSync(file, 'utf8')).toBe('two\n');

  await page.goto(`${server.address}/runs/${runs[1].command_id}/changes`);
  await page.getByRole('button', { name: 'Discard…' }).click();
  await quiet(page);
  await dialog.getByRole('button', { name: 'Discard 1 file' }).click();
  await expect(page.getByText('These changes were discarded')).toBeVisible();
  await accessible(page);
  await page.goto(`${server.address}/inbox`);
  await expect(page.getByText('Nothing waits for you.')).toBeVisible();
  await expect(page.getByText('undecided change')).toHaveCount(0);
});

test('the audit of a run is listed and verified', async ({ page, server }) => {
  const agent = server.agent('coder');
  const run = await agent.run('touch made.txt');
  await page.goto(`${server.address}/runs/${run.command_id}/audit`);
  await owner(page, 'POST', `/commands/${run.command_id}/approve`, {});
  const entries = page.getByRole('tabpanel').getByRole('listitem');
  await expect(entries.filter({ hasText: 'Changes applied' })).toHaveCount(1);
  await expect(entries.first()).toContainText('by coder');
  await expect(entries.first()).toContainText('requested → verdict');
  const hashes = await page.getByRole('tabpanel').locator('dd').allTextContents();
  expect(hashes.length).toBeGreaterThan(3);
  for (const hash of hashes) expect(hash).toMatch(/^[0-9a-f]{64}$/);
  await page.getByRole('button', { name: 'Verify' }).click();
  await expect(page.getByText(/✓ \d+ entries, the chain is unbroken/)).toBeVisible();
  await accessible(page);
  await dark(page);
  await accessible(page);
});

test('a run is run again as oneself, through the policy', async ({ page, server }) => {
  const agent = server.agent('coder');
  const run = await agent.run('echo once');
  await page.goto(`${server.address}/runs/${run.command_id}/output`);
  await page.getByRole('button', { name: 'Run again…' }).click();
  const dialog = page.getByRole('dialog', { name: 'Run again' });
  await expect(dialog.getByLabel('Command')).toHaveValue('echo once');
  await accessible(page);
  await dialog.getByLabel('Command').fill('sudo echo twice');
  await dialog.getByRole('button', { name: 'Run', exact: true }).click();
  await expect(page.getByRole('status').filter({ hasText: 'Blocked.' })).toContainText('sudo');
  await expect(page).not.toHaveURL(new RegExp(run.command_id));
});

test('an edited command is shown with what was asked for', async ({ page, server }) => {
  const agent = server.agent('coder');
  const run = await agent.run('touch wrong.txt', { review: 'before' });
  await page.goto(`${server.address}/runs/${run.command_id}/output`);
  const { fingerprint } = await owner(page, 'GET', `/approvals/${run.approval_id}`);
  await owner(page, 'POST', `/approvals/${run.approval_id}/decision`, {
    kind: 'approve_edited',
    fingerprint,
    command: 'touch right.txt',
  });
  await expect(page.getByText('A person edited the command')).toBeVisible();
  await expect(page.getByRole('deletion')).toContainText('wrong.txt');
  await expect(page.getByRole('insertion')).toContainText('right.txt');
  await accessible(page);
});

test('what is not there is said to be missing', async ({ page, server }) => {
  await page.goto(`${server.address}/runs/r_7f3k/output`);
  await expect(page.getByRole('heading', { level: 1 })).toHaveText(
    'There is no run r_7f3k, or you have no access to it.',
  );
  await page.getByRole('link', { name: 'To the runs' }).click();
  await expect(page).toHaveURL(/\/runs$/);
});

test('hostile words and file names are only text', async ({ page, server }) => {
  const agent = server.agent('coder');
  const name = 'a\u202egpj.exe\u200b <img src=x onerror=alert(1)>';
  const run = await agent.run(`touch '${name}'; echo "${HOSTILE}"`, { description: HOSTILE });
  await page.goto(`${server.address}/runs/${run.command_id}/changes`);
  const panel = page.getByRole('tabpanel');
  for (const code of ['U+202E', 'U+200B']) await expect(panel).toContainText(code);
  await expect(panel).toContainText('<img src=x onerror=');
  for (const tab of ['Output', 'Explain', 'Audit']) {
    await page.getByRole('tab', { name: tab }).click();
    await expect(page.getByText('U+0430').first()).toBeVisible();
    await expect(page.locator('img')).toHaveCount(0);
    await accessible(page);
  }
  await page.setViewportSize({ width: 390, height: 780 });
  await page.getByRole('tab', { name: 'Output' }).click();
  const wide = await page.evaluate(() => document.documentElement.scrollWidth);
  expect(wide).toBeLessThanOrEqual(390);
  await accessible(page);
});
