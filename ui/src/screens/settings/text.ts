import type { Kept } from '../../api/schema';
import { count, many } from '../../lib/time';
import type { Limit } from './limits.svelte';

export const text = {
  title: 'Settings',
  sections: {
    general: 'General',
    notifications: 'Notifications',
    retention: 'Retention',
    health: 'Health',
    about: 'About',
  },
  general: {
    device: 'On this device',
    theme: 'Theme',
    keys: 'Single-key shortcuts',
    keysAbout: 'Letters such as “j” and “a”. “?” lists them. Ctrl K works in any case.',
    screenReader: 'Screen-reader mode in terminals',
    screenReaderAbout: 'What terminals show is also told to assistive technology.',
    server: 'On the server',
    serverAbout: 'For everybody, at once. An empty field is what the configuration file says.',
    limits: [
      ['expire_seconds', 'How long a question waits', 'seconds'],
      ['timeout_default_seconds', 'Time limit of a run', 'seconds'],
      ['timeout_max_seconds', 'The longest time limit', 'seconds'],
    ] satisfies [Limit, string, string][],
    always: 'Commands may be allowed beforehand',
    alwaysAbout: '“Always…” in the inbox. What was allowed so far stays allowed.',
    who: 'Who is asked',
    whoAbout: 'Only the configuration file changes these.',
    settings: {
      four_eyes: ['Whoever asks may not approve', 'approvals.four_eyes'],
      two_for_high_risk: ['Two people for high risk', 'approvals.two_for_high_risk'],
    },
    yes: 'yes',
    no: 'no',
    after: 'After a change:',
  },
  notifications: {
    browser: 'In this browser',
    about: 'When something waits and this page is not in view. A click opens the question; nothing is decided by it.',
    on: 'Notify me when something waits',
    off: 'Stop notifying me',
    isOn: 'You are notified.',
    quiet: 'Quiet hours in this browser',
    from: 'From',
    to: 'to',
    denied: 'The browser does not let this page notify you. Allow it in the browser’s settings for this site.',
    missing: 'This browser has no notifications.',
  },
  save: 'Save',
  saved: 'Saved. It counts at once.',
  undo: 'Discard',
  inFile: (value: number) => `${count(value)} in the configuration file`,
  onlyAdministrators: 'Only administrators can change it.',
  retention: {
    about:
      'What is kept, for how long and up to how much; past a limit, the oldest goes first. The record of every run stays.',
    parts: [
      {
        part: 'outputs',
        title: 'Output and recordings',
        fields: [
          ['output_days', 'Output is kept for', 'days'],
          ['output_mib', 'All output together', 'MiB'],
        ],
      },
      {
        part: 'undo',
        title: 'What is needed to undo',
        fields: [
          ['undo_days', 'Changes can be undone for', 'days'],
          ['undo_mib', 'Everything needed for that together', 'MiB'],
        ],
      },
      {
        part: 'drafts',
        title: 'Changes nobody decided about',
        fields: [['draft_days', 'They wait for', 'days']],
      },
      { part: 'recordings', title: 'Recordings that were watched', fields: [] },
    ] satisfies { part: keyof Kept; title: string; fields: [Limit, string, string][] }[],
    nothing: 'Nothing is kept.',
    amount: (number: string, bytes: string) => (bytes ? `${number} kept, ${bytes}` : `${number} kept`),
    since: (oldest: string) => `, the oldest from ${oldest}`,
    stays: 'Nothing of it would be removed now.',
    goes: (number: string, bytes: string) => `${number} (${bytes}) would be removed now.`,
    made: 'They are made again from the output when somebody wants to see them.',
  },
  health: {
    server: (version: string, up: string, running: number) =>
      `Server ${version}, up ${up}, ${many(running, 'run')} under way`,
    again: 'Check again',
    checking: 'Checking…',
    verify: 'Verify the audit now',
    verifying: 'Verifying…',
    verified: (entries: string) => `The chain is whole: ${entries} verified.`,
    fault: (number: number, what: string) => `Entry ${number} is wrong: ${what}`,
    export: 'Export the audit',
    problems: (problems: number, hints: number) =>
      problems || hints ? `${many(problems, 'problem')}, ${many(hints, 'hint')}` : 'Everything is fine.',
    primitives: (number: number) => `${many(number, 'thing')} that walls are made of, as tried just now`,
  },
  about: {
    version: 'Version',
    licence: 'Licence',
    licenceName: 'Apache-2.0',
    base: 'Base directory',
    address: 'Address',
    packages: 'Made of',
    made: (count: number) => `${count} packages of others, each under its own licence.`,
    all: 'All of them',
    api: 'Description of the API',
  },
};
