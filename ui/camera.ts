// What the scripts that make pictures have in common: a small project with some
// history, and taking pictures at both sizes and in both themes.
import { mkdirSync } from 'node:fs';
import { resolve } from 'node:path';
import type { Page } from '@playwright/test';
import { put } from './tests/approvals';
import type { Agent, Server } from './tests/harness';
import { owner } from './tests/runs';

/** Everything there is, for whoever looks at the pages and not at the guide. */
export const ALL = process.env.ALL === '1';
export const OUT = resolve(process.env.SHOTS ?? (ALL ? '../target/shots' : '../docs/pages'));

export const DESKTOP = { width: 1280, height: 800 };
const PHONE = { width: 390, height: 844 };

mkdirSync(OUT, { recursive: true });

/** A size and a theme, by what they add to a picture's name. */
export type Look = '' | '-dark' | '-phone' | '-phone-dark';
const EVERY: Look[] = ['', '-dark', '-phone', '-phone-dark'];

/** Takes pictures of what is shown; on the way to a phone's size and back the
 * page stays as it is. */
export async function shoot(page: Page, name: string, looks: Look[] = ALL ? EVERY : ['']): Promise<void> {
  await page.mouse.move(0, 0);
  for (const look of looks) {
    await page.setViewportSize(look.includes('phone') ? PHONE : DESKTOP);
    await page.emulateMedia({ colorScheme: look.includes('dark') ? 'dark' : 'light', reducedMotion: 'reduce' });
    await page.waitForTimeout(300);
    await page.screenshot({ path: `${OUT}/${name}${look}.png`, animations: 'disabled', caret: 'hide' });
  }
  await page.setViewportSize(DESKTOP);
  await page.emulateMedia({ colorScheme: 'light' });
}

/** A small project, two agents and an afternoon of work. */
export async function afternoon(server: Server, page: Page): Promise<{ coder: Agent; writer: Agent }> {
  put(server, 'README.md', '# Webshop\n\nCopy `legacy.toml` to your home directory.\nThen run `make`.\n');
  put(server, 'config/legacy.toml', '[shop]\nname = "demo"\n');
  put(server, 'build/cache/a.o', 'x');
  put(server, 'build/reports/today.txt', 'fine\n');
  put(server, 'src/main.c', 'int main(void) { return 0; }\n');
  put(server, 'src/cart.c', 'int total(int n) { return n * 2; }\n');
  const [coder, writer] = [server.agent('coder'), server.agent('writer')];
  const work = [
    [coder, 'ls -la', 'See what there is'],
    [coder, 'cat README.md', 'Read the README'],
    [coder, 'grep -rn total src', 'Find where totals are made'],
    [writer, 'wc -w README.md', 'Count the words'],
    [coder, 'sudo apt-get install make', 'Install make'],
    [coder, 'cat missing.txt', 'Read the notes'],
    [writer, 'head -n 3 README.md', 'Read the beginning'],
    [coder, 'find . -name "*.c" | xargs wc -l', 'How much code is there?'],
  ] as const;
  for (const [agent, command, description] of work) await agent.run(command, { description });
  await owner(page, 'POST', '/commands', { command: 'git --version', wait_ms: 5000 });
  return { coder, writer };
}

/** Rules of a person's own, saved. */
export async function rules(page: Page): Promise<void> {
  const { etag } = await owner(page, 'GET', '/policies/server');
  await page.evaluate(
    async ([etag, text]) => {
      await fetch('/agent/terminal/policies/server', {
        method: 'PUT',
        headers: { 'x-weighlock': '1', 'content-type': 'application/json', 'if-match': `"${etag}"` },
        body: JSON.stringify({ text, note: 'No force pushes' }),
      });
    },
    [String(etag), RULES] as const,
  );
}

const RULES = `[[rule]]
name    = "no-force-push"
reject  = "git push --force"
because = "overwrites shared work"

[[rule]]
name    = "scratch"
auto    = { program = "rm", paths = ["tmp", "tmp/**"] }
because = "is only scratch"

[[rule]]
name    = "reads-code"
ask     = "xargs"
agents  = "writer"
until   = "2027-12-31"
because = "runs other programs"
`;
