// What the palette says.
import { flat } from '../../lib/safe';
import { text as common } from '../../text';

export const text = {
  hint: 'Screens, runs, agents, rules, actions — or $ and a command',
  none: 'Nothing found.',
  results: 'Results',
  count: (number: number) => (number === 1 ? '1 result' : `${number} results`),
  groups: {
    screens: 'Screens',
    actions: 'Actions',
    terminals: common.screens.terminals,
    runs: common.screens.runs,
    sandboxes: common.screens.sandboxes,
    agents: 'Agents',
    rules: 'Rules',
  },
  testThis: 'Test this command',
  test: 'Test a command…',
  newTerminal: 'New terminal…',
  addSandbox: 'Add a sandbox…',
  connect: 'Connect an agent…',
  newToken: 'New token…',
  theme: (name: string) => `Theme: ${name.toLowerCase()}`,
  pause: (agent?: string) => (agent ? `Pause ${flat(agent)}…` : `${common.pauseAll}…`),
  resume: (agent?: string) => (agent ? `${common.resume} ${flat(agent)}` : `${common.resume} everything`),
  pauseTitle: (agent?: string) => (agent ? `Pause ${flat(agent)}?` : 'Pause everything?'),
  pauseMeans: 'New runs are held, not rejected, until somebody resumes. Runs under way continue.',
  pauseNow: 'Pause',
};
