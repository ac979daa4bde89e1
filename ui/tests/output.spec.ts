import { statSync, readFileSync } from 'node:fs';
import { accessible, expect, test } from './harness';
import { dark, HOSTILE } from './runs';

test('long output opens at any line, is searched, is shown as the agent saw it, and downloads whole', async ({
  page,
  server,
}) => {
  const agent = server.agent('coder');
  const run = await agent.run('seq 1 2000000', { wait_ms: 60_000 });
  await page.goto(`${server.address}/runs/${run.command_id}/output#L1500000`);
  const output = page.getByRole('region', { name: 'Output' });
  await expect(output.getByText('1500000', { exact: true }).last()).toBeInViewport();
  expect(await output.locator('.line').count()).toBeLessThanOrEqual(60);

  await output.click();
  await page.keyboard.press('Control+f');
  const find = page.getByRole('searchbox', { name: 'Find in output' });
  await expect(find).toBeFocused();
  await find.fill('1234567');
  await page.keyboard.press('Enter');
  await expect(page.getByText('1 of 1', { exact: true })).toBeVisible({ timeout: 30_000 });
  await expect(output.getByText('1234567', { exact: true }).last()).toBeInViewport();

  await output.focus();
  await page.keyboard.press('End');
  await expect(output.getByText('2000000', { exact: true }).last()).toBeInViewport();
  await page.keyboard.press('ArrowUp');
  await page.keyboard.press('Home');
  await expect(output.getByText('1', { exact: true }).last()).toBeInViewport();
  await find.fill(':700000');
  await page.keyboard.press('Enter');
  await expect(output.getByText('700000', { exact: true }).last()).toBeInViewport();
  await expect(page).toHaveURL(/#L700000$/);
  await accessible(page);

  await page.getByRole('button', { name: 'As the agent saw it' }).click();
  await expect(output.locator('.line.bare').first()).toBeVisible();
  await output.focus();
  await page.keyboard.press('End');
  await expect(output.getByText('2000000', { exact: true })).toBeInViewport();
  // 15,000 characters from the beginning.
  await output.evaluate((node) => (node.scrollTop = 3215 * 20));
  await expect(output.getByText(/characters were left out here/)).toBeInViewport();

  const coming = page.waitForEvent('download');
  await page.getByRole('link', { name: 'Download' }).click();
  const path = await (await coming).path();
  expect(statSync(path).size).toBe(14_888_896);
  expect(readFileSync(path, 'utf8').endsWith('1999999\n2000000\n')).toBe(true);
});

test('where the copy of the agent was cut, the whole says so', async ({ page, server }) => {
  const agent = server.agent('coder');
  const run = await agent.run('seq 1 20000');
  await page.goto(`${server.address}/runs/${run.command_id}/output#L3220`);
  const output = page.getByRole('region', { name: 'Output' });
  await expect(output.getByText(/characters here were not shown to the agent/)).toBeVisible();
});

test('output is followed as it comes, until one scrolls up', async ({ page, server }) => {
  const agent = server.agent('coder');
  const line = 'while read line; do for n in $(seq 1 60); do echo "$line $n"; done; done';
  const run = await agent.run(line, { background: true, stdin_open: true });
  const say = async (word: string) => {
    const answer = await fetch(`${server.address}/agent/terminal/commands/${run.command_id}/stdin`, {
      method: 'POST',
      headers: { authorization: `Bearer ${agent.token}`, 'content-type': 'application/octet-stream' },
      body: `${word}\n`,
    });
    expect(answer.status).toBe(204);
  };
  await page.goto(`${server.address}/runs/${run.command_id}/output`);
  await expect(page.getByText('No output yet.')).toBeVisible();
  await say('first');
  const output = page.getByRole('region', { name: 'Output' });
  await expect(output.getByText('first 60', { exact: true })).toBeInViewport();
  await expect(page.getByRole('button', { name: 'Follow' })).toHaveAttribute('aria-pressed', 'true');
  await say('second');
  await expect(output.getByText('second 60', { exact: true })).toBeInViewport();

  await output.focus();
  await page.keyboard.press('Home');
  await expect(page.getByRole('button', { name: 'Follow' })).toHaveAttribute('aria-pressed', 'false');
  await say('third');
  await expect(page.getByRole('button', { name: '↓ 60 new lines' })).toBeVisible();
  await expect(output.getByText('first 1', { exact: true })).toBeInViewport();
  await page.getByRole('button', { name: '↓ 60 new lines' }).click();
  await expect(output.getByText('third 60', { exact: true })).toBeInViewport();
  await accessible(page);
  await agent.ask('POST', `/commands/${run.command_id}/stop`, {});
  await expect(page.getByRole('button', { name: 'Follow' })).toHaveCount(0);
});

test('colours are shown, standard error is marked, times and wrapping can be had', async ({ page, server }) => {
  const agent = server.agent('coder');
  const long = 'x'.repeat(600);
  const run = await agent.run(`printf '\\033[1;32mgreen\\033[0m plain\\n'; echo oops >&2; echo ${long}`);
  await page.goto(`${server.address}/runs/${run.command_id}/output`);
  const output = page.getByRole('region', { name: 'Output' });
  await expect(output.getByText('green', { exact: true })).toHaveCSS('color', 'rgb(105, 217, 141)');
  await expect(output.getByText('green', { exact: true })).toHaveCSS('font-weight', '700');
  await expect(output.locator('.err')).toContainText('standard error: oops');
  const row = output.locator('.line', { hasText: long });
  expect((await row.boundingBox())!.height).toBe(20);
  await page.getByRole('button', { name: 'Wrap' }).click();
  await expect.poll(async () => (await row.boundingBox())!.height).toBeGreaterThan(39);
  await page.getByRole('button', { name: 'Times' }).click();
  await expect(output.getByText(/^\+0\.\d{3} s$/).first()).toBeVisible();
  await page.getByRole('button', { name: 'Errors' }).click();
  await expect(output.locator('.line')).toHaveCount(1);
  await expect(output).toContainText('oops');
  await page.getByRole('button', { name: 'Full' }).click();
  await page.getByRole('button', { name: 'Raw' }).click();
  await expect(output).toContainText('U+001B');
  await accessible(page);
});

test('lines have an address: one, or some', async ({ page, server, context }) => {
  await context.grantPermissions(['clipboard-read', 'clipboard-write']);
  const agent = server.agent('coder');
  const run = await agent.run('seq 1 30');
  await page.goto(`${server.address}/runs/${run.command_id}/output`);
  const number = (line: number) => page.getByRole('link', { name: `Line ${line}`, exact: true });
  await number(3).click();
  await expect(page).toHaveURL(/#L3$/);
  await number(5).click({ modifiers: ['Shift'] });
  await expect(page).toHaveURL(/#L3-L5$/);
  await expect(page.locator('.line.marked')).toHaveCount(3);
  await page.getByRole('region', { name: 'Output' }).locator('..').locator('..').getByRole('button', { name: 'Copy' }).click();
  await expect(page.getByText('Copied')).toBeVisible();
  expect(await page.evaluate(() => navigator.clipboard.readText())).toBe('3\n4\n5\n');
  await page.reload();
  await expect(page.locator('.line.marked')).toHaveCount(3);
});

test('nothing, bytes that are no text, and hostile text', async ({ page, server }) => {
  const agent = server.agent('coder');
  const none = await agent.run('true');
  await page.goto(`${server.address}/runs/${none.command_id}/output`);
  await expect(page.getByText('No output.')).toBeVisible();
  const bytes = await agent.run('head -c 3200 /dev/zero');
  await page.goto(`${server.address}/runs/${bytes.command_id}/output`);
  await expect(page.getByText('Binary output, 3.1 KiB')).toBeVisible();

  const escaped = HOSTILE.replaceAll('\u001b', '\\033').replaceAll('\u0007', '\\007');
  const hidden = '\\033[38;2;12;15;22mhidden in its ground\\033[0m\\033[8mconcealed\\033[0m';
  const hostile = await agent.run(`printf '${escaped}\\n${hidden}\\n'`);
  await page.goto(`${server.address}/runs/${hostile.command_id}/output`);
  const output = page.getByRole('region', { name: 'Output' });
  for (const code of ['U+202E', 'U+200B', 'U+0430']) await expect(output).toContainText(code);
  await expect(output).toContainText('<img src=x onerror=');
  await expect(output.getByText('hidden in its ground')).toHaveCSS('color', 'rgb(230, 232, 236)');
  await expect(output).toContainText('concealed');
  await expect(page.locator('img')).toHaveCount(0);
  await expect(page).toHaveTitle(/Runs — weighlock/);
  await accessible(page);
  await dark(page);
  await accessible(page);
});
