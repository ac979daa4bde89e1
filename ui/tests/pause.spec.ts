import { accessibleInBoth } from './both';
import { expect, test, type Agent } from './harness';

/** Asks for a command, and returns its id and how it stands. */
async function asked(agent: Agent, command: string): Promise<{ id: string; state: string }> {
  const { body } = await agent.ask('POST', '/commands', { command, wait_ms: 0 });
  return { id: body.command_id as string, state: body.state as string };
}

async function ended(agent: Agent, id: string): Promise<string> {
  return (await agent.ask('GET', `/commands/${id}?wait_ms=20000`)).body.state as string;
}

test('Pause all holds a new run, which is not rejected, and resume starts it', async ({ page, server }) => {
  const coder = server.agent('coder');
  await page.getByRole('button', { name: 'Pause all' }).click();
  const bar = page.getByText(/^Everything is paused by you since .* 0 runs are held\.$/);
  await expect(bar).toBeVisible();
  await expect(page.getByRole('button', { name: 'Pause all' })).toHaveCount(0);
  const run = await asked(coder, 'echo hi');
  expect(run.state).toBe('held');
  await expect(page.getByText(/1 run is held\./)).toBeVisible();
  await accessibleInBoth(page);
  await page.getByRole('button', { name: 'Resume' }).click();
  await expect(page.getByText(/Everything is paused/)).toHaveCount(0);
  expect(await ended(coder, run.id)).toBe('succeeded');
});

test('what runs can be stopped, too', async ({ page, server }) => {
  const coder = server.agent('coder');
  const run = await asked(coder, 'sleep 300');
  await page.getByRole('button', { name: 'Pause all' }).click();
  await page.getByRole('button', { name: 'Also stop the 1 running' }).click();
  expect(await ended(coder, run.id)).toBe('killed');
  await expect(page.getByRole('button', { name: /Also stop/ })).toHaveCount(0);
});

test('one agent is paused alone', async ({ page, server }) => {
  const [coder, writer] = [server.agent('coder'), server.agent('writer')];
  const running = await asked(coder, 'sleep 300');
  await page.goto(`${server.address}/people`);
  await page.getByRole('button', { name: 'Pause coder' }).click();
  const dialog = page.getByRole('dialog', { name: 'Pause coder?' });
  await expect(dialog.getByRole('button', { name: 'Cancel' })).toBeFocused();
  await dialog.getByLabel('Also stop 1 run that is under way').check();
  await accessibleInBoth(page);
  await dialog.getByRole('button', { name: 'Pause', exact: true }).click();
  await expect(page.getByText(/^Paused by /)).toBeVisible();
  expect(await ended(coder, running.id)).toBe('killed');
  const held = await asked(coder, 'echo held');
  expect(held.state).toBe('held');
  expect((await writer.run('echo free')).state).toBe('succeeded');
  await page.getByRole('button', { name: 'Resume coder' }).click();
  await expect(page.getByText(/^Paused by /)).toHaveCount(0);
  expect(await ended(coder, held.id)).toBe('succeeded');
});
