// Texts of the shared parts.
import { many } from '../lib/time';

export const text = {
  copy: 'Copy',
  copied: 'Copied',
  command: 'The command',
  wholeCommand: 'The whole command; scroll to its end',
  environment: 'Set for this run',
  builtIn: 'built-in check',
  default: 'no rule allows this',
  shouldNotAsk: 'This should not need approval…',
  rule: (name: string, layer: string) => `rule ${name} · ${layer}`,
  verdicts: { auto: 'Allowed', ask: 'Needs approval', reject: 'Blocked' },
  links: {
    then: 'then',
    and: 'then, if it succeeded',
    or: 'then, if it failed',
    pipe: 'output goes into',
    inside: 'inside',
    possible: 'possibly',
  },
  facts: {
    reads: 'reads',
    writes: 'writes',
    deletes: 'deletes',
    hosts: 'network',
    runs: 'runs other code',
  },
  unknownProgram: 'Unknown program. It may read, write and run anything the sandbox allows.',
  because: (why: string) => `Not fully understood: ${why}.`,
  showParts: (number: number) => `Show ${many(number, 'more part')}`,
  moreParts: (number: number) => `and ${many(number, 'more part')}`,
  settle: {
    apply: {
      what: 'apply the changes',
      title: 'Apply these changes?',
      hint: 'Exactly these changes are written to the real files. The command does not run again.',
      go: (files: string) => `Apply ${files}`,
    },
    discard: {
      what: 'discard the changes',
      title: 'Discard these changes?',
      hint: 'They are deleted, together with later changes that build on them. The real files stay as they are.',
      go: (files: string) => `Discard ${files}`,
    },
    revert: {
      what: 'revert',
      title: 'Revert these changes?',
      hint: 'Restores every file as it was before this run. The revert is a run of its own, which can be reverted too.',
      go: (files: string) => `Revert ${files}`,
    },
  },
  changes: {
    kinds: {
      deleted: 'deleted',
      modified: 'modified',
      created: 'created',
      renamed: 'renamed',
      mode: 'permissions',
      link: 'link',
      times: 'times',
    } as Record<string, string>,
    none: 'This run changed no files.',
    outside: 'outside the sandbox',
    more: (number: number) => `Show ${many(number, 'more file')}`,
    lines: (number: number) => `Show ${many(number, 'line')}`,
    moreLines: (number: number) => `Show ${many(number, 'more line')}`,
    binary: (what: string) => what || 'Binary file',
    tooLarge: 'Too large to show',
    directory: 'Directory',
    empty: 'It is empty.',
    sameContent: 'Content unchanged.',
    show: 'Show',
    masked: 'A likely secret is hidden.',
    otherNames: (count: number) =>
      `This file has ${count === 1 ? 'another hard link' : `${count} other hard links`}, which may be outside the sandbox.`,
    noNewline: 'No newline at the end of the file',
    side: { added: 'added', removed: 'removed', context: '' },
    split: 'Side by side',
    unified: 'One column',
    deletedFiles: (number: number) => `${many(number, 'file')} in it ${number === 1 ? 'is' : 'are'} deleted`,
    network: (hosts: string) =>
      `It had access to the network${hosts && ` (${hosts})`}; what it did there is not shown.`,
    what: 'the changes',
    diff: 'the diff',
    conflict: (why: string) => `: ${why}`,
  },
};

/** What can become of a run's changes. */
export type Deed = keyof typeof text.settle;
