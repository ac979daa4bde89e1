// Compares what the suite has found with what is known to be absent: one
// failure more or one less than that is a failure here.
import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';

const [found, file] = process.argv.slice(2);

// Lines are `scenario`, or `scenario check` for one of its checks.
const known = new Map();
for (const line of readFileSync(file, 'utf8').split('\n')) {
  const [scenario, check] = line.replace(/#.*/, '').trim().split(/\s+/);
  if (!scenario) continue;
  if (!known.has(scenario)) known.set(scenario, new Set());
  known.get(scenario).add(check ?? '*');
}

const count = { passed: 0, absent: 0, skipped: 0 };
const wrong = [];
const scenarios = new Set();
let without = 0;
for (const dir of readdirSync(found)) {
  const [, scenario] = dir.match(/^server-(.*)-\d{4}-\d\d-\d\dT[\d-]+Z$/);
  scenarios.add(scenario);
  const absent = known.get(scenario) ?? new Set();
  const unseen = new Set(absent);
  const checks = JSON.parse(readFileSync(join(found, dir, 'checks.json'), 'utf8'));
  for (const check of checks) {
    if (check.status === 'SUCCESS') count.passed += 1;
    if (check.status === 'SKIPPED' || check.status === 'WARNING') count.skipped += 1;
    if (check.status !== 'FAILURE') continue;
    const as = absent.has('*') ? '*' : check.id;
    unseen.delete(as);
    if (absent.has(as)) count.absent += 1;
    else wrong.push(`${scenario} ${check.id}: ${check.errorMessage ?? check.description}`);
  }
  for (const check of unseen) wrong.push(`${scenario} ${check}: it does not fail any more`);
  if (absent.has('*')) without += 1;
}
for (const scenario of known.keys()) {
  if (!scenarios.has(scenario)) wrong.push(`${scenario}: there is no such scenario`);
}
if (scenarios.size === 0) wrong.push('nothing was tried');

console.log(
  `${scenarios.size - without} of ${scenarios.size} scenarios apply: ${count.passed} checks passed, ` +
    `${count.skipped} not applicable, ${count.absent} about what is absent here, ` +
    `${wrong.length} failed`,
);
for (const line of wrong) console.log(`  ${line}`);
process.exit(wrong.length === 0 ? 0 : 1);
