import { expect, it } from 'vitest';
import { endsAt, grants, parted } from './always';

const NOON = new Date(2026, 10, 17, 12, 0, 0);

it('grants end when somebody said, or never', () => {
  const seconds = NOON.getTime() / 1000;
  expect(endsAt('hour', NOON)).toBe(seconds + 3600);
  expect(endsAt('today', NOON)).toBe(new Date(2026, 10, 18).getTime() / 1000);
  expect(endsAt('removed', NOON)).toBeNull();
});

it('makes one grant of each pattern, and none of an empty one', () => {
  const scope = { label: '', agent: 'coder', sandbox: 'default' };
  const made = grants(['rm -r tmp', ' rm -r tmp ', ''], scope, 'session', 's_1', NOON);
  expect(made).toEqual([
    { pattern: 'rm -r tmp', agent: 'coder', sandbox: 'default', session: 's_1', until: null },
  ]);
  expect(grants(['a'], scope, 'hour', 's_1', NOON)[0]!.session).toBeNull();
});

it('knows the command in a label', () => {
  expect(parted('Exactly this command')).toEqual(['', 'Exactly this command']);
  expect(parted('sed -i on README.md, whatever else it is told')).toEqual([
    'sed -i',
    ' on README.md, whatever else it is told',
  ]);
  expect(parted('mv inside src/')).toEqual(['mv', ' inside src/']);
  expect(parted('git commit with any arguments')).toEqual(['git commit', ' with any arguments']);
});
