// Deciding what waits: by its effect, together, in time, for good, otherwise.
import { accessible, expect, test, watch } from './harness';
import { asked, decision, detail, put, quiet, reaches, read, row, signIn } from './approvals';

test('a change is judged by its effect, and exactly that is applied', async ({ page, server }) => {
  const coder = server.agent('coder');
  put(server, 'README.md', 'a\nb\n');
  const run = await asked(coder, 'sed -i s/a/z/ README.md', { description: 'Update the README' });
  await expect(row(page, 'sed -i s/a/z/ README.md')).toBeVisible();
  await expect(page).toHaveTitle(/^\(1\) Inbox — weighlock$/);
  const shown = detail(page);
  await expect(shown.getByRole('heading', { name: 'Edits README.md' })).toBeVisible();
  await expect(shown.getByText('coder says “Update the README”')).toBeVisible();
  await expect(shown.getByText('README.md changes')).toBeVisible();
  await expect(shown.getByText('edits README.md', { exact: false }).first()).toBeVisible();
  await expect(shown.getByText('tried in a copy: exit 0')).toBeVisible();
  await expect(shown.getByText('+1', { exact: true })).toBeVisible();
  await expect(shown.getByText('−1', { exact: true })).toBeVisible();
  await expect(shown.getByRole('row', { name: 'removed a' })).toBeVisible();
  await expect(shown.getByRole('row', { name: 'added z' })).toBeVisible();
  await expect(decision(page, 'Apply these changes')).toBeEnabled();
  await accessible(page);

  await quiet(page);
  await page.keyboard.press('a');
  await expect(decision(page, 'Apply these changes — press Enter')).toBeFocused();
  expect(read(server, 'README.md')).toBe('a\nb\n');
  await quiet(page);
  await page.keyboard.press('Enter');
  await expect(shown.getByRole('status').filter({ hasText: 'Applied by you' })).toBeVisible();
  expect(read(server, 'README.md')).toBe('z\nb\n');
  await accessible(page);
  await page.emulateMedia({ colorScheme: 'dark' });
  await accessible(page);

  const told = await reaches(coder, run.command_id, 'succeeded');
  expect(told.warnings.join(' ')).toContain('The previewed changes were applied (1 file).');
  const audit = await page.request.get(
    `${server.address}/agent/terminal/commands/${run.command_id}/audit`,
  );
  const kinds = (await audit.json()).entries.map((entry: { kind: string }) => entry.kind).join(' ');
  expect(kinds).toMatch(/changes\.held.*approv.*appl/);

  // What was applied stays to be read, and is taken back from there.
  await expect(shown.getByRole('row', { name: 'added z' })).toBeVisible();
  await shown.getByRole('button', { name: 'Undo…' }).click();
  await quiet(page);
  await page.getByRole('dialog').getByRole('button', { name: 'Revert 1 file' }).click();
  await expect(shown.getByText('These changes were undone.')).toBeVisible();
  await expect(shown.getByRole('button', { name: 'Undo…' })).toHaveCount(0);
  expect(read(server, 'README.md')).toBe('a\nb\n');
});

test('who is second hears how it was decided, and it is no error', async ({ page, server, browser, violations }) => {
  const coder = server.agent('coder');
  const context = await browser.newContext();
  const other = await context.newPage();
  await watch(other, violations);
  await signIn(other, server, 'ana');
  await asked(coder, 'touch new.txt', { review: 'before' });
  for (const one of [page, other]) await expect(decision(one, 'Approve once')).toBeEnabled();

  await quiet(other);
  await other.keyboard.press('r');
  const reason = other.getByRole('textbox', { name: 'Reason' });
  await expect(reason).toBeFocused();
  await reason.fill('Not here.\nElsewhere.');
  await other.keyboard.press('Control+Enter');
  await expect(other.getByText('Rejected by you').first()).toBeVisible();
  await expect(page.getByRole('status').filter({ hasText: 'Already rejected by ana' })).toBeVisible();
  await expect(page.getByText('“Not here. Elsewhere.”')).toBeVisible();
  await expect(page.getByRole('alert')).toHaveCount(0);
  await accessible(page);
  await context.close();
});

test('a press that comes too late is told so', async ({ page, server, browser, violations }) => {
  const coder = server.agent('coder');
  const context = await browser.newContext();
  const other = await context.newPage();
  await watch(other, violations);
  await signIn(other, server, 'maria');
  await asked(coder, 'touch new.txt', { review: 'before' });
  await expect(decision(page, 'Approve once')).toBeEnabled();
  await expect(decision(other, 'Approve once')).toBeEnabled();
  // What happens meanwhile does not reach this page before somebody presses.
  let pressed = false;
  await page.route(/\/approvals\/ap_/, async (route) => {
    pressed ||= route.request().method() === 'POST';
    if (pressed) await route.continue();
    else await route.abort();
  });
  const news = page.waitForRequest(/\/approvals\/ap_[^/]*$/);
  await quiet(other);
  await decision(other, 'Approve once').click();
  await expect(other.getByText('Approved by you').first()).toBeVisible();
  await news;
  await quiet(page);
  await decision(page, 'Approve once').click();
  await expect(page.getByText('Already approved by maria').first()).toBeVisible();
  await expect(page.getByRole('alert')).toHaveCount(0);
  await context.close();
});

test('what nobody answers expires, by the clock and without blame', async ({ page, server }) => {
  await server.kill();
  server.config = '[approvals]\nexpire = "10s"\n';
  await server.start();
  await page.reload();
  const coder = server.agent('coder');
  const run = await asked(coder, 'touch new.txt', { review: 'before' });
  await expect(row(page, 'touch new.txt')).toBeVisible();
  await expect(detail(page).getByText('Expired', { exact: true })).toBeVisible();
  await expect(detail(page).getByText('This is not a refusal.')).toBeVisible();
  await expect(page).toHaveTitle('Inbox — weighlock');
  await accessible(page);
  const told = await reaches(coder, run.command_id, 'expired');
  expect(told.reason.text).toContain('not a refusal');
  const approval = await coder.ask('GET', `/approvals/${run.approval_id}`);
  expect(approval.body.decided_by).toBe('clock');
});

test('files that change under a preview make it stale, and it can be tried again', async ({ page, server }) => {
  const coder = server.agent('coder');
  put(server, 'README.md', 'a\n');
  const run = await asked(coder, 'sed -i s/a/z/ README.md');
  await expect(decision(page, 'Apply these changes')).toBeEnabled();
  const { body: seen } = await coder.ask('GET', `/approvals/${run.approval_id}`);
  put(server, 'README.md', 'a\nmore\n');
  await expect(detail(page).getByText('1 of these files changed since the try')).toBeVisible();
  await expect(decision(page, 'Apply these changes')).toBeDisabled();
  await accessible(page);
  const old = await page.request.post(
    `${server.address}/agent/terminal/approvals/${run.approval_id}/decision`,
    {
      headers: { 'x-weighlock': '1', origin: server.address },
      data: { kind: 'apply_effect', fingerprint: seen.fingerprint },
    },
  );
  expect(old.status()).toBe(409);
  await detail(page).getByRole('button', { name: 'Try again' }).click();
  await expect(detail(page).getByText('tried in a copy: exit 0')).toBeVisible();
  await expect(detail(page).getByRole('cell', { name: 'more' })).toBeVisible();
  await expect(decision(page, 'Apply these changes')).toBeEnabled();
  await quiet(page);
  await decision(page, 'Apply these changes').click();
  await expect(detail(page).getByText('Applied by you')).toBeVisible();
  expect(read(server, 'README.md')).toBe('z\nmore\n');
});

test('what is built on other changes says on which, and what comes first is shown first', async ({ page, server }) => {
  const coder = server.agent('coder');
  put(server, 'notes.txt', 'a\n');
  await page.goto(`${server.address}/runs`);
  const { session_id } = await asked(coder, 'sed -i s/a/b/ notes.txt');
  const later = await asked(coder, 'sed -i s/b/c/ notes.txt', { session_id });
  await page.goto(`${server.address}/inbox/${later.approval_id}`);
  await expect(decision(page, 'Apply these changes')).toBeDisabled();
  await expect(page.getByText('Decide the changes it builds on first')).toBeVisible();
  await accessible(page);
  await detail(page).getByText('First:').getByRole('link', { name: 'Edits notes.txt' }).click();
  await expect(detail(page).getByText('s/a/b/').first()).toBeVisible();
  await expect(detail(page).getByText('rejected with it')).toBeVisible();
  await page.goto(`${server.address}/inbox`);
  await expect(detail(page).getByText('s/a/b/').first()).toBeVisible();
  await expect(decision(page, 'Apply these changes')).toBeEnabled();
});

test('another text is judged as it is typed, and runs instead', async ({ page, server }) => {
  const coder = server.agent('coder');
  put(server, 'tmp/cache', '');
  put(server, 'tmp/keep', '');
  const run = await asked(coder, 'rm -rf ./tmp', { review: 'before' });
  await expect(decision(page, 'Approve once')).toBeEnabled();
  await quiet(page);
  await page.keyboard.press('e');
  const field = page.getByRole('textbox', { name: 'The command that would run instead' });
  await expect(field).toBeFocused();
  await expect(decision(page, 'Run the edited command')).toBeDisabled();
  await field.fill('sudo rm -rf ./tmp');
  await expect(page.getByText('Blocked. This command cannot be approved.').first()).toBeVisible();
  await expect(decision(page, 'Run the edited command')).toBeDisabled();
  await accessible(page);
  await page.keyboard.press('Escape');
  await expect(field).toHaveCount(0);
  await quiet(page);
  await page.keyboard.press('e');
  await field.fill('rm -rf ./tmp/cache');
  await expect(decision(page, 'Run the edited command')).toBeEnabled();
  await quiet(page);
  await decision(page, 'Run the edited command').click();
  await expect(detail(page).getByText('Approved by you')).toBeVisible();
  await expect(detail(page).getByText('Ran instead: rm -rf ./tmp/cache')).toBeVisible();
  const told = await reaches(coder, run.command_id, 'succeeded');
  expect(told.original).toBe('rm -rf ./tmp');
  expect(told.command).toBe('rm -rf ./tmp/cache');
  expect(JSON.stringify(told)).toContain('with a change');
});

test('what is allowed from now on is chosen part by part, and only that', async ({ page, server }) => {
  const coder = server.agent('coder');
  put(server, 'tmp/x', '');
  const first = await asked(coder, 'git status && rm -rf ./tmp', { review: 'before' });
  await expect(decision(page, 'Always…')).toBeEnabled();
  await quiet(page);
  await page.keyboard.press('w');
  const dialog = page.getByRole('dialog', { name: 'Always allow' });
  await expect(dialog.getByRole('group', { name: /rm/ })).toBeVisible();
  await expect(dialog.getByRole('group', { name: / · / })).toHaveCount(1);
  await expect(dialog.getByText('Allowed already: git status')).toBeVisible();
  await expect(dialog.getByRole('radio', { name: 'Keep asking for rm' })).toBeChecked();
  await accessible(page);
  await quiet(page);
  await dialog.getByRole('button', { name: 'Only approve' }).click();
  await expect(detail(page).getByText('Approved by you')).toBeVisible();
  await reaches(coder, first.command_id, 'failed');
  const grants = await page.request.get(`${server.address}/agent/terminal/policies/grants`);
  expect(await grants.json()).toEqual([]);

  const second = await asked(coder, 'rm -rf ./tmp', { review: 'before' });
  await expect(row(page, 'rm -rf ./tmp')).toHaveCount(2);
  await row(page, 'rm -rf ./tmp').last().click();
  await expect(decision(page, 'Always…')).toBeEnabled();
  await quiet(page);
  await page.keyboard.press('w');
  await dialog.getByRole('radio', { name: /Write my own/ }).focus();
  await page.keyboard.press('Space');
  await dialog.getByRole('textbox', { name: 'Pattern' }).fill('rm -rf ./tmp');
  await dialog.getByLabel('until').selectOption('1 hour');
  await quiet(page);
  await dialog.getByRole('button', { name: 'Save 1 rule and approve' }).click();
  await expect(detail(page).getByText('Approved by you')).toBeVisible();
  const given = await page.request.get(`${server.address}/agent/terminal/policies/grants`);
  const [grant] = await given.json();
  expect(grant).toMatchObject({ pattern: 'rm -rf ./tmp', agent: 'coder', sandbox: 'default' });
  expect(Math.abs(grant.until - Date.now() / 1000 - 3600)).toBeLessThan(60);
  await reaches(coder, second.command_id, 'succeeded');
  const again = await coder.run('rm -rf ./tmp');
  expect(again.state, JSON.stringify(again.reason)).toBe('succeeded');
  await asked(coder, 'rm -rf ./src', { review: 'before' });
});

test('the same request three times is one question with one answer', async ({ page, server }) => {
  const coder = server.agent('coder');
  const runs = [];
  for (let at = 0; at < 3; at += 1) runs.push(await asked(coder, 'mkdir -p d', { review: 'before' }));
  await expect(row(page, 'mkdir -p d')).toHaveCount(1);
  await expect(row(page, 'mkdir -p d')).toContainText('×3');
  await expect(decision(page, 'Approve once (3)')).toBeEnabled();
  await quiet(page);
  await decision(page, 'Approve once (3)').click();
  for (const { command_id } of runs) await reaches(coder, command_id, 'succeeded');
});

test('several are rejected together, and never approved', async ({ page, server }) => {
  const coder = server.agent('coder');
  const runs = [];
  for (const name of ['a', 'b', 'c']) runs.push(await asked(coder, `touch ${name}`, { review: 'before' }));
  await expect(row(page, 'touch')).toHaveCount(3);
  await page.keyboard.press('Shift+ArrowDown');
  await page.keyboard.press('Shift+ArrowDown');
  await expect(page.getByRole('heading', { name: '3 approvals chosen' })).toBeVisible();
  await expect(page.getByRole('button', { name: /Approve|Apply/ })).toHaveCount(0);
  await expect(page.getByRole('button', { name: 'Pause coder' })).toBeVisible();
  await accessible(page);
  await page.getByRole('button', { name: 'Reject 3…' }).click();
  await page.getByRole('textbox', { name: 'Reason' }).fill('One at a time.');
  await quiet(page);
  await page.getByRole('button', { name: 'Reject 3', exact: true }).click();
  for (const { command_id } of runs) await reaches(coder, command_id, 'rejected');
});

test('a link shows one approval alone, decides nothing, and tells how it ended', async ({ page, server }) => {
  const coder = server.agent('coder');
  const run = await asked(coder, 'touch new.txt', { review: 'before' });
  await page.goto(`${server.address}/a/${run.approval_id}`);
  await expect(page.getByRole('heading', { level: 1 })).toHaveText('Writes new.txt');
  await expect(page.getByRole('navigation')).toHaveCount(0);
  await expect(decision(page, 'Approve once')).toBeEnabled();
  await accessible(page);
  expect((await coder.ask('GET', `/commands/${run.command_id}`)).body.state).toBe('waiting');
  await quiet(page);
  await decision(page, 'Approve once').click();
  await expect(page.getByText('Approved by you').first()).toBeVisible();
  await page.reload();
  await expect(page.getByRole('link', { name: 'Open the run' })).toHaveAttribute('href', `/runs/${run.command_id}`);
  await page.goto(`${server.address}/a/ap_none`);
  await expect(page.getByText('There is no approval ap_none, or you have no access to it.')).toBeVisible();
});

test('an inbox without work says so, and who has worked', async ({ page, server }) => {
  await expect(page.getByText('No agent is connected.')).toBeVisible();
  await accessible(page);
  const coder = server.agent('coder');
  await page.reload();
  await expect(page.getByText('Nothing waits for you.')).toBeVisible();
  const run = await asked(coder, 'touch new.txt', { review: 'before' });
  await expect(decision(page, 'Reject…')).toBeEnabled();
  await quiet(page);
  await decision(page, 'Reject…').click();
  await page.getByRole('textbox', { name: 'Reason' }).press('Control+Enter');
  await reaches(coder, run.command_id, 'rejected');
  await page.goto(`${server.address}/inbox`);
  await expect(page.getByText(/Last decision: touch new\.txt, rejected by you/)).toBeVisible();
  await expect(page.getByRole('link', { name: 'Decided today ▸ 1' })).toBeVisible();
  await accessible(page);
});
