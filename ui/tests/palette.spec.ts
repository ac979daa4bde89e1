import { accessible, expect, test } from './harness';

test('everything is found and gone to by keys alone', async ({ page, server }) => {
  const coder = server.agent('coder');
  const run = await coder.run('echo found-me');
  await coder.ask('POST', '/terminals', { name: 'dev-server', description: 'Watch', command: 'cat' });
  const palette = page.getByRole('dialog', { name: 'Search or jump' });
  const best = palette.getByRole('option', { selected: true });

  await page.keyboard.press('Control+k');
  await expect(palette.getByRole('combobox')).toBeFocused();
  await expect(palette.getByRole('option')).toHaveCount(8);
  await page.keyboard.type('dev-s');
  await expect(best).toContainText('dev-server');
  await accessible(page);
  await page.keyboard.press('Enter');
  await expect(page.getByRole('heading', { level: 1 })).toHaveText('dev-server');
  await expect(palette).toHaveCount(0);

  await page.keyboard.press('Control+k');
  await page.keyboard.type('found-me');
  await expect(best).toContainText('echo found-me');
  await page.keyboard.press('Enter');
  await expect(page).toHaveURL(new RegExp(`/runs/${run.command_id}`));

  await page.keyboard.press('Control+k');
  await page.keyboard.type(run.short_id);
  await expect(best).toContainText('echo found-me');
  // A second thing that fits is reached by the arrow keys.
  await page.keyboard.press('Control+a');
  await page.keyboard.type('terminal');
  await expect(best).toContainText('Terminals');
  await page.keyboard.press('ArrowDown');
  await expect(best).not.toHaveText('Terminals');
  await page.keyboard.press('ArrowUp');
  await page.keyboard.press('Enter');
  await expect(page).toHaveURL(/\/terminals/);
});

test('Esc closes it, and focus is where it was', async ({ page }) => {
  const button = page.getByRole('button', { name: 'Terminal config' });
  await button.focus();
  await page.keyboard.press('Control+k');
  await expect(page.getByRole('combobox')).toBeFocused();
  await page.keyboard.press('Escape');
  await expect(page.getByRole('dialog')).toHaveCount(0);
  await expect(button).toBeFocused();
});

test('a line that begins with $ is tested, and never run', async ({ page, server }) => {
  const coder = server.agent('coder');
  await page.keyboard.press('Control+k');
  await page.keyboard.type('$ touch never');
  const options = page.getByRole('dialog').getByRole('option');
  await expect(options).toHaveCount(1);
  await expect(options).toContainText('Test this command');
  await page.keyboard.press('Enter');
  await expect(page).toHaveURL(/\/policies\?test=touch%20never$/);
  const { body } = await coder.ask('GET', '/commands');
  expect(body.commands).toEqual([]);
});

test('what changes something asks first', async ({ page, server }) => {
  server.agent('coder');
  await page.keyboard.press('Control+k');
  await page.keyboard.type('pause coder');
  await expect(page.getByRole('option', { selected: true })).toContainText('Pause coder…');
  await page.keyboard.press('Enter');
  const question = page.getByRole('dialog', { name: 'Pause coder?' });
  await expect(question.getByRole('button', { name: 'Cancel' })).toBeFocused();
  await page.keyboard.press('Escape');
  await expect(question).toHaveCount(0);
  expect(server.cli('people', 'list')).not.toContain('paused');
  await page.keyboard.press('Control+k');
  await page.keyboard.type('pause coder');
  await expect(page.getByRole('option', { selected: true })).toContainText('Pause coder…');
  await page.keyboard.press('Enter');
  await question.getByRole('button', { name: 'Pause' }).click();
  await expect.poll(() => server.cli('people', 'list')).toContain('paused');
});

test('the theme is changed, and hostile names are text', async ({ page, server }) => {
  const coder = server.agent('coder');
  await coder.ask('POST', '/terminals', {
    name: 'evil‮gnp.<img src=x onerror=alert(1)>',
    description: 'x',
    command: 'cat',
  });
  await page.keyboard.press('Control+k');
  await page.keyboard.type('evil');
  const option = page.getByRole('option', { selected: true });
  await expect(option).toContainText('<img src=x onerror=alert(1)>');
  await expect(option).toContainText('U+202E');
  await page.keyboard.press('Control+a');
  await page.keyboard.type('theme dark');
  await expect(option).toHaveText('Theme: dark');
  await page.keyboard.press('Enter');
  await expect(page.locator('html')).toHaveAttribute('data-theme', 'dark');
  await page.keyboard.press('Control+k');
  await expect(page.getByRole('option')).toHaveCount(8);
  await accessible(page);
});
