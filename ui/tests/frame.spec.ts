import { accessible, expect, test } from './harness';

test('a link signs in once, and the frame is there', async ({ page, server }) => {
  await expect(page).toHaveURL(`${server.address}/inbox`);
  await expect(page.getByText('Connected', { exact: true })).toBeVisible();
  await accessible(page);
  await page.goto(server.link);
  await expect(page.getByRole('alert')).toContainText('Could not sign in');
  await expect(page.getByRole('alert')).not.toContainText('`');
  await expect(page.getByText('weighlock', { exact: true })).toBeVisible();
  await accessible(page);
});

test('keys lead to every screen', async ({ page }) => {
  await page.keyboard.press('g');
  await page.keyboard.press('r');
  await expect(page).toHaveURL(/\/runs$/);
  await page.keyboard.press('?');
  await expect(page.getByRole('dialog', { name: 'Keyboard' })).toBeVisible();
  await page.keyboard.press('Escape');
  await expect(page.getByRole('dialog')).toHaveCount(0);
});

test('a server that is killed and comes back is noticed without reload', async ({ page, server }) => {
  await expect(page.getByText('Connected', { exact: true })).toBeVisible();
  await server.kill();
  await expect(page.getByText('Reconnecting…')).toBeVisible();
  await server.start();
  await expect(page.getByText('Connected', { exact: true })).toBeVisible();
});

test('a screen that is opened while the server is away comes by itself when it is back', async ({ page, server }) => {
  await expect(page.getByText('Connected', { exact: true })).toBeVisible();
  // Each without its code, and then with it.
  for (const name of ['Runs', 'Runs', 'Sandboxes', 'Sandboxes']) {
    await server.kill();
    await expect(page.getByText('Reconnecting…')).toBeVisible();
    await page.getByRole('navigation').first().getByRole('link', { name }).click();
    await expect(page.getByRole('alert')).toContainText('Could not load');
    await expect(page.getByRole('button', { name: 'Try again' })).toBeVisible();
    await server.start();
    await expect(page.getByRole('main').getByRole('heading', { name }).first()).toBeVisible();
    await expect(page.getByRole('alert')).toHaveCount(0);
    await page.getByRole('navigation').first().getByRole('link', { name: 'Inbox' }).click();
  }
});

test('a page to which nobody says who is signed in comes when somebody does', async ({ page }) => {
  await page.route('**/agent/terminal/**', (route) => route.abort());
  await page.reload();
  await expect(page.getByRole('alert')).toContainText('Could not load this page');
  await page.unroute('**/agent/terminal/**');
  await expect(page.getByText('Connected', { exact: true })).toBeVisible();
});
