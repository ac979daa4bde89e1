import { accessible, expect, test } from './harness';

test('a link signs in once, and the frame is there', async ({ page, server }) => {
  await expect(page).toHaveURL(`${server.address}/inbox`);
  await expect(page.getByText('Connected', { exact: true })).toBeVisible();
  await accessible(page);
  await page.goto(server.link);
  await expect(page.getByRole('alert')).toContainText('Could not sign in');
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
