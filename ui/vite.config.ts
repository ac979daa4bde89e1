import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { brotliCompressSync } from 'node:zlib';
import { svelte } from '@sveltejs/vite-plugin-svelte';
import { defineConfig, type Plugin } from 'vitest/config';

// `npm run dev` shows the pages as they are edited; everything else is asked
// of a server that runs.
const server = process.env.WEIGHLOCK_SERVER ?? 'http://127.0.0.1:7777';

/** What the first screen needs comes together: a request costs more than a few
 * kilobytes. What is only opened from there stays apart. */
const FIRST = [
  /src\/lib\/(?!ansi|spans|virtual|filter|characters|look-alikes)/,
  /src\/api\//,
  /src\/text\.ts/,
  /src\/parts\/(?!Virtual|Filter|Snippet|Tabs|Checks|Warnings|Settle|State|Dialog|Prose|Back|Effect|FileCard|Diff|diff|terminal|output)/,
  /src\/screens\/inbox\/(?!Always|Block|Groups|Confirm|Edit\.|EffectPart|Outcome|Several|One|always)/,
  /node_modules\/svelte\//,
];

/** Writes each file once more, a tenth smaller than gzip makes it. Browsers take
 * that from this machine and over TLS, and gzip from everywhere. */
const brotli: Plugin = {
  name: 'brotli',
  apply: 'build',
  async writeBundle({ dir = '' }, bundle) {
    const files = Object.entries(bundle).map(([name, made]) => {
      const content = made.type === 'chunk' ? made.code : made.source;
      return writeFile(join(dir, `${name}.br`), brotliCompressSync(content));
    });
    await Promise.all(files);
  },
};

export default defineConfig({
  plugins: [svelte(), brotli],
  html: { cspNonce: '__NONCE__' },
  build: {
    target: 'es2022',
    // Our own policy forbids what it would insert, and browsers need it no more.
    modulePreload: { polyfill: false },
    // A picture in the address of a picture is not our own.
    assetsInlineLimit: 0,
    rolldownOptions: {
      output: {
        codeSplitting: { groups: [{ name: 'inbox', test: (id: string) => FIRST.some((one) => one.test(id)) }] },
      },
    },
  },
  server: { proxy: { '/agent': { target: server, ws: true } } },
  test: { include: ['src/**/*.test.ts'] },
});
