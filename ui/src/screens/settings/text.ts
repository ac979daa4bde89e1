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
    screenReaderAbout: 'Screen readers also announce what terminals show.',
    server: 'On the server',
    serverAbout: 'For everybody, immediately. An empty field uses the configuration file.',
    limits: [
      ['expire_seconds', 'An approval expires after', 'seconds'],
      ['timeout_default_seconds', 'Default time limit of a run', 'seconds'],
      ['timeout_max_seconds', 'Maximum time limit of a run', 'seconds'],
    ] satisfies [Limit, string, string][],
    always: 'Commands can be always allowed',
    alwaysAbout: '“Always…” in the inbox. Switching it off does not revoke what is allowed already.',
    who: 'Who approves',
    whoAbout: 'Only the configuration file can change these.',
    settings: {
      four_eyes: ['Nobody approves their own request', 'approvals.four_eyes'],
      two_for_high_risk: ['Two approvers for high risk', 'approvals.two_for_high_risk'],
    },
    yes: 'yes',
    no: 'no',
    after: 'After a change:',
  },
  notifications: {
    browser: 'In this browser',
    about: 'When something waits and this page is not visible. A click opens the approval and decides nothing.',
    on: 'Notify me when something waits',
    off: 'Stop notifying me',
    isOn: 'Notifications are on.',
    quiet: 'Quiet hours in this browser',
    from: 'From',
    to: 'to',
    denied: 'The browser blocks notifications from this page. Allow them in its settings for this site.',
    missing: 'This browser does not support notifications.',
  },
  save: 'Save',
  saved: 'Saved. In effect now.',
  undo: 'Discard',
  inFile: (value: number) => `${count(value)} in the configuration file`,
  onlyAdministrators: 'Only administrators can change it.',
  retention: {
    about:
      'What is kept, for how long and how much. Past a limit, the oldest is removed first. The record of every run stays.',
    parts: [
      {
        part: 'outputs',
        title: 'Output and recordings',
        fields: [
          ['output_days', 'Output is kept for', 'days'],
          ['output_mib', 'Total size of output', 'MiB'],
        ],
      },
      {
        part: 'undo',
        title: 'Data for undo',
        fields: [
          ['undo_days', 'Changes can be undone for', 'days'],
          ['undo_mib', 'Total size of that data', 'MiB'],
        ],
      },
      {
        part: 'drafts',
        title: 'Undecided changes',
        fields: [['draft_days', 'They are kept for', 'days']],
      },
      { part: 'recordings', title: 'Cached recordings', fields: [] },
    ] satisfies { part: keyof Kept; title: string; fields: [Limit, string, string][] }[],
    nothing: 'Nothing is kept.',
    amount: (number: string, bytes: string) => (bytes ? `${number} kept, ${bytes}` : `${number} kept`),
    since: (oldest: string) => `, the oldest from ${oldest}`,
    stays: 'Nothing would be removed now.',
    goes: (number: string, bytes: string) => `${number} (${bytes}) would be removed now.`,
    made: 'Made again from the output when somebody watches one.',
  },
  health: {
    server: (version: string, up: string, running: number) =>
      `Server ${version}, up ${up}, ${many(running, 'run')} under way`,
    again: 'Check again',
    checking: 'Checking…',
    verify: 'Verify the audit now',
    verifying: 'Verifying…',
    verified: (entries: string) => `The chain is unbroken: ${entries} verified.`,
    fault: (number: number, what: string) => `Entry ${number} is wrong: ${what}`,
    export: 'Export the audit',
    problems: (problems: number, hints: number) =>
      problems || hints ? `${many(problems, 'problem')}, ${many(hints, 'hint')}` : 'Everything is fine.',
    primitives: (number: number) => `${many(number, 'kernel feature')} for sandboxes, tried just now`,
  },
  about: {
    version: 'Version',
    licence: 'Licence',
    licenceName: 'Apache-2.0',
    base: 'Base directory',
    address: 'Address',
    packages: 'Dependencies',
    made: (count: number) => `${count} third-party packages, each under its own licence.`,
    all: 'Show all',
    api: 'Description of the API',
  },
};
