// Rules one by one: the same draft as the text.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { accessibleInBoth, fitsPhone } from './both';
import { expect, test } from './harness';

const FILE = '# Ours.\n[[rule]]\nname = "no-force" # as agreed\nreject = "git push --force"\n\n# Scratch files.\n[[rule]]\nname = "scratch"\nauto = "touch *"\n';

test('a rule is added, changed and removed by a form, and the text is the same draft', async ({ page, server }) => {
  writeFileSync(join(server.home, 'settings/weighlock/rules.toml'), FILE);
  await server.kill();
  await server.start();
  const coder = server.agent('coder');
  await coder.run('touch seen');
  await page.goto(`${server.address}/policies`);
  const own = page.getByRole('region', { name: 'Your rules' });
  const rows = own.getByRole('list', { name: 'Your rules' }).getByRole('listitem');
  await expect(rows).toHaveCount(2);
  await expect(rows.nth(1)).toContainText('1/7 d');
  await own.getByRole('button', { name: 'Add rule' }).click();
  const editor = own.getByRole('form', { name: 'A new rule' });
  await expect(editor.getByLabel('Verdict')).toBeFocused();
  await editor.getByLabel('Verdict').selectOption('Block');
  await editor.getByLabel('Name').fill('no-net');
  await editor.getByLabel('Anything that has…').check();
  await editor.getByLabel('Programs').fill('curl\nwget');
  await editor.getByLabel('coder').check();
  await editor.getByLabel('Until the end of').fill('2099-12-31');
  await editor.getByLabel('Note').fill('goes out');
  await editor.getByText('Examples, checked as tests').click();
  await editor.getByLabel('It must match').fill('ls');
  await accessibleInBoth(page);
  await fitsPhone(page, expect);
  await editor.getByRole('button', { name: 'Add to the draft' }).click();
  await expect(editor.getByRole('alert')).toContainText('the rule does not match its example `ls`');
  await editor.getByLabel('It must match').fill('curl x');
  await editor.getByRole('button', { name: 'Add to the draft' }).click();
  await expect(rows).toHaveCount(3);
  await expect(rows.nth(2)).toContainText('for coder');
  await expect(rows.nth(2)).toContainText('not saved yet');
  await expect(own.getByText('The draft differs from the rules in use.')).toBeVisible();

  // The test box tries the draft, as whom it is for.
  const box = page.getByRole('complementary', { name: 'Test a command' });
  await box.getByRole('textbox', { name: 'Command' }).fill('curl x');
  await box.getByLabel('as').selectOption('coder');
  await expect(box.getByRole('status')).toHaveText(/now:.*→\s*draft:\s*Blocked/);

  await rows.nth(1).getByRole('button').first().click();
  const change = own.getByRole('form', { name: 'Rule scratch' });
  await change.getByLabel('Note').fill('makes empty files');
  await change.getByRole('button', { name: 'Update the draft' }).click();
  await expect(rows.nth(1)).toContainText('makes empty files');
  await rows.nth(0).getByRole('button').first().click();
  await own.getByRole('form', { name: 'Rule no-force' }).getByRole('button', { name: 'Remove' }).click();
  await expect(rows).toHaveCount(2);

  await page.getByRole('link', { name: 'Text' }).click();
  const text = page.getByLabel('Rules in a draft');
  await expect(text).toHaveValue(/^# Ours\.\n/);
  await expect(text).toHaveValue(/# Scratch files\.\n\[\[rule\]\]\nname = "scratch"/);
  await expect(text).toHaveValue(/reject {2}= \{ program = \["curl", "wget"\] \}\nagents {2}= "coder"\nuntil {3}= "2099-12-31"/);
  await page.getByRole('link', { name: 'Rules' }).click();
  await own.getByRole('button', { name: 'Review and save…' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Save' }).click();
  await expect(own.getByText('The draft differs from the rules in use.')).toHaveCount(0);
  expect((await coder.run('curl x')).state).toBe('blocked');
  await accessibleInBoth(page);
});

test('what holds is one list, for whom and where it is asked', async ({ page, server }) => {
  server.agent('coder');
  await page.goto(`${server.address}/policies`);
  const effective = page.getByRole('region', { name: 'Effective' });
  await expect(effective.getByRole('row').nth(1)).toBeVisible();
  await effective.getByLabel('as').selectOption('coder');
  await expect(page).toHaveURL(/agent=coder/);
  await expect(effective.getByRole('list', { name: 'Order in which policies apply' })).toContainText('built-in');
  await accessibleInBoth(page);
});
