import { readFileSync } from 'node:fs';
import { accessible, expect, test, type Agent } from './harness';
import { dark, HOSTILE, owner } from './runs';

/** Runs that are refused: nothing is started for them. */
async function many(agent: Agent, number: number): Promise<void> {
  const all = Array.from({ length: number }, (_, at) => at);
  while (all.length) {
    await Promise.all(all.splice(0, 25).map((at) => agent.run(`sudo true ${at}`)));
  }
}

test('what is typed and what is clicked is one filter, and it is in the address', async ({ page, server }) => {
  const agent = server.agent('coder');
  await agent.run('true');
  await agent.run('exit 3');
  await agent.run('sudo ls');
  await page.goto(`${server.address}/runs`);
  const rows = page.getByRole('grid').getByRole('row');
  await expect(rows).toHaveCount(4);

  await page.keyboard.press('/');
  const field = page.getByLabel('Filter runs');
  await expect(field).toBeFocused();
  await field.fill('status:failed exit');
  await expect(rows).toHaveCount(2);
  await expect(rows.nth(1)).toContainText('exit 3');
  await expect(rows.nth(1)).toContainText('Failed, exit 3');
  await expect(page).toHaveURL(/q=status%3Afailed\+exit|q=status:failed/);
  await expect(page.getByLabel('Status', { exact: true })).toHaveValue('failed');

  await page.getByLabel('Status', { exact: true }).selectOption('blocked');
  await expect(field).toHaveValue('exit status:blocked');
  await expect(page.getByText('No runs match.')).toBeVisible();
  await page.getByRole('button', { name: 'Remove status:blocked' }).click();
  await expect(rows).toHaveCount(2);

  await field.fill('statsu:failed');
  await page.getByRole('button', { name: 'Did you mean status:?' }).click();
  await expect(field).toHaveValue('status:failed');
  await expect(rows).toHaveCount(2);

  await page.reload();
  await expect(field).toHaveValue('status:failed');
  await expect(rows).toHaveCount(2);
  await page.getByRole('button', { name: 'Blocked' }).click();
  await expect(rows.nth(1)).toContainText('sudo ls');
  await expect(rows.nth(1)).toContainText('Blocked');
});

test('new runs come in at the top, and are only counted elsewhere', async ({ page, server }) => {
  const agent = server.agent('coder');
  await many(agent, 60);
  await page.goto(`${server.address}/runs`);
  const grid = page.getByRole('grid');
  const first = grid.getByRole('row').nth(1);
  await expect(first).toContainText('sudo true');
  await agent.run('echo first');
  await expect(first).toContainText('echo first');

  await grid.evaluate((node) => (node.scrollTop = 500));
  await expect(first).not.toContainText('echo first');
  const seen = grid.getByRole('row', { name: 'sudo true 30' });
  await expect(seen).toBeVisible();
  const before = await seen.boundingBox();
  await agent.run('echo second');
  await agent.run('echo third');
  await expect(page.getByRole('button', { name: '2 new ↑' })).toBeVisible();
  expect(await seen.boundingBox()).toEqual(before);

  await page.getByRole('button', { name: '2 new ↑' }).click();
  await expect(first).toContainText('echo third');
  await expect(page.getByRole('button', { name: /new ↑/ })).toHaveCount(0);

  await page.getByRole('button', { name: 'Live' }).click();
  await agent.run('echo fourth');
  await expect(page.getByRole('button', { name: '1 new ↑' })).toBeVisible();
  await expect(first).toContainText('echo third');
});

test('a row tells how its run goes on', async ({ page, server }) => {
  const agent = server.agent('coder');
  await page.goto(`${server.address}/runs`);
  await expect(page.getByText('Nothing has run yet.')).toBeVisible();
  const run = await agent.run('sleep 600', { background: true });
  const row = page.getByRole('row', { name: 'sleep 600' });
  await expect(row).toContainText('Running');
  await expect(row).toContainText('bg');
  await agent.ask('POST', `/commands/${run.command_id}/stop`, {});
  await expect(row).toContainText('killed by coder');
});

test('a view is saved under a name and stays, columns and groups too', async ({ page, server }) => {
  const agent = server.agent('coder');
  await agent.run('exit 1', { session_id: 'one' });
  await agent.run('exit 2', { session_id: 'two' });
  await page.goto(`${server.address}/runs?q=status:failed`);
  await page.goto(`${server.address}/runs?q=agent:coder%20status:failed`);
  await page.getByRole('button', { name: 'Save view…' }).click();
  await page.getByLabel('Name').fill('My failures');
  await accessible(page);
  await page.getByRole('button', { name: 'Save', exact: true }).click();
  await page.getByRole('button', { name: 'View options' }).click();
  await page.getByLabel('Took').uncheck();
  await page.getByLabel('Group').selectOption('session');
  await page.keyboard.press('Escape');
  await page.goto(`${server.address}/runs`);
  await expect(page.getByRole('columnheader', { name: 'Took' })).toHaveCount(0);
  await expect(page.getByText('coder, session')).toHaveCount(2);
  await page.getByRole('button', { name: 'My failures', exact: true }).click();
  await expect(page.getByLabel('Filter runs')).toHaveValue('agent:coder status:failed');
  await page.getByRole('button', { name: 'Remove the view My failures' }).click();
  await expect(page.getByRole('button', { name: 'My failures', exact: true })).toHaveCount(0);
});

test('what is filtered is exported', async ({ page, server }) => {
  const agent = server.agent('coder');
  await agent.run('exit 7');
  await agent.run('true');
  await page.goto(`${server.address}/runs?q=status:failed`);
  await expect(page.getByRole('grid').getByRole('row')).toHaveCount(2);
  await page.getByRole('button', { name: 'View options' }).click();
  const coming = page.waitForEvent('download');
  await page.getByRole('link', { name: 'CSV' }).click();
  const lines = readFileSync(await (await coming).path(), 'utf8').trim().split('\n');
  expect(lines).toHaveLength(2);
  expect(lines[1]).toContain('exit 7');
  const json = page.waitForEvent('download');
  await page.getByRole('link', { name: 'JSON lines' }).click();
  const written = readFileSync(await (await json).path(), 'utf8').trim().split('\n');
  expect(written.map((line) => JSON.parse(line).command)).toEqual(['exit 7']);
});

test('the list is used by keyboard alone, and a run opens beside it', async ({ page, server }) => {
  const agent = server.agent('coder');
  await agent.run('echo one');
  await agent.run('echo two');
  await page.goto(`${server.address}/runs`);
  const grid = page.getByRole('grid');
  await expect(grid.getByRole('row')).toHaveCount(3);
  await grid.focus();
  await page.keyboard.press('ArrowDown');
  await expect(grid.getByRole('row', { name: 'echo two' })).toHaveAttribute('aria-selected', 'true');
  await expect(page.getByRole('heading', { level: 1 })).toBeVisible();
  await expect(grid).toBeFocused();
  await page.keyboard.press('Enter');
  await expect(page.getByRole('heading', { level: 1 })).toBeFocused();
  await page.keyboard.press('j');
  await expect(page.getByRole('region', { name: 'Output' })).toContainText('one');
  await expect(grid.getByRole('row', { name: 'echo one' })).toHaveAttribute('aria-selected', 'true');
  await accessible(page);
  await page.keyboard.press('Escape');
  await expect(page).toHaveURL(/\/runs$/);
  await expect(grid).toBeFocused();

  await page.setViewportSize({ width: 1100, height: 800 });
  await page.keyboard.press('Enter');
  await expect(page.getByRole('heading', { level: 1 })).toBeFocused();
  await expect(grid).toBeHidden();
  await page.goBack();
  await expect(grid).toBeVisible();
});

test('the open run is in sight in the list, however it was opened', async ({ page, server }) => {
  const agent = server.agent('coder');
  for (let number = 0; number < 24; number++) await agent.run(`echo ${number}.`);
  await page.goto(`${server.address}/runs`);
  const row = page.getByRole('grid').getByRole('row', { name: 'echo 3.', exact: false });
  // Beside a run the rows are higher, so that it would be below the screen.
  await row.click();
  await expect(page.getByRole('region', { name: 'Output' })).toContainText('3.');
  await expect(row).toBeInViewport({ ratio: 1 });
  await page.reload();
  await expect(row).toBeInViewport({ ratio: 1 });
});

test('however many runs there are, few of them are in the page', async ({ page, server }) => {
  const agent = server.agent('coder');
  await many(agent, 450);
  await page.goto(`${server.address}/runs`);
  const grid = page.getByRole('grid');
  const rows = grid.getByRole('row');
  await expect(rows.nth(1)).toContainText('sudo true');
  await grid.focus();
  // What is not there yet is fetched on the way down.
  await expect(page.getByText('450 runs', { exact: true })).toBeVisible();
  await expect(async () => {
    await page.keyboard.press('End');
    await expect(rows.last()).toHaveAttribute('aria-rowindex', '451', { timeout: 500 });
  }).toPass();
  expect(await rows.count()).toBeLessThanOrEqual(60);
  await expect(grid).toHaveAttribute('aria-rowcount', '451');
  await page.keyboard.press('Home');
  await expect(rows.nth(1)).toHaveAttribute('aria-rowindex', '2');
  expect(await rows.count()).toBeLessThanOrEqual(60);
});

test('hostile commands are only text, in both themes and on a phone', async ({ page, server }) => {
  const agent = server.agent('coder');
  await agent.run(`echo "${HOSTILE}"`, { description: HOSTILE });
  await page.goto(`${server.address}/runs`);
  const row = page.getByRole('grid').getByRole('row').nth(1);
  for (const code of ['U+202E', 'U+200B', 'U+0430', 'U+001B']) await expect(row).toContainText(code);
  await expect(row).toContainText('<img src=x onerror=');
  await expect(page.locator('img')).toHaveCount(0);
  await accessible(page);
  await dark(page);
  await accessible(page);
  await page.setViewportSize({ width: 390, height: 780 });
  await expect(row).toContainText('U+202E');
  const wide = await page.evaluate(() => document.documentElement.scrollWidth);
  expect(wide).toBeLessThanOrEqual(390);
  await accessible(page);
});

test('a list is right again after the server was away', async ({ page, server }) => {
  const agent = server.agent('coder');
  await agent.run('echo before');
  await page.goto(`${server.address}/runs`);
  await expect(page.getByRole('row', { name: 'echo before' })).toBeVisible();
  await server.kill();
  await expect(page.getByText('Reconnecting…')).toBeVisible();
  await server.start();
  await agent.run('echo after');
  await expect(page.getByRole('row', { name: 'echo after' })).toBeVisible();
  await expect(page.getByRole('row', { name: 'echo before' })).toBeVisible();
});

test('the end of many runs is a jump away, and nothing in between is fetched', async ({ page, server }) => {
  const coder = server.agent('coder');
  await many(coder, 640);
  const asked: string[] = [];
  page.on('request', (request) => {
    const { pathname, search } = new URL(request.url());
    if (pathname.endsWith('/commands')) asked.push(search);
  });
  await page.goto(`${server.address}/runs`);
  const grid = page.getByRole('grid');
  await expect(grid).toHaveAttribute('aria-rowcount', '641');
  await expect(page.getByRole('row').nth(3)).toBeVisible();
  asked.length = 0;
  await grid.evaluate((grid) => (grid.scrollTop = grid.scrollHeight));
  // Twenty-five at once have no order of their own.
  await expect(grid.getByRole('row', { name: /sudo true \d\b/ }).first()).toBeVisible();
  expect(asked.length).toBeLessThanOrEqual(3);
  await expect(grid).toHaveAttribute('aria-rowcount', '641');
  expect(await grid.getByRole('row').count()).toBeLessThanOrEqual(60);

  // And back to the middle, where each is there once.
  await grid.evaluate((grid) => (grid.scrollTop = grid.scrollHeight / 2));
  await expect(grid.getByRole('row', { name: /sudo true 3[0-3]\d\b/ }).first()).toBeVisible();
  const shown = await grid.getByRole('row', { name: /sudo true \d+/ }).allInnerTexts();
  const names = shown.map((text) => /sudo true \d+/.exec(text)![0]);
  expect(new Set(names).size).toBe(names.length);
});

test('a run says by which token it was asked for, and by which version of the rules it was judged', async ({ page, server }) => {
  const coder = server.agent('coder');
  const policy = await owner(page, 'GET', '/policies/server');
  await page.evaluate(
    async ([etag, text]) => {
      await fetch('/agent/terminal/policies/server', {
        method: 'PUT',
        headers: { 'x-weighlock': '1', 'content-type': 'application/json', 'if-match': `"${etag}"` },
        body: JSON.stringify({ text, note: 'first' }),
      });
    },
    [String(policy.etag), '[[rule]]\nname = "no-force"\nreject = "git push --force"\n'] as const,
  );
  const run = await coder.run('ls');
  await page.goto(`${server.address}/runs/${run.command_id}/output`);
  await expect(page.getByText(`coder, token “${run.token}”`)).toBeVisible();
  await expect(page.getByRole('link', { name: 'policy v1' })).toHaveAttribute('href', '/policies?view=history');
  await accessible(page);
});
