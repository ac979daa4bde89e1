import { many } from '../../lib/time';

export const text = {
  title: 'Terminal config',
  section: 'Command blacklist',
  does: 'A command containing any of these is blocked. Case and extra spaces do not matter.',
  notInForce:
    'Not in use yet: this is the built-in list, and the current policy does not use it. Once you save it, it applies too.',
  inFile: (path: string) => `Kept in ${path}`,
  none: 'The list is empty: no command is blocked by it.',
  remove: 'Remove',
  removeEntry: (entry: string) => `Remove ${entry}`,
  removed: (entry: string) => `${entry} was removed.`,
  entry: 'New entry',
  add: 'Add',
  refused: { empty: 'Type a text first.', duplicate: 'Already in the list.' },
  restore: 'Restore the defaults',
  cancel: 'Cancel',
  save: 'Save',
  saved: 'Saved.',
  onlyAdministrators: 'Only administrators can change this list.',
  discard: 'Discard your changes?',
  keep: 'Keep editing',
  discardNow: 'Discard',
  matched: (number: number) => `Matched ${many(number, 'command')} in the last 7 days`,
  limits: (usual: string, longest: string, output: string) =>
    `Time limit ${usual}, at most ${longest}; ${output} characters of output.`,
  changeLimits: 'Change the time limits',
  surprising: (number: number, of: number) =>
    `What you added would have blocked ${number} of the last ${many(of, 'command')}, such as:`,
  saveAnyway: 'Save anyway',
};
