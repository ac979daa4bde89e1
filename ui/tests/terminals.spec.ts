import type { Page } from '@playwright/test';
import { accessible, expect, test, type Agent, type Server } from './harness';
import { quiet } from './approvals';

/** What a terminal of the page shows. */
const shown = (page: Page) => page.locator('.xterm-rows');

async function open(agent: Agent, name: string, command: string, more: object = {}): Promise<string> {
  const body = { name, description: `Keep ${name} running`, command, ...more };
  const opened = await agent.ask('POST', '/terminals', body);
  expect(opened.status, JSON.stringify(opened.body)).toBe(202);
  return opened.body.terminal_id as string;
}

async function told(agent: Agent, id: string) {
  return (await agent.ask('GET', `/terminals/${id}`)).body;
}

async function marks(agent: Agent, id: string): Promise<string[]> {
  const index = await agent.ask('GET', `/terminals/${id}/recording/index`);
  return index.body.marks.map((mark: { kind: string }) => mark.kind);
}

/** Takes the keyboard, once the terminal is watched. */
async function take(page: Page): Promise<void> {
  await page.getByRole('button', { name: 'Take over' }).click();
  await expect(page.getByRole('button', { name: 'Hand back…' })).toBeVisible();
}

async function restart(server: Server, config: string): Promise<void> {
  await server.kill();
  server.config = config;
  await server.start();
}

test('watching changes nothing: the size is its owner\'s and the letters are scaled', async ({ page, server }) => {
  const coder = server.agent('coder');
  const id = await open(coder, 'wide', 'bash', { columns: 160, rows: 50 });
  await coder.ask('POST', `/terminals/${id}/input`, { text: "printf '%0160d\\n' 7", submit: true });
  await page.goto(`${server.address}/terminals`);
  await expect(page).toHaveURL(`${server.address}/terminals/${id}`);
  await expect(page.getByText('coder has the keyboard. You are watching.')).toBeVisible();
  await expect(shown(page)).toContainText(`${'0'.repeat(159)}7`);
  await expect(page.getByText('160 × 50, size set by coder')).toBeVisible();
  const room = await page.getByRole('region', { name: 'Terminal wide' }).evaluate((frame) => ({
    fits: frame.scrollWidth <= frame.clientWidth && frame.scrollHeight <= frame.clientHeight,
    font: parseFloat(getComputedStyle(frame.querySelector('.xterm-rows')!).fontSize),
  }));
  expect(room.fits).toBe(true);
  expect(room.font).toBeGreaterThanOrEqual(8);
  expect(room.font).toBeLessThan(16);
  await page.setViewportSize({ width: 900, height: 500 });
  await expect
    .poll(() => shown(page).evaluate((rows) => getComputedStyle(rows).fontSize))
    .toBe('8px');
  expect(await told(coder, id)).toMatchObject({ columns: 160, rows: 50 });
  expect(await marks(coder, id)).not.toContain('resized');
  await accessible(page);
});

test('who takes over holds the agent\'s input, and hands back with a note', async ({ page, server }) => {
  const coder = server.agent('coder');
  const id = await open(coder, 'repl', 'cat');
  await page.goto(`${server.address}/terminals/${id}`);
  await expect(page.getByText('You are watching.')).toBeVisible();
  await quiet(page);
  await page.keyboard.press('t');
  await expect(page.getByText('You are typing. coder\'s input is held until you hand back.')).toBeVisible();
  await page.keyboard.type('by hand\n');
  await expect(shown(page)).toContainText('by handby hand');
  const held = await coder.ask('POST', `/terminals/${id}/input`, { text: 'by coder', submit: true });
  expect(held.status).toBe(202);
  expect(held.body.text).toMatch(/ is typing in this terminal\. Your input is held\./);
  await expect(page.getByText('9 B held')).toBeVisible();
  expect((await told(coder, id)).columns).toBeGreaterThan(80);
  await accessible(page);

  // One Esc is the program's, two are ours.
  await page.keyboard.press('Escape');
  await expect(shown(page)).toContainText('^[');
  await page.keyboard.press('x');
  await expect(page.getByRole('dialog')).toHaveCount(0);
  await page.keyboard.press('Escape');
  await page.keyboard.press('Escape');
  const dialog = page.getByRole('dialog', { name: 'Hand back to coder' });
  await expect(dialog.getByRole('textbox')).toBeFocused();
  await page.keyboard.type('I logged in, go on.');
  await page.keyboard.press('Enter');
  await expect(page.getByText('coder has the keyboard. You are watching.')).toBeVisible();
  await expect(shown(page)).toContainText('by coder');
  await expect(page.getByText('80 × 24, size set by coder')).toBeVisible();
  const after = await told(coder, id);
  expect(after.control.text).toMatch(/handed back: ‘I logged in, go on\.’/);
  expect(await marks(coder, id)).toEqual(expect.arrayContaining(['taken', 'given_back']));
});

test('a burst of keys takes nothing over', async ({ page, server }) => {
  const coder = server.agent('coder');
  const id = await open(coder, 'repl', 'cat');
  await page.goto(`${server.address}/terminals/${id}`);
  await expect(page.getByText('You are watching.')).toBeVisible();
  await page.keyboard.type('cat t');
  await page.keyboard.press('Enter');
  await page.keyboard.type('test');
  expect((await told(coder, id)).control.taken_by).toBeNull();
  await expect(page.getByText('You are watching.')).toBeVisible();
});

test('who closes the browser loses the keyboard after a while', async ({ page, server }) => {
  await restart(server, '[terminals]\nkeyboard_lost = "1s"\n');
  const coder = server.agent('coder');
  const id = await open(coder, 'repl', 'cat');
  await page.goto(`${server.address}/terminals/${id}`);
  await take(page);
  await page.close();
  await expect.poll(async () => (await told(coder, id)).control.taken_by).toBeNull();
  expect(await marks(coder, id)).toEqual(expect.arrayContaining(['taken', 'given_back']));
});

test('a keyboard that nobody touches goes back, and that is said before', async ({ page, server }) => {
  await restart(server, '[terminals]\nkeyboard_idle = "6s"\n');
  const coder = server.agent('coder');
  const id = await open(coder, 'repl', 'cat');
  await page.goto(`${server.address}/terminals/${id}`);
  await take(page);
  await expect(page.getByText(/Hands back automatically in 0:0\d\./)).toBeVisible();
  await page.getByRole('button', { name: 'Keep it' }).click();
  await expect(page.getByText('coder has the keyboard. You are watching.')).toBeVisible();
  expect((await told(coder, id)).control.text).toMatch(/^The keyboard is back/);
});

test('several lines are looked at before they are pasted', async ({ page, server }) => {
  const coder = server.agent('coder');
  const id = await open(coder, 'repl', 'cat');
  await page.goto(`${server.address}/terminals/${id}`);
  await take(page);
  const paste = async (text: string) => {
    await page.context().grantPermissions(['clipboard-read', 'clipboard-write']);
    await page.evaluate((text) => navigator.clipboard.writeText(text), text);
    await page.keyboard.press('Control+Shift+V');
  };
  await paste('one word');
  await expect(shown(page)).toContainText('one word');
  await paste('first‮\nsecond\n');
  const dialog = page.getByRole('dialog', { name: 'Paste 2 lines?' });
  await expect(dialog).toContainText('U+202E');
  await accessible(page);
  await page.keyboard.press('Escape');
  await expect(dialog).toHaveCount(0);
  await expect(shown(page)).not.toContainText('second');
  await paste('first\nsecond\n');
  await dialog.getByRole('button', { name: 'Paste' }).click();
  await expect(shown(page)).toContainText('second');
});

test('input that is not shown is said to be hidden', async ({ page, server }) => {
  const coder = server.agent('coder');
  const id = await open(coder, 'login', "stty -echo; printf 'Password: '; read -r x; stty echo; echo; cat");
  await page.goto(`${server.address}/terminals/${id}`);
  await expect(shown(page)).toContainText('Password:');
  await expect(page.getByText('Hidden input')).toHaveCount(0);
  await take(page);
  await expect(page.getByText('Hidden input — not recorded')).toBeVisible();
  await page.keyboard.type('secret\n');
  await expect(page.getByText('Hidden input — not recorded')).toHaveCount(0);
});

test('a flood neither freezes the page nor is waited for', async ({ page, server }) => {
  test.slow();
  const coder = server.agent('coder');
  const id = await open(coder, 'flood', 'bash');
  await page.goto(`${server.address}/terminals/${id}`);
  await expect(shown(page)).toContainText('$');
  // A page that is slower than the flood, on any machine.
  const debug = await page.context().newCDPSession(page);
  await debug.send('Emulation.setCPUThrottlingRate', { rate: 20 });
  await coder.ask('POST', `/terminals/${id}/input`, {
    text: 'yes "$(printf %0999d 1)" | head -c 8000000; echo finished',
    submit: true,
  });
  await expect(page.getByText(/skipped .*iB — full output in/)).toBeVisible({ timeout: 60_000 });
  await page.getByRole('button', { name: 'Plain text' }).click();
  await expect(page.getByRole('button', { name: 'Refresh' })).toBeVisible();
  await page.getByRole('button', { name: 'Live view' }).click();
  await debug.send('Emulation.setCPUThrottlingRate', { rate: 1 });
  await expect(shown(page)).toContainText('finished', { timeout: 60_000 });
});

test('what a program writes can do nothing but be seen', async ({ page, server }) => {
  const sent: string[] = [];
  page.on('websocket', (line) => line.on('framesent', ({ payload }) => sent.push(String(payload))));
  const opened: string[] = [];
  page.context().on('page', (other) => opened.push(other.url()));
  const coder = server.agent('coder', '--sandbox', 'default');
  const id = await open(coder, '<img src=x onerror=alert(1)>‮', 'bash');
  await page.context().grantPermissions(['clipboard-read', 'clipboard-write']);
  await page.goto(`${server.address}/terminals/${id}`);
  await expect(page.getByRole('heading', { level: 1 })).toContainText('<img src=x onerror=alert(1)>');
  await expect(page.getByRole('heading', { level: 1 })).toContainText('U+202E');
  await page.evaluate(() => navigator.clipboard.writeText('mine'));
  // A title, a link, the clipboard, and every question that a terminal answers.
  const hostile = [
    '\\e]0;owned\\a\\e]2;owned\\a',
    '\\e]8;;https://evil.test/\\aclick here\\e]8;;\\a ',
    '\\e]52;c;b3duZWQ=\\a\\e]52;c;?\\a',
    '\\e[c\\e[>c\\e[=c\\e[5n\\e[6n\\e[?6n\\e[?15n\\e[>q\\e[?2004$p\\e[4$p',
    '\\e[14t\\e[18t\\e[21t\\e[8;3;3t\\e]4;1;?\\a\\e]10;?\\a\\e]11;?\\a\\e]12;?\\a',
    '\\eP$qm\\e\\\\\\eP+q544e\\e\\\\\\e[?u\\e[?1004h',
  ];
  const input = { text: `printf '${hostile.join('')}'; echo all-done`, submit: true };
  await coder.ask('POST', `/terminals/${id}/input`, input);
  await expect(shown(page)).toContainText('click here');
  await expect(shown(page)).toContainText('all-done');
  const title = await page.title();
  expect(title).not.toContain('owned');
  // The last one: the line that was typed may show it whole, too.
  await shown(page).getByText('click here').last().click({ force: true });
  expect(opened).toEqual([]);
  expect(await page.evaluate(() => navigator.clipboard.readText())).toBe('mine');
  await expect(page.getByText('80 × 24')).toBeVisible();
  // Who watches says nothing but that output came; who types, only their own keys.
  expect(sent.filter((said) => !said.includes('"ack"'))).toEqual([]);
  await take(page);
  // The answers, which the server gives, are on the line already.
  await page.keyboard.press('Control+c');
  await page.keyboard.type('printf "\\e[c\\e[6n\\e]11;?\\a"; echo $((600+66))\n');
  await expect(shown(page)).toContainText('666');
  const typed = sent.map((said) => JSON.parse(said) as { type: string; data?: string });
  const keys = typed.filter(({ type }) => type === 'input').map(({ data }) => data);
  // That the window has the focus is told to who has asked for it.
  expect(keys.join('').replace(/\x1b\[[IO]/g, '')).toBe('\x03printf "\\e[c\\e[6n\\e]11;?\\a"; echo $((600+66))\r');
});

test('text, finding and extra keys', async ({ page, server }) => {
  const coder = server.agent('coder');
  const id = await open(coder, 'shell', 'bash');
  await coder.ask('POST', `/terminals/${id}/exec`, { command: 'seq 1 300' });
  await page.goto(`${server.address}/terminals/${id}`);
  await expect(shown(page)).toContainText('300');
  await page.keyboard.press('f');
  await page.keyboard.type('15');
  await expect(page.getByText(/^1 of \d+$/)).toBeVisible();
  await page.keyboard.press('Enter');
  await expect(page.getByText(/^2 of \d+$/)).toBeVisible();
  await expect(shown(page)).toContainText('159');
  await page.keyboard.press('Escape');
  await expect(page.getByRole('searchbox')).toHaveCount(0);
  await page.getByRole('button', { name: 'Plain text' }).click();
  const plain = page.locator('pre');
  await expect(plain).toContainText('seq 1 300');
  await accessible(page);
  await page.getByRole('button', { name: 'Live view' }).click();
  await take(page);
  await page.keyboard.type('sleep 1000\n');
  await page.getByRole('button', { name: 'Extra keys' }).click();
  await page.getByRole('button', { name: 'Ctrl C' }).click();
  await page.keyboard.press('Escape');
  await expect(shown(page)).toContainText('^C');
  await page.getByRole('button', { name: 'Close…' }).click();
  const dialog = page.getByRole('dialog', { name: 'Close shell?' });
  await expect(dialog).toContainText('Ends bash');
  await dialog.getByRole('button', { name: 'Close' }).click();
  await expect(page.getByText('This terminal is closed')).toBeVisible();
  await page.getByText('Closed today').click();
  await expect(page.getByRole('link', { name: 'shell' })).toBeVisible();
});

test('a person opens a terminal of their own, in the dark too', async ({ page, server }) => {
  await page.emulateMedia({ colorScheme: 'dark' });
  await page.goto(`${server.address}/terminals`);
  await expect(page.getByText('No terminal is open.')).toBeVisible();
  await accessible(page);
  await page.getByRole('link', { name: 'Open one yourself' }).click();
  const dialog = page.getByRole('dialog', { name: 'New terminal' });
  await dialog.getByLabel('Name').fill('mine');
  await dialog.getByLabel('Program').fill('cat');
  await accessible(page);
  await dialog.getByRole('button', { name: 'Open' }).click();
  await expect(page.getByRole('heading', { level: 1, name: 'mine' })).toBeVisible();
  await take(page);
  await page.keyboard.type('hello\n');
  await expect(shown(page)).toContainText('hellohello');
  await accessible(page);
});

test('a server that is killed and comes back shows the terminal again', async ({ page, server }) => {
  const coder = server.agent('coder');
  const id = await open(coder, 'repl', 'cat');
  await page.goto(`${server.address}/terminals/${id}`);
  await expect(page.getByText('You are watching.')).toBeVisible();
  await expect(shown(page)).toBeAttached();
  await server.kill();
  await expect(page.getByText('Not connected to the terminal. Reconnecting…')).toBeVisible();
  await server.start();
  await expect(page.getByText('coder has the keyboard. You are watching.')).toBeVisible({ timeout: 30_000 });
  await coder.ask('POST', `/terminals/${id}/input`, { text: 'still here', submit: true });
  await expect(shown(page)).toContainText('still here');
});

test('j and k go through the list, and the detail follows', async ({ page, server }) => {
  const coder = server.agent('coder');
  await open(coder, 'first', 'cat');
  await open(coder, 'second', 'cat');
  await page.goto(`${server.address}/terminals`);
  const heading = page.getByRole('heading', { level: 1 });
  await expect(heading).toHaveText('first');
  await page.keyboard.press('j');
  await expect(heading).toHaveText('second');
  await page.keyboard.press('k');
  await expect(heading).toHaveText('first');
  await page.keyboard.press('Enter');
  await expect(heading).toBeFocused();
  await page.keyboard.press('Escape');
  await expect(page.getByRole('link', { name: /^first/ })).toBeFocused();
  await page.goto(`${server.address}/terminals/r_nothing`);
  await expect(page.getByRole('heading', { level: 1 })).toHaveText(
    'There is no terminal r_nothing, or you have no access to it.',
  );
});
