// The same on a phone, with a finger.
import type { Page } from '@playwright/test';
import { accessible, expect, test } from './harness';
import { asked, decision, put, quiet, read, row } from './approvals';

/** Nothing scrolls sideways, and a finger hits everything. */
async function fits(page: Page) {
  const [wide, width] = await page.evaluate(() => [document.documentElement.scrollWidth, innerWidth]);
  expect(wide).toBeLessThanOrEqual(width!);
  const small = await page.evaluate(() =>
    [...document.querySelectorAll('main button, main summary, main textarea')]
      // Words in a text are as high as its lines.
      .filter((one) => !one.closest('pre'))
      .map((one) => ({ text: one.textContent?.trim(), box: one.getBoundingClientRect() }))
      .filter(({ box }) => box.height > 0 && box.height < 48)
      .map(({ text, box }) => `${text} ${box.height}`),
  );
  expect(small).toEqual([]);
}

test('an approval is decided with two taps', async ({ page, server }) => {
  const coder = server.agent('coder');
  put(server, 'README.md', 'a\n');
  await asked(coder, `sed -i s/a/${'z'.repeat(80)}/ README.md`, { description: 'Update the README' });
  await expect(row(page, 'sed -i')).toBeVisible();
  await fits(page);
  await accessible(page);
  await row(page, 'sed -i').tap();
  await expect(page.getByRole('heading', { level: 1, name: 'Edits README.md' })).toBeVisible();
  await expect(page.locator('pre').first()).toContainText(`sed -i s/a/${'z'.repeat(80)}/ README.md`);
  await expect(page.getByText('Why approval is needed')).toBeVisible();
  await expect(page.getByText('1 file', { exact: true })).toBeVisible();
  const main = decision(page, 'Apply these changes');
  await expect(main).toBeEnabled();
  await fits(page);
  for (const colorScheme of ['light', 'dark'] as const) {
    await page.emulateMedia({ colorScheme });
    await accessible(page);
  }
  await quiet(page);
  await main.tap();
  await expect(page.getByText('Applied by you').first()).toBeVisible();
  expect(read(server, 'README.md')).toBe(`${'z'.repeat(80)}\n`);
  await fits(page);
  await page.getByRole('link', { name: 'Back to the inbox' }).tap();
  await expect(page.getByText('Nothing waits for you.')).toBeVisible();
  await accessible(page);
});

test('what is closed at first says how much there is, and opens', async ({ page, server }) => {
  const coder = server.agent('coder');
  put(server, 'README.md', 'a\n');
  await asked(coder, 'sed -i s/a/z/ README.md && touch new.txt');
  await row(page, 'sed -i').tap();
  await expect(page.getByText('2 files', { exact: true })).toBeVisible();
  await expect(page.getByRole('row', { name: 'added z' })).toBeHidden();
  await page.getByText('Effect').tap();
  await expect(page.getByRole('row', { name: 'added z' })).toBeVisible();
  await quiet(page);
  await decision(page, 'Reject…').tap();
  // What is typed has the room of the decisions, and they come back.
  await expect(page.getByRole('group', { name: 'Decide' })).toBeHidden();
  await page.getByRole('button', { name: 'Cancel' }).tap();
  await expect(page.getByRole('group', { name: 'Decide' })).toBeVisible();
  await quiet(page);
  await decision(page, 'Reject…').tap();
  await page.getByRole('button', { name: 'Show me a plan' }).tap();
  await expect(page.getByRole('textbox', { name: 'Reason' })).toHaveValue('Show me a plan.');
  await fits(page);
  await accessible(page);
  await quiet(page);
  await page.getByRole('button', { name: 'Reject', exact: true }).tap();
  await expect(page.getByText('Rejected by you').first()).toBeVisible();
});
