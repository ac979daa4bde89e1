// No accidental yes: what is meant for something else decides nothing.
import { accessible, expect, test } from './harness';
import { asked, command, decision, detail, quiet, reaches, row } from './approvals';

test('typing what was meant for a shell decides nothing', async ({ page, server }) => {
  const coder = server.agent('coder');
  const run = await asked(coder, 'touch new.txt', { review: 'before' });
  await expect(decision(page, 'Approve once')).toBeEnabled();
  await quiet(page);
  for (const line of ['cat a', '', 'rm -rf a']) {
    await page.keyboard.type(line, { delay: 60 });
    await page.keyboard.press('Enter');
  }
  await page.keyboard.press('Space');
  await quiet(page);
  await page.keyboard.press('Escape');
  await expect(decision(page, /^Approve once/)).toBeVisible();
  const { body } = await coder.ask('GET', `/commands/${run.command_id}`);
  expect(body.state).toBe('waiting');
});

test('what arrives changes neither focus nor what is shown, and moves nothing', async ({ page, server }) => {
  const coder = server.agent('coder');
  await asked(coder, 'touch first.txt', { review: 'before' });
  await expect(command(page)).toContainText('touch first.txt');
  const filter = page.getByRole('searchbox', { name: 'Filter approvals' });
  await page.keyboard.press('/');
  await expect(filter).toBeFocused();
  const before = await row(page, 'touch first.txt').boundingBox();
  await page.keyboard.type('touch', { delay: 30 });
  await asked(coder, 'touch second.txt', { review: 'before' });
  await expect(row(page, 'touch second.txt')).toBeVisible();
  // Of high risk, and so above what is shown.
  await asked(coder, 'touch \u202ethird.txt', { review: 'before' });
  await expect(page.getByRole('button', { name: '1 new ↑' })).toBeVisible();
  await expect(row(page, 'third.txt')).toHaveCount(0);
  await expect(filter).toBeFocused();
  await expect(filter).toHaveValue('touch');
  await expect(command(page)).toContainText('touch first.txt');
  expect(await row(page, 'touch first.txt').boundingBox()).toEqual(before);
  await accessible(page);
  await page.getByRole('button', { name: '1 new ↑' }).click();
  await expect(row(page, 'third.txt')).toBeVisible();
  await expect(command(page)).toContainText('touch first.txt');
});

test('a key right after another approval was selected does nothing, and later works', async ({ page, server }) => {
  const coder = server.agent('coder');
  await asked(coder, 'touch first.txt', { review: 'before' });
  await asked(coder, 'touch second.txt', { review: 'before' });
  await expect(row(page, 'touch')).toHaveCount(2);
  await quiet(page);
  await page.keyboard.press('j');
  await expect(command(page)).toContainText('touch second.txt');
  // Soon after the selection; a slow machine makes it later, so both are one look.
  const soon = await page.evaluate(async () => {
    const at = performance.now();
    await new Promise((later) => setTimeout(later, 50));
    return performance.now() - at;
  });
  await page.keyboard.press('a');
  if (soon < 200) await expect(decision(page, /press Enter/)).toHaveCount(0);
  await quiet(page);
  await page.keyboard.press('a');
  await expect(decision(page, 'Approve once — press Enter')).toBeFocused();
  // Anything but Enter takes it back, and Space does not press the button.
  await page.keyboard.press('Space');
  await expect(decision(page, /press Enter/)).toHaveCount(0);
  await expect(detail(page).getByText('Approved by you')).toHaveCount(0);
  await quiet(page);
  await page.keyboard.press('a');
  // Enter at once is a burst, too.
  await page.keyboard.press('Enter');
  await expect(decision(page, /press Enter/)).toHaveCount(0);
  await quiet(page);
  await expect(detail(page).getByText('Approved by you')).toHaveCount(0);
  await page.keyboard.press('a');
  await quiet(page);
  await page.keyboard.press('Enter');
  await expect(detail(page).getByText('Approved by you')).toBeVisible();
});

test('high risk is asked twice, begins on Cancel, and leaves time to read', async ({ page, server }) => {
  const coder = server.agent('coder');
  const run = await asked(coder, 'touch \u202enew.txt', { review: 'before' });
  await expect(decision(page, 'Approve anyway…')).toBeEnabled();
  await quiet(page);
  await page.keyboard.press('a');
  await quiet(page);
  await page.keyboard.press('Enter');
  const dialog = page.getByRole('dialog', { name: 'Approve this high-risk command?' });
  await expect(dialog.getByRole('button', { name: 'Cancel' })).toBeFocused();
  await accessible(page);
  await page.keyboard.press('Enter');
  await expect(dialog).toHaveCount(0);
  expect((await coder.ask('GET', `/commands/${run.command_id}`)).body.state).toBe('waiting');
  await quiet(page);
  await decision(page, 'Approve anyway…').click();
  const yes = dialog.getByRole('button', { name: 'Approve anyway' });
  await expect(yes).toBeDisabled();
  await expect(yes).toBeEnabled();
  await yes.click();
  await reaches(coder, run.command_id, 'succeeded');
});

test('everything is done without a pointer', async ({ page, server }) => {
  const coder = server.agent('coder');
  await asked(coder, 'touch first.txt', { review: 'before' });
  await asked(coder, 'touch second.txt', { review: 'before' });
  await expect(row(page, 'touch')).toHaveCount(2);
  await page.keyboard.press('j');
  await expect(row(page, 'touch second.txt')).toBeFocused();
  await page.keyboard.press('Enter');
  await expect(detail(page).getByRole('heading', { name: 'Writes second.txt' })).toBeFocused();
  // A dialog of the frame closes by Esc, and nothing behind it does.
  await page.keyboard.press('?');
  await expect(page.getByRole('dialog', { name: 'Keyboard' })).toBeVisible();
  await page.keyboard.press('Escape');
  await expect(page.getByRole('dialog')).toHaveCount(0);
  await page.keyboard.press('x');
  await expect(detail(page).locator('summary', { hasText: 'What it does' })).toBeFocused();
  await page.keyboard.press('d');
  await expect(detail(page).locator('summary', { hasText: 'Effect' })).toBeFocused();
  await page.keyboard.press('Escape');
  await expect(row(page, 'touch second.txt')).toBeFocused();
  await quiet(page);
  await page.keyboard.press('r');
  await page.keyboard.type('Not now.');
  await page.keyboard.press('Control+Enter');
  await expect(detail(page).getByText('Rejected by you').first()).toBeVisible();
  await page.keyboard.press('k');
  await expect(command(page)).toContainText('touch first.txt');
  for (const colorScheme of ['light', 'dark'] as const) {
    await page.emulateMedia({ colorScheme });
    await accessible(page);
  }
});

test('without the server nothing can be decided, and afterwards it can', async ({ page, server }) => {
  const coder = server.agent('coder');
  await asked(coder, 'touch new.txt', { review: 'before' });
  await expect(decision(page, 'Approve once')).toBeEnabled();
  await server.kill();
  await expect(page.getByText('Not connected — this page may be out of date')).toBeVisible();
  await expect(decision(page, 'Approve once')).toBeDisabled({ timeout: 20_000 });
  await expect(page.getByText('Not connected', { exact: true })).toBeVisible();
  await server.start();
  await expect(decision(page, 'Approve once')).toBeEnabled();
  await expect(command(page)).toContainText('touch new.txt');
});
