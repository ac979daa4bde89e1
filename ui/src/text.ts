// Every text that is not a screen's own, in one place, so that it can be
// translated. Screens keep theirs in a `text.ts` beside them.
import type { Refusal } from './api/client';

export const text = {
  product: 'weighlock',
  skip: 'Skip to content',
  screens: {
    inbox: 'Inbox',
    runs: 'Runs',
    terminals: 'Terminals',
    sandboxes: 'Sandboxes',
    policies: 'Policies',
    people: 'People',
    settings: 'Settings',
  },
  more: 'More',
  search: 'Search or jump',
  terminalConfig: 'Terminal config',
  pauseAll: 'Pause all',
  account: 'Account',
  theme: 'Theme',
  themes: { system: 'System', light: 'Light', dark: 'Dark' },
  keyboardHelp: 'Keyboard',
  signOut: 'Sign out',
  loading: 'Loading',
  tryAgain: 'Try again',
  cancel: 'Cancel',
  close: 'Close',
  copy: 'Copy',
  copied: 'Copied',
  copyOf: (what: string) => `Copy: ${what}`,
  checks: { ok: 'fine', hint: 'a hint', problem: 'a problem' },
  fix: (what: string) => `How to fix ${what}`,
  connection: {
    connected: 'Connected',
    reconnecting: 'Reconnecting…',
    offline: (since: string) => `Offline since ${since}`,
    stale: 'Not connected — this page may be out of date',
  },
  paused: (by: string, since: string, held: string) =>
    `Everything is paused by ${by} since ${since}. ${held}`,
  held: (runs: string, number: number) => `${runs} ${number === 1 ? 'is' : 'are'} held.`,
  you: 'you',
  resume: 'Resume',
  stopRunning: (runs: string) => `Also stop the ${runs}`,
  needsRole: (role: string) => `You need the ${role} role for this.`,
  noSuchPage: 'Page not found.',
  toInbox: 'To the inbox',
  couldNotLoadPage: 'Could not load this page. Nothing was changed.',
  couldNotLoad: (what: string, why: Refusal) =>
    why.unreachable
      ? `Could not load ${what} (the server cannot be reached). Nothing was changed.`
      : `Could not load ${what} (${why.message}). Nothing was changed.${why.hint ? ` ${sentence(why.hint)}` : ''}`,
  couldNot: (what: string, why: Refusal) =>
    why.unreachable
      ? `Could not ${what}: the server cannot be reached. Check before you repeat it.`
      : `Could not ${what}: ${why.message}.${why.hint ? ` ${sentence(why.hint)}` : ''}`,
  newApproval: (from: string, command: string) => `New approval from ${from}: ${command}`,
  newApprovals: (number: number) => `${number} new approvals`,
  notification: (from: string) => `${from} needs approval`,
  notifications: (agent: string, number: number) => `${agent} needs ${number} approvals`,
  highRisk: 'High risk',
  keys: {
    title: 'Keyboard',
    off: 'Single letters are switched off in Settings → General.',
    list: [
      ['Ctrl K', 'search or jump'],
      ['g then i r t s p u ,', 'Inbox, Runs, Terminals, Sandboxes, Policies, People, Settings'],
      ['j k ↓ ↑', 'move in a list; the detail follows'],
      ['Enter', 'open'],
      ['Esc', 'close the dialog, leave the field, back to the list'],
      ['/', 'go to the filter'],
      ['a, then Enter', 'approval: the main decision'],
      ['w', 'approval: Always…'],
      ['e', 'approval: Edit'],
      ['r', 'approval: Reject…'],
      ['d x', 'approval: jump to the effect, to the explanation'],
      ['f', 'output, terminal: find'],
      ['t', 'terminal, watching: take over'],
      ['Esc Esc', 'terminal, typing: hand back'],
      ['Space ← → [ ] < >', 'recording: play, ±5 s, marks, speed'],
    ],
  },
  signIn: {
    title: 'Sign in',
    working: 'Signing in…',
    noLink: ['Open the link that ', ' prints, or make one with '],
    token: 'Or use your token',
    slow: 'After several failed attempts, sign-in slows down for everyone.',
    submit: 'Sign in',
  },
  noSuch: (what: string, id: string) => `There is no ${what} ${id}, or you have no access to it.`,
};

function sentence(hint: string): string {
  const first = hint.charAt(0).toUpperCase() + hint.slice(1);
  return /[.!?]$/.test(first) ? first : `${first}.`;
}
