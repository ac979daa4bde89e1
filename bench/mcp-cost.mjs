// What the descriptions of the tools cost: every request to a model has them.
//
//   npm install --no-save --no-package-lock --prefix bench gpt-tokenizer@4
//   node bench/mcp-cost.mjs            prints the table of docs/mcp.md
//   node bench/mcp-cost.mjs --write    puts it there
//
// Counted is what clients pass on: name, description and input schema of each
// tool, as JSON. The tokenizer brings its vocabulary with it; it is one of many,
// and others count a tenth more or less.

import { spawn, spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { encode } from 'gpt-tokenizer/encoding/o200k_base';

const root = new URL('..', import.meta.url).pathname;
const program = process.env.WEIGHLOCK ?? join(root, 'target/release/weighlock');
const toolsets = ['weighlock', 'execute-command', 'terminal', 'shell', 'bash'];

const state = mkdtempSync(join(tmpdir(), 'mcp-cost-'));
const env = { ...process.env, WEIGHLOCK_STATE_DIR: state };
const rows = [];
try {
  let instructions = '';
  for (const toolset of toolsets) {
    const offered = await ask(toolset);
    instructions = offered.instructions;
    if (offered.tools.length > 0) rows.push(row(`\`${toolset}\``, offered.tools));
  }
  rows.push(row('instructions', instructions));
} finally {
  spawnSync(program, ['serve', '--stop'], { env, stdio: 'ignore' });
  rmSync(state, { recursive: true, force: true });
}

const table = [
  '| toolset | tools | bytes | bytes / 4 | tokens (o200k_base) |',
  '|---|---|---|---|---|',
  ...rows,
].join('\n');
if (process.argv.includes('--write')) {
  const guide = join(root, 'docs/mcp.md');
  const marked = /(<!-- cost -->\n)[^]*?(\n<!-- end of cost -->)/;
  writeFileSync(guide, readFileSync(guide, 'utf8').replace(marked, `$1${table}$2`));
} else {
  console.log(table);
}

function row(name, said) {
  const text = typeof said === 'string' ? said : JSON.stringify(said.map(shown));
  const bytes = Buffer.byteLength(text);
  const count = typeof said === 'string' ? '' : said.length;
  return `| ${name} | ${count} | ${bytes} | ${Math.round(bytes / 4)} | ${encode(text).length} |`;
}

function shown({ name, description, inputSchema }) {
  return { name, description, input_schema: inputSchema };
}

// Asks as a client does, and returns the tools and what is said about them.
async function ask(toolset) {
  const child = spawn(program, ['mcp', '--toolset', toolset], {
    env,
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  const send = (message) => child.stdin.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`);
  const answers = {};
  send({
    id: 1,
    method: 'initialize',
    params: {
      protocolVersion: '2025-11-25',
      capabilities: {},
      clientInfo: { name: 'mcp-cost', version: '1' },
    },
  });
  for await (const line of createInterface({ input: child.stdout })) {
    const { id, result } = JSON.parse(line);
    answers[id] = result;
    if (id === 1) {
      send({ method: 'notifications/initialized' });
      send({ id: 2, method: 'tools/list' });
    } else if (id === 2) {
      child.stdin.end();
    }
  }
  return { tools: answers[2].tools, instructions: answers[1].instructions };
}
