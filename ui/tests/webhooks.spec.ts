import { createServer, type IncomingHttpHeaders, type Server as Http } from 'node:http';
import type { AddressInfo } from 'node:net';
import { asked } from './approvals';
import { accessibleInBoth, fitsPhone } from './both';
import { expect, test } from './harness';

interface Told {
  headers: IncomingHttpHeaders;
  body: string;
}

/** Somebody on this machine who is told things. */
async function receiver(status: () => number): Promise<{ url: string; told: Told[]; http: Http }> {
  const told: Told[] = [];
  const http = createServer((request, answer) => {
    let body = '';
    request.on('data', (data: Buffer) => (body += data.toString()));
    request.on('end', () => {
      told.push({ headers: request.headers, body });
      answer.writeHead(status()).end();
    });
  });
  await new Promise<void>((ready) => http.listen(0, '127.0.0.1', ready));
  const { port } = http.address() as AddressInfo;
  return { url: `http://127.0.0.1:${port}/hook/hidden`, told, http };
}

test('a webhook is added, tested, told, changed and removed', async ({ page, server }) => {
  let status = 204;
  const { url, told, http } = await receiver(() => status);
  const place = new URL(url).origin;
  await page.goto(`${server.address}/settings/notifications`);
  await expect(page.getByText('No other notifications.')).toBeVisible();
  await page.getByRole('button', { name: 'Add…' }).click();
  const dialog = page.getByRole('dialog', { name: 'Add a webhook' });
  await dialog.getByLabel('Address').fill('http://example.com/x');
  await dialog.getByRole('button', { name: 'Save' }).click();
  await expect(dialog.getByRole('alert')).toContainText('only https:// is accepted');
  await dialog.getByLabel('Address').fill(url);
  await dialog.getByLabel('What it is for').fill('on <b>call</b>');
  await dialog.getByLabel('Delay in seconds').fill('0');
  await dialog.getByLabel('Quiet hours').check();
  await accessibleInBoth(page);
  await fitsPhone(page, expect);
  await dialog.getByLabel('Quiet hours').uncheck();
  await dialog.getByRole('button', { name: 'Save' }).click();
  await expect(dialog.getByRole('region', { name: 'Secret of the webhook' })).toContainText('whsec_');
  await dialog.getByRole('button', { name: 'Done' }).click();

  const line = page.getByRole('listitem').filter({ hasText: place });
  await expect(line).toContainText('on <b>call</b>');
  await expect(line).toContainText('nothing sent yet');
  await line.getByRole('button', { name: 'Test' }).click();
  await expect(line.getByRole('status')).toHaveText('Delivered.');
  expect(JSON.parse(told[0]!.body)).toMatchObject({ type: 'test' });
  expect(told[0]!.headers['webhook-signature']).toMatch(/^v1,/);

  await asked(server.agent('coder'), 'touch a.txt', { review: 'before' });
  await expect.poll(() => told.length).toBe(2);
  expect(told[1]!.body).toContain('touch a.txt');

  status = 500;
  await line.getByRole('button', { name: 'Test' }).click();
  await expect(line.getByRole('status')).toHaveText('Not delivered: answered 500');
  await expect(line).toContainText('failed once: answered 500');
  await accessibleInBoth(page);
  await fitsPhone(page, expect);

  await line.getByRole('button', { name: 'Edit…' }).click();
  const change = page.getByRole('dialog', { name: `Edit ${place}` });
  await expect(change.getByLabel('Address')).toHaveValue('');
  await change.getByLabel('a failed run').check();
  await change.getByRole('button', { name: 'Save' }).click();
  await expect(change).toHaveCount(0);
  await line.getByRole('button', { name: 'Switch off' }).click();
  await expect(line).toContainText('· off');
  await expect(page.locator('body')).not.toContainText('hidden');
  await line.getByRole('button', { name: 'Delete this webhook' }).click();
  await expect(page.getByText('No other notifications.')).toBeVisible();
  http.close();
});
