// What to paste where, so that an agent finds its way here.

export const WAYS = [
  ['stdio', 'MCP over stdio'],
  ['http', 'MCP over HTTP'],
  ['rest', 'REST'],
  ['library', 'Library'],
] as const;

export type Way = (typeof WAYS)[number][0];

export interface Text {
  /** What it is, and where it belongs. */
  label: string;
  text: string;
}

/** Returns ready texts, with the real address and token in them. */
export function texts(way: Way, origin: string, token: string): Text[] {
  // Lists stay on one line, as people write them.
  const server = (inside: object) =>
    JSON.stringify({ mcpServers: { weighlock: inside } }, null, 2).replace(/\[\s*("\w+")\s*\]/g, '[$1]');
  switch (way) {
    case 'stdio':
      return [
        {
          label: 'On this machine, for Claude Code; others are in docs/mcp.md',
          text: `WEIGHLOCK_TOKEN=${token} weighlock mcp install claude-code --with-token`,
        },
        {
          label: 'Or in the settings of any client',
          text: server({ command: 'weighlock', args: ['mcp'], env: { WEIGHLOCK_TOKEN: token } }),
        },
      ];
    case 'http':
      return [
        {
          label: 'For Claude Code',
          text: `claude mcp add --transport http weighlock ${origin}/mcp \\\n  --header 'Authorization: Bearer ${token}'`,
        },
        {
          label: 'Or in the settings of any client',
          text: server({
            type: 'http',
            url: `${origin}/mcp`,
            headers: { Authorization: `Bearer ${token}` },
          }),
        },
      ];
    case 'rest':
      return [
        {
          label: 'In a shell',
          text:
            `curl -s ${origin}/agent/terminal/commands \\\n` +
            `  -H 'Authorization: Bearer ${token}' \\\n` +
            `  -H 'Content-Type: application/json' \\\n` +
            `  -d '{"command": "ls", "description": "Look around"}'`,
        },
      ];
    case 'library':
      return [
        {
          label: 'Python, with nothing but what it comes with',
          text:
            `import json, urllib.request\n\n` +
            `def run(command, **more):\n` +
            `    request = urllib.request.Request(\n` +
            `        "${origin}/agent/terminal/commands",\n` +
            `        data=json.dumps({"command": command, **more}).encode(),\n` +
            `        headers={"Authorization": "Bearer ${token}", "Content-Type": "application/json"},\n` +
            `    )\n` +
            `    return json.load(urllib.request.urlopen(request))\n\n` +
            `print(run("ls")["stdout"])`,
        },
      ];
  }
}
