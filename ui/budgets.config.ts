import { defineConfig } from '@playwright/test';
import base from './playwright.config';

export default defineConfig({
  ...base,
  testDir: '.',
  testMatch: 'budgets.spec.ts',
  workers: 1,
  timeout: 900_000,
  projects: [{ name: 'budgets', use: { ...base.use, viewport: { width: 1440, height: 900 } } }],
});
