// Makes the pictures of docs/pages.md from the running program: `ui/shots`. The
// data is made by real commands; what differs from run to run (ids, times) is
// small in them.
import { afternoon, DESKTOP, rules, shoot } from './camera';
import { asked, detail, row } from './tests/approvals';
import { test, expect } from './tests/harness';
import { owner } from './tests/runs';

test.setTimeout(300_000);

test('pictures', async ({ page, server }) => {
  await page.setViewportSize(DESKTOP);
  const { coder, writer } = await afternoon(server, page);
  const run = await asked(
    coder,
    "sed -i 's/legacy.toml/app.toml/' README.md && mv config/legacy.toml config/app.toml",
    { description: 'Rename the old config and update the README' },
  );
  await asked(writer, 'curl -fsSLO https://get.ex\u0430mple.dev/table.tgz', { description: 'Show the table', review: 'before' });
  await asked(coder, 'rm -rf build/', { description: 'Clean up', review: 'before' });
  await page.goto(`${server.address}/inbox/${run.approval_id}`);
  await expect(detail(page).getByText('tried in a copy')).toBeVisible();
  await expect(detail(page).getByRole('row', { name: /added/ }).first()).toBeVisible();
  await shoot(page, 'inbox', ['', '-phone']);

  await row(page, 'curl').click();
  await expect(detail(page).getByRole('button', { name: 'Approve anyway…' })).toBeVisible();
  await shoot(page, 'high-risk');

  await row(page, 'rm -rf build/').click();
  await page.waitForTimeout(600);
  await page.getByRole('button', { name: /^Always…/ }).click();
  await expect(page.getByRole('dialog').getByRole('radio').first()).toBeVisible();
  await shoot(page, 'always');
  await page.keyboard.press('Escape');

  await page.goto(`${server.address}/runs`);
  await expect(page.getByRole('row').nth(5)).toBeVisible();
  await shoot(page, 'runs', ['-dark']);
  const found = (await coder.run('find . -name "*.c" -exec cat {} +', { description: 'Read all the code' })).command_id;
  await page.goto(`${server.address}/runs/${found}/output`);
  await expect(page.getByText('int main').first()).toBeVisible();
  await shoot(page, 'run');

  const shell = await owner(page, 'POST', '/terminals', { name: 'dev-server', command: 'bash', description: 'Watch the tests' });
  await owner(page, 'POST', '/terminals/dev-server/exec', { command: 'cat README.md; ls -l; wc -l src/*' });
  await page.goto(`${server.address}/terminals/${shell.terminal_id ?? shell.command_id ?? 'dev-server'}`);
  await expect(page.getByText('dev-server').first()).toBeVisible();
  await page.waitForTimeout(1500);
  await shoot(page, 'terminal');

  await page.goto(`${server.address}/sandboxes`);
  await expect(page.getByRole('row').nth(1)).toBeVisible();
  await page.goto(`${server.address}/sandboxes/new`);
  await page.getByRole('textbox', { name: /^Name/ }).fill('webshop');
  await page.getByRole('textbox', { name: 'Directory' }).fill(`${server.base}/src`);
  await expect(page.getByText('in 2 files')).toBeVisible();
  await shoot(page, 'sandbox');

  await rules(page);
  await page.goto(`${server.address}/policies?test=${encodeURIComponent('git status && rm -rf build/')}`);
  await expect(page.getByRole('complementary').getByRole('status')).toBeVisible();
  await expect(page.getByRole('region', { name: 'Your rules' }).getByRole('listitem')).toHaveCount(3);
  await shoot(page, 'policies');
  await page.goto(`${server.address}/settings/retention`);
  await expect(page.getByRole('region', { name: 'Output and recordings' })).toBeVisible();
  await shoot(page, 'retention');
});
