// Prints what was measured as one table.
import type { Reporter, TestCase, TestResult } from '@playwright/test/reporter';

export default class Table implements Reporter {
  #rows: string[] = [];

  onTestEnd(test: TestCase, result: TestResult): void {
    for (const { type, description } of test.annotations) {
      if (type === 'measured') this.#rows.push(description ?? '');
    }
    if (result.status !== 'passed') console.error(`${test.title}: ${result.error?.message ?? result.status}`);
  }

  onEnd(): void {
    console.log('| what | budget | measured |\n|---|---|---|');
    for (const row of this.#rows) console.log(row);
  }
}
