// What comes over the wire for the first screen. Times are measured by ui/budgets.
import { expect, test } from './harness';

test('the first screen is small, in few requests, and has no code of terminals', async ({ page, server }) => {
  test.skip(!!process.env.PAGES, 'pages from a directory are not compressed');
  const cdp = await page.context().newCDPSession(page);
  await cdp.send('Network.enable');
  await cdp.send('Network.setCacheDisabled', { cacheDisabled: true });
  const kinds = new Map<string, string>();
  let [bytes, requests] = [0, 0];
  cdp.on('Network.responseReceived', ({ requestId, type, response }) => {
    kinds.set(requestId, type);
    expect(response.url).not.toMatch(/xterm/);
  });
  cdp.on('Network.loadingFinished', ({ requestId, encodedDataLength }) => {
    requests += 1;
    if (['Document', 'Script', 'Stylesheet'].includes(kinds.get(requestId) ?? '')) bytes += encodedDataLength;
  });
  await page.goto(`${server.address}/inbox`);
  await expect(page.getByText('No agent is connected.')).toBeVisible();
  expect(bytes).toBeGreaterThan(10_000);
  expect(bytes).toBeLessThanOrEqual(60 * 1024);
  expect(requests).toBeLessThanOrEqual(25);
});
